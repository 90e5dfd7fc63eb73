//! `stanch redis stampede`

use std::cell::Cell;
use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt as _;

use super::changed::{journal, put_back};
use super::{checked, clock, show};
use crate::action::{OptIn, SettingChange};
use crate::analysis::redis::RedisReport;
use crate::analysis::redis::stampede::{self, Around, Stampede};
use crate::analysis::triage;
use crate::cli::args::redis::StampedeArgs;
use crate::cli::commands::Context;
use crate::cli::fault::Fault;
use crate::cli::redis::place::{self as redis_place, Looker};
use crate::cli::redis::saved as redis_saved;
use crate::cli::rounds;
use crate::cli::settings::{self, ActSettings, ConnectSettings};
use crate::keys::{GroupSeen, Grouping};
use crate::model::{ExitCode, Misses, Outcome, Part, Storming};
use crate::operate::change_settings;
use crate::source::postgres::{Parts, round};
use crate::source::redis::{
    self, EVENTS_SETTING, Fleet, Lfu, Limits, Refused, Seen, SoftFields, StampedeOptions,
    Watch as _, event_flags, listen_for_misses, look_into, probe_lfu, stampede_pass, tells_misses,
    tells_writes, with_misses,
};

pub async fn run(ctx: &mut Context<'_>, args: &StampedeArgs) -> Result<ExitCode, Fault> {
    let stopped = Cell::new(false);
    let read = async |ctx: &mut Context<'_>| read(ctx, args, &stopped).await;
    let report = redis_saved::report(ctx, "stampede", &args.keep, read).await?;
    show(ctx, args.check && !stopped.get(), &report)?;
    if stopped.get() {
        ctx.console
            .note("stopped by you: misses are those until then");
        return Ok(ExitCode::Stopped);
    }
    checked(ctx, args.check, "stampede", report.exit_code(), &report)
}

async fn read(
    ctx: &mut Context<'_>,
    args: &StampedeArgs,
    stopped: &Cell<bool>,
) -> Result<RedisReport<Stampede>, Fault> {
    let patterns = redis_place::patterns(ctx.env)?;
    let mut fleet = open(ctx, args).await?;
    let place = fleet.target.label();
    let taken_at = clock(ctx, &mut fleet).await;
    let counters = probe_lfu(&mut fleet)
        .await
        .map_err(|lost| lost.at(&place))?
        == Lfu::Counts;
    let looker = Looker::new(ctx, "reading counters and expiry times", "keys")?;
    let options = StampedeOptions {
        pattern: args.walk.pattern.as_ref().map(|pattern| pattern.as_bytes()),
        patterns,
        budget: redis_place::budget(&args.walk),
        counters,
    };
    let mut pass = stampede_pass(&mut fleet, taken_at, options, &looker).await;
    if args.peek {
        // The walk has taken its time.
        let now = clock(ctx, &mut fleet).await;
        let fields = SoftFields::new(&args.soft_field, now);
        let mut hot: Vec<&mut Seen> = pass
            .groups
            .iter_mut()
            .filter(|seen| seen.seen.spread.with_ttl > 0)
            .collect();
        hot.sort_by_key(|seen| std::cmp::Reverse((seen.seen.hottest, seen.seen.spread.with_ttl)));
        hot.truncate(args.top);
        look_into(&mut fleet, &mut hot, &fields, &mut pass.coverage).await;
    }
    if args.walk.pattern.is_some() {
        pass.coverage.note(
            "locks",
            "skipped",
            "--match leaves out lock keys that it doesn't match",
        );
    }
    drop(looker);
    let heard = misses(ctx, args, &mut fleet, &mut pass.grouping).await?;
    let mut misses = heard.groups;
    let statements = statements(ctx, args).await?;
    let mut groups: Vec<GroupSeen> = pass
        .groups
        .into_iter()
        .map(|seen| GroupSeen {
            misses: misses.remove(&seen.seen.group),
            ..seen.seen
        })
        .collect();
    // Keys that are missed and weren't there to be seen.
    groups.extend(misses.into_iter().map(|(group, misses)| GroupSeen {
        group,
        spread: crate::keys::Spread::new(1),
        hottest: None,
        soft: crate::model::Soft::default(),
        misses: Some(misses),
    }));
    let around = Around {
        rebuild: args.rebuild.map(Into::into),
        misses_by: heard.by,
        statements,
        top: args.top,
    };
    stopped.set(heard.stopped);
    let (target, coverage) = (fleet.target, pass.coverage);
    Ok(stampede::report(taken_at, target, coverage, groups, around))
}

