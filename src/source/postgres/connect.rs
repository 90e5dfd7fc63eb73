//! Getting in: one attempt with a deadline over all of it, and what to do when there is no slot.

use std::cell::Cell;
use std::fmt;
use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rand::RngExt as _;
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::error::{DbError, SqlState};
use tokio_postgres::{Client, Config, NoTls};

use super::conninfo::ConnSpec;
use super::sniff::Sniffed;
use crate::model::{SlotLimit, SlotRefusal};

/// At most four knocks a second.
const KNOCK_EVERY: Duration = Duration::from_millis(250);
const KNOCK_AT_MOST: Duration = Duration::from_secs(2);

/// An open connection: the only one of this run.
pub struct Connected {
    pub client: Client,
    /// The login that got in.
    pub spec: ConnSpec,
    /// The process id that was given out at the start; not the backend's own behind a pooler.
    pub key_pid: i32,
    /// The server's major version, as it reported at the start.
    pub major: u32,
    /// The logins that were refused for want of a slot before.
    pub refusals: Vec<SlotRefusal>,
}

/// How far an attempt had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Dns,
    Tcp,
    Login,
    FirstAnswer,
}

/// Why an attempt failed, as far as code or the person decides on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectFault {
    Dns,
    Network,
    Timeout(Stage),
    NoSlot(SlotLimit),
    /// 57P03: starting up, shutting down, recovering.
    NotReady,
    /// 28P01, 28000, or no password where the server asks for one.
    Login,
    /// 3D000
    NoDatabase,
    /// 42501: no CONNECT privilege.
    Privilege,
    /// 08P01 from the pooler itself.
    Pooler,
    Other,
}

/// An attempt that failed: what, where, and what to try. Never the password.
#[derive(Clone, Debug)]
pub struct ConnectError {
    pub fault: ConnectFault,
    /// What the operating system or the server said.
    pub detail: String,
    pub place: Place,
    /// All logins of this run that were refused for want of a slot.
    pub refusals: Vec<SlotRefusal>,
}

/// Where it failed, for the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub database: String,
}

impl Place {
    fn of(spec: &ConnSpec) -> Self {
        Self {
            host: spec.host.clone(),
            port: spec.port,
            user: spec.user.clone(),
            database: spec.database.clone(),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "host {}, port {}, user {}, database {}",
            self.host, self.port, self.user, self.database
        )
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what(), self.detail)?;
        write!(f, "\n  at: {}", self.place)
    }
}

impl std::error::Error for ConnectError {}

impl ConnectError {
    /// The failure in a few words.
    pub fn what(&self) -> &'static str {
        match &self.fault {
            ConnectFault::Dns => "host name not found",
            ConnectFault::Network => "no connection",
            ConnectFault::Timeout(_) => "no answer in time",
            ConnectFault::NoSlot(limit) => slot_words(*limit),
            ConnectFault::NotReady => "the server isn't ready",
            ConnectFault::Login => "login refused",
            ConnectFault::NoDatabase => "no such database",
            ConnectFault::Privilege => "this login may not connect here",
            ConnectFault::Pooler => "the pooler refused",
            ConnectFault::Other => "cannot connect",
        }
    }

    /// What to try next.
    pub fn hint(&self) -> String {
        match &self.fault {
            ConnectFault::Dns => "check -h/--host, PGHOST or the host in the URL".into(),
            ConnectFault::Network if self.place.host.starts_with('/') => {
                "is the server up, and is this its socket directory and port? (-h, -p)".into()
            }
            ConnectFault::Network => "is the server up and listening there, and is the way open? (-h, -p)".into(),
            ConnectFault::Timeout(Stage::Dns | Stage::Tcp) => {
                "the host doesn't answer: a firewall, a wrong address, or the host is down".into()
            }
            ConnectFault::Timeout(Stage::Login | Stage::FirstAnswer) => "the server accepts and stays silent: a locked \
                 catalog (pg_authid, pg_database, pg_class held in ACCESS EXCLUSIVE mode), a stopped server process, or \
                 a pooler without a free server connection; a session that is already open still works"
                .into(),
            ConnectFault::NoSlot(limit) => slot_hint(*limit),
            ConnectFault::NotReady => "it is starting, stopping or recovering: try again, and read the server's log".into(),
            ConnectFault::Login => "check -U/--username, PGPASSWORD and the server's pg_hba.conf".into(),
            ConnectFault::NoDatabase => "give a database with -d/--dbname; 'postgres' usually exists".into(),
            ConnectFault::Privilege => "GRANT CONNECT ON DATABASE … TO this role, or another login (-U)".into(),
            ConnectFault::Pooler => "connect to the server itself, past the pooler (-h, -p)".into(),
            ConnectFault::Other => "stanch doctor with the same options tells more once a connection is had".into(),
        }
    }
}

