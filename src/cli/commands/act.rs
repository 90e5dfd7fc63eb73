//! `stanch pg cancel | terminate | rollback-prepared`: the person's wish → the engine in `operate`, and the result shown.

use std::time::Duration;

use super::Context;
use crate::action::{ApprovedRollback, Policy, PreparedTarget, roll_back};
use crate::analysis::Report;
use crate::analysis::actions::{self, Actions, CandidateRow, OutcomeRow};
use crate::cli::args::effect::{ActArgs, RollbackArgs};
use crate::cli::fault::Fault;
use crate::cli::person::Person;
use crate::cli::rounds;
use crate::cli::settings::{ActSettings, ConnectSettings};
use crate::journal::{Effect, Event, Journal, TargetLock};
use crate::model::{Done, ExitCode, Millis, Outcome, Verb};
use crate::operate::{self, ActRequest, Acted, Ask, Chosen, Operator, Plan, Selection};
use crate::source::postgres::{ConnSpec, Connected, Parts, RoundOptions, round};
use crate::sql;
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
    let connected = rounds::connect(ctx, &settings).await?;
    let done = run_on(
        ctx,
        &connected,
        verb,
        args,
        grace,
        selection,
        acting,
        settings.round,
    )
    .await;
    connected.close().await;
    done
}

async fn run_on(
    ctx: &mut Context<'_>,
    connected: &Connected,
    verb: Verb,
    args: &ActArgs,
    grace: Option<Duration>,
    selection: Selection,
    acting: ActSettings,
    round: RoundOptions,
) -> Result<ExitCode, Fault> {
    // Of the server that answered, not of the first in a list.
    let target_name = acting.name_of(&connected.spec);
    let person = Person::new(ctx, args.yes, &acting);
    // For as long as it takes; a dry run changes nothing and needs no lock.
    let _lock = match person.may_act() {
        true => held(ctx, lock(&acting, connected).await, args.beside_run)?,
        false => None,
    };
    let request = ActRequest {
        verb,
        selection,
        policy: policy(args, &acting),
        target_name: target_name.clone(),
        operator_name: acting.operator.clone(),
        wait: args.wait,
        grace,
        batch: args.batch,
        pause: args.pause,
        until: args.until.clone(),
        round,
        runs: acting.state.join("runs"),
        run_name: run_name(verb.word(), &target_name),
        first_effect: 0,
        give_up: None,
        already: Vec::new(),
        clock: rounds::local_now,
    };
    let mut operator = Asking {
        console: ctx.console,
        person,
    };
    let acted = operate::act(connected, &request, &mut operator, None).await?;
    finish(ctx, verb, acted)
}

fn policy(args: &ActArgs, acting: &ActSettings) -> Policy {
    Policy {
        allow_superuser: args.allow.allow_superuser,
        allow_syncrep: args.allow.allow_syncrep,
        all_databases: args.allow.all_databases,
        protected_users: acting.protected_users.clone(),
        protected_applications: acting.protected_applications.clone(),
        max: args.max,
    }
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
        active: false,
        transaction: false,
        roots: args.roots,
        longer_than: args.longer_than.map(Millis::from),
        users: args.user.clone(),
        // As they are shown.
        applications: args
            .app
            .iter()
            .map(|name| sql::redacted(name).into_owned())
            .collect(),
        only_pids: Vec::new(),
    })
}

/// One's own run may hold the server: its book has asked for this very command.
fn held(
    ctx: &mut Context<'_>,
    lock: Result<TargetLock, Fault>,
    beside_run: bool,
) -> Result<Option<TargetLock>, Fault> {
    match lock {
        Err(Fault::Busy(who)) if beside_run => {
            ctx.console.warn(&format!("beside it: {who}"));
            Ok(None)
        }
        lock => lock.map(Some),
    }
}

