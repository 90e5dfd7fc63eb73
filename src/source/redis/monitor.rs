//! Hot keys by a sample of the commands that go by. MONITOR costs the server: it is bounded in lines and seconds, and
//! only keys are taken of what it shows.

use std::cell::Cell;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use redis::Value;

use super::error::Refused;
use super::fleet::{Fleet, Limits, Node};
use super::groups::learn;
use super::hot::{HotOptions, HotPass, describe};
use super::value;
use super::walk::Watch;
use crate::keys::{Top, is_like, monitor};
use crate::model::{
    HotFound, HotGroup, HotKey, HotMethod, HotUnit, KeyName, NodeWalk, OwnEffect, Percent,
    RedisCoverage, Stopped, Tally,
};

/// Where a sample ends, whichever comes first.
#[derive(Clone, Copy, Debug)]
pub struct MonitorLimits {
    /// Of all nodes together.
    pub lines: usize,
    pub time: Duration,
}

/// The server's memory may grow by this much while we read: above it our own buffer there may be what grows.
const MEMORY: u64 = 64 << 20;
const LOOK: Duration = Duration::from_millis(200);

struct Heard {
    counts: HashMap<(u32, Vec<u8>), u64>,
    accesses: u64,
    lines: u64,
    unread: u64,
    stopped: Option<Stopped>,
    time: Duration,
}

/// Listens, counts, and describes the hottest.
///
/// # Errors
/// What MONITOR is refused for.
pub async fn monitor_pass(
    fleet: &mut Fleet,
    options: HotOptions<'_>,
    limits: MonitorLimits,
    watch: &dyn Watch,
) -> Result<HotPass, Refused> {
    let mut grouping = learn(fleet, options.patterns.clone()).await?;
    // One end for all: shares are of the same time.
    let total = Cell::new(0);
    let within = fleet.limits;
    let listening = fleet
        .nodes
        .iter_mut()
        .map(|node| listen(node, &total, limits, within, watch));
    let heard: Result<Vec<Heard>, Refused> = join_all(listening).await.into_iter().collect();
    let heard = heard?;
    let names: Vec<String> = fleet.nodes.iter().map(|node| node.name.clone()).collect();
    let database = fleet.target.database;
    let mut top = Top::new(options.top);
    let mut groups: HashMap<String, HotGroup> = HashMap::new();
    let accesses: u64 = heard.iter().map(|heard| heard.accesses).sum();
    for (at, heard) in heard.iter().enumerate() {
        let is_wanted = |key: &[u8]| options.pattern.is_none_or(|like| is_like(like, key));
        for ((db, key), count) in heard.counts.iter().filter(|((_, key), _)| is_wanted(key)) {
            let count = *count;
            // The same name in two databases is two keys.
            let mut name = db.to_be_bytes().to_vec();
            name.extend_from_slice(key);
            top.push(&name, i64::try_from(count).unwrap_or(i64::MAX), || at);
            let id = grouping.assign(key);
            let group = groups
                .entry(grouping.name(id).to_owned())
                .or_insert_with_key(|name| HotGroup {
                    group: name.clone(),
                    keys: 0,
                    hottest: 0,
                    accesses: Some(0),
                    share_pct: None,
                    bytes: None,
                    with_ttl: None,
                });
            group.keys += 1;
            group.hottest = group.hottest.max(count);
            group.accesses = group.accesses.map(|sum| sum + count);
        }
    }
    let tied_out = top.tied_out();
    let chosen: Vec<(u32, Vec<u8>, i64, usize)> = top
        .into_sorted()
        .into_iter()
        .map(|(name, count, at)| {
            let (db, key) = name.split_at(4);
            let db = db.try_into().map_or(0, u32::from_be_bytes);
            (db, key.to_vec(), count, at)
        })
        .collect();
    let mut coverage = RedisCoverage::of(
        walks(&names, &heard),
        OwnEffect::default(),
        fleet.slots_unserved,
    );
    coverage.keys_seen = None;
    coverage.keys_total = None;
    coverage.pattern = options.pattern.map(|like| KeyName(like.to_vec()).text());
    let took = heard
        .iter()
        .map(|heard| heard.time)
        .max()
        .unwrap_or_default();
    coverage.own_effect.took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let here: Vec<usize> = (0..chosen.len())
        .filter(|n| chosen[*n].0 == database)
        .collect();
    let wanted: Vec<(usize, &[u8])> = here
        .iter()
        .map(|n| (chosen[*n].3, chosen[*n].1.as_slice()))
        .collect();
    let mut facts = vec![crate::model::KeyFacts::default(); chosen.len()];
    for (n, about) in here
        .iter()
        .zip(describe(fleet, &wanted, &mut coverage).await)
    {
        facts[*n] = about;
    }
    let keys = chosen
        .into_iter()
        .zip(facts)
        .map(|((db, key, count, at), about)| {
            let id = grouping.assign(&key);
            HotKey {
                node: names.get(at).cloned().unwrap_or_default(),
                database: Some(db),
                group: grouping.name(id).to_owned(),
                score: count.unsigned_abs(),
                unit: HotUnit::Accesses,
                share_pct: Percent::of(count.unsigned_abs(), accesses),
                about,
                key: KeyName(key),
            }
        })
        .collect();
    let mut groups: Vec<HotGroup> = groups
        .into_values()
        .map(|group| HotGroup {
            share_pct: group.accesses.and_then(|sum| Percent::of(sum, accesses)),
            ..group
        })
        .collect();
    groups.sort_by(|a, b| b.accesses.cmp(&a.accesses).then(a.group.cmp(&b.group)));
    Ok(HotPass {
        found: HotFound {
            method: HotMethod::Monitor,
            window: Some(took.into()),
            sampled: accesses,
            keys,
            groups,
            counters: None,
            tied_out,
        },
        coverage,
    })
}

