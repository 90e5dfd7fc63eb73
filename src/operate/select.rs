//! Which sessions somebody means: by pid, by what they do, or as roots of the blocking forest; each with what is lost.

use std::collections::BTreeMap;

use crate::action::{Candidate, Choice};
use crate::analysis::blocking::{self, Action, RootKind};
use crate::analysis::connections;
use crate::model::{Millis, Pid, Session, Snapshot, Timestamp, Verb};

/// What the person asked for.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    pub pids: Vec<i32>,
    pub idle_in_transaction: bool,
    /// Whose statement runs for `longer_than`.
    pub active: bool,
    /// Whose transaction is open for `longer_than`.
    pub transaction: bool,
    pub roots: bool,
    pub longer_than: Option<Millis>,
    /// Of these only sessions of these logins, applications, pids; empty: whichever.
    pub users: Vec<String>,
    pub applications: Vec<String>,
    pub only_pids: Vec<i32>,
}

/// A candidate with what hangs on it.
#[derive(Clone, Debug)]
pub struct Chosen {
    pub candidate: Candidate,
    pub xact_age: Option<Millis>,
    pub state_age: Option<Millis>,
    pub xid_assigned: bool,
    /// Sessions that wait behind it, directly or not.
    pub blocks: usize,
    /// What ends with it, in words.
    pub lost: String,
    /// What the forest would do instead.
    pub instead: Option<String>,
}

/// The candidates of a snapshot, oldest transaction first; and words about what isn't among them.
pub fn choose(
    snapshot: &Snapshot,
    selection: &Selection,
    verb: Verb,
) -> (Vec<Chosen>, Vec<String>) {
    let forest = blocking::report(snapshot).data;
    let mut notes = Vec::new();
    let mut instead: BTreeMap<Pid, String> = BTreeMap::new();
    for root in &forest.roots {
        let Some(pid) = root.pid else { continue };
        if root.remedy.pid.is_some_and(|other| other != pid) {
            instead.insert(pid, root.remedy.why.clone());
        }
    }
    let sessions: Vec<&Session> = snapshot.activity.rows().iter().collect();
    let mut chosen: Vec<(&Session, Choice)> = Vec::new();
    for pid in &selection.pids {
        // One that isn't there has an outcome of its own.
        let session = sessions.iter().find(|s| s.pid() == Pid(*pid));
        chosen.extend(session.map(|session| (*session, Choice::Pid)));
    }
    if selection.roots {
        for root in &forest.roots {
            match (root.kind, root.pid) {
                (RootKind::Session, Some(pid)) => {
                    let session = sessions.iter().find(|s| s.pid() == pid);
                    chosen.extend(session.map(|session| (*session, Choice::Transaction)));
                }
                (RootKind::Prepared, _) => notes.push(format!(
                    "a root is the prepared transaction {}: never part of a batch; ask the coordinator, then \
                     COMMIT PREPARED or stanch pg rollback-prepared",
                    root.gid.as_deref().unwrap_or("?")
                )),
                (RootKind::Cycle, _) => {
                    notes.push("a root is a circle: name the one of it that is to end by its pid".into());
                }
                _ => notes.push("a root is WAL replay: it is never signalled".into()),
            }
        }
    }
    if selection.idle_in_transaction {
        let idle = connections::clients(snapshot).filter(|s| s.is_idle_in_transaction());
        chosen.extend(idle.map(|session| (session, Choice::IdleTransaction)));
    }
    if selection.active || selection.transaction {
        let clients = connections::clients(snapshot)
            .filter(|s| s.xact_start.is_some() && (selection.transaction || s.is_active()));
        let (by_nature, others): (Vec<_>, Vec<_>) = clients.partition(|s| s.is_long_by_nature());
        chosen.extend(others.into_iter().map(|s| (s, Choice::Transaction)));
        if !by_nature.is_empty() {
            let names: Vec<String> = by_nature.iter().map(|s| s.pid().to_string()).collect();
            let names = names.join(", ");
            notes.push(format!(
                "left alone: {names}: a dump or a backup, which is long by nature (by its pid only)"
            ));
        }
    }
    let now = snapshot.taken_at;
    let action = match verb {
        Verb::Cancel => Action::Cancel,
        Verb::Terminate => Action::Terminate,
    };
    chosen.retain(|(session, choice)| *choice == Choice::Pid || fits(session, selection, now));
    let mut seen = std::collections::BTreeSet::new();
    chosen.retain(|(session, _)| seen.insert(session.pid()));
    let pids: Vec<Pid> = chosen.iter().map(|(session, _)| session.pid()).collect();
    let blocks = blocking::behind(snapshot, &pids);
    let mut all: Vec<Chosen> = chosen
        .into_iter()
        .map(|(session, choice)| {
            let blocks = blocks.get(&session.pid()).copied().unwrap_or(0);
            Chosen {
                xact_age: session.xact_age(now),
                state_age: session.state_age(now),
                xid_assigned: session.backend_xid.is_some(),
                blocks,
                lost: blocking::lost(session, action, now),
                instead: instead.get(&session.pid()).cloned(),
                candidate: Candidate {
                    session: session.clone(),
                    choice,
                },
            }
        })
        .collect();
    all.sort_by_key(|c| std::cmp::Reverse(c.xact_age));
    (all, notes)
}

fn fits(session: &Session, selection: &Selection, now: Timestamp) -> bool {
    let one_of = |list: &[String], name: Option<&String>| {
        list.is_empty() || name.is_some_and(|name| list.contains(name))
    };
    let age = match selection {
        Selection {
            transaction: true, ..
        } => session.xact_age(now),
        Selection { active: true, .. } => session.query_age(now),
        _ => session.state_age(now),
    };
    let old = selection
        .longer_than
        .is_none_or(|least| age.is_some_and(|age| age >= least));
    let pid = selection.only_pids.is_empty() || selection.only_pids.contains(&session.pid().0);
    old && pid
        && one_of(&selection.users, session.user.as_ref())
        && one_of(&selection.applications, session.application_name.as_ref())
}
