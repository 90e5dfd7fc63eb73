//! What only people know: the questions, and what was written down of them during the run.

use super::book::NOT_ANSWERED;
use crate::journal::{Event, Record};

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
    /// Words of a runbook's question that this one is answered by.
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
        "Why settings had drifted",
        "Which settings had drifted from their design, and why? Who changed them, by which way, and what will notice it next time?",
        &["had drifted"],
    ),
    question_of(
        "by-hand",
        "What was done by hand",
        "What did people do beside stanch: which command, on what, by whom, when (UTC), and what came of it?",
        &["done by hand"],
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

/// Answers that were written down during the runs: question and text.
#[derive(Clone, Debug, Default)]
pub struct Answers(pub Vec<(String, String)>);

impl Answers {
    pub(super) fn of(runs: &[Vec<Record>]) -> Self {
        let noted = runs
            .iter()
            .flatten()
            .filter_map(|record| match &record.event {
                Event::Note { question, text, .. }
                    if !["to do", "reason"].contains(&question.as_str())
                        && text != NOT_ANSWERED =>
                {
                    Some((question.clone(), text.clone()))
                }
                _ => None,
            });
        Self(noted.collect())
    }

    /// Those that answer this one.
    pub fn to<'a>(&'a self, question: &'a Question) -> impl Iterator<Item = &'a (String, String)> {
        self.0
            .iter()
            .filter(|(asked, _)| question.words.iter().any(|words| asked.contains(words)))
    }
}
