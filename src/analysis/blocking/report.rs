//! The types of `pg blockers`: its JSON, which is a contract.

use std::collections::BTreeMap;

use serde::Serialize;

use super::forest;
use super::remedy::Remedy;
use super::tree::Tree;
use crate::analysis::{Lookup, Report};
use crate::model::{BackendType, LockMode, Millis, Part, Pid, SessionState, Snapshot, Timestamp};

pub const PARTS: &[Part] = &[
    Part::Server,
    Part::Activity,
    Part::Databases,
    Part::Roles,
    Part::Locks,
    Part::Blocking,
    Part::Relations,
    Part::Prepared,
];

#[derive(Clone, Debug, Serialize)]
pub struct Blockers {
    /// Those that block and aren't blocked, most freed sessions first.
    pub roots: Vec<Root>,
    pub edges: Vec<Edge>,
    pub edges_total: usize,
    /// Above 10,000 edges only each waiter's nearest blockers are listed.
    pub edges_truncated: bool,
    pub cycles: Vec<Vec<Pid>>,
    /// Distinct sessions that wait for another.
    pub blocked: usize,
    pub longest_wait_ms: Option<Millis>,
    /// An upper bound of it, also where it isn't known.
    #[serde(skip)]
    pub wait_at_most: Option<Millis>,
    /// For the screen: bounded, one tree a root, in the order of `roots`.
    #[serde(skip)]
    pub trees: Vec<Tree>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RootKind {
    Session,
    Prepared,
    Cycle,
    Startup,
}

#[derive(Clone, Debug, Serialize)]
pub struct Root {
    /// `null` for a prepared transaction and a cycle.
    pub pid: Option<Pid>,
    pub backend_start: Option<Timestamp>,
    pub backend_type: Option<BackendType>,
    pub xact_start: Option<Timestamp>,
    pub database: Option<String>,
    pub client_addr: Option<String>,
    pub wait_event_type: Option<String>,
    pub wait_event: Option<String>,
    pub gid: Option<String>,
    pub kind: RootKind,
    pub state: Option<SessionState>,
    pub user: Option<String>,
    pub application_name: Option<String>,
    pub xact_age_ms: Option<Millis>,
    pub state_age_ms: Option<Millis>,
    pub query: Option<String>,
    pub query_truncated: bool,
    pub hidden: bool,
    pub blocked_direct: usize,
    pub blocked_total: usize,
    /// Of `blocked_total`, those under no other root: what ending this one frees.
    /// `null` where others may hold the same rows.
    pub freed: Option<usize>,
    /// The sessions of a cycle; empty for any other root.
    pub members: Vec<Pid>,
    /// It holds rows in a mode that others may hold at the same time, of whom the server names only one at a time.
    pub shared_rows: bool,
    pub longest_wait_ms: Option<Millis>,
    pub remedy: Remedy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// `pg_blocking_pids`
    Server,
    /// From the rows of `pg_locks` and the order of waiting.
    Derived,
}

#[derive(Clone, Debug, Serialize)]
pub struct Edge {
    pub waiter: Pid,
    /// `null` for a prepared transaction.
    pub blocker: Option<Pid>,
    pub gid: Option<String>,
    /// The blocker doesn't hold the lock: it stands ahead in the queue and wants a conflicting mode.
    pub soft: bool,
    pub source: Source,
    pub lock: Option<EdgeLock>,
    pub wait_ms: Option<Millis>,
}

#[derive(Clone, Debug, Serialize)]
pub struct EdgeLock {
    pub locktype: String,
    pub mode: LockMode,
    /// `schema.name`, or `database:oid` for another database's.
    pub relation: Option<String>,
    /// `null` for what all databases share.
    pub database: Option<String>,
}

/// How many wait behind each of these sessions; one that isn't there blocks nobody.
pub fn behind(snapshot: &Snapshot, pids: &[Pid]) -> BTreeMap<Pid, usize> {
    forest::behind(&Lookup::new(snapshot), pids)
}

/// The whole forest, most freed sessions first.
pub fn report(snapshot: &Snapshot) -> Report<Blockers> {
    let lookup = Lookup::new(snapshot);
    Report::new("blockers", snapshot, PARTS, forest::build(&lookup))
}
