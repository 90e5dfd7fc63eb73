//! One attempt to get in, with a deadline over all of it.

use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rand::seq::SliceRandom as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_postgres::config::{self, SslMode, SslNegotiation};
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::TlsConnect;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

use super::classify::classify;
use super::conninfo::options::{self, ChannelBinding, Negotiation};
use super::conninfo::{ConnSpec, Plan, SessionAttrs};
use super::dial::{tcp, unix};
use super::encoding::Encoding;
use super::refused::{ConnectError, ConnectFault, Failure, Place, Stage};
use super::sniff::Sniffed;
use super::tls::{self, Handed, Way};
use crate::model::{Parameter, SlotRefusal, Tls};

/// An open connection: the only one of this run.
pub struct Connected {
    pub client: Client,
    /// The login that got in.
    pub spec: ConnSpec,
    /// The process id that was given out at the start; not the backend's own behind a pooler.
    pub key_pid: i32,
    /// The server's major version, as it reported at the start.
    pub major: u32,
    /// Of this database, as the server reported at the start.
    pub encoding: Encoding,
    /// What protects the connection; `None`: in clear.
    pub tls: Option<Tls>,
    /// What was given and what stands by default; empty where only a place was asked for.
    pub parameters: Vec<Parameter>,
    /// `-d` for the next command, where host, port, user and database aren't the whole way.
    pub conninfo: Option<String>,
    /// The logins that were refused for want of a slot before, and when.
    pub refused: Vec<(Instant, SlotRefusal)>,
    /// The task that moves bytes; it ends once the goodbye is sent.
    moving: JoinHandle<()>,
}

/// Refusals with their age.
pub(super) fn aged(refused: &[(Instant, SlotRefusal)]) -> Vec<SlotRefusal> {
    let ms = |at: &Instant| u64::try_from(at.elapsed().as_millis()).unwrap_or(u64::MAX);
    refused
        .iter()
        .map(|(at, refusal)| SlotRefusal {
            ms_before: ms(at),
            ..refusal.clone()
        })
        .collect()
}

/// A server that takes no goodbye isn't waited for.
const GOODBYE: Duration = Duration::from_millis(500);

impl Connected {
    /// The refusals before, as old as they are now.
    pub fn refusals(&self) -> Vec<SlotRefusal> {
        aged(&self.refused)
    }

    /// Says goodbye and waits until the server has let go, so that the slot is free and the log shows no lost client.
    pub async fn close(self) {
        let Self { client, moving, .. } = self;
        drop(client);
        // Whether it was taken makes no difference to what was read.
        let _ = timeout(GOODBYE, moving).await;
    }
}

/// One place, with one deadline over all of it: name lookup, TCP, TLS, login, first answer.
///
/// # Errors
/// The failure, and where.
pub async fn attempt(
    spec: &ConnSpec,
    connect_timeout: Duration,
) -> Result<Connected, ConnectError> {
    attempt_for(spec, connect_timeout, SessionAttrs::Any, false).await
}

/// The places of a plan in turn, as libpq goes on: past a host that can't be reached, that isn't ready or isn't of the
/// wanted kind; a refused login ends it.
pub(super) async fn attempt_plan(
    plan: &Plan,
    connect_timeout: Duration,
) -> Result<Connected, ConnectError> {
    let mut order: Vec<&ConnSpec> = plan.places.iter().collect();
    if plan.balanced {
        order.shuffle(&mut rand::rng());
    }
    // `prefer-standby` looks for a standby first, and then takes what there is.
    let passes: &[SessionAttrs] = match plan.session {
        SessionAttrs::PreferStandby => &[SessionAttrs::Standby, SessionAttrs::Any],
        ref wanted => std::slice::from_ref(wanted),
    };
    let mut failures: Vec<ConnectError> = Vec::new();
    for wanted in passes {
        let mut of_other_kind = Vec::new();
        for spec in order {
            match attempt_for(spec, connect_timeout, *wanted, plan.balanced).await {
                Ok(connected) => {
                    return Ok(Connected {
                        parameters: plan.parameters.clone(),
                        conninfo: plan.conninfo(&connected.spec),
                        ..connected
                    });
                }
                Err(error) => {
                    let next = error.fault.leaves_other_hosts();
                    if error.fault == ConnectFault::OtherKind {
                        of_other_kind.push(spec);
                    }
                    failures.push(error);
                    if !next {
                        return Err(ConnectError::of_all(failures));
                    }
                }
            }
        }
        // Who couldn't be reached isn't tried again.
        order = of_other_kind;
    }
    Err(ConnectError::of_all(failures))
}