/// One operator for each server, by whatever name and database it was reached.
pub(super) async fn lock(acting: &ActSettings, connected: &Connected) -> Result<TargetLock, Fault> {
    const IDENTITY: &str =
        "SELECT system_identifier::pg_catalog.text FROM pg_catalog.pg_control_system()";
    let rows = connected.client.query_typed(IDENTITY, &[]).await;
    let identity = rows
        .ok()
        .and_then(|rows| rows.first().map(|row| row.get::<_, String>(0)));
    let spec = &connected.spec;
    let name = identity.unwrap_or_else(|| {
        format!(
            "{}_{}",
            spec.hostaddr.as_deref().unwrap_or(&spec.host),
            spec.port
        )
    });
    let who = format!(
        "{} since {} (process {})",
        acting.operator,
        rounds::local_now(),
        std::process::id()
    );
    TargetLock::take(&acting.state.join("locks"), &name, &who)
        .map_err(|holder| Fault::Busy(holder.0))
}

pub(super) fn run_name(what: &str, target: &str) -> String {
    let at = rounds::local_now().utc().format("%Y%m%dT%H%M%SZ");
    let target: String = target
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    format!("{at}-{what}-{target}")
}

/// The engine's view of the person at the console.
pub(super) struct Asking<'a> {
    pub console: &'a mut Console,
    pub person: Person,
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
            for (why, pids) in left_alone(plan) {
                self.console
                    .warn(&format!("left alone: {}: {why}", pids.join(", ")));
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
        let answer = self.person.ask(self.console, &question, plan.target_name)?;
        // Until here Ctrl-C ends the program, and nothing was done.
        self.person.stops().watch()?;
        Ok(answer)
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
        self.person.stops().count()
    }
}

