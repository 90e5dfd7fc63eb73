//! Walks a runbook: reads for real, asks, keeps evidence, acts through the same engine and guard as the commands do.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value as Json;
use tokio::time::{Instant, sleep};

use super::act::{ActError, ActRequest, act};
use super::found::found;
use super::halt::Halt;
use super::operator::Operator;
use super::select::Selection;
use crate::action::Policy;
use crate::analysis::triage;
use crate::bundle;
use crate::journal::{Event, Journal, JournalError};
use crate::model::{Millis, Snapshot, Thresholds, Timestamp, Verb};
use crate::runbook::time as time_of;
use crate::runbook::walk::{Came, Next, next};
use crate::runbook::{Act, Book, End, InputKind, Kind, Poll, Scope, Select, Step, Value};
use crate::source::postgres::{Connected, Parts, RoundError, RoundOptions, round};

/// Who walks a book with us.
pub trait Walker: Operator {
    /// A step begins.
    fn step(&mut self, number: usize, of: usize, step: &Step);

    /// What a report found.
    ///
    /// # Errors
    /// When it can't be shown.
    fn found(&mut self, report: &str, snapshot: &Snapshot) -> std::io::Result<()>;

    /// One of the choices, by its key.
    ///
    /// # Errors
    /// When the answer can't be read.
    fn choose(&mut self, question: &str, choices: &[(&str, &str)]) -> std::io::Result<Said>;

    /// A line of text.
    ///
    /// # Errors
    /// When the answer can't be read.
    fn write(&mut self, question: &str) -> std::io::Result<Said>;
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    Text(String),
    /// Nobody is there.
    Nobody,
    Stop,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    At(End),
    /// A question that nobody was there to answer.
    NeedsHuman(String),
    Stopped,
    /// A failed expectation, an effect that failed, a condition that can't be told.
    Failed(String),
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
    pub thresholds: Thresholds,
    pub runs: PathBuf,
    pub clock: fn() -> Timestamp,
}

/// What came of it, with the way that was taken.
pub struct Walked {
    pub ended: Ended,
    pub path: Vec<String>,
}

/// # Errors
/// When the server can't be read, or the journal not be written: then nothing more is done.
pub async fn walk(
    connected: &Connected,
    book: &Book,
    request: &BookRequest,
    walker: &mut dyn Walker,
    journal: &mut Journal,
) -> Result<Walked, ActError> {
    let mut run = Run {
        connected,
        book,
        request,
        walker,
        journal,
        scope: scope(book, request),
        path: Vec::new(),
        signals: Sent::default(),
        give_up: book.wall.map(|wall| Instant::now() + wall),
    };
    let ended = match run.all().await {
        Ok(ended) => ended,
        // What was done is told and has its end in the journal; where nothing was, the error says more.
        Err(error) if run.signals.total() > 0 => Ended::Failed(error.to_string()),
        Err(error) => {
            let end = format!("failed: {error}");
            let _ = run.journal.write(Event::BookEnd { end });
            return Err(error);
        }
    };
    let word = match &ended {
        Ended::At(end) => end.word().to_owned(),
        Ended::NeedsHuman(question) => format!("needs a human: {question}"),
        Ended::Stopped => "stopped by the operator".into(),
        Ended::Failed(why) => format!("failed: {why}"),
    };
    if let Err(error) = run.journal.write(Event::BookEnd { end: word }) {
        run.walker.note(&error.to_string());
    }
    Ok(Walked {
        ended,
        path: run.path,
    })
}

fn scope(book: &Book, request: &BookRequest) -> Scope {
    let mut scope = Scope::default();
    for input in &book.inputs {
        let text = request
            .inputs
            .get(&input.name.text)
            .or(input.default.as_ref());
        let value = text.map_or(Json::Null, |text| match input.kind {
            InputKind::Number => text.parse::<f64>().map_or(Json::Null, Json::from),
            InputKind::Bool => Json::Bool(text == "true"),
            InputKind::Text | InputKind::Duration => Json::from(text.as_str()),
        });
        scope.inputs.insert(input.name.text.clone(), value);
    }
    scope
}

struct Run<'r> {
    connected: &'r Connected,
    book: &'r Book,
    request: &'r BookRequest,
    walker: &'r mut dyn Walker,
    journal: &'r mut Journal,
    scope: Scope,
    path: Vec<String>,
    signals: Sent,
    /// The end of the book's time.
    give_up: Option<Instant>,
}

/// Sent so far, of all acts together.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    terminate: usize,
    cancel: usize,
}

