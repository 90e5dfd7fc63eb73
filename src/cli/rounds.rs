//! Snapshots for a report: from a file, or round after round over one connection.

use std::path::Path;
use std::time::Duration;

use chrono::Utc;
use serde::Serialize;
use tokio::time::{MissedTickBehavior, interval};

use super::args::{FrameArgs, SnapshotArgs};
use super::commands::Context;
use super::fault::Fault;
use super::settings::{self, ConnectSettings};
use super::stop::Stop;
use super::terminal;
use crate::analysis::glance;
use crate::analysis::{Report, triage};
use crate::bundle;
use crate::model::{ExitCode, Pooler, RedactionLevel, Section, Snapshot, Target, Timestamp};
use crate::source::pgbouncer;
use crate::source::postgres::{
    self, ConnectError, ConnectFault, Connected, Knock, Parts, RoundError, round,
};
use crate::source::saved;
use crate::view::{self, Format, Table};

/// Faster than this is no help to anybody and a load to the server.
const FASTEST: Duration = Duration::from_millis(200);

/// How a report is made and what its exit code is.
pub struct Job<'j, D> {
    /// As `--check` calls it.
    pub name: &'static str,
    pub parts: &'static [crate::model::Part],
    /// Limits of the command line, for `--check`.
    pub thresholds: &'j [String],
    pub make: &'j dyn Fn(&Snapshot) -> Report<D>,
    pub code: fn(&Report<D>) -> ExitCode,
    /// What `--check` judges by.
    pub check: Check<D>,
    /// Want of a slot is itself an answer (triage), not only a failure.
    pub refusal_is_answer: bool,
    /// What was seen of the Redis in front: goes into each snapshot.
    pub redis: Option<Section<serde_json::Value>>,
    /// The pooler in front is looked at too, where the target names one.
    pub pooler: bool,
}

/// What `--check` judges by.
#[derive(Clone, Copy)]
pub enum Check<D> {
    /// The findings of triage in these areas.
    Findings(&'static [&'static str]),
    /// The report's own verdicts.
    Own(fn(&Report<D>) -> ExitCode),
}

impl<D> Check<D> {
    /// A server that is full is a finding of this report.
    fn judges_slots(&self) -> bool {
        matches!(self, Self::Findings(areas) if areas.contains(&"conn."))
    }
}

/// Listing commands: 0 when everything they need was read.
pub fn listing_code<D>(report: &Report<D>) -> ExitCode {
    if report.head.coverage.is_complete() {
        ExitCode::Ok
    } else {
        ExitCode::Unknown
    }
}

/// One report, or one each `every`. With `--check` a failure is a line of its own too: monitoring reads standard output.
pub async fn run<D: Serialize + Table>(
    ctx: &mut Context<'_>,
    args: &SnapshotArgs,
    every: Option<Duration>,
    job: Job<'_, D>,
) -> Result<ExitCode, Fault> {
    let name = job.name;
    let done = run_job(ctx, args, every, job).await;
    let Err(fault) = &done else { return done };
    if !args.check || fault.is_broken_pipe() {
        return done;
    }
    // Whatever it is, monitoring has no other code for it.
    if ctx.console.format == Format::Table {
        ctx.console
            .result(&view::check::unknown(name, &fault.to_string()))?;
    }
    ctx.console
        .error(&fault.to_string(), fault.hint().as_deref());
    Ok(ExitCode::Unknown)
}

