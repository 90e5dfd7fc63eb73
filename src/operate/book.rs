//! Walks a runbook: reads for real, asks, keeps evidence, acts through the same engine and guard as the commands do.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::act::ActError;
use super::operator::Operator;
use super::past::{Past, PastStep};
use super::world::World;
use crate::action::Policy;
use crate::config::RedisConfig;
use crate::journal::{Event, Journal, JournalError};
use crate::model::{Snapshot, Thresholds, Timestamp, Verb};
use crate::runbook::walk::{Came, Ended, Next, Walk};
use crate::runbook::{Book, Kind, Step};
use crate::source::postgres::{Plan, RoundOptions};
use crate::source::redis::RedisAddress;

/// Who walks a book with us.
pub trait Walker: Operator {
    /// A step begins.
    fn step(&mut self, begins: &Begins<'_>);

    /// What a read found.
    ///
    /// # Errors
    /// When it can't be shown.
    fn found(&mut self, found: &Seen<'_>) -> std::io::Result<()>;

    /// One of the choices, by its key.
    ///
    /// # Errors
    /// When the answer can't be read.
    fn choose(&mut self, question: &str, choices: &[(String, String)]) -> std::io::Result<Said>;

    /// A line of text.
    ///
    /// # Errors
    /// When the answer can't be read.
    fn write(&mut self, question: &str) -> std::io::Result<Said>;

    /// The way to an effect that asks for no reason: go on, leave it out, or stop.
    ///
    /// # Errors
    /// When the answer can't be read.
    fn pause(&mut self, what: &str) -> std::io::Result<Said>;

    /// A yes to something that is no signal: the target's name typed, or given in advance.
    ///
    /// # Errors
    /// When the answer can't be read.
    fn yes(&mut self, question: &str, target_name: &str) -> std::io::Result<Yes>;

    /// What the person said while something is awaited.
    fn meanwhile(&mut self) -> Option<Said>;
}

/// The head of a step.
pub struct Begins<'s> {
    /// From 1.
    pub number: usize,
    pub of: usize,
    pub step: &'s Step,
    pub title: String,
    pub why: Option<String>,
}

/// What is shown as found.
pub enum Seen<'s> {
    Report(&'s str, &'s Snapshot),
    Rows(&'s [serde_json::Value]),
    /// Lines of a command, of Redis, of a finding.
    Lines(&'s str),
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    Text(String),
    /// The step is left out, for this reason.
    Skip(String),
    /// Nobody is there.
    Nobody,
    Stop,
}

/// An answer to a yes-or-no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Yes {
    /// How it was said.
    Yes(String),
    No,
    /// Nobody is there.
    Nobody,
}

/// What a run is given.
pub struct BookRequest {
    pub inputs: BTreeMap<String, String>,
    /// Reads are real, effects are shown.
    pub dry_run: bool,
    pub policy: Policy,
    pub target_name: String,
    pub operator_name: String,
    pub wait: Duration,
    pub round: RoundOptions,
    /// The Redis that `redis` steps look at.
    pub redis: Option<RedisAddress>,
    /// What stanch.yaml says of its keys and queues.
    pub redis_config: RedisConfig,
    /// The console of the pooler in front.
    pub pooler: Option<Plan>,
    pub thresholds: Thresholds,
    pub runs: PathBuf,
    pub clock: fn() -> Timestamp,
}

/// What came of it, with the way that was taken.
pub struct Walked {
    pub ended: Ended,
    pub path: Vec<String>,
    /// What would have been done where nothing is: the step, and its effect in words.
    pub would: Vec<(String, String)>,
}

impl Walked {
    pub fn before_the_first_step(ended: Ended) -> Self {
        Self {
            ended,
            path: Vec::new(),
            would: Vec::new(),
        }
    }
}

/// Walks a book from its beginning, or on from where a run of it was interrupted.
///
/// # Errors
/// When the server can't be read, or the journal not be written: then nothing more is done.
pub async fn walk(
    world: World<'_>,
    book: &Book,
    request: &BookRequest,
    walker: &mut dyn Walker,
    journal: Option<&mut Journal>,
    past: Option<&Past>,
) -> Result<Walked, ActError> {
    let walked = past.map_or(Duration::ZERO, |past| past.walked);
    let left = book.wall.map(|wall| wall.saturating_sub(walked));
    let mut run = Run {
        world,
        book,
        request,
        walker,
        journal,
        walk: Walk::new(book, &request.inputs),
        sent: past.map(Sent::of).unwrap_or_default(),
        before: None,
        computed: BTreeMap::new(),
        would: Vec::new(),
        give_up: left.map(|left| Instant::now() + left),
    };
    let ended = match run.from(past).await {
        Ok(ended) => ended,
        // What was done is told and has its end in the journal; where nothing was, the error says more.
        Err(error) if run.sent.next > 0 => Ended::Failed(error.to_string()),
        Err(error) => {
            let end = format!("failed: {error}");
            let _ = run.write(Event::BookEnd { end });
            return Err(error);
        }
    };
    run.keep_the_end(&ended).await;
    if let Err(error) = run.write(Event::BookEnd { end: ended.told() }) {
        run.walker.note(&error.to_string());
    }
    Ok(Walked {
        ended,
        path: run.walk.path,
        would: run.would,
    })
}

/// A walk that goes on.
pub(super) struct Run<'r> {
    pub world: World<'r>,
    pub book: &'r Book,
    pub request: &'r BookRequest,
    pub walker: &'r mut dyn Walker,
    /// A replay of what was changes nothing and needs none.
    pub journal: Option<&'r mut Journal>,
    pub walk: Walk<'r>,
    pub sent: Sent,
    /// What the step had come to when it was interrupted.
    pub before: Option<PastStep>,
    /// What is in the journal of what was computed, by step.
    pub computed: BTreeMap<String, serde_json::Map<String, serde_json::Value>>,
    /// Effects that a dry run or a replay has come by.
    pub would: Vec<(String, String)>,
    /// The end of the book's time.
    pub give_up: Option<Instant>,
}

