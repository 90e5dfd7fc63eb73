//! A message → the event that it tells of, if it is one that matters.

use super::labels::Severity;
use super::locktext;
use super::logins::authorized;
use super::record::Record;
use super::words::{ADMINISTRATOR, CANCELED, IDLE_IN_TRANSACTION, REFUSED, by_words, limited};
use crate::model::{
    LogCancellation, LogDeadlock, LogEdge, LogEvent, LogLockWait, LogObject, LogPlace, LogServer,
    LogSession, LogTermination, LogWhat, Pid,
};
use crate::sql;

/// The error's words, where nothing else of it may be in the log.
pub const DEADLOCK: [&str; 2] = ["deadlock detected", "デッドロックを検出しました"];
/// Of a statement so much is kept.
const STATEMENT: usize = 16 << 10;

/// `None`: nothing that is looked for.
pub fn event(record: &Record) -> Option<LogEvent> {
    let what = deadlock(record)
        .or_else(|| wait(record))
        .or_else(|| bare(record))
        .or_else(|| refused_by_limit(record))
        .or_else(|| by_sqlstate(record))
        .or_else(|| by_words(record).map(LogWhat::Server))?;
    let first = match &what {
        LogWhat::Deadlock(deadlock) => deadlock.edges.first().map(|edge| edge.pid),
        LogWhat::LockWait(wait) => Some(wait.pid),
        _ => None,
    };
    Some(LogEvent {
        at: record.at,
        // Without %p in the prefix: the victim reports itself first, a waiter names itself.
        pid: record.pid.or(first),
        session: session(record),
        sqlstate: record.sqlstate.clone().or_else(|| {
            matches!(what, LogWhat::Deadlock(_) | LogWhat::BareDeadlock).then(|| "40P01".to_owned())
        }),
        what,
    })
}

/// The lines of a login say whose it is; so does its refusal by a limit.
fn session(record: &Record) -> LogSession {
    let said = limited(&record.message).map_or_else(
        || authorized(&record.message),
        |(limit, name)| LogSession {
            user: (limit == LogServer::RoleLimit).then(|| name.to_owned()),
            database: (limit == LogServer::DatabaseLimit).then(|| name.to_owned()),
            application_name: None,
        },
    );
    record.session.clone().or(&said)
}

/// The role's or the database's own limit, which the server refuses by the same SQLSTATE.
fn refused_by_limit(record: &Record) -> Option<LogWhat> {
    let coded = matches!(record.sqlstate.as_deref(), None | Some("53300"));
    let severe = matches!(record.severity, Severity::Fatal | Severity::Unknown);
    let (limit, _) = limited(&record.message).filter(|_| coded && severe)?;
    Some(LogWhat::Server(limit))
}

fn deadlock(record: &Record) -> Option<LogWhat> {
    if !matches!(record.severity, Severity::Error | Severity::Unknown) {
        return None;
    }
    let detail = record.detail.as_deref()?;
    let mut edges: Vec<LogEdge> = detail.lines().map_while(locktext::edge).collect();
    let round = !edges.is_empty()
        && (0..edges.len()).all(|n| edges[n].blocked_by == edges[(n + 1) % edges.len()].pid);
    // The mode's word and the closed circle are proof in any language.
    if edges.is_empty() || !(round || record.sqlstate.as_deref() == Some("40P01")) {
        return None;
    }
    let rest: Vec<&str> = detail.lines().skip(edges.len()).collect();
    let pids: Vec<Pid> = edges.iter().map(|edge| edge.pid).collect();
    for (edge, text) in edges.iter_mut().zip(statements(&rest, &pids)) {
        edge.statement = text.and_then(|text| statement(&text));
    }
    // Of the victim the log has the text twice; the report's own may have been cut by the server.
    if let Some(own) = &record.statement
        && let Some(first) = edges
            .first_mut()
            .filter(|edge| record.pid.is_none_or(|pid| pid == edge.pid))
        && first
            .statement
            .as_ref()
            .is_none_or(|text| own.len() > text.len() && own.starts_with(text.as_str()))
    {
        first.statement = statement(own);
    }
    if let Some(victim) = edges.first_mut() {
        victim.place = place(record, &victim.on);
        victim.inner = inner(record);
    }
    Some(LogWhat::Deadlock(LogDeadlock {
        edges,
        before: Vec::new(),
    }))
}

/// By log_error_verbosity = terse only the error's own words are left. Who raises an error of the same words has a
/// CONTEXT, unless the log is a terse one.
fn bare(record: &Record) -> Option<LogWhat> {
    let says = DEADLOCK.contains(&locktext::without_cursor(&record.message));
    let alone = record.detail.is_none() && record.context.is_none() && !record.aside;
    let coded = record
        .sqlstate
        .as_deref()
        .is_none_or(|code| code == "40P01");
    let error = matches!(record.severity, Severity::Error | Severity::Unknown);
    (says && alone && coded && error).then_some(LogWhat::BareDeadlock)
}

