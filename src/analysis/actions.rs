//! `pg cancel`, `pg terminate`: what was chosen, what was done, and how the server is before and after.

use serde::Serialize;

use super::connections::Capacity;
use crate::model::{Done, Millis, Part, Pid, SessionState, Timestamp, Verb};

pub const PARTS: &[Part] = &Part::ALL;

#[derive(Clone, Debug, Serialize)]
pub struct Actions {
    pub action: Verb,
    /// Only shown: nothing was sent.
    pub dry_run: bool,
    pub candidates: Vec<CandidateRow>,
    pub outcomes: Vec<OutcomeRow>,
    /// Why nothing, or not all, was done.
    pub stopped: Option<String>,
    pub before: After,
    pub after: Option<After>,
    /// The file with every step of it.
    pub journal: Option<String>,
    pub notes: Vec<String>,
}

/// How full, and how many blocked.
#[derive(Clone, Debug, Serialize)]
pub struct After {
    pub capacity: Option<Capacity>,
    pub blocked_total: Option<usize>,
}

/// A session that was chosen, with what hangs on it.
#[derive(Clone, Debug, Serialize)]
pub struct CandidateRow {
    pub pid: Pid,
    pub backend_start: Option<Timestamp>,
    pub user: Option<String>,
    pub database: Option<String>,
    pub application_name: Option<String>,
    pub state: Option<SessionState>,
    pub state_age_ms: Option<Millis>,
    pub xact_start: Option<Timestamp>,
    pub xact_age_ms: Option<Millis>,
    pub xid_assigned: bool,
    /// Sessions that wait behind it.
    pub blocks: usize,
    pub lost: String,
    /// What the blocking forest names instead of this root.
    pub instead: Option<String>,
    pub query: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct OutcomeRow {
    pub pid: Pid,
    pub backend_start: Option<Timestamp>,
    pub action: Verb,
    pub outcome: &'static str,
    pub reason: Option<String>,
    pub waited_ms: Millis,
}

impl From<&Done> for OutcomeRow {
    fn from(done: &Done) -> Self {
        Self {
            pid: done.id.pid,
            backend_start: done.id.backend_start,
            action: done.verb,
            outcome: done.outcome.word(),
            reason: done.outcome.reason().map(str::to_owned),
            waited_ms: done.waited,
        }
    }
}