/// A sample is whole when it ended by its own limits.
fn walks(names: &[String], heard: &[Heard]) -> Vec<NodeWalk> {
    names
        .iter()
        .zip(heard)
        .map(|(node, heard)| NodeWalk {
            node: node.clone(),
            keys_total: None,
            keys_seen: heard.lines,
            complete: heard.stopped.is_none(),
            stopped: heard.stopped.clone(),
            tally: Tally {
                failed: heard.unread,
                ..Tally::default()
            },
        })
        .collect()
}

async fn listen(
    node: &mut Node,
    total: &Cell<usize>,
    limits: MonitorLimits,
    within: Limits,
    watch: &dyn Watch,
) -> Result<Heard, Refused> {
    let mut heard = Heard {
        counts: HashMap::new(),
        accesses: 0,
        lines: 0,
        unread: 0,
        stopped: None,
        time: Duration::ZERO,
    };
    let before = used_memory(node).await;
    let client = node.client().clone();
    // The stream doesn't tell a refusal from silence: a connection that is dropped at once does.
    node.beside(within).await?.say("MONITOR").await?;
    let monitor = tokio::time::timeout(within.connect, client.get_async_monitor())
        .await
        .map_err(|_| Refused::Lost("no answer in time".into()))?
        .map_err(|error| Refused::of_call(&error))?;
    let mut lines = monitor.into_on_message::<Value>();
    let begun = Instant::now();
    let end = tokio::time::sleep(limits.time);
    tokio::pin!(end);
    let mut look = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            // The end comes first: lines may come without a pause.
            biased;
            () = &mut end => break,
            _ = look.tick() => {
                watch.progress(total.get() as u64, Some(limits.lines as u64));
                if total.get() >= limits.lines {
                    break;
                }
                if watch.is_stopped() {
                    heard.stopped = Some(Stopped::Asked);
                    break;
                }
                if let (Some(before), Some(now)) = (before, used_memory(node).await)
                    && now > before + MEMORY
                {
                    heard.stopped = Some(Stopped::Failed(
                        "the server's memory grew by more than 64 MiB meanwhile".into(),
                    ));
                    break;
                }
            }
            line = lines.next() => {
                let Some(line) = line else {
                    heard.stopped = Some(Stopped::Failed("the server ended the connection".into()));
                    break;
                };
                heard.take(&line);
                total.set(total.get() + 1);
                if total.get() >= limits.lines {
                    break;
                }
            }
        }
    }
    heard.time = begun.elapsed();
    Ok(heard)
}

impl Heard {
    fn take(&mut self, line: &Value) {
        let Some(text) = value::text(line) else {
            return;
        };
        self.lines += 1;
        let Some(seen) = monitor::read(&text) else {
            self.unread += 1;
            return;
        };
        for key in seen.keys {
            self.accesses += 1;
            *self.counts.entry((seen.database, key)).or_insert(0) += 1;
        }
    }
}

async fn used_memory(node: &mut Node) -> Option<u64> {
    let text = value::text(&node.say("INFO memory").await.ok()?)?;
    super::info::Facts::read(&text).number("used_memory")
}
