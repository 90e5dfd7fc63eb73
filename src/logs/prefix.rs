//! `log_line_prefix`: what stands before the label of each line of the stderr format.

use super::labels::{self, Label};
use super::record::{named, sqlstate};
use super::time::{self, Zone};
use crate::model::{LogSession, Pid, Timestamp};

/// Shapes in wide use; of two that fit a line, the one that tells more stands first.
const SHAPES: [&str; 27] = [
    "%t [%p]: [%l-1] user=%u,db=%d,app=%a,client=%h ",
    "%m [%p]: [%l-1] user=%u,db=%d,app=%a,client=%h ",
    "%t [%p]: user=%u,db=%d,app=%a,client=%h ",
    "%m [%p]: user=%u,db=%d,app=%a,client=%h ",
    "%m [%p]: [%l-1] db=%d,user=%u,app=%a,client=%h ",
    "%t [%p]: [%l-1] user=%u,db=%d ",
    "%m [%p]: [%l-1] user=%u,db=%d ",
    "%m [%p]: [%l-1] db=%d,user=%u ",
    "%m:%r:%u@%d:[%p]:%l:%e:%s:%v:%x:%c:%q%a:",
    "%t:%r:%u@%d:[%p]:",
    "%m [%p] %q[user=%u,db=%d,app=%a] ",
    "%m [%p] %quser=%u,db=%d,app=%a,client=%h ",
    "%m [%p] %q%u@%d/%a ",
    "%t [%p] %q%u@%d/%a ",
    "%m [%p-%l] %q%u@%d ",
    "%t [%p-%l] %q%u@%d ",
    "%m [%p] %q%u@%d ",
    "%t [%p] %q%u@%d ",
    "%m %p %u %d %a %e ",
    "%m %u %d %p %a ",
    "%t-%c-",
    "%m [%p] %e ",
    "%m [%p]: [%l] ",
    "%m [%p]: ",
    "%m [%p] ",
    "%t [%p] ",
    "< %m > ",
];

/// Longest text that a name in a prefix may have.
const NAME: usize = 512;
/// Steps until a line is given up: a prefix of many free texts could be tried for ever.
const STEPS: usize = 20_000;

/// A `log_line_prefix`, ready to be held against lines.
#[derive(Clone, Debug)]
pub struct Prefix {
    pub text: String,
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
enum Piece {
    Literal(String),
    Escape {
        what: char,
        padded: bool,
    },
    /// `%q`: a background process writes nothing from here on.
    SessionsOnly,
}

/// A prefix can't be what the server's configuration has.
#[derive(Debug, thiserror::Error)]
#[error("log_line_prefix {text:?}: {what}")]
pub struct PrefixError {
    text: String,
    what: String,
}

/// What a prefix tells of its line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    pub at: Option<Timestamp>,
    pub pid: Option<Pid>,
    pub session: LogSession,
    pub sqlstate: Option<String>,
}

/// A line taken apart.
pub struct Split<'l> {
    pub head: Head,
    pub label: Label,
    pub text: &'l str,
}

impl Prefix {
    /// # Errors
    /// When it ends in the middle of an escape.
    pub fn new(text: &str) -> Result<Self, PrefixError> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut literal = String::new();
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            if c != '%' {
                literal.push(c);
                continue;
            }
            let mut padded = false;
            while let Some(digit) = chars.next_if(|c| matches!(c, '-' | '0'..='9')) {
                let _ = digit;
                padded = true;
            }
            let what = chars.next().ok_or_else(|| PrefixError {
                text: text.to_owned(),
                what: "ends in the middle of an escape".into(),
            })?;
            if what == '%' {
                literal.push('%');
                continue;
            }
            if !literal.is_empty() {
                pieces.push(Piece::Literal(std::mem::take(&mut literal)));
            }
            pieces.push(match what {
                'q' => Piece::SessionsOnly,
                _ => Piece::Escape { what, padded },
            });
        }
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        Ok(Self {
            text: text.to_owned(),
            pieces,
        })
    }

    /// The shapes that are tried where none is given.
    pub fn known() -> Vec<Self> {
        SHAPES
            .iter()
            .filter_map(|text| Self::new(text).ok())
            .collect()
    }

    /// A name ends at a blank: where the line has more words than the shape, what is whose can't be told.
    pub fn has_bare_names(&self) -> bool {
        self.text.contains("%u@%d ")
    }

    /// In pieces.
    pub fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// The line by this prefix; `None` where it isn't one, as the later lines of a message.
    pub fn split<'l>(&self, line: &'l str, zone: &mut Zone) -> Option<Split<'l>> {
        let mut found = Vec::new();
        let mut steps = STEPS;
        let end = go(&self.pieces, line, 0, &mut found, &mut steps)?;
        let (label, start) = labels::leading(&line[end..])?;
        let mut head = Head::default();
        for (what, from, to) in found {
            head.take(what, &line[from..to], zone);
        }
        Some(Split {
            head,
            label,
            text: &line[end + start..],
        })
    }
}

