//! The stderr format: a message is a line, and further lines of its process with DETAIL, CONTEXT, STATEMENT.

use std::borrow::Cow;
use std::collections::BTreeSet;

use memchr::{memchr, memrchr};

use super::encoding::Decoder;
use super::generic;
use super::labels::{self, Label, Severity};
use super::locktext;
use super::logins::authorized;
use super::odd;
use super::prefix::{Head, Prefix, Split};
use super::record::{Record, sqlstate};
use super::time::Zone;
use crate::model::{LogBefore, LogSession, Pid, Timestamp};

/// Longest text of one entry that is kept.
const MOST: usize = 1 << 20;
/// Entries of others between those of one message.
const FOREIGN: usize = 40;
/// Lines by which a prefix is chosen.
const SAMPLE: usize = 300;
/// Lines of a process that are looked at for who it is and what it did.
const LINES_BEFORE: usize = 60;
/// Statements of a transaction that are kept.
const STATEMENTS: usize = 20;
/// Names that read as a label that are kept.
const ODD: usize = 32;

/// Reads lines by the prefix that fits.
#[derive(Debug)]
pub struct Lines {
    given: Option<Prefix>,
    known: Vec<Prefix>,
    /// The last that fitted: the next line is most likely alike.
    last: usize,
    pub zone: Zone,
    /// Starts of messages that were told, and of entries of theirs that stand apart.
    told: BTreeSet<u64>,
    pub cut: u64,
    /// Lines by no known prefix.
    pub by_shape: u64,
    decoder: Decoder,
    /// A line has `user@database` and nothing more before its label: so has every line of this log.
    one_word: bool,
    /// Parts of application names that read as a label and a text.
    odd: Vec<String>,
}

/// What was found around a place.
pub enum Around {
    /// The buffer ends before the message does.
    More,
    Nothing,
    Found(Box<Record>, usize),
}

struct Entry<'b> {
    start: usize,
    end: usize,
    head: Head,
    label: Label,
    severity: Severity,
    text: Cow<'b, str>,
}

impl Lines {
    pub fn new(given: Option<Prefix>, zone: Zone) -> Self {
        Self {
            given,
            known: Prefix::known(),
            last: 0,
            zone,
            told: BTreeSet::new(),
            cut: 0,
            by_shape: 0,
            decoder: Decoder::default(),
            one_word: false,
            odd: Vec::new(),
        }
    }

    /// The prefix that the lines have; `None`: none of those that are known.
    pub fn prefix(&self) -> Option<&Prefix> {
        self.given.as_ref().or_else(|| self.known.get(self.last))
    }

    /// Chooses the prefix that fits most of the first lines; how many lines are a log's.
    pub fn learn(&mut self, sample: &[u8]) -> usize {
        let lines: Vec<Cow<'_, str>> = sample
            .split(|b| *b == b'\n')
            .filter(|line| !line.is_empty() && !line.starts_with(b"\t"))
            .take(SAMPLE)
            .map(|line| self.decoded(line))
            .collect();
        let zone = &mut Zone::default();
        if let Some(given) = &self.given {
            return lines
                .iter()
                .filter(|line| given.split(line, zone).is_some())
                .count();
        }
        // Of shapes that fit as many lines the one that names most, and of those the one that tells more apart. Without
        // any session in the lines, the plainest.
        let mut best = (0, 0, 0);
        let mut chosen = self.known.len();
        for (n, prefix) in self.known.iter().enumerate() {
            let mut heads: Vec<Head> = Vec::new();
            for (n, line) in lines.iter().enumerate() {
                // One that can't fit as many any more isn't chosen.
                if heads.len() + lines.len() - n < best.0 {
                    break;
                }
                heads.extend(prefix.split(line, zone).map(|split| split.head));
            }
            let names = heads.iter().map(Head::names).sum::<usize>();
            let pieces = prefix.pieces();
            let rank = if names > 0 {
                pieces
            } else {
                usize::MAX - pieces
            };
            let fit = (heads.len(), names, rank);
            if fit.0 > 0 && fit > best {
                (best, chosen) = (fit, n);
            }
        }
        self.last = chosen;
        for line in &lines {
            self.split(line);
        }
        let by_shape = lines
            .iter()
            .filter(|line| generic::split(line, zone).is_some())
            .count();
        best.0.max(by_shape)
    }

    /// The time of a line.
    pub fn time_of(&mut self, line: &str) -> Option<Timestamp> {
        self.split(line)?.head.at
    }

