//! What a Redis (or Valkey) says of itself.

use serde::{Deserialize, Serialize};

/// One look at `INFO`; what this server or login doesn't tell is unknown, never 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RedisInfo {
    /// `redis` or `valkey`.
    pub product: String,
    pub version: Option<String>,
    /// `master` or `slave`, as the server words it.
    pub role: Option<String>,
    pub uptime_s: Option<u64>,
    pub used_memory_bytes: Option<u64>,
    /// 0: without a limit.
    pub maxmemory_bytes: Option<u64>,
    pub maxmemory_policy: Option<String>,
    pub connected_clients: Option<u64>,
    pub maxclients: Option<u64>,
    pub blocked_clients: Option<u64>,
    /// Since it was started, or its statistics were reset: as are all of these counters.
    pub hits: Option<u64>,
    pub misses: Option<u64>,
    /// Of the lookups; unknown where there were none.
    pub hit_pct: Option<f64>,
    pub evicted_keys: Option<u64>,
    pub expired_keys: Option<u64>,
    pub rejected_connections: Option<u64>,
    pub instantaneous_ops_per_s: Option<u64>,
    /// Over all of its databases.
    pub keys: Option<u64>,
    /// Of a replica: `up` or `down`.
    pub primary_link: Option<String>,
    /// How long it has been down.
    pub primary_link_down_s: Option<u64>,
    /// A replica is still reading all of its primary's data.
    pub primary_sync_in_progress: Option<bool>,
    /// Of a node of a cluster: `ok` or `fail`, by itself.
    pub cluster_state: Option<String>,
    /// Entries of the slow log, where this login may ask for them.
    pub slow_log_entries: Option<u64>,
}