async fn run_job<D: Serialize + Table>(
    ctx: &mut Context<'_>,
    args: &SnapshotArgs,
    every: Option<Duration>,
    job: Job<'_, D>,
) -> Result<ExitCode, Fault> {
    if let Some(snapshot) = replayed(ctx, &args.frame)? {
        return show(ctx, &snapshot, args, &job);
    }
    if every.is_some_and(|every| every < FASTEST) {
        return Err(Fault::Usage(format!(
            "--every: at least {} ms",
            FASTEST.as_millis()
        )));
    }
    let settings = resolve(ctx, &args.frame)?;
    let connected = match connect(ctx, &settings).await {
        Ok(connected) => connected,
        Err(Fault::Connect(error)) if matches!(error.fault, ConnectFault::NoSlot(_)) => {
            let snapshot = Snapshot {
                redis: job.redis.clone(),
                pooler: look_at_pooler(&settings).await,
                ..refused(&error, &settings)
            };
            if job.refusal_is_answer || (args.check && job.check.judges_slots()) {
                ctx.console.error(&error.to_string(), Some(&error.hint()));
                return answer(ctx, &snapshot, args, &job);
            }
            // That there was no slot is worth keeping too.
            if let Err(fault) = save(args.frame.save.as_deref(), &snapshot) {
                ctx.console.error(&fault.to_string(), None);
            }
            return Err(down(ctx, &settings, job.name, Fault::Connect(error)));
        }
        Err(Fault::Connect(error)) if matches!(job.redis, Some(Section::Collected(_))) => {
            // Redis was seen: that the server is away is no reason to keep it back. The code is that of the connection.
            if ctx.console.format != Format::Prometheus {
                let snapshot = Snapshot {
                    redis: job.redis.clone(),
                    pooler: look_at_pooler(&settings).await,
                    ..refused(&error, &settings)
                };
                answer(ctx, &snapshot, args, &job)?;
            }
            return Err(down(ctx, &settings, job.name, Fault::Connect(error)));
        }
        Err(fault) => return Err(down(ctx, &settings, job.name, fault)),
    };
    let done = rounds(ctx, &connected, &settings, args, every, &job).await;
    connected.close().await;
    done
}

/// The frame that is to be replayed, where one is.
pub fn replayed(ctx: &mut Context<'_>, args: &FrameArgs) -> Result<Option<Snapshot>, Fault> {
    let Some(path) = &args.from else {
        return Ok(None);
    };
    let loaded = saved::load(path, args.at.at.unwrap_or_default(), glance::weight)?;
    tell_of(ctx, path, &loaded);
    Ok(Some(loaded.snapshot))
}

/// Where and how it is read live.
pub fn resolve(ctx: &mut Context<'_>, args: &FrameArgs) -> Result<ConnectSettings, Fault> {
    let mut settings = ConnectSettings::resolve(&args.connect, ctx.env)?;
    if args.unredacted {
        settings.round.redaction = RedactionLevel::None;
        ctx.console.warn(
            "--unredacted: what is shown and saved has values in statements and names as they are",
        );
    }
    Ok(settings)
}

/// A round that is kept, with the pooler in front.
///
/// # Errors
/// When the round fails.
pub async fn round_to_keep(
    connected: &Connected,
    settings: &ConnectSettings,
) -> Result<Snapshot, RoundError> {
    let (read, pooler) = tokio::join!(
        round(connected, Parts::TO_KEEP, settings.round),
        look_at_pooler(settings)
    );
    Ok(Snapshot { pooler, ..read? })
}

/// The pooler in front of the server, where the target names its console; as it may be seen and saved.
pub async fn look_at_pooler(settings: &ConnectSettings) -> Option<Section<Pooler>> {
    Some(pgbouncer::look(settings.pooler.as_ref()?, settings.round.redaction).await)
}

/// Tells a person at a terminal that this is a replay, and of when: on a screen it would look like now.
pub fn tell_of(ctx: &mut Context<'_>, path: &Path, loaded: &saved::Loaded) {
    if ctx.stdout_is_terminal {
        let at = loaded.snapshot.taken_at.utc();
        let frame = match loaded.of {
            1 => String::new(),
            of => format!(", frame {} of {of} (--at TIME for another)", loaded.number),
        };
        ctx.console.note(&format!(
            "replayed from {}{frame}: as it was at {}",
            path.display(),
            at.format("%Y-%m-%d %H:%M:%S UTC")
        ));
    }
    if let Some(why) = &loaded.why_partial {
        ctx.console.warn(&format!("a partial bundle: {why}"));
    }
    for damage in &loaded.damaged {
        ctx.console.warn(&format!("{}: {damage}", path.display()));
    }
    if loaded.snapshot.redaction.level == RedactionLevel::None {
        ctx.console
            .warn("it isn't redacted: values in statements and names are as they were");
    }
}

