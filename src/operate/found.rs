//! A report as the conditions of a book look at it.

use serde_json::Value as Json;

use crate::analysis::{
    Report, activity, blocking, connections, horizon, locks, settings, transactions, triage,
};
use crate::model::{Snapshot, Thresholds};

/// Its JSON; where a part of it couldn't be read, why: what isn't seen is not none.
pub fn found(report: &str, snapshot: &Snapshot, thresholds: &Thresholds) -> Result<Json, String> {
    fn json<D: serde::Serialize>(report: &Report<D>) -> Json {
        serde_json::to_value(report).unwrap_or_default()
    }
    let json = match report {
        "activity" => json(&activity::report(snapshot, &activity::Filter::default())),
        "blockers" => json(&blocking::report(snapshot)),
        "locks" => json(&locks::report(snapshot, false)),
        "transactions" => json(&transactions::report(snapshot, None)),
        "connections" => json(&connections::report(snapshot)),
        "settings" => json(&settings::report(snapshot)),
        "horizon" => json(&horizon::report(snapshot)),
        _ => json(&triage::report(snapshot, thresholds)),
    };
    let sections = json["coverage"]["sections"].as_object();
    let unread = sections
        .into_iter()
        .flatten()
        .find(|(_, section)| section["status"] != "collected");
    match unread {
        Some((part, section)) => Err(format!(
            "{report}: {part} couldn't be read: {}",
            section["why"].as_str().unwrap_or_default()
        )),
        None => Ok(json),
    }
}
