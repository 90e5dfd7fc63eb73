//! Candidates → guard → shown → yes → per session: intent, signal, result → measured again. All of it in the journal.

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::halt::Halt;
use super::operator::{Ask, Operator, Plan};
use super::select::{Chosen, Selection, choose};
use super::until::Until;
use crate::action::guard::guard;
use crate::action::{Approved, ApprovedSignal, Consent, Facts, Guarded, Policy, send};
use crate::analysis::actions::After;
use crate::bundle;
use crate::journal::{Effect, Event, Journal, JournalError, Left};
use crate::model::{BackendId, Done, ExitCode, Millis, Outcome, Pid, Signal, Snapshot, Verb};
use crate::source::postgres::{Connected, Parts, RoundError, RoundOptions, round};

/// What is to be done, and how far.
pub struct ActRequest {
    pub verb: Verb,
    pub selection: Selection,
    pub policy: Policy,
    /// What the person types, and the journal calls it.
    pub target_name: String,
    pub operator_name: String,
    /// So long each end is awaited.
    pub wait: Duration,
    /// After a cancel: so long until what is still there is terminated. `None`: never.
    pub grace: Option<Duration>,
    /// So many at a time, with a pause between.
    pub batch: usize,
    pub pause: Duration,
    pub until: Option<Until>,
    pub round: RoundOptions,
    /// Where journals are kept.
    pub runs: PathBuf,
    pub run_name: String,
    /// The number of the first effect: a runbook may have had some before.
    pub first_effect: usize,
    /// Nothing is signalled after it.
    pub give_up: Option<Instant>,
    /// Signals that went out before this run was interrupted: none of them is sent again.
    pub already: Vec<Signal>,
    pub clock: fn() -> crate::model::Timestamp,
}

/// What came of it.
pub struct Acted {
    pub snapshot: Snapshot,
    pub chosen: Vec<Chosen>,
    pub done: Vec<Done>,
    /// Effects that were begun.
    pub tried: usize,
    pub dry_run: bool,
    /// Why nothing, or not all, was done.
    pub stopped: Option<Halt>,
    pub before: After,
    pub after: Option<After>,
    pub journal: Option<PathBuf>,
    pub notes: Vec<String>,
}

impl Acted {
    /// 2 where something was refused, is still there or failed, or nothing could be approved; 5 where the person stopped it
    /// or said no; 0 where nothing was to be done.
    pub fn exit_code(&self) -> ExitCode {
        let fault = self.done.iter().any(|done| done.outcome.is_fault());
        match &self.stopped {
            Some(Halt::TooMany(_)) => ExitCode::Critical,
            _ if self.dry_run => ExitCode::Ok,
            _ if fault => ExitCode::Critical,
            Some(halt) if halt.is_by_person() => ExitCode::Stopped,
            Some(Halt::Fault(_)) => ExitCode::Critical,
            Some(Halt::Nothing(_)) if !self.chosen.is_empty() => ExitCode::Critical,
            _ => ExitCode::Ok,
        }
    }
}

