//! What can be wrong with what a person gave.

use std::path::PathBuf;

/// What is wrong with what a person gave. Never repeats the text itself: it may hold a password.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ConnInputError {
    #[error("not a PostgreSQL URL: {0}")]
    BadUrl(String),
    #[error("not a connection string: {0}")]
    BadKeyValue(String),
    #[error("unknown connection parameter")]
    UnknownParameter,
    #[error("port must be 1 to 65535")]
    BadPort,
    #[error("{name}: {what}")]
    BadValue {
        name: &'static str,
        what: &'static str,
    },
    #[error("{names} hosts and {others} {what}: as many, or one")]
    Counts {
        names: usize,
        others: usize,
        what: &'static str,
    },
    #[error("{path}: {error}")]
    File { path: PathBuf, error: String },
    #[error("{path}: line {line}: {what}")]
    ServiceFile {
        path: PathBuf,
        line: usize,
        what: &'static str,
    },
    #[error("service {0} isn't defined in any pg_service.conf")]
    NoService(String),
    #[error("DATABASE_URL: {0}")]
    DatabaseUrl(String),
}
