//! What to do about a root: the one action, the exact command for it, and what is lost by it.

use std::collections::HashMap;

use serde::Serialize;

use super::graph::{Graph, Holder, Link, Node};
use super::queue::queued_ddl;
use super::signal::signal;
use crate::analysis::coverage::grant;
use crate::analysis::{Lookup, psql_command};
use crate::model::{
    BackendType, LockMode, LockTag, Millis, Pid, PreparedXact, Session, SessionState, Timestamp,
};
use crate::sql;

/// What kind of thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// `pg_cancel_backend`: ends the statement.
    Cancel,
    /// `pg_terminate_backend`: ends the session.
    Terminate,
    /// COMMIT PREPARED or ROLLBACK PREPARED, as its coordinator says.
    ResolvePrepared,
    Wait,
    /// First see more: this login may not.
    Grant,
}

#[derive(Clone, Debug, Serialize)]
pub struct Remedy {
    pub action: Action,
    pub command: Option<String>,
    /// The other way, where there are two.
    pub or_command: Option<String>,
    pub why: String,
    /// What is lost by it.
    pub lost: Option<String>,
    /// What it acts on: for a lock queue the DDL, not the root.
    pub pid: Option<Pid>,
    pub backend_start: Option<Timestamp>,
    /// Of a lock queue: how many wait only behind it.
    #[serde(skip)]
    pub behind: Option<usize>,
}

/// How much hangs on a root.
pub struct Blocked<'r> {
    pub direct: &'r [Link],
    pub total: usize,
    pub freed: usize,
    /// How many wait only behind each few DDLs: the same for every root, and dear to count.
    pub only_behind: &'r mut HashMap<Vec<Node>, usize>,
}

/// Shorter waits are a busy row, not an incident: what holds it will be gone before anybody has read its name.
pub(super) const MOMENT: Millis = Millis::from_secs(1);

impl Remedy {
    pub(super) fn wait(why: impl Into<String>) -> Self {
        Self {
            action: Action::Wait,
            command: None,
            or_command: None,
            why: why.into(),
            lost: None,
            pid: None,
            backend_start: None,
            behind: None,
        }
    }
}

/// Nothing has waited for long enough to act on.
pub fn momentary(longest: Option<Millis>) -> Remedy {
    let longest = longest.unwrap_or_default();
    Remedy::wait(format!(
        "momentary: the longest wait is {longest}; look again before acting"
    ))
}

/// Shared row locks (FOR SHARE, foreign keys) of several transactions are one multixact, of which a waiter waits for one
/// member at a time: `pg_locks` doesn't tell the others.
pub fn may_share_rows(graph: &Graph<'_>, lookup: &Lookup<'_>, pid: Pid, direct: &[Link]) -> bool {
    let row_wait = direct
        .iter()
        .any(|link| matches!(graph.tag(link.wait), LockTag::Transaction { .. }));
    row_wait
        && lookup
            .snapshot
            .locks
            .rows()
            .iter()
            .any(|lock| lock.granted && lock.pid == Some(pid) && lock.mode == LockMode::RowShare)
}

/// A prepared transaction: signals do nothing to it; only its coordinator knows how it should end.
pub fn prepared(lookup: &Lookup<'_>, prepared: Option<&PreparedXact>) -> Remedy {
    let Some(p) = prepared else {
        return Remedy::wait(
            "a prepared transaction that pg_prepared_xacts doesn't show now: it has just ended, or look there by hand",
        );
    };
    let target = &lookup.snapshot.target;
    let Some(database) = p.database.clone() else {
        return Remedy::wait(format!(
            "prepared transaction {} of a database whose name couldn't be read (oid {}): COMMIT or ROLLBACK PREPARED there, \
             as its coordinator says",
            p.gid, p.datid
        ));
    };
    let gid = sql::literal(&p.gid);
    Remedy {
        action: Action::ResolvePrepared,
        command: Some(psql_command(
            &format!("ROLLBACK PREPARED {gid}"),
            target,
            &database,
        )),
        or_command: Some(psql_command(
            &format!("COMMIT PREPARED {gid}"),
            target,
            &database,
        )),
        why: format!(
            "ask the transaction's coordinator first whether it was to commit; then as {} or a superuser, in database {database}",
            p.owner.as_deref().unwrap_or("its owner"),
        ),
        lost: Some(
            "rolled back: all its writes; committed: nothing, but its writes become visible".into(),
        ),
        ..Remedy::wait("")
    }
}

