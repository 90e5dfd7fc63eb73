//! `stanch doctor`: 1 when a grant is missing, 3 when something couldn't be read.

use super::Context;
use crate::analysis::Report;
use crate::analysis::doctor::{self, CheckStatus, Doctor};
use crate::cli::args::SnapshotArgs;
use crate::cli::fault::Fault;
use crate::cli::rounds::{self, Check, Job};
use crate::model::ExitCode;

pub async fn run(ctx: &mut Context<'_>, args: &SnapshotArgs) -> Result<ExitCode, Fault> {
    let job = Job {
        name: "doctor",
        check: Check::Own(exit_code),
        thresholds: &[],
        parts: doctor::PARTS,
        make: &doctor::report,
        code: exit_code,
        refusal_is_answer: false,
        redis: None,
        pooler: false,
    };
    rounds::run(ctx, args, None, job).await
}

fn exit_code(report: &Report<Doctor>) -> ExitCode {
    let has = |status| {
        report
            .data
            .doctor
            .iter()
            .any(|check| check.status == status)
    };
    if has(CheckStatus::Missing) {
        ExitCode::Warning
    } else if has(CheckStatus::Unknown) {
        ExitCode::Unknown
    } else {
        ExitCode::Ok
    }
}