/// One round, or one each `every` until interrupted.
async fn rounds<D: Serialize + Table>(
    ctx: &mut Context<'_>,
    connected: &Connected,
    settings: &ConnectSettings,
    args: &SnapshotArgs,
    every: Option<Duration>,
    job: &Job<'_, D>,
) -> Result<ExitCode, Fault> {
    let parts = match &args.frame.save {
        Some(_) => Parts::TO_KEEP,
        None if args.check => Parts::ALL,
        None => Parts::of(job.parts),
    };
    let Some(every) = every else {
        return one(ctx, connected, settings, parts, args, job).await;
    };
    ctx.console.compact = true;
    ctx.console.redraw = ctx.stdout_is_terminal;
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = ExitCode::Ok;
    let mut stop = Stop::new()?;
    loop {
        tokio::select! {
            // Ending a repeat is how it ends: the code is that of the last round.
            () = stop.asked() => return Ok(last),
            _ = ticks.tick() => {}
        }
        if ctx.stdout_is_terminal {
            (ctx.console.style.width, ctx.console.style.height) = terminal::size();
        }
        tokio::select! {
            () = stop.asked() => return Ok(last),
            round = one(ctx, connected, settings, parts, args, job) => match round {
                Ok(code) => last = code,
                // The slot is kept: the next round may be answered.
                Err(Fault::Round(error)) if !error.connection_lost => {
                    last = ExitCode::Unknown;
                    ctx.console.error(&error.to_string(), None);
                }
                Err(fault) => return Err(fault),
            },
        }
    }
}

async fn one<D: Serialize + Table>(
    ctx: &mut Context<'_>,
    connected: &Connected,
    settings: &ConnectSettings,
    parts: Parts,
    args: &SnapshotArgs,
    job: &Job<'_, D>,
) -> Result<ExitCode, Fault> {
    let looks = job.pooler || args.check || args.frame.save.is_some();
    let (pooler, snapshot) = tokio::join!(
        async {
            match looks {
                true => look_at_pooler(settings).await,
                false => None,
            }
        },
        round(connected, parts, settings.round)
    );
    let snapshot = Snapshot {
        redis: job.redis.clone(),
        pooler,
        ..snapshot?
    };
    answer(ctx, &snapshot, args, job)
}

fn answer<D: Serialize + Table>(
    ctx: &mut Context<'_>,
    snapshot: &Snapshot,
    args: &SnapshotArgs,
    job: &Job<'_, D>,
) -> Result<ExitCode, Fault> {
    // What can't be saved is shown all the same, and the fault is told after it.
    let saved = save(args.frame.save.as_deref(), snapshot);
    let code = show(ctx, snapshot, args, job)?;
    saved.map(|()| code)
}

fn show<D: Serialize + Table>(
    ctx: &mut Context<'_>,
    snapshot: &Snapshot,
    args: &SnapshotArgs,
    job: &Job<'_, D>,
) -> Result<ExitCode, Fault> {
    let report = (job.make)(snapshot);
    if ctx.console.list.is_some() {
        view::lists(ctx.console, &report.data.sheets())?;
    }
    if !args.check {
        view::show(ctx.console, &report)?;
        return Ok((job.code)(&report));
    }
    let thresholds = settings::thresholds(ctx.env, job.thresholds)?;
    let judged = triage::report(snapshot, &thresholds);
    let (code, findings) = match &job.check {
        Check::Own(code) => (code(&report), Vec::new()),
        Check::Findings(areas) => {
            let findings = judged.data.of_areas(areas);
            let code = triage::code(&findings, &report.head.coverage);
            let blind = judged.data.unseen_pooler(areas);
            (
                if blind && code == ExitCode::Ok {
                    ExitCode::Unknown
                } else {
                    code
                },
                findings,
            )
        }
    };
    if ctx.console.format == Format::Table {
        let line = view::check::line(&report, code, &findings, &thresholds);
        ctx.console.result(&line)?;
    } else {
        view::show(ctx.console, &report)?;
    }
    Ok(code)
}

