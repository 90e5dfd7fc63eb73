//! What only people know: the questions, and what was written down of them during the run.

use super::book::NOT_ANSWERED;
use super::runs::{Words, book};
use crate::journal::{Event, Record};
use crate::runbook::{Book, Kind, Step, Text};

/// Stands where nothing is written yet; `--lint` finds it.
pub const TODO: &str = "TODO";

/// The table of action items, as long as there is none.
pub const NO_ACTIONS: &str = "| what | owner | due | type |\n|---|---|---|---|\n| TODO |  |  |  |";

/// What an action item is for.
pub const TYPES: [&str; 4] = ["prevent", "detect", "mitigate", "process"];

/// How far the document is.
pub const STATUSES: [&str; 4] = ["draft", "in review", "reviewed", "closed"];

/// One part that people write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// Of its markers.
    pub name: &'static str,
    pub heading: &'static str,
    pub ask: &'static str,
    /// Words of a runbook's question that this one is answered by, where the book doesn't say it.
    words: &'static [&'static str],
}

const fn question_of(
    name: &'static str,
    heading: &'static str,
    ask: &'static str,
    words: &'static [&'static str],
) -> Question {
    Question {
        name,
        heading,
        ask,
        words,
    }
}

/// All that are compulsory, in the order of the document.
pub const QUESTIONS: [Question; 11] = [
    question_of(
        "impact",
        "Impact on users",
        "What did users notice, from when to when? How many of them, which requests, what did it cost?",
        &["users notice"],
    ),
    question_of(
        "before",
        "Before the first capture",
        "What happened before anybody looked: the trigger, the first sign, the first alarm? Each with its time (UTC) and where that is known from.",
        &[],
    ),
    question_of(
        "detection",
        "Detection",
        "How was it found, and by whom? Why not earlier, and what should have found it?",
        &["detected earlier", "alarm go off"],
    ),
    question_of(
        "cause",
        "Cause, as people see it",
        "Is the suggested cause right? What triggered it?",
        &["Which pattern was it"],
    ),
    question_of(
        "factors",
        "Contributing factors",
        "What else had to be so for it to become an incident? Systems and decisions, never a person.",
        &[],
    ),
    question_of(
        "settings",
        "Which settings had drifted, and why",
        "Which settings had drifted from their design, and why? Who changed them, by which way, and what will notice it next time?",
        &["had drifted"],
    ),
    question_of(
        "by-hand",
        "What was done by hand",
        "What did people do beside stanch: which command, on what, by whom, when (UTC), and what came of it?",
        &["done by hand", "What was done", "Whom have you called"],
    ),
    question_of(
        "well",
        "What went well",
        "What helped, and is to stay?",
        &[],
    ),
    question_of(
        "wrong",
        "What went wrong",
        "What hindered, or made it worse?",
        &[],
    ),
    question_of(
        "lucky",
        "Where we were lucky",
        "What could have made it worse, and didn't by chance?",
        &[],
    ),
    question_of(
        "book",
        "What changes in the runbook",
        "Which step was missing, wrong, or in the way?",
        &["changes in this runbook"],
    ),
];

/// By its name.
pub fn question(name: &str) -> Option<&'static Question> {
    QUESTIONS.iter().find(|question| question.name == name)
}

/// One answer of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    question: String,
    /// The text alone doesn't say what was asked.
    is_bare: bool,
    pub text: String,
    /// That it belongs into, where the book says it.
    part: Option<&'static str>,
}

/// What was written down during the runs.
#[derive(Clone, Debug, Default)]
pub struct Answers(Vec<Answer>);

impl Answers {
    pub(super) fn of(runs: &[Vec<Record>]) -> Self {
        let mut all = Vec::new();
        for run in runs {
            let book = book(run);
            all.extend(
                run.iter()
                    .filter_map(|record| answer(&record.event, book.as_ref())),
            );
        }
        Self(all)
    }

    /// Those that answer this one.
    pub fn to<'a>(&'a self, question: &'a Question) -> impl Iterator<Item = &'a Answer> {
        self.0.iter().filter(|answer| match answer.part {
            Some(part) => part == question.name,
            None => question.is_asked_by(&answer.question),
        })
    }
}

impl Answer {
    /// What was asked, where the answer's own words don't say it.
    pub fn asked(&self) -> Option<&str> {
        self.is_bare.then_some(self.question.as_str())
    }
}

impl Question {
    /// By the words of a book's question.
    pub fn is_asked_by(&self, asked: &str) -> bool {
        self.words.iter().any(|words| asked.contains(words))
    }
}

fn answer(event: &Event, book: Option<&Book>) -> Option<Answer> {
    let step_of = |id: &str| book.and_then(|book| Some(&book.steps[book.step(id)?]));
    match event {
        Event::Note {
            step,
            question,
            text,
        } => {
            let is_answer = !["to do", "reason"].contains(&question.as_str());
            (is_answer && text != NOT_ANSWERED).then(|| Answer {
                question: question.clone(),
                is_bare: true,
                text: text.clone(),
                part: step_of(step).and_then(|step| part_of(step, question)),
            })
        }
        // What holds where nobody is there says nothing: "nothing yet".
        Event::Answer {
            step: id,
            answer,
            attended: true,
        } => {
            let step = step_of(id)?;
            let Kind::Ask(ask) = &step.kind else {
                return None;
            };
            let says = step.unattended.as_ref().is_none_or(|u| u.text != *answer);
            let words = Words(book);
            says.then_some(ask.part?).map(|part| Answer {
                question: ask.text.text.clone(),
                is_bare: false,
                text: format!("{}: {}", words.title(id), words.answer(id, answer)),
                part: Some(part),
            })
        }
        _ => None,
    }
}

/// The part that a step's question was for.
fn part_of(step: &Step, asked: &str) -> Option<&'static str> {
    let Kind::Note(note) = &step.kind else {
        return None;
    };
    note.ask.iter().find(|q| is_it(&q.text, asked))?.part
}

/// What is looked up stands in a question as it was found: by what stands before it.
fn is_it(question: &Text, asked: &str) -> bool {
    match question.text.split_once("{{") {
        Some((before, _)) => asked.starts_with(before),
        None => question.text == asked,
    }
}
