//! The read-only transaction and the reads in it: each bounded, each in a savepoint of its own.

use std::cell::RefCell;
use std::future::Future;

use futures_util::future::{join, join3, join4};
use tokio::time::{Instant, timeout_at};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

use super::catalog::{self, Topic};
use super::classify::chain;
use super::collect::{NOT_ASKED, Parts, RoundError, RoundOptions};
use super::connect::Connected;
use super::encoding::{Encoding, Encodings};
use super::refused::Place;
use super::rows::{self, Cells, RowError};
use crate::model::{Part, Section};

/// `lock_timeout` stays under the default `deadlock_timeout` of 1 s, or a wait of ours would trigger its check.
/// The encoding keeps the server from converting (and failing on) texts of other databases.
pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY NOT DEFERRABLE; \
SET LOCAL lock_timeout = '300ms'; \
SET LOCAL idle_in_transaction_session_timeout = '30s'; \
SET LOCAL search_path = pg_catalog, pg_temp; \
SET LOCAL client_encoding = 'SQL_ASCII'; \
SET LOCAL application_name = 'stanch'";
pub(super) const STATEMENT_TIMEOUT: &str =
    "SELECT pg_catalog.set_config('statement_timeout', $1, true)";
pub(super) const SAVEPOINT: &str = "SAVEPOINT part";
/// Whatever the read did: a failed one would fail all later ones with 25P02.
pub(super) const RELEASE: &str = "ROLLBACK TO SAVEPOINT part; RELEASE SAVEPOINT part";
pub(super) const COMMIT: &str = "COMMIT";