/// Only of a transaction's end the server says for which row it is.
fn place(record: &Record, on: &LogObject) -> Option<LogPlace> {
    let context = record.context.as_deref()?;
    matches!(on, LogObject::Transaction { .. })
        .then(|| locktext::place(context))
        .flatten()
}

fn inner(record: &Record) -> Option<String> {
    statement(&locktext::inner(record.context.as_deref()?)?)
}

/// The text of each process, in the order of the edges: `Process 1: …`, which may go on over lines.
fn statements(lines: &[&str], pids: &[Pid]) -> Vec<Option<String>> {
    let mut texts: Vec<Option<String>> = vec![None; pids.len()];
    let Some((word, colon)) = lines
        .first()
        .zip(pids.first())
        .and_then(|(line, pid)| marks(line, *pid))
    else {
        return texts;
    };
    let mut current = None;
    for line in lines {
        let next = current.map_or(0, |n: usize| n + 1);
        let begins = pids
            .get(next)
            .and_then(|pid| line.strip_prefix(&format!("{word}{pid}{colon}")));
        if let Some(text) = begins {
            texts[next] = Some(text.to_owned());
            current = Some(next);
        } else if let Some(text) = current.and_then(|n| texts[n].as_mut()) {
            text.push('\n');
            text.push_str(line);
        }
    }
    texts
}

/// What stands before and behind the first process's number.
fn marks(line: &str, pid: Pid) -> Option<(String, String)> {
    let digits = pid.to_string();
    let at = line.find(&digits)?;
    let behind = &line[at + digits.len()..];
    let colon = behind.find([':', '：'])?;
    let sign = behind[colon..].chars().next()?;
    let mut end = colon + sign.len_utf8();
    if behind[end..].starts_with(' ') {
        end += 1;
    }
    behind[..colon]
        .chars()
        .all(char::is_whitespace)
        .then(|| (line[..at].to_owned(), behind[..end].to_owned()))
}

/// With secrets reduced; `<insufficient privilege>` and its like are no statement.
pub fn statement(text: &str) -> Option<String> {
    let text = text.trim();
    if text.is_empty() || text.starts_with('<') && text.ends_with('>') {
        return None;
    }
    if let Some(tag) = sql::reduce_secret(text) {
        return Some(tag);
    }
    let end = text.floor_char_boundary(STATEMENT);
    Some(text[..end].to_owned())
}

fn wait(record: &Record) -> Option<LogWhat> {
    // An error of the same words is somebody's own.
    // What a session says, and what it was logged to have said, is none of the server's.
    const SAID: [&str; 4] = ["statement: ", "文: ", "duration: ", "execute "];
    if !matches!(record.severity, Severity::Log | Severity::Unknown)
        || SAID.iter().any(|word| record.message.starts_with(word))
    {
        return None;
    }
    let line = locktext::wait(&record.message, record.detail.is_some())?;
    if record
        .sqlstate
        .as_deref()
        .is_some_and(|code| !code.starts_with("55"))
    {
        return None;
    }
    let (holders, queue) = record
        .detail
        .as_deref()
        .map(locktext::holders_and_queue)
        .unwrap_or_default();
    let place = place(record, &line.on);
    Some(LogWhat::LockWait(LogLockWait {
        pid: line.pid,
        mode: line.mode,
        on: line.on,
        stage: line.stage,
        waited_ms: line.waited,
        holders,
        queue,
        place,
        statement: record.statement.as_deref().and_then(statement),
        inner: inner(record),
    }))
}

