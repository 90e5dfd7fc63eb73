//! One round of reads: one pipelined read-only transaction with local timeouts, each part in a savepoint of its own.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use futures_util::future::{join, join3, join4, join5};
use tokio::time::Instant;
use tokio_postgres::types::Type;

use super::catalog;
use super::connect::Connected;
use super::encoding::Encodings;
use super::query;
use super::reader::{BEGIN, COMMIT, Fault, Params, Reader, STATEMENT_TIMEOUT, began, give_up};
use super::refused::Place;
use super::rows::{self, Cells, Names, RowError};
use super::waiters;
use crate::bundle;
use crate::model::{
    Clock, Link, Lock, Oid, Part, Pid, RedactionLevel, SNAPSHOT_FORMAT, Section, Server,
    ServerRole, Snapshot, Target, Timestamp, WATCHED_SETTINGS,
};

/// How far a round may go.
#[derive(Clone, Copy, Debug)]
pub struct RoundOptions {
    /// `statement_timeout` of each read.
    pub statement_timeout: Duration,
    /// Over the whole round, on this side: some waits ignore `statement_timeout`.
    pub deadline: Duration,
    /// What is taken out of what is read.
    pub redaction: RedactionLevel,
}

/// The parts that a report needs. `server` and `login` are always read.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    of: &'static [Part],
    rows: bool,
}

impl Parts {
    pub const ALL: Self = Self::of(&Part::ALL);
    /// What a file holds: the rows of every built-in query too.
    pub const TO_KEEP: Self = Self {
        of: &Part::ALL,
        rows: true,
    };

    pub const fn of(parts: &'static [Part]) -> Self {
        Self {
            of: parts,
            rows: false,
        }
    }

    pub(super) fn has(self, part: Part) -> bool {
        self.of.contains(&part)
    }

    pub(super) fn has_rows(self) -> bool {
        self.rows
    }
}

/// A round that told nothing: not even which server this is.
#[derive(Debug, thiserror::Error)]
#[error("the read failed: {message} ({code})\n  at: {place}")]
pub struct RoundError {
    pub place: Box<Place>,
    pub code: String,
    pub message: String,
    /// The connection is gone, so another round on it is in vain.
    pub connection_lost: bool,
}

/// What the server section reads: facts of the server, and where and when this is.
struct ServerRow {
    server: Server,
    taken_at: Timestamp,
    version: String,
    role: ServerRole,
    database: String,
    user: String,
}

/// Reads the parts in one transaction; what fails, fails alone.
///
/// # Errors
/// When the transaction can't be begun, or the server section can't be read: without it there is no clock to tell ages
/// by. The transaction is ended all the same.
pub async fn round(
    connected: &Connected,
    parts: Parts,
    options: RoundOptions,
) -> Result<Snapshot, RoundError> {
    let read = read_round(connected, parts, options).await;
    if read.is_err() {
        give_up(&connected.client).await;
    }
    read
}

