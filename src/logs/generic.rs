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

/// `user=… db=… app=…`, or `user@database`. Where a name ends can't always be told: then it isn't known.
fn session(before: &str) -> LogSession {
    let value = |keys: &[&str]| keys.iter().find_map(|key| value(before, key));
    let mut session = LogSession {
        user: value(&["user=", "usr="]),
        database: value(&["db=", "database="]),
        application_name: value(&["app=", "application=", "application_name="]),
    };
    let pair = before
        .split(|c: char| c.is_whitespace() || matches!(c, ':' | ',' | '|'))
        .find_map(|word| word.split_once('@'));
    if let (Some((user, database)), None) = (pair, &session.user) {
        let database = database.split('/').next().unwrap_or_default();
        session.user = named(user.trim_start_matches(['[', '(', '<']));
        session.database = named(database.trim_end_matches([']', ')', '>']));
    }
    session
}

/// `user@database` alone stands before the label: a name beside them would stand there too.
pub fn is_one_word(session: &LogSession, line: &str) -> bool {
    let is_word = |name: &Option<String>| name.as_ref().is_some_and(|name| !name.contains(' '));
    is_word(&session.user) && is_word(&session.database)
        || line.contains(" [unknown]@[unknown] LOG:  ")
}

/// A user or a database with a blank may as well be two names of another prefix: then it isn't known.
pub fn without_blanks(session: &mut LogSession) {
    for name in [&mut session.user, &mut session.database] {
        if name.as_deref().is_some_and(|name| name.contains(' ')) {
            *name = None;
        }
    }
}

/// Of names that a shape in wide use made out: the bracket around all of them is none of theirs, and where an address stands
/// before the last, another prefix was meant.
pub fn tidy(session: &mut LogSession) {
    let address = |name: &str| {
        let first = name.split(' ').next().unwrap_or_default();
        let port = first.rsplit_once('(').map(|(_, port)| port);
        first == "[local]" && name.len() > first.len()
            || port.is_some_and(|port| {
                port.strip_suffix(')').is_some_and(|port| {
                    port.bytes().all(|b| b.is_ascii_digit()) && !port.is_empty()
                })
            })
    };
    if session.application_name.as_deref().is_some_and(address) {
        *session = LogSession::default();
        return;
    }
    let LogSession {
        user: Some(first),
        database,
        application_name,
    } = session
    else {
        return;
    };
    let Some(last) = application_name.as_mut().or(database.as_mut()) else {
        return;
    };
    for (open, close) in [('[', ']'), ('(', ')'), ('<', '>')] {
        if first.starts_with(open) && last.ends_with(close) && !first.ends_with(close) {
            first.remove(0);
            last.pop();
        }
    }
}

/// What stands behind a key: up to the comma and the like of the next pair, or to the bracket around all of them.
fn value(before: &str, key: &str) -> Option<String> {
    let (lead, rest) = before.split_once(key)?;
    let next = next_key(rest);
    let text = match next {
        Some(next) => &rest[..next],
        None => rest.trim_end(),
    };
    // The bracket that is open, unless it was closed before the key.
    let open = lead
        .rfind(['[', '(', '<'])
        .filter(|at| !lead[*at..].contains([']', ')', '>']));
    let close = open.and_then(|at| match lead.as_bytes()[at] {
        b'[' => Some(']'),
        b'(' => Some(')'),
        b'<' => Some('>'),
        _ => None,
    });
    let text = text.trim_end_matches([',', ' ', '|', ';']);
    let whole = match close.filter(|_| next.is_none()) {
        Some(close) => text.strip_suffix(close)?,
        None => without_stray(text),
    };
    // What goes on behind it may be another part of the prefix.
    let sure = close.is_some() || next.is_some() || !whole.contains([' ', ',', '|', ';']);
    sure.then(|| named(whole)).flatten()
}

/// Without a bracket at its end that opens nowhere in it.
fn without_stray(text: &str) -> &str {
    [('[', ']'), ('(', ')'), ('<', '>')]
        .into_iter()
        .filter(|(open, _)| !text.contains(*open))
        .find_map(|(_, close)| text.strip_suffix(close))
        .unwrap_or(text)
}

fn not_of_a_word(c: char) -> bool {
    !(c.is_ascii_alphanumeric() || c == '_')
}

/// Where the separator of the next `key=` begins.
fn next_key(rest: &str) -> Option<usize> {
    rest.match_indices('=').find_map(|(at, _)| {
        let word = rest[..at]
            .rfind(not_of_a_word)
            .map(|start| (start, rest[start..at].trim_start_matches(not_of_a_word)))?;
        let known = [
            "user",
            "usr",
            "db",
            "database",
            "app",
            "application",
            "application_name",
            "client",
            "host",
            "pid",
            "remote",
            "session",
            "xid",
            "state",
            "line",
        ];
        (known.contains(&word.1) && matches!(rest.as_bytes()[word.0], b',' | b' ' | b'|' | b';'))
            .then_some(word.0)
    })
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
    fn a_name_ends_where_its_bracket_does_or_is_unknown() {
        let of = |before: &str| session(before).application_name;
        let some = |name: &str| Some(name.to_owned());
        let cases = [
            ("[user=u,db=d,app=my app,client=[local]] ", some("my app")),
            ("[user=u,db=d,app=[unknown],client=[local]] ", None),
            ("[app=my app] ", some("my app")),
            ("[app=[unknown]] ", None),
            ("[app=a]b] ", some("a]b")),
            ("(user=u,db=d,app=my (old) app) ", some("my (old) app")),
            ("<user=u db=d app=my app> ", some("my app")),
            ("user=u,db=d,app=web ", some("web")),
            ("user=u,db=d,app=my app ", None),
            ("[7] app=my app client=10.0.0.1 ", some("my app")),
            ("[7] [user=u] app=web ", some("web")),
        ];
        for (before, name) in cases {
            assert_eq!(of(before), name, "{before}");
        }
        // A letter of another script parts words too.
        let wide = session("app,q$U：Ddb=shop,app=load-1,client=[local] ");
        assert_eq!(wide.application_name, some("load-1"));
        let pair = session("[u@d/a1] ");
        assert_eq!(
            (pair.user, pair.database, pair.application_name),
            (some("u"), some("d"), None)
        );
    }

    #[test]
    fn a_shape_that_fits_by_chance_makes_no_wrong_name() {
        let of = |user: &str, application: &str| {
            let mut session = LogSession {
                user: Some(user.into()),
                database: Some("d".into()),
                application_name: Some(application.into()),
            };
            tidy(&mut session);
            session.application_name
        };
        let some = |name: &str| Some(name.to_owned());
        assert_eq!(of("[u", "a1]"), some("a1"));
        assert_eq!(of("u", "a [1]"), some("a [1]"));
        assert_eq!(of("u", "[local] a1"), None);
        assert_eq!(of("u", "10.0.0.1(5432) a1"), None);
        assert_eq!(of("u", "my app (2)"), some("my app (2)"));
    }

    #[test]
    fn a_line_without_a_label_is_none() {
        for line in ["  where id = 2;", "error: no such file", "[1] a@b: x"] {
            assert!(split(line, &mut Zone::default()).is_none(), "{line}");
        }
    }
}