/// Sent so far, over all parts of the run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    terminate: usize,
    cancel: usize,
    pub run: usize,
    /// The number of the next effect.
    pub next: usize,
}

impl Sent {
    fn of(past: &Past) -> Self {
        Self {
            terminate: past.sent(Some(Verb::Terminate)),
            cancel: past.sent(Some(Verb::Cancel)),
            run: past.sent(None),
            next: past.next_effect(),
        }
    }

    pub fn by(&mut self, verb: Verb) -> &mut usize {
        match verb {
            Verb::Terminate => &mut self.terminate,
            Verb::Cancel => &mut self.cancel,
        }
    }
}

/// A step is over, or the whole run.
pub(super) enum Over {
    Came(Came),
    End(Ended),
}

impl Over {
    pub const WELL: Self = Self::Came(Came::Well);

    pub fn error(code: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Came(Came::Error {
            code: code.into(),
            why: why.into(),
        })
    }
}

/// What the capture at the end of a run is called.
const AT_THE_END: &str = "at-the-end";

impl Run<'_> {
    /// Where the book has come to one of its ends, how it is then: else the evidence says that it goes on.
    async fn keep_the_end(&mut self, ended: &Ended) {
        if !matches!(ended, Ended::At(_)) || self.world.is_saved() || self.request.dry_run {
            return;
        }
        let Some(file) = self
            .journal
            .as_ref()
            .map(|journal| journal.kept(AT_THE_END))
        else {
            return;
        };
        let kept = match self.keep(&file).await {
            Ok(()) => self
                .write(Event::Captured {
                    step: AT_THE_END.into(),
                    file: file.display().to_string(),
                })
                .map_err(ActError::from),
            Err(error) => Err(error),
        };
        // The run is over all the same.
        if let Err(error) = kept {
            self.walker
                .note(&format!("how it ended isn't kept as a capture: {error}"));
        }
    }

    async fn from(&mut self, past: Option<&Past>) -> Result<Ended, ActError> {
        let at = match past {
            None => 0,
            Some(past) => match self.resume(past).await? {
                Ok(at) => at,
                Err(ended) => return Ok(ended),
            },
        };
        self.all(at).await
    }

    async fn all(&mut self, mut at: usize) -> Result<Ended, ActError> {
        loop {
            let step = &self.book.steps[at];
            let id = step.id.text.clone();
            if let Some(ended) = self.is_over()? {
                return Ok(ended);
            }
            let entered = self.walk.enter(at);
            self.begins(at, step);
            self.write(Event::StepStart { step: id.clone() })?;
            if let Err(why) = entered {
                return Ok(Ended::Failed(why));
            }
            let came = match self.step(step).await? {
                Over::End(ended) => return Ok(ended),
                Over::Came(came) => came,
            };
            self.before = None;
            if let Came::Error { why, .. } = &came {
                self.walker.note(why);
            }
            // One that leads nowhere hasn't ended: a run that is resumed begins with it.
            let next = match self.walk.next(at, &came) {
                Ok(next) => next,
                Err(why) => return Ok(came.nowhere(step, why)),
            };
            self.write(Event::StepEnd {
                step: id,
                came: came.word().into(),
                next: match &next {
                    Next::Step(to) => Some(self.book.steps[*to].id.text.clone()),
                    Next::End(_) => None,
                },
            })?;
            match next {
                Next::Step(to) => {
                    if let Kind::Decide(_) = step.kind {
                        let step = &self.book.steps[to];
                        let title = step.title.as_ref().map(|title| self.walk.told(step, title));
                        let title = title.unwrap_or_else(|| step.id.text.clone());
                        self.walker.note(&format!("goes on with: {title}"));
                    }
                    at = to;
                }
                Next::End(end) => return Ok(Ended::At(end)),
            }
        }
    }

    /// The person has asked to stop, or the book's time is over.
    pub(super) fn is_over(&mut self) -> Result<Option<Ended>, ActError> {
        let stops = self.walker.stops();
        if stops > 0 {
            let why = format!(
                "asked to stop by a signal, {}",
                crate::model::count(stops, "time")
            );
            self.write(Event::Stopped { why })?;
            return Ok(Some(Ended::Stopped));
        }
        let late = self.give_up.is_some_and(|end| Instant::now() > end);
        Ok(late.then(|| Ended::Failed("the book's time is over (limits: wall)".into())))
    }

    fn begins(&mut self, at: usize, step: &Step) {
        let told = |text: &crate::runbook::Text| self.walk.told(step, text);
        // Progress is of the book that the step is of.
        let same = |s: &&Step| s.book == step.book && !matches!(s.kind, Kind::Back);
        let begins = Begins {
            number: self.book.steps[..=at].iter().filter(same).count(),
            of: self.book.steps.iter().filter(same).count(),
            step,
            title: step
                .title
                .as_ref()
                .map_or_else(|| step.id.text.clone(), told),
            why: step.why.as_ref().map(told),
        };
        if !matches!(step.kind, Kind::Back) {
            self.walker.step(&begins);
        }
    }

    async fn step(&mut self, step: &Step) -> Result<Over, ActError> {
        match &step.kind {
            Kind::Decide(_) | Kind::Nothing | Kind::Include(_) | Kind::Back => Ok(Over::WELL),
            Kind::Query(_) | Kind::Sql(_) | Kind::Check(_) | Kind::Redis(_) => {
                self.read(step).await
            }
            Kind::Command(command) if !command.writes => self.read(step).await,
            Kind::Command(command) => self.command(step, command).await,
            Kind::Ask(ask) => self.ask(step, ask),
            Kind::Capture => self.capture(step).await,
            Kind::Act(what) => self.act(step, what).await,
            Kind::Poll(poll) => self.poll(step, poll).await,
            Kind::Wait(time) => {
                if self.request.dry_run || self.world.is_saved() {
                    return Ok(Over::WELL);
                }
                let over = self.pause(step, *time).await?;
                // One that was cut short wasn't waited for.
                Ok(match over {
                    Some(over) => over,
                    None if self.walker.stops() > 0 => Over::End(Ended::Stopped),
                    None => Over::WELL,
                })
            }
            Kind::Note(note) => self.note(step, note),
        }
    }

    pub(super) fn write(&mut self, event: Event) -> Result<(), JournalError> {
        match &mut self.journal {
            Some(journal) => journal.write(event),
            None => Ok(()),
        }
    }

    pub(super) fn noted(
        &mut self,
        step: &Step,
        question: &str,
        text: &str,
    ) -> Result<(), JournalError> {
        self.write(Event::Note {
            step: step.id.text.clone(),
            question: question.into(),
            text: text.into(),
        })
    }

    /// The step is left out.
    pub(super) fn skipped(&mut self, step: &Step, reason: String) -> Result<Over, ActError> {
        self.write(Event::Skipped {
            step: step.id.text.clone(),
            reason,
        })?;
        Ok(Over::Came(Came::Skipped))
    }

    /// Waits, unless the person says otherwise or the book's time is over.
    pub(super) async fn pause(
        &mut self,
        step: &Step,
        time: Duration,
    ) -> Result<Option<Over>, ActError> {
        let end = Instant::now() + time;
        let end = self.give_up.map_or(end, |wall| wall.min(end));
        while Instant::now() < end && self.walker.stops() == 0 {
            match self.walker.meanwhile() {
                Some(Said::Skip(reason)) => return self.skipped(step, reason).map(Some),
                Some(Said::Stop) => return Ok(Some(Over::End(Ended::Stopped))),
                _ => {}
            }
            sleep(Duration::from_millis(50).min(end - Instant::now())).await;
        }
        Ok(None)
    }
}
