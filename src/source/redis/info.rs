//! `INFO`, by the names that Redis 5 to 8 and Valkey give.

use std::collections::HashMap;

use super::address::RedisAddress;
use super::error::RedisError;
use super::fleet::{Limits, Node, open};
use super::state::ClusterState;
use super::value;
use crate::model::{RedisInfo, RedisRole};

/// Asks once. What this login may not do (`SLOWLOG` is an administrator's) is left unknown.
///
/// # Errors
/// When the server can't be reached, or doesn't let this login ask `INFO`.
pub async fn info(address: &RedisAddress, limits: Limits) -> Result<RedisInfo, RedisError> {
    let mut fleet = open(address, None, limits).await?;
    let Some(node) = fleet.nodes.first_mut() else {
        return Ok(RedisInfo::default());
    };
    node_info(node)
        .await
        .map_err(|refused| refused.at(address.shown()))
}

/// `INFO` and the length of the slow log of one node.
///
/// # Errors
/// What `INFO` is refused for.
pub async fn node_info(node: &mut Node) -> Result<RedisInfo, super::error::Refused> {
    let text = value::text(&node.say("INFO").await?).unwrap_or_default();
    let slow_log = node.say("SLOWLOG LEN").await;
    let told = read(&text);
    let is_clustered = Facts::read(&text).number("cluster_enabled") == Some(1);
    let cluster_state = if is_clustered {
        ClusterState::of(node).await.state
    } else {
        None
    };
    Ok(RedisInfo {
        cluster_state,
        slow_log_entries: slow_log.ok().and_then(|len| value::uint(&len)),
        ..told
    })
}

/// The fields of `INFO` by name.
#[derive(Clone, Debug, Default)]
pub struct Facts(HashMap<String, String>);

impl Facts {
    pub fn read(text: &str) -> Self {
        let pairs = text
            .lines()
            .filter_map(|line| line.trim_end().split_once(':'));
        Self(
            pairs
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        )
    }

    pub fn word(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned()
    }

    pub fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name)?.parse().ok()
    }

    /// A Valkey calls itself a Redis of the version that it can stand in for.
    pub fn product(&self) -> String {
        let valkey = self.0.contains_key("valkey_version")
            || self
                .0
                .get("server_name")
                .is_some_and(|name| name == "valkey");
        if valkey { "valkey" } else { "redis" }.into()
    }

    pub fn version(&self) -> Option<String> {
        self.word("valkey_version")
            .or_else(|| self.word("redis_version"))
    }

    pub fn role(&self) -> Option<RedisRole> {
        match self.0.get("role")?.as_str() {
            "master" => Some(RedisRole::Primary),
            "slave" => Some(RedisRole::Replica),
            _ => None,
        }
    }

    /// Keys of all of its databases: `db0:keys=3,expires=1,avg_ttl=0`.
    fn keys(&self) -> u64 {
        let counts = self.0.iter().filter_map(|(name, value)| {
            name.strip_prefix("db")?.parse::<u32>().ok()?;
            let count = value
                .split(',')
                .find_map(|part| part.strip_prefix("keys="))?;
            count.parse::<u64>().ok()
        });
        counts.sum()
    }
}

fn read(text: &str) -> RedisInfo {
    let facts = Facts::read(text);
    let number = |name: &str| facts.number(name);
    let (hits, misses) = (number("keyspace_hits"), number("keyspace_misses"));
    RedisInfo {
        product: facts.product(),
        version: facts.version(),
        role: facts.word("role"),
        uptime_s: number("uptime_in_seconds"),
        used_memory_bytes: number("used_memory"),
        maxmemory_bytes: number("maxmemory"),
        maxmemory_policy: facts.word("maxmemory_policy"),
        connected_clients: number("connected_clients"),
        maxclients: number("maxclients"),
        blocked_clients: number("blocked_clients"),
        hits,
        misses,
        hit_pct: hits
            .zip(misses)
            .and_then(|(hits, misses)| hit_pct(hits, misses)),
        evicted_keys: number("evicted_keys"),
        expired_keys: number("expired_keys"),
        rejected_connections: number("rejected_connections"),
        instantaneous_ops_per_s: number("instantaneous_ops_per_sec"),
        keys: facts.word("redis_version").is_some().then(|| facts.keys()),
        primary_link: facts.word("master_link_status"),
        primary_link_down_s: number("master_link_down_since_seconds"),
        primary_sync_in_progress: number("master_sync_in_progress").map(|is| is == 1),
        cluster_state: None,
        slow_log_entries: None,
    }
}

/// To a tenth of a percent; unknown where there were no lookups.
pub fn hit_pct(hits: u64, misses: u64) -> Option<f64> {
    crate::model::Percent::of(hits, hits + misses).map(|pct| pct.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_isnt_told_is_unknown() {
        let read = read(
            "# Server\r\nredis_version:7.2.4\r\nvalkey_version:8.0.1\r\nkeyspace_hits:3\r\nkeyspace_misses:1\r\ndb0:keys=5,expires=0,avg_ttl=0\r\ndb11:keys=2,expires=0\r\n",
        );
        assert_eq!(
            (read.product.as_str(), read.version.as_deref()),
            ("valkey", Some("8.0.1"))
        );
        assert_eq!(
            (read.hit_pct, read.keys, read.maxclients),
            (Some(75.0), Some(7), None)
        );
        let silent = super::read("");
        assert_eq!((silent.hit_pct, silent.keys), (None, None));
        let idle = super::read("keyspace_hits:0\r\nkeyspace_misses:0\r\n");
        assert_eq!(idle.hit_pct, None);
    }
}
