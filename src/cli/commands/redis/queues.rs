//! `stanch redis queues`

use std::cell::Cell;
use std::time::Instant;

use super::{checked, clock, show};
use crate::analysis::redis::RedisReport;
use crate::analysis::redis::queues::{self, Queues, rates};
use crate::cli::args::redis::QueuesArgs;
use crate::cli::commands::Context;
use crate::cli::fault::Fault;
use crate::cli::redis::place::{self as redis_place, Looker};
use crate::cli::redis::saved as redis_saved;
use crate::cli::settings;
use crate::model::ExitCode;
use crate::source::redis::Watch as _;
use crate::source::redis::queues::{QueueOptions, discover, inspect};

pub async fn run(ctx: &mut Context<'_>, args: &QueuesArgs) -> Result<ExitCode, Fault> {
    let stopped = Cell::new(false);
    let read = async |ctx: &mut Context<'_>| read(ctx, args, &stopped).await;
    let report = redis_saved::report(ctx, "queues", &args.keep, read).await?;
    show(ctx, args.check && !stopped.get(), &report)?;
    if stopped.get() {
        ctx.console
            .note("stopped by you: the rates are of the time until then");
        return Ok(ExitCode::Stopped);
    }
    checked(ctx, args.check, "queues", report.exit_code(), &report)
}

async fn read(
    ctx: &mut Context<'_>,
    args: &QueuesArgs,
    stopped: &Cell<bool>,
) -> Result<RedisReport<Queues>, Fault> {
    let bounds = settings::redis_config(ctx.env)?.queues();
    let mut fleet = redis_place::open(ctx, &args.place).await?;
    let options = QueueOptions {
        walk: !args.quick,
        streams: !args.quick,
        touch: args.touch,
        budget: match args.full {
            true => crate::source::redis::Budget::FULL,
            false => crate::source::redis::Budget::gentle(args.budget),
        },
    };
    let looker = Looker::new(ctx, "looking for queues", "keys")?;
    let (places, mut coverage) = discover(&mut fleet, &looker, options).await;
    let mut taken_at = clock(ctx, &mut fleet).await;
    let mut found = inspect(&mut fleet, &places, taken_at, &mut coverage).await;
    let mut sampled = None;
    if let Some(sample) = args.sample {
        let begun = Instant::now();
        wait(&looker, sample).await;
        // What happened until a Ctrl-C is told as well.
        let before = std::mem::take(&mut found);
        taken_at = clock(ctx, &mut fleet).await;
        let elapsed = begun.elapsed();
        found = inspect(&mut fleet, &places, taken_at, &mut coverage).await;
        rates(&before, &mut found, elapsed);
        sampled = Some(elapsed);
    }
    stopped.set(looker.is_stopped());
    drop(looker);
    let target = fleet.target;
    Ok(queues::report(
        taken_at, target, coverage, found, &bounds, sampled,
    ))
}

async fn wait(looker: &Looker, time: std::time::Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end && !looker.is_stopped() {
        let left = end.saturating_duration_since(Instant::now());
        tokio::time::sleep(left.min(std::time::Duration::from_millis(100))).await;
    }
}