fn slot_words(limit: SlotLimit) -> &'static str {
    match limit {
        SlotLimit::Nothing => "every connection slot is taken, the reserved ones too",
        SlotLimit::Reserved => "only reserved connection slots are left",
        SlotLimit::Role => "this role's connection limit is reached",
        SlotLimit::Database => "this database's connection limit is reached",
        SlotLimit::Pooler => "the pooler has no client connection left",
        SlotLimit::Unknown => "no connection slot",
    }
}

fn slot_hint(limit: SlotLimit) -> String {
    match limit {
        SlotLimit::Nothing => "knock longer with --wait-slot 60s, or stop an instance of the application so that a slot frees",
        SlotLimit::Reserved => "log in as a superuser (-U postgres), or name such a login as `rescue` of the target in \
             stanch.yaml; --wait-slot 60s knocks longer",
        SlotLimit::Role => "another login (-U), or ALTER ROLE … CONNECTION LIMIT",
        SlotLimit::Database => "another database of the same server (-d postgres), or a superuser's login",
        SlotLimit::Pooler => "connect to the server itself, past the pooler (-h, -p)",
        SlotLimit::Unknown => "a superuser's login (-U postgres), or --wait-slot 60s to knock longer",
    }
    .into()
}

/// How long to try.
#[derive(Clone, Copy, Debug)]
pub struct KnockOptions {
    /// Over DNS, TCP, login and the first answer of one attempt.
    pub connect_timeout: Duration,
    /// How long to keep knocking when there is no slot.
    pub wait_slot: Duration,
}

/// What happens on the way in, for the person who waits.
#[derive(Clone, Debug)]
pub enum Knock {
    /// The login as given was refused; the rescue login is tried.
    TryingRescue(SlotLimit),
    /// The rescue login failed for another reason than a slot.
    RescueFailed(String),
    /// No slot for anyone: knocking goes on for this long at most.
    Waiting(SlotLimit, Duration),
    /// A slot freed after so many knocks.
    GotIn(u32),
}

/// The login as given; the rescue login; then both in turn with jittered backoff until a slot frees, which is held.
///
/// # Errors
/// The first failure that isn't want of a slot, or want of a slot for all of `wait_slot`.
pub async fn get_in(
    spec: &ConnSpec,
    rescue: Option<&ConnSpec>,
    options: KnockOptions,
    tell: &mut dyn FnMut(Knock),
) -> Result<Connected, ConnectError> {
    let give_up = Instant::now() + options.wait_slot;
    let mut refusals = Vec::new();
    let mut rescue = rescue;
    let mut pause = KNOCK_EVERY;
    for knocks in 1_u32.. {
        // First the login as given, then the rescue, then each in turn.
        let login = match rescue {
            Some(rescue) if knocks % 2 == 0 => rescue,
            _ => spec,
        };
        let started = Instant::now();
        let mut error = match attempt(login, options.connect_timeout).await {
            Ok(mut connected) => {
                if knocks > 2 {
                    tell(Knock::GotIn(knocks));
                }
                connected.refusals = refusals;
                return Ok(connected);
            }
            Err(error) => error,
        };
        let ConnectFault::NoSlot(limit) = error.fault else {
            if login != spec {
                // The person's own login may still get in: a broken rescue login doesn't end the attempt.
                tell(Knock::RescueFailed(error.to_string()));
                rescue = None;
                continue;
            }
            error.refusals = refusals;
            return Err(error);
        };
        note_refusal(&mut refusals, limit, login);
        let jitter = rand::rng().random_range(1.0..1.5);
        let rest = give_up.saturating_duration_since(Instant::now());
        match knocks {
            1 if rescue.is_some() => tell(Knock::TryingRescue(limit)),
            1 | 2 if !rest.is_zero() && (knocks == 2 || rescue.is_none()) => {
                tell(Knock::Waiting(limit, rest))
            }
            _ => {}
        }
        let rescue_is_next = knocks == 1 && rescue.is_some();
        if rest.is_zero() && !rescue_is_next {
            error.refusals = refusals;
            return Err(error);
        }
        let wait = pause.mul_f64(jitter).saturating_sub(started.elapsed());
        let wait = if rescue_is_next {
            KNOCK_EVERY
        } else {
            wait.max(KNOCK_EVERY).min(rest.max(KNOCK_EVERY))
        };
        sleep(wait).await;
        if knocks > 2 {
            pause = pause.mul_f64(1.3).min(KNOCK_AT_MOST);
        }
    }
    unreachable!("the loop above ends by returning")
}

