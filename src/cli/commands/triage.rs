//! `stanch triage`

use super::Context;
use crate::analysis::triage;
use crate::cli::args::TriageArgs;
use crate::cli::fault::Fault;
use crate::cli::rounds::{self, Check, Job};
use crate::cli::settings;
use crate::model::ExitCode;

pub async fn run(ctx: &mut Context<'_>, args: &TriageArgs) -> Result<ExitCode, Fault> {
    let thresholds = settings::thresholds(ctx.env, &args.threshold)?;
    let job = Job {
        name: "triage",
        check: Check::Findings(&[""]),
        thresholds: &args.threshold,
        parts: triage::PARTS,
        make: &|snapshot| triage::report(snapshot, &thresholds),
        code: |report| report.exit_code(),
        refusal_is_answer: true,
    };
    rounds::run(ctx, &args.repeat.snapshot, args.repeat.every, job).await
}
