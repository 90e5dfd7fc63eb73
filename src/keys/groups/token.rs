//! A key in tokens: words and values, and the delimiters between them. Nothing is allocated.

use super::shape::{self, LONGEST_WORD, Shape, is_delimiter, is_major, is_minor};
use super::span::{self, Span};

/// What follows so many segments is one value.
const MOST_SEGMENTS: usize = 16;
/// Words, `-` and `_` within segments counted too.
const MOST_WORDS: usize = 32;
/// So far it is looked whether all of a segment is one base64 value.
const LONGEST_SEGMENT: usize = 512;
/// A longer row of delimiters is a value.
const LONGEST_DELIMITER: usize = 8;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One or more delimiters that follow each other; `major`: the segment ends.
    Delimiter {
        major: bool,
    },
    Name,
    /// A name that rather is a value where values are.
    Odd,
    /// As `Odd`, and so is the rest of its segment.
    OddSegment,
    Value,
}

/// A piece of a key.
#[derive(Clone, Copy, Debug)]
pub struct Token<'a> {
    pub kind: Kind,
    /// As in the key.
    pub raw: &'a [u8],
    /// The part of `raw` that is a value, where it is just a part.
    number: Option<(u8, u8)>,
}

/// Room for a label that isn't a part of the key.
pub type Buffer = [u8; LONGEST_WORD + 1];

impl<'a> Token<'a> {
    fn new(kind: Kind, raw: &'a [u8]) -> Self {
        Self {
            kind,
            raw,
            number: None,
        }
    }

    /// What stands in the name of a group for it.
    pub fn label<'b>(&self, buffer: &'b mut Buffer) -> &'b [u8]
    where
        'a: 'b,
    {
        match (self.kind, self.number) {
            (Kind::Value, _) => b"*",
            (_, None) => self.raw,
            (_, Some((from, to))) => {
                let (from, to) = (usize::from(from), usize::from(to));
                starred(&self.raw[..from], &self.raw[to..], buffer)
            }
        }
    }

    /// Whether there is a value in it.
    pub fn varies(&self) -> bool {
        self.kind == Kind::Value || self.number.is_some()
    }

    /// For a name with one digit at its end, `level2`: `level*`.
    pub fn stem<'b>(&self, buffer: &'b mut Buffer) -> Option<&'b [u8]> {
        if self.number.is_some() || matches!(self.kind, Kind::Value | Kind::Delimiter { .. }) {
            return None;
        }
        shape::stem(self.raw).map(|stem| starred(stem, b"", buffer))
    }
}

fn starred<'b>(before: &[u8], after: &[u8], buffer: &'b mut Buffer) -> &'b [u8] {
    let length = before.len() + 1 + after.len();
    buffer[..before.len()].copy_from_slice(before);
    buffer[before.len()] = b'*';
    buffer[before.len() + 1..length].copy_from_slice(after);
    &buffer[..length]
}

fn until(rest: &[u8], is: impl Fn(u8) -> bool) -> usize {
    rest.iter().position(|byte| is(*byte)).unwrap_or(rest.len())
}

/// As much of the segment as is looked at.
fn segment(rest: &[u8]) -> &[u8] {
    let near = &rest[..rest.len().min(LONGEST_SEGMENT)];
    &near[..until(near, is_major)]
}

/// How many `=` base64 is filled up with, behind it.
fn filling(rest: &[u8]) -> usize {
    let length = rest
        .iter()
        .take(2)
        .take_while(|byte| **byte == b'=')
        .count();
    let ends = rest.get(length).is_none_or(|byte| is_delimiter(*byte));
    if ends { length } else { 0 }
}

/// Whether the `-` or `_` at the start of a segment is part of it: the sign of a number, or of base64.
fn begins_value(rest: &[u8]) -> bool {
    is_minor(rest[0])
        && (span::negative(rest).is_some() || shape::segment_shape(segment(rest)) != Shape::Name)
}

