//! What a statement is made of, to be masked: values, names and the rest, up to where it can be read in two ways.

use std::ops::Range;

use crate::sql::detect::{detect_named, is_random};
use crate::sql::lexer::{Token, spans};

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind<'a> {
    /// A value; `true` if it isn't a `?` yet.
    Value(bool),
    Word(&'a str),
    Quoted(&'a str),
    Symbol(char),
    /// `$1`
    Param,
}

pub(super) struct Item<'a> {
    pub kind: Kind<'a>,
    pub range: Range<usize>,
    /// Of a bracket that opens: where its partner is.
    pub close: Option<usize>,
}

/// The items of a text, and whether it was cut: the last item, or what touches it, can be read in two ways.
pub(super) fn items(sql: &str) -> (Vec<Item<'_>>, bool) {
    let mut items: Vec<Item<'_>> = Vec::new();
    let mut cut = false;
    // Behind the last literal that a quote closes.
    let mut closed = None;
    for (token, mut range) in spans(sql) {
        let end = items.last().map_or(0, |item| item.range.end);
        if range.start < end {
            // Within backticks.
            continue;
        }
        let written = &sql[range.clone()];
        cut = closed == Some(range.start) && !matches!(token, Token::Symbol(_));
        if cut {
            break;
        }
        let kind = match token {
            Token::Text(_) => {
                // `U&'…'` is one literal.
                if let [.., u, and] = &items[..]
                    && matches!(u.kind, Kind::Word("U" | "u"))
                    && and.kind == Kind::Symbol('&')
                    && u.range.end == and.range.start
                    && and.range.end == range.start
                {
                    range.start = u.range.start;
                    items.truncate(items.len() - 2);
                }
                Kind::Value(true)
            }
            Token::Number(_) => Kind::Value(true),
            Token::Symbol('?') => Kind::Value(false),
            Token::Symbol('`') => {
                let (name, end) = backticks(sql, range.start, &items);
                cut = end.is_none();
                range.end = end.unwrap_or(range.end);
                name.map_or(Kind::Value(true), Kind::Word)
            }
            // A word processor's quotes: to the server the words between them are bare.
            Token::Word(word) if word.contains(CURLY) => Kind::Value(true),
            Token::Word(word) if is_value(word) => Kind::Value(true),
            Token::Word(word) => Kind::Word(word),
            Token::Quoted(word) => Kind::Quoted(word),
            Token::Param(_) => Kind::Param,
            Token::Symbol(c) => Kind::Symbol(c),
        };
        closed = (matches!(token, Token::Text(_)) && written.ends_with('\'')).then_some(range.end);
        items.push(Item {
            kind,
            range,
            close: None,
        });
        cut |= match token {
            Token::Text(_) => ends_elsewhere(written),
            Token::Quoted(_) => written.contains("\\\""),
            Token::Word(word) => word.contains(CURLY),
            _ => false,
        };
        if cut {
            break;
        }
    }
    (items, cut)
}

/// Quotes of word processors and other languages. A backtick is a symbol of its own.
pub(super) const CURLY: [char; 17] = [
    '‘', '’', '‚', '“', '”', '„', '«', '»', '＇', '＂', '「', '」', '『', '』', '′', '″', '´',
];

/// What begins with a backtick: a name of MySQL's with its backticks, if it looks like one and isn't compared with; and
/// where it ends, unless it can be read in two ways.
fn backticks<'a>(
    sql: &'a str,
    start: usize,
    before: &[Item<'_>],
) -> (Option<&'a str>, Option<usize>) {
    let Some(len) = sql[start + 1..].find('`') else {
        return (None, None);
    };
    let inside = &sql[start + 1..start + 1 + len];
    let end = start + len + 2;
    if inside.contains(['\'', '"', '$']) || inside.contains("--") || inside.contains("/*") {
        return (None, None);
    }
    let value = match before {
        [.., list, open] if open.kind == Kind::Symbol('(') => {
            matches!(list.kind, Kind::Word(word) if is_one_of(word, &["values", "in"]))
        }
        [.., last] => is_comparison(last.kind),
        [] => false,
    };
    let qualified = sql[end..].trim_ascii_start().starts_with(['.', '(']);
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let name = (1..=63).contains(&inside.len())
        && inside.chars().all(plain)
        && !is_value(inside)
        && (!value || qualified);
    (name.then(|| &sql[start..end]), Some(end))
}

pub(super) fn is_comparison(kind: Kind<'_>) -> bool {
    match kind {
        Kind::Symbol('=' | '<' | '>' | '~') => true,
        Kind::Word(word) => is_one_of(word, &["like", "ilike", "password", "regexp"]),
        _ => false,
    }
}

/// A word that no person named anything with.
pub(super) fn is_value(word: &str) -> bool {
    word.len() > 63 || word.len() >= 16 && (is_random(word) || detect_named(word).is_some())
}

/// Where the first literal begins that ends elsewhere where `standard_conforming_strings` is off: what follows can be read in
/// two ways.
pub fn doubtful(sql: &str) -> Option<usize> {
    spans(sql)
        .into_iter()
        .find(|(token, range)| {
            matches!(token, Token::Text(_)) && ends_elsewhere(&sql[range.clone()])
        })
        .map(|(_, range)| range.start)
}

/// A plain literal that ends earlier or later where `standard_conforming_strings` is off.
fn ends_elsewhere(written: &str) -> bool {
    if written.starts_with(['E', 'e', '$']) {
        return false;
    }
    let Some((_, inside)) = written.split_once('\'') else {
        return false;
    };
    let mut chars = inside.chars();
    while let Some(c) = chars.next() {
        if c == '\\' && matches!(chars.next(), Some('\'') | None) {
            return true;
        }
    }
    false
}

pub(super) fn is_one_of(word: &str, words: &[&str]) -> bool {
    words.iter().any(|w| word.eq_ignore_ascii_case(w))
}
