//! The steps of a book that change something: sessions by the guard, commands with a yes. Intent before, result after.

use std::time::Duration;

use super::act::{ActError, ActRequest, Acted, act, planned};
use super::book::{Over, Run, Said, Walker, Yes};
use super::command::command;
use super::found::found;
use super::halt::Halt;
use super::operator::{Ask, Operator, Plan};
use super::past::Known;
use super::select::{Selection, choose};
use super::steps::of_command;
use super::world::World;
use crate::action::Policy;
use crate::analysis::actions::After;
use crate::journal::{Effect, Event};
use crate::model::{Done, Millis};
use crate::runbook::walk::Ended;
use crate::runbook::{Act, Command, Select, Step, masked};

/// A command that changes something isn't waited for longer, where its step doesn't say.
const COMMAND: Duration = Duration::from_secs(60);

impl Run<'_> {
    /// Why it is done, or that it may be: what comes before each effect.
    fn reason(&mut self, step: &Step, what: &str) -> Result<Option<Over>, ActError> {
        if self.request.dry_run || self.world.is_saved() {
            return Ok(None);
        }
        let reason = step.confirm.is_some_and(|confirm| confirm.reason);
        let before = self.before.as_ref();
        if reason
            && before.is_some_and(|before| {
                before
                    .noted
                    .iter()
                    .any(|(question, _)| question == "reason")
            })
        {
            return Ok(None);
        }
        let said = match reason {
            true => {
                self.walker.note(what);
                self.walker.write("why is it done? (kept in the journal)")?
            }
            false => self.walker.pause(what)?,
        };
        match said {
            Said::Stop => return Ok(Some(Over::End(Ended::Stopped))),
            Said::Skip(reason) => return self.skipped(step, reason).map(Some),
            Said::Text(text) if reason => self.noted(step, "reason", &text)?,
            _ => {}
        }
        Ok(None)
    }

    pub(super) async fn act(&mut self, step: &Step, what: &Act) -> Result<Over, ActError> {
        if let Some(over) = self.reason(
            step,
            "The sessions are shown next, before anything happens.",
        )? {
            return Ok(over);
        }
        let sent = *self.sent.by(what.verb);
        let left = self.book.effects.of(what.verb).saturating_sub(sent);
        let selection = match self.selection(step, &what.select) {
            Ok(selection) => selection,
            Err(why) => return Ok(Over::error("unknown", why)),
        };
        let request = ActRequest {
            verb: what.verb,
            selection,
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
            first_effect: self.sent.next,
            give_up: self.give_up,
            already: self
                .before
                .as_ref()
                .map(|b| b.already())
                .unwrap_or_default(),
            clock: self.request.clock,
        };
        let mut operator = DryOr {
            dry: self.request.dry_run || self.world.is_saved(),
            walker: self.walker,
            would: None,
        };
        let acted = match self.world {
            World::Live(connected, _) => {
                let journal = self.journal.as_deref_mut();
                act(connected, &request, &mut operator, journal).await?
            }
            World::Saved(snapshot, _) => {
                let (chosen, notes, guarded) = planned(snapshot, &request);
                let plan = Plan {
                    target: &snapshot.target,
                    target_name: &request.target_name,
                    chosen: &chosen,
                    guarded: &guarded,
                    notes: &notes,
                };
                operator.confirm(&plan)?;
                Acted {
                    before: After::of(snapshot),
                    snapshot: snapshot.clone(),
                    done: Vec::new(),
                    tried: 0,
                    dry_run: true,
                    stopped: None,
                    after: None,
                    journal: None,
                    chosen,
                    notes,
                }
            }
        };
        let would = operator.would.take();
        self.would
            .extend(would.map(|what| (step.id.text.clone(), what)));
        *self.sent.by(what.verb) += acted.tried;
        self.sent.next += acted.tried;
        if acted.chosen.is_empty()
            && let Some(why) = too_young(&acted, &request)
        {
            return Ok(Over::error("too_young", why));
        }
        Ok(self.acted(&acted, what))
    }

    /// What an act came to, for the way on.
    fn acted(&self, acted: &Acted, what: &Act) -> Over {
        match &acted.stopped {
            Some(Halt::TooMany(why)) => return Over::error("too_many", why),
            Some(halt) if halt.is_by_person() => return Over::End(Ended::Stopped),
            _ => {}
        }
        if acted.chosen.is_empty() {
            // Nobody to be seen is nobody to end only where all of it could be seen.
            if let Err(why) = found("blockers", &acted.snapshot, &self.request.thresholds) {
                return Over::error("incomplete", why);
            }
        } else if acted.dry_run && !(self.request.dry_run || self.world.is_saved()) {
            return Over::End(Ended::NeedsHuman(format!(
                "{} {} sessions? (--yes answers confirmations)",
                what.verb.word(),
                acted.chosen.len()
            )));
        }
        if let Some(fault) = acted.done.iter().find(|done| done.outcome.is_fault()) {
            let word = fault.outcome.word();
            return Over::error(
                word,
                format!(
                    "{} of pid {}: {word}: {}",
                    fault.verb.word(),
                    fault.id.pid,
                    fault.outcome.reason().unwrap_or_default()
                ),
            );
        }
        match &acted.stopped {
            Some(Halt::Fault(why)) => return Over::error("failed", why),
            Some(Halt::Nothing(why)) if !acted.chosen.is_empty() => {
                return Over::error("refused", why);
            }
            _ => {}
        }
        Over::WELL
    }

    fn selection(&self, step: &Step, select: &Select) -> Result<Selection, String> {
        let names = |all: &[crate::runbook::Operand]| -> Result<Vec<String>, String> {
            all.iter().map(|one| self.walk.operand(step, one)).collect()
        };
        Ok(Selection {
            pids: Vec::new(),
            idle_in_transaction: select.idle_in_transaction,
            active: select.active,
            transaction: select.transaction,
            roots: select.roots,
            longer_than: select
                .longer_than
                .as_ref()
                .map(|value| Millis::from(self.walk.time(step, value))),
            users: names(&select.users)?,
            applications: names(&select.applications)?,
            only_pids: names(&select.pids)?
                .iter()
                .map(|pid| pid.parse::<i32>().map_err(|_| format!("{pid:?} is no pid")))
                .collect::<Result<_, _>>()?,
        })
    }

    pub(super) async fn command(&mut self, step: &Step, what: &Command) -> Result<Over, ActError> {
        // It ran before the run was interrupted; what it wrote is not in the journal.
        match self
            .before
            .as_ref()
            .and_then(|before| before.ran().cloned())
        {
            Some(Known::Exit(Some(code))) => {
                self.walker.note("it has run before: it isn't run again");
                return Ok(self.ran(step, serde_json::json!({ "exit": code })));
            }
            Some(_) => {
                self.walker
                    .note("it is counted as done: it isn't run again");
                self.walk
                    .learn_what_is_left(step, serde_json::json!({ "exit": null }));
                return Ok(Over::WELL);
            }
            None => {}
        }
        let argv: Result<Vec<String>, String> = what
            .argv
            .iter()
            .map(|arg| self.walk.operand(step, arg))
            .collect();
        let argv = match argv {
            Ok(argv) => argv,
            Err(why) => return Ok(Over::error("unknown", why)),
        };
        let shown = masked(&argv);
        let line = shown.join(" ");
        if self.request.dry_run || self.world.is_saved() {
            self.walker.note(&format!("dry run: it would run: {line}"));
            let would = format!("run {line}");
            self.would.push((step.id.text.clone(), would));
            return Ok(self.ran(step, of_command(Some(0), "", 0)));
        }
        if self.sent.run >= self.book.effects.run {
            let why = format!("more than limits.effects.run: {}", self.book.effects.run);
            return Ok(Over::error("too_many", why));
        }
        if let Some(over) = self.reason(step, &format!("To be run: {line}."))? {
            return Ok(over);
        }
        match self
            .walker
            .yes(&format!("run {line}"), &self.request.target_name)?
        {
            Yes::Yes(how) => self.write(Event::Confirmed { how })?,
            Yes::No => {
                let why = "the target's name wasn't typed".to_owned();
                self.write(Event::NotConfirmed { why })?;
                return Ok(Over::End(Ended::Stopped));
            }
            Yes::Nobody => {
                let question = format!("run {line}? (--yes answers confirmations)");
                return Ok(Over::End(Ended::NeedsHuman(question)));
            }
        }
        // However long the question stood there.
        if let Some(ended) = self.is_over()? {
            return Ok(Over::End(ended));
        }
        let n = self.sent.next;
        self.write(Event::EffectIntent {
            n,
            effect: Effect::Command { argv: shown },
        })?;
        self.sent.next += 1;
        self.sent.run += 1;
        let walker = &*self.walker;
        let stop = || walker.stops() > 0;
        let ran = command(&argv, step.timeout.unwrap_or(COMMAND), &stop).await;
        let (exit, why) = match &ran {
            Ok(ran) => (ran.exit, ran.why.clone()),
            Err(error) => (None, format!("it can't be started: {error}")),
        };
        self.write(Event::CommandResult {
            n,
            exit,
            why: why.clone(),
            started: ran.is_ok(),
        })?;
        let Ok(ran) = ran else {
            return Ok(Over::error("start", format!("{}: {why}", argv[0])));
        };
        let mut text = ran.stdout.clone();
        text.push_str(&ran.stderr);
        self.walker.found(&super::book::Seen::Lines(&text))?;
        if ran.exit.is_none() {
            let stopped = self.walker.stops() > 0;
            return Ok(match stopped {
                true => Over::End(Ended::Stopped),
                false => Over::error("command", format!("{}: {why}", argv[0])),
            });
        }
        Ok(self.ran(
            step,
            of_command(ran.exit, &ran.stdout, ran.elapsed.as_millis()),
        ))
    }

    /// What a command came to, for the way on.
    fn ran(&mut self, step: &Step, found: serde_json::Value) -> Over {
        let exit = found["exit"].clone();
        if let Err(why) = self.walk.learn(step, found) {
            return Over::error("unknown", why);
        }
        if step.expect.is_empty() && exit != 0 {
            return Over::error(
                "exit",
                format!("{}: the command ended with {exit}", step.id.text),
            );
        }
        match self.expectations(step) {
            Ok(over) => over,
            Err(error) => Over::End(Ended::Failed(error.to_string())),
        }
    }
}

