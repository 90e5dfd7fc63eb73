//! The gate before sealing: every file is looked through for what this process knows to be secret, for what looks like it,
//! and for statements that still have their values. What it says never holds the secret itself.

use std::fmt;

use serde_json::Value;

use super::columns::{self, Class};
use super::folder::pretty;
use super::known::KnownSecrets;
use super::layout::{FRAMES, frame_of};
use super::redact::{self, Reduced};
use super::{format, layout};
use crate::model::{RedactionLevel, Snapshot};
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

/// Rules of the gate beside those of [`sql::Rule`].
const OF_FILES: [&str; 7] = [
    "values-in-statement",
    "statement-with-secret",
    "setting",
    "not-redacted",
    "not-as-kept",
    "not-as-written",
    "not-a-snapshot",
];

/// By which something may be found that a person can let through.
pub fn rules() -> impl Iterator<Item = &'static str> {
    let likely = sql::Rule::ALL.iter().map(|rule| rule.name());
    likely.chain(OF_FILES)
}

impl Hit {
    /// The file as a whole isn't one of ours: damage, and nothing secret.
    pub(super) fn is_damage(&self) -> bool {
        self.line == 0 && matches!(self.rule.as_str(), "not-as-written" | "not-a-snapshot")
    }

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
    for (n, line) in text.lines().enumerate() {
        let mut found = |rule: String| {
            hits.push(Hit {
                file: file.to_owned(),
                line: n + 1,
                rule,
            });
        };
        let (name, value) = field(line);
        // The names of a frame's fields are our own words, whatever else is called so.
        let looked_at = match &value {
            _ if frame_of(file).is_none() => line,
            Some(value) => value,
            None => line.split_once("\": ").map_or(line, |(_, rest)| rest),
        };
        if let Some(name) = known.find(looked_at) {
            found(format!("{OWN} ({name})"));
        }
        // What is no field is looked at as it stands.
        let rule = match value {
            Some(value) => likely(file, &name, &value, level),
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
    } else if frame_of(file).is_some() {
        match format::parse(file.as_ref(), bytes) {
            Ok(frame) => {
                hits.extend(rows(file, &text, &frame, level));
                None
            }
            Err(_) => Some("not-a-snapshot"),
        }
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

/// Cells of the built-in queries' rows, which have no name beside them: each must be as the redactor of its column leaves it.
fn rows(file: &str, text: &str, frame: &Snapshot, level: RedactionLevel) -> Vec<Hit> {
    let mut hits = Vec::new();
    let mut hit = |cell: &str, rule: &str| {
        let written = serde_json::to_string(cell).unwrap_or_default();
        let is_it = |line: &str| line.trim().trim_end_matches(',') == written;
        let line = text.lines().position(is_it).map_or(0, |n| n + 1);
        let rule = rule.to_owned();
        let file = file.to_owned();
        hits.push(Hit { file, line, rule });
    };
    for (query, kept) in &frame.queries {
        let Some(kept) = kept.get() else { continue };
        for row in &kept.rows {
            if row.len() != kept.columns.len() {
                hit("", "not-as-kept");
            }
            for (n, cell) in row.iter().enumerate() {
                let column = kept.columns.get(n).map_or("", String::as_str);
                let mut check = |text: &str, class: Class| {
                    // A time is a text as well.
                    if columns::shown(class, text.to_owned(), level) != text {
                        hit(text, rule_of(class));
                    }
                };
                match cell {
                    Value::String(text) => check(text, columns::class(query, column)),
                    other => each_text(other, &mut |text| check(text, Class::Unknown)),
                }
            }
        }
    }
    hits
}

fn rule_of(class: Class) -> &'static str {
    match class {
        Class::Statement => "values-in-statement",
        Class::Override => "setting",
        _ => "not-redacted",
    }
}

fn each_text(value: &Value, take: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => take(text),
        Value::Array(all) => all.iter().for_each(|value| each_text(value, take)),
        Value::Object(fields) => fields.values().for_each(|value| each_text(value, take)),
        _ => {}
    }
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
