//! Candidates → guard → shown → yes → per session: intent, signal, result → measured again. All of it in the journal.

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::operator::{Ask, Operator, Plan};
use super::select::{Chosen, Selection, choose};
use super::until::Until;
use crate::action::guard::guard;
use crate::action::{Approved, ApprovedSignal, Consent, Facts, Guarded, Policy, send};
use crate::analysis::actions::After;
use crate::analysis::{blocking, connections};
use crate::bundle;
use crate::journal::{Effect, Event, Journal, JournalError, Left};
use crate::model::{Done, Millis, Outcome, Snapshot, Verb};
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
    pub clock: fn() -> crate::model::Timestamp,
}

/// What came of it.
pub struct Acted {
    pub snapshot: Snapshot,
    pub chosen: Vec<Chosen>,
    pub done: Vec<Done>,
    pub dry_run: bool,
    /// Why nothing, or not all, was done.
    pub stopped: Option<String>,
    pub refused_as_a_whole: bool,
    pub before: After,
    pub after: Option<After>,
    pub journal: Option<PathBuf>,
    pub notes: Vec<String>,
}

/// Why it came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    #[error(transparent)]
    Round(#[from] RoundError),
    #[error("no journal, so nothing was done: {0}")]
    Journal(#[from] JournalError),
    #[error("the evidence can't be kept, so nothing was done: {path}: {error}")]
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
) -> Result<Acted, ActError> {
    let snapshot = round(connected, Parts::ALL, request.round).await?;
    let (chosen, notes) = choose(&snapshot, &request.selection, request.verb);
    let facts = Facts {
        own_pid: snapshot.server.get().map_or(0, |server| server.own_pid.0),
        database: snapshot.target.database.clone(),
    };
    let candidates = chosen.iter().map(|c| c.candidate.clone()).collect();
    let guarded = guard(candidates, request.verb, &facts, &request.policy);
    let mut acted = Acted {
        before: measure(&snapshot),
        snapshot,
        chosen,
        done: refusals(&guarded, request.verb),
        dry_run: false,
        stopped: None,
        refused_as_a_whole: false,
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
        acted.refused_as_a_whole = true;
        acted.stopped = Some(format!(
            "{count} sessions, more than --max {}: refused as a whole, nothing was signalled",
            request.policy.max
        ));
        return Ok(acted);
    }
    let consent = match answer {
        Ask::Consent(consent) => consent,
        Ask::DryRun => {
            acted.dry_run = true;
            return Ok(acted);
        }
        Ask::No => {
            acted.stopped = Some(match guarded.allowed.is_empty() {
                true => "there is nothing to signal".into(),
                false => "not confirmed: nothing was done".into(),
            });
            return Ok(acted);
        }
    };
    let approved = match guarded.approve(&consent, &request.target_name) {
        Ok(approved) => approved,
        Err(why) => {
            acted.stopped = Some(why);
            return Ok(acted);
        }
    };
    if approved.signals().is_empty() {
        acted.stopped = Some("there is nothing to signal".into());
        return Ok(acted);
    }
    let mut journal = begin(request, &acted.snapshot, &guarded, &consent)?;
    acted.journal = Some(journal.path().to_path_buf());
    let mut run = Run {
        connected,
        request,
        operator,
        journal: &mut journal,
        next: 0,
    };
    acted.stopped = run.batches(&approved, &mut acted.done).await?;
    // Where the connection is lost by now, what was done stands all the same.
    if let Ok(after) = round(connected, Parts::ALL, request.round).await {
        acted.after = Some(measure(&after));
    }
    let fault = acted.done.iter().any(|done| done.outcome.is_fault());
    journal.write(Event::RunEnd {
        code: if fault { 2 } else { 0 },
    })?;
    Ok(acted)
}

fn measure(snapshot: &Snapshot) -> After {
    After {
        capacity: connections::capacity(snapshot),
        blocked_total: snapshot
            .locks
            .get()
            .map(|_| blocking::report(snapshot).data.blocked),
    }
}

fn refusals(guarded: &Guarded, verb: Verb) -> Vec<Done> {
    guarded
        .refused
        .iter()
        .map(|(candidate, outcome)| Done {
            verb,
            id: candidate.session.id,
            outcome: outcome.clone(),
            waited: Millis(0),
        })
        .collect()
}

/// The journal's beginning and the evidence, both on disk before the first signal.
fn begin(
    request: &ActRequest,
    snapshot: &Snapshot,
    guarded: &Guarded,
    consent: &Consent,
) -> Result<Journal, ActError> {
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
        how: match consent {
            Consent::Typed(_) => "the target's name was typed".into(),
            Consent::Yes { .. } => "--yes".into(),
        },
    })?;
    Ok(journal)
}

