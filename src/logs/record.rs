//! One message of a log with what belongs to it, whatever the format.

use crate::model::{LogSession, Pid, Timestamp};

#[derive(Clone, Debug, Default)]
pub struct Record {
    pub at: Option<Timestamp>,
    pub pid: Option<Pid>,
    pub session: LogSession,
    pub sqlstate: Option<String>,
    pub message: String,
    pub detail: Option<String>,
    pub context: Option<String>,
    /// It has a HINT or another such part, in the stderr format.
    pub aside: bool,
    pub statement: Option<String>,
}

/// `None` for what is written where there is no name.
pub fn named(text: &str) -> Option<String> {
    let text = text.trim();
    // Of a session that hasn't got in yet; also where a prefix of fewer names takes two for one.
    (!text.is_empty() && !text.contains("[unknown]")).then(|| text.to_owned())
}

/// A SQLSTATE by its shape; success says nothing.
pub fn sqlstate(text: &str) -> Option<String> {
    let shaped = text.len() == 5
        && text
            .bytes()
            .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
    (shaped && text != "00000").then(|| text.to_owned())
}
