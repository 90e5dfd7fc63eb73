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
    /// Of the book that it was walked by last, with those that it includes.
    pub texts: Vec<String>,
    /// Where it was read.
    pub file: Option<String>,
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
    /// The step that it went on with.
    pub next: Option<String>,
    pub answer: Option<String>,
    /// Questions that have their answer.
    pub noted: Vec<(String, String)>,
    pub effects: Vec<PastEffect>,
    /// What was computed of what it found.
    pub vars: serde_json::Map<String, serde_json::Value>,
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
    /// A command's code; none where it didn't end by itself.
    Exit(Option<i32>),
    /// A command that couldn't be started.
    NotStarted,
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
            Known::MayBeDoneAgain | Known::NotStarted => false,
        }
    }

    /// It isn't known to be done, or it is known not to have come about.
    fn is_open(&self) -> bool {
        match &self.came {
            Known::Unknown => true,
            Known::Outcome(outcome) => {
                matches!(outcome, Outcome::StillAlive(_) | Outcome::Failed(_))
            }
            Known::Exit(exit) => *exit != Some(0),
            Known::NotStarted | Known::CountedAsDone | Known::MayBeDoneAgain => false,
        }
    }

    /// How it came out, as far as that was written.
    pub fn came_out(&self) -> String {
        match &self.came {
            Known::Outcome(outcome) => {
                format!(
                    "{}: {}",
                    outcome.word(),
                    outcome.reason().unwrap_or_default()
                )
            }
            Known::Exit(Some(code)) => format!("it ended with {code}"),
            Known::Exit(None) => "it was cut off".into(),
            _ => "the run ended before its outcome was written".into(),
        }
    }

    pub fn told(&self) -> String {
        match &self.effect {
            Effect::Signal(signal) => format!("{} of pid {}", signal.verb.word(), signal.id.pid),
            Effect::RollbackPrepared { gid, .. } => format!("rollback of {gid}"),
            Effect::RedisSession { node, .. } => format!("HOTKEYS session on {node}"),
            Effect::RedisSetting {
                node, name, after, ..
            } => format!("{name} = {after} on {node}"),
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

    /// A command that isn't run again: how it came out.
    pub fn ran(&self) -> Option<&Known> {
        let last = self.effects.last().filter(|effect| effect.went_out());
        last.map(|effect| &effect.came)
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
                inputs,
                texts,
                file,
                ..
            } = &record.event
            {
                let (what, target, login, operator) = start.ok_or("it doesn't begin with a run")?;
                past = Some(Self {
                    book: id.clone(),
                    texts: texts.clone(),
                    file: file.clone(),
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
                operator, texts, ..
            } = &record.event
            {
                part_began = Some(record.at);
                operator.clone_into(&mut past.operator);
                if !texts.is_empty() {
                    texts.clone_into(&mut past.texts);
                }
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
            Event::BookEnd { end } => self.end = Some(end.clone()),
            Event::EffectResult { n, outcome, .. } => {
                self.came(*n, Known::Outcome(outcome.clone()));
            }
            Event::CommandResult {
                n, exit, started, ..
            } => {
                let came = if *started {
                    Known::Exit(*exit)
                } else {
                    Known::NotStarted
                };
                self.came(*n, came);
            }
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
            // By its step: a poll computes anew what an earlier one found.
            Event::Computed { step, vars } => {
                let of = |known: &&mut PastStep| known.id == *step;
                if let Some(step) = self.steps.iter_mut().rev().find(of) {
                    step.vars.clone_from(vars);
                }
            }
            other => {
                let Some(step) = self.steps.last_mut() else {
                    return;
                };
                match other {
                    Event::Answer { answer, .. } => step.answer = Some(answer.clone()),
                    Event::Note { question, text, .. } => {
                        step.noted.push((question.clone(), text.clone()));
                    }
                    Event::StepEnd { came, next, .. } => {
                        step.came = Some(came.clone());
                        step.next.clone_from(next);
                    }
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

    /// What has to be settled before the run goes on: the unknown, and what didn't come about in the step that was
    /// interrupted.
    pub fn open(&self) -> Vec<PastEffect> {
        let last = self.steps.last().filter(|step| step.came.is_none());
        let interrupted = |effect: &PastEffect| {
            last.is_some_and(|step| step.effects.iter().any(|one| one.n == effect.n))
        };
        let all = self.steps.iter().flat_map(|step| &step.effects);
        all.filter(|effect| {
            effect.came == Known::Unknown || interrupted(effect) && effect.is_open()
        })
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
