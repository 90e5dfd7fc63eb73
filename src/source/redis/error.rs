//! Why a Redis couldn't be asked, and what a single command was refused for.

use redis::{ServerError, Value};

/// Why nothing can be told of a Redis.
#[derive(Debug, thiserror::Error)]
pub enum RedisError {
    #[error("{0:?} is no address of a Redis, such as redis://host:6379/0")]
    Address(String),
    #[error("Redis at {0}: certificates are for rediss:// addresses")]
    NoTls(String),
    #[error("Redis at {place}: {what}")]
    Failed {
        place: String,
        what: String,
        why: Why,
    },
}

/// What to do about it turns on this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Not reached, or lost.
    Unreachable,
    /// The login is wrong, or there is none.
    Login,
    /// The server reads its data and answers nothing yet.
    Loading,
    /// This login may not do what every report needs.
    NotPermitted,
    Other,
}

impl RedisError {
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Address(_) => Some("--redis redis://host:6379/0, or REDIS_URL".into()),
            Self::NoTls(_) => Some("an address that begins with rediss://".into()),
            Self::Failed { why, .. } => match why {
                Why::Unreachable => None,
                Why::Login => Some(
                    "redis://user:password@host in REDIS_URL, or the password in REDISCLI_AUTH"
                        .into(),
                ),
                Why::Loading => Some("the same command again, when it has read its data".into()),
                Why::NotPermitted => Some("ACL SETUSER <user> +@read +info +time".into()),
                Why::Other => None,
            },
        }
    }
}

/// Why one command wasn't carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    NotPermitted(String),
    /// Renamed, or of another version: the server doesn't have it.
    Unknown(String),
    /// The key belongs to another node, or is on its way there.
    Moved,
    Loading(String),
    Login(String),
    /// The connection is gone.
    Lost(String),
    Other(String),
}

impl Refused {
    pub fn of(error: &ServerError) -> Self {
        let text = words(error.code(), error.details());
        match error.code() {
            "NOPERM" => Self::NotPermitted(text),
            "MOVED" | "ASK" | "TRYAGAIN" => Self::Moved,
            "LOADING" => Self::Loading(text),
            "NOAUTH" | "WRONGPASS" => Self::Login(text),
            _ if text.to_lowercase().contains("unknown command")
                || text.to_lowercase().contains("unknown subcommand") =>
            {
                Self::Unknown(text)
            }
            _ => Self::Other(text),
        }
    }

    pub fn of_call(error: &redis::RedisError) -> Self {
        if let Some(code) = error.code() {
            let detail = error.detail();
            let text = words(code, detail);
            return match code {
                "NOPERM" => Self::NotPermitted(text),
                "LOADING" => Self::Loading(text),
                "NOAUTH" | "WRONGPASS" => Self::Login(text),
                _ => Self::Other(text),
            };
        }
        if error.kind() == redis::ErrorKind::AuthenticationFailed {
            return Self::Login("WRONGPASS: this user or password isn't accepted".into());
        }
        Self::Lost(plain(error))
    }

    pub fn text(&self) -> &str {
        match self {
            Self::Moved => "the key is on another node",
            Self::NotPermitted(text)
            | Self::Unknown(text)
            | Self::Loading(text)
            | Self::Login(text)
            | Self::Lost(text)
            | Self::Other(text) => text,
        }
    }

    pub fn at(&self, place: &str) -> RedisError {
        let why = match self {
            Self::Lost(_) => Why::Unreachable,
            Self::Login(_) => Why::Login,
            Self::Loading(_) => Why::Loading,
            Self::NotPermitted(_) => Why::NotPermitted,
            Self::Unknown(_) | Self::Moved | Self::Other(_) => Why::Other,
        };
        RedisError::Failed {
            place: place.to_owned(),
            what: self.text().to_owned(),
            why,
        }
    }
}

/// The connection's own words, without the library's around them.
fn plain(error: &redis::RedisError) -> String {
    if error.is_timeout() {
        return "no answer in time".into();
    }
    error
        .detail()
        .map_or_else(|| error.to_string(), str::to_owned)
}

fn words(code: &str, detail: Option<&str>) -> String {
    match detail {
        Some(detail) => format!("{code} {detail}"),
        None => code.to_owned(),
    }
}

/// An answer, or what the server refused it for.
pub fn answer(value: Value) -> Result<Value, Refused> {
    match value {
        Value::ServerError(error) => Err(Refused::of(&error)),
        value => Ok(value),
    }
}