async fn read_round(
    connected: &Connected,
    parts: Parts,
    options: RoundOptions,
) -> Result<Snapshot, RoundError> {
    let reader = Reader {
        client: &connected.client,
        major: connected.major,
        encoding: connected.encoding,
        deadline: Instant::now() + options.deadline,
        parts,
        kept: RefCell::default(),
    };
    let timeout = format!("{}ms", options.statement_timeout.as_millis());
    let watched: &[&str] = &WATCHED_SETTINGS;
    let timeout: Params<'_> = &[(&timeout, Type::TEXT)];
    let watched: Params<'_> = &[(&watched, Type::TEXT_ARRAY)];
    let query_size = Cell::new(None);
    // The first flight: all of it is on its way, in this order, before the first answer is awaited.
    let begin = join(
        reader.command(BEGIN),
        reader.rows(STATEMENT_TIMEOUT, timeout),
    );
    let facts = join4(
        reader.read(&catalog::SERVER, &[], |c| server_row(c, &query_size)),
        reader.read(&catalog::LOGIN, &[], rows::login),
        reader.read(&catalog::DATABASES, &[], rows::database),
        reader.read(&catalog::ROLES, &[], rows::role),
    );
    let state = join3(
        reader.raw_part(Part::Activity, &catalog::ACTIVITY, &[]),
        reader.part(Part::Locks, &catalog::LOCKS, &[], rows::lock),
        reader.raw_part(Part::Prepared, &catalog::PREPARED, &[]),
    );
    let slow = join3(
        reader.part(Part::Settings, &catalog::SETTINGS, watched, rows::setting),
        reader.part(
            Part::Overrides,
            &catalog::OVERRIDES,
            &[],
            rows::setting_override,
        ),
        reader.part(Part::Slots, &catalog::SLOTS, &[], rows::slot),
    );
    let rest = join3(
        reader.only_kept(&catalog::WAITS),
        reader.only_kept(&catalog::REPLICATION),
        reader.only_kept(&catalog::PROGRESS),
    );
    let flight = join5(
        begin,
        facts,
        state,
        slow,
        join(rest, async {
            if !parts.has(Part::Blocking) && !parts.has(Part::Relations) {
                reader.command(COMMIT).await.ok();
            }
        }),
    );
    let (
        begun,
        (server, login, databases, roles),
        (activity, locks, prepared),
        (settings, mut overrides, slots),
        _,
    ) = flight.await;
    began(begun).map_err(|fault| fault.of_round(connected))?;
    let server =
        first_row(server).map_err(|(code, message)| Fault { code, message }.of_round(connected))?;

    // The second flight: what depends on the locks, and the end.
    let datid = databases
        .rows()
        .iter()
        .find(|d| d.name == server.database)
        .map(|d| d.oid);
    let waiters: Vec<i32> = waiters::to_ask(locks.rows())
        .into_iter()
        .map(|pid| pid.0)
        .collect();
    let relations = locked_relations(&locks, datid);
    let waiters: Params<'_> = &[(&waiters, Type::INT4_ARRAY)];
    let relations: Params<'_> = &[(&relations, Type::OID_ARRAY)];
    let (blocking, relations) = if parts.has(Part::Blocking) || parts.has(Part::Relations) {
        let second = join3(
            reader.part(
                Part::Blocking,
                &catalog::BLOCKING,
                waiters,
                rows::blocked_by,
            ),
            reader.part(
                Part::Relations,
                &catalog::RELATIONS,
                relations,
                rows::relation,
            ),
            reader.command(COMMIT),
        );
        let (blocking, relations, _) = second.await;
        (blocking, relations)
    } else {
        (Section::skipped(NOT_ASKED), Section::skipped(NOT_ASKED))
    };

    let names = Names::new(databases.rows(), roles.rows());
    let encodings = Encodings::new(connected.encoding, databases.rows());
    let raw = (activity, prepared);
    let mut activity = raw.0.decode(&catalog::ACTIVITY, connected.encoding, |c| {
        rows::session(c, query_size.get(), &encodings)
    });
    let prepared = raw.1.decode(&catalog::PREPARED, connected.encoding, |c| {
        rows::prepared(c, &names, &encodings)
    });
    reader.keep(&catalog::ACTIVITY, raw.0);
    reader.keep(&catalog::PREPARED, raw.1);
    let kept = reader.kept.take().into_iter();
    let queries = kept.map(|(topic, raw)| {
        let rows = query::kept(topic, raw, &encodings, options.redaction);
        (topic.name.to_owned(), rows)
    });
    if let Some(sessions) = activity.get_mut() {
        rows::name_sessions(sessions, &names);
    }
    if let Some(overrides) = overrides.get_mut() {
        overrides.retain(|o| WATCHED_SETTINGS.contains(&o.name.as_str()));
    }
    let mut snapshot = Snapshot {
        format: SNAPSHOT_FORMAT.into(),
        taken_at: server.taken_at,
        clock: Clock::Server,
        redaction: bundle::no_redaction(options.redaction),
        target: Target {
            name: connected.spec.name.clone(),
            host: connected.spec.host.clone(),
            port: connected.spec.port,
            conninfo: connected.conninfo.clone(),
            database: server.database,
            user: server.user,
            server_version: Some(server.version),
            role: Some(server.role),
            via_pooler: (connected.key_pid != 0)
                .then_some(connected.key_pid != server.server.own_pid.0),
        },
        link: Some(Link {
            parameters: connected.parameters.clone(),
            tls: connected.tls.clone(),
        }),
        refusals: connected.refusals(),
        server: Section::Collected(Server {
            datid,
            ..server.server
        }),
        login: single(login),
        activity,
        databases,
        roles,
        locks,
        blocking,
        relations,
        prepared,
        settings,
        overrides,
        slots,
        redis: None,
        pooler: None,
        queries: queries.collect(),
    };
    bundle::redact(&mut snapshot);
    Ok(snapshot)
}

pub(super) const NOT_ASKED: &str = "not part of this report";

/// Relations whose names this database knows: its own and the shared ones. An oid of another database may be
/// something else here.
fn locked_relations(locks: &Section<Vec<Lock>>, datid: Option<Oid>) -> Vec<u32> {
    let mut oids: Vec<u32> = locks
        .rows()
        .iter()
        .filter_map(|lock| lock.tag.relation())
        .filter(|(database, _)| database.0 == 0 || Some(*database) == datid)
        .map(|(_, relation)| relation.0)
        .collect();
    oids.sort_unstable();
    oids.dedup();
    oids
}

fn server_row(c: &Cells<'_>, query_size: &Cell<Option<i64>>) -> Result<ServerRow, RowError> {
    let count = |column| c.must::<i32>(column).map(i32::unsigned_abs);
    // The rows of activity, which come after this one, are judged by it.
    query_size.set(c.opt("query_size")?);
    Ok(ServerRow {
        server: Server {
            version_num: count("version_num")?,
            own_pid: Pid(c.must("own_pid")?),
            datid: None,
            started_at: c.time("started_at")?,
            max_connections: count("max_connections")?,
            superuser_reserved: count("superuser_reserved")?,
            reserved: c.opt::<i32>("reserved")?.unwrap_or(0).unsigned_abs(),
            provider_reserved: c.opt::<i32>("provider_reserved")?.map(i32::unsigned_abs),
            deadlock_timeout_ms: c.opt::<i64>("deadlock_timeout_ms")?.map(i64::unsigned_abs),
        },
        taken_at: c
            .time("taken_at")?
            .unwrap_or_else(|| Timestamp::new(chrono::DateTime::UNIX_EPOCH)),
        version: c.must_text("version")?,
        role: if c.must("in_recovery")? {
            ServerRole::Standby
        } else {
            ServerRole::Primary
        },
        database: c.must_text("database")?,
        user: c.must_text("user")?,
    })
}

fn first_row<T>(section: Section<Vec<T>>) -> Result<T, (String, String)> {
    match section {
        Section::Collected(mut rows) if !rows.is_empty() => Ok(rows.swap_remove(0)),
        Section::Collected(_) => Err(("no_row".into(), "the query gave no row".into())),
        Section::Skipped(why) => Err(("skipped".into(), why)),
        Section::Failed { code, message } => Err((code, message)),
    }
}

fn single<T>(section: Section<Vec<T>>) -> Section<T> {
    match section {
        Section::Skipped(why) => Section::Skipped(why),
        other => match first_row(other) {
            Ok(row) => Section::Collected(row),
            Err((code, message)) => Section::Failed { code, message },
        },
    }
}
