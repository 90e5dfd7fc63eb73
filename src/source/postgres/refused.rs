//! Why a connection wasn't had: what the person reads, and what code decides on.

use std::fmt;

use super::conninfo::ConnSpec;
use crate::model::{SlotLimit, SlotRefusal};

/// How far an attempt had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Dns,
    Tcp,
    Tls,
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
    /// No TLS where it is asked for, or a certificate that doesn't pass.
    Tls,
    /// Not what `target_session_attrs` asks for.
    OtherKind,
    /// 57P03: starting up, shutting down, recovering.
    NotReady,
    /// 28P01, 28000.
    Login,
    /// The server asks for a password, and there is none.
    PasswordMissing,
    /// 0A000: the database's encoding can't be converted.
    Encoding,
    /// 3D000
    NoDatabase,
    /// 42501: no CONNECT privilege.
    Privilege,
    /// 08P01 from the pooler itself.
    Pooler,
    /// The pooler got no server connection in time: its pool is saturated, or its server is full or down.
    PoolerBusy,
    Other,
}

impl ConnectFault {
    /// Where several hosts are given, the next one may do.
    pub(super) fn leaves_other_hosts(&self) -> bool {
        matches!(
            self,
            Self::Dns | Self::Network | Self::Timeout(_) | Self::NotReady | Self::OtherKind
        )
    }
}

/// A fault with its words, while it isn't yet known where it belongs.
pub(super) type Failure = (ConnectFault, String);

/// An attempt that failed: what, where, and what to try. Never the password.
#[derive(Clone, Debug)]
pub struct ConnectError {
    pub fault: ConnectFault,
    /// What the operating system or the server said.
    pub detail: String,
    pub place: Place,
    /// All logins of this run that were refused for want of a slot.
    pub refusals: Vec<SlotRefusal>,
    /// The hosts that were tried before, each with its failure.
    pub others: Vec<String>,
}

/// Where it failed, for the message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub database: String,
}

impl Place {
    pub fn of(spec: &ConnSpec) -> Self {
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
        write!(f, "\n  at: {}", self.place)?;
        for other in &self.others {
            write!(f, "\n  before: {other}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConnectError {}

impl ConnectError {
    /// The last of several, with the others in a line each.
    pub(super) fn of_all(mut failures: Vec<Self>) -> Self {
        let mut last = failures.pop().unwrap_or_else(|| Self {
            fault: ConnectFault::Other,
            detail: "no host to try".into(),
            place: Place::default(),
            refusals: Vec::new(),
            others: Vec::new(),
        });
        last.others = failures
            .iter()
            .map(|e| {
                format!(
                    "{}, port {}: {}: {}",
                    e.place.host,
                    e.place.port,
                    e.what(),
                    e.detail
                )
            })
            .collect();
        last
    }

    /// The failure in a few words.
    pub fn what(&self) -> &'static str {
        match &self.fault {
            ConnectFault::Dns => "host name not found",
            ConnectFault::Network => "no connection",
            ConnectFault::Timeout(_) => "no answer in time",
            ConnectFault::NoSlot(limit) => slot_words(*limit),
            ConnectFault::NotReady => "the server isn't ready",
            ConnectFault::Tls => "no TLS",
            ConnectFault::OtherKind => "not the kind of server that is asked for",
            ConnectFault::Login => "login refused",
            ConnectFault::PasswordMissing => "the server asks for a password",
            ConnectFault::Encoding => "this database can't be read from",
            ConnectFault::NoDatabase => "no such database",
            ConnectFault::Privilege => "this login may not connect here",
            ConnectFault::Pooler => "the pooler refused",
            ConnectFault::PoolerBusy => "the pooler got no connection to its server",
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
            ConnectFault::PoolerBusy => "its pool is saturated, or the server behind it is full or down: connect to the server itself, past the \
                 pooler (-h, -p)"
                .into(),
            ConnectFault::Timeout(Stage::Dns) => {
                "the name isn't resolved in time: give an address, or look at the resolver (/etc/resolv.conf)".into()
            }
            ConnectFault::Timeout(Stage::Tcp) => {
                "the host doesn't answer: a firewall, a wrong address, or the host is down".into()
            }
            ConnectFault::Timeout(Stage::Tls) => "the host answers and doesn't speak PostgreSQL, or something between \
                 holds TLS back: check -p, or try sslmode=disable where that is safe"
                .into(),
            ConnectFault::Tls => "check sslmode, sslrootcert, sslcert and sslkey (psql takes the same); stanch doctor \
                 shows where each value comes from once a connection is had"
                .into(),
            ConnectFault::OtherKind => "another host, or target_session_attrs=any".into(),
            ConnectFault::Timeout(Stage::Login | Stage::FirstAnswer) => "the server accepts and stays silent: a locked \
                 catalog (pg_authid, pg_database, pg_class held in ACCESS EXCLUSIVE mode), a stopped server process, or \
                 a pooler without a free server connection; a session that is already open still works"
                .into(),
            ConnectFault::NoSlot(limit) => slot_hint(*limit),
            ConnectFault::NotReady => "it is starting, stopping or recovering: try again, and read the server's log".into(),
            ConnectFault::PasswordMissing => "give it in ~/.pgpass (mode 0600) or PGPASSWORD; at a terminal it is asked for, unless -w".into(),
            ConnectFault::Login => "check -U/--username, PGPASSWORD or ~/.pgpass, sslmode, and the server's pg_hba.conf".into(),
            ConnectFault::Encoding => "another database of the same server (-d postgres): it shows the same".into(),
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
        SlotLimit::Pooler => "the pooler has no connection to give",
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
        SlotLimit::Pooler => "its own limit is reached, or the server behind it is full: connect to the server itself, past the pooler (-h, -p)",
        SlotLimit::Unknown => "a superuser's login (-U postgres), or --wait-slot 60s to knock longer",
    }
    .into()
}
