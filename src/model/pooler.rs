//! What PgBouncer's admin console tells: who waits for a server connection, and what the pooler has open.

use serde::{Deserialize, Serialize};

use super::Millis;

/// One pooler, at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pooler {
    pub host: String,
    pub port: u16,
    /// As `SHOW VERSION` has it: `PgBouncer 1.18.0`.
    pub version: Option<String>,
    /// All of it is paused (`SHOW STATE`).
    #[serde(default)]
    pub paused: Option<bool>,
    /// Without the console's own.
    pub pools: Vec<Pool>,
}

/// The pool of one database and one login (`SHOW POOLS`); what a version doesn't tell is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// By the pooler's name for it.
    pub database: String,
    pub user: String,
    /// `session`, `transaction`, `statement`.
    pub mode: Option<String>,
    pub clients_active: Option<u32>,
    /// Clients that have sent something and have no server connection yet.
    pub clients_waiting: Option<u32>,
    pub servers_active: Option<u32>,
    /// Open, and at nobody's service.
    pub servers_idle: Option<u32>,
    /// Just given back: to be tested before anybody gets them.
    #[serde(default)]
    pub servers_used: Option<u32>,
    /// Being reset or tested.
    #[serde(default)]
    pub servers_tested: Option<u32>,
    /// On their way in.
    pub servers_login: Option<u32>,
    /// How long the first of the waiting has waited; unknown for who hasn't been let in yet.
    pub max_wait_ms: Option<Millis>,
    /// So many server connections it may have, without the reserve (`SHOW DATABASES`).
    pub size: Option<u32>,
    /// Server connections of all pools of the database, where they have a limit (`max_db_connections`).
    #[serde(default)]
    pub database_limit: Option<u32>,
    /// So many of them there are.
    #[serde(default)]
    pub database_open: Option<u32>,
    /// Paused by somebody: nobody gets a server connection until RESUME.
    pub paused: Option<bool>,
    /// New clients are refused.
    pub disabled: Option<bool>,
}

impl Pooler {
    /// The longest that anybody has waited, as far as it is told, and how many wait.
    pub fn queue(&self) -> (Millis, u32) {
        let waiting = || {
            self.pools
                .iter()
                .filter(|pool| pool.clients_waiting > Some(0))
        };
        let longest = waiting().filter_map(|pool| pool.max_wait_ms).max();
        (
            longest.unwrap_or_default(),
            waiting().filter_map(|pool| pool.clients_waiting).sum(),
        )
    }
}

impl Pool {
    /// Server connections of any state, also those on their way in.
    pub fn servers_open(&self) -> Option<u32> {
        let told = [self.servers_active, self.servers_idle, self.servers_login];
        let told: u32 = told.into_iter().sum::<Option<u32>>()?;
        Some(told + self.servers_used.unwrap_or(0) + self.servers_tested.unwrap_or(0))
    }

    /// Clients wait while there is nothing that could serve them; for how long the pooler doesn't tell.
    pub fn waits_for_nothing(&self) -> bool {
        self.clients_waiting.unwrap_or(0) > 0
            && self.max_wait_ms.unwrap_or_default() == Millis(0)
            && self.servers_open() == Some(0)
    }
}
