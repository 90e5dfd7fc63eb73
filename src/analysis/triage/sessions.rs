//! Findings about what sessions do: long and forgotten transactions, storms, a common wait, the xmin horizon.

use std::collections::BTreeMap;

use super::judge::{Judge, count};
use crate::analysis::{connections, horizon};
use crate::model::{FindingId, Millis, Session, Severity, Snapshot};
use crate::sql;

/// Wait events of these types are worth a word of their own; locks have findings, timeouts are sleeps.
const WAIT_CLASSES: [&str; 5] = ["IO", "LWLock", "IPC", "Client", "BufferPin"];
const WAIT_LEAST: usize = 5;
const STORM_CRITICAL: usize = 50;
/// Applications whose transactions are long by nature.
const LONG_BY_NATURE: [&str; 3] = ["pg_dump", "pg_dumpall", "pg_basebackup"];

pub(super) fn judge(judge: &mut Judge<'_>) {
    idle_in_transaction(judge);
    long_transactions(judge);
    storm(judge);
    dominant_wait(judge);
    held_horizon(judge);
}

fn idle_in_transaction(judge: &mut Judge<'_>) {
    let now = judge.snapshot.taken_at;
    let least = judge.thresholds.idle_in_transaction_age;
    let idle: Vec<&Session> = connections::clients(judge.snapshot)
        .filter(|s| s.is_idle_in_transaction() && s.state_age(now).is_some_and(|age| age >= least))
        .collect();
    if idle.len() <= judge.thresholds.idle_in_transaction {
        return;
    }
    let mut last: BTreeMap<String, usize> = BTreeMap::new();
    for query in idle.iter().filter_map(|s| s.query.as_deref()) {
        *last.entry(sql::fingerprint(query)).or_default() += 1;
    }
    let mut evidence = Vec::new();
    if let Some(oldest) = idle.iter().max_by_key(|s| s.state_age(now)) {
        evidence.push(format!(
            "the longest: pid {}, idle for {}, transaction of {}",
            oldest.pid(),
            oldest.state_age(now).unwrap_or_default(),
            oldest.xact_age(now).unwrap_or_default()
        ));
    }
    if let Some((statement, times)) = last.into_iter().max_by_key(|(_, times)| *times) {
        evidence.push(format!(
            "the last statement of {times}: {}",
            shorten(&statement)
        ));
    }
    let title = format!(
        "{} idle in transaction for {least} or longer",
        count(idle.len(), "session")
    );
    judge.find(
        FindingId::TxIdleInTransaction,
        Severity::Warning,
        title,
        evidence,
        &["pg transactions", "pg activity --state idle-in-transaction"],
    );
}

fn long_transactions(judge: &mut Judge<'_>) {
    let least = judge.thresholds.transaction_age;
    let snapshot = judge.snapshot;
    let idle_are_told = judge.has(FindingId::TxIdleInTransaction);
    let waiting = wait_starts(snapshot);
    let mut long: Vec<&Session> = connections::clients(snapshot)
        .filter(|s| !(is_long_by_nature(s) || idle_are_told && s.is_idle_in_transaction()))
        .filter(|s| own_age(s, snapshot, &waiting).is_some_and(|age| age >= least))
        .collect();
    if long.is_empty() {
        return;
    }
    long.sort_by_key(|s| s.xact_start);
    let now = snapshot.taken_at;
    let evidence = long
        .iter()
        .take(3)
        .map(|s| {
            let state = s.state.as_ref().map_or("?", |state| state.as_str());
            let user = s.user.as_deref().unwrap_or("?");
            let application = s
                .application_name
                .as_deref()
                .map_or(String::new(), |app| format!(", {app}"));
            let wrote = if s.backend_xid.is_some() {
                ", has written"
            } else {
                ""
            };
            format!(
                "pid {} ({user}{application}): {}, {state}{wrote}",
                s.pid(),
                s.xact_age(now).unwrap_or_default()
            )
        })
        .collect();
    let title = format!("{} older than {least}", count(long.len(), "transaction"));
    judge.find(
        FindingId::TxLong,
        Severity::Warning,
        title,
        evidence,
        &["pg transactions", "pg horizon"],
    );
}

/// Since when each session waits for a lock.
fn wait_starts(snapshot: &Snapshot) -> BTreeMap<crate::model::Pid, crate::model::Timestamp> {
    let waits = snapshot.locks.rows().iter().filter(|lock| !lock.granted);
    waits
        .filter_map(|lock| Some((lock.pid?, lock.waitstart?)))
        .collect()
}

