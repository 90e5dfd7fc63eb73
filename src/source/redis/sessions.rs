//! Hot keys by the server's own count: HOTKEYS of Redis (8.6, a session that somebody starts) and of Valkey (9.2, a list of
//! the last window). Here it is only read.

use redis::Value;

use super::error::Refused;
use super::fleet::{Fleet, Node};
use super::groups::learn;
use super::hot::{HotOptions, HotPass, describe};
use super::value;
use crate::keys::is_like;
use crate::model::{
    HotFound, HotKey, HotMethod, HotUnit, KeyFacts, KeyName, Millis, NodeWalk, OwnEffect, Percent,
    RedisCoverage, Tally,
};

/// What one node counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerCount {
    /// Whether it is counting still.
    pub active: bool,
    pub window: Option<Millis>,
    /// One key in so many was counted: the scores are scaled by it.
    pub sample_ratio: u64,
    /// Of all commands, in the unit of the scores.
    pub total: Option<u64>,
    pub unit: Option<HotUnit>,
    /// Key, database, score.
    pub keys: Vec<(Vec<u8>, Option<u32>, u64)>,
}

/// Reads what a node has counted; `None`: nothing is being counted, or nothing has been.
///
/// # Errors
/// When the connection is lost, or this login may not ask.
pub async fn server_count(node: &mut Node) -> Result<Option<ServerCount>, Refused> {
    match node.say("HOTKEYS GET").await {
        Ok(found) => Ok(read(found)),
        Err(refused @ (Refused::Lost(_) | Refused::NotPermitted(_))) => Err(refused),
        // The server doesn't have it, or it is switched off.
        Err(_) => Ok(None),
    }
}

/// Either spelling: one map (in an array of its own, or flat), or a list of maps that each have a `key`.
fn read(found: Value) -> Option<ServerCount> {
    let entries = match found {
        Value::Array(values) => values,
        map @ Value::Map(_) => return of_session(map),
        _ => return None,
    };
    match entries.first()? {
        Value::Map(_) | Value::Array(_) => {}
        _ => return of_session(Value::Array(entries)),
    }
    let first = value::fields(entries[0].clone());
    if value::field(&first, "key").is_none() {
        return of_session(entries.into_iter().next()?);
    }
    let keys: Vec<(Vec<u8>, Option<u32>, u64)> = entries
        .into_iter()
        .filter_map(|entry| {
            let fields = value::fields(entry);
            let key = value::bytes(value::field(&fields, "key")?.clone())?;
            let database = value::field(&fields, "db").and_then(value::uint);
            let rate = value::field(&fields, "qps").and_then(value::uint)?;
            Some((key, database.and_then(|db| u32::try_from(db).ok()), rate))
        })
        .collect();
    Some(ServerCount {
        active: true,
        sample_ratio: 1,
        unit: Some(HotUnit::PerSecond),
        keys,
        ..ServerCount::default()
    })
}

fn of_session(map: Value) -> Option<ServerCount> {
    let fields = value::fields(map);
    let number = |name: &str| value::field(&fields, name).and_then(value::uint);
    let ratio = number("sample-ratio").unwrap_or(1).max(1);
    let by_cpu = value::field(&fields, "by-cpu-time-us");
    let (list, unit, total) = match by_cpu {
        Some(list) => (list, HotUnit::CpuUs, number("all-commands-all-slots-us")),
        None => (
            value::field(&fields, "by-net-bytes")?,
            HotUnit::NetBytes,
            number("net-bytes-all-commands-all-slots"),
        ),
    };
    let mut values = match list.clone() {
        Value::Map(pairs) => pairs
            .into_iter()
            .flat_map(|(key, score)| [key, score])
            .collect(),
        other => value::list(other),
    }
    .into_iter();
    let mut keys = Vec::new();
    while let (Some(key), Some(score)) = (values.next(), values.next()) {
        if let (Some(key), Some(score)) = (value::bytes(key), value::uint(&score)) {
            keys.push((key, None, score.saturating_mul(ratio)));
        }
    }
    Some(ServerCount {
        active: number("tracking-active") == Some(1),
        window: number("collection-duration-ms").map(Millis),
        sample_ratio: ratio,
        total,
        unit: Some(unit),
        keys,
    })
}

