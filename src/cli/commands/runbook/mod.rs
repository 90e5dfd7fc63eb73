//! `stanch runbook list | show | lint | test | render | run | resume | runs | follow`.

mod check;
mod follow;
mod person;
mod resume;
mod run;
mod shelf;
mod told;

pub use resume::journal_of;

use super::Context;
use crate::cli::args::effect::RunbookCommand;
use crate::cli::fault::Fault;
use crate::model::ExitCode;

pub async fn run(ctx: &mut Context<'_>, command: RunbookCommand) -> Result<ExitCode, Fault> {
    match command {
        RunbookCommand::List => shelf::list(ctx),
        RunbookCommand::Show { name } => {
            let found = shelf::find(ctx, Some(&name), None)?;
            check::show(ctx, &found)
        }
        RunbookCommand::Lint { files } => check::lint(ctx, &files),
        RunbookCommand::Test { files, strict } => check::test(ctx, &files, strict),
        RunbookCommand::Render { name, file } => {
            let found = shelf::find(ctx, name.as_deref(), file.as_deref())?;
            check::render(ctx, &found)
        }
        RunbookCommand::Run(args) => run::run(ctx, &args).await,
        RunbookCommand::Resume(args) => resume::run(ctx, &args).await,
        RunbookCommand::Runs => resume::list(ctx),
        RunbookCommand::Follow { run } => follow::run(ctx, run.as_deref()).await,
    }
}
