//! Where a walk left the book's straight way: what the book itself may have to learn.

use super::runs::{Words, book, not_expected};
use crate::journal::{Event, Record};
use crate::runbook::Kind;

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

/// Of all runs, in the order of the walk; with the steps that no way led to.
pub(super) fn departures(runs: &[Vec<Record>]) -> (Vec<Departure>, Vec<(String, Vec<String>)>) {
    let mut all = Vec::new();
    let mut unreached = Vec::new();
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
        if let Some(book) = &book {
            let started = |id: &str| {
                run.iter().any(|record| match &record.event {
                    Event::StepStart { step } => step == id,
                    _ => false,
                })
            };
            // Of an included book only the way into it.
            let missed = book.steps.iter().filter(|step| {
                step.book.is_empty() && !matches!(step.kind, Kind::Back) && !started(&step.id.text)
            });
            unreached.push((id, missed.map(|step| step.id.text.clone()).collect()));
        }
    }
    (all, unreached)
}

fn departure<'e>(event: &'e Event, words: &Words<'_>) -> Option<(&'e str, String)> {
    Some(match event {
        Event::Skipped { step, reason } => (step, format!("was left out: {reason}")),
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
        Event::Answer {
            step,
            answer,
            attended: true,
        } => (step, format!("answered: {}", words.answer(step, answer))),
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
