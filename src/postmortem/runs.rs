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

/// In the words that a person was told, with the book's own condition.
pub(super) fn not_expected(that: &str, say: Option<&str>) -> String {
    match say {
        Some(say) => format!("not as the book expects it: {say} ({that})"),
        None => format!("not as the book expects it: {that}"),
    }
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

    /// What an answer means, where the book says it.
    pub fn answer(&self, step: &str, answer: &str) -> String {
        let label = self
            .0
            .and_then(|book| match &book.steps[book.step(step)?].kind {
                Kind::Ask(ask) => ask
                    .choices
                    .iter()
                    .find(|(key, _)| key.text == answer)
                    .map(|(_, label)| label.text.clone())
                    .filter(|label| !label.contains("{{")),
                _ => None,
            });
        label.map_or_else(|| answer.to_owned(), |label| format!("{answer} ({label})"))
    }

    /// What a poll waited for.
    pub fn awaited(&self, step: &str) -> Option<&str> {
        match &self
            .0
            .and_then(|book| book.steps.get(book.step(step)?))?
            .kind
        {
            Kind::Poll(poll) => Some(&poll.until.text),
            _ => None,
        }
    }

    /// It only decides where to go on, or is the way into another book and back.
    pub fn is_silent(&self, step: &str) -> bool {
        self.0.is_some_and(|book| {
            let kind = book.step(step).map(|at| &book.steps[at].kind);
            matches!(
                kind,
                Some(Kind::Decide(_) | Kind::Include(_) | Kind::Back | Kind::Nothing)
            )
        })
    }
}
