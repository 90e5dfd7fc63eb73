//! `redis info`: each node in numbers, and what a clean interval between two looks shows.

use serde::{Deserialize, Serialize};

use super::head::RedisReport;
use crate::model::{
    Millis, Percent, RedisCoverage, RedisInfo, RedisTarget, Right, SlowCommand, Timestamp,
};

/// One node, looked at twice.
#[derive(Clone, Debug)]
pub struct Looked {
    pub node: String,
    pub first: RedisInfo,
    pub second: RedisInfo,
    pub between: Millis,
    pub slow_log: Option<Vec<SlowCommand>>,
    pub rights: Vec<Right>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Info {
    pub info: Vec<NodeInfo>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NodeInfo {
    pub node: String,
    #[serde(flatten)]
    pub totals: RedisInfo,
    pub memory_used_pct: Option<Percent>,
    pub clients_used_pct: Option<Percent>,
    pub interval: Interval,
    pub slow_log: Option<Vec<SlowCommand>>,
    pub rights: Vec<Right>,
}

/// What happened between the two looks; unknown where the server was restarted or its statistics were reset meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub ms: Millis,
    pub hits: Option<u64>,
    pub misses: Option<u64>,
    pub hit_pct: Option<f64>,
    pub evicted: Option<u64>,
    pub expired: Option<u64>,
    pub rejected: Option<u64>,
    /// Lookups of our own in it, which are taken off: looking at INFO makes none.
    pub own_lookups: u64,
}

pub fn report(
    taken_at: Timestamp,
    target: RedisTarget,
    coverage: RedisCoverage,
    looked: Vec<Looked>,
) -> RedisReport<Info> {
    let info = looked.into_iter().map(node).collect();
    RedisReport::of("info", taken_at, target, coverage, Info { info })
}

fn node(looked: Looked) -> NodeInfo {
    let (first, second) = (&looked.first, &looked.second);
    let grown = |of: fn(&RedisInfo) -> Option<u64>| of(second)?.checked_sub(of(first)?);
    let restarted = first.uptime_s > second.uptime_s;
    let interval = if restarted {
        Interval {
            ms: looked.between,
            ..Interval::default()
        }
    } else {
        let (hits, misses) = (grown(|info| info.hits), grown(|info| info.misses));
        Interval {
            ms: looked.between,
            hits,
            misses,
            hit_pct: hits
                .zip(misses)
                .and_then(|(hits, misses)| Percent::of(hits, hits + misses))
                .map(|pct| pct.0),
            evicted: grown(|info| info.evicted_keys),
            expired: grown(|info| info.expired_keys),
            rejected: grown(|info| info.rejected_connections),
            own_lookups: 0,
        }
    };
    let part = |part: Option<u64>, whole: Option<u64>| Percent::of(part?, whole?);
    NodeInfo {
        node: looked.node,
        memory_used_pct: part(second.used_memory_bytes, second.maxmemory_bytes),
        clients_used_pct: part(second.connected_clients, second.maxclients),
        interval,
        slow_log: looked.slow_log,
        rights: looked.rights,
        totals: looked.second,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(hits: u64, misses: u64, uptime: u64) -> RedisInfo {
        RedisInfo {
            hits: Some(hits),
            misses: Some(misses),
            uptime_s: Some(uptime),
            ..RedisInfo::default()
        }
    }

    fn interval(first: RedisInfo, second: RedisInfo) -> Interval {
        node(Looked {
            node: "n".into(),
            first,
            second,
            between: Millis(2000),
            slow_log: None,
            rights: Vec::new(),
        })
        .interval
    }

    #[test]
    fn what_is_between_and_never_below_zero() {
        let clean = interval(look(100, 100, 5), look(190, 110, 7));
        assert_eq!(
            (clean.hits, clean.misses, clean.hit_pct),
            (Some(90), Some(10), Some(90.0))
        );
        assert_eq!(interval(look(5, 5, 5), look(5, 5, 7)).hit_pct, None);
        let reset = interval(look(100, 1, 5), look(3, 1, 7));
        assert_eq!(
            (reset.hits, reset.misses, reset.hit_pct),
            (None, Some(0), None)
        );
        assert_eq!(interval(look(1, 1, 500), look(9, 9, 1)).hits, None);
    }
}
