//! The server's own time.

use super::fleet::Fleet;
use super::value;
use crate::model::Timestamp;

/// `TIME` of the first node; `None` where this login may not ask.
pub async fn time(fleet: &mut Fleet) -> Option<Timestamp> {
    let node = fleet.nodes.first_mut()?;
    let parts = value::list(node.say("TIME").await.ok()?);
    let seconds = parts.first().and_then(value::int)?;
    let micros = parts.get(1).and_then(value::int)?;
    let at = chrono::DateTime::from_timestamp(seconds, u32::try_from(micros).ok()? * 1000)?;
    Some(Timestamp::new(at))
}