/// That there is no connection is itself a number for Prometheus.
fn down(ctx: &mut Context<'_>, settings: &ConnectSettings, report: &str, fault: Fault) -> Fault {
    if ctx.console.format != Format::Prometheus {
        return fault;
    }
    let refused = match &fault {
        Fault::Connect(error) => match error.fault {
            ConnectFault::NoSlot(limit) => Some(limit),
            _ => None,
        },
        _ => None,
    };
    match view::down(ctx.console, &target(settings), report, refused) {
        Ok(()) => fault,
        Err(error) => error.into(),
    }
}

/// `--save`
pub fn save(file: Option<&Path>, snapshot: &Snapshot) -> Result<(), Fault> {
    let Some(file) = file else { return Ok(()) };
    bundle::write(file, snapshot)
        .map_err(|e| Fault::Save(format!("{}: not saved: {e}", file.display())))
}

/// No slot for anyone: that is known, and all that is.
fn refused(error: &ConnectError, settings: &ConnectSettings) -> Snapshot {
    Snapshot::without_connection(
        local_now(),
        target(settings),
        error.refusals.clone(),
        bundle::no_redaction(settings.round.redaction),
    )
}

/// What is known where every slot is taken; `None`: there is no connection for another reason.
pub fn without_slot(error: &ConnectError, settings: &ConnectSettings) -> Option<Snapshot> {
    matches!(error.fault, ConnectFault::NoSlot(_)).then(|| refused(error, settings))
}

/// Where it was tried.
pub fn target(settings: &ConnectSettings) -> Target {
    let spec = settings.plan.first();
    Target {
        name: spec.name.clone(),
        host: spec.host.clone(),
        port: spec.port,
        conninfo: settings.plan.conninfo(spec),
        database: spec.database.clone(),
        user: spec.user.clone(),
        server_version: None,
        role: None,
        via_pooler: None,
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "without a connection there is no server's clock to be had"
)]
pub fn local_now() -> Timestamp {
    Timestamp::new(Utc::now())
}

/// Opens the one connection of this run, and tells what it takes.
pub async fn connect(
    ctx: &mut Context<'_>,
    settings: &ConnectSettings,
) -> Result<Connected, Fault> {
    for warning in &settings.warnings {
        ctx.console.warn(warning);
    }
    let console = &mut *ctx.console;
    let mut tell = |knock: Knock| match knock {
        Knock::TryingRescue(why) => {
            console.note(&format!("{why}: trying the target's rescue login"))
        }
        Knock::RescueFailed(why) => console.note(&format!("the rescue login doesn't work: {why}")),
        Knock::Waiting(why, rest) => console.note(&format!(
            "{why}: knocking for {} (--wait-slot)",
            crate::model::Millis::from(rest)
        )),
        Knock::GotIn(knocks) => console.note(&format!("a slot freed: in after {knocks} knocks")),
    };
    let (plan, rescue) = (&settings.plan, settings.rescue.as_ref());
    let done = postgres::get_in(plan, rescue, settings.knock, &mut tell).await;
    let Err(ConnectError {
        fault: ConnectFault::PasswordMissing,
        place,
        ..
    }) = &done
    else {
        return Ok(done?);
    };
    // As psql does: only where the server wants one.
    let Some(password) = settings
        .may_ask
        .then(|| terminal::ask_password(&place.user))
        .flatten()
    else {
        return Ok(done?);
    };
    let mut plan = plan.clone();
    plan.give_password(&password);
    Ok(postgres::get_in(&plan, rescue, settings.knock, &mut tell).await?)
}
