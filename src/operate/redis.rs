//! Reports of the Redis in front, each as its JSON has it: for the `redis` step of a book, and for a capture.

use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize as _, Serialize};
use serde_json::Value as Json;

use crate::analysis::redis::RedisReport;
use crate::analysis::redis::bigkeys::{self, Bigkeys};
use crate::analysis::redis::expiry::{self, CliffLimits, Expiry};
use crate::analysis::redis::hotkeys::{self, Circumstances, Hotkeys};
use crate::analysis::redis::info::{self, Info, Looked};
use crate::analysis::redis::queues::{self as queue_report, QueueRow, Queues};
use crate::analysis::redis::stampede::{self, Around, Stampede};
use crate::config::RedisConfig;
use crate::keys::Pattern;
use crate::model::{BigKey, Guarded, HotKey, RedisCoverage, Timestamp, counted};
use crate::source::redis::queues::{self, QueueOptions};
use crate::source::redis::{
    self, BigOptions, Budget, Fleet, HotOptions, Lfu, Limits, RedisAddress, StampedeOptions, Watch,
};

/// Walks of a book leave the server to others, and end.
const WALL: Duration = Duration::from_secs(60);
const TOP: usize = 20;
/// Between the two looks that the rates of `info` are of.
const BETWEEN: Duration = Duration::from_secs(1);
const SLOW: usize = 5;

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
    let (budget, watch) = (Budget::gentle(WALL), Quiet(stop));
    let value = read(name, &mut fleet, config, budget, clock, &watch).await?;
    told(name, value)
}

/// One report as its command makes it, without its options.
///
/// # Errors
/// Why it can't be told, in words.
pub async fn read(
    name: &str,
    fleet: &mut Fleet,
    config: &RedisConfig,
    budget: Budget,
    clock: fn() -> Timestamp,
    watch: &dyn Watch,
) -> Result<Json, String> {
    let now = match redis::time(fleet).await {
        Ok(now) => now,
        Err(_) => clock(),
    };
    let patterns: Vec<Pattern> = config
        .groups
        .iter()
        .map(|text| Pattern::new(text))
        .collect();
    let target = fleet.target.clone();
    match name {
        "info" => looked_twice(fleet, now).await,
        "bigkeys" => {
            let options = BigOptions {
                top: TOP,
                pattern: None,
                patterns,
                budget,
                touch: false,
            };
            let pass = redis::big_pass(fleet, options, watch).await;
            let data = Bigkeys {
                bigkeys: pass.by_bytes,
                by_elements: pass.by_elements,
                types: pass.types,
                groups: pass.groups,
                measured: Some(pass.measured),
            };
            json(&bigkeys::report(now, target, pass.coverage, data))
        }
        "expiry" => {
            let pass = redis::expiry_pass(fleet, now, None, patterns, budget, watch).await;
            let limits = CliffLimits::default();
            json(&expiry::report(
                now,
                target,
                pass.coverage,
                &pass.groups,
                limits,
            ))
        }
        "queues" => {
            let options = QueueOptions {
                walk: true,
                streams: true,
                touch: false,
                budget,
            };
            let (found, coverage) = queues::queues(fleet, now, watch, options).await;
            // Nothing was looked at: that isn't a server without queues.
            if let Some(why) = coverage.skipped("queues") {
                return Err(why.to_owned());
            }
            let bounds = config.queues();
            json(&queue_report::report(
                now, target, coverage, found, &bounds, None,
            ))
        }
        "hotkeys" => hot(fleet, now, patterns, budget, watch).await,
        _ => guards(fleet, now, patterns, budget, watch).await,
    }
}

