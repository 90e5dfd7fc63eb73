//! What a login may do on a Redis, as far as that can be told without doing it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Whether a command can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Allowed {
    Yes,
    /// This login may not.
    No,
    /// The server doesn't have it, or has renamed it.
    Absent,
    /// It can't be told without doing it.
    Unknown,
}

impl Allowed {
    pub fn word(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Absent => "not there",
            Self::Unknown => "can't be told",
        }
    }
}

/// One right, and what it is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Right {
    pub command: Cow<'static, str>,
    pub allowed: Allowed,
    /// What a report needs it for.
    pub for_what: Cow<'static, str>,
    /// What would give it.
    pub grant: Option<String>,
}

/// One entry of the slow log: which command on which keys, never its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowCommand {
    pub at: crate::model::Timestamp,
    pub took_us: u64,
    pub command: String,
    pub keys: Vec<String>,
}
