//! Names of what triage can find. The ids are a contract; their texts stand in `analysis::catalog`.

use serde::{Deserialize, Serialize, Serializer};

/// How bad a finding is; the order is the order of exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Info,
    Warning,
    Critical,
}

impl Severity {
    pub fn word(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// The four causes of connection exhaustion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pattern {
    /// Pools too large in sum.
    A,
    /// Leaked connections.
    B,
    /// Long transactions.
    C,
    /// Timeouts that don't fit.
    D,
}

impl Pattern {
    pub fn meaning(self) -> &'static str {
        match self {
            Self::A => "A: pools too large in sum",
            Self::B => "B: leaked connections",
            Self::C => "C: long transactions",
            Self::D => "D: timeouts that don't fit",
        }
    }
}

macro_rules! finding_ids {
    ($($variant:ident = $name:literal),+ $(,)?) => {
        /// A stable name, `area.what`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FindingId { $($variant),+ }

        impl FindingId {
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    };
}

finding_ids! {
    ConnExhausted = "conn.exhausted",
    ConnNearLimit = "conn.near_limit",
    ConnOwnLimit = "conn.own_limit",
    ConnLeak = "conn.leak",
    ConnOversizedPools = "conn.oversized_pools",
    ConnUnaccounted = "conn.unaccounted",
    ConnChurn = "conn.churn",
    PoolWaiting = "pool.waiting",
    WaitDominant = "wait.dominant",
    TxLong = "tx.long",
    TxIdleInTransaction = "tx.idle_in_transaction",
    LockChain = "lock.chain",
    LockQueueBehindDdl = "lock.queue_behind_ddl",
    LockPreparedRoot = "lock.prepared_root",
    LockCycle = "lock.cycle",
    LockDeadlocks = "lock.deadlocks",
    QueryStorm = "query.storm",
    HorizonHeld = "horizon.held",
    RedisClusterDown = "redis.cluster_down",
    RedisNearLimit = "redis.near_limit",
    RedisExpiryCliff = "redis.expiry_cliff",
    RedisLockTtl = "redis.lock_ttl",
    RedisHotKey = "redis.hot_key",
    QueueBacklog = "queue.backlog",
    QueueDeadLetters = "queue.dead_letters",
    SettingsNoIdleTxTimeout = "settings.no_idle_tx_timeout",
    SettingsNoStatementTimeout = "settings.no_statement_timeout",
    SettingsLogLockWaitsOff = "settings.log_lock_waits_off",
}

impl FindingId {
    /// Found in a Redis, not in a snapshot of PostgreSQL.
    pub fn is_of_redis(self) -> bool {
        let name = self.name();
        name.starts_with("redis.") || name.starts_with("queue.")
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|id| id.name() == name)
    }
}

impl std::fmt::Display for FindingId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for FindingId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