pub(super) type Params<'a> = &'a [(&'a (dyn ToSql + Sync), Type)];

/// What a query gave, as it came.
pub(super) type Kept = (&'static Topic, Section<Vec<Row>>);

/// Sends reads; each is bounded by the round's deadline.
pub(super) struct Reader<'a> {
    pub client: &'a Client,
    pub major: u32,
    /// Of the database that was connected to.
    pub encoding: Encoding,
    pub deadline: Instant,
    pub parts: Parts,
    /// What came, as it came, where that is wanted.
    pub kept: RefCell<Vec<Kept>>,
}

impl Reader<'_> {
    /// A command without a result. Its failure shows in the reads that follow it.
    pub async fn command(&self, sql: &str) -> Result<(), Fault> {
        self.bounded(self.client.batch_execute(sql)).await
    }

    pub async fn rows(&self, sql: &str, params: Params<'_>) -> Result<Vec<Row>, Fault> {
        self.bounded(self.client.query_typed(sql, params)).await
    }

    pub async fn bounded<T>(
        &self,
        work: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Fault> {
        match timeout_at(self.deadline, work).await {
            Ok(done) => done.map_err(Fault::of),
            Err(_) => Err(Fault {
                code: "deadline".into(),
                message: "no answer within the time for the whole round (--deadline)".into(),
            }),
        }
    }

    /// Savepoint, read, back to the savepoint: in one flight, whatever the read does.
    pub async fn raw(&self, topic: &Topic, params: Params<'_>) -> Section<Vec<Row>> {
        self.raw_sql(topic.sql(self.major), params).await
    }

    async fn raw_sql(&self, sql: &str, params: Params<'_>) -> Section<Vec<Row>> {
        match join3(
            self.command(SAVEPOINT),
            self.rows(sql, params),
            self.command(RELEASE),
        )
        .await
        .1
        {
            Ok(rows) => Section::Collected(rows),
            Err(fault) => fault.into(),
        }
    }

    pub async fn read<T>(
        &self,
        topic: &'static Topic,
        params: Params<'_>,
        one: impl Fn(&Cells<'_>) -> Result<T, RowError>,
    ) -> Section<Vec<T>> {
        let raw = self.raw(topic, params).await;
        let read = raw.decode(topic, self.encoding, one);
        self.keep(topic, raw);
        read
    }

    /// As it came, for a file: what was decoded already.
    pub fn keep(&self, topic: &'static Topic, raw: Section<Vec<Row>>) {
        if self.parts.has_rows() && !matches!(raw, Section::Skipped(_)) {
            self.kept.borrow_mut().push((topic, raw));
        }
    }

    /// What no report needs, only a file.
    pub async fn only_kept(&self, topic: &'static Topic) {
        if self.parts.has_rows() {
            let raw = self.raw(topic, &[]).await;
            self.keep(topic, raw);
        }
    }

    pub async fn raw_part(
        &self,
        part: Part,
        topic: &Topic,
        params: Params<'_>,
    ) -> Section<Vec<Row>> {
        if self.parts.has(part) {
            self.raw(topic, params).await
        } else {
            Section::skipped(NOT_ASKED)
        }
    }

    pub async fn part<T>(
        &self,
        part: Part,
        topic: &'static Topic,
        params: Params<'_>,
        one: impl Fn(&Cells<'_>) -> Result<T, RowError>,
    ) -> Section<Vec<T>> {
        if self.parts.has(part) {
            self.read(topic, params, one).await
        } else {
            Section::skipped(NOT_ASKED)
        }
    }
}

/// Why a read failed: the server's SQLSTATE, or the tool's own word.
pub(super) struct Fault {
    pub code: String,
    pub message: String,
}

impl Fault {
    /// The end of a whole round.
    pub fn of_round(self, connected: &Connected) -> RoundError {
        RoundError {
            place: Box::new(Place::of(&connected.spec)),
            code: self.code,
            message: self.message,
            connection_lost: connected.client.is_closed(),
        }
    }

    fn of(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(db) => Self {
                code: db.code().code().into(),
                message: db.message().into(),
            },
            None if error.is_closed() => Self {
                code: "closed".into(),
                message: "the connection was lost".into(),
            },
            None => Self {
                code: "client".into(),
                message: chain(&error),
            },
        }
    }
}

impl<T> From<Fault> for Section<T> {
    fn from(fault: Fault) -> Self {
        Self::Failed {
            code: fault.code,
            message: fault.message,
        }
    }
}

impl Section<Vec<Row>> {
    pub(super) fn decode<T>(
        &self,
        topic: &'static Topic,
        encoding: Encoding,
        one: impl Fn(&Cells<'_>) -> Result<T, RowError>,
    ) -> Section<Vec<T>> {
        match self {
            Self::Collected(rows) => match rows::decode(topic.name, rows, encoding, one) {
                Ok(values) => Section::Collected(values),
                Err(error) => Section::Failed {
                    code: "row".into(),
                    message: error.to_string(),
                },
            },
            Self::Skipped(why) => Section::Skipped(why.clone()),
            Self::Failed { code, message } => Section::Failed {
                code: code.clone(),
                message: message.clone(),
            },
        }
    }
}

/// One read in a transaction of the same kind, and the encodings that its texts are in.
///
/// # Errors
/// The server's SQLSTATE (or the tool's own word) and message.
pub(super) async fn one_read(
    connected: &Connected,
    sql: &str,
    params: Params<'_>,
    options: RoundOptions,
) -> Result<(Vec<Row>, Encodings), RoundError> {
    let deadline = Instant::now() + options.deadline;
    let reader = Reader {
        client: &connected.client,
        major: connected.major,
        encoding: connected.encoding,
        deadline,
        parts: Parts::ALL,
        kept: RefCell::default(),
    };
    let timeout = format!("{}ms", options.statement_timeout.as_millis());
    let timeout: Params<'_> = &[(&timeout, Type::TEXT)];
    let begin = join(
        reader.command(BEGIN),
        reader.rows(STATEMENT_TIMEOUT, timeout),
    );
    let (begun, databases, rows, _) = join4(
        begin,
        reader.read(&catalog::DATABASES, &[], rows::database),
        reader.raw_sql(sql, params),
        reader.command(COMMIT),
    )
    .await;
    began(begun).map_err(|fault| fault.of_round(connected))?;
    let encodings = Encodings::new(connected.encoding, databases.rows());
    match rows {
        Section::Collected(rows) => Ok((rows, encodings)),
        Section::Skipped(message) => Err(Fault {
            code: "skipped".into(),
            message,
        }
        .of_round(connected)),
        Section::Failed { code, message } => Err(Fault { code, message }.of_round(connected)),
    }
}

/// Without its bounds the transaction isn't read in: every read after a failed one would only say 25P02.
pub(super) fn began(begun: (Result<(), Fault>, Result<Vec<Row>, Fault>)) -> Result<(), Fault> {
    begun.0.and(begun.1.map(drop))
}

/// Ends the transaction of a round that was given up. The message goes out at once and is carried out behind what was
/// sent before; its answer isn't waited for, since the server may be the one that is silent.
pub(super) async fn give_up(client: &Client) {
    let _ = timeout_at(Instant::now(), client.batch_execute("ROLLBACK")).await;
}
