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
    // The last of the server's own lines was that it was interrupted.
    let mut interrupted = false;
    for (at, event) in timed {
        let of_server = matches!(
            event.what,
            LogWhat::Server(what) if !matches!(what, LogServer::RoleLimit | LogServer::DatabaseLimit)
        );
        let was = interrupted;
        if of_server {
            interrupted = event.what == LogWhat::Server(LogServer::Interrupted);
        }
        // The second line of one recovery.
        if was && event.what == LogWhat::Server(LogServer::Recovering) {
            continue;
        }
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
            LogServer::Starting => LogMoment::STARTING,
            LogServer::Ready => "server ready",
            LogServer::ShutdownRequested => "server asked to shut down",
            LogServer::ShutDown => "server shut down",
            LogServer::Crashed => LogMoment::CRASHED,
            LogServer::Interrupted | LogServer::Recovering => LogMoment::RECOVERS,
            LogServer::RoleLimit => return Some(limited("role", event.session.user.as_ref())),
            LogServer::DatabaseLimit => {
                return Some(limited("database", event.session.database.as_ref()));
            }
        }
        .into(),
    })
}

fn limited(of: &str, name: Option<&String>) -> String {
    let name = name.map_or_else(|| format!("a {of}"), |name| format!("{of} {name}"));
    format!("refused: the connection limit of {name} is used up")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Pid;

    fn event(second: i64, what: LogServer, session: LogSession) -> LogEvent {
        LogEvent {
            at: chrono::DateTime::from_timestamp(second, 0).map(Timestamp::new),
            pid: Some(Pid(7)),
            session,
            sqlstate: None,
            what: LogWhat::Server(what),
        }
    }

    fn told(events: &[LogEvent]) -> Vec<(u64, String)> {
        let all = moments(events, &|_| Vec::new()).into_iter();
        all.map(|moment| (moment.count, moment.what)).collect()
    }

    #[test]
    fn one_recovery_has_two_lines() {
        let of = |second, what| event(second, what, LogSession::default());
        let once = [
            of(1, LogServer::Crashed),
            of(2, LogServer::Interrupted),
            of(2, LogServer::Recovering),
            of(3, LogServer::Ready),
        ];
        let words = [LogMoment::CRASHED, LogMoment::RECOVERS, "server ready"];
        assert_eq!(told(&once), words.map(|what| (1, what.to_owned())));
        let again = [of(9, LogServer::Interrupted), of(9, LogServer::Recovering)];
        let twice = [once.as_slice(), &again].concat();
        assert_eq!(told(&twice)[1], (2, LogMoment::RECOVERS.to_owned()));
        // A log may begin in the middle of it.
        assert_eq!(told(&once[2..3]), [(1, LogMoment::RECOVERS.to_owned())]);
    }

    #[test]
    fn a_limit_is_not_a_want_of_slots() {
        let session = LogSession {
            user: Some("lim".into()),
            database: Some("shop".into()),
            application_name: None,
        };
        let all = [
            event(1, LogServer::RoleLimit, session.clone()),
            event(2, LogServer::DatabaseLimit, session),
            event(3, LogServer::RoleLimit, LogSession::default()),
        ];
        let words = ["role lim", "database shop", "a role"];
        let words = words.map(|of| format!("refused: the connection limit of {of} is used up"));
        assert_eq!(told(&all), words.map(|what| (1, what)));
    }
}
