//! `stanch redis hotkeys`

use std::os::unix::ffi::OsStrExt as _;

use super::{clock, listing_code, server_count, show};
use crate::analysis::redis::RedisReport;
use crate::analysis::redis::hotkeys::{self, Circumstances, Hotkeys};
use crate::analysis::redis_command;
use crate::cli::args::redis::HotkeysArgs;
use crate::cli::commands::Context;
use crate::cli::fault::Fault;
use crate::cli::redis::place::{self as redis_place, Looker};
use crate::cli::redis::saved as redis_saved;
use crate::model::{ExitCode, Millis, RedisCoverage, Timestamp};
use crate::source::redis::{
    Fleet, HotOptions, HotPass, Lfu, MonitorLimits, lfu_pass, monitor_pass, probe_lfu,
    ranked_by_servers,
};

pub async fn run(ctx: &mut Context<'_>, args: &HotkeysArgs) -> Result<ExitCode, Fault> {
    let read = async |ctx: &mut Context<'_>| read(ctx, args).await;
    let report = redis_saved::report(ctx, "hotkeys", &args.keep, read).await?;
    show(ctx, false, &report)?;
    Ok(listing_code(&report))
}

async fn read(ctx: &mut Context<'_>, args: &HotkeysArgs) -> Result<RedisReport<Hotkeys>, Fault> {
    let patterns = redis_place::patterns(ctx.env)?;
    let mut fleet = redis_place::open(ctx, &args.place).await?;
    let taken_at = clock(ctx, &mut fleet).await;
    let options = HotOptions {
        top: args.top,
        attributes: args.attributes,
        pattern: args.walk.pattern.as_ref().map(|pattern| pattern.as_bytes()),
        patterns,
        budget: redis_place::budget(&args.walk),
    };
    let place = fleet.target.label();
    Ok(if args.monitor {
        let limits = MonitorLimits {
            lines: args.monitor_lines as usize,
            time: args.monitor_for,
        };
        let looker = Looker::new(ctx, "listening", "commands")?;
        let pass = monitor_pass(&mut fleet, options, limits, &looker).await;
        ranked(fleet, pass.map_err(|refused| refused.at(&place))?, taken_at)
    } else if args.server_hotkeys {
        let pass = server_count::asked_for(ctx, args, &mut fleet, options).await?;
        ranked(fleet, pass.map_err(|refused| refused.at(&place))?, taken_at)
    } else if let Some((method, counts)) = server_count::there(&mut fleet)
        .await
        .map_err(|lost| lost.at(&place))?
    {
        let pass = ranked_by_servers(&mut fleet, options, method, counts).await;
        ranked(fleet, pass.map_err(|lost| lost.at(&place))?, taken_at)
    } else {
        match probe_lfu(&mut fleet)
            .await
            .map_err(|lost| lost.at(&place))?
        {
            // No key is there to ask for its counter.
            Lfu::NoKeys if fleet.policy().is_some_and(|policy| !policy.contains("lfu")) => {
                let why = "there are no keys, and the maxmemory policy isn't one of LFU".to_owned();
                unranked(fleet, args, taken_at, why)
            }
            Lfu::Counts | Lfu::NoKeys => {
                let looker = Looker::new(ctx, "reading LFU counters", "keys")?;
                let pass = lfu_pass(&mut fleet, options, &looker).await;
                ranked(fleet, pass, taken_at)
            }
            Lfu::Off => {
                let why = "the maxmemory policy isn't one of LFU: there are no counters".to_owned();
                unranked(fleet, args, taken_at, why)
            }
            Lfu::Refused(refused) => {
                let why = format!("OBJECT FREQ: {}", refused.text());
                unranked(fleet, args, taken_at, why)
            }
        }
    })
}

fn ranked(fleet: Fleet, pass: HotPass, taken_at: Timestamp) -> RedisReport<Hotkeys> {
    let facts = fleet.facts.as_ref();
    let number = |name: &str| facts.and_then(|facts| facts.number(name));
    let around = Circumstances {
        saving: number("rdb_bgsave_in_progress")
            .zip(number("aof_rewrite_in_progress"))
            .map(|(rdb, aof)| rdb + aof > 0),
        no_maxmemory: number("maxmemory").map(|most| most == 0),
        uptime: number("uptime_in_seconds").map(Millis::from_secs),
    };
    hotkeys::report(taken_at, fleet.target, pass.coverage, pass.found, around)
}

/// What would work, as it can be typed.
fn unranked(
    fleet: Fleet,
    args: &HotkeysArgs,
    taken_at: Timestamp,
    why: String,
) -> RedisReport<Hotkeys> {
    let coverage = RedisCoverage {
        complete: true,
        ..RedisCoverage::default()
    };
    let top = match args.top {
        20 => String::new(),
        top => format!(" --top {top}"),
    };
    let next = redis_command(&format!("hotkeys --monitor{top}"), &fleet.target);
    hotkeys::without(taken_at, fleet.target, coverage, why, vec![next])
}
