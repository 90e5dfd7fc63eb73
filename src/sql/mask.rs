//! The statement as it was written, without its values: what a person may read and a bundle may hold.
//!
//! It is no fingerprint: case and white space stay. Whatever can't be told to be harmless goes, and a text that the
//! detectors still find something in is cut to its first word.

use std::ops::Range;

use super::detect::detect;
use super::lexer::comments;
use super::secrets::reduce_secret;
use super::{tags, verbs};

mod items;

pub use items::doubtful;
use items::{CURLY, Item, Kind, is_comparison, is_one_of, is_value, items};

/// A statement without its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Masked {
    pub text: String,
    /// How many literals were replaced, those in folded lists too.
    pub replaced: u32,
}

/// What may be shown and saved of a statement: its command tag if it may carry a secret in more than its literals, else
/// the statement without its values. Doing it twice is doing it once.
pub fn shown(sql: &str) -> Masked {
    match reduce_secret(sql) {
        Some(tag) => Masked {
            text: masked(&tag).text,
            replaced: 0,
        },
        None => masked(sql),
    }
}

/// Literals, numbers and quoted names that may be values become `?`, lists of them `?, …`, rows of `VALUES` the first
/// one; comments go, but for the tags that name a route or a job. A `?` that stood there already stays.
///
/// A text that begins with no verb of SQL is `(statement)`; a later statement that does is left out with all behind it.
/// So is what follows a literal whose quotes can't be where they seem.
///
/// Masking twice is masking once.
pub fn masked(sql: &str) -> Masked {
    if verbs::is_server_text(sql) {
        return Masked {
            text: sql.to_owned(),
            replaced: 0,
        };
    }
    let mut writer = Writer::new(sql);
    if !writer.leave_out_strangers() {
        writer.count(0..writer.items.len());
        return Masked {
            text: verbs::NO_STATEMENT.into(),
            replaced: writer.replaced,
        };
    }
    writer.write();
    let (text, replaced) = (writer.out, writer.replaced);
    if detect(&text).is_none() {
        return Masked { text, replaced };
    }
    let first = writer.items.iter().find_map(|item| match item.kind {
        Kind::Word(word) => Some(word),
        _ => None,
    });
    let text = match verbs::verb(first) {
        verb if verb.starts_with('(') => verb.to_owned(),
        verb => format!("{verb} …"),
    };
    Masked { text, replaced }
}

struct Writer<'a> {
    sql: &'a str,
    items: Vec<Item<'a>>,
    /// What follows can be read in two ways (a backslash before a quote): it is left out.
    cut: bool,
    out: String,
    replaced: u32,
    /// Of each open bracket, whether it holds a list of values.
    lists: Vec<bool>,
}

impl<'a> Writer<'a> {
    fn new(sql: &'a str) -> Self {
        let (mut items, cut) = items(sql);
        match_brackets(&mut items);
        Writer {
            sql,
            items,
            cut,
            out: String::with_capacity(sql.len()),
            replaced: 0,
            lists: Vec::new(),
        }
    }

    /// Ends the text before the first later statement that begins with no verb; `false` if the first one
    /// does.
    fn leave_out_strangers(&mut self) -> bool {
        let mut begin = 0;
        let mut first = true;
        while begin < self.items.len() {
            let end = self.items[begin..]
                .iter()
                .position(|item| item.kind == Kind::Symbol(';'))
                .map_or(self.items.len(), |len| begin + len);
            if begin < end {
                if !self.is_statement(begin..end, first) {
                    if first {
                        return false;
                    }
                    self.items.truncate(begin);
                    for item in &mut self.items {
                        item.close = item.close.filter(|close| *close < begin);
                    }
                    self.cut = true;
                    return true;
                }
                first = false;
            }
            begin = end + 1;
        }
        true
    }

    fn is_statement(&self, range: Range<usize>, first: bool) -> bool {
        let all = &self.items[range];
        let brackets = all.iter().take_while(|item| item.kind == Kind::Symbol('('));
        let brackets = brackets.count();
        let word = |at: usize| match all.get(at).map(|item| item.kind) {
            Some(Kind::Word(word)) => word,
            _ => "",
        };
        let head = word(brackets);
        if brackets > 0 {
            return verbs::is_query_verb(head);
        }
        let colon = all
            .get(1)
            .is_some_and(|item| item.kind == Kind::Symbol(':'));
        verbs::is_verb(head)
            || colon && verbs::is_autovacuum(head, word(2))
            || verbs::is_console(head) && (all.len() == 1 || all.len() == 2 && !word(1).is_empty())
            // The body of a function between `BEGIN ATOMIC` and `END`.
            || !first && head.eq_ignore_ascii_case("return")
    }

