//! `stanch redis …`: one report each.

mod bigkeys;
mod changed;
mod expiry;
mod hotkeys;
mod info;
mod queues;
mod restore;
mod server_count;
mod stampede;
mod told;

use super::Context;
use crate::cli::args::redis::RedisCommand;
use crate::cli::fault::Fault;
use crate::model::ExitCode;

use told::{checked, clock, listing_code, show};

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
