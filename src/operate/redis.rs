//! The `redis` step of a book: one report of the Redis in front, within a budget, as its JSON has it.

use std::time::Duration;

use serde_json::Value as Json;

use crate::analysis::redis::expiry::{self, CliffLimits};
use crate::analysis::redis::hotkeys::{self, Circumstances};
use crate::analysis::redis::queues::{self as queue_report, QueueRow};
use crate::analysis::redis::stampede::{self, Around};
use crate::config::RedisConfig;
use crate::keys::Pattern;
use crate::model::{Guarded, HotKey, Timestamp, counted};
use crate::source::redis::queues::{self, QueueOptions};
use crate::source::redis::{
    self, Budget, Fleet, HotOptions, Lfu, Limits, RedisAddress, StampedeOptions, Watch,
};

/// Walks of a book leave the server to others, and end.
const WALL: Duration = Duration::from_secs(60);
const TOP: usize = 20;

/// Nobody is shown how far it is; a stop of the book ends it.
struct Quiet<'s>(&'s dyn Fn() -> bool);

impl Watch for Quiet<'_> {
    fn progress(&self, _: u64, _: Option<u64>) {}

    fn is_stopped(&self) -> bool {
        (self.0)()
    }
}

/// Lines for a person, and the report as JSON.
///
/// # Errors
/// Why it can't be told, in words.
pub async fn report(
    name: &str,
    address: &RedisAddress,
    config: &RedisConfig,
    limit: Duration,
    clock: fn() -> Timestamp,
    stop: &dyn Fn() -> bool,
) -> Result<(Vec<String>, Json), String> {
    let limits = Limits {
        connect: limit,
        answer: limit,
    };
    if name == "info" {
        let info = redis::info(address, limits)
            .await
            .map_err(|error| error.to_string())?;
        let value = serde_json::to_value(&info).unwrap_or_default();
        return Ok((fields(&value), value));
    }
    let mut fleet = redis::open(address, None, limits)
        .await
        .map_err(|error| error.to_string())?;
    let now = match redis::time(&mut fleet).await {
        Some(now) => now,
        None => clock(),
    };
    let patterns: Vec<Pattern> = config
        .groups
        .iter()
        .map(|text| Pattern::new(text))
        .collect();
    let (budget, watch) = (Budget::gentle(WALL), Quiet(stop));
    match name {
        "expiry" => {
            let pass = redis::expiry_pass(&mut fleet, now, None, patterns, budget, &watch).await;
            let report = expiry::report(
                now,
                fleet.target,
                pass.coverage,
                &pass.groups,
                CliffLimits::default(),
            );
            let lines = match report.data.cliffs.as_slice() {
                [] => vec!["no cliff".to_owned()],
                cliffs => cliffs
                    .iter()
                    .take(TOP)
                    .map(crate::model::Cliff::forecast)
                    .collect(),
            };
            Ok((lines, json(&report)))
        }
        "queues" => {
            let options = QueueOptions {
                walk: true,
                streams: true,
                touch: false,
                budget,
            };
            let (found, coverage) = queues::queues(&mut fleet, now, &watch, options).await;
            // Nothing was looked at: that isn't a server without queues.
            if let Some(why) = coverage.skipped("queues") {
                return Err(why.to_owned());
            }
            let report =
                queue_report::report(now, fleet.target, coverage, found, &config.queues(), None);
            let line = |row: &QueueRow| {
                let depth = row
                    .queue
                    .depth
                    .map_or_else(|| "?".into(), |depth| depth.to_string());
                format!(
                    "{}: {depth} waiting, {} {}",
                    row.full_name(),
                    row.verdict.word(),
                    row.reasons.join("; ")
                )
            };
            let lines = report.data.queues.iter().map(line).collect();
            Ok((lines, json(&report)))
        }
        "hotkeys" => hot(fleet, now, patterns, budget, &watch).await,
        _ => guards(fleet, now, patterns, budget, &watch).await,
    }
}

fn json(report: &impl serde::Serialize) -> Json {
    serde_json::to_value(report).unwrap_or_default()
}

async fn counts(fleet: &mut Fleet) -> Result<Lfu, String> {
    redis::probe_lfu(fleet)
        .await
        .map_err(|lost| lost.text().to_owned())
}

async fn hot(
    mut fleet: Fleet,
    now: Timestamp,
    patterns: Vec<Pattern>,
    budget: Budget,
    watch: &Quiet<'_>,
) -> Result<(Vec<String>, Json), String> {
    match counts(&mut fleet).await? {
        Lfu::Counts | Lfu::NoKeys => {}
        Lfu::Off => {
            return Err("the maxmemory policy isn't one of LFU: there are no counters".into());
        }
        Lfu::Refused(refused) => return Err(format!("OBJECT FREQ: {}", refused.text())),
    }
    let options = HotOptions {
        top: TOP,
        attributes: false,
        pattern: None,
        patterns,
        budget,
    };
    let pass = redis::lfu_pass(&mut fleet, options, watch).await;
    let report = hotkeys::report(
        now,
        fleet.target,
        pass.coverage,
        pass.found,
        Circumstances::default(),
    );
    let line = |key: &HotKey| format!("{:>3} {} ({})", key.score, key.key.text(), key.group);
    let lines = report.data.keys.iter().map(line).collect();
    Ok((lines, json(&report)))
}

async fn guards(
    mut fleet: Fleet,
    now: Timestamp,
    patterns: Vec<Pattern>,
    budget: Budget,
    watch: &Quiet<'_>,
) -> Result<(Vec<String>, Json), String> {
    let counters = counts(&mut fleet).await? == Lfu::Counts;
    let options = StampedeOptions {
        pattern: None,
        patterns,
        budget,
        counters,
    };
    let pass = redis::stampede_pass(&mut fleet, now, options, watch).await;
    let groups = pass.groups.into_iter().map(|seen| seen.seen).collect();
    let around = Around {
        top: TOP,
        ..Around::default()
    };
    let report = stampede::report(now, fleet.target, pass.coverage, groups, around);
    let line = |group: &Guarded| {
        format!(
            "{}: {} ({})",
            group.group,
            group.verdict.word(),
            counted(group.keys, "key")
        )
    };
    let lines = report.data.stampede.iter().map(line).collect();
    Ok((lines, json(&report)))
}

/// One field a line.
fn fields(value: &Json) -> Vec<String> {
    let line = |(name, field): (&String, &Json)| {
        let field = match field {
            Json::Null => "-".to_owned(),
            Json::String(word) => word.clone(),
            other => other.to_string(),
        };
        format!("{:24} {field}", name.replace('_', " "))
    };
    value.as_object().into_iter().flatten().map(line).collect()
}