/// The admin console of a pooler, at the first of the places that answers: no session of a server, so nothing but SHOW is sent.
///
/// # Errors
/// The failure of the last one, with the others.
pub async fn console(plan: &Plan, connect_timeout: Duration) -> Result<Connected, ConnectError> {
    let mut failures = Vec::new();
    for spec in &plan.places {
        match attempt_as(spec, connect_timeout, First::Console, false).await {
            Ok(connected) => return Ok(connected),
            Err(error) => failures.push(error),
        }
    }
    Err(ConnectError::of_all(failures))
}

/// What is asked first.
#[derive(Clone, Copy)]
enum First {
    /// Which kind of server it is.
    Kind(SessionAttrs),
    /// Which pooler it is.
    Console,
}

/// PostgreSQL takes `SHOW VERSION` for a setting that it doesn't have (42704): then this is no PgBouncer.
fn no_console(error: tokio_postgres::Error) -> Failure {
    if error.code() == Some(&SqlState::UNDEFINED_OBJECT) {
        let why = "that is no console of PgBouncer (its database is called pgbouncer)";
        return (ConnectFault::Other, why.into());
    }
    classify(error)
}

async fn attempt_for(
    spec: &ConnSpec,
    connect_timeout: Duration,
    wanted: SessionAttrs,
    balanced: bool,
) -> Result<Connected, ConnectError> {
    attempt_as(spec, connect_timeout, First::Kind(wanted), balanced).await
}

async fn attempt_as(
    spec: &ConnSpec,
    connect_timeout: Duration,
    first: First,
    balanced: bool,
) -> Result<Connected, ConnectError> {
    let stage = Cell::new(Stage::Dns);
    let failed = |fault, detail| ConnectError {
        fault,
        detail,
        place: Place::of(spec),
        refusals: Vec::new(),
        others: Vec::new(),
    };
    let work = async {
        let connected = open(spec, &stage, connect_timeout, balanced).await?;
        stage.set(Stage::FirstAnswer);
        let client = &connected.client;
        match first {
            First::Kind(wanted) => first_answer(client, wanted).await?,
            First::Console => {
                let answer = client.simple_query("SHOW VERSION").await;
                answer.map(drop).map_err(no_console)?;
            }
        }
        Ok(connected)
    };
    match timeout(connect_timeout, work).await {
        Ok(Ok(connected)) => Ok(connected),
        Ok(Err((fault, detail))) => Err(failed(fault, detail)),
        Err(_) => {
            let stage = stage.get();
            let during = match stage {
                Stage::Dns => "looking up the host name",
                Stage::Tcp => "opening the connection",
                Stage::Tls => "agreeing on TLS",
                Stage::Login => "logging in",
                Stage::FirstAnswer => "waiting for the first answer",
            };
            let detail = format!(
                "gave up after {} s while {during}",
                connect_timeout.as_secs_f64()
            );
            Err(failed(ConnectFault::Timeout(stage), detail))
        }
    }
}

/// In clear and with TLS, in the order of the mode; `prefer` and `allow` go on where libpq does.
async fn open(
    spec: &ConnSpec,
    stage: &Cell<Stage>,
    connect_timeout: Duration,
    balanced: bool,
) -> Result<Connected, Failure> {
    if let Some(path) = spec.socket() {
        // A socket needs no TLS, whatever the mode.
        stage.set(Stage::Tcp);
        let stream = unix(&path, spec).await?;
        stage.set(Stage::Login);
        return log_in(spec, stream, NoTls, SslMode::Disable, None).await;
    }
    let mut before: Option<Failure> = None;
    for way in tls::ways(spec.options.sslmode) {
        let stream = tcp(spec, stage, connect_timeout, balanced).await?;
        let done = match way {
            Way::Clear => {
                stage.set(Stage::Login);
                log_in(spec, stream, NoTls, SslMode::Disable, None).await
            }
            Way::Tls => encrypted(spec, stage, stream).await,
        };
        match done {
            Ok(connected) => return Ok(connected),
            // The other way may be let in where this one isn't.
            Err(failure @ (ConnectFault::Login | ConnectFault::Pooler | ConnectFault::Tls, _))
                if before.is_none() =>
            {
                before = Some(failure);
            }
            Err(failure) => return Err(both(before, failure)),
        }
    }
    Err(before.unwrap_or((ConnectFault::Other, "no way to connect".into())))
}

/// Where a second way failed too, the first one's failure is told with it.
fn both(before: Option<Failure>, (fault, detail): Failure) -> Failure {
    match before {
        Some((_, first)) if first != detail => (fault, format!("{detail}; before: {first}")),
        _ => (fault, detail),
    }
}