fn note_refusal(refusals: &mut Vec<SlotRefusal>, limit: SlotLimit, login: &ConnSpec) {
    let refusal = SlotRefusal {
        limit,
        user: login.user.clone(),
        database: login.database.clone(),
    };
    if !refusals.contains(&refusal) {
        refusals.push(refusal);
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
    match timeout(connect_timeout, open(spec, &stage)).await {
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

async fn open(spec: &ConnSpec, stage: &Cell<Stage>) -> Result<Connected, Failure> {
    let mut config = Config::new();
    // No application_name and no other setting at the start: behind a transaction pooler they would stay on the
    // server connection. The read's own transaction sets what it needs.
    config.user(&spec.user).dbname(&spec.database);
    if let Some(password) = &spec.password {
        config.password(password.expose());
    }
    let (client, key_pid, major) = match spec.socket() {
        Some(path) => {
            stage.set(Stage::Tcp);
            let stream = UnixStream::connect(&path)
                .await
                .map_err(|e| network(&e, &path))?;
            stage.set(Stage::Login);
            log_in(&config, stream).await?
        }
        None => {
            let stream = tcp(spec, stage).await?;
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
        refusals: Vec::new(),
    })
}

async fn tcp(spec: &ConnSpec, stage: &Cell<Stage>) -> Result<TcpStream, Failure> {
    let addresses: Vec<_> = lookup_host((spec.host.as_str(), spec.port))
        .await
        .map_err(|e| (ConnectFault::Dns, e.to_string()))?
        .collect();
    stage.set(Stage::Tcp);
    let mut last = (ConnectFault::Dns, "no address".to_owned());
    for address in addresses {
        match TcpStream::connect(address).await {
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

async fn log_in<S>(config: &Config, stream: S) -> Result<(Client, i32, u32), Failure>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (stream, key_pid) = Sniffed::new(stream);
    let (client, connection) = config.connect_raw(stream, NoTls).await.map_err(classify)?;
    let major = major_of(connection.parameter("server_version").unwrap_or_default());
    // Ends by itself when the client is dropped; its error shows as that of the query that was under way.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok((client, key_pid.load(Ordering::Relaxed), major))
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
        // The postmaster refuses in ProcessStartupPacket (BackendInitialize from 18 on) before a process has a slot.
        Some("InitProcess" | "ProcessStartupPacket" | "BackendInitialize") => SlotLimit::Nothing,
        Some("InitPostgres") => SlotLimit::Reserved,
        Some("InitializeSessionUserId") => SlotLimit::Role,
        Some("CheckMyDatabase") => SlotLimit::Database,
        _ => SlotLimit::Unknown,
    }
}

/// PgBouncer gives every error of its own SQLSTATE 08P01 and one fixed English text, and no routine.
fn pooler_fault(db: &DbError) -> ConnectFault {
    const FULL: [&str; 3] = [
        "no more connections allowed",
        "client connections exceeded",
        "too many clients",
    ];
    if db.routine().is_none() && FULL.iter().any(|text| db.message().contains(text)) {
        ConnectFault::NoSlot(SlotLimit::Pooler)
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
