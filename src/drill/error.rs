//! What can go wrong with a drill.

use std::io;
use std::path::Path;

#[derive(Debug, thiserror::Error)]
pub enum DrillError {
    #[error(
        "no PostgreSQL server found (postgres and initdb, in PATH or in /usr/lib/postgresql/*/bin)"
    )]
    NoServer,
    #[error("no Redis server found (redis-server or valkey-server, in PATH)")]
    NoRedis,
    #[error("{what}: {error}")]
    Io { what: String, error: io::Error },
    #[error("{tool} failed: {output}")]
    Tool { tool: String, output: String },
    #[error("the drill's server didn't come up; its log ends with: {log}")]
    NotUp { log: String },
    #[error(
        "no user to run the server as: PostgreSQL refuses root, and there is neither postgres nor nobody"
    )]
    NoUser,
    #[error("the scene couldn't be set: {0}")]
    Scene(String),
    #[error("the scene didn't come about within {seconds} s: {what}")]
    NotRipe { what: String, seconds: u64 },
}

impl DrillError {
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoServer => Some(
                "install it: apt-get install postgresql, or put its bin folder into PATH".into(),
            ),
            Self::NoRedis => Some("install it: apt-get install redis-server".into()),
            _ => None,
        }
    }

    pub(super) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Io {
            what: what.into(),
            error,
        }
    }

    pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        Self::io(path.display().to_string())
    }
}

impl From<tokio_postgres::Error> for DrillError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Scene(crate::source::postgres::chain(&error))
    }
}
