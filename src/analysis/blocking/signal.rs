//! The command that ends exactly one session's statement or session, and what is lost by it.

use super::remedy::{Action, Remedy};
use crate::analysis::coverage::grant;
use crate::analysis::{Lookup, psql_commands};
use crate::model::{Session, SessionState, Timestamp};

/// The signal for exactly this session in exactly this transaction: whoever has taken its pid since is left alone.
pub(super) fn signal(
    lookup: &Lookup<'_>,
    session: &Session,
    action: Action,
    why: String,
) -> Remedy {
    signal_all(lookup, session, &[session], action, why)
}

/// The same for several, each in a statement (and so a transaction) of its own; `first` is what the remedy is named by.
pub(super) fn signal_all(
    lookup: &Lookup<'_>,
    first: &Session,
    sessions: &[&Session],
    action: Action,
    why: String,
) -> Remedy {
    let target = &lookup.snapshot.target;
    let statements: Vec<String> = sessions
        .iter()
        .map(|session| statement(session, action))
        .collect();
    let instead = sessions.iter().find_map(|session| may_not(lookup, session));
    Remedy {
        action,
        command: Some(psql_commands(&statements, target, &target.database)),
        lost: Some(lost(first, action, lookup.snapshot.taken_at)),
        pid: Some(first.pid()),
        backend_start: first.id.backend_start,
        ..Remedy::wait(match instead {
            Some(instead) => format!("{why}; {instead}"),
            None => why,
        })
    }
}

fn statement(session: &Session, action: Action) -> String {
    let function = if action == Action::Terminate {
        "pg_terminate_backend"
    } else {
        "pg_cancel_backend"
    };
    let mut sql = format!(
        "SELECT pg_catalog.{function}(pid) FROM pg_catalog.pg_stat_activity WHERE pid = {}",
        session.pid()
    );
    if let Some(start) = session.id.backend_start {
        sql.push_str(&format!(" AND backend_start = '{start}'"));
    }
    // Pooled sessions live on while transactions come and go: it is this transaction that blocks.
    sql.push_str(&match session.xact_start {
        Some(start) => format!(" AND xact_start = '{start}'"),
        None => " AND xact_start IS NULL".into(),
    });
    if let (Action::Cancel, Some(start)) = (action, session.query_start) {
        sql.push_str(&format!(
            " AND query_start = '{start}' AND state = 'active'"
        ));
    }
    sql
}

/// Why this login may not signal that session, and who may.
fn may_not(lookup: &Lookup<'_>, session: &Session) -> Option<String> {
    let login = lookup.snapshot.login.get()?;
    if login.superuser {
        None
    } else if session.superuser == Some(true) {
        Some("it is a superuser's session: only a superuser may".into())
    } else if login.signal_backend || session.user.as_ref() == Some(&login.user) {
        None
    } else {
        Some(format!(
            "this login may not: as another, or after {}",
            grant("pg_signal_backend", &login.user)
        ))
    }
}

/// What ends with a session, or with its statement.
pub fn lost(session: &Session, action: Action, now: Timestamp) -> String {
    let what = match (session.xact_age(now), session.backend_xid) {
        (Some(age), Some(xid)) => {
            format!("its transaction of {age}, which may have written (xid {xid}): rolled back")
        }
        (Some(age), None) => format!("its transaction of {age}, which has written nothing"),
        (None, _) if session.state == Some(SessionState::IdleInTransactionAborted) => {
            "its transaction has failed, and its work is lost already".into()
        }
        (None, _) => "no transaction is open".into(),
    };
    let mut text = match action {
        Action::Terminate => format!("{what}; its temporary tables and session locks"),
        _ => what,
    };
    let application = session
        .application_name
        .as_deref()
        .unwrap_or("")
        .to_lowercase();
    let query = session.query.as_deref().unwrap_or("").to_lowercase();
    if application.starts_with("pg_dump") {
        text.push_str("; the whole dump");
    } else if query.contains("index") && query.contains("concurrently") {
        text.push_str("; it leaves an invalid index behind: DROP INDEX it");
    } else if query.trim_start().starts_with("vacuum") {
        text.push_str("; the vacuum's work on the present table");
    }
    text
}
