//! Sends one approved signal: the identity is checked again in the statement that signals, and the end is awaited.

use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::future::join3;
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

use super::guard::ApprovedSignal;
use crate::model::{Millis, Outcome, Signal, Timestamp, Verb};
use crate::source::postgres::chain;

/// Each statement in a transaction of its own: `pg_stat_activity` is the same all through one.
const BEGIN: &str = "BEGIN READ ONLY; SET LOCAL statement_timeout = '5s'; SET LOCAL lock_timeout = '300ms'; \
SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL application_name = 'stanch'";

/// What must still hold for the session itself, in the same statement: the guard's rules may have been judged minutes ago.
/// The function stands in the select list only: where the condition doesn't hold, it isn't called.
///
/// PostgreSQL copies the state of all its backends before a row of it can be read (0.03 ms for ten sessions, 0.5 ms for 460),
/// and meanwhile they go on. Of a transaction that writes, the last thing before the signal is therefore a look at whether
/// its id is in progress, which the server knows without a copy; `sent` is null where it isn't. Backends have ids of 32
/// bits, `txid_status` (12 and newer) wants the epoch too: that of the next id, or of the one that is less than 2³¹ away.
macro_rules! statement {
    ($function:literal, $more:literal) => {
        concat!(
            "SELECT CASE WHEN $3 IS NULL OR a.backend_xid IS NULL OR pg_catalog.txid_status(n.xid - \
             ((n.xid - a.backend_xid::pg_catalog.text::pg_catalog.int8 + 2147483648 & 4294967295) - 2147483648)) = 'in progress' \
             THEN pg_catalog.",
            $function,
            "(a.pid) END AS sent FROM pg_catalog.pg_stat_get_activity($1::pg_catalog.int4) a, \
             (SELECT pg_catalog.txid_snapshot_xmax(pg_catalog.txid_current_snapshot()) AS xid) n \
             WHERE a.pid = $1 AND a.backend_start = $2 \
             AND ($3::pg_catalog.timestamptz IS NULL OR a.xact_start = $3) \
             AND a.usesysid IS NOT DISTINCT FROM $5::pg_catalog.oid AND a.datid IS NOT DISTINCT FROM $6::pg_catalog.oid \
             AND coalesce(a.application_name <> ALL ($7::pg_catalog.text[]), true) \
             AND ($8::pg_catalog.bool OR pg_catalog.lower(a.wait_event) IS DISTINCT FROM 'syncrep') \
             AND a.backend_type = 'client backend' AND a.pid <> pg_catalog.pg_backend_pid() ",
            $more
        )
    };
}

const CANCEL: &str = statement!(
    "pg_cancel_backend",
    "AND a.query_start = $4::pg_catalog.timestamptz AND a.state = 'active'"
);
const TERMINATE: &str = statement!(
    "pg_terminate_backend",
    "AND ($4::pg_catalog.timestamptz IS NULL OR a.state_change = $4)"
);
const LOOK: &str = "SELECT a.backend_start, a.xact_start, a.query_start, a.state, a.usesysid, a.datid, \
coalesce(a.application_name, '') AS application_name, a.wait_event_type || '/' || a.wait_event AS wait \
FROM pg_catalog.pg_stat_get_activity($1::pg_catalog.int4) a WHERE a.pid = $1";

const ENDED: &str = "its transaction had ended by itself";

/// Longer than any of the statement's own bounds.
const ANSWER: Duration = Duration::from_secs(8);
/// Most are gone at once; who isn't is looked at less and less often.
const LOOK_FIRST: Duration = Duration::from_millis(1);
const LOOK_AT_MOST: Duration = Duration::from_millis(100);

/// Sends it and waits until the session (of a cancel: the statement) is seen to be gone, for `wait` at most, and no
/// longer once `stop` says so.
pub async fn send(
    client: &Client,
    approved: &ApprovedSignal,
    wait: Duration,
    stop: &dyn Fn() -> bool,
) -> (Outcome, Millis) {
    let started = Instant::now();
    let outcome = match signal(client, approved.signal()).await {
        Ok(Sent::Yes) => gone(client, approved.signal(), wait, stop).await,
        Ok(Sent::No) => changed(client, approved.signal()).await,
        Ok(Sent::Over) => Outcome::Changed(ENDED.into()),
        Err(outcome) => outcome,
    };
    (outcome, Millis::from(started.elapsed()))
}

