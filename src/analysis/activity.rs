//! `pg activity`: who is connected and what runs, oldest transaction first.

use std::cmp::Ordering;

use serde::Serialize;

use super::Report;
use crate::model::{
    BackendType, Millis, Part, Pid, Session, SessionState, Snapshot, Timestamp, WaitEvent,
};

pub const PARTS: &[Part] = &[Part::Server, Part::Activity, Part::Databases, Part::Roles];

/// Which sessions are asked for; an empty list asks for all.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub states: Vec<SessionState>,
    pub users: Vec<String>,
    pub applications: Vec<String>,
    pub databases: Vec<String>,
    /// At least so long in its transaction, or where it has none in its state.
    pub longer_than: Option<Millis>,
    /// Background processes too.
    pub all: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct Activity {
    pub sessions: Vec<SessionRow>,
    /// Sessions that the filters left out (background processes not counted).
    pub filtered_out: usize,
    /// Of these, hidden ones of which the filter can't know whether they match.
    pub filter_unknown: usize,
}

#[derive(Clone, Debug, Serialize)]
pub struct SessionRow {
    pub pid: Pid,
    pub backend_start: Option<Timestamp>,
    pub leader_pid: Option<Pid>,
    pub database: Option<String>,
    pub user: Option<String>,
    pub application_name: Option<String>,
    pub client_addr: Option<String>,
    pub client_port: Option<i32>,
    pub backend_type: Option<BackendType>,
    pub state: Option<SessionState>,
    pub hidden: bool,
    pub wait_event_type: Option<String>,
    pub wait_event: Option<String>,
    pub xact_start: Option<Timestamp>,
    pub xact_age_ms: Option<Millis>,
    pub query_age_ms: Option<Millis>,
    pub state_age_ms: Option<Millis>,
    pub query: Option<String>,
    pub query_truncated: bool,
}

/// Ordered by transaction start (none last), then query start.
pub fn report(snapshot: &Snapshot, filter: &Filter) -> Report<Activity> {
    let now = snapshot.taken_at;
    let candidates = snapshot
        .activity
        .rows()
        .iter()
        .filter(|s| filter.all || !s.is_background());
    let (mut kept, left): (Vec<&Session>, Vec<&Session>) =
        candidates.partition(|s| filter.keeps(s, now));
    kept.sort_by(|a, b| {
        none_last(a.xact_start, b.xact_start)
            .then(none_last(a.query_start, b.query_start))
            .then(a.pid().cmp(&b.pid()))
    });
    let filter_unknown = left
        .iter()
        .filter(|s| s.hidden && filter.asks_for_hidden())
        .count();
    let sessions = kept.into_iter().map(|s| SessionRow::of(s, now)).collect();
    Report::new(
        "activity",
        snapshot,
        PARTS,
        Activity {
            sessions,
            filtered_out: left.len(),
            filter_unknown,
        },
    )
}

fn none_last(a: Option<Timestamp>, b: Option<Timestamp>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => a.cmp(&b),
        (a, b) => b.is_some().cmp(&a.is_some()),
    }
}

impl Filter {
    /// State and ages are what a hidden session doesn't show.
    fn asks_for_hidden(&self) -> bool {
        !self.states.is_empty() || self.longer_than.is_some()
    }

    fn keeps(&self, session: &Session, now: Timestamp) -> bool {
        fn listed(list: &[String], value: Option<&String>) -> bool {
            list.is_empty() || value.is_some_and(|v| list.contains(v))
        }
        let state = self.states.is_empty()
            || session
                .state
                .as_ref()
                .is_some_and(|s| self.states.contains(s));
        let age = self.longer_than.is_none_or(|least| {
            session
                .xact_age(now)
                .or(session.state_age(now))
                .is_some_and(|age| age >= least)
        });
        state
            && age
            && listed(&self.users, session.user.as_ref())
            && listed(&self.applications, session.application_name.as_ref())
            && listed(&self.databases, session.database.as_ref())
    }
}

impl SessionRow {
    fn of(s: &Session, now: Timestamp) -> Self {
        let (wait_event_type, wait_event) = match &s.wait {
            Some(WaitEvent { class, event }) => (Some(class.clone()), Some(event.clone())),
            None => (None, None),
        };
        Self {
            pid: s.pid(),
            backend_start: s.id.backend_start,
            leader_pid: s.leader_pid,
            database: s.database.clone(),
            user: s.user.clone(),
            application_name: s.application_name.clone(),
            client_addr: s.client.addr.clone(),
            client_port: s.client.port,
            backend_type: s.backend_type.clone(),
            state: s.state.clone(),
            hidden: s.hidden,
            wait_event_type,
            wait_event,
            xact_start: s.xact_start,
            xact_age_ms: s.xact_age(now),
            query_age_ms: s.query_age(now),
            state_age_ms: s.state_age(now),
            query: s.query.clone(),
            query_truncated: s.query_truncated,
        }
    }
}