/// The tokens of a key, one by one.
#[derive(Clone)]
pub struct Tokens<'a> {
    key: &'a [u8],
    at: usize,
    segments: usize,
    words: usize,
    starts_segment: bool,
    has_at_sign: bool,
    /// A word that was looked at already, to see if a value goes on.
    ahead: Option<(usize, Token<'a>)>,
}

impl<'a> Tokens<'a> {
    pub fn new(key: &'a [u8]) -> Self {
        Self {
            key,
            at: 0,
            segments: 0,
            words: 0,
            starts_segment: true,
            has_at_sign: key.contains(&b'@'),
            ahead: None,
        }
    }

    /// Goes to the end of the segment.
    pub fn skip_segment(&mut self) {
        loop {
            let before = self.clone();
            match self.next() {
                Some(Token {
                    kind: Kind::Delimiter { major: true },
                    ..
                }) => {
                    *self = before;
                    return;
                }
                Some(_) => {}
                None => return,
            }
        }
    }

    /// Whether another segment follows.
    pub fn has_more_segments(&self) -> bool {
        self.clone()
            .any(|token| token.kind == Kind::Delimiter { major: true })
    }

    fn delimiter(&mut self) -> Token<'a> {
        let rest = &self.key[self.at..];
        let mut length = rest.iter().take_while(|byte| is_delimiter(**byte)).count();
        let minor = rest[..length]
            .iter()
            .rev()
            .take_while(|byte| is_minor(**byte))
            .count();
        if minor > 0 && minor < length && begins_value(&rest[length - minor..]) {
            length -= minor;
        }
        let raw = &rest[..length];
        let major = raw.iter().any(|byte| is_major(*byte));
        self.at += length;
        self.segments += usize::from(major);
        self.starts_segment = major;
        let kind = Kind::Delimiter { major };
        if length > LONGEST_DELIMITER {
            return Token {
                number: Some((0, 0)),
                ..Token::new(kind, b"")
            };
        }
        Token::new(kind, raw)
    }

    /// The word at an offset, without what may belong to it behind a `-`.
    fn word(&self, at: usize) -> Token<'a> {
        let rest = &self.key[at..];
        if self.segments >= MOST_SEGMENTS || self.words >= MOST_WORDS {
            return Token::new(Kind::Value, rest);
        }
        if rest[0] == b'-'
            && let Some(length) = span::negative(rest)
        {
            return Token::new(Kind::Value, &rest[..length]);
        }
        let lead = rest.iter().take_while(|byte| is_minor(**byte)).count();
        let length = lead + until(&rest[lead..], is_delimiter);
        match span::span(rest, length, self.has_at_sign) {
            Some(Span::Value(length)) => return Token::new(Kind::Value, &rest[..length]),
            Some(Span::Name(length)) => return Token::new(Kind::Name, &rest[..length]),
            None => {}
        }
        let raw = &rest[..length];
        let (kind, number) = match shape::shape(raw) {
            Shape::Name => (Kind::Name, None),
            Shape::Numbered(from, to) => (Kind::Name, Some((from, to))),
            Shape::Odd => (Kind::Odd, None),
            Shape::Value => (Kind::Value, None),
        };
        if kind == Kind::Odd && filling(&rest[length..]) > 0 {
            return Token::new(Kind::Value, raw);
        }
        let cut = lead > 0 || rest.get(length).is_some_and(|byte| is_minor(*byte));
        if !cut || length > LONGEST_WORD {
            return Token { kind, raw, number };
        }
        let is_value = kind == Kind::Value;
        let begins = self.starts_segment && at == self.at;
        if (is_value && !shape::has_both_cases(raw)) || !(begins || shape::is_mixed(raw)) {
            return Token { kind, raw, number };
        }
        let segment = segment(rest);
        match shape::segment_shape(segment) {
            Shape::Value if lead > 0 || is_value || shape::is_mixed(raw) => {
                Token::new(Kind::Value, segment)
            }
            Shape::Odd if is_value => Token::new(Kind::Value, segment),
            Shape::Value | Shape::Odd if begins => Token::new(Kind::OddSegment, raw),
            _ => Token { kind, raw, number },
        }
    }

    /// Values with a `-` or `_` between them are one, and numbers with a `.`.
    fn extend(&mut self, start: usize, first: Token<'a>) -> Token<'a> {
        let mut end = start + first.raw.len();
        let mut numbers = shape::is_number(first.raw.strip_prefix(b"-").unwrap_or(first.raw));
        while let Some(&delimiter) = self.key.get(end) {
            let joins = matches!(delimiter, b'-' | b'_') || (delimiter == b'.' && numbers);
            let next = end + 1;
            if !joins || self.key.get(next).is_none_or(|byte| is_delimiter(*byte)) {
                break;
            }
            let word = self.word(next);
            let is_number = shape::is_number(word.raw);
            if word.kind != Kind::Value || (delimiter == b'.' && !is_number) {
                self.ahead = (delimiter != b'.').then_some((next, word));
                break;
            }
            numbers &= is_number;
            end = next + word.raw.len();
        }
        if !numbers {
            end += filling(&self.key[end..]);
        }
        Token::new(Kind::Value, &self.key[start..end])
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let byte = *self.key.get(self.at)?;
        let start = self.at;
        let capped = self.segments >= MOST_SEGMENTS || self.words >= MOST_WORDS;
        let starts = start == 0 || is_major(self.key[start - 1]);
        let is_word = !is_delimiter(byte) || capped || (starts && begins_value(&self.key[start..]));
        if !is_word {
            return Some(self.delimiter());
        }
        let first = match self.ahead.take() {
            Some((at, token)) if at == start => token,
            _ => self.word(start),
        };
        let token = if first.kind == Kind::Value {
            self.extend(start, first)
        } else {
            first
        };
        self.at = start + token.raw.len();
        self.words += 1;
        self.starts_segment = false;
        Some(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(key: &[u8]) -> String {
        let mut all = Vec::new();
        for token in Tokens::new(key) {
            let mut buffer = [0; LONGEST_WORD + 1];
            all.push(String::from_utf8_lossy(token.label(&mut buffer)).into_owned());
        }
        all.join("␣")
    }

    #[test]
    fn tokens_of_keys() {
        for (key, is) in [
            ("user:123", "user␣:␣*"),
            ("order-2024-01-05", "order␣-␣*"),
            ("a:1:2", "a␣:␣*␣:␣*"),
            ("10.0.0.1", "*"),
            ("a.1.x", "a␣.␣*␣.␣x"),
            ("1-foo-2", "*␣-␣foo␣-␣*"),
            ("{user1000}.following", "{␣user*␣}.␣following"),
            ("geo:48.85:-2.35", "geo␣:␣*␣:␣*"),
            ("geo:48.85,-2.35", "geo␣:␣*␣,␣*"),
            (
                "celery-task-meta-550e8400-e29b-41d4-a716-446655440000",
                "celery␣-␣task␣-␣meta␣-␣*",
            ),
            ("_kombu.binding", "_␣kombu␣.␣binding"),
            (":::::", ":::::"),
            ("", ""),
            ("a:", "a␣:"),
            ("sess:Zm9vYmFyYmF6cXV4MTIzNDU=", "sess␣:␣*"),
            ("sess:pQ8-rT3vW_xY7zA1bC4dE6", "sess␣:␣*"),
            ("app:v1.2.3:x", "app␣:␣v1.2.3␣:␣x"),
            ("a:::::::::b", "a␣*␣b"),
            ("-5", "*"),
        ] {
            assert_eq!(of(key.as_bytes()), is, "{key}");
        }
        let deep = "a:".repeat(10_000);
        assert_eq!(Tokens::new(deep.as_bytes()).count(), 33);
        assert_eq!(Tokens::new("a-".repeat(10_000).as_bytes()).count(), 64);
    }
}
