//! Events → what a timeline shows: alike ones within a minute are one.

use chrono::TimeDelta;

use crate::model::{
    LogCancellation, LogDeadlock, LogEvent, LogMoment, LogServer, LogSession, LogTermination,
    LogWaitStage, LogWhat, Timestamp,
};

/// Alike and no further apart than this is one moment.
const APART: TimeDelta = TimeDelta::minutes(1);

/// One line each, oldest first; events without a time have no place on a timeline.
///
/// `relations`: all that a deadlock is about, by its statements.
pub fn moments(
    events: &[LogEvent],
    relations: &dyn Fn(&LogDeadlock) -> Vec<String>,
) -> Vec<LogMoment> {
    let mut timed: Vec<(Timestamp, &LogEvent)> = events
        .iter()
        .filter_map(|event| Some((event.at?, event)))
        .collect();
    timed.sort_by_key(|(at, _)| *at);
    let mut all: Vec<LogMoment> = Vec::new();
    for (at, event) in timed {
        let Some(what) = words(event, relations) else {
            continue;
        };
        let alike = all
            .iter_mut()
            .rev()
            .take_while(|moment| at.utc() - moment.until.utc() <= APART || moment.what != what)
            .take(64)
            .find(|moment| moment.what == what && at.utc() - moment.until.utc() <= APART);
        match alike {
            Some(moment) => {
                moment.until = at;
                moment.count += 1;
            }
            None => all.push(LogMoment {
                at,
                until: at,
                count: 1,
                sqlstate: event.sqlstate.clone(),
                what,
            }),
        }
    }
    all
}

/// Without any statement.
fn words(event: &LogEvent, relations: &dyn Fn(&LogDeadlock) -> Vec<String>) -> Option<String> {
    let who = |session: &LogSession| {
        session
            .application_name
            .clone()
            .or_else(|| session.user.clone())
            .unwrap_or_else(|| "a session".into())
    };
    Some(match &event.what {
        LogWhat::Deadlock(deadlock) => {
            let name = |pid| {
                let before = deadlock.before.iter().find(|before| before.pid == pid);
                before
                    .map(|before| &before.session)
                    .or((Some(pid) == event.pid).then_some(&event.session))
            };
            let mut names: Vec<String> = deadlock
                .edges
                .iter()
                .filter_map(|edge| {
                    name(edge.pid).and_then(|session| session.application_name.clone())
                })
                .collect();
            names.sort();
            names.dedup();
            let mut on = relations(deadlock);
            if on.is_empty() {
                let places = deadlock.edges.iter().filter_map(|edge| edge.place.as_ref());
                on.extend(places.map(|place| place.relation.clone()));
                on.sort();
                on.dedup();
            }
            let place = match on.as_slice() {
                [] => String::new(),
                names => format!(" on {}", names.join(" and ")),
            };
            let among = match (names.as_slice(), deadlock.edges.len()) {
                ([], n) => format!("{n} sessions"),
                (names, n) if names.len() == n => names.join(" and "),
                (names, n) => format!("{n} sessions, {} among them", names.join(" and ")),
            };
            format!("deadlock: {among}{place}")
        }
        LogWhat::BareDeadlock => format!("deadlock: {} among others", who(&event.session)),
        LogWhat::LockWait(wait) => {
            let on = wait.place.as_ref().map_or_else(
                || "a lock".into(),
                |place| {
                    let what = if place.index { "key" } else { "row" };
                    format!("a {what} of {}", place.relation)
                },
            );
            match wait.stage {
                LogWaitStage::StillWaiting => format!("{} waits for {on}", who(&event.session)),
                LogWaitStage::Failed => format!("{} didn't get {on}", who(&event.session)),
                LogWaitStage::Acquired | LogWaitStage::Deadlock | LogWaitStage::Avoided => {
                    return None;
                }
            }
        }
        LogWhat::TooManyConnections => "connections refused: no slot".into(),
        LogWhat::Canceled { why } => {
            let why = match why {
                LogCancellation::StatementTimeout => "statement timeout",
                LogCancellation::LockTimeout => "lock timeout",
                LogCancellation::Request => "by request",
                LogCancellation::Recovery => "conflict with recovery",
                LogCancellation::Other => "for another reason",
            };
            format!("statement canceled ({why}): {}", who(&event.session))
        }
        LogWhat::Terminated { why } => {
            let why = match why {
                LogTermination::Administrator => "by an administrator",
                LogTermination::IdleInTransaction => "idle in transaction too long",
                LogTermination::IdleSession => "idle too long",
                LogTermination::TransactionTimeout => "transaction too long",
                LogTermination::Crash => "after a crash",
            };
            format!("session ended ({why}): {}", who(&event.session))
        }
        LogWhat::Server(what) => match what {
            LogServer::Starting => "server starting",
            LogServer::Ready => "server ready",
            LogServer::ShutdownRequested => "server asked to shut down",
            LogServer::ShutDown => "server shut down",
            LogServer::Crashed => "a server process crashed",
            LogServer::Interrupted => "server recovers: it was interrupted",
        }
        .into(),
    })
}
