//! Lines by a prefix that isn't known: what can be told from their shapes.

use super::labels::{self, Label};
use super::prefix::{Head, Split, session_pid};
use super::record::named;
use super::time::{self, Zone};
use crate::model::{LogSession, Pid};

/// How far into a line its label may stand.
const FAR: usize = 400;

/// The line by its first known label; time, process and names from what stands before it.
pub fn split<'l>(line: &'l str, zone: &mut Zone) -> Option<Split<'l>> {
    let near = line.floor_char_boundary(FAR);
    let (at, label, start) = line[..near]
        .match_indices(':')
        .find_map(|(colon, _)| label_before(line, colon))?;
    let before = &line[..at];
    Some(Split {
        head: Head {
            at: before
                .char_indices()
                .find_map(|(at, c)| {
                    c.is_ascii_digit()
                        .then(|| time::leading(&before[at..], zone))?
                })
                .map(|(at, _)| at),
            pid: pid(before),
            session: session(before),
            sqlstate: None,
        },
        label,
        text: &line[start..],
    })
}

/// A known label that ends at this colon, with two blanks behind it.
fn label_before(line: &str, colon: usize) -> Option<(usize, Label, usize)> {
    if !line[colon + 1..].starts_with("  ") {
        return None;
    }
    let word_end = line[..colon].trim_end_matches([' ', '\u{a0}']).len();
    let start = line[..word_end]
        .rfind(|c: char| {
            c.is_whitespace() || matches!(c, ']' | ')' | '>' | ':' | '|' | ',' | ';' | '-' | '/')
        })
        .map_or(0, |at| {
            at + line[at..].chars().next().map_or(1, char::len_utf8)
        });
    let label = labels::known(&line[start..word_end])?;
    Some((start, label, colon + 3))
}

/// `[123]`, `pid=123`, `(123)`.
fn pid(before: &str) -> Option<Pid> {
    // Numbers next to a session's id may count lines. Its first part has eight digits until 2106.
    let session = before
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '.'))
        .find(|word| word.find('.') == Some(8) && session_pid(word).is_some());
    if let Some(id) = session {
        return session_pid(id);
    }
    let digits = |text: &str| {
        let end = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        text[..end].parse::<i32>().ok().map(|pid| (Pid(pid), end))
    };
    let bracketed = before.match_indices('[').find_map(|(at, _)| {
        let (pid, end) = digits(&before[at + 1..])?;
        before[at + 1 + end..].starts_with(']').then_some(pid)
    });
    bracketed
        .or_else(|| {
            before
                .split("pid=")
                .nth(1)
                .and_then(digits)
                .map(|(pid, _)| pid)
        })
        .or_else(|| {
            // The first number by itself.
            before
                .split(|c: char| c.is_whitespace() || matches!(c, ',' | '|' | ';'))
                .find_map(|word| {
                    let all = !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
                    all.then(|| word.parse().ok().map(Pid)).flatten()
                })
        })
}

/// `user=… db=… app=…`, or `user@database`.
fn session(before: &str) -> LogSession {
    let value = |keys: &[&str]| {
        keys.iter().find_map(|key| {
            let (_, rest) = before.split_once(key)?;
            named(rest.split([',', ' ', ']', '|', ';', '>', ')']).next()?)
        })
    };
    let mut session = LogSession {
        user: value(&["user=", "usr="]),
        database: value(&["db=", "database="]),
        application_name: value(&["app=", "application=", "application_name="]),
    };
    let pair = before
        .split(|c: char| c.is_whitespace() || matches!(c, ':' | ',' | '|'))
        .find_map(|word| word.split_once('@'));
    if let (Some((user, database)), None) = (pair, &session.user) {
        session.user = named(user);
        session.database = named(database);
    }
    session
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_unknown_prefix_tells() {
        let line =
            "<2026-12-01 02:35:34.717 UTC> pid=77 user=app database=shop app=web 詳細:  プロセス";
        let split = split(line, &mut Zone::default()).expect("a line");
        assert_eq!((split.label, split.text), (Label::Detail, "プロセス"));
        assert_eq!(split.head.pid, Some(Pid(77)));
        assert_eq!(
            split.head.at.map(|at| at.to_string()).as_deref(),
            Some("2026-12-01T02:35:34.717000Z")
        );
        let names = split.head.session;
        assert_eq!(
            [names.user, names.database, names.application_name],
            ["app", "shop", "web"].map(|name| Some(name.to_owned()))
        );
    }

    #[test]
    fn a_line_without_a_label_is_none() {
        for line in ["  where id = 2;", "error: no such file", "[1] a@b: x"] {
            assert!(split(line, &mut Zone::default()).is_none(), "{line}");
        }
    }
}
