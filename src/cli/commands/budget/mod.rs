//! `stanch budget check | explain | init`.

mod check;
mod files;
mod init;
mod live;

pub use files::of_paths;

use super::Context;
use crate::cli::args::budget::BudgetCommand;
use crate::cli::fault::Fault;
use crate::model::ExitCode;

pub async fn run(ctx: &mut Context<'_>, command: BudgetCommand) -> Result<ExitCode, Fault> {
    match command {
        BudgetCommand::Check(args) => check::run(ctx, &args).await,
        BudgetCommand::Explain(input) => check::explain(ctx, &input),
        BudgetCommand::Init(input) => init::run(ctx, &input),
    }
}
