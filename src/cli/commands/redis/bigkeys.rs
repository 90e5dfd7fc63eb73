//! `stanch redis bigkeys`

use std::os::unix::ffi::OsStrExt as _;

use super::{clock, listing_code, show};
use crate::analysis::redis::RedisReport;
use crate::analysis::redis::bigkeys::{self, Bigkeys};
use crate::cli::args::redis::BigkeysArgs;
use crate::cli::commands::Context;
use crate::cli::fault::Fault;
use crate::cli::redis::place::{self as redis_place, Looker};
use crate::cli::redis::saved as redis_saved;
use crate::model::ExitCode;
use crate::source::redis::{BigOptions, big_pass};

pub async fn run(ctx: &mut Context<'_>, args: &BigkeysArgs) -> Result<ExitCode, Fault> {
    let read = async |ctx: &mut Context<'_>| read(ctx, args).await;
    let report = redis_saved::report(ctx, "bigkeys", &args.keep, read).await?;
    show(ctx, false, &report)?;
    Ok(listing_code(&report))
}

async fn read(ctx: &mut Context<'_>, args: &BigkeysArgs) -> Result<RedisReport<Bigkeys>, Fault> {
    let options = BigOptions {
        top: args.top,
        pattern: args.walk.pattern.as_ref().map(|pattern| pattern.as_bytes()),
        patterns: redis_place::patterns(ctx.env)?,
        budget: redis_place::budget(&args.walk),
        touch: args.touch,
    };
    let mut fleet = redis_place::open(ctx, &args.place).await?;
    let taken_at = clock(ctx, &mut fleet).await;
    let looker = Looker::new(ctx, "reading sizes", "keys")?;
    let pass = big_pass(&mut fleet, options, &looker).await;
    drop(looker);
    let data = Bigkeys {
        bigkeys: pass.by_bytes,
        by_elements: pass.by_elements,
        types: pass.types,
        groups: pass.groups,
        measured: Some(pass.measured),
    };
    Ok(bigkeys::report(taken_at, fleet.target, pass.coverage, data))
}
