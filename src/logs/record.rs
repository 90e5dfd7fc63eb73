//! One message of a log with what belongs to it, whatever the format.

use super::labels::Severity;
use crate::model::{LogSession, Pid, Timestamp};

#[derive(Clone, Debug, Default)]
pub struct Record {
    pub at: Option<Timestamp>,
    pub pid: Option<Pid>,
    pub session: LogSession,
    pub sqlstate: Option<String>,
    pub severity: Severity,
    pub message: String,
    pub detail: Option<String>,
    pub context: Option<String>,
    /// It has a HINT or another such part, in the stderr format.
    pub aside: bool,
    pub statement: Option<String>,
}

/// What is written in place of a name, in the languages that the server has.
const UNKNOWN: [&str; 11] = [
    "[unknown]",
    "[不明]",
    "[unbekannt]",
    "[desconocido]",
    "[inconnu]",
    "[sconosciuto]",
    "[უცნობი]",
    "[알수없음]",
    "[н/д]",
    "[okänd]",
    "[未知]",
];

/// `None` for what is written where there is no name.
pub fn named(text: &str) -> Option<String> {
    let text = text.trim();
    // Of a session that hasn't got in yet; also where a prefix of fewer names takes two for one.
    let known = !UNKNOWN.iter().any(|word| text.contains(word));
    (!text.is_empty() && known).then(|| text.to_owned())
}

/// A SQLSTATE by its shape; success says nothing.
pub fn sqlstate(text: &str) -> Option<String> {
    let shaped = text.len() == 5
        && text
            .bytes()
            .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
    (shaped && text != "00000").then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_for_no_name_is_none() {
        for text in ["", " ", "[unknown]", "[不明]", "[unbekannt]/[unbekannt]"] {
            assert_eq!(named(text), None, "{text}");
        }
        assert_eq!(named(" 不明 ").as_deref(), Some("不明"));
    }
}
