//! `stanch pg cancel | terminate | rollback-prepared`: the person's wish → the engine in `operate`, and the result shown.

use std::cell::Cell;
use std::io::IsTerminal as _;
use std::rc::Rc;
use std::time::Duration;

use super::Context;
use crate::action::{Consent, Policy, PreparedTarget, roll_back};
use crate::analysis::Report;
use crate::analysis::actions::{self, Actions, CandidateRow, OutcomeRow};
use crate::cli::args::{ActArgs, RollbackArgs};
use crate::cli::fault::Fault;
use crate::cli::rounds;
use crate::cli::settings::{ActSettings, ConnectSettings};
use crate::cli::stop::Stop;
use crate::journal::{Effect, Event, Journal, TargetLock};
use crate::model::{Done, ExitCode, Millis, Outcome, Snapshot, Verb};
use crate::operate::{self, ActRequest, Acted, Ask, Chosen, Operator, Plan, Selection};
use crate::source::postgres::{Connected, Parts, round};
use crate::view::{self, Console, actions as shown};

/// `pg cancel`, `pg terminate`.
pub async fn run(
    ctx: &mut Context<'_>,
    verb: Verb,
    args: &ActArgs,
    grace: Option<Duration>,
) -> Result<ExitCode, Fault> {
    let selection = selection(args)?;
    let (settings, acting) = ConnectSettings::to_act(&args.connect, ctx.env)?;
    let request = ActRequest {
        verb,
        selection,
        policy: Policy {
            allow_superuser: args.allow_superuser,
            allow_syncrep: args.allow_syncrep,
            all_databases: args.all_databases,
            protected_users: acting.protected_users.clone(),
            protected_applications: acting.protected_applications.clone(),
            max: args.max,
        },
        target_name: acting.target_name.clone(),
        operator_name: acting.operator.clone(),
        wait: args.wait,
        grace,
        batch: args.batch,
        pause: args.pause,
        until: args.until.clone(),
        round: settings.round,
        runs: acting.state.join("runs"),
        run_name: run_name(verb.word(), &acting.target_name),
        clock: rounds::local_now,
    };
    // For as long as it takes; a dry run changes nothing and needs no lock.
    let person = Person::new(ctx, args.yes, &acting);
    let _lock = match person.may_act() {
        true => Some(lock(&acting)?),
        false => None,
    };
    let connected = rounds::connect(ctx, &settings).await?;
    let (acted, _stop) = {
        let stop = watch_stops(person.stops.clone())?;
        let mut operator = Asking {
            console: ctx.console,
            person,
        };
        (
            operate::act(&connected, &request, &mut operator).await,
            stop,
        )
    };
    connected.close().await;
    finish(ctx, verb, acted?)
}

fn selection(args: &ActArgs) -> Result<Selection, Fault> {
    let by_rule = args.idle_in_transaction || args.roots;
    if args.pids.is_empty() && !by_rule {
        return Err(Fault::Usage(
            "which sessions? PIDs, --idle-in-transaction --longer-than TIME, or --roots".into(),
        ));
    }
    if args.idle_in_transaction && args.longer_than.is_none() {
        return Err(Fault::Usage(
            "--idle-in-transaction needs --longer-than: a session is idle in transaction between any two statements".into(),
        ));
    }
    let narrows = !args.user.is_empty() || !args.app.is_empty() || args.longer_than.is_some();
    if narrows && !by_rule {
        return Err(Fault::Usage(
            "--user, --app and --longer-than narrow --idle-in-transaction or --roots, not PIDs"
                .into(),
        ));
    }
    Ok(Selection {
        pids: args.pids.clone(),
        idle_in_transaction: args.idle_in_transaction,
        roots: args.roots,
        longer_than: args.longer_than.map(Millis::from),
        users: args.user.clone(),
        applications: args.app.clone(),
    })
}

fn lock(acting: &ActSettings) -> Result<TargetLock, Fault> {
    let who = format!(
        "{} since {} (process {})",
        acting.operator,
        rounds::local_now(),
        std::process::id()
    );
    TargetLock::take(&acting.state.join("locks"), &acting.target_name, &who).map_err(|holder| {
        Fault::Busy(format!(
            "somebody acts on {} already: {}",
            acting.target_name, holder.0
        ))
    })
}

fn run_name(what: &str, target: &str) -> String {
    let at = rounds::local_now().utc().format("%Y%m%dT%H%M%SZ");
    let target: String = target
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    format!("{at}-{what}-{target}")
}

/// Counts how often the person asks to stop; ends with the value.
struct Stops(tokio::task::JoinHandle<()>);