    /// A line as text, in whichever encoding its label is one.
    fn decoded<'l>(&mut self, line: &'l [u8]) -> Cow<'l, str> {
        let mut decoder = self.decoder;
        let text = decoder.decode(line, |text| {
            let split = self.split(text)?;
            (split.label != Label::Unknown)
                .then(|| labels::word_of(&text[..text.len() - split.text.len()]).to_owned())
        });
        self.decoder = decoder;
        text
    }

    fn split<'l>(&mut self, line: &'l str) -> Option<Split<'l>> {
        if line.starts_with('\t') || line.is_empty() {
            return None;
        }
        for n in 0..self.odd.len() {
            let Some((blanked, name)) = odd::blanked(line, &self.odd[n]) else {
                continue;
            };
            let split = self.split_plain(&blanked)?;
            let (head, label, length) = (split.head, split.label, split.text.len());
            return Some(Split {
                head: odd::restored(head, &name),
                label,
                text: &line[line.len() - length..],
            });
        }
        self.split_plain(line)
    }

    /// Where an application's name hides the label behind it, the name is noted; whether it was.
    fn note_odd(&mut self, buffer: &[u8], entry: &Entry<'_>) -> bool {
        if self.odd.len() >= ODD {
            return false;
        }
        let line = self.decoded(text(&buffer[entry.start..line_end(buffer, entry.start)]));
        let Some(split) = self.split(&line) else {
            return false;
        };
        let Some(part) = odd::hiding(&line, split.text, split.head.pid) else {
            return false;
        };
        // The next line of the message has the same prefix: a text that only looks so isn't repeated.
        let next = text(&buffer[entry.end..line_end(buffer, entry.end)]);
        let repeated = odd::blanked(&self.decoded(next), &part).is_some();
        if repeated {
            self.odd.push(part);
        }
        repeated
    }

    fn split_plain<'l>(&mut self, line: &'l str) -> Option<Split<'l>> {
        if let Some(given) = &self.given {
            return given.split(line, &mut self.zone);
        }
        let order = std::iter::once(self.last).chain(0..self.known.len());
        for n in order {
            let prefix = self.known.get(n);
            if let Some(mut split) = prefix.and_then(|prefix| prefix.split(line, &mut self.zone)) {
                generic::tidy(&mut split.head.session);
                if prefix.is_some_and(Prefix::has_bare_names) {
                    self.one_word |= generic::is_one_word(&split.head.session, line);
                    if !self.one_word {
                        generic::without_blanks(&mut split.head.session);
                    }
                }
                // One odd line doesn't make another prefix of the file.
                return Some(split);
            }
        }
        let split = generic::split(line, &mut self.zone)?;
        self.by_shape += 1;
        Some(split)
    }

    /// The message around a place in the buffer, which begins at `base` of the file.
    pub fn around(&mut self, buffer: &[u8], hit: usize, base: u64, complete: bool) -> Around {
        self.told = self.told.split_off(&base);
        let Some(mut first) = self.entry_at(buffer, hit) else {
            return Around::Nothing;
        };
        if self.note_odd(buffer, &first)
            && let Some(read_again) = self.entry_at(buffer, hit)
        {
            first = read_again;
        }
        if self.told.contains(&(base + first.start as u64)) {
            return Around::Nothing;
        }
        if first.label != Label::Message
            && let Some(message) = self.message_before(buffer, &first)
            && !self.told.contains(&(base + message.start as u64))
        {
            first = message;
        }
        let start = base + first.start as u64;
        let mut record = Record::default();
        let mut end = first.end;
        let mut whole = first.end < buffer.len() || complete;
        let pid = first.head.pid;
        let mut foreign = 0;
        let mut next = first.end;
        take(&mut record, first);
        while whole && foreign < FOREIGN {
            let Some(entry) = self.entry_from(buffer, next) else {
                break;
            };
            whole = entry.end < buffer.len() || complete;
            next = entry.end;
            if entry.head.pid != pid {
                foreign += 1;
                continue;
            }
            if entry.label == Label::Message || !room(&record, &entry) {
                break;
            }
            if foreign == 0 {
                end = entry.end;
            } else {
                self.told.insert(base + entry.start as u64);
            }
            take(&mut record, entry);
        }
        if !whole || (next >= buffer.len() && !complete) {
            return Around::More;
        }
        self.told.insert(start);
        Around::Found(Box::new(record), end)
    }

    /// The entry that holds this byte.
    fn entry_at<'b>(&mut self, buffer: &'b [u8], at: usize) -> Option<Entry<'b>> {
        let mut start = line_start(buffer, at);
        loop {
            if let Some(entry) = self
                .entry_from(buffer, start)
                .filter(|entry| entry.start == start)
            {
                return Some(entry);
            }
            if start == 0 || at - start > MOST {
                return None;
            }
            start = line_start(buffer, start - 1);
        }
    }

    /// The message that an entry of its process belongs to.
    fn message_before<'b>(&mut self, buffer: &'b [u8], of: &Entry<'_>) -> Option<Entry<'b>> {
        let mut start = of.start;
        for _ in 0..FOREIGN {
            if start == 0 {
                return None;
            }
            let entry = self.entry_at(buffer, start - 1)?;
            start = entry.start;
            let begins = match entry.label {
                Label::Message => true,
                // In a language that isn't known, what stands right before a DETAIL is its message.
                Label::Unknown => of.label == Label::Detail,
                _ => false,
            };
            if entry.head.pid == of.head.pid && begins {
                return Some(entry);
            }
        }
        None
    }

    /// The first entry from here on: lines that begin none are skipped.
    fn entry_from<'b>(&mut self, buffer: &'b [u8], from: usize) -> Option<Entry<'b>> {
        let mut start = from;
        while start < buffer.len() {
            let mut end = line_end(buffer, start);
            self.cut += u64::from(end - start > MOST);
            let line = self.decoded(text(&buffer[start..end]));
            let Some(split) = self.split(&line) else {
                start = end;
                continue;
            };
            let (mut head, label) = (split.head, split.label);
            let mut whole = split.text.to_owned();
            let severity = Severity::of(&line[..line.len() - whole.len()]);
            if matches!(label, Label::Message | Label::Unknown)
                && let Some((code, rest)) = verbose(split.text)
                && head.sqlstate.as_deref().is_none_or(|known| known == code)
            {
                head.sqlstate = sqlstate(code);
                whole = rest.to_owned();
            }
            // What begins no entry of its own goes on with this one.
            while end < buffer.len() {
                let stop = line_end(buffer, end);
                let line = self.decoded(text(&buffer[end..stop]));
                if !line.starts_with('\t') && self.split(&line).is_some() {
                    break;
                }
                if whole.len() + line.len() < MOST {
                    whole.push('\n');
                    whole.push_str(line.strip_prefix('\t').unwrap_or(&line));
                } else {
                    self.cut += 1;
                }
                end = stop;
            }
            return Some(Entry {
                start,
                end,
                head,
                label,
                severity,
                text: Cow::Owned(whole),
            });
        }
        None
    }

    /// What lines before a place tell of a process.
    pub fn before(&mut self, buffer: &[u8], at: usize, pid: Pid) -> LogBefore {
        let digits = pid.to_string();
        let mut session = LogSession::default();
        let mut statements = Vec::new();
        for found in last_of(buffer, at, digits.as_bytes()) {
            if statements.len() >= STATEMENTS {
                break;
            }
            let start = line_start(buffer, found);
            // Most lines are another's, where the number stands for something else.
            let line = self.decoded(text(&buffer[start..line_end(buffer, start)]));
            if self
                .split(&line)
                .is_none_or(|split| split.head.pid != Some(pid))
            {
                continue;
            }
            let Some(entry) = self.entry_from(buffer, start) else {
                continue;
            };
            session = session.or(&entry.head.session).or(&authorized(&entry.text));
            if entry.label == Label::Message
                && let Some(statement) = logged_statement(&entry.text)
            {
                if ends_transaction(statement) {
                    break;
                }
                statements.push(statement.to_owned());
            }
        }
        statements.reverse();
        LogBefore {
            pid,
            session,
            statements,
        }
    }
}