/// Why it came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    #[error(transparent)]
    Round(#[from] RoundError),
    #[error("no journal, so nothing more is done: {0}")]
    Journal(#[from] JournalError),
    #[error("the evidence can't be kept, so nothing more is done: {path}: {error}")]
    Evidence {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Reads, chooses, guards, asks, acts, and looks again.
///
/// # Errors
/// When the server can't be read, or there is no journal to write to: then nothing is done.
pub async fn act(
    connected: &Connected,
    request: &ActRequest,
    operator: &mut dyn Operator,
    journal: Option<&mut Journal>,
) -> Result<Acted, ActError> {
    let snapshot = round(connected, Parts::TO_KEEP, request.round).await?;
    let (chosen, notes, guarded) = planned(&snapshot, request);
    let mut acted = Acted {
        before: After::of(&snapshot),
        done: missing(&snapshot, request)
            .chain(refusals(&guarded, request.verb))
            .collect(),
        snapshot,
        chosen,
        tried: 0,
        dry_run: false,
        stopped: None,
        after: None,
        journal: None,
        notes,
    };
    let plan = Plan {
        target: &acted.snapshot.target,
        target_name: &request.target_name,
        chosen: &acted.chosen,
        guarded: &guarded,
        notes: &acted.notes,
    };
    let answer = operator.confirm(&plan)?;
    if let Some(count) = guarded.too_many() {
        acted.stopped = Some(Halt::TooMany(format!(
            "{count} sessions, more than {}: refused as a whole, nothing was signalled",
            match journal {
                // Of its act, or what is left of its own limit.
                Some(_) => format!("the {} that the book allows here", request.policy.max),
                None => format!("--max {}", request.policy.max),
            }
        )));
        return Ok(acted);
    }
    let mut journal = journal;
    let consent = match answer {
        Ask::Consent(consent) => consent,
        Ask::DryRun => {
            acted.dry_run = true;
            return Ok(acted);
        }
        Ask::No => {
            acted.stopped = Some(match guarded.allowed.is_empty() {
                true => Halt::Nothing("there is nothing to signal".into()),
                false => declined(
                    journal.as_deref_mut(),
                    "not confirmed: nothing was done".into(),
                )?,
            });
            return Ok(acted);
        }
    };
    let approved = match guarded.approve(&consent, &request.target_name) {
        Ok(approved) => approved,
        Err(why) => {
            acted.stopped = Some(match consent {
                Consent::Typed(_) => declined(journal.as_deref_mut(), why)?,
                Consent::Yes { .. } => Halt::Fault(why),
            });
            return Ok(acted);
        }
    };
    if approved.signals().is_empty() {
        acted.stopped = Some(Halt::Nothing("there is nothing to signal".into()));
        return Ok(acted);
    }
    if request.is_late() {
        acted.stopped = Some(late());
        return Ok(acted);
    }
    let mut own = None;
    let of_a_book = journal.is_some();
    let journal = match journal {
        Some(journal) => {
            keep(journal, request, &acted.snapshot)?;
            journal
        }
        None => own.insert(begin(request, &acted.snapshot)?),
    };
    candidates_written(journal, &guarded, &consent)?;
    acted.journal = Some(journal.path().to_path_buf());
    let mut run = Run {
        connected,
        request,
        operator: &mut *operator,
        journal: &mut *journal,
        next: request.first_effect,
    };
    acted.stopped = run.batches(&approved, &mut acted.done).await;
    acted.tried = run.next - request.first_effect;
    // Where the connection is lost by now, what was done stands all the same.
    if let Ok(after) = round(connected, Parts::ALL, request.round).await {
        acted.after = Some(After::of(&after));
    }
    if !of_a_book {
        let code = acted.exit_code().code();
        if let Err(error) = journal.write(Event::RunEnd { code }) {
            operator.note(&error.to_string());
        }
    }
    Ok(acted)
}

/// A no, which a book's journal keeps.
fn declined(journal: Option<&mut Journal>, why: String) -> Result<Halt, JournalError> {
    if let Some(journal) = journal {
        journal.write(Event::NotConfirmed { why: why.clone() })?;
    }
    Ok(Halt::Declined(why))
}

/// Who would be signalled, and who wouldn't: nothing is asked, nothing is done.
pub fn planned(snapshot: &Snapshot, request: &ActRequest) -> (Vec<Chosen>, Vec<String>, Guarded) {
    let (mut chosen, mut notes) = choose(snapshot, &request.selection, request.verb);
    let facts = Facts {
        own_pid: snapshot.server.get().map_or(0, |server| server.own_pid.0),
        database: snapshot.target.database.clone(),
    };
    let is_again = |c: &Chosen| {
        let session = &c.candidate.session;
        request.already.iter().any(|signal| {
            signal.verb == request.verb
                && signal.id == session.id
                && signal
                    .xact_start
                    .is_none_or(|at| session.xact_start == Some(at))
        })
    };
    let again: Vec<String> = chosen
        .iter()
        .filter(|c| is_again(c))
        .map(|c| c.candidate.session.pid().to_string())
        .collect();
    if !again.is_empty() {
        notes.push(format!(
            "left alone: {}: this run signalled it before it was interrupted",
            again.join(", ")
        ));
        chosen.retain(|c| !is_again(c));
    }
    let candidates = chosen.iter().map(|c| c.candidate.clone()).collect();
    let guarded = guard(candidates, request.verb, &facts, &request.policy);
    (chosen, notes, guarded)
}

/// The pids that were asked for and aren't there.
fn missing<'r>(
    snapshot: &Snapshot,
    request: &'r ActRequest,
) -> impl Iterator<Item = Done> + use<'r> {
    let there: Vec<Pid> = snapshot.activity.rows().iter().map(|s| s.pid()).collect();
    let gone = request.selection.pids.iter().map(|pid| Pid(*pid));
    gone.filter(move |pid| !there.contains(pid))
        .map(|pid| Done {
            verb: request.verb,
            id: BackendId {
                pid,
                backend_start: None,
            },
            outcome: Outcome::Changed("no such process".into()),
            waited: Millis(0),
        })
}

fn refusals(guarded: &Guarded, verb: Verb) -> impl Iterator<Item = Done> + '_ {
    guarded
        .refused
        .iter()
        .map(move |(candidate, outcome)| Done {
            verb,
            id: candidate.session.id,
            outcome: outcome.clone(),
            waited: Millis(0),
        })
}

