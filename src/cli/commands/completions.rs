//! `stanch completions`: what a shell has to read so that it asks the program.

use clap_complete::env::Shells;

use crate::cli::args::Shell;
use crate::cli::fault::Fault;
use crate::model::ExitCode;
use crate::view::Console;

pub fn run(console: &mut Console, shell: Shell) -> Result<ExitCode, Fault> {
    let mut script = Vec::new();
    if let Some(completer) = Shells::builtins().completer(shell.name()) {
        completer.write_registration("COMPLETE", "stanch", "stanch", "stanch", &mut script)?;
    }
    console.result(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::Ok)
}
