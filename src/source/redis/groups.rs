//! The groups of a server's keys, learned from the first pages of a walk.

use redis::Value;

use super::error::Refused;
use super::fleet::Fleet;
use super::value;
use crate::keys::{Grouping, Pattern, Sample};

/// Walks until there is enough to learn from; adds nothing to the server's statistics.
///
/// # Errors
/// When the connection is lost.
pub async fn learn(fleet: &mut Fleet, patterns: Vec<Pattern>) -> Result<Grouping, Refused> {
    let mut sample = Sample::new(patterns);
    for node in &mut fleet.nodes {
        let mut cursor = b"0".to_vec();
        loop {
            let page = match node.ask(&[b"SCAN", &cursor, b"COUNT", b"1000"]).await {
                Ok(page) => page,
                Err(lost @ Refused::Lost(_)) => return Err(lost),
                // Without SCAN there are no groups, and the rest can be told all the same.
                Err(_) => Value::Nil,
            };
            let mut parts = value::list(page).into_iter();
            cursor = parts
                .next()
                .and_then(value::bytes)
                .unwrap_or_else(|| b"0".to_vec());
            let keys = value::list(parts.next().unwrap_or_default());
            for key in keys.into_iter().filter_map(value::bytes) {
                sample.push(&key);
            }
            if cursor == b"0" || sample.is_full() {
                break;
            }
        }
    }
    Ok(sample.learn())
}