impl ActRequest {
    fn is_late(&self) -> bool {
        self.give_up.is_some_and(|end| Instant::now() > end)
    }
}

fn late() -> Halt {
    Halt::Fault("the book's time is over (limits: wall)".into())
}

/// Of an act of a book: what justified it, beside what the book itself keeps.
fn keep(journal: &mut Journal, request: &ActRequest, snapshot: &Snapshot) -> Result<(), ActError> {
    let path = journal.kept(&request.run_name);
    bundle::write(&path, snapshot).map_err(|error| ActError::Evidence {
        path: path.clone(),
        error,
    })?;
    journal.write(Event::Captured {
        step: request.run_name.clone(),
        file: path.display().to_string(),
    })?;
    Ok(())
}

/// The journal's beginning and the evidence, both on disk before the first signal.
fn begin(request: &ActRequest, snapshot: &Snapshot) -> Result<Journal, ActError> {
    let mut journal = Journal::create(&request.runs, &request.run_name, request.clock)?;
    let evidence = journal.evidence();
    bundle::write(&evidence, snapshot).map_err(|error| ActError::Evidence {
        path: evidence.clone(),
        error,
    })?;
    journal.write(Event::RunStart {
        what: format!("pg {}", request.verb.word()),
        target: snapshot.target.label(),
        login: snapshot.target.user.clone(),
        operator: request.operator_name.clone(),
        version: env!("CARGO_PKG_VERSION").into(),
        evidence: evidence.display().to_string(),
    })?;
    Ok(journal)
}

fn candidates_written(
    journal: &mut Journal,
    guarded: &Guarded,
    consent: &Consent,
) -> Result<(), JournalError> {
    journal.write(Event::Candidates {
        signals: guarded.allowed.iter().map(|(_, s)| s.clone()).collect(),
        refused: guarded
            .refused
            .iter()
            .map(|(candidate, outcome)| Left {
                pid: candidate.session.id.pid.0,
                why: outcome.reason().unwrap_or_default().into(),
            })
            .collect(),
    })?;
    journal.write(Event::Confirmed {
        how: consent.how().into(),
    })
}

/// The part that signals. Once a signal is out, nothing ends the run without its outcomes: what goes wrong stops it.
struct Run<'r> {
    connected: &'r Connected,
    request: &'r ActRequest,
    operator: &'r mut dyn Operator,
    journal: &'r mut Journal,
    next: usize,
}

