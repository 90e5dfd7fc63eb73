//! What is wrong with a book, where, and how it is shown.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

pub use crate::yaml::Place;

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub place: Place,
    pub what: String,
    /// What may have been meant, or what to do.
    pub hint: Option<String>,
}

impl Fault {
    pub fn new(place: Place, what: impl Into<String>) -> Self {
        Self {
            place,
            what: what.into(),
            hint: None,
        }
    }

    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// `file:line:column`, the line itself with a caret under the place, and the hint.
    pub fn show(&self, file: &str, text: &str) -> String {
        let start = offset(text, self.place);
        let rest = &text[start..];
        let end = start
            + rest
                .find(|c: char| c.is_whitespace() || c == ',' || c == ':')
                .filter(|length| *length > 0)
                .unwrap_or_else(|| rest.chars().next().map_or(0, char::len_utf8));
        let snippet = Snippet::source(text)
            .path(file)
            .annotation(AnnotationKind::Primary.span(start..end));
        let mut report =
            vec![Group::with_title(Level::ERROR.primary_title(&self.what)).element(snippet)];
        if let Some(hint) = &self.hint {
            report.push(Group::with_title(Level::HELP.secondary_title(hint)));
        }
        format!("{}\n", Renderer::plain().render(&report))
    }
}

/// Where in the text a place is; its end, where it lies beyond.
fn offset(text: &str, place: Place) -> usize {
    let mut at = 0;
    for (n, line) in text.split_inclusive('\n').enumerate() {
        if n + 1 == place.line {
            let column = place.column.saturating_sub(1);
            let inside = line
                .char_indices()
                .nth(column)
                .map_or(line.trim_end().len(), |(i, _)| i);
            return at + inside;
        }
        at += line.len();
    }
    text.trim_end().len()
}

/// The known word that was most likely meant.
pub fn meant<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let best = known
        .iter()
        .map(|name| (distance(word, name), *name))
        .min_by_key(|(distance, _)| *distance)?;
    (best.0 <= 1 + word.chars().count() / 4).then_some(best.1)
}

/// How many letters have to be changed.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut before = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = before + usize::from(x != *y);
            before = row[j + 1];
            row[j + 1] = change.min(before + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
