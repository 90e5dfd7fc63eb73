//! `stanch man`: one manual page, or all of them into a folder.

use std::path::Path;

use clap::Command;
use clap_mangen::Man;

use crate::cli::args;
use crate::cli::fault::Fault;
use crate::model::ExitCode;
use crate::view::Console;

pub fn run(
    console: &mut Console,
    names: &[String],
    folder: Option<&Path>,
) -> Result<ExitCode, Fault> {
    let all = pages(args::command(), "stanch");
    let Some(folder) = folder else {
        let wanted = std::iter::once("stanch")
            .chain(names.iter().map(String::as_str))
            .collect::<Vec<_>>()
            .join("-");
        let found = all.into_iter().find(|(name, _)| *name == wanted);
        let (_, command) =
            found.ok_or_else(|| Fault::Usage(format!("no command {}", names.join(" "))))?;
        let mut text = Vec::new();
        page(command).render(&mut text)?;
        console.result(&String::from_utf8_lossy(&text))?;
        return Ok(ExitCode::Ok);
    };
    for (name, command) in all {
        let mut text = Vec::new();
        page(command).render(&mut text)?;
        let path = folder.join(format!("{name}.1"));
        std::fs::write(&path, text)
            .map_err(|error| Fault::Save(format!("{}: {error}", path.display())))?;
    }
    Ok(ExitCode::Ok)
}

/// Each command under the name of its page: `stanch`, `stanch-pg`, `stanch-pg-blockers`.
fn pages(mut command: Command, name: &str) -> Vec<(String, Command)> {
    // Options that every command has are written out where they stand.
    command.build();
    let mut all = Vec::new();
    collect(command, name, &mut all);
    all
}

fn collect(command: Command, name: &str, all: &mut Vec<(String, Command)>) {
    for below in command.get_subcommands() {
        if below.get_name() != "help" {
            collect(below.clone(), &format!("{name}-{}", below.get_name()), all);
        }
    }
    all.push((name.to_owned(), command));
}

fn page(command: Command) -> Man {
    Man::new(command)
        .source(concat!("stanch ", env!("CARGO_PKG_VERSION")))
        .manual("stanch")
}
