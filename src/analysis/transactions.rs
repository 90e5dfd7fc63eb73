//! `pg transactions`: what is open, oldest first, with what it holds back.

use serde::Serialize;

use super::Report;
use crate::model::{Millis, Part, Pid, Session, SessionState, Snapshot, Timestamp, Xid};

pub const PARTS: &[Part] = &[
    Part::Server,
    Part::Activity,
    Part::Databases,
    Part::Roles,
    Part::Prepared,
];

#[derive(Clone, Debug, Serialize)]
pub struct Transactions {
    pub transactions: Vec<Transaction>,
    pub prepared: Vec<Prepared>,
    /// Open ones that are younger than what was asked for.
    pub younger: usize,
}

/// An open transaction; of a hidden session only its ids are known.
#[derive(Clone, Debug, Serialize)]
pub struct Transaction {
    pub pid: Pid,
    pub backend_start: Option<Timestamp>,
    pub xact_start: Option<Timestamp>,
    pub database: Option<String>,
    pub age_ms: Option<Millis>,
    pub state: Option<SessionState>,
    pub state_age_ms: Option<Millis>,
    /// It has written: ending it rolls something back.
    pub xid_assigned: bool,
    pub xid: Option<Xid>,
    /// It keeps VACUUM from removing what died since.
    pub holds_xmin: bool,
    pub xmin: Option<Xid>,
    /// In transactions.
    pub xmin_age: Option<i32>,
    pub user: Option<String>,
    pub application_name: Option<String>,
    pub hidden: bool,
    pub query: Option<String>,
    pub query_truncated: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct Prepared {
    pub gid: String,
    pub prepared: Timestamp,
    pub age_ms: Millis,
    pub owner: Option<String>,
    pub database: Option<String>,
    pub xid: Xid,
}

/// Oldest first; transactions of unknown age last. `at_least` leaves out younger ones, never those of unknown age.
pub fn report(snapshot: &Snapshot, at_least: Option<Millis>) -> Report<Transactions> {
    let now = snapshot.taken_at;
    let old_enough =
        |age: Option<Millis>| at_least.is_none_or(|least| age.is_none_or(|age| age >= least));
    let all_open = || {
        snapshot
            .activity
            .rows()
            .iter()
            .filter(|s| !s.is_background() && is_open(s))
    };
    let younger = all_open().filter(|s| !old_enough(s.xact_age(now))).count();
    let mut open: Vec<&Session> = all_open().filter(|s| old_enough(s.xact_age(now))).collect();
    open.sort_by_key(|s| (s.xact_start.is_none(), s.xact_start, s.pid()));
    let transactions = open.into_iter().map(|s| Transaction::of(s, now)).collect();
    let mut prepared: Vec<Prepared> = snapshot
        .prepared
        .rows()
        .iter()
        .map(|p| Prepared {
            gid: p.gid.clone(),
            prepared: p.prepared,
            age_ms: p.prepared.age_at(now),
            owner: p.owner.clone(),
            database: p.database.clone(),
            xid: p.xid,
        })
        .filter(|p| old_enough(Some(p.age_ms)))
        .collect();
    prepared.sort_by_key(|p| p.prepared);
    Report::new(
        "transactions",
        snapshot,
        PARTS,
        Transactions {
            transactions,
            prepared,
            younger,
        },
    )
}

/// A hidden session shows that it is in a transaction only by an id of it, and one that has failed
/// has no start any more (PostgreSQL 12 to 18 report none once a transaction is aborted).
fn is_open(session: &Session) -> bool {
    session.xact_start.is_some()
        || session.is_idle_in_transaction()
        || session.backend_xid.is_some()
        || session.backend_xmin.is_some()
}

impl Transaction {
    fn of(s: &Session, now: Timestamp) -> Self {
        Self {
            pid: s.pid(),
            backend_start: s.id.backend_start,
            xact_start: s.xact_start,
            database: s.database.clone(),
            age_ms: s.xact_age(now),
            state: s.state.clone(),
            state_age_ms: s.state_age(now),
            xid_assigned: s.backend_xid.is_some(),
            xid: s.backend_xid,
            holds_xmin: s.backend_xmin.is_some() || s.backend_xid.is_some(),
            xmin: s.backend_xmin,
            xmin_age: s.xmin_age.max(s.xid_age),
            user: s.user.clone(),
            application_name: s.application_name.clone(),
            hidden: s.hidden,
            query: s.query.clone(),
            query_truncated: s.query_truncated,
        }
    }
}