/// Ranks what the nodes have counted, and describes it.
///
/// # Errors
/// When the connection is lost.
pub async fn ranked_by_servers(
    fleet: &mut Fleet,
    options: HotOptions<'_>,
    method: HotMethod,
    counts: Vec<ServerCount>,
) -> Result<HotPass, Refused> {
    let mut grouping = learn(fleet, options.patterns).await?;
    let nodes: Vec<NodeWalk> = fleet
        .nodes
        .iter()
        .map(|node| NodeWalk {
            node: node.name.clone(),
            keys_total: None,
            keys_seen: 0,
            complete: true,
            stopped: None,
            tally: Tally::default(),
        })
        .collect();
    let mut coverage = RedisCoverage::of(nodes, OwnEffect::default(), fleet.slots_unserved);
    (coverage.keys_seen, coverage.keys_total) = (None, None);
    coverage.pattern = options.pattern.map(|like| KeyName(like.to_vec()).text());
    let total: Option<u64> = counts.iter().map(|count| count.total).sum();
    let window = counts.iter().filter_map(|count| count.window).max();
    let unit = counts
        .iter()
        .find_map(|count| count.unit)
        .unwrap_or(HotUnit::PerSecond);
    let mut all: Vec<(usize, Vec<u8>, Option<u32>, u64)> = counts
        .into_iter()
        .enumerate()
        .flat_map(|(at, count)| {
            count
                .keys
                .into_iter()
                .map(move |(key, db, score)| (at, key, db, score))
        })
        .collect();
    all.retain(|(_, key, ..)| options.pattern.is_none_or(|like| is_like(like, key)));
    all.sort_by(|a, b| b.3.cmp(&a.3).then(a.1.cmp(&b.1)));
    all.truncate(options.top);
    let database = fleet.target.database;
    // Where no database is told, the key may be of any: it is described where it is in ours.
    let here: Vec<usize> = (0..all.len())
        .filter(|n| all[*n].2.is_none_or(|db| db == database))
        .collect();
    let wanted: Vec<(usize, &[u8])> = here
        .iter()
        .map(|n| (all[*n].0, all[*n].1.as_slice()))
        .collect();
    let mut facts = vec![KeyFacts::default(); all.len()];
    for (n, about) in here
        .iter()
        .zip(describe(fleet, &wanted, &mut coverage).await)
    {
        facts[*n] = about;
    }
    let sampled = all.len() as u64;
    let keys = all
        .into_iter()
        .zip(facts)
        .map(|((at, key, database, score), about)| {
            let id = grouping.assign(&key);
            HotKey {
                node: fleet
                    .nodes
                    .get(at)
                    .map(|node| node.name.clone())
                    .unwrap_or_default(),
                database,
                group: grouping.name(id).to_owned(),
                score,
                unit,
                share_pct: total.and_then(|total| Percent::of(score, total)),
                about,
                key: KeyName(key),
            }
        })
        .collect();
    Ok(HotPass {
        found: HotFound {
            method,
            window,
            sampled,
            keys,
            groups: Vec::new(),
            counters: None,
            tied_out: 0,
        },
        coverage,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    fn session() -> Vec<Value> {
        vec![
            text("tracking-active"),
            Value::Int(1),
            text("sample-ratio"),
            Value::Int(10),
            text("all-commands-all-slots-us"),
            Value::Int(2000),
            text("collection-duration-ms"),
            Value::Int(6408),
            text("by-cpu-time-us"),
            Value::Array(vec![
                Value::BulkString(b"a\xff".to_vec()),
                Value::Int(104),
                text("b"),
                Value::Int(9),
            ]),
        ]
    }

    #[test]
    fn every_spelling_of_a_session() {
        let flat = session();
        let pairs = flat
            .chunks(2)
            .map(|pair| (pair[0].clone(), pair[1].clone()))
            .collect();
        let spellings = [
            Value::Array(flat.clone()),
            Value::Array(vec![Value::Array(flat)]),
            Value::Array(vec![Value::Map(pairs)]),
        ];
        for spelling in spellings {
            let count = read(spelling).expect("a session");
            assert_eq!(
                (count.active, count.window, count.total),
                (true, Some(Millis(6408)), Some(2000))
            );
            assert_eq!(
                count.keys,
                [(b"a\xff".to_vec(), None, 1040), (b"b".to_vec(), None, 90)],
                "scaled by the ratio"
            );
        }
        assert_eq!(read(Value::Nil), None);
        assert_eq!(read(Value::Array(Vec::new())), None);
    }

    #[test]
    fn the_list_of_a_valkey() {
        let entry = |key: &str, qps| {
            Value::Array(vec![
                text("key"),
                text(key),
                text("db"),
                Value::Int(2),
                text("qps"),
                Value::Int(qps),
            ])
        };
        let count = read(Value::Array(vec![entry("a", 900), entry("b", 5)])).expect("a list");
        assert_eq!(count.unit, Some(HotUnit::PerSecond));
        assert_eq!(
            count.keys,
            [(b"a".to_vec(), Some(2), 900), (b"b".to_vec(), Some(2), 5)]
        );
    }
}