impl Run<'_> {
    /// All of them, batch by batch; the reason where it ends early.
    async fn batches(&mut self, approved: &Approved, done: &mut Vec<Done>) -> Option<Halt> {
        let total = approved.signals().len();
        let size = self.request.batch.max(1);
        let mut stopped: Option<Halt> = None;
        for n in 0..total {
            let Some(signal) = approved.get(n) else { break };
            if stopped.is_none() && n > 0 && n % size == 0 {
                stopped = self.between().await;
            }
            if stopped.is_none()
                && (self.operator.stops() > 1 || n == 0 && self.operator.stops() > 0)
            {
                stopped = Some(Halt::by_operator());
            }
            if stopped.is_none() && self.request.is_late() {
                stopped = Some(late());
            }
            let one = match &stopped {
                Some(why) => Done {
                    verb: signal.signal().verb,
                    id: signal.signal().id,
                    outcome: Outcome::Skipped(why.text().to_owned()),
                    waited: Millis(0),
                },
                None => {
                    let (one, why) = self.one(&signal).await;
                    stopped = why;
                    one
                }
            };
            self.operator.done(&one);
            done.push(one);
        }
        if stopped.is_none() && self.operator.stops() > 0 {
            stopped = Some(Halt::by_operator());
        }
        if let Some(why) = &stopped {
            let why = why.text().to_owned();
            let event = Event::Stopped { why };
            if let Err(error) = self.journal.write(event) {
                self.operator.note(&error.to_string());
            }
        }
        stopped
    }

    /// Between two batches: the operator's wish, the pause, the condition.
    async fn between(&mut self) -> Option<Halt> {
        let end = Instant::now() + self.request.pause;
        while Instant::now() < end && self.operator.stops() == 0 {
            sleep(Duration::from_millis(20).min(end - Instant::now())).await;
        }
        if self.operator.stops() > 0 {
            return Some(Halt::Operator(
                "stopped by the operator after a batch".into(),
            ));
        }
        let until = self.request.until.as_ref()?;
        let (holds, measured) = match round(self.connected, Parts::ALL, self.request.round).await {
            Ok(snapshot) => until.holds(&snapshot),
            Err(error) => (true, format!("it can't be measured any more ({error})")),
        };
        self.operator.note(&measured);
        let event = Event::BatchEnd {
            measured: measured.clone(),
        };
        if let Err(error) = self.journal.write(event) {
            return Some(Halt::Fault(no_journal(&error)));
        }
        holds.then(|| Halt::Until(format!("--until: {measured}")))
    }

    /// One session: intent on disk, signal, result on disk; and the stronger signal, where it was asked for. Why nothing
    /// more may follow, where that is so.
    async fn one(&mut self, signal: &ApprovedSignal) -> (Done, Option<Halt>) {
        let wait = match (signal.signal().verb, self.request.grace) {
            (Verb::Cancel, Some(grace)) => grace,
            _ => self.request.wait,
        };
        let (first, stopped) = self.effect(signal, wait).await;
        let escalates = signal.signal().verb == Verb::Cancel
            && self.request.grace.is_some()
            && stopped.is_none()
            && self.operator.stops() == 0
            && matches!(first.outcome, Outcome::StillAlive(_));
        if escalates {
            return self.effect(&signal.escalated(), self.request.wait).await;
        }
        (first, stopped)
    }

    async fn effect(&mut self, signal: &ApprovedSignal, wait: Duration) -> (Done, Option<Halt>) {
        let n = self.next;
        self.next += 1;
        let done = |outcome, waited| Done {
            verb: signal.signal().verb,
            id: signal.signal().id,
            outcome,
            waited,
        };
        let intent = Event::EffectIntent {
            n,
            effect: Effect::Signal(signal.signal().clone()),
        };
        if let Err(error) = self.journal.write(intent) {
            let why = no_journal(&error);
            let outcome = Outcome::Skipped(why.clone());
            return (done(outcome, Millis(0)), Some(Halt::Fault(why)));
        }
        let operator = &*self.operator;
        let stop = || operator.stops() > 1;
        let (outcome, waited) = send(&self.connected.client, signal, wait, &stop).await;
        let result = Event::EffectResult {
            n,
            outcome: outcome.clone(),
            waited_ms: waited.0,
        };
        let written = self.journal.write(result);
        let lost = self.connected.client.is_closed();
        let stopped = match written {
            Err(error) => Some(Halt::Fault(no_journal(&error))),
            Ok(()) if lost => Some(Halt::Fault("the connection was lost".into())),
            Ok(()) => None,
        };
        (done(outcome, waited), stopped)
    }
}

fn no_journal(error: &JournalError) -> String {
    format!("the journal can't be written, so nothing more is done: {error}")
}