type Params<'a> = &'a [(&'a (dyn ToSql + Sync), Type)];

async fn rows(client: &Client, sql: &str, params: Params<'_>) -> Result<Vec<Row>, Outcome> {
    // In one flight, in this order; whatever comes of it, nothing is kept open.
    let work = join3(
        client.batch_execute(BEGIN),
        client.query_typed(sql, params),
        client.batch_execute("ROLLBACK"),
    );
    match timeout(ANSWER, work).await {
        // If BEGIN failed, the statement still ran by itself, without the local timeouts.
        Ok((_, rows, _)) => rows.map_err(|error| fault(&error)),
        Err(_) => Err(Outcome::Failed(format!(
            "no answer from the server within {} s: whether the signal was sent isn't known",
            ANSWER.as_secs()
        ))),
    }
}

/// The server's reason, with the detail that names what is missing (16 and newer).
fn fault(error: &tokio_postgres::Error) -> Outcome {
    let Some(db) = error.as_db_error() else {
        return Outcome::Failed(format!(
            "{}: whether the signal was sent isn't known",
            chain(error)
        ));
    };
    let detail = db
        .detail()
        .map_or(String::new(), |detail| format!(": {detail}"));
    let text = format!("{}{detail} ({})", db.message(), db.code().code());
    match db.code().code() {
        "42501" => Outcome::Refused(text),
        _ => Outcome::Failed(text),
    }
}

enum Sent {
    Yes,
    /// The condition didn't hold, or the process was no more.
    No,
    /// The condition held, and a moment later the transaction had ended.
    Over,
}

async fn signal(client: &Client, s: &Signal) -> Result<Sent, Outcome> {
    let at = |time: Option<Timestamp>| time.map(Timestamp::utc);
    let (sql, last) = match s.verb {
        Verb::Cancel => (CANCEL, s.query_start),
        Verb::Terminate => (TERMINATE, s.state_change),
    };
    let (pid, start, xact, last) = (
        s.id.pid.0,
        at(s.id.backend_start),
        at(s.xact_start),
        at(last),
    );
    let (user, database) = (s.usesysid.map(|oid| oid.0), s.datid.map(|oid| oid.0));
    let params: Params<'_> = &[
        (&pid, Type::INT4),
        (&start, Type::TIMESTAMPTZ),
        (&xact, Type::TIMESTAMPTZ),
        (&last, Type::TIMESTAMPTZ),
        (&user, Type::OID),
        (&database, Type::OID),
        (&s.protected_applications, Type::TEXT_ARRAY),
        (&s.allow_syncrep, Type::BOOL),
    ];
    let rows = rows(client, sql, params).await?;
    Ok(
        match rows.first().map(|row| row.get::<_, Option<bool>>("sent")) {
            Some(Some(true)) => Sent::Yes,
            Some(None) => Sent::Over,
            // The process ended between the look and the signal: the server has said so in a warning.
            Some(Some(false)) | None => Sent::No,
        },
    )
}

/// A backend as it is now.
struct Now {
    backend_start: Option<DateTime<Utc>>,
    xact_start: Option<DateTime<Utc>>,
    query_start: Option<DateTime<Utc>>,
    active: bool,
    wait: Option<String>,
    /// Login and database are still those that were approved.
    same_client: bool,
    protected: bool,
}

async fn look(client: &Client, s: &Signal) -> Result<Option<Now>, Outcome> {
    let rows = rows(client, LOOK, &[(&s.id.pid.0, Type::INT4)]).await?;
    Ok(rows.first().map(|row| Now {
        backend_start: row.get("backend_start"),
        xact_start: row.get("xact_start"),
        query_start: row.get("query_start"),
        active: row.get::<_, Option<&str>>("state") == Some("active"),
        wait: row.get("wait"),
        same_client: row.get::<_, Option<u32>>("usesysid") == s.usesysid.map(|oid| oid.0)
            && row.get::<_, Option<u32>>("datid") == s.datid.map(|oid| oid.0),
        protected: s
            .protected_applications
            .iter()
            .any(|name| name == row.get::<_, &str>("application_name")),
    }))
}

/// Why the condition didn't hold.
async fn changed(client: &Client, s: &Signal) -> Outcome {
    let now = match look(client, s).await {
        Ok(now) => now,
        Err(outcome) => return outcome,
    };
    let same = |a: Option<DateTime<Utc>>, b: Option<Timestamp>| a == b.map(Timestamp::utc);
    match now {
        None => Outcome::Changed("it had ended by itself".into()),
        Some(now) if now.backend_start.is_none() => Outcome::Refused(
            "who it is is hidden from this login by now: GRANT pg_read_all_stats".into(),
        ),
        Some(now) if !same(now.backend_start, s.id.backend_start) => {
            Outcome::Changed("the pid is another session's by now".into())
        }
        Some(now) if !now.same_client => {
            Outcome::Changed("the session is another login's by now".into())
        }
        Some(now) if now.protected => Outcome::Refused(
            "its application is protected in stanch.yaml: it has taken on the name since".into(),
        ),
        Some(now) if !s.allow_syncrep && waits_for_standby(now.wait.as_deref()) => {
            Outcome::Changed(
                "it waits for a synchronous standby by now: its commit stands (--allow-syncrep)"
                    .into(),
            )
        }
        Some(now) if s.xact_start.is_some() && !same(now.xact_start, s.xact_start) => {
            Outcome::Changed(ENDED.into())
        }
        Some(_) if s.state_change.is_some() && s.xact_start.is_none() => {
            Outcome::Changed("it has left its failed transaction by itself".into())
        }
        Some(_) if s.state_change.is_some() => {
            Outcome::Changed("it goes on in its transaction".into())
        }
        Some(_) => Outcome::Changed("its statement had ended by itself".into()),
    }
}

fn waits_for_standby(wait: Option<&str>) -> bool {
    wait.is_some_and(|wait| wait.to_lowercase().ends_with("/syncrep"))
}

/// `true` from the server only says that the signal was sent.
async fn gone(client: &Client, s: &Signal, wait: Duration, stop: &dyn Fn() -> bool) -> Outcome {
    let give_up = Instant::now() + wait;
    let mut pause = LOOK_FIRST;
    loop {
        let now = match look(client, s).await {
            Ok(now) => now,
            Err(Outcome::Failed(why)) => {
                return Outcome::Failed(format!("the signal was sent, and then: {why}"));
            }
            Err(other) => return other,
        };
        if now.as_ref().is_some_and(|now| now.backend_start.is_none()) {
            return Outcome::Failed(
                "the signal was sent; its end can't be seen from this login: GRANT pg_read_all_stats".into(),
            );
        }
        let still = now.filter(|now| now.backend_start == s.id.backend_start.map(Timestamp::utc));
        let still = match (s.verb, still) {
            (_, None) => None,
            (Verb::Terminate, still) => still,
            (Verb::Cancel, Some(now)) => {
                let runs = now.active && now.query_start == s.query_start.map(Timestamp::utc);
                runs.then_some(now)
            }
        };
        let Some(still) = still else {
            return Outcome::Gone;
        };
        if stop() {
            return Outcome::StillAlive(
                "the signal was sent; its end isn't awaited: stopped by the operator".into(),
            );
        }
        if Instant::now() >= give_up {
            let on = still
                .wait
                .map_or(String::new(), |wait| format!(", in {wait}"));
            return Outcome::StillAlive(format!(
                "the signal was sent; still there after {}{on}",
                Millis::from(wait)
            ));
        }
        sleep(pause).await;
        pause = (pause * 2).min(LOOK_AT_MOST);
    }
}
