//! Findings about what sessions do: long and forgotten transactions, storms, a common wait, the xmin horizon.

use std::collections::BTreeMap;

use super::judge::Judge;
use crate::analysis::{connections, horizon};
use crate::model::{
    FindingId, Millis, PreparedXact, Session, SessionState, Severity, Snapshot, Storming, count,
};
use crate::sql;

/// Wait events of these types are worth a word of their own; locks have findings, timeouts are sleeps.
const WAIT_CLASSES: [&str; 5] = ["IO", "LWLock", "IPC", "Client", "BufferPin"];
const WAIT_LEAST: usize = 5;
const CLIENT_LEAST: Millis = Millis::from_secs(1);
/// A synchronous standby that answers does so in milliseconds.
const SYNCREP_LEAST: Millis = Millis::from_secs(10);
const STORM_CRITICAL: usize = 50;

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
    let aborted = idle
        .iter()
        .any(|s| s.state == Some(SessionState::IdleInTransactionAborted));
    if let Some(oldest) = idle.iter().max_by_key(|s| s.state_age(now)) {
        let age = oldest
            .xact_age(now)
            .map_or("of unknown age".into(), |age| format!("of {age}"));
        evidence.push(format!(
            "the longest: pid {}, idle for {}, transaction {age}",
            oldest.pid(),
            oldest.state_age(now).unwrap_or_default()
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
        &["pg transactions", idle_filter(aborted)],
    );
}

/// The look at them: aborted ones are a state of their own.
pub(super) fn idle_filter(aborted: bool) -> &'static str {
    if aborted {
        "pg activity --state idle-in-transaction --state idle-in-transaction-aborted"
    } else {
        "pg activity --state idle-in-transaction"
    }
}

fn long_transactions(judge: &mut Judge<'_>) {
    let least = judge.thresholds.transaction_age;
    let snapshot = judge.snapshot;
    let idle_are_told = judge.has(FindingId::TxIdleInTransaction);
    let waiting = wait_starts(snapshot);
    let mut long: Vec<&Session> = connections::clients(snapshot)
        .filter(|s| !(s.is_long_by_nature() || idle_are_told && s.is_idle_in_transaction()))
        .filter(|s| own_age(s, snapshot, &waiting).is_some_and(|age| age >= least))
        .collect();
    let now = snapshot.taken_at;
    let prepared: Vec<&PreparedXact> = snapshot
        .prepared
        .rows()
        .iter()
        .filter(|p| p.prepared.age_at(now) >= least)
        .collect();
    if long.is_empty() && prepared.is_empty() {
        return;
    }
    long.sort_by_key(|s| s.xact_start);
    let mut evidence: Vec<String> = long
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
    evidence.extend(prepared.iter().take(3).map(|p| {
        format!(
            "prepared transaction {}: {}, holds its locks and the xmin horizon",
            p.gid,
            p.prepared.age_at(now)
        )
    }));
    let title = format!(
        "{} older than {least}",
        count(long.len() + prepared.len(), "transaction")
    );
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

/// The statements that several sessions run at the same time, values aside, each for at least so long: those of most
/// sessions first.
pub fn running_together(snapshot: &Snapshot, least: Millis, sessions: usize) -> Vec<Storming> {
    let now = snapshot.taken_at;
    together(snapshot, least, sessions)
        .into_iter()
        .map(|(statement, who)| Storming {
            statement: shorten(&statement),
            sessions: who.len() as u64,
            longest_ms: who
                .iter()
                .filter_map(|s| s.query_age(now))
                .max()
                .unwrap_or_default(),
        })
        .collect()
}

fn together(snapshot: &Snapshot, least: Millis, sessions: usize) -> Vec<(String, Vec<&Session>)> {
    let mut statements: BTreeMap<String, Vec<&Session>> = BTreeMap::new();
    for session in connections::clients(snapshot).filter(|s| s.is_active() && !s.waits_on_lock()) {
        // A short statement that many run all the time is what a database is for.
        if session
            .query_age(snapshot.taken_at)
            .is_none_or(|age| age < least)
        {
            continue;
        }
        let Some(query) = session.query.as_deref() else {
            continue;
        };
        // Of a text that was cut or reduced it can't be told whether it is the same.
        if !sql::is_whole(query) {
            continue;
        }
        let fingerprint = sql::fingerprint(query);
        // Every pool runs these all the time.
        if !matches!(
            fingerprint.as_str(),
            "" | "begin" | "commit" | "end" | "rollback"
        ) {
            statements.entry(fingerprint).or_default().push(session);
        }
    }
    let mut storms: Vec<(String, Vec<&Session>)> = statements
        .into_iter()
        .filter(|(_, who)| who.len() >= sessions)
        .collect();
    storms.sort_by_key(|(_, who)| std::cmp::Reverse(who.len()));
    storms
}

fn storm(judge: &mut Judge<'_>) {
    let limits = judge.thresholds;
    let storms = together(judge.snapshot, limits.storm_age, limits.storm_sessions);
    if storms.is_empty() {
        return;
    }
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
    let now = judge.snapshot.taken_at;
    let active: Vec<&Session> = connections::clients(judge.snapshot)
        .filter(|s| s.is_active())
        .collect();
    let mut events: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for session in &active {
        let Some(wait) = &session.wait else { continue };
        // Between two messages every client is waited for; only one that takes its time is worth a word.
        let passing =
            wait.class == "Client" && session.state_age(now).is_none_or(|age| age < CLIENT_LEAST);
        if WAIT_CLASSES.contains(&wait.class.as_str()) && !passing {
            *events.entry((&wait.class, &wait.event)).or_default() += 1;
        }
    }
    let next = ["pg activity --state active"];
    let stuck = active
        .iter()
        .filter(|s| is_syncrep(s) && s.state_age(now).is_some_and(|age| age >= SYNCREP_LEAST));
    let stuck = stuck.count();
    if stuck > 0 {
        let title = format!("{} for a synchronous standby (IPC/SyncRep)", waits(stuck));
        judge.find(
            FindingId::WaitDominant,
            Severity::Critical,
            title,
            Vec::new(),
            &next,
        );
        judge.note(
            "they have committed here and hold their locks until the standby confirms: look at it",
        );
        return;
    }
    let Some(((class, event), sessions)) = events.into_iter().max_by_key(|(_, sessions)| *sessions)
    else {
        return;
    };
    if sessions < WAIT_LEAST || sessions * 2 <= active.len() {
        return;
    }
    let title = format!(
        "{sessions} of {} active sessions wait for {class}/{event}",
        active.len()
    );
    judge.find(
        FindingId::WaitDominant,
        Severity::Warning,
        title,
        Vec::new(),
        &next,
    );
}

fn is_syncrep(session: &Session) -> bool {
    session
        .wait
        .as_ref()
        .is_some_and(|wait| wait.event.eq_ignore_ascii_case("SyncRep"))
}

fn waits(sessions: usize) -> String {
    if sessions == 1 {
        "1 session waits".into()
    } else {
        format!("{sessions} sessions wait")
    }
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
    let evidence = vec![format!("by a {}{pid} {name}", oldest.kind.words())];
    let release = oldest.release.clone();
    judge.find(
        FindingId::HorizonHeld,
        severity,
        title,
        evidence,
        &["pg horizon"],
    );
    judge.note(&release);
}

/// A statement for a line of evidence; the view cuts to the screen, this bounds what is kept.
fn shorten(statement: &str) -> String {
    const MOST: usize = 160;
    match statement.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &statement[..at]),
        None => statement.to_owned(),
    }
}
