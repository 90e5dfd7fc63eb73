//! The server's own time, and single settings.

use super::error::Refused;
use super::fleet::{Fleet, Node};
use super::value;
use crate::model::Timestamp;

/// `TIME` of the first node.
///
/// # Errors
/// What it is refused for.
pub async fn time(fleet: &mut Fleet) -> Result<Timestamp, Refused> {
    let none = || Refused::Other("TIME tells no time".into());
    let node = fleet.nodes.first_mut().ok_or_else(none)?;
    let parts = value::list(node.say("TIME").await?);
    read(&parts).ok_or_else(none)
}

fn read(parts: &[redis::Value]) -> Option<Timestamp> {
    let seconds = parts.first().and_then(value::int)?;
    let micros = parts.get(1).and_then(value::int)?;
    let at = chrono::DateTime::from_timestamp(seconds, u32::try_from(micros).ok()? * 1000)?;
    Some(Timestamp::new(at))
}

/// What a setting is; `None`: the server has none of that name.
///
/// # Errors
/// What CONFIG GET is refused for.
pub async fn setting(node: &mut Node, name: &str) -> Result<Option<String>, Refused> {
    let found = node.ask(&[b"CONFIG", b"GET", name.as_bytes()]).await?;
    let fields = value::fields(found);
    Ok(value::field(&fields, name).and_then(value::text))
}