fn by_sqlstate(record: &Record) -> Option<LogWhat> {
    let begins = |words: &[&str]| words.iter().any(|word| record.message.starts_with(word));
    let code = record.sqlstate.as_deref();
    match record.severity {
        Severity::Error => {}
        Severity::Fatal | Severity::Unknown => {
            let ended = |why| Some(LogWhat::Terminated { why });
            let what = match code {
                Some("53300") => Some(LogWhat::TooManyConnections),
                Some("57P01") => ended(LogTermination::Administrator),
                Some("57P02") => ended(LogTermination::Crash),
                Some("57P05") => ended(LogTermination::IdleSession),
                Some("25P03") => ended(LogTermination::IdleInTransaction),
                Some("25P04") => ended(LogTermination::TransactionTimeout),
                Some(_) => None,
                None if begins(&REFUSED) => Some(LogWhat::TooManyConnections),
                None if begins(&ADMINISTRATOR) => ended(LogTermination::Administrator),
                None if begins(&IDLE_IN_TRANSACTION) => ended(LogTermination::IdleInTransaction),
                None => None,
            };
            if what.is_some() {
                return what;
            }
        }
        // Of a crash the others' sessions say so in a warning.
        Severity::Less if code == Some("57P02") => {
            return Some(LogWhat::Terminated {
                why: LogTermination::Crash,
            });
        }
        Severity::Less | Severity::Log => return None,
    }
    let why = CANCELED
        .iter()
        .find(|(_, words)| begins(words))
        .map(|(why, _)| *why)
        .or_else(|| begins(&["canceling "]).then_some(LogCancellation::Other));
    match code {
        Some("57014") => Some(why.unwrap_or(LogCancellation::Other)),
        Some("55P03") => why.map(|_| LogCancellation::LockTimeout),
        None => why,
        Some(_) => None,
    }
    .map(|why| LogWhat::Canceled { why })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::LogWaitStage;

    fn record(detail: &str) -> Record {
        Record {
            message: "interblocage (deadlock) détecté".into(),
            detail: Some(detail.into()),
            ..Record::default()
        }
    }

    fn edges(record: &Record) -> Vec<LogEdge> {
        match event(record).expect("an event").what {
            LogWhat::Deadlock(deadlock) => deadlock.edges,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn statements_go_to_their_processes() {
        let edges = edges(&record(
            "Le processus 7 attend ShareLock sur transaction 1 ; bloqué par le processus 8.\n\
             Le processus 8 attend ShareLock sur transaction 2 ; bloqué par le processus 7.\n\
             Processus 7 : update t\nset a = 'Processus 9 : x'\n\nwhere id = 1\nProcessus 8 : update t set a = 2",
        ));
        assert_eq!(
            edges[0].statement.as_deref(),
            Some("update t\nset a = 'Processus 9 : x'\n\nwhere id = 1")
        );
        assert_eq!(edges[1].statement.as_deref(), Some("update t set a = 2"));
        assert_eq!(edges[1].on, LogObject::Transaction { xid: 2 });
    }

    #[test]
    fn secrets_and_placeholders_are_no_statements() {
        let edges = edges(&record(
            "Process 7 waits for ShareLock on transaction 1; blocked by process 8.\n\
             Process 8 waits for ShareLock on transaction 2; blocked by process 7.\n\
             Process 7: ALTER ROLE bob PASSWORD 'hunter2'\nProcess 8: <insufficient privilege>",
        ));
        assert_eq!(edges[0].statement.as_deref(), Some("ALTER ROLE"));
        assert_eq!(edges[1].statement, None);
    }

    #[test]
    fn a_circle_that_does_not_close_needs_its_sqlstate() {
        let open = "Process 7 waits for ShareLock on transaction 1; blocked by process 8.\nProcess 7: select 1";
        assert!(event(&record(open)).is_none());
        let coded = Record {
            sqlstate: Some("40P01".into()),
            ..record(open)
        };
        assert_eq!(edges(&coded).len(), 1);
    }

    #[test]
    fn an_error_without_its_circle() {
        let of = |message: &str, context: Option<&str>| {
            event(&Record {
                message: message.into(),
                context: context.map(str::to_owned),
                ..Record::default()
            })
            .map(|event| (event.what, event.sqlstate))
        };
        for message in [
            "deadlock detected",
            "deadlock detected at character 22",
            "デッドロックを検出しました",
            "デッドロックを検出しました(22文字目)",
        ] {
            let told = (LogWhat::BareDeadlock, Some("40P01".to_owned()));
            assert_eq!(of(message, None), Some(told), "{message}");
        }
        assert_eq!(of("deadlock detected", Some("PL/pgSQL function f()")), None);
        assert_eq!(of("deadlock detected by the nightly job", None), None);
    }

    #[test]
    fn words_of_a_statement_are_no_event() {
        let of = |severity: &str, code: Option<&str>, message: &str| {
            event(&Record {
                severity: Severity::of(severity),
                sqlstate: code.map(str::to_owned),
                message: message.into(),
                ..Record::default()
            })
            .map(|event| event.what)
        };
        let said = [
            "売買シグナル",
            "FATAL: sorry, too many clients already",
            "sorry, too many clients already",
            "the database system is shut down",
            "database system is shut down",
            "terminating connection due to administrator command",
            "canceling statement due to user request",
            "server process (PID 7) was terminated by signal 9: Killed",
            "deadlock detected",
            "process 5 still waiting for ShareLock on transaction 742 after 1000.149 ms",
        ];
        for text in said {
            for message in [
                format!("statement: select '{text}'"),
                format!("duration: 3.1 ms  statement: select '{text}'"),
                format!("execute <unnamed>: select '{text}'"),
            ] {
                assert_eq!(of("LOG", None, &message), None, "{message}");
            }
            for severity in ["NOTICE", "WARNING", "INFO"] {
                assert_eq!(of(severity, None, text), None, "{severity}: {text}");
            }
            let own = of("ERROR", Some("P0001"), text);
            assert_eq!(own, None, "{text}");
        }
        assert_eq!(
            of(
                "LOG",
                None,
                "archive command was terminated by signal 15: Terminated"
            ),
            None
        );
        assert_eq!(of("ERROR", Some("53300"), "no slot"), None);
    }

    #[test]
    fn what_the_server_says_of_itself() {
        let of = |severity: &str, message: &str| {
            event(&Record {
                severity: Severity::of(severity),
                message: message.into(),
                ..Record::default()
            })
            .map(|event| event.what)
        };
        for (message, what) in [
            (
                "server process (PID 7) was terminated by signal 9: Killed",
                LogServer::Crashed,
            ),
            (
                "background worker \"logical replication launcher\" (PID 7) was terminated by signal 11: Segmentation fault",
                LogServer::Crashed,
            ),
            (
                "サーバープロセス (PID 7)はシグナル9で終了しました: Killed",
                LogServer::Crashed,
            ),
            (
                "starting PostgreSQL 18.0 on x86_64-linux-musl",
                LogServer::Starting,
            ),
            (
                "PostgreSQL 18.0 on x86_64-linux-muslを起動しています",
                LogServer::Starting,
            ),
            (
                "database system is ready to accept read-only connections",
                LogServer::Ready,
            ),
            (
                "高速シャットダウン要求を受け取りました",
                LogServer::ShutdownRequested,
            ),
            ("database system is shut down", LogServer::ShutDown),
            (
                "database system was interrupted; last known up at 2026-12-01 00:00:00 UTC",
                LogServer::Interrupted,
            ),
        ] {
            assert_eq!(of("LOG", message), Some(LogWhat::Server(what)), "{message}");
        }
        for message in [
            "sorry, too many clients already",
            "現在クライアント数が多すぎます",
        ] {
            assert_eq!(
                of("致命的エラー", message),
                Some(LogWhat::TooManyConnections)
            );
        }
        let end = of(
            "FATAL",
            "terminating connection due to administrator command",
        );
        let why = LogTermination::Administrator;
        assert_eq!(end, Some(LogWhat::Terminated { why }));
    }

    #[test]
    fn a_refusal_by_a_limit_names_whose_it_is() {
        let of = |code: Option<&str>, message: &str| {
            let record = Record {
                severity: Severity::Fatal,
                sqlstate: code.map(str::to_owned),
                message: message.into(),
                ..Record::default()
            };
            event(&record).map(|event| (event.what, event.session.user, event.session.database))
        };
        let limit = |of| LogWhat::Server(of);
        for code in [None, Some("53300")] {
            let role = of(code, "too many connections for role \"lim\"");
            let lim = Some("lim".to_owned());
            assert_eq!(role, Some((limit(LogServer::RoleLimit), lim, None)));
            let database = of(code, "too many connections for database \"x\"");
            let x = Some("x".to_owned());
            assert_eq!(database, Some((limit(LogServer::DatabaseLimit), None, x)));
        }
        let own = of(Some("P0001"), "too many connections for role \"lim\"");
        assert_eq!(own, None);
    }

    #[test]
    fn waits_cancels_and_refusals() {
        let wait = Record {
            message: "process 5 still waiting for ShareLock on transaction 742 after 1000.149 ms"
                .into(),
            detail: Some("Process holding the lock: 6. Wait queue: 5.".into()),
            statement: Some("update t set a = 1".into()),
            ..Record::default()
        };
        let LogWhat::LockWait(wait) = event(&wait).expect("an event").what else {
            panic!("a wait")
        };
        assert_eq!(
            (wait.stage, wait.holders, wait.queue),
            (LogWaitStage::StillWaiting, vec![Pid(6)], vec![Pid(5)])
        );
        let of = |code: &str, message: &str| {
            event(&Record {
                sqlstate: Some(code.into()),
                message: message.into(),
                ..Record::default()
            })
            .map(|event| event.what)
        };
        assert_eq!(of("53300", "désolé"), Some(LogWhat::TooManyConnections));
        assert_eq!(
            of("57014", "canceling statement due to statement timeout"),
            Some(LogWhat::Canceled {
                why: LogCancellation::StatementTimeout
            })
        );
        assert_eq!(
            of("25P03", "x"),
            Some(LogWhat::Terminated {
                why: LogTermination::IdleInTransaction
            })
        );
        assert_eq!(of("23505", "duplicate key"), None);
    }
}
