//! Cells and lines that several reports have.

use crate::model::{Millis, Pid, SessionState};
use crate::view::console::Style;
use crate::view::layout::{Column, table};
use crate::view::sanitize::clean;

/// What isn't known or isn't there.
pub(super) const NONE: &str = "-";

pub(super) fn or_none(text: Option<&str>) -> String {
    text.map_or_else(|| NONE.into(), str::to_owned)
}

pub(super) fn age(ms: Option<Millis>) -> String {
    ms.map_or_else(|| NONE.into(), |ms| ms.to_string())
}

pub(super) fn pids(pids: &[Pid]) -> String {
    pids.iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(" ")
}

/// A state for a narrow column.
pub(super) fn short_state(state: &SessionState) -> &str {
    match state {
        SessionState::IdleInTransaction => "idle in xact",
        SessionState::IdleInTransactionAborted => "aborted xact",
        other => other.as_str(),
    }
}

/// A statement for one line; the server's own cut shows as `…`.
pub(super) fn statement(query: Option<&str>, truncated: bool) -> String {
    let Some(query) = query else {
        return String::new();
    };
    let mut text = clean(&crate::view::sanitize::one_line(query));
    if truncated {
        text.push('…');
    }
    text
}

/// Names with a line about each.
pub(in crate::view) fn names(titles: [&str; 2], all: &[(&str, &str)], style: Style) -> String {
    let columns = [Column::text(titles[0]), Column::text(titles[1]).flex(20)];
    let rows = all
        .iter()
        .map(|(name, what)| vec![(*name).to_owned(), (*what).to_owned()])
        .collect();
    table(&columns, rows, style.width)
}

/// A sentence that keeps to the screen.
pub(super) fn sentence(text: &str, style: Style) -> String {
    wrap(text, style.width.unwrap_or(usize::MAX), 0)
}

/// Text in lines of at most `width` columns, each indented.
pub fn wrap(text: &str, width: usize, indent: usize) -> String {
    let mut out = String::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let needed = indent + crate::view::width(&line) + 1 + crate::view::width(word);
        if !line.is_empty() && needed > width.max(indent + 20) {
            out.push_str(&format!("{:indent$}{line}\n", ""));
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    out.push_str(&format!("{:indent$}{line}\n", ""));
    out
}