impl Head {
    /// How many names it has.
    pub fn names(&self) -> usize {
        let session = &self.session;
        [&session.user, &session.database, &session.application_name]
            .into_iter()
            .flatten()
            .count()
    }

    fn take(&mut self, what: char, text: &str, zone: &mut Zone) {
        match what {
            'm' | 't' => self.at = time::leading(text, zone).map(|(at, _)| at),
            'n' => self.at = time::epoch(text),
            'p' => self.pid = text.trim().parse().ok().map(Pid),
            'c' => self.pid = self.pid.or_else(|| session_pid(text)),
            'u' => self.session.user = named(text),
            'd' => self.session.database = named(text),
            'a' => self.session.application_name = named(text),
            'e' => self.sqlstate = sqlstate(text),
            _ => {}
        }
    }
}

type Found = Vec<(char, usize, usize)>;

/// Where the prefix ends, with the label behind it.
fn go(
    pieces: &[Piece],
    line: &str,
    at: usize,
    found: &mut Found,
    steps: &mut usize,
) -> Option<usize> {
    *steps = steps.checked_sub(1)?;
    let Some((piece, rest)) = pieces.split_first() else {
        return labels::leading(&line[at..]).map(|_| at);
    };
    let text = &line[at..];
    match piece {
        Piece::Literal(literal) => text
            .starts_with(literal.as_str())
            .then(|| go(rest, line, at + literal.len(), found, steps))
            .flatten(),
        Piece::SessionsOnly => {
            let mark = found.len();
            go(rest, line, at, found, steps).or_else(|| {
                found.truncate(mark);
                labels::leading(text).map(|_| at)
            })
        }
        Piece::Escape { what, padded } => {
            let skipped = if *padded {
                text.len() - text.trim_start_matches(' ').len()
            } else {
                0
            };
            let from = at + skipped;
            for end in ends(*what, &line[from..], rest.first()) {
                let mut next = from + end;
                if *padded {
                    next += line[next..].len() - line[next..].trim_start_matches(' ').len();
                }
                let mark = found.len();
                found.push((*what, from, from + end));
                // Padding may have eaten the blank of the literal behind it.
                for next in [next, from + end] {
                    if let Some(end) = go(rest, line, next, found, steps) {
                        return Some(end);
                    }
                }
                found.truncate(mark);
            }
            None
        }
    }
}

/// Where a value may end.
fn ends(what: char, text: &str, next: Option<&Piece>) -> Vec<usize> {
    let run = |keep: fn(char) -> bool| text.find(|c: char| !keep(c)).unwrap_or(text.len());
    let exactly = |end: usize, least: usize| if end >= least { vec![end] } else { Vec::new() };
    match what {
        'm' | 't' | 's' => match time::leading(text, &mut Zone::default()) {
            Some((_, end)) => vec![end],
            // Some processes have no start of a session.
            None if what == 's' => vec![0],
            None => Vec::new(),
        },
        'n' => exactly(run(|c| c.is_ascii_digit() || c == '.'), 1),
        'p' | 'l' | 'x' => exactly(run(|c| c.is_ascii_digit()), 1),
        // Empty in all processes but parallel workers, or before a session has one.
        'P' | 'Q' => exactly(run(|c| c.is_ascii_digit() || c == '-'), 0),
        'v' => vec![virtual_transaction(text)],
        'c' => exactly(run(|c| c.is_ascii_hexdigit() || c == '.'), 1),
        'e' => exactly(run(|c| c.is_ascii_uppercase() || c.is_ascii_digit()), 5),
        _ => free(text, next),
    }
}

/// `4/2`, or nothing.
fn virtual_transaction(text: &str) -> usize {
    let digits = |from: usize| {
        text.bytes()
            .skip(from)
            .take_while(u8::is_ascii_digit)
            .count()
    };
    let process = digits(0);
    let number = digits(process + 1);
    if process > 0 && number > 0 && text.as_bytes().get(process) == Some(&b'/') {
        process + 1 + number
    } else {
        0
    }
}

