//! Where a walk left the book's straight way: what the book itself may have to learn.

use super::runs::{Words, book, not_expected};
use crate::journal::{Event, Record};
use crate::runbook::End;

/// What stands in a journal where a question got no answer.
pub(super) const NOT_ANSWERED: &str = "(not answered)";

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The book's id.
    pub book: String,
    pub step: String,
    pub title: String,
    /// `was left out: it took too long`
    pub what: String,
}

/// A book that was walked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walked {
    pub book: String,
    /// It came to none of the book's ends: at which step, and how that is told.
    pub cut: Option<(String, String)>,
}

/// Of all runs, in the order of the walk; with the books themselves.
pub(super) fn departures(runs: &[Vec<Record>]) -> (Vec<Departure>, Vec<Walked>) {
    let mut all = Vec::new();
    let mut walked = Vec::new();
    for run in runs {
        let Some(id) = run.iter().find_map(|record| match &record.event {
            Event::Book { id, .. } => Some(id.clone()),
            _ => None,
        }) else {
            continue;
        };
        let book = book(run);
        let words = Words(book.as_ref());
        for record in run {
            if let Some((step, what)) = departure(&record.event, &words) {
                all.push(Departure {
                    book: id.clone(),
                    title: words.title(step),
                    step: step.to_owned(),
                    what,
                });
            }
        }
        walked.push(Walked {
            book: id,
            cut: cut(run),
        });
    }
    (all, walked)
}

/// Where a walk was left without an end of its book.
fn cut(run: &[Record]) -> Option<(String, String)> {
    let (mut step, mut end) = (String::new(), None);
    for record in run {
        match &record.event {
            Event::StepStart { step: id } => step.clone_from(id),
            Event::Resumed { .. } => end = None,
            Event::BookEnd { end: told } => end = Some(told.as_str()),
            _ => {}
        }
    }
    match end {
        Some(end) if End::ALL.iter().any(|known| known.word() == end) => None,
        Some(end) => Some((step, end.to_owned())),
        None => Some((step, "the journal breaks off".into())),
    }
}

fn departure<'e>(event: &'e Event, words: &Words<'_>) -> Option<(&'e str, String)> {
    Some(match event {
        Event::Skipped { step, reason } => {
            (step, format!("left out, or what was left of it: {reason}"))
        }
        Event::StepEnd { step, came, next } if came == "timed out" || came == "error" => {
            let on = next
                .as_ref()
                .map_or(String::new(), |next| format!("; it went on with {next}"));
            let came = match came.as_str() {
                "error" => "came to nothing",
                _ => "timed out",
            };
            (step, format!("{came}{on}"))
        }
        Event::Answer {
            step,
            answer,
            attended: false,
        } => {
            let answer = words.answer(step, answer);
            (
                step,
                format!("nobody was there to answer; the book's own answer was taken: {answer}"),
            )
        }
        Event::Expectation {
            step,
            that,
            held: false,
            say,
        } => (step, not_expected(that, say.as_deref())),
        Event::Note {
            step,
            question,
            text,
        } if text == NOT_ANSWERED => (step, format!("not answered: {question}")),
        _ => return None,
    })
}