/// `00000: …` by log_error_verbosity = verbose: the code, and the message without it.
fn verbose(text: &str) -> Option<(&str, &str)> {
    let (code, rest) = text.split_once(": ")?;
    // Each code of the server has a digit; a word such as ERROR is the message's own.
    let shaped = code.len() == 5
        && code
            .bytes()
            .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
        && code.bytes().any(|b| b.is_ascii_digit());
    shaped.then_some((code, rest))
}

/// A second DETAIL belongs to another message, whose first line was lost.
fn room(record: &Record, entry: &Entry<'_>) -> bool {
    match entry.label {
        Label::Detail => record.detail.is_none(),
        Label::Context => record.context.is_none(),
        Label::Statement => record.statement.is_none(),
        // The statement is the last of a message: what follows is another's.
        Label::Unknown => record.statement.is_none(),
        _ => true,
    }
}

fn take(record: &mut Record, entry: Entry<'_>) {
    if record.at.is_none() {
        record.at = entry.head.at;
        record.pid = entry.head.pid;
    }
    record.session = std::mem::take(&mut record.session).or(&entry.head.session);
    record.sqlstate = record.sqlstate.take().or(entry.head.sqlstate);
    let text = entry.text.into_owned();
    match entry.label {
        Label::Message => {
            record.message = text;
            record.severity = entry.severity;
        }
        Label::Detail => record.detail = Some(text),
        Label::Context => record.context = Some(text),
        Label::Statement => record.statement = Some(text),
        // By a label in an unknown language, the edges of a deadlock are a DETAIL all the same.
        Label::Unknown
            if text
                .lines()
                .next()
                .is_some_and(|line| locktext::edge(line).is_some()) =>
        {
            record.detail = Some(text);
        }
        Label::Unknown if record.message.is_empty() => record.message = text,
        Label::Unknown => {}
        Label::Aside => record.aside = true,
    }
}

