//! The only user of arguments, environment, terminal and the local clock: arguments → settings → commands.

mod args;
mod commands;
mod fault;
mod rounds;
mod settings;

use std::ffi::OsString;
use std::io::{self, IsTerminal as _};

use clap::Parser as _;

use crate::model::ExitCode;
use crate::source::postgres::Environment;
use crate::view::{Console, Format, Style};

use args::{Args, ColorChoice, OutputArgs};
use fault::Fault;

pub use args::command;

/// Runs one command line; everything is said before it returns.
pub fn run(argv: impl Iterator<Item = OsString>) -> ExitCode {
    let args = match Args::try_parse_from(args::host_or_help(argv)) {
        Ok(args) => args,
        Err(error) => return usage(&error),
    };
    let env = environment();
    let mut console = console(&args.output, &env);
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return said(&mut console, &Fault::Io(error)),
    };
    match runtime.block_on(commands::run(args, &env, &mut console)) {
        Ok(code) => code,
        Err(fault) => said(&mut console, &fault),
    }
}

/// clap's own errors and its help.
fn usage(error: &clap::Error) -> ExitCode {
    // Help goes to standard output, faults to standard error; nobody is left to tell if that fails.
    let _ = error.print();
    if error.use_stderr() {
        ExitCode::Usage
    } else {
        ExitCode::Ok
    }
}

fn said(console: &mut Console, fault: &Fault) -> ExitCode {
    if fault.is_broken_pipe() {
        return ExitCode::Ok;
    }
    console.error(&fault.to_string(), fault.hint().as_deref());
    fault.exit_code()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place where the environment is read"
)]
fn environment() -> Environment {
    std::env::vars_os()
        .filter_map(|(key, value)| {
            Some((
                key.into_string().ok()?,
                value.to_string_lossy().into_owned(),
            ))
        })
        .collect()
}

fn console(output: &OutputArgs, env: &Environment) -> Console {
    let stdout = io::stdout();
    let terminal = stdout.is_terminal();
    let format = if output.json {
        Format::Json
    } else {
        output.format.into()
    };
    let color = match output.color {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => {
            let no_color = env.get("NO_COLOR").is_some_and(|value| !value.is_empty());
            terminal && !no_color && env.get("TERM").is_none_or(|term| term != "dumb")
        }
    };
    let width = if terminal {
        terminal_size::terminal_size().map(|(width, _)| usize::from(width.0))
    } else {
        env.get("COLUMNS").and_then(|columns| columns.parse().ok())
    };
    let style = Style {
        width,
        color,
        verbose: output.verbose,
    };
    let mut console = Console::new(Box::new(stdout), Box::new(io::stderr()), format, style);
    console.quiet = output.quiet;
    console
}