/// The part that signals.
struct Run<'r> {
    connected: &'r Connected,
    request: &'r ActRequest,
    operator: &'r mut dyn Operator,
    journal: &'r mut Journal,
    next: usize,
}

impl Run<'_> {
    /// All of them, batch by batch; the reason where it ends early.
    async fn batches(
        &mut self,
        approved: &Approved,
        done: &mut Vec<Done>,
    ) -> Result<Option<String>, ActError> {
        let total = approved.signals().len();
        let size = self.request.batch.max(1);
        let mut stopped: Option<String> = None;
        for n in 0..total {
            let Some(signal) = approved.get(n) else { break };
            if stopped.is_none() && n > 0 && n % size == 0 {
                stopped = self.between().await?;
            }
            if stopped.is_none() && self.operator.stops() > 1 {
                stopped = Some("stopped by the operator".into());
                self.stopped(stopped.as_deref())?;
            }
            let one = match &stopped {
                Some(why) => Done {
                    verb: signal.signal().verb,
                    id: signal.signal().id,
                    outcome: Outcome::Skipped(why.clone()),
                    waited: Millis(0),
                },
                None => self.one(&signal).await?,
            };
            self.operator.done(&one);
            done.push(one);
        }
        Ok(stopped)
    }

    fn stopped(&mut self, why: Option<&str>) -> Result<(), JournalError> {
        self.journal.write(Event::Stopped {
            why: why.unwrap_or_default().into(),
        })
    }

    /// Between two batches: the operator's wish, the pause, the condition.
    async fn between(&mut self) -> Result<Option<String>, ActError> {
        let end = Instant::now() + self.request.pause;
        while Instant::now() < end && self.operator.stops() == 0 {
            sleep(Duration::from_millis(20).min(end - Instant::now())).await;
        }
        if self.operator.stops() > 0 {
            let why = "stopped by the operator after a batch".to_owned();
            self.stopped(Some(&why))?;
            return Ok(Some(why));
        }
        let Some(until) = &self.request.until else {
            return Ok(None);
        };
        let (holds, measured) = match round(self.connected, Parts::ALL, self.request.round).await {
            Ok(snapshot) => until.holds(&snapshot),
            Err(error) => (true, format!("it can't be measured any more ({error})")),
        };
        self.operator.note(&measured);
        self.journal.write(Event::BatchEnd {
            measured: measured.clone(),
        })?;
        if !holds {
            return Ok(None);
        }
        let why = format!("--until: {measured}");
        self.stopped(Some(&why))?;
        Ok(Some(why))
    }

    /// One session: intent on disk, signal, result on disk; and the stronger signal, where it was asked for.
    async fn one(&mut self, signal: &ApprovedSignal) -> Result<Done, ActError> {
        let wait = match (signal.signal().verb, self.request.grace) {
            (Verb::Cancel, Some(grace)) => grace,
            _ => self.request.wait,
        };
        let first = self.effect(signal, wait).await?;
        let escalates = signal.signal().verb == Verb::Cancel
            && self.request.grace.is_some()
            && matches!(first.outcome, Outcome::StillAlive(_));
        if escalates {
            self.operator.done(&first);
            return self.effect(&signal.escalated(), self.request.wait).await;
        }
        Ok(first)
    }

    async fn effect(&mut self, signal: &ApprovedSignal, wait: Duration) -> Result<Done, ActError> {
        let n = self.next;
        self.next += 1;
        self.journal.write(Event::EffectIntent {
            n,
            effect: Effect::Signal(signal.signal().clone()),
        })?;
        let (outcome, waited) = send(&self.connected.client, signal, wait).await;
        self.journal.write(Event::EffectResult {
            n,
            outcome: outcome.clone(),
            waited_ms: waited.0,
        })?;
        Ok(Done {
            verb: signal.signal().verb,
            id: signal.signal().id,
            outcome,
            waited,
        })
    }
}