/// The process of a session's id: `6b0dc985.352f` is when it began and its pid, in hexadecimal.
pub fn session_pid(id: &str) -> Option<Pid> {
    let (began, pid) = id.trim().split_once('.')?;
    let is_hex = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
    if !(is_hex(began) && is_hex(pid)) {
        return None;
    }
    i32::from_str_radix(pid, 16).ok().map(Pid)
}

/// Names, commands and addresses: up to any place where what follows may begin, shortest first.
fn free(text: &str, next: Option<&Piece>) -> Vec<usize> {
    let text = &text[..text.floor_char_boundary(NAME)];
    match next {
        Some(Piece::Literal(literal)) => text
            .match_indices(literal.as_str())
            .map(|(at, _)| at)
            .collect(),
        _ => text.char_indices().map(|(at, _)| at).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(prefix: &str, line: &str) -> Option<(Head, Label, String)> {
        let prefix = Prefix::new(prefix).expect("a prefix");
        let split = prefix.split(line, &mut Zone::default())?;
        Some((split.head, split.label, split.text.to_owned()))
    }

    #[test]
    fn names_and_numbers_come_out() {
        let cases = [
            (
                "%m [%p] %q%u@%d/%a ",
                "2026-12-01 02:35:34.717 JST [30265] app@shop/transfer a LOG:  x",
            ),
            (
                "%t:%r:%u@%d:[%p]:%a:",
                "2026-12-01 02:35:34 JST:10.0.0.1(5):app@shop:[30265]:transfer a:LOG:  x",
            ),
            (
                "%-7p|%10u|%-10d|%a|%e|%m ",
                "30265  |       app|shop      |transfer a|00000|2026-12-01 02:35:34.717 JST LOG:  x",
            ),
            (
                "%p %i %v %x %c %s %Q %P %l%% %u %d %a ",
                "30265 UPDATE waiting 4/2 728 6b0db3f3.79a9 2026-12-01 02:35:47 JST 0  3% app shop transfer a LOG:  x",
            ),
        ];
        for (prefix, line) in cases {
            let (head, label, text) = split(prefix, line).unwrap_or_else(|| panic!("{prefix}"));
            assert_eq!(head.pid, Some(Pid(30265)), "{prefix}");
            assert_eq!(head.session.user.as_deref(), Some("app"), "{prefix}");
            assert_eq!(head.session.database.as_deref(), Some("shop"), "{prefix}");
            assert_eq!(
                head.session.application_name.as_deref(),
                Some("transfer a"),
                "{prefix}"
            );
            assert_eq!((label, text.as_str()), (Label::Message, "x"), "{prefix}");
        }
    }

    #[test]
    fn a_session_id_has_the_pid() {
        let by = |prefix, line| split(prefix, line).map(|(head, ..)| head.pid);
        let line = "6b0dc648.6080 1 2026-11-30 18:54:00.241 UTC 3/273/904: LOG:  x";
        assert_eq!(by("%c %l %m %v/%x: ", line), Some(Some(Pid(24704))));
        let none = "6b0dc648.6080 1 2026-11-30 18:54:00.241 UTC /0: LOG:  x";
        assert_eq!(by("%c %l %m %v/%x: ", none), Some(Some(Pid(24704))));
        let both = "6b0dc648.6080 [7] LOG:  x";
        assert_eq!(by("%c [%p] ", both), Some(Some(Pid(7))));
        assert_eq!(session_pid("6b0dc648"), None);
    }

    #[test]
    fn a_background_process_has_no_session() {
        let (head, ..) = split(
            "%m [%p] %q%u@%d ",
            "2026-12-01 02:35:34.717 JST [7] LOG:  x",
        )
        .expect("a line");
        assert_eq!((head.pid, head.session.is_known()), (Some(Pid(7)), false));
        assert!(
            split(
                "%m [%p] ",
                "2026-12-01 02:35:34.717 JST [7] app@shop LOG:  x"
            )
            .is_none()
        );
    }

    #[test]
    fn an_application_that_looks_like_a_line() {
        let line = "2026-12-01 02:35:34.717 JST [7] a@b/ERROR:  x LOG:  y";
        let (head, _, text) = split("%m [%p] %q%u@%d/%a ", line).expect("a line");
        assert_eq!(head.session.application_name.as_deref(), Some("ERROR:  x"));
        assert_eq!(text, "y");
        assert!(Prefix::new("%m %").is_err());
    }

    proptest::proptest! {
        #[test]
        fn any_line_is_answered(line in "\\PC{0,80}", prefix in "[%amdpq \\[@-]{0,12}") {
            if let Ok(prefix) = Prefix::new(&prefix) {
                let _ = prefix.split(&line, &mut Zone::default());
            }
        }
    }
}
