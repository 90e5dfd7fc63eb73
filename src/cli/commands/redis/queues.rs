//! `stanch redis queues`

use std::time::Instant;

use super::{checked, clock, show};
use crate::analysis::redis::queues::{self, rates};
use crate::cli::args::redis::QueuesArgs;
use crate::cli::commands::Context;
use crate::cli::fault::Fault;
use crate::cli::redis_place::{self, Looker};
use crate::cli::settings;
use crate::model::ExitCode;
use crate::source::redis::Watch as _;
use crate::source::redis::queues::{QueueOptions, discover, inspect};

pub async fn run(ctx: &mut Context<'_>, args: &QueuesArgs) -> Result<ExitCode, Fault> {
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
    let stopped = looker.is_stopped();
    drop(looker);
    let report = queues::report(taken_at, fleet.target, coverage, found, &bounds, sampled);
    show(ctx, args.check && !stopped, &report)?;
    if stopped {
        ctx.console
            .note("stopped by you: the rates are of the time until then");
        return Ok(ExitCode::Stopped);
    }
    checked(ctx, args.check, "queues", report.exit_code(), &report)
}

async fn wait(looker: &Looker, time: std::time::Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end && !looker.is_stopped() {
        let left = end.saturating_duration_since(Instant::now());
        tokio::time::sleep(left.min(std::time::Duration::from_millis(100))).await;
    }
}
