//! `pg cancel`, `pg terminate`: what was chosen, what was done, and how the server is before and after.

use serde::Serialize;

use super::blocking;
use super::connections::{self, Capacity};
use crate::model::{
    Done, Millis, Outcome, Part, Pid, PreparedXact, SessionState, Snapshot, Timestamp,
};

pub const PARTS: &[Part] = &Part::ALL;

#[derive(Clone, Debug, Serialize)]
pub struct Actions {
    /// cancel, terminate, rollback_prepared
    pub action: &'static str,
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
    /// `null` for a prepared transaction.
    pub pid: Option<Pid>,
    pub backend_start: Option<Timestamp>,
    pub gid: Option<String>,
    pub action: &'static str,
    pub outcome: &'static str,
    pub reason: Option<String>,
    pub waited_ms: Millis,
}

impl From<&Done> for OutcomeRow {
    fn from(done: &Done) -> Self {
        Self {
            pid: Some(done.id.pid),
            backend_start: done.id.backend_start,
            gid: None,
            action: done.verb.word(),
            outcome: done.outcome.word(),
            reason: done.outcome.reason().map(str::to_owned),
            waited_ms: done.waited,
        }
    }
}

impl After {
    /// As the server is in this snapshot.
    pub fn of(snapshot: &Snapshot) -> Self {
        Self {
            capacity: connections::capacity(snapshot),
            blocked_total: snapshot
                .locks
                .get()
                .map(|_| blocking::report(snapshot).data.blocked),
        }
    }
}

impl Actions {
    /// Of one prepared transaction; without an outcome it was only shown.
    pub fn of_prepared(
        xact: &PreparedXact,
        outcome: Option<&Outcome>,
        stopped: Option<String>,
        journal: Option<String>,
        question: &str,
        snapshot: &Snapshot,
    ) -> Self {
        let row = outcome.map(|outcome| OutcomeRow {
            pid: None,
            backend_start: None,
            gid: Some(xact.gid.clone()),
            action: "rollback_prepared",
            outcome: outcome.word(),
            reason: outcome.reason().map(str::to_owned),
            waited_ms: Millis(0),
        });
        Self {
            action: "rollback_prepared",
            dry_run: outcome.is_none() && stopped.is_none(),
            candidates: Vec::new(),
            outcomes: row.into_iter().collect(),
            stopped,
            before: After::of(snapshot),
            after: None,
            journal,
            notes: vec![question.to_owned()],
        }
    }
}