/// On a standby the locks that replay holds are those of the primary.
pub fn startup() -> Remedy {
    Remedy::wait(
        "replay on this standby holds the lock for a transaction of the primary (DDL, or a prepared transaction): end \
         that one on the primary",
    )
}

/// Nobody in a cycle moves until the server aborts one of them.
pub fn cycle(lookup: &Lookup<'_>, pids: &[Pid]) -> Remedy {
    let timeout = lookup
        .snapshot
        .server
        .get()
        .and_then(|s| s.deadlock_timeout_ms);
    let within = timeout.map_or_else(
        || "deadlock_timeout".into(),
        |ms| format!("deadlock_timeout ({})", crate::model::Millis(ms)),
    );
    // The youngest transaction has the least to lose.
    let youngest = pids
        .iter()
        .filter_map(|pid| lookup.session(*pid))
        .max_by_key(|s| s.xact_start);
    let Some(session) = youngest.filter(|s| !s.hidden) else {
        return Remedy::wait(format!("the server aborts one of them within {within}"));
    };
    let why = format!(
        "a deadlock: the server aborts one of them within {within}; if that is too long, cancel the youngest transaction, \
         pid {}",
        session.pid()
    );
    signal(lookup, session, Action::Cancel, why)
}

/// A session at the root. Of a lock queue behind a DDL the DDL goes, which frees those who queue behind it.
pub fn session(
    graph: &Graph<'_>,
    lookup: &Lookup<'_>,
    pid: Option<Pid>,
    blocked: &mut Blocked<'_>,
) -> Remedy {
    if lookup.snapshot.activity.get().is_none() {
        return Remedy::wait("what the session does wasn't read, so no advice is safe");
    }
    if let Some(remedy) =
        only_awaited(graph, lookup, blocked).or_else(|| queued_ddl(graph, lookup, blocked))
    {
        return remedy;
    }
    let Some(session) = pid.and_then(|pid| lookup.session(pid)) else {
        return Remedy::wait(
            "the session isn't in pg_stat_activity: it has just ended, or is still starting",
        );
    };
    if session.hidden {
        return Remedy {
            action: Action::Grant,
            command: Some(grant("pg_read_all_stats", &lookup.snapshot.target.user)),
            ..Remedy::wait("this login may not see what the session does, so no advice is safe")
        };
    }
    let mut remedy = match (&session.backend_type, &session.state) {
        (Some(BackendType::AutovacuumWorker), _) => autovacuum(lookup, session),
        (Some(BackendType::Client), Some(state)) => client(lookup, session, state),
        (None | Some(BackendType::Client), _) => Remedy::wait("its state isn't known"),
        (Some(kind), _) => Remedy::wait(format!("a {} is not to be signalled", kind.as_str())),
    };
    let waits_for =
        |kind: fn(&LockTag) -> bool| blocked.direct.iter().all(|link| kind(graph.tag(link.wait)));
    if waits_for(|tag| matches!(tag, LockTag::Advisory { .. })) && remedy.action != Action::Wait {
        remedy.why = format!(
            "an advisory lock is mostly meant so (one leader, one job at a time): ask the application first; {}",
            remedy.why
        );
    }
    if blocked.freed == 0 && remedy.action != Action::Wait {
        remedy
            .why
            .push_str("; by itself that frees nobody: the other roots must end too");
    }
    if blocked
        .direct
        .iter()
        .any(|link| is_startup(graph, lookup, link))
    {
        remedy.why.push_str(
            "; or accept the lag: WAL replay waits for it, up to max_standby_streaming_delay",
        );
    }
    remedy
}

