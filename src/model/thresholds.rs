//! From where on something is worth a word. Defaults are the field's practice; `stanch.yaml` and flags override them.

use crate::model::{Millis, Percent};

/// Limits that `triage` judges by.
#[derive(Clone, Debug, PartialEq)]
pub struct Thresholds {
    /// Used slots, of the usable ones.
    pub connections_warning: Percent,
    pub connections_critical: Percent,
    /// Application pools in sum, of `max_connections`.
    pub pools: Percent,
    /// More sessions idle in transaction than this.
    pub idle_in_transaction: usize,
    /// A session idle in transaction counts from this age of its state.
    pub idle_in_transaction_age: Millis,
    /// A transaction is long from this age.
    pub transaction_age: Millis,
    /// A lock wait counts from this age; `None`: the server's own `deadlock_timeout`.
    pub lock_wait: Option<Millis>,
    /// A lock chain is critical from this many blocked sessions or this long a wait.
    pub blocked_critical: usize,
    pub lock_wait_critical: Millis,
    /// The same statement running in this many sessions at once.
    pub storm_sessions: usize,
    /// … each for at least so long.
    pub storm_age: Millis,
    /// Clients that have waited so long for a server connection of the pooler.
    pub pool_wait: Millis,
    pub pool_wait_critical: Millis,
    /// Transactions behind which an xmin horizon is worth a word, and is critical.
    pub horizon_warning: u32,
    pub horizon_critical: u32,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            connections_warning: Percent(85.0),
            connections_critical: Percent(92.0),
            pools: Percent(80.0),
            idle_in_transaction: 10,
            idle_in_transaction_age: Millis::from_secs(10),
            transaction_age: Millis::from_secs(30),
            lock_wait: None,
            blocked_critical: 10,
            lock_wait_critical: Millis::from_secs(30),
            storm_sessions: 10,
            storm_age: Millis(500),
            pool_wait: Millis::from_secs(1),
            pool_wait_critical: Millis::from_secs(10),
            horizon_warning: 10_000_000,
            horizon_critical: 150_000_000,
        }
    }
}
