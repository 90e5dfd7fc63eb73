//! One file a subcommand: resolved settings in, a report shown, an exit code out.

mod act;
mod budget;
mod bundle;
mod capture;
mod completions;
mod context;
mod deadlocks;
mod doctor;
mod drill;
mod explain;
mod formats;
mod man;
mod pg;
mod query;
mod redis;
mod report;
mod runbook;
mod triage;
mod welcome;

use std::io::IsTerminal as _;

use super::args::{Args, Command};
use super::fault::Fault;
use crate::model::ExitCode;
use crate::source::postgres::Environment;
use crate::view::Console;

pub use context::Context;

pub async fn run(args: Args, env: &Environment, console: &mut Console) -> Result<ExitCode, Fault> {
    let Some(command) = args.command else {
        return welcome::run(console);
    };
    formats::check(&command, console)?;
    let mut ctx = Context {
        console,
        env,
        stdout_is_terminal: std::io::stdout().is_terminal(),
        stderr_is_terminal: std::io::stderr().is_terminal(),
    };
    match command {
        Command::Triage(args) => triage::run(&mut ctx, &args).await,
        Command::Pg(command) => pg::run(&mut ctx, command).await,
        Command::Redis(command) => redis::run(&mut ctx, command).await,
        Command::Explain { id } => explain::run(&mut ctx, id.as_deref()),
        Command::Query(command) => query::run(&mut ctx, command).await,
        Command::Doctor(args) => doctor::run(&mut ctx, &args).await,
        Command::Runbook(command) => runbook::run(&mut ctx, command).await,
        Command::Budget(command) => budget::run(&mut ctx, command).await,
        Command::Capture(args) => capture::run(&mut ctx, &args).await,
        Command::Bundle(command) => bundle::run(&mut ctx, &command),
        Command::Report(args) => report::run(&mut ctx, &args),
        Command::Drill(args) => drill::run(&mut ctx, &args).await,
        Command::Completions { shell } => completions::run(ctx.console, shell),
        Command::Man { command, dir } => man::run(ctx.console, &command, dir.as_deref()),
    }
}
