//! What a server's log tells of, by structure: never its whole text.

use serde::{Deserialize, Serialize};

use crate::model::Timestamp;

/// One thing in a log that a postmortem's timeline shows; what is alike and close together is one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogMoment {
    pub at: Timestamp,
    /// The last of them; the same as `at` where there is one.
    pub until: Timestamp,
    pub count: u64,
    /// SQLSTATE, where the log has it or the structure gives it.
    pub sqlstate: Option<String>,
    /// One line in plain words, redacted: `deadlock: transfer-a and transfer-b on accounts`.
    pub what: String,
}