    fn kind(&self, at: usize) -> Option<Kind<'a>> {
        self.items.get(at).map(|item| item.kind)
    }

    fn write(&mut self) {
        let mut at = 0;
        while at < self.items.len() {
            self.gap(at);
            at = self.item(at);
        }
        if self.cut {
            self.out.push_str(" …");
        } else {
            self.gap(self.items.len());
        }
    }

    /// Writes the item (or the list that begins with it); where it goes on.
    fn item(&mut self, at: usize) -> usize {
        if let Some(end) = self.element(at) {
            self.value(at, end);
            return self.fold_list(end);
        }
        let item = &self.items[at];
        match item.kind {
            Kind::Symbol(c) => {
                self.out.push(c);
                self.bracket(c, at);
                if c == ')' && self.ends_values(at) {
                    return self.fold_rows(at + 1);
                }
            }
            Kind::Quoted(name) if !self.is_name(at, name) => {
                self.out.push_str("\"?\"");
                self.replaced += u32::from(name != "\"?\"");
            }
            _ => self.out.push_str(&self.sql[item.range.clone()]),
        }
        at + 1
    }

    /// White space stays, comments go; where there was one, a blank keeps its neighbours apart.
    fn gap(&mut self, at: usize) {
        let start = at
            .checked_sub(1)
            .map_or(0, |before| self.items[before].range.end);
        let end = self
            .items
            .get(at)
            .map_or(self.sql.len(), |item| item.range.start);
        let gap = &self.sql[start..end];
        if gap.trim_ascii().is_empty() {
            self.out.push_str(gap);
            return;
        }
        let closed = gap.trim_ascii_end().ends_with("*/");
        let all = comments(gap);
        let mut kept: Vec<String> = Vec::new();
        for (i, comment) in all.iter().enumerate() {
            // One that was cut may have lost the end of a value.
            if closed || i + 1 < all.len() {
                kept.extend(tags::kept(comment));
            }
        }
        let (first, last) = (at == 0, at == self.items.len());
        if kept.is_empty() {
            if !first && !last {
                self.out.push(if gap.contains('\n') { '\n' } else { ' ' });
            }
            return;
        }
        self.out.push_str(if first { "" } else { " " });
        self.out.push_str(&kept.join(" "));
        self.out.push_str(if last { "" } else { " " });
    }

    /// Behind a value with or without a sign, if one begins here.
    fn element(&self, at: usize) -> Option<usize> {
        match (self.kind(at)?, self.kind(at + 1)) {
            (Kind::Value(_), _) => Some(at + 1),
            (Kind::Symbol('-' | '+'), Some(Kind::Value(_))) => Some(at + 2),
            _ => None,
        }
    }

    fn value(&mut self, at: usize, end: usize) {
        if let Some(Kind::Symbol(sign)) = self.kind(at) {
            self.out.push(sign);
            self.gap(at + 1);
        }
        self.out.push('?');
        self.count(at..end);
    }

    fn count(&mut self, range: Range<usize>) {
        let values = self.items[range]
            .iter()
            .filter(|item| item.kind == Kind::Value(true));
        self.replaced = self
            .replaced
            .saturating_add(u32::try_from(values.count()).unwrap_or(u32::MAX));
    }

    /// The values that follow one and stand alone between commas.
    fn fold_list(&mut self, from: usize) -> usize {
        let mut at = from;
        while self.kind(at) == Some(Kind::Symbol(','))
            && let Some(end) = self.element(at + 1)
            && match self.kind(end) {
                Some(Kind::Symbol(c)) => matches!(c, ',' | ')' | ']' | ';'),
                Some(_) => false,
                None => !self.cut,
            }
        {
            at = end;
        }
        self.folded(from, at)
    }

    /// The rows that follow the first.
    fn fold_rows(&mut self, from: usize) -> usize {
        let mut at = from;
        while self.kind(at) == Some(Kind::Symbol(','))
            && self.kind(at + 1) == Some(Kind::Symbol('('))
        {
            // A row that was cut is the last.
            at = self.items[at + 1]
                .close
                .map_or(self.items.len(), |close| close + 1);
        }
        self.folded(from, at)
    }

    fn folded(&mut self, from: usize, to: usize) -> usize {
        if to > from {
            self.out.push_str(", …");
            self.count(from..to);
        }
        to
    }

    fn bracket(&mut self, c: char, at: usize) {
        if c == '(' {
            let list = matches!(at.checked_sub(1).and_then(|before| self.kind(before)),
                Some(Kind::Word(word)) if is_one_of(word, &["values", "in"]));
            self.lists.push(list);
        } else if c == ')' {
            self.lists.pop();
        }
    }

    /// The bracket closes the first row of a `VALUES`.
    fn ends_values(&self, at: usize) -> bool {
        let open = self.items[at].close;
        open.and_then(|open| open.checked_sub(1))
            .and_then(|before| self.kind(before))
            .is_some_and(|kind| matches!(kind, Kind::Word(word) if is_one_of(word, &["values"])))
    }

    /// A quoted name, and not a value in the quotes of another language.
    fn is_name(&self, at: usize, quoted: &str) -> bool {
        let before = at.checked_sub(1).and_then(|before| self.kind(before));
        let compared = match before {
            Some(Kind::Symbol('(' | ',')) => self.lists.last() == Some(&true),
            Some(kind) => is_comparison(kind),
            None => false,
        };
        let qualified = matches!(self.kind(at + 1), Some(Kind::Symbol('.' | '(')));
        if compared && !qualified {
            return false;
        }
        let name = quoted
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'))
            .unwrap_or("");
        // Beyond ASCII whatever can be seen: a name in another encoding is read as it comes.
        let plain = |c: char| {
            c.is_alphanumeric()
                || matches!(c, '_' | '$' | '-' | '.' | ' ')
                || !c.is_ascii() && !c.is_control() && !CURLY.contains(&c) && c != '\u{fffd}'
        };
        (1..=63).contains(&name.len()) && name.chars().all(plain) && !is_value(name)
    }
}

/// Each bracket knows its partner.
fn match_brackets(items: &mut [Item<'_>]) {
    let mut open = Vec::new();
    for at in 0..items.len() {
        match items[at].kind {
            Kind::Symbol('(') => open.push(at),
            Kind::Symbol(')') => {
                if let Some(partner) = open.pop() {
                    items[partner].close = Some(at);
                    items[at].close = Some(partner);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