/// The refused by what speaks against them, in the order of the plan.
fn left_alone<'p>(plan: &'p Plan<'_>) -> Vec<(&'p str, Vec<String>)> {
    let mut all: Vec<(&str, Vec<String>)> = Vec::new();
    for (candidate, outcome) in &plan.guarded.refused {
        let why = outcome.reason().unwrap_or_default();
        let pid = candidate.session.pid().to_string();
        match all.iter_mut().find(|(known, _)| *known == why) {
            Some((_, pids)) => pids.push(pid),
            None => all.push((why, vec![pid])),
        }
    }
    all
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

/// Shows the result.
fn finish(ctx: &mut Context<'_>, verb: Verb, acted: Acted) -> Result<ExitCode, Fault> {
    let code = acted.exit_code();
    let data = Actions {
        action: verb.word(),
        dry_run: acted.dry_run,
        candidates: acted.chosen.iter().map(row).collect(),
        outcomes: acted.done.iter().map(OutcomeRow::from).collect(),
        stopped: acted.stopped.map(|halt| halt.text().to_owned()),
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
    let mut person = Person::new(ctx, args.yes, &acting);
    let connected = rounds::connect(ctx, &settings).await?;
    let lock = match person.may_act() {
        true => {
            let lock = lock(&acting, &connected).await;
            held(ctx, lock, args.beside_run)
        }
        false => Ok(None),
    };
    let snapshot = round(&connected, Parts::ALL, settings.round).await;
    let spec = connected.spec.clone();
    // The transaction may be another database's: the first connection is closed before the second.
    connected.close().await;
    let (_lock, snapshot) = (lock?, snapshot?);
    let gid = view::clean(&args.gid);
    let all = snapshot.prepared.get().ok_or_else(|| {
        let why = snapshot.prepared.why().unwrap_or_default();
        Fault::Save(format!("the prepared transactions can't be read: {why}"))
    })?;
    let Some(xact) = all.iter().find(|p| p.gid == args.gid).cloned() else {
        return Err(Fault::Busy(format!(
            "no prepared transaction {gid} on this server"
        )));
    };
    let role = snapshot
        .roles
        .rows()
        .iter()
        .find(|r| Some(&r.name) == xact.owner.as_ref());
    let (Some(database), Some(role)) = (xact.database.clone(), role) else {
        return Err(Fault::Busy(
            "whose it is and in which database can't be told: nothing was done".into(),
        ));
    };
    let target = PreparedTarget {
        xact: xact.clone(),
        owner: role.oid.0,
        superuser: Some(role.superuser),
    };
    let policy = Policy {
        allow_superuser: args.allow_superuser,
        protected_users: acting.protected_users.clone(),
        ..Policy::default()
    };
    let target_name = acting.name_of(&spec);
    let age = xact.prepared.age_at(snapshot.taken_at);
    let question = format!(
        "roll back prepared transaction {gid} of {} in database {}, prepared {age} ago, on {target_name}: what it wrote is \
         lost for good. Ask its coordinator first: where that says commit, COMMIT PREPARED it is",
        view::clean(&role.name),
        view::clean(&database),
    );
    let shown = |outcome: Option<&Outcome>, stopped: Option<String>, journal: Option<String>| {
        let data = Actions::of_prepared(&xact, outcome, stopped, journal, &question, &snapshot);
        Report::new("actions", &snapshot, actions::PARTS, data)
    };
    let consent = match person.ask(ctx.console, &question, &target_name)? {
        Ask::Consent(consent) => consent,
        Ask::DryRun => {
            view::show(ctx.console, &shown(None, None, None))?;
            return Ok(ExitCode::Ok);
        }
        Ask::No => {
            let why = Some("not confirmed: nothing was done".to_owned());
            view::show(ctx.console, &shown(None, why, None))?;
            return Ok(ExitCode::Stopped);
        }
    };
    let how = consent.how();
    let approved = match target.approve(&policy, &consent, &target_name) {
        Ok(approved) => approved,
        Err(why) => {
            let refused = Outcome::Refused(why);
            view::show(ctx.console, &shown(Some(&refused), None, None))?;
            return Ok(ExitCode::Critical);
        }
    };
    let mut journal = Journal::create(
        &acting.state.join("runs"),
        &run_name("rollback-prepared", &target_name),
        rounds::local_now,
    )
    .map_err(no_journal)?;
    let evidence = journal.evidence();
    crate::bundle::write(&evidence, &snapshot)?;
    for event in [
        Event::RunStart {
            what: "pg rollback-prepared".into(),
            target: snapshot.target.label(),
            login: snapshot.target.user.clone(),
            operator: acting.operator.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
            evidence: evidence.display().to_string(),
        },
        Event::Confirmed { how: how.into() },
        Event::EffectIntent {
            n: 0,
            effect: Effect::RollbackPrepared {
                gid: xact.gid.clone(),
                database: database.clone(),
            },
        },
    ] {
        journal.write(event).map_err(no_journal)?;
    }
    let outcome = in_its_database(ctx, settings, spec, &database, &approved).await;
    let code = match outcome.is_fault() {
        true => ExitCode::Critical,
        false => ExitCode::Ok,
    };
    let result = Event::EffectResult {
        n: 0,
        outcome: outcome.clone(),
        waited_ms: 0,
    };
    let end = Event::RunEnd { code: code.code() };
    // It is done: what came of it is told whether it could be written or not.
    let written = journal.write(result).and_then(|()| journal.write(end));
    let path = journal.path().display().to_string();
    view::show(ctx.console, &shown(Some(&outcome), None, Some(path)))?;
    if let Err(error) = written {
        ctx.console
            .warn(&format!("the journal can't be written: {error}"));
    }
    Ok(code)
}

fn no_journal(error: crate::journal::JournalError) -> Fault {
    Fault::Save(format!("no journal, so nothing was done: {error}"))
}

/// On the very place and login that were looked at before, in the transaction's own database.
async fn in_its_database(
    ctx: &mut Context<'_>,
    mut settings: ConnectSettings,
    spec: ConnSpec,
    database: &str,
    approved: &ApprovedRollback,
) -> Outcome {
    settings.rescue = None;
    settings.plan = ConnSpec {
        database: database.to_owned(),
        ..spec
    }
    .into();
    let connected = match rounds::connect(ctx, &settings).await {
        Ok(connected) => connected,
        Err(fault) => return Outcome::Failed(format!("no connection to its database: {fault}")),
    };
    let outcome = roll_back(&connected.client, approved).await;
    connected.close().await;
    outcome
}