async fn open(ctx: &mut Context<'_>, args: &StampedeArgs) -> Result<Fleet, Fault> {
    let name = args.connect.dbname.as_deref();
    let target = match name {
        Some(name)
            if settings::redis_targets(ctx.env)?
                .iter()
                .any(|known| known == name) =>
        {
            Some(name)
        }
        _ => None,
    };
    redis_place::warn_of_password(ctx, &args.redis);
    let address =
        redis_place::address(&args.redis, target, ctx.env)?.ok_or_else(redis_place::which)?;
    let limits = Limits {
        connect: args.connect.connect_timeout.unwrap_or(redis_place::CONNECT),
        answer: args.connect.deadline,
    };
    Ok(redis::open(&address, target, limits).await?)
}

/// What was heard of misses, by group.
#[derive(Default)]
struct Heard {
    groups: HashMap<String, Misses>,
    by: Option<&'static str>,
    /// The person ended the listening.
    stopped: bool,
}

/// Listens where the server tells misses already, or where it is asked to by name.
async fn misses(
    ctx: &mut Context<'_>,
    args: &StampedeArgs,
    fleet: &mut Fleet,
    grouping: &mut Grouping,
) -> Result<Heard, Fault> {
    let place = fleet.target.label();
    let mut off = Vec::new();
    let mut writes = true;
    for node in &mut fleet.nodes {
        match event_flags(node).await {
            Ok(flags) if tells_misses(&flags) => writes &= tells_writes(&flags),
            Ok(flags) => off.push(SettingChange {
                node: node.name.clone(),
                run_id: None,
                name: EVENTS_SETTING.into(),
                after: with_misses(&flags),
                before: flags,
            }),
            Err(lost @ Refused::Lost(_)) => return Err(lost.at(&place).into()),
            // Whether they are on can't be told: whoever wants to know says so.
            Err(refused) if args.enable_keymiss => return Err(refused.at(&place).into()),
            Err(_) => return Ok(Heard::default()),
        }
    }
    if off.is_empty() {
        let looker = Looker::new(ctx, "listening", "misses")?;
        let heard = listen_for_misses(fleet, grouping, args.listen, writes, &looker).await;
        return Ok(Heard {
            groups: heard.map_err(|refused| refused.at(&place))?,
            by: Some("events that were on"),
            stopped: looker.is_stopped(),
        });
    }
    if !args.enable_keymiss {
        return Ok(Heard::default());
    }
    let heard = with_events(ctx, args, fleet, grouping, off).await?;
    Ok(heard.map_err(|refused| refused.at(&place))?)
}

/// Switches the events on, listens, and puts the setting back whatever happened meanwhile.
async fn with_events(
    ctx: &mut Context<'_>,
    args: &StampedeArgs,
    fleet: &mut Fleet,
    grouping: &mut Grouping,
    changes: Vec<SettingChange>,
) -> Result<Result<Heard, Refused>, Fault> {
    let acting = ActSettings::of(ctx.env)?;
    let mut journal = journal(&acting, fleet)?;
    let no_journal = |error: crate::journal::JournalError| Fault::Save(error.to_string());
    // From here on a Ctrl-C ends the listening, not the program.
    let looker = Looker::new(ctx, "listening", "misses")?;
    let made = change_settings(fleet, &mut journal, changes, OptIn::EnableKeymiss, 0)
        .await
        .map_err(no_journal)?;
    let failed = made.iter().find(|(_, outcome)| *outcome != Outcome::Set);
    let heard = match failed {
        None => listen_for_misses(fleet, grouping, args.listen, true, &looker).await,
        Some((change, outcome)) => Err(Refused::Other(format!(
            "{} isn't set on {}: {}",
            change.name,
            change.node,
            outcome.reason().unwrap_or_else(|| outcome.word())
        ))),
    };
    put_back(ctx, fleet, &mut journal, &made).await?;
    // Only now may a Ctrl-C end the program again.
    let stopped = looker.is_stopped();
    drop(looker);
    Ok(heard.map(|groups| Heard {
        groups,
        by: Some("--enable-keymiss"),
        stopped,
    }))
}

/// What PostgreSQL runs many times at once; only where it is named.
async fn statements(
    ctx: &mut Context<'_>,
    args: &StampedeArgs,
) -> Result<Option<Vec<Storming>>, Fault> {
    if args.connect.dbname.is_none() && args.connect.host.is_none() {
        return Ok(None);
    }
    let settings = ConnectSettings::resolve(&args.connect, ctx.env)?;
    let limits = settings::thresholds(ctx.env, &[])?;
    let connected = rounds::connect(ctx, &settings).await?;
    let snapshot = round(
        &connected,
        Parts::of(&[Part::Activity, Part::Login, Part::Server]),
        settings.round,
    )
    .await;
    connected.close().await;
    Ok(Some(triage::running_together(
        &snapshot?,
        limits.storm_age,
        limits.storm_sessions,
    )))
}