/// The age of a transaction without the time it has spent waiting for the lock that it waits for now.
fn own_age(
    s: &Session,
    snapshot: &Snapshot,
    waiting: &BTreeMap<crate::model::Pid, crate::model::Timestamp>,
) -> Option<Millis> {
    let start = s.xact_start?;
    let until = waiting.get(&s.pid()).copied();
    // Before PostgreSQL 14 the start of the wait isn't known; the statement's is the nearest.
    let until = until.or_else(|| s.query_start.filter(|_| s.waits_on_lock()));
    Some(start.age_at(until.unwrap_or(snapshot.taken_at)))
}

fn is_long_by_nature(session: &Session) -> bool {
    let application = session.application_name.as_deref().unwrap_or("");
    LONG_BY_NATURE
        .iter()
        .any(|name| application.starts_with(name))
}

fn storm(judge: &mut Judge<'_>) {
    let mut statements: BTreeMap<String, Vec<&Session>> = BTreeMap::new();
    for session in
        connections::clients(judge.snapshot).filter(|s| s.is_active() && !s.waits_on_lock())
    {
        let Some(query) = session.query.as_deref() else {
            continue;
        };
        let fingerprint = sql::fingerprint(query);
        // Every pool runs these all the time.
        if !matches!(
            fingerprint.as_str(),
            "" | "begin" | "commit" | "rollback" | "select ?"
        ) {
            statements.entry(fingerprint).or_default().push(session);
        }
    }
    let mut storms: Vec<(String, Vec<&Session>)> = statements
        .into_iter()
        .filter(|(_, who)| who.len() >= judge.thresholds.storm_sessions)
        .collect();
    if storms.is_empty() {
        return;
    }
    storms.sort_by_key(|(_, who)| std::cmp::Reverse(who.len()));
    let most = storms[0].1.len();
    let now = judge.snapshot.taken_at;
    let evidence = storms
        .iter()
        .take(3)
        .map(|(statement, who)| {
            let longest = who
                .iter()
                .filter_map(|s| s.query_age(now))
                .max()
                .unwrap_or_default();
            format!(
                "{} sessions, the longest for {longest}: {}",
                who.len(),
                shorten(statement)
            )
        })
        .collect();
    let severity = if most >= STORM_CRITICAL {
        Severity::Critical
    } else {
        Severity::Warning
    };
    let title = format!("the same statement runs in {most} sessions at once");
    judge.find(
        FindingId::QueryStorm,
        severity,
        title,
        evidence,
        &["pg activity --state active"],
    );
}

fn dominant_wait(judge: &mut Judge<'_>) {
    let active: Vec<&Session> = connections::clients(judge.snapshot)
        .filter(|s| s.is_active())
        .collect();
    let mut events: BTreeMap<String, usize> = BTreeMap::new();
    for wait in active.iter().filter_map(|s| s.wait.as_ref()) {
        if WAIT_CLASSES.contains(&wait.class.as_str()) {
            *events
                .entry(format!("{}/{}", wait.class, wait.event))
                .or_default() += 1;
        }
    }
    let Some((event, sessions)) = events.into_iter().max_by_key(|(_, sessions)| *sessions) else {
        return;
    };
    if sessions < WAIT_LEAST || sessions * 2 <= active.len() {
        return;
    }
    let title = format!(
        "{sessions} of {} active sessions wait for {event}",
        active.len()
    );
    judge.find(
        FindingId::WaitDominant,
        Severity::Warning,
        title,
        Vec::new(),
        &["pg activity --state active"],
    );
}

fn held_horizon(judge: &mut Judge<'_>) {
    let holders = horizon::holders(judge.snapshot);
    let Some(oldest) = holders.first() else {
        return;
    };
    let age = oldest.xmin_age.unsigned_abs();
    if age < judge.thresholds.horizon_warning {
        return;
    }
    let severity = if age >= judge.thresholds.horizon_critical {
        Severity::Critical
    } else {
        Severity::Warning
    };
    let title = format!("the xmin horizon is held back by {age} transactions");
    let name = oldest.name.as_deref().unwrap_or("");
    let pid = oldest
        .pid
        .map_or(String::new(), |pid| format!(" pid {pid}"));
    let evidence = vec![
        format!("by a {}{pid} {name}", oldest.kind.words()),
        oldest.release.clone(),
    ];
    judge.find(
        FindingId::HorizonHeld,
        severity,
        title,
        evidence,
        &["pg horizon"],
    );
}

/// A statement for a line of evidence; the view cuts to the screen, this bounds what is kept.
fn shorten(statement: &str) -> String {
    const MOST: usize = 160;
    match statement.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &statement[..at]),
        None => statement.to_owned(),
    }
}
