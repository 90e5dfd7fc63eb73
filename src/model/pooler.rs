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
    /// On their way in.
    pub servers_login: Option<u32>,
    /// How long the first of the waiting has waited.
    pub max_wait_ms: Option<Millis>,
    /// So many server connections it may have, without the reserve (`SHOW DATABASES`).
    pub size: Option<u32>,
    /// Paused by somebody: nobody gets a server connection until RESUME.
    pub paused: Option<bool>,
    /// New clients are refused.
    pub disabled: Option<bool>,
}
