//! Which command can be shown in which format: what can't is a mistake of the command line, before anything is read.

use crate::cli::args::Command;
use crate::cli::fault::Fault;
use crate::view::{Console, Format};

pub fn check(command: &Command, console: &Console) -> Result<(), Fault> {
    if console.format == Format::Prometheus && !command.is_measured() {
        return Err(Fault::not_measured());
    }
    let is_lint = matches!(command, Command::Report(args) if args.lint.is_some());
    let has_it = match console.format {
        Format::Github => is_lint || matches!(command, Command::Budget(_)),
        _ => matches!(command, Command::Budget(_)),
    };
    if console.format.is_for_ci() && !has_it {
        return Err(Fault::Usage(
            "--format sarif, junit and github: budget check has them, and report --lint has github"
                .into(),
        ));
    }
    if matches!(command, Command::Capture(_) | Command::Bundle(_))
        && !matches!(console.format, Format::Table | Format::Json)
    {
        return Err(Fault::Usage("capture and bundle: -o table or json".into()));
    }
    if console.list.is_some()
        && !(command.has_lists() && matches!(console.format, Format::Csv | Format::Markdown))
    {
        return Err(Fault::Usage(
            "--list: with -o csv or -o md, of a report".into(),
        ));
    }
    Ok(())
}
