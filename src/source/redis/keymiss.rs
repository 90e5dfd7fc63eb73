//! Misses of single keys, as the server's keyspace events tell them: only listened to here, never switched on.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::future::join_all;

use super::clock::setting;
use super::error::Refused;
use super::fleet::{Fleet, Node};
use super::walk::Watch;
use crate::keys::{Grouping, guarded};
use crate::model::{KeyName, Millis, Misses};

/// The setting that events are switched on by.
pub const SETTING: &str = "notify-keyspace-events";

/// Of so many keys misses are counted one by one; those of further keys aren't.
const MOST_KEYS: usize = 50_000;

/// The event classes of a setting, with `A` spelled out: it doesn't hold misses (`m`) nor new keys (`n`).
pub fn classes(flags: &str) -> String {
    let mut all: Vec<char> = flags.replace('A', "g$lshzxetd").chars().collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter().collect()
}

/// These flags tell misses by event: `E` and `m`.
pub fn tells_misses(flags: &str) -> bool {
    let classes = classes(flags);
    classes.contains('E') && classes.contains('m')
}

/// These flags tell when a string is written.
pub fn tells_writes(flags: &str) -> bool {
    classes(flags).contains('$')
}

/// The flags with misses and writes of every type added.
pub fn with_misses(flags: &str) -> String {
    let has = classes(flags);
    let more = "Em$hzsl".chars().filter(|flag| !has.contains(*flag));
    flags.chars().chain(more).collect()
}

/// The pattern of all events of a database.
pub(super) fn events_of(database: i64) -> String {
    format!("__keyevent@{database}__:*")
}

/// Which events a node tells.
///
/// # Errors
/// What CONFIG GET is refused for.
pub async fn flags(node: &mut Node) -> Result<String, Refused> {
    Ok(setting(node, SETTING).await?.unwrap_or_default())
}

#[derive(Default)]
struct OfKey {
    misses: u64,
    /// Since the last write.
    pending: u64,
    first: Option<Instant>,
    /// The most that came before a write, and how long after the first of them it was.
    worst: u64,
    rebuild: Option<Duration>,
    /// Its lock was set since the last write; and among the most.
    locked: bool,
    worst_locked: bool,
}

impl OfKey {
    fn missed(&mut self, at: Instant) {
        self.misses += 1;
        self.pending += 1;
        self.first.get_or_insert(at);
        if self.pending > self.worst {
            (self.worst, self.rebuild) = (self.pending, None);
            self.worst_locked = self.locked;
        }
    }

    fn lock_set(&mut self) {
        if self.pending > 0 {
            self.locked = true;
            self.worst_locked |= self.pending == self.worst;
        }
    }

    fn written(&mut self, at: Instant) {
        if let Some(first) = self.first.take()
            && self.pending >= self.worst
        {
            self.rebuild = Some(at.duration_since(first));
        }
        (self.pending, self.locked) = (0, false);
    }
}

/// Listens for so long on every node; by group. `writes`: they are told as well, so it can be told what came before one.
///
/// # Errors
/// What the subscription is refused for.
pub async fn listen_for_misses(
    fleet: &mut Fleet,
    grouping: &mut Grouping,
    time: Duration,
    writes: bool,
    watch: &dyn Watch,
) -> Result<HashMap<String, Misses>, Refused> {
    let database = fleet.target.database;
    let connect = fleet.limits.connect;
    let nodes = fleet
        .nodes
        .iter()
        .map(|node| of_node(node, database, connect, time, watch));
    let mut groups: HashMap<String, Misses> = HashMap::new();
    for keys in join_all(nodes).await {
        for (key, of_key) in keys? {
            if of_key.misses == 0 {
                continue;
            }
            let id = grouping.assign(&key);
            let group = groups
                .entry(grouping.name(id).to_owned())
                .or_insert(Misses {
                    misses: 0,
                    keys: 0,
                    worst: None,
                    worst_misses: 0,
                    rebuild_ms: None,
                    locked: false,
                });
            group.misses += of_key.misses;
            group.keys += 1;
            if writes && of_key.worst > group.worst_misses {
                group.worst_misses = of_key.worst;
                group.worst = Some(KeyName(key));
                group.rebuild_ms = of_key.rebuild.map(Millis::from);
                group.locked = of_key.worst_locked;
            }
        }
    }
    Ok(groups)
}

