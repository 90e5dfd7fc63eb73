//! The only user of arguments, environment, terminal and the local clock: arguments → settings → commands.
mod args;
mod commands;
mod complete;
mod fault;
mod log_lines;
mod log_moments;
mod person;
mod redis;
mod rounds;
mod secrets;
mod settings;
mod stop;
mod terminal;

use std::ffi::OsString;

use clap::Parser as _;

use crate::model::ExitCode;
use crate::view::Console;
pub use args::command;
use fault::Fault;

/// Runs one command line; everything is said before it returns.
pub fn run(argv: impl Iterator<Item = OsString>) -> ExitCode {
    let argv: Vec<OsString> = argv.collect();
    if complete::answered(&argv) {
        return ExitCode::Ok;
    }
    let args = match args::Args::try_parse_from(args::host_or_help(argv.into_iter())) {
        Ok(args) => args,
        Err(error) => return args::usage(&error),
    };
    let env = terminal::environment();
    let mut console = terminal::console(&args.output, &env);
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return said(&mut console, &Fault::Io(error)),
    };
    let local = tokio::task::LocalSet::new();
    let done = local.block_on(&runtime, commands::run(args, &env, &mut console));
    // A name lookup that isn't answered would hold up the end of the program.
    runtime.shutdown_background();
    match done {
        Ok(code) => code,
        Err(fault) => said(&mut console, &fault),
    }
}

fn said(console: &mut Console, fault: &Fault) -> ExitCode {
    if fault.is_broken_pipe() {
        return ExitCode::Ok;
    }
    console.error(&fault.to_string(), fault.hint().as_deref());
    fault.exit_code()
}
