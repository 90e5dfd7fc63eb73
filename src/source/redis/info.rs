//! `INFO`, by the names that Redis 5 to 8 and Valkey give.

use std::collections::HashMap;
use std::time::Duration;

use super::connect::{RedisAddress, RedisError};
use crate::model::RedisInfo;

/// Asks once. What this login may not do (`SLOWLOG` is an administrator's) is left unknown.
///
/// # Errors
/// When the server can't be reached, or doesn't let this login ask `INFO`.
pub async fn info(address: &RedisAddress, limit: Duration) -> Result<RedisInfo, RedisError> {
    let mut connection = address.connect(limit).await?;
    let text: String = redis::cmd("INFO")
        .query_async(&mut connection)
        .await
        .map_err(|error| address.failed(&error))?;
    let slow_log: Result<u64, _> = redis::cmd("SLOWLOG")
        .arg("LEN")
        .query_async(&mut connection)
        .await;
    Ok(RedisInfo {
        slow_log_entries: slow_log.ok(),
        ..read(&text)
    })
}

fn read(text: &str) -> RedisInfo {
    let fields: HashMap<&str, &str> = text
        .lines()
        .filter_map(|line| line.trim_end().split_once(':'))
        .collect();
    let word = |name: &str| fields.get(name).map(|text| (*text).to_owned());
    let number = |name: &str| fields.get(name).and_then(|text| text.parse::<u64>().ok());
    let (hits, misses) = (number("keyspace_hits"), number("keyspace_misses"));
    let hit_pct = match (hits, misses) {
        (Some(hits), Some(misses)) if hits + misses > 0 => {
            Some((1000.0 * hits as f64 / (hits + misses) as f64).round() / 10.0)
        }
        _ => None,
    };
    // Of each database that has keys: `db0:keys=3,expires=1,avg_ttl=0`.
    let keys = fields.iter().filter_map(|(name, value)| {
        name.strip_prefix("db")?.parse::<u32>().ok()?;
        let count = value
            .split(',')
            .find_map(|part| part.strip_prefix("keys="))?;
        count.parse::<u64>().ok()
    });
    // A Valkey calls itself a Redis of the version that it can stand in for.
    let valkey = word("valkey_version");
    RedisInfo {
        product: if valkey.is_some() { "valkey" } else { "redis" }.into(),
        version: valkey.or_else(|| word("redis_version")),
        role: word("role"),
        uptime_s: number("uptime_in_seconds"),
        used_memory_bytes: number("used_memory"),
        maxmemory_bytes: number("maxmemory"),
        maxmemory_policy: word("maxmemory_policy"),
        connected_clients: number("connected_clients"),
        maxclients: number("maxclients"),
        blocked_clients: number("blocked_clients"),
        hits,
        misses,
        hit_pct,
        evicted_keys: number("evicted_keys"),
        expired_keys: number("expired_keys"),
        rejected_connections: number("rejected_connections"),
        instantaneous_ops_per_s: number("instantaneous_ops_per_sec"),
        keys: fields.contains_key("redis_version").then(|| keys.sum()),
        slow_log_entries: None,
    }
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

    #[test]
    fn an_address_is_shown_without_its_password() {
        let address = RedisAddress::parse("redis://u:hunter2@cache:6380/3").expect("an address");
        assert_eq!(address.shown(), "cache:6380, database 3");
        assert!(address.has_password());
        let bad = RedisAddress::parse("redis://u:hunter2@[")
            .map(|_| ())
            .expect_err("none");
        assert!(!bad.to_string().contains("hunter2"), "{bad}");
        assert!(RedisAddress::parse("cache").is_err());
    }
}
