//! What ends a command early, with its exit code and a hint: rendered once, in `cli::run`.

use std::fmt;
use std::io;

use crate::bundle::{BundleError, ReadError, SealError};
use crate::config::ConfigError;
use crate::drill::DrillError;
use crate::logs::LogError;
use crate::model::ExitCode;
use crate::operate::ActError;
use crate::source::postgres::conninfo::ConnInputError;
use crate::source::postgres::query::{KeptError, QueryError};
use crate::source::postgres::{ConnectError, RoundError};
use crate::source::redis::RedisError;
use crate::view::NoSuchList;

/// The kinds of failure that a command knows.
#[derive(Debug)]
pub enum Fault {
    /// A wrong command line that clap can't know of.
    Usage(String),
    ConnInput(ConnInputError),
    Config(ConfigError),
    Connect(Box<ConnectError>),
    Round(RoundError),
    Query(QueryError),
    Kept(KeptError),
    Saved(BundleError),
    Seal(SealError),
    List(NoSuchList),
    Save(String),
    /// A runbook that can't be read, or has faults.
    Book(String),
    /// Somebody else acts there, or the answer was no: nothing was done.
    Busy(String),
    Act(ActError),
    Drill(DrillError),
    Redis(RedisError),
    Log(LogError),
    Io(io::Error),
}

impl Fault {
    /// A format that only some reports have.
    pub fn not_measured() -> Self {
        Self::Usage(
            "--format prometheus: triage, pg connections, pg transactions, pg blockers, redis info and redis queues have it"
                .into(),
        )
    }

    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) | Self::ConnInput(_) | Self::List(_) => ExitCode::Usage,
            Self::Redis(RedisError::Address(_) | RedisError::NoTls(_)) => ExitCode::Usage,
            Self::Config(_) | Self::Saved(_) | Self::Book(_) | Self::Log(_) => ExitCode::Input,
            Self::Seal(SealError::Read(_)) => ExitCode::Input,
            // Something secret stands in it: that is for a person.
            Self::Seal(SealError::Secrets(_) | SealError::Kept { .. }) | Self::Busy(_) => {
                ExitCode::Critical
            }
            Self::Connect(_)
            | Self::Round(_)
            | Self::Query(_)
            | Self::Kept(_)
            | Self::Save(_)
            | Self::Seal(_)
            | Self::Act(_)
            | Self::Drill(_)
            | Self::Redis(_)
            | Self::Io(_) => ExitCode::Unknown,
        }
    }

    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Connect(error) => Some(error.hint()),
            Self::ConnInput(_) => {
                Some("stanch doctor -d postgresql://user@host:port/database".into())
            }
            Self::Round(error) | Self::Query(QueryError::Read(error)) => {
                Some(round_hint(error).into())
            }
            Self::Query(QueryError::Row(_)) => None,
            Self::Kept(KeptError::NotKept { query }) => Some(format!(
                "stanch query run {query} --save FILE, or stanch capture, keeps them"
            )),
            Self::Kept(_) => None,
            Self::Saved(
                BundleError::NotABundle(_) | BundleError::Snapshot(ReadError::NotASnapshot(_)),
            ) => Some("a file that `--save FILE` wrote, or a bundle of `stanch capture`".into()),
            Self::Saved(BundleError::NoSuchFrame { path, .. }) => {
                Some(format!("stanch bundle show {}", path.display()))
            }
            Self::Saved(_) => None,
            Self::Drill(error) => error.hint(),
            Self::Redis(error) => error.hint(),
            Self::Log(LogError::NotALog { .. }) => {
                Some("--prefix with the server's log_line_prefix, or --log-format".into())
            }
            Self::Log(_)
            | Self::Usage(_)
            | Self::List(_)
            | Self::Config(_)
            | Self::Save(_)
            | Self::Seal(_)
            | Self::Busy(_)
            | Self::Book(_)
            | Self::Act(_)
            | Self::Io(_) => None,
        }
    }

    /// The reader of our output has gone: it has what it wanted.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) | Self::Save(text) | Self::Busy(text) | Self::Book(text) => {
                f.write_str(text)
            }
            Self::ConnInput(error) => error.fmt(f),
            Self::Config(error) => error.fmt(f),
            Self::Connect(error) => error.fmt(f),
            Self::Round(error) => error.fmt(f),
            Self::Query(error) => error.fmt(f),
            Self::Kept(error) => error.fmt(f),
            Self::Saved(error) => error.fmt(f),
            Self::Seal(error) => error.fmt(f),
            Self::List(error) => error.fmt(f),
            Self::Drill(error) => error.fmt(f),
            Self::Act(error) => error.fmt(f),
            Self::Redis(error) => error.fmt(f),
            Self::Log(error) => error.fmt(f),
            Self::Io(error) => error.fmt(f),
        }
    }
}

macro_rules! from {
    ($($error:ty => $variant:ident),+ $(,)?) => {
        $(impl From<$error> for Fault {
            fn from(error: $error) -> Self {
                Self::$variant(error.into())
            }
        })+
    };
}

from! {
    ConnInputError => ConnInput,
    ConfigError => Config,
    ConnectError => Connect,
    RoundError => Round,
    QueryError => Query,
    KeptError => Kept,
    BundleError => Saved,
    SealError => Seal,
    NoSuchList => List,
    DrillError => Drill,
    RedisError => Redis,
    LogError => Log,
    ActError => Act,
    io::Error => Io,
}

fn round_hint(error: &RoundError) -> &'static str {
    match error.code.as_str() {
        _ if error.connection_lost => {
            "the same command again; if the server is gone, its log says why"
        }
        "deadline" => {
            "a longer --deadline, or a login past the pooler; a locked catalog or a stopped process waits so"
        }
        "57014" => "a longer --timeout",
        _ => "stanch doctor shows what this login may read",
    }
}