/// Nobody was old enough: that isn't nobody.
fn too_young(acted: &Acted, request: &ActRequest) -> Option<String> {
    let least = request.selection.longer_than?;
    let anybody = Selection {
        longer_than: None,
        ..request.selection.clone()
    };
    let again: Vec<_> = request.already.iter().map(|signal| signal.id).collect();
    let (all, _) = choose(&acted.snapshot, &anybody, request.verb);
    let all: Vec<_> = all
        .iter()
        .filter(|c| !again.contains(&c.candidate.session.id))
        .collect();
    let oldest = all
        .iter()
        .filter_map(|c| c.xact_age.max(c.state_age))
        .max()?;
    Some(format!(
        "{} would be meant, and none for {least} yet: the oldest for {oldest}",
        crate::model::count(all.len(), "session")
    ))
}

/// In a dry run nobody is asked, whoever is there.
struct DryOr<'w> {
    walker: &'w mut dyn Walker,
    dry: bool,
    /// What would be done.
    would: Option<String>,
}

impl Operator for DryOr<'_> {
    fn confirm(&mut self, plan: &Plan<'_>) -> std::io::Result<Ask> {
        if self.dry {
            let allowed = &plan.guarded.allowed;
            let pids: Vec<String> = allowed.iter().map(|(_, s)| s.id.pid.to_string()).collect();
            let Some((_, first)) = allowed.first() else {
                self.walker.note("dry run: no session would be signalled");
                return Ok(Ask::DryRun);
            };
            let (sessions, pids) = (crate::model::count(pids.len(), "session"), pids.join(", "));
            self.walker
                .note(&format!("dry run: {sessions} would be signalled: {pids}"));
            self.would = Some(format!("{} {sessions}: {pids}", first.verb.word()));
            return Ok(Ask::DryRun);
        }
        self.walker.confirm(plan)
    }

    fn done(&mut self, done: &Done) {
        self.walker.done(done);
    }

    fn note(&mut self, text: &str) {
        self.walker.note(text);
    }

    fn stops(&self) -> usize {
        self.walker.stops()
    }
}
