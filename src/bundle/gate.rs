//! The gate before sealing: every file is looked through for what this process knows to be secret, for what looks like it,
//! and for statements that still have their values. What it says never holds the secret itself.

use std::fmt;

use super::columns::Class;
use super::folder::pretty;
use super::known::KnownSecrets;
use super::layout::{FRAMES, frame_of};
use super::redact::{self, Reduced};
use super::rows::Rows;
use super::{format, layout};
use crate::model::RedactionLevel;
use crate::sql;

/// Where something was found, and by which rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hit {
    pub file: String,
    /// From 1; 0: the file as a whole.
    pub line: usize,
    pub rule: String,
}

const OWN: &str = "known-secret";

impl Hit {
    /// A secret that this process was given.
    pub fn is_own(&self) -> bool {
        self.rule.starts_with(OWN)
    }
}

impl fmt::Display for Hit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.rule)
    }
}

/// Looks one file through. In a bundle that isn't redacted only for what is known to be secret.
pub(super) fn look(
    file: &str,
    bytes: &[u8],
    known: &KnownSecrets,
    level: RedactionLevel,
) -> Vec<Hit> {
    let mut hits = Vec::new();
    let text = String::from_utf8_lossy(bytes);
    let mut rows = Rows::default();
    for (n, line) in text.lines().enumerate() {
        let mut found = |rule: String| {
            hits.push(Hit {
                file: file.to_owned(),
                line: n + 1,
                rule,
            });
        };
        if let Some(name) = known.find(line) {
            found(format!("{OWN} ({name})"));
        }
        let (name, value) = field(line);
        let name = match rows.line(line) {
            Some(Class::Statement) => "query",
            Some(Class::Application | Class::Override) => "application_name",
            _ => &name,
        };
        // What is no field is looked at as it stands.
        let rule = match value {
            Some(value) => likely(file, name, &value, level),
            None if level == RedactionLevel::None => None,
            None => sql::detect(line).map(|rule| rule.name().to_owned()),
        };
        if let Some(rule) = rule {
            found(rule);
        }
    }
    // It was looked at field by field, a field a line: so it must be written.
    let whole = if file.ends_with(".json") && !is_as_written(bytes) {
        Some("not-as-written")
    } else if frame_of(file).is_some() && format::parse(file.as_ref(), bytes).is_err() {
        Some("not-a-snapshot")
    } else {
        None
    };
    hits.extend(whole.map(|rule| Hit {
        file: file.to_owned(),
        line: 0,
        rule: rule.into(),
    }));
    hits
}

/// As every file of a bundle is.
fn is_as_written(bytes: &[u8]) -> bool {
    let value = serde_json::from_slice::<serde_json::Value>(bytes);
    value.is_ok_and(|value| pretty(&value).is_ok_and(|own| own == bytes))
}

fn likely(file: &str, name: &str, value: &str, level: RedactionLevel) -> Option<String> {
    if is_statement(name) {
        match redact::statement(value, level) {
            Reduced::Kept => return None,
            Reduced::Tag(_) => return Some("statement-with-secret".into()),
            Reduced::Masked(..) => return Some("values-in-statement".into()),
        }
    }
    if level == RedactionLevel::None {
        return None;
    }
    let rule = if is_text(file, name) {
        sql::detect(value)
    } else {
        sql::detect_named(value)
    };
    rule.map(|rule| rule.name().to_owned())
}

/// Fields that hold SQL.
fn is_statement(name: &str) -> bool {
    matches!(name, "query" | "statement")
}

/// Fields that hold free text, as opposed to names, which may look like anything. In reports of Redis and in what a log told
/// each field may be a stranger's.
fn is_text(file: &str, name: &str) -> bool {
    !file.starts_with(FRAMES) && file.contains('/')
        || matches!(name, "application_name" | "message" | "why" | "what")
}

/// The name and the text of a line of our own JSON: one field a line, or one element.
fn field(line: &str) -> (String, Option<String>) {
    let bare = line.trim().trim_end_matches(',');
    if let Some((name, value)) = bare.split_once("\": ")
        && let Some(name) = name.strip_prefix('"')
    {
        return (name.to_owned(), serde_json::from_str(value).ok());
    }
    // A line of `gaps.jsonl` is a document of its own.
    if bare.starts_with('{')
        && let Ok(gap) = serde_json::from_str::<layout::Gap>(bare)
    {
        return ("why".into(), Some(gap.why));
    }
    (String::new(), serde_json::from_str(bare).ok())
}
