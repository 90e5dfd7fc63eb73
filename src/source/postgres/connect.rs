//! One attempt to get in, with a deadline over all of it.

use std::cell::Cell;
use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_postgres::error::{DbError, SqlState};
use tokio_postgres::{Client, Config, NoTls};

use super::conninfo::ConnSpec;
use super::refused::{ConnectError, ConnectFault, Place, Stage};
use super::sniff::Sniffed;
use crate::model::{SlotLimit, SlotRefusal};

/// An open connection: the only one of this run.
pub struct Connected {
    pub client: Client,
    /// The login that got in.
    pub spec: ConnSpec,
    /// The process id that was given out at the start; not the backend's own behind a pooler.
    pub key_pid: i32,
    /// The server's major version, as it reported at the start.
    pub major: u32,
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
const GOODBYE: Duration = Duration::from_millis(200);

impl Connected {
    /// The refusals before, as old as they are now.
    pub fn refusals(&self) -> Vec<SlotRefusal> {
        aged(&self.refused)
    }

    /// Says goodbye, so that the server frees the slot at once and its log shows no lost client.
    pub async fn close(self) {
        let Self { client, moving, .. } = self;
        drop(client);
        // Whether it was taken makes no difference to what was read.
        let _ = timeout(GOODBYE, moving).await;
    }
}

/// One attempt, with one deadline over all of it.
pub async fn attempt(
    spec: &ConnSpec,
    connect_timeout: Duration,
) -> Result<Connected, ConnectError> {
    let stage = Cell::new(Stage::Dns);
    let failed = |fault, detail| ConnectError {
        fault,
        detail,
        place: Place::of(spec),
        refusals: Vec::new(),
    };
    match timeout(connect_timeout, open(spec, &stage, connect_timeout)).await {
        Ok(Ok(connected)) => Ok(connected),
        Ok(Err((fault, detail))) => Err(failed(fault, detail)),
        Err(_) => {
            let stage = stage.get();
            let during = match stage {
                Stage::Dns => "looking up the host name",
                Stage::Tcp => "opening the connection",
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

type Failure = (ConnectFault, String);

async fn open(
    spec: &ConnSpec,
    stage: &Cell<Stage>,
    connect_timeout: Duration,
) -> Result<Connected, Failure> {
    let mut config = Config::new();
    // No application_name and no other setting at the start: behind a transaction pooler they would stay on the
    // server connection. The read's own transaction sets what it needs.
    config.user(&spec.user).dbname(&spec.database);
    if let Some(password) = &spec.password {
        config.password(password.expose());
    }
    let (client, key_pid, major, moving) = match spec.socket() {
        Some(path) => {
            stage.set(Stage::Tcp);
            let stream = UnixStream::connect(&path)
                .await
                .map_err(|e| network(&e, &path))?;
            stage.set(Stage::Login);
            log_in(&config, stream).await?
        }
        None => {
            let stream = tcp(spec, stage, connect_timeout).await?;
            stage.set(Stage::Login);
            log_in(&config, stream).await?
        }
    };
    stage.set(Stage::FirstAnswer);
    // A pooler logs a client in by itself: only an answer tells that there is a server behind it.
    client.simple_query("").await.map_err(classify)?;
    Ok(Connected {
        client,
        spec: spec.clone(),
        key_pid,
        major,
        refused: Vec::new(),
        moving,
    })
}

async fn tcp(
    spec: &ConnSpec,
    stage: &Cell<Stage>,
    connect_timeout: Duration,
) -> Result<TcpStream, Failure> {
    let addresses: Vec<_> = lookup_host((spec.host.as_str(), spec.port))
        .await
        .map_err(|e| (ConnectFault::Dns, e.to_string()))?
        .collect();
    stage.set(Stage::Tcp);
    let mut last = (ConnectFault::Dns, "no address".to_owned());
    // An address that swallows packets must not eat the time of the next one.
    let share = connect_timeout / u32::try_from(addresses.len() + 1).unwrap_or(2);
    for (n, address) in addresses.iter().enumerate() {
        let attempt = TcpStream::connect(address);
        let connected = match n + 1 < addresses.len() {
            true => timeout(share, attempt)
                .await
                .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())),
            false => attempt.await,
        };
        match connected {
            Ok(stream) => {
                // Many small messages go out in one flight; waiting to fill a packet would cost a round trip.
                stream
                    .set_nodelay(true)
                    .map_err(|e| network(&e, &address.to_string()))?;
                return Ok(stream);
            }
            Err(e) => last = network(&e, &address.to_string()),
        }
    }
    Err(last)
}

fn network(error: &io::Error, place: &str) -> Failure {
    (ConnectFault::Network, format!("{place}: {error}"))
}

async fn log_in<S>(
    config: &Config,
    stream: S,
) -> Result<(Client, i32, u32, JoinHandle<()>), Failure>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (stream, key_pid) = Sniffed::new(stream);
    let (client, connection) = config.connect_raw(stream, NoTls).await.map_err(classify)?;
    let major = major_of(connection.parameter("server_version").unwrap_or_default());
    // Ends by itself when the client is dropped; its error shows as that of the query that was under way.
    let moving = tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok((client, key_pid.load(Ordering::Relaxed), major, moving))
}

/// `15.18 (Debian …)`, `18beta1` → 15, 18; 0 when it can't be told, and then the oldest queries are used.
fn major_of(version: &str) -> u32 {
    let digits = version
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(version.len());
    version[..digits].parse().unwrap_or(0)
}

fn classify(error: tokio_postgres::Error) -> Failure {
    let Some(db) = error.as_db_error() else {
        let detail = chain(&error);
        // The driver's own words, which aren't localised.
        let fault = if detail.contains("password missing") {
            ConnectFault::Login
        } else {
            ConnectFault::Other
        };
        return (fault, detail);
    };
    let detail = format!("{} ({})", db.message(), db.code().code());
    let fault = match db.code() {
        code if *code == SqlState::TOO_MANY_CONNECTIONS => ConnectFault::NoSlot(slot_limit(db)),
        code if *code == SqlState::CANNOT_CONNECT_NOW => ConnectFault::NotReady,
        code if *code == SqlState::INVALID_PASSWORD
            || *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION =>
        {
            ConnectFault::Login
        }
        code if *code == SqlState::INVALID_CATALOG_NAME => ConnectFault::NoDatabase,
        code if *code == SqlState::INSUFFICIENT_PRIVILEGE => ConnectFault::Privilege,
        code if *code == SqlState::PROTOCOL_VIOLATION => pooler_fault(db),
        _ => ConnectFault::Other,
    };
    (fault, detail)
}

/// Which limit, by the routine that raised 53300: the text is in the server's language.
fn slot_limit(db: &DbError) -> SlotLimit {
    match db.routine() {
        // InitProcess finds no free slot; the postmaster itself refuses in ProcessStartupPacket (BackendInitialize
        // from 18 on) when it has started twice as many processes as there are slots.
        Some("InitProcess" | "ProcessStartupPacket" | "BackendInitialize") => SlotLimit::Nothing,
        Some("InitPostgres") => SlotLimit::Reserved,
        Some("InitializeSessionUserId") => SlotLimit::Role,
        Some("CheckMyDatabase") => SlotLimit::Database,
        _ => SlotLimit::Unknown,
    }
}

/// PgBouncer gives every error SQLSTATE 08P01, one fixed English text and no routine: those of its own, and (in 1.18)
/// those of a server that doesn't let it in, in that server's language.
fn pooler_fault(db: &DbError) -> ConnectFault {
    const FULL: [&str; 5] = [
        "no more connections allowed",
        "client connections exceeded",
        "too many clients",
        "too many connections",
        "connection slots",
    ];
    const BUSY: [&str; 3] = [
        "query_wait_timeout",
        "server login has been failing",
        "client_login_timeout",
    ];
    let says = |texts: &[&str]| texts.iter().any(|text| db.message().contains(text));
    if db.routine().is_some() {
        ConnectFault::Other
    } else if says(&FULL) {
        ConnectFault::NoSlot(SlotLimit::Pooler)
    } else if says(&BUSY) {
        ConnectFault::PoolerBusy
    } else {
        ConnectFault::Pooler
    }
}

/// The whole chain of causes in one line: the driver's own text is only its first word.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}