async fn of_node(
    node: &Node,
    database: u32,
    connect: Duration,
    time: Duration,
    watch: &dyn Watch,
) -> Result<HashMap<Vec<u8>, OfKey>, Refused> {
    let lost = |error: redis::RedisError| Refused::of_call(&error);
    let opened = tokio::time::timeout(connect, node.client().get_async_pubsub()).await;
    let mut events = opened
        .map_err(|_| Refused::Lost("no answer in time".into()))?
        .map_err(lost)?;
    let pattern = events_of(database.into());
    let listening = events.psubscribe(&pattern).await;
    listening.map_err(|error| match lost(error) {
        // The server doesn't say which.
        Refused::NotPermitted(why) => {
            Refused::NotPermitted(format!("{why}: &{pattern}")).of_user(node.user())
        }
        refused => refused,
    })?;
    let mut stream = events.into_on_message();
    let mut keys: HashMap<Vec<u8>, OfKey> = HashMap::new();
    let end = tokio::time::sleep(time);
    tokio::pin!(end);
    let mut look = tokio::time::interval(Duration::from_millis(100));
    let mut heard = 0;
    loop {
        tokio::select! {
            biased;
            () = &mut end => break,
            _ = look.tick() => {
                watch.progress(heard, None);
                if watch.is_stopped() {
                    break;
                }
            }
            event = stream.next() => {
                let Some(event) = event else {
                    return Err(Refused::Lost("the server ended the connection".into()));
                };
                let key = event.get_payload_bytes();
                let now = Instant::now();
                let kind = event.get_channel_name().rsplit(':').next().unwrap_or_default();
                let is_miss = kind == "keymiss";
                // What ends a key is no rebuild of it.
                if ["del", "expired", "evicted", "expire", "persist"].contains(&kind) {
                    continue;
                }
                heard += u64::from(is_miss);
                if !is_miss
                    && let Some(of) = std::str::from_utf8(key).ok().and_then(guarded)
                {
                    if let Some(of_key) = keys.get_mut(of.as_bytes()) {
                        of_key.lock_set();
                    }
                    continue;
                }
                let room = keys.len() < MOST_KEYS;
                match keys.get_mut(key) {
                    Some(of_key) if is_miss => of_key.missed(now),
                    Some(of_key) => of_key.written(now),
                    None if is_miss && room => {
                        keys.entry(key.to_vec()).or_default().missed(now);
                    }
                    None => {}
                }
            }
        }
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_in_any_spelling() {
        assert!(
            tells_misses("Em")
                && tells_misses("AKEm")
                && !tells_misses("KEA")
                && !tells_misses("Km")
        );
        assert_eq!(classes("KEA"), classes("AKE"));
        assert_eq!(
            (with_misses(""), with_misses("KEA"), with_misses("Ex$")),
            ("Em$hzsl".into(), "KEAm".into(), "Ex$mhzsl".into())
        );
    }

    #[test]
    fn misses_before_a_write_and_how_long_it_took() {
        let (mut key, start) = (OfKey::default(), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
        for ms in [0, 10, 20] {
            key.missed(at(ms));
        }
        key.written(at(800));
        key.missed(at(900));
        key.written(at(950));
        assert_eq!(
            (key.misses, key.worst, key.rebuild),
            (4, 3, Some(Duration::from_millis(800)))
        );
        for ms in [1000, 1001, 1002, 1003] {
            key.missed(at(ms));
        }
        assert_eq!((key.worst, key.rebuild), (4, None), "not written yet");
        // Who sets the lock rebuilds, and the others wait.
        let mut key = OfKey::default();
        key.missed(at(0));
        key.lock_set();
        key.missed(at(1));
        key.written(at(500));
        assert!(key.worst_locked);
        for ms in [600, 601, 602] {
            key.missed(at(ms));
        }
        key.written(at(900));
        key.lock_set();
        assert!(!key.worst_locked, "of the three nobody had it");
    }
}
