//! What a journal says of a run that ended in the middle. PURE.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::journal::{Effect, Event, Record};
use crate::model::{Outcome, Signal, Timestamp, Verb};
use crate::runbook::End;

/// A run of a book, as far as it came.
#[derive(Clone, Debug)]
pub struct Past {
    pub book: String,
    pub sha256: String,
    pub texts: Vec<String>,
    pub inputs: BTreeMap<String, String>,
    pub target: String,
    pub login: String,
    pub operator: String,
    pub began: Timestamp,
    pub last: Timestamp,
    /// How long it was walked, over all of its parts.
    pub walked: Duration,
    pub dry_run: bool,
    /// In the order of the walk; the last may not have ended.
    pub steps: Vec<PastStep>,
    /// The words of its end, where it came to one.
    pub end: Option<String>,
}

/// One step of it.
#[derive(Clone, Debug, Default)]
pub struct PastStep {
    pub id: String,
    /// How it came out; `None`: it was interrupted.
    pub came: Option<String>,
    pub answer: Option<String>,
    /// Questions that have their answer.
    pub noted: Vec<String>,
    pub effects: Vec<PastEffect>,
    /// The run had ended there, and whoever goes on has read how.
    pub told: bool,
}

/// One effect of it.
#[derive(Clone, Debug)]
pub struct PastEffect {
    pub n: usize,
    pub effect: Effect,
    pub came: Known,
}

/// What is known of an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    Outcome(Outcome),
    /// A command's code.
    Exit(Option<i32>),
    /// It was begun; whether it was done the journal doesn't say.
    Unknown,
    /// That was so, and a person has said since that it is done.
    CountedAsDone,
    /// That was so, and a person has said since that it may be done again.
    MayBeDoneAgain,
}

impl PastEffect {
    /// It may have reached the server, and nobody has said that it may be done once more.
    fn went_out(&self) -> bool {
        match &self.came {
            Known::Outcome(outcome) => matches!(
                outcome,
                Outcome::Gone | Outcome::StillAlive(_) | Outcome::Failed(_)
            ),
            Known::Exit(_) | Known::Unknown | Known::CountedAsDone => true,
            Known::MayBeDoneAgain => false,
        }
    }

    pub fn told(&self) -> String {
        match &self.effect {
            Effect::Signal(signal) => format!("{} of pid {}", signal.verb.word(), signal.id.pid),
            Effect::RollbackPrepared { gid, .. } => format!("rollback of {gid}"),
            Effect::Command { argv } => format!("command {}", argv.join(" ")),
        }
    }
}

impl PastStep {
    /// Signals that are not sent again.
    pub fn already(&self) -> Vec<Signal> {
        let out = self.effects.iter().filter(|effect| effect.went_out());
        out.filter_map(|effect| match &effect.effect {
            Effect::Signal(signal) => Some(signal.clone()),
            _ => None,
        })
        .collect()
    }

    /// The first that didn't come about, in words, where nobody has been told yet.
    pub fn fault(&self) -> Option<String> {
        if self.told {
            return None;
        }
        self.effects.iter().find_map(|effect| match &effect.came {
            Known::Outcome(outcome @ (Outcome::StillAlive(_) | Outcome::Failed(_))) => {
                Some(format!(
                    "{}: {}: {}",
                    effect.told(),
                    outcome.word(),
                    outcome.reason().unwrap_or_default()
                ))
            }
            _ => None,
        })
    }

    /// A command that has run: its code, where it is known.
    pub fn exit(&self) -> Option<Option<i32>> {
        self.effects
            .iter()
            .rev()
            .find_map(|effect| match effect.came {
                Known::Exit(exit) => Some(exit),
                Known::CountedAsDone => Some(None),
                _ => None,
            })
    }
}