/// Asks for TLS, unless it is begun at once; a server without it may go on in clear where the mode allows that.
async fn encrypted(
    spec: &ConnSpec,
    stage: &Cell<Stage>,
    mut stream: TcpStream,
) -> Result<Connected, Failure> {
    // The length of the message, and the number that PostgreSQL takes for this question (SSLRequest).
    const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
    stage.set(Stage::Tls);
    if spec.options.negotiation == Negotiation::Postgres {
        let mut answer = [0];
        let asked = async {
            stream.write_all(&SSL_REQUEST).await?;
            stream.read_exact(&mut answer).await
        };
        asked
            .await
            .map_err(|error| (ConnectFault::Other, format!("no answer about TLS: {error}")))?;
        match answer[0] {
            b'S' => {}
            b'N' if spec.options.sslmode <= options::SslMode::Prefer => {
                stage.set(Stage::Login);
                return log_in(spec, stream, NoTls, SslMode::Disable, None).await;
            }
            b'N' => return Err((ConnectFault::Tls, "the server has no TLS".into())),
            // Whoever sends an error here may be anybody: nothing more is told to it.
            _ => {
                return Err((
                    ConnectFault::Other,
                    "the server doesn't answer about TLS".into(),
                ));
            }
        }
    }
    let (stream, facts) = tls::encrypt(spec, stream)
        .await
        .map_err(|error| (ConnectFault::Tls, error.to_string()))?;
    stage.set(Stage::Login);
    log_in(spec, stream, Handed, SslMode::Require, Some(facts)).await
}

/// A pooler logs a client in by itself: only an answer tells that there is a server behind it.
async fn first_answer(client: &Client, wanted: SessionAttrs) -> Result<(), Failure> {
    const KIND: &str = "SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('transaction_read_only')";
    if wanted == SessionAttrs::Any {
        return client.simple_query("").await.map(drop).map_err(classify);
    }
    let answer = client.simple_query(KIND).await.map_err(classify)?;
    let row = answer.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some((row.get(0) == Some("t"), row.get(1) == Some("on"))),
        _ => None,
    });
    let Some((standby, read_only)) = row else {
        return Err((
            ConnectFault::Other,
            "the server doesn't tell what it is".into(),
        ));
    };
    let (fits, is) = match wanted {
        SessionAttrs::Any | SessionAttrs::PreferStandby => (true, ""),
        SessionAttrs::Primary => (!standby, "a standby"),
        SessionAttrs::Standby => (standby, "a primary"),
        SessionAttrs::ReadWrite => (!read_only, "read-only"),
        SessionAttrs::ReadOnly => (read_only, "not read-only"),
    };
    if fits {
        Ok(())
    } else {
        let wanted = wanted.as_str();
        Err((
            ConnectFault::OtherKind,
            format!("it is {is}, and target_session_attrs is {wanted}"),
        ))
    }
}

/// Logs in over a stream on which TLS is settled.
async fn log_in<S, T>(
    spec: &ConnSpec,
    stream: S,
    handed: T,
    mode: SslMode,
    tls: Option<Tls>,
) -> Result<Connected, Failure>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: TlsConnect<Sniffed<S>>,
    T::Stream: Send + 'static,
{
    let mut config = Config::new();
    // No application_name and no other setting at the start: behind a transaction pooler they would stay on the
    // server connection. The read's own transaction sets what it needs.
    config.user(&spec.user).dbname(&spec.database);
    // The handshake is done: to the driver it is one that begins, and ends, at once.
    config
        .ssl_mode(mode)
        .ssl_negotiation(SslNegotiation::Direct);
    config.channel_binding(match spec.options.channel_binding {
        ChannelBinding::Disable => config::ChannelBinding::Disable,
        ChannelBinding::Prefer => config::ChannelBinding::Prefer,
        ChannelBinding::Require => config::ChannelBinding::Require,
    });
    config.host("localhost");
    if let Some(password) = &spec.password {
        config.password(password.expose());
    }
    let (stream, key_pid) = Sniffed::new(stream, spec.options.require_auth.clone());
    let (client, connection) = config.connect_raw(stream, handed).await.map_err(classify)?;
    let major = major_of(connection.parameter("server_version").unwrap_or_default());
    let encoding = Encoding::named(connection.parameter("server_encoding").unwrap_or_default());
    // Ends by itself when the client is dropped; its error shows as that of the query that was under way.
    let moving = tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(Connected {
        client,
        spec: spec.clone(),
        key_pid: key_pid.load(Ordering::Relaxed),
        major,
        encoding,
        tls,
        parameters: Vec::new(),
        conninfo: None,
        refused: Vec::new(),
        moving,
    })
}

/// `15.18 (Debian …)`, `18beta1` → 15, 18; 0 when it can't be told, and then the oldest queries are used.
fn major_of(version: &str) -> u32 {
    let digits = version
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(version.len());
    version[..digits].parse().unwrap_or(0)
}