/// A statement that log_statement or log_min_duration_statement wrote.
pub fn logged_statement(message: &str) -> Option<&str> {
    const WORDS: [&str; 2] = ["statement: ", "文: "];
    let near = &message[..message.floor_char_boundary(200)];
    for word in WORDS {
        if let Some(at) = near
            .find(word)
            .filter(|at| *at == 0 || message.starts_with("duration: "))
        {
            return Some(message[at + word.len()..].trim());
        }
    }
    let at = near
        .find("execute ")
        .filter(|at| *at == 0 || message.starts_with("duration: "))?;
    let (_, statement) = message[at..].split_once(": ")?;
    Some(statement.trim())
}

/// It began a transaction or ended the one before: what stands earlier isn't of this one.
pub fn ends_transaction(statement: &str) -> bool {
    let first = statement
        .split(|c: char| !c.is_ascii_alphabetic())
        .next()
        .unwrap_or("");
    ["begin", "start", "commit", "rollback", "end", "abort"]
        .iter()
        .any(|word| first.eq_ignore_ascii_case(word))
}

/// The last places of a text before another place, one a line, the nearest first.
pub fn last_of(buffer: &[u8], before: usize, needle: &[u8]) -> Vec<usize> {
    // Forwards, since only that search is a fast one.
    let mut places = std::collections::VecDeque::with_capacity(LINES_BEFORE);
    let mut line = 0;
    for found in memchr::memmem::find_iter(&buffer[..before], needle) {
        if found < line {
            continue;
        }
        line = line_end(buffer, found);
        if places.len() == LINES_BEFORE {
            places.pop_front();
        }
        places.push_back(found);
    }
    places.into_iter().rev().collect()
}

pub fn line_start(buffer: &[u8], at: usize) -> usize {
    memrchr(b'\n', &buffer[..at]).map_or(0, |newline| newline + 1)
}

/// Behind the newline.
pub fn line_end(buffer: &[u8], from: usize) -> usize {
    memchr(b'\n', &buffer[from..]).map_or(buffer.len(), |newline| from + newline + 1)
}

fn text(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    &line[..line.len().min(MOST)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(lines: &str) -> Option<String> {
        let mut of = Lines::new(None, Zone::default());
        of.learn(lines.as_bytes());
        of.prefix().map(|prefix| prefix.text.clone())
    }

    #[test]
    fn the_prefix_is_told_by_the_lines() {
        let plain = "2026-12-01 02:35:33.368 JST [1] LOG:  ready\n";
        assert_eq!(learned(plain).as_deref(), Some("%m [%p] "));
        let cases = [
            ("app@shop/web", "%m [%p] %q%u@%d/%a "),
            ("app@shop/", "%m [%p] %q%u@%d/%a "),
            ("app@shop/[unknown]", "%m [%p] %q%u@%d/%a "),
            ("app@shop", "%m [%p] %q%u@%d "),
        ];
        for (who, prefix) in cases {
            let lines = format!(
                "{plain}2026-12-01 02:35:34.000 JST [2] [unknown]@[unknown]{} LOG:  connection received: host=[local]\n\
                 2026-12-01 02:35:34.000 JST [2] {who} LOG:  x\n",
                if who.contains('/') { "/[unknown]" } else { "" }
            );
            assert_eq!(learned(&lines).as_deref(), Some(prefix), "{who}");
        }
        assert_eq!(learned("hello\nworld\n"), None);
    }

    #[test]
    fn statements_that_the_log_was_told_to_have() {
        let cases = [
            ("statement: update t set a = 1", Some("update t set a = 1")),
            ("文: update t", Some("update t")),
            ("duration: 0.5 ms  statement: select 1", Some("select 1")),
            (
                "duration: 0.5 ms  execute <unnamed>: select $1",
                Some("select $1"),
            ),
            ("execute s1/p1: select 2", Some("select 2")),
            ("duplicate key in statement: x", None),
            ("could not execute x: y", None),
        ];
        for (message, statement) in cases {
            assert_eq!(logged_statement(message), statement, "{message}");
        }
    }
}