/// A report that was read before, in lines.
///
/// # Errors
/// When it isn't what its name says.
pub fn told(name: &str, value: Json) -> Result<(Vec<String>, Json), String> {
    let lines = match name {
        "info" => {
            // A book knows the numbers of the first node by their names.
            let node = value["info"].get(0).cloned().unwrap_or(value);
            return Ok((fields(&node), node));
        }
        "bigkeys" => {
            let line = |key: &BigKey| {
                let bytes = key
                    .bytes
                    .map_or_else(|| "?".into(), |bytes| bytes.to_string());
                let about = if key.bytes_estimated { "~" } else { "" };
                format!("{about}{bytes} bytes: {} ({})", key.key.text(), key.group)
            };
            typed::<Bigkeys>(&value)?
                .data
                .bigkeys
                .iter()
                .map(line)
                .collect()
        }
        "expiry" => match typed::<Expiry>(&value)?.data.cliffs.as_slice() {
            [] => vec!["no cliff".to_owned()],
            cliffs => cliffs
                .iter()
                .take(TOP)
                .map(crate::model::Cliff::forecast)
                .collect(),
        },
        "queues" => {
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
            typed::<Queues>(&value)?
                .data
                .queues
                .iter()
                .map(line)
                .collect()
        }
        "hotkeys" => {
            let line =
                |key: &HotKey| format!("{:>3} {} ({})", key.score, key.key.text(), key.group);
            typed::<Hotkeys>(&value)?
                .data
                .keys
                .iter()
                .map(line)
                .collect()
        }
        _ => {
            let line = |group: &Guarded| {
                format!(
                    "{}: {} ({})",
                    group.group,
                    group.verdict.word(),
                    counted(group.keys, "key")
                )
            };
            typed::<Stampede>(&value)?
                .data
                .stampede
                .iter()
                .map(line)
                .collect()
        }
    };
    Ok((lines, value))
}

fn typed<D: DeserializeOwned>(value: &Json) -> Result<RedisReport<D>, String> {
    RedisReport::deserialize(value).map_err(|error| error.to_string())
}

fn json(report: &impl Serialize) -> Result<Json, String> {
    serde_json::to_value(report).map_err(|error| error.to_string())
}

/// The numbers of each node, and what moved between two looks.
async fn looked_twice(fleet: &mut Fleet, now: Timestamp) -> Result<Json, String> {
    let mut coverage = RedisCoverage {
        complete: true,
        ..RedisCoverage::default()
    };
    let mut looked = Vec::new();
    for node in &mut fleet.nodes {
        let begun = Instant::now();
        let first = redis::node_info(node)
            .await
            .map_err(|e| e.text().to_owned())?;
        tokio::time::sleep(BETWEEN).await;
        let second = redis::node_info(node)
            .await
            .map_err(|e| e.text().to_owned())?;
        looked.push(Looked {
            node: node.name.clone(),
            first,
            second,
            between: begun.elapsed().into(),
            slow_log: redis::slow_log(node, SLOW).await.ok(),
            rights: redis::rights(node).await.map_err(|e| e.text().to_owned())?,
        });
    }
    fleet.state_unreached(&mut coverage);
    let granted = looked.first().map_or(&[][..], |node| &node.rights);
    for grant in granted.iter().filter_map(|right| right.grant.clone()) {
        coverage.lacks(grant);
    }
    let report: RedisReport<Info> = info::report(now, fleet.target.clone(), coverage, looked);
    json(&report)
}

async fn counts(fleet: &mut Fleet) -> Result<Lfu, String> {
    redis::probe_lfu(fleet)
        .await
        .map_err(|lost| lost.text().to_owned())
}

async fn hot(
    fleet: &mut Fleet,
    now: Timestamp,
    patterns: Vec<Pattern>,
    budget: Budget,
    watch: &dyn Watch,
) -> Result<Json, String> {
    match counts(fleet).await? {
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
    let pass = redis::lfu_pass(fleet, options, watch).await;
    json(&hotkeys::report(
        now,
        fleet.target.clone(),
        pass.coverage,
        pass.found,
        Circumstances::default(),
    ))
}

async fn guards(
    fleet: &mut Fleet,
    now: Timestamp,
    patterns: Vec<Pattern>,
    budget: Budget,
    watch: &dyn Watch,
) -> Result<Json, String> {
    let counters = counts(fleet).await? == Lfu::Counts;
    let options = StampedeOptions {
        pattern: None,
        patterns,
        budget,
        counters,
    };
    let pass = redis::stampede_pass(fleet, now, options, watch).await;
    let groups = pass.groups.into_iter().map(|seen| seen.seen).collect();
    let around = Around {
        top: TOP,
        ..Around::default()
    };
    let target = fleet.target.clone();
    json(&stampede::report(
        now,
        target,
        pass.coverage,
        groups,
        around,
    ))
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