impl Past {
    /// # Errors
    /// Where it is no runbook's journal.
    pub fn of(records: &[Record]) -> Result<Self, String> {
        let mut past: Option<Self> = None;
        let mut start: Option<(&str, &str, &str, &str)> = None;
        let mut part_began = None;
        for record in records {
            if let Event::RunStart {
                what,
                target,
                login,
                operator,
                ..
            } = &record.event
            {
                start = Some((what, target, login, operator));
                part_began = Some(record.at);
                continue;
            }
            if let Event::Book {
                id,
                sha256,
                inputs,
                texts,
            } = &record.event
            {
                let (what, target, login, operator) = start.ok_or("it doesn't begin with a run")?;
                past = Some(Self {
                    book: id.clone(),
                    sha256: sha256.clone(),
                    texts: texts.clone(),
                    inputs: inputs.clone(),
                    target: target.to_owned(),
                    login: login.to_owned(),
                    operator: operator.to_owned(),
                    began: part_began.unwrap_or(record.at),
                    last: record.at,
                    walked: Duration::ZERO,
                    dry_run: what.ends_with("(dry run)"),
                    steps: Vec::new(),
                    end: None,
                });
                continue;
            }
            let past = past.as_mut().ok_or("it is no runbook's")?;
            if let Event::Resumed {
                operator, sha256, ..
            } = &record.event
            {
                part_began = Some(record.at);
                operator.clone_into(&mut past.operator);
                sha256.clone_into(&mut past.sha256);
                past.end = None;
            } else if past.end.is_none() {
                let so_far = |since: Timestamp| Duration::from_millis(since.age_at(record.at).0);
                past.walked += part_began.map(so_far).unwrap_or_default();
                part_began = Some(record.at);
            }
            past.last = record.at;
            past.add(&record.event);
        }
        past.ok_or_else(|| "it holds no runbook's run".into())
    }

    fn add(&mut self, event: &Event) {
        match event {
            Event::StepStart { step } => {
                // The one that was interrupted goes on.
                if !self
                    .steps
                    .last()
                    .is_some_and(|s| s.came.is_none() && s.id == *step)
                {
                    self.steps.push(PastStep {
                        id: step.clone(),
                        ..PastStep::default()
                    });
                }
            }
            Event::BookEnd { end } => {
                self.end = Some(end.clone());
                self.steps.iter_mut().for_each(|step| step.told = true);
            }
            Event::EffectResult { n, outcome, .. } => {
                self.came(*n, Known::Outcome(outcome.clone()));
            }
            Event::CommandResult { n, exit, .. } => self.came(*n, Known::Exit(*exit)),
            Event::EffectSeen { n, answer, .. } => {
                let again = answer == "again";
                self.came(
                    *n,
                    if again {
                        Known::MayBeDoneAgain
                    } else {
                        Known::CountedAsDone
                    },
                );
            }
            other => {
                let Some(step) = self.steps.last_mut() else {
                    return;
                };
                match other {
                    Event::Answer { answer, .. } => step.answer = Some(answer.clone()),
                    Event::Note { question, .. } => step.noted.push(question.clone()),
                    Event::StepEnd { came, .. } => step.came = Some(came.clone()),
                    Event::EffectIntent { n, effect } => step.effects.push(PastEffect {
                        n: *n,
                        effect: effect.clone(),
                        came: Known::Unknown,
                    }),
                    _ => {}
                }
            }
        }
    }

    fn came(&mut self, n: usize, came: Known) {
        let mut all = self.steps.iter_mut().flat_map(|step| &mut step.effects);
        if let Some(effect) = all.find(|effect| effect.n == n) {
            effect.came = came;
        }
    }

    /// What was begun, and nobody knows how it came out.
    pub fn unknown(&self) -> Vec<PastEffect> {
        let all = self.steps.iter().flat_map(|step| &step.effects);
        all.filter(|effect| effect.came == Known::Unknown)
            .cloned()
            .collect()
    }

    /// So many signals of a kind, and commands, have gone out.
    pub fn sent(&self, verb: Option<Verb>) -> usize {
        let all = self.steps.iter().flat_map(|step| &step.effects);
        all.filter(|effect| match (&effect.effect, verb) {
            (Effect::Signal(signal), Some(verb)) => signal.verb == verb,
            (Effect::Command { .. }, None) => true,
            _ => false,
        })
        .count()
    }

    /// The number of the next effect.
    pub fn next_effect(&self) -> usize {
        let all = self.steps.iter().flat_map(|step| &step.effects);
        all.map(|effect| effect.n + 1).max().unwrap_or(0)
    }

    /// It came to one of the ends that its book has: there is nothing to go on with.
    pub fn is_over(&self) -> bool {
        let end = self.end.as_deref();
        End::ALL.iter().any(|known| end == Some(known.word()))
    }
}
