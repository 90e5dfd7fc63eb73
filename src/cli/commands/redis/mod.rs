//! `stanch redis …`: one report each.

mod bigkeys;
mod expiry;
mod hotkeys;
mod info;
mod queues;
mod restore;
mod stampede;

use super::Context;
use crate::analysis::redis::RedisReport;
use crate::cli::args::redis::RedisCommand;
use crate::cli::fault::Fault;
use crate::model::{ExitCode, Timestamp};
use crate::source::redis::{Fleet, time};

pub async fn run(ctx: &mut Context<'_>, command: RedisCommand) -> Result<ExitCode, Fault> {
    match command {
        RedisCommand::Info(args) => info::run(ctx, &args).await,
        RedisCommand::Stampede(args) => stampede::run(ctx, &args).await,
        RedisCommand::Queues(args) => queues::run(ctx, &args).await,
        RedisCommand::Restore(args) => restore::run(ctx, &args).await,
        RedisCommand::Bigkeys(args) => bigkeys::run(ctx, &args).await,
        RedisCommand::Expiry(args) => expiry::run(ctx, &args).await,
        RedisCommand::Hotkeys(args) => hotkeys::run(ctx, &args).await,
    }
}

/// 0 when all of it was read, 3 when not, 5 when the person ended it.
fn listing_code<D>(report: &RedisReport<D>) -> ExitCode {
    let coverage = &report.head.coverage;
    if coverage.was_stopped() {
        ExitCode::Stopped
    } else if coverage.complete {
        ExitCode::Ok
    } else {
        ExitCode::Unknown
    }
}

/// The server's time; this machine's where the login may not ask, which is said.
async fn clock(ctx: &mut Context<'_>, fleet: &mut Fleet) -> Timestamp {
    if let Some(at) = time(fleet).await {
        return at;
    }
    ctx.console
        .note("times are this machine's: the login may not ask for the server's (+time)");
    crate::cli::rounds::local_now()
}