fn is_startup(graph: &Graph<'_>, lookup: &Lookup<'_>, link: &Link) -> bool {
    waiter(graph, lookup, link).is_some_and(|s| s.backend_type == Some(BackendType::Startup))
}

pub(super) fn waiter<'a>(
    graph: &Graph<'_>,
    lookup: &Lookup<'a>,
    link: &Link,
) -> Option<&'a Session> {
    match graph.nodes[graph.waits[link.wait].node] {
        Holder::Session(pid) => lookup.session(pid),
        Holder::Prepared(_) => None,
    }
}

/// Those who wait want no lock of this session, only its transaction's end (CREATE INDEX CONCURRENTLY): they hold up
/// nobody by it.
fn only_awaited(graph: &Graph<'_>, lookup: &Lookup<'_>, blocked: &Blocked<'_>) -> Option<Remedy> {
    let first = blocked.direct.first()?;
    let only = blocked
        .direct
        .iter()
        .all(|link| matches!(graph.tag(link.wait), LockTag::VirtualXid { .. }));
    if !only || blocked.total > blocked.direct.len() {
        return None;
    }
    let who = waiter(graph, lookup, first).map_or("?".into(), |s| s.pid().to_string());
    Some(Remedy::wait(format!(
        "nobody wants a lock of it: pid {who} (CREATE INDEX CONCURRENTLY or the like) waits for its transaction to end, and \
         holds up nobody meanwhile; let it finish, or cancel the one that waits, which leaves an invalid index"
    )))
}

fn autovacuum(lookup: &Lookup<'_>, session: &Session) -> Remedy {
    if session
        .query
        .as_deref()
        .is_some_and(|q| q.contains("to prevent wraparound"))
    {
        return Remedy::wait(
            "an autovacuum against wraparound doesn't give way and would start again at once: let it finish",
        );
    }
    let why = "autovacuum gives way by itself after deadlock_timeout; it starts again later";
    signal(lookup, session, Action::Cancel, why.into())
}

fn client(lookup: &Lookup<'_>, session: &Session, state: &SessionState) -> Remedy {
    let replicating = session
        .wait
        .as_ref()
        .is_some_and(|w| w.event.eq_ignore_ascii_case("SyncRep"));
    match state {
        SessionState::Active if replicating => Remedy::wait(
            "it has committed and waits for a synchronous standby; ending the wait leaves the commit unreplicated: look at \
             the standby",
        ),
        SessionState::Active | SessionState::FastpathFunctionCall => {
            let why = "a running statement holds the lock: cancel it, the session stays";
            signal(lookup, session, Action::Cancel, why.into())
        }
        SessionState::IdleInTransaction | SessionState::IdleInTransactionAborted => {
            let why = "idle in transaction: nothing runs, so a cancel does nothing; only ending the session frees the lock";
            signal(lookup, session, Action::Terminate, why.into())
        }
        SessionState::Idle if holds_advisory(lookup, session) => {
            let why = "idle and outside a transaction: it holds a session-level advisory lock, which ends with the session";
            signal(lookup, session, Action::Terminate, why.into())
        }
        SessionState::Idle => {
            Remedy::wait("it is idle and holds no lock of its session: it has moved on, look again")
        }
        other => Remedy::wait(format!("state {}: look again", other.as_str())),
    }
}

fn holds_advisory(lookup: &Lookup<'_>, session: &Session) -> bool {
    lookup.snapshot.locks.rows().iter().any(|lock| {
        lock.granted
            && lock.pid == Some(session.pid())
            && matches!(lock.tag, LockTag::Advisory { .. })
    })
}