impl Drop for Stops {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn watch_stops(count: Rc<Cell<usize>>) -> Result<Stops, Fault> {
    let mut stop = Stop::new()?;
    Ok(Stops(tokio::task::spawn_local(async move {
        loop {
            stop.asked().await;
            count.set(count.get() + 1);
        }
    })))
}

/// Who is there, and how they say yes.
struct Person {
    yes: bool,
    terminal: bool,
    named_in_full: bool,
    protects: String,
    stops: Rc<Cell<usize>>,
}

impl Person {
    fn new(ctx: &Context<'_>, yes: bool, acting: &ActSettings) -> Self {
        let list = |what: &str, names: &[String]| match names {
            [] => String::new(),
            names => format!("; protected {what}: {}", names.join(", ")),
        };
        Self {
            yes,
            terminal: std::io::stdin().is_terminal()
                && std::io::stderr().is_terminal()
                && ctx.stdout_is_terminal,
            named_in_full: acting.named_in_full,
            protects: list("users", &acting.protected_users)
                + &list("applications", &acting.protected_applications),
            stops: Rc::default(),
        }
    }

    fn may_act(&self) -> bool {
        self.yes || self.terminal
    }

    /// The question itself, below what was shown.
    fn ask(&self, console: &mut Console, question: &str, name: &str) -> std::io::Result<Ask> {
        if self.yes {
            return Ok(Ask::Consent(Consent::Yes {
                named_in_full: self.named_in_full,
            }));
        }
        if !self.terminal {
            return Ok(Ask::DryRun);
        }
        console.warn(&format!("{question}{}", self.protects));
        console.warn(&format!("type {name} to do it, anything else leaves it:"));
        let mut typed = String::new();
        if std::io::stdin().read_line(&mut typed)? == 0 {
            return Ok(Ask::No);
        }
        Ok(match typed.trim() {
            "" => Ask::No,
            typed => Ask::Consent(Consent::Typed(typed.to_owned())),
        })
    }
}

/// The engine's view of the person at the console.
struct Asking<'a> {
    console: &'a mut Console,
    person: Person,
}

impl Operator for Asking<'_> {
    fn confirm(&mut self, plan: &Plan<'_>) -> std::io::Result<Ask> {
        let allowed = plan.guarded.allowed.len();
        if plan.guarded.too_many().is_some() || (allowed == 0 && !self.person.may_act()) {
            return Ok(Ask::DryRun);
        }
        if self.person.may_act() {
            let rows: Vec<CandidateRow> = plan.chosen.iter().map(row).collect();
            let table = shown::candidates(&rows, self.console.style);
            self.console
                .warn(&format!("{}\n{table}", view::identity(plan.target)));
            for (candidate, outcome) in &plan.guarded.refused {
                let why = outcome.reason().unwrap_or_default();
                self.console
                    .warn(&format!("{} is left alone: {why}", candidate.session.pid()));
            }
            for note in plan.notes {
                self.console.warn(note);
            }
        }
        if allowed == 0 {
            return Ok(Ask::No);
        }
        let verb = plan
            .guarded
            .allowed
            .first()
            .map_or("signal", |(_, signal)| signal.verb.word());
        let question = format!(
            "{verb} {} on {}:{}, database {}, as {}",
            crate::model::count(allowed, "session"),
            plan.target.host,
            plan.target.port,
            plan.target.database,
            plan.target.user
        );
        self.person.ask(self.console, &question, plan.target_name)
    }

    fn done(&mut self, done: &Done) {
        let why = done
            .outcome
            .reason()
            .map_or(String::new(), |why| format!(": {why}"));
        self.console.note(&format!(
            "{} {}: {}{why}",
            done.verb.word(),
            done.id.pid,
            done.outcome.word()
        ));
    }

    fn note(&mut self, text: &str) {
        self.console.note(text);
    }

    fn stops(&self) -> usize {
        self.person.stops.get()
    }
}

fn row(c: &Chosen) -> CandidateRow {
    let s = &c.candidate.session;
    CandidateRow {
        pid: s.pid(),
        backend_start: s.id.backend_start,
        user: s.user.clone(),
        database: s.database.clone(),
        application_name: s.application_name.clone(),
        state: s.state.clone(),
        state_age_ms: c.state_age,
        xact_start: s.xact_start,
        xact_age_ms: c.xact_age,
        xid_assigned: c.xid_assigned,
        blocks: c.blocks,
        lost: c.lost.clone(),
        instead: c.instead.clone(),
        query: s.query.clone(),
    }
}

/// Shows the result; 2 where something was refused, is still there or failed.
fn finish(ctx: &mut Context<'_>, verb: Verb, acted: Acted) -> Result<ExitCode, Fault> {
    let fault = acted.done.iter().any(|done| done.outcome.is_fault());
    let code = match (acted.refused_as_a_whole, acted.dry_run) {
        (true, _) => ExitCode::Critical,
        (false, true) => ExitCode::Ok,
        (false, false) if fault || acted.journal.is_none() && acted.stopped.is_some() => {
            ExitCode::Critical
        }
        (false, false) => ExitCode::Ok,
    };
    let data = Actions {
        action: verb,
        dry_run: acted.dry_run,
        candidates: acted.chosen.iter().map(row).collect(),
        outcomes: acted.done.iter().map(OutcomeRow::from).collect(),
        stopped: acted.stopped,
        before: acted.before,
        after: acted.after,
        journal: acted.journal.map(|path| path.display().to_string()),
        notes: acted.notes,
    };
    let report = Report::new("actions", &acted.snapshot, actions::PARTS, data);
    view::show(ctx.console, &report)?;
    Ok(code)
}