impl Sent {
    fn total(self) -> usize {
        self.terminate + self.cancel
    }

    fn of(&mut self, verb: Verb) -> &mut usize {
        match verb {
            Verb::Terminate => &mut self.terminate,
            Verb::Cancel => &mut self.cancel,
        }
    }
}

/// A step is over, or the whole run.
enum Over {
    Came(Came),
    End(Ended),
}

impl Run<'_> {
    async fn all(&mut self) -> Result<Ended, ActError> {
        let mut at = 0;
        loop {
            let step = &self.book.steps[at];
            let id = step.id.text.clone();
            self.path.push(id.clone());
            self.walker.step(at + 1, self.book.steps.len(), step);
            self.journal.write(Event::StepStart { step: id.clone() })?;
            let came = match self.step(step).await? {
                Over::End(ended) => return Ok(ended),
                Over::Came(came) => came,
            };
            let word = match came {
                Came::Well => "well",
                Came::TimedOut => "timed out",
            };
            self.journal.write(Event::StepEnd {
                step: id,
                came: word.into(),
            })?;
            if self.walker.stops() > 0 {
                return Ok(Ended::Stopped);
            }
            if self.give_up.is_some_and(|end| Instant::now() > end) {
                return Ok(Ended::Failed(
                    "the book's time is over (limits: wall)".into(),
                ));
            }
            match next(self.book, at, came, &self.scope) {
                Ok(Next::Step(to)) => at = to,
                Ok(Next::End(end)) => return Ok(Ended::At(end)),
                Err(why) => return Ok(Ended::Failed(why)),
            }
        }
    }

    async fn step(&mut self, step: &Step) -> Result<Over, ActError> {
        let well = Over::Came(Came::Well);
        Ok(match &step.kind {
            Kind::Decide(_) | Kind::Nothing => well,
            Kind::Query(report) => {
                let snapshot = self.read().await?;
                self.walker.found(&report.text, &snapshot)?;
                match found(&report.text, &snapshot, &self.request.thresholds) {
                    Ok(found) => self.scope.steps.insert(step.id.text.clone(), found),
                    Err(why) => return Ok(Over::End(Ended::Failed(why))),
                };
                self.expectations(step)?
            }
            Kind::Check(id) => {
                let snapshot = self.read().await?;
                if let Err(why) = found("triage", &snapshot, &self.request.thresholds) {
                    return Ok(Over::End(Ended::Failed(why)));
                }
                let report = triage::report(&snapshot, &self.request.thresholds);
                let finding = report.data.findings.iter().find(|f| f.id == *id);
                let text = match finding {
                    Some(finding) => format!("{}: {}", id.name(), finding.title),
                    None => format!("{}: not found", id.name()),
                };
                self.walker.note(&text);
                let mut fields = serde_json::Map::new();
                fields.insert("found".into(), finding.is_some().into());
                let severity = finding.map_or("none", |f| f.severity.word());
                fields.insert("severity".into(), severity.into());
                self.scope
                    .steps
                    .insert(step.id.text.clone(), Json::Object(fields));
                self.expectations(step)?
            }
            Kind::Ask(ask) => {
                let choices: Vec<(&str, &str)> = ask
                    .choices
                    .iter()
                    .map(|(key, label)| (key.text.as_str(), label.as_str()))
                    .collect();
                let said = self.walker.choose(&ask.text, &choices)?;
                let (answer, attended) = match (said, &step.unattended) {
                    (Said::Text(answer), _) => (answer, true),
                    (Said::Stop, _) => return Ok(Over::End(Ended::Stopped)),
                    (Said::Nobody, Some(answer)) => (answer.text.clone(), false),
                    (Said::Nobody, None) => {
                        return Ok(Over::End(Ended::NeedsHuman(ask.text.clone())));
                    }
                };
                self.journal.write(Event::Answer {
                    step: step.id.text.clone(),
                    answer: answer.clone(),
                    attended,
                })?;
                self.scope
                    .answers
                    .insert(step.id.text.clone(), answer.into());
                well
            }
            Kind::Capture => {
                let snapshot = self.read().await?;
                let file = self
                    .journal
                    .path()
                    .with_extension(format!("{}.snapshot.json", step.id.text));
                bundle::write(&file, &snapshot).map_err(|error| ActError::Evidence {
                    path: file.clone(),
                    error,
                })?;
                self.walker.note(&format!("kept in {}", file.display()));
                self.journal.write(Event::Captured {
                    step: step.id.text.clone(),
                    file: file.display().to_string(),
                })?;
                well
            }
            Kind::Act(what) => self.act(step, what).await?,
            Kind::Poll(poll) => self.poll(poll).await?,
            Kind::Wait(time) => {
                if !self.request.dry_run {
                    self.pause(*time).await;
                }
                well
            }
            Kind::Note(note) => {
                for question in &note.ask {
                    match self.walker.write(question)? {
                        Said::Stop => return Ok(Over::End(Ended::Stopped)),
                        // What nobody wrote is for the postmortem to ask again.
                        Said::Nobody => self.noted(step, question, "(not answered)")?,
                        Said::Text(text) => self.noted(step, question, &text)?,
                    }
                }
                for action in &note.actions {
                    let text = format!(
                        "{} (owner: {}, due: {})",
                        action.title, action.owner, action.due
                    );
                    self.walker.note(&format!("to do: {text}"));
                    self.noted(step, "to do", &text)?;
                }
                well
            }
        })
    }

    async fn read(&mut self) -> Result<Snapshot, RoundError> {
        round(self.connected, Parts::ALL, self.request.round).await
    }

    fn noted(&mut self, step: &Step, question: &str, text: &str) -> Result<(), JournalError> {
        self.journal.write(Event::Note {
            step: step.id.text.clone(),
            question: question.into(),
            text: text.into(),
        })
    }

    /// Each is told; one that stops the run ends it, one that can't be told too.
    fn expectations(&mut self, step: &Step) -> Result<Over, ActError> {
        for expect in &step.expect {
            let held = match expect.that.holds(&self.scope) {
                Ok(held) => held,
                Err(why) if expect.warn => {
                    self.walker.note(&format!("not known: {why}"));
                    continue;
                }
                Err(why) => return Ok(Over::End(Ended::Failed(why))),
            };
            self.journal.write(Event::Expectation {
                step: step.id.text.clone(),
                that: expect.that.text.clone(),
                held,
            })?;
            if held {
                continue;
            }
            let say = expect.say.as_deref().unwrap_or(&expect.that.text);
            if !expect.warn {
                return Ok(Over::End(Ended::Failed(format!(
                    "expected, and not so: {say}"
                ))));
            }
            self.walker.note(&format!("warning: {say}"));
        }
        Ok(Over::Came(Came::Well))
    }

    async fn act(&mut self, step: &Step, what: &Act) -> Result<Over, ActError> {
        let sent = *self.signals.of(what.verb);
        let left = self.book.effects.of(what.verb).saturating_sub(sent);
        let reason = step.confirm.is_some_and(|confirm| confirm.reason);
        if reason && !self.request.dry_run {
            match self.walker.write("why? (kept in the journal)")? {
                Said::Stop => return Ok(Over::End(Ended::Stopped)),
                Said::Text(text) => self.noted(step, "reason", &text)?,
                Said::Nobody => self.noted(step, "reason", "(unattended)")?,
            }
        }
        let request = ActRequest {
            verb: what.verb,
            selection: self.selection(&what.select),
            policy: Policy {
                max: what.max.min(left),
                ..self.request.policy.clone()
            },
            target_name: self.request.target_name.clone(),
            operator_name: self.request.operator_name.clone(),
            wait: self.request.wait,
            grace: None,
            batch: what.batch,
            pause: what.pause,
            until: None,
            round: self.request.round,
            runs: self.request.runs.clone(),
            run_name: step.id.text.clone(),
            first_effect: self.signals.total(),
            give_up: self.give_up,
            clock: self.request.clock,
        };
        let mut operator = DryOr {
            walker: self.walker,
            dry: self.request.dry_run,
        };
        let acted = act(
            self.connected,
            &request,
            &mut operator,
            Some(&mut *self.journal),
        )
        .await?;
        *self.signals.of(what.verb) += acted.done.len();
        match acted.stopped {
            Some(Halt::TooMany(why)) => return Ok(Over::End(Ended::Failed(why))),
            Some(halt) if halt.is_by_person() => return Ok(Over::End(Ended::Stopped)),
            _ => {}
        }
        if acted.chosen.is_empty() {
            // Nobody to be seen is nobody to end only where all of it could be seen.
            return Ok(
                match found("blockers", &acted.snapshot, &self.request.thresholds) {
                    Ok(_) => Over::Came(Came::Well),
                    Err(why) => Over::End(Ended::Failed(why)),
                },
            );
        }
        if self.request.dry_run {
            return Ok(Over::Came(Came::Well));
        }
        if acted.dry_run {
            return Ok(Over::End(Ended::NeedsHuman(format!(
                "{} {} sessions? (--yes answers confirmations)",
                what.verb.word(),
                acted.chosen.len()
            ))));
        }
        if let Some(fault) = acted.done.iter().find(|done| done.outcome.is_fault()) {
            let why = fault.outcome.reason().unwrap_or_default();
            return Ok(Over::End(Ended::Failed(format!(
                "{} of pid {}: {}: {why}",
                fault.verb.word(),
                fault.id.pid,
                fault.outcome.word()
            ))));
        }
        Ok(match acted.stopped {
            Some(Halt::Fault(why) | Halt::Nothing(why)) => Over::End(Ended::Failed(why)),
            _ => Over::Came(Came::Well),
        })
    }

    fn selection(&self, select: &Select) -> Selection {
        let time = |value: &Value| match value {
            Value::Time(time) => Some(*time),
            Value::Input(name) => {
                let input = self.book.inputs.iter().find(|i| i.name.text == name.text);
                let given = self.request.inputs.get(&name.text);
                let text = given.or_else(|| input.and_then(|input| input.default.as_ref()));
                // One that is no time selects nobody: without an age it would be everybody.
                let nobody = Duration::from_secs(u32::MAX.into());
                Some(
                    text.and_then(|text| time_of(text.as_str()))
                        .unwrap_or(nobody),
                )
            }
        };
        Selection {
            pids: Vec::new(),
            idle_in_transaction: select.idle_in_transaction,
            roots: select.roots,
            longer_than: select.longer_than.as_ref().and_then(time).map(Millis::from),
            users: select.users.clone(),
            applications: select.applications.clone(),
        }
    }

    async fn poll(&mut self, poll: &Poll) -> Result<Over, ActError> {
        let report = self
            .book
            .step(&poll.repeat.text)
            .and_then(|n| match &self.book.steps[n].kind {
                Kind::Query(report) => Some(report.text.clone()),
                _ => None,
            })
            .unwrap_or_default();
        let end = Instant::now() + poll.timeout;
        let give_up = self.give_up.map_or(end, |wall| wall.min(end));
        loop {
            // What can't be read or told yet may be later.
            let seen = match self.read().await {
                Ok(snapshot) => found(&report, &snapshot, &self.request.thresholds),
                Err(error) if self.connected.client.is_closed() => return Err(error.into()),
                Err(error) => Err(error.to_string()),
            };
            let holds = seen.and_then(|found| {
                self.scope.steps.insert(poll.repeat.text.clone(), found);
                poll.until.holds(&self.scope)
            });
            let text = match &holds {
                Ok(true) => format!("it holds: {}", poll.until.text),
                Ok(false) => format!("not yet: {}", poll.until.text),
                Err(why) => why.clone(),
            };
            self.walker.note(&text);
            if holds == Ok(true) {
                return Ok(Over::Came(Came::Well));
            }
            if self.request.dry_run {
                self.walker.note("dry run: as if it had come about");
                return Ok(Over::Came(Came::Well));
            }
            if self.walker.stops() > 0 {
                return Ok(Over::End(Ended::Stopped));
            }
            if Instant::now() + poll.every > give_up {
                return Ok(Over::Came(Came::TimedOut));
            }
            self.pause(poll.every).await;
        }
    }

    async fn pause(&mut self, time: Duration) {
        let end = Instant::now() + time;
        let end = self.give_up.map_or(end, |wall| wall.min(end));
        while Instant::now() < end && self.walker.stops() == 0 {
            sleep(Duration::from_millis(50).min(end - Instant::now())).await;
        }
    }
}

/// In a dry run nobody is asked, whoever is there.
struct DryOr<'w> {
    walker: &'w mut dyn Walker,
    dry: bool,
}

impl Operator for DryOr<'_> {
    fn confirm(
        &mut self,
        plan: &super::operator::Plan<'_>,
    ) -> std::io::Result<super::operator::Ask> {
        if self.dry {
            self.walker.note(&format!(
                "dry run: {} sessions would be signalled",
                plan.guarded.allowed.len()
            ));
            return Ok(super::operator::Ask::DryRun);
        }
        self.walker.confirm(plan)
    }

    fn done(&mut self, done: &crate::model::Done) {
        self.walker.done(done);
    }

    fn note(&mut self, text: &str) {
        self.walker.note(text);
    }

    fn stops(&self) -> usize {
        self.walker.stops()
    }
}
