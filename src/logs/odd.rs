//! Application names that read as a label and a text: `x LOG:  process 1` before the label of the line.

use super::labels::{self, Label};
use super::locktext;
use super::prefix::Head;
use crate::model::Pid;

/// A name is no longer, and the label that it hides stands right behind.
const NAME: usize = 64;
/// In place of a byte of the name: no label, no literal of a prefix.
const BLANK: &str = "\u{1}";

/// The part of the prefix that was read as a label and its text, where a line on locks stands behind it.
pub fn hiding(line: &str, text: &str, pid: Option<Pid>) -> Option<String> {
    let from = line.len() - text.len();
    let word = line[..from].trim_end_matches([' ', ':', '\u{a0}', '\u{202f}']);
    let start = word.trim_end_matches(char::is_alphanumeric).len();
    let near = &text[..text.floor_char_boundary(NAME)];
    near.match_indices(' ').find_map(|(at, _)| {
        let (label, behind) = labels::leading(&text[at + 1..])?;
        let rest = &text[at + 1 + behind..];
        let hidden = match label {
            Label::Detail => locktext::edge(rest).is_some(),
            Label::Message => locktext::wait(rest, false).is_some_and(|wait| pid == Some(wait.pid)),
            _ => false,
        };
        hidden.then(|| line[start..from + at].to_owned())
    })
}

/// The line without such a part, as long as it was, where a label follows; with the part.
pub fn blanked(line: &str, part: &str) -> Option<(String, String)> {
    let at = line.find(part)?;
    let end = at + part.len();
    labels::leading(line[end..].strip_prefix(' ')?)?;
    let blanks = BLANK.repeat(part.len());
    Some((
        format!("{}{blanks}{}", &line[..at], &line[end..]),
        part.to_owned(),
    ))
}

/// With the name as it was.
pub fn restored(mut head: Head, part: &str) -> Head {
    let blanks = BLANK.repeat(part.len());
    if let Some(name) = &mut head.session.application_name {
        *name = name.replace(&blanks, part);
    }
    head
}
