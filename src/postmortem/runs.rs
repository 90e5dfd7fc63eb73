//! What several parts read out of journals: whose sessions were touched, who acted, the steps of the book.

use std::collections::{BTreeMap, BTreeSet};

use crate::journal::{Effect, Event, Record};
use crate::model::{BackendId, Timestamp};
use crate::runbook::{self, Book, Kind};

/// The sessions that something was done to, and when.
pub fn followed(runs: &[Vec<Record>]) -> Vec<(BackendId, Timestamp)> {
    let mut all: Vec<(BackendId, Timestamp)> = Vec::new();
    for record in runs.iter().flatten() {
        if let Event::EffectIntent {
            effect: Effect::Signal(signal),
            ..
        } = &record.event
            && !all.contains(&(signal.id, record.at))
        {
            all.push((signal.id, record.at));
        }
    }
    all
}

/// How people are called: by their names, or by what they do.
#[derive(Clone, Debug, Default)]
pub struct Operators {
    roles: Option<BTreeMap<String, String>>,
}

impl Operators {
    /// By their names, or with `roles_only` as `the operator`, or `operator 1`, `operator 2` where there are several.
    pub fn new(runs: &[Vec<Record>], roles_only: bool) -> Self {
        if !roles_only {
            return Self::default();
        }
        let names: BTreeSet<&str> = runs
            .iter()
            .flatten()
            .filter_map(|record| match &record.event {
                Event::RunStart { operator, .. } | Event::Resumed { operator, .. } => {
                    Some(operator.as_str())
                }
                _ => None,
            })
            .collect();
        let one = names.len() == 1;
        let role = |n: usize| match one {
            true => "the operator".to_owned(),
            false => format!("operator {}", n + 1),
        };
        let roles = names.into_iter().enumerate();
        Self {
            roles: Some(roles.map(|(n, name)| (name.to_owned(), role(n))).collect()),
        }
    }

    pub fn call<'o>(&'o self, name: &'o str) -> &'o str {
        match &self.roles {
            None => name,
            Some(roles) => roles.get(name).map_or("an operator", String::as_str),
        }
    }

    pub fn roles_only(&self) -> bool {
        self.roles.is_some()
    }
}

/// The book of a run, as it was walked last.
pub(super) fn book(run: &[Record]) -> Option<Book> {
    let texts = run.iter().rev().find_map(|record| match &record.event {
        Event::Resumed {
            changed: true,
            texts,
            ..
        }
        | Event::Book { texts, .. } => Some(texts),
        _ => None,
    })?;
    let shelf = |id: &str| {
        texts
            .iter()
            .find(|text| runbook::is_named(text, id))
            .cloned()
    };
    runbook::load(texts.first()?, &shelf).ok()
}

/// In the words that a person was told; the book's own condition only where it has no words.
pub(super) fn not_expected(that: &str, say: Option<&str>) -> String {
    format!("not as the book expects it: {}", say.unwrap_or(that))
}

/// Nothing more is to come: what follows is another run, or this one resumed.
pub(super) fn is_end(event: &Event) -> bool {
    matches!(event, Event::BookEnd { .. } | Event::RunEnd { .. })
}

/// Words of a book's steps, where they don't depend on what was found.
pub(super) struct Words<'b>(pub Option<&'b Book>);

impl Words<'_> {
    /// The step's title, else its id.
    pub fn title(&self, step: &str) -> String {
        let titled = self.0.and_then(|book| {
            let title = &book.steps[book.step(step)?].title;
            title.as_ref().filter(|title| !title.text.contains("{{"))
        });
        titled.map_or_else(|| step.to_owned(), |title| title.text.clone())
    }

    /// What was asked, in the book's words; else the step's title.
    pub fn question(&self, step: &str) -> String {
        let asked = match self.kind(step) {
            Some(Kind::Ask(ask)) => Some(&ask.text.text).filter(|text| !text.contains("{{")),
            _ => None,
        };
        asked.map_or_else(|| self.title(step), |text| text.trim().to_owned())
    }

    /// What an answer means, where the book says it; without its advice in brackets.
    pub fn answer(&self, step: &str, answer: &str) -> String {
        let label = match self.kind(step) {
            Some(Kind::Ask(ask)) => {
                let choice = ask.choices.iter().find(|(key, _)| key.text == answer);
                choice.map(|(_, label)| label.text.as_str())
            }
            _ => None,
        };
        let label = label.filter(|label| !label.contains("{{"));
        let bare = label.map(|label| label.split(" (").next().unwrap_or(label).trim());
        bare.unwrap_or(answer).to_owned()
    }

    /// It waits until something is so.
    pub fn waits(&self, step: &str) -> bool {
        matches!(self.kind(step), Some(Kind::Poll(_)))
    }

    /// That what a step waits for has come about: `Is there room again? yes`.
    pub fn came_about(&self, step: &str) -> String {
        let title = self.title(step);
        match title.ends_with('?') {
            true => format!("{title} yes"),
            false => format!("{title}: so it is"),
        }
    }

    fn kind(&self, step: &str) -> Option<&Kind> {
        let book = self.0?;
        Some(&book.steps.get(book.step(step)?)?.kind)
    }

    /// It only decides where to go on, or is the way into another book and back.
    pub fn is_silent(&self, step: &str) -> bool {
        matches!(
            self.kind(step),
            Some(Kind::Decide(_) | Kind::Include(_) | Kind::Back | Kind::Nothing)
        )
    }
}
