//! `stanch redis expiry`

use std::os::unix::ffi::OsStrExt as _;

use super::{checked, clock, show};
use crate::analysis::redis::RedisReport;
use crate::analysis::redis::expiry::{self, CliffLimits, Expiry};
use crate::cli::args::redis::ExpiryArgs;
use crate::cli::commands::Context;
use crate::cli::fault::Fault;
use crate::cli::redis::place::{self as redis_place, Looker};
use crate::cli::redis::saved as redis_saved;
use crate::model::ExitCode;
use crate::source::redis::expiry_pass;

pub async fn run(ctx: &mut Context<'_>, args: &ExpiryArgs) -> Result<ExitCode, Fault> {
    let read = async |ctx: &mut Context<'_>| read(ctx, args).await;
    let report = redis_saved::report(ctx, "expiry", &args.keep, read).await?;
    show(ctx, args.check, &report)?;
    checked(ctx, args.check, "expiry", report.exit_code(), &report)
}

async fn read(ctx: &mut Context<'_>, args: &ExpiryArgs) -> Result<RedisReport<Expiry>, Fault> {
    let patterns = redis_place::patterns(ctx.env)?;
    let mut fleet = redis_place::open(ctx, &args.place).await?;
    let taken_at = clock(ctx, &mut fleet).await;
    let looker = Looker::new(ctx, "reading expiry times", "keys")?;
    let pattern = args.walk.pattern.as_ref().map(|pattern| pattern.as_bytes());
    let budget = redis_place::budget(&args.walk);
    let pass = expiry_pass(&mut fleet, taken_at, pattern, patterns, budget, &looker).await;
    drop(looker);
    let limits = CliffLimits::default();
    let (target, coverage) = (fleet.target, pass.coverage);
    Ok(expiry::report(
        taken_at,
        target,
        coverage,
        &pass.groups,
        limits,
    ))
}