/// `pg rollback-prepared`.
pub async fn rollback(ctx: &mut Context<'_>, args: &RollbackArgs) -> Result<ExitCode, Fault> {
    let (settings, acting) = ConnectSettings::to_act(&args.connect, ctx.env)?;
    let person = Person::new(ctx, args.yes, &acting);
    let _lock = match person.may_act() {
        true => Some(lock(&acting)?),
        false => None,
    };
    let connected = rounds::connect(ctx, &settings).await?;
    let snapshot = round(&connected, Parts::ALL, settings.round).await;
    let spec = connected.spec.clone();
    // The transaction may be another database's: the first connection is closed before the second.
    connected.close().await;
    let snapshot = snapshot?;
    let found = snapshot.prepared.rows().iter().find(|p| p.gid == args.gid);
    let Some(xact) = found.cloned() else {
        return Err(Fault::Usage(format!(
            "no prepared transaction {:?} on this server",
            args.gid
        )));
    };
    let (Some(database), Some(owner)) = (xact.database.clone(), owner(&snapshot, &xact.owner))
    else {
        return Err(Fault::Usage(
            "whose it is and in which database can't be told: nothing was done".into(),
        ));
    };
    let age = xact.prepared.age_at(snapshot.taken_at);
    let question = format!(
        "roll back prepared transaction {} of {} in database {database}, prepared {age} ago on {}:{}: what it wrote is \
         lost for good. Ask the coordinator first: where it says commit, COMMIT PREPARED it is",
        xact.gid,
        xact.owner.as_deref().unwrap_or("?"),
        spec.host,
        spec.port
    );
    let consent = match person.ask(ctx.console, &question, &acting.target_name)? {
        Ask::Consent(consent) => consent,
        Ask::DryRun => {
            ctx.console.result(&format!(
                "dry run: nothing was done. {question}\nat a terminal it asks, --yes does it\n"
            ))?;
            return Ok(ExitCode::Ok);
        }
        Ask::No => return Err(Fault::Busy("not confirmed: nothing was done".into())),
    };
    let how = match &consent {
        Consent::Typed(_) => "the target's name was typed",
        Consent::Yes { .. } => "--yes",
    };
    let target = PreparedTarget {
        xact: xact.clone(),
        owner,
    };
    let approved = target
        .approve(&consent, &acting.target_name)
        .map_err(Fault::Busy)?;
    let mut journal = Journal::create(
        &acting.state.join("runs"),
        &run_name("rollback-prepared", &acting.target_name),
        rounds::local_now,
    )
    .map_err(|error| Fault::Save(error.to_string()))?;
    let write = |journal: &mut Journal, event: Event| {
        journal
            .write(event)
            .map_err(|error| Fault::Save(format!("no journal, so nothing was done: {error}")))
    };
    let evidence = journal.evidence();
    crate::bundle::write(&evidence, &snapshot)?;
    write(
        &mut journal,
        Event::RunStart {
            what: "pg rollback-prepared".into(),
            target: snapshot.target.label(),
            login: snapshot.target.user.clone(),
            operator: acting.operator.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
            evidence: evidence.display().to_string(),
        },
    )?;
    write(&mut journal, Event::Confirmed { how: how.into() })?;
    let effect = Effect::RollbackPrepared {
        gid: xact.gid.clone(),
        database: database.clone(),
    };
    write(&mut journal, Event::EffectIntent { n: 0, effect })?;
    let outcome = in_its_database(ctx, settings, &database, &approved).await;
    let result = Event::EffectResult {
        n: 0,
        outcome: outcome.clone(),
        waited_ms: 0,
    };
    write(&mut journal, result)?;
    let code = match outcome.is_fault() {
        true => ExitCode::Critical,
        false => ExitCode::Ok,
    };
    write(&mut journal, Event::RunEnd { code: code.code() })?;
    let why = outcome
        .reason()
        .map_or(String::new(), |why| format!(": {why}"));
    ctx.console.result(&format!(
        "rollback-prepared {}: {}{}\njournal: {}\n",
        view::clean(&xact.gid),
        outcome.word(),
        view::clean(&why),
        journal.path().display()
    ))?;
    Ok(code)
}

fn owner(snapshot: &Snapshot, name: &Option<String>) -> Option<u32> {
    let role = snapshot
        .roles
        .rows()
        .iter()
        .find(|r| Some(&r.name) == name.as_ref())?;
    Some(role.oid.0)
}

async fn in_its_database(
    ctx: &mut Context<'_>,
    mut settings: ConnectSettings,
    database: &str,
    approved: &crate::action::ApprovedRollback,
) -> Outcome {
    for place in &mut settings.plan.places {
        place.database = database.to_owned();
    }
    let connected: Connected = match rounds::connect(ctx, &settings).await {
        Ok(connected) => connected,
        Err(fault) => return Outcome::Failed(format!("no connection to its database: {fault}")),
    };
    let outcome = roll_back(&connected.client, approved).await;
    connected.close().await;
    outcome
}
