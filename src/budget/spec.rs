//! The budget as it is judged: servers, what connects to them, and poolers in between.

use std::collections::BTreeMap;

use super::count::{At, Count, Source};
use super::rules::Breach;
use super::sources::{Suppression, Surge};

#[derive(Clone, Debug, Default)]
pub struct Budget {
    pub servers: Vec<Server>,
    pub workloads: Vec<Workload>,
    pub poolers: Vec<Pooler>,
    pub unknowns: Vec<Unknown>,
    pub breaches: Vec<Breach>,
    pub suppressions: Vec<Suppression>,
    /// By the clock of who asks; without it no suppression ends.
    pub today: Option<chrono::NaiveDate>,
}

/// A PostgreSQL server and what it lets in.
#[derive(Clone, Debug)]
pub struct Server {
    pub name: String,
    pub max_connections: Count,
    /// Not for applications: superusers', reserved (16+), the provider's.
    pub superuser_reserved: u64,
    pub reserved: u64,
    pub provider_reserve: u64,
    /// Each one named, in every peak.
    pub headroom: Vec<(String, u64)>,
    /// Limits of their own, by name.
    pub roles: Vec<(String, u64, At)>,
    pub databases: Vec<(String, u64, At)>,
    /// Application pools in sum at most so many percent of max_connections, in normal operation.
    pub warn_at: f64,
    /// The server whose load it takes over, and which takes its load in a failover.
    pub replica_of: Option<String>,
    /// What is said of its other settings.
    pub settings: BTreeMap<String, (String, At)>,
    /// They are a design's, which means to be complete.
    pub is_designed: bool,
    pub from: Vec<Source>,
}

impl Server {
    /// What applications can have.
    pub fn usable(&self) -> Count {
        let kept = self.superuser_reserved + self.reserved + self.provider_reserve;
        Count {
            at_least: self.max_connections.at_least.saturating_sub(kept),
            exact: self.max_connections.exact,
        }
    }

    pub fn headroom(&self) -> u64 {
        let all = self.headroom.iter().map(|(_, number)| *number);
        all.fold(0, u64::saturating_add)
    }
}

/// Something that connects: so many pods, each with so many connections.
#[derive(Clone, Debug)]
pub struct Workload {
    pub name: String,
    /// `Deployment`, `service`, `workload`, …
    pub kind: String,
    /// A server's or a pooler's name, and where that stands.
    pub target: Option<String>,
    pub target_at: Option<At>,
    /// Whom it logs in as and where, as far as it is known.
    pub role: Option<String>,
    pub database: Option<String>,
    /// Where its environment says that the database is: a host, and a port.
    pub address: Option<(String, Option<u16>)>,
    pub at: At,
    /// How the surge follows from the pods, and whether old ones are still ending.
    pub surge_rule: Surge,
    pub drains: bool,
    /// At their maximum.
    pub pods: Count,
    /// More of them while it is rolled out.
    pub surge: Count,
    /// Old ones that are still ending after that.
    pub drain: Count,
    pub processes: Count,
    /// Of one process.
    pub connections: Count,
    /// Of one pod, over all of its containers.
    pub per_pod: Count,
    pub from: Vec<Source>,
}

/// PgBouncer: so many instances, each with its pools.
#[derive(Clone, Debug)]
pub struct Pooler {
    pub name: String,
    pub target: Option<String>,
    pub target_at: Option<At>,
    pub pods: Count,
    pub surge: Count,
    /// Old ones that are still ending after that.
    pub drain: Count,
    /// Its pgbouncer.ini.
    pub file: Option<String>,
    /// Server connections of one instance at most.
    pub cap: Count,
    /// The same of each role and of each database of the server.
    pub by_role: Vec<(String, u64)>,
    pub by_database: Vec<(String, u64)>,
    /// Clients of one instance at most.
    pub max_clients: Option<u64>,
    pub from: Vec<Source>,
}

/// What isn't known, and what would settle it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    pub what: String,
    pub settle: String,
    pub at: Option<At>,
}

impl Unknown {
    /// One sentence for people, with its place.
    pub fn words(&self) -> String {
        let at = self.at.as_ref();
        let at = at.map_or(String::new(), |at| format!(" ({})", at.words()));
        format!("unknown: {}{at}; settled by: {}", self.what, self.settle)
    }
}
