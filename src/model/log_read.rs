//! What was read of a log: which file, in which form, and what of it couldn't be.

use serde::{Deserialize, Serialize};

use crate::model::Timestamp;

/// A `log_destination`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    Stderr,
    Csv,
    Json,
}

impl LogFormat {
    /// As the server's settings spell it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Stderr => "stderr",
            Self::Csv => "csvlog",
            Self::Json => "jsonlog",
        }
    }
}

/// How the bytes were packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogPacking {
    None,
    Gzip,
    Zstd,
}

/// What one log came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRead {
    /// As it was given; `-` is standard input.
    pub name: String,
    pub format: LogFormat,
    pub packing: LogPacking,
    /// Unpacked.
    pub bytes: u64,
    pub lines: u64,
    /// By which lines were read; `null` in the other formats, and where no known one fitted.
    pub log_line_prefix: Option<String>,
    /// Times of the first and the last event.
    pub first: Option<Timestamp>,
    pub last: Option<Timestamp>,
    /// Places that looked like an event's and couldn't be read.
    pub unread: u64,
    /// Ends of sessions in a language of which not every message is known, where no SQLSTATE tells what they are.
    #[serde(skip)]
    pub untold: u64,
    /// Lines that were longer than what is kept of one.
    pub cut: u64,
    /// Events without a time.
    pub timeless: u64,
    /// What words of time zones were taken for.
    pub zones: Vec<String>,
    /// Of very many deadlocks only the nearest lines before were looked at for their processes.
    pub hasty: bool,
    /// Why it stopped before the end.
    pub stopped: Option<String>,
    /// The time of its last line.
    #[serde(skip)]
    pub ends: Option<Timestamp>,
    /// Each of its lines has the words of another program before it: whose, and how they go.
    #[serde(skip)]
    pub wrapped: Option<&'static str>,
}

impl LogRead {
    /// Lines of which something is missing, by what it is.
    pub fn amiss(&self) -> [(u64, &'static str); 4] {
        [
            (self.unread, "looked like an event and couldn't be read"),
            (
                self.untold,
                "FATAL or PANIC in words that aren't known here (%e in log_line_prefix tells them)",
            ),
            (self.cut, "longer than 1 MiB: cut"),
            (
                self.timeless,
                "without a time: the prefix has none, or isn't known (--prefix)",
            ),
        ]
    }
}
