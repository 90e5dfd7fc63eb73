//! `stanch pg …`: one report each.

use serde::Serialize;

use super::{Context, act, deadlocks};
use crate::analysis::{
    Report, activity, blocking, connections, horizon, locks, settings, transactions,
};
use crate::cli::args::{ActivityArgs, PgCommand};
use crate::cli::fault::Fault;
use crate::cli::rounds::{self, Check, Job, listing_code};
use crate::model::{ExitCode, Millis, Part, Snapshot, Verb};
use crate::sql;
use crate::view::{Format, Table};

pub async fn run(ctx: &mut Context<'_>, command: PgCommand) -> Result<ExitCode, Fault> {
    match command {
        PgCommand::Activity(args) => activity(ctx, args).await,
        PgCommand::Blockers(args) => {
            let job = listing(
                "blockers",
                Check::Findings(&["lock."]),
                blocking::PARTS,
                &blocking::report,
            );
            rounds::run(ctx, &args.snapshot, args.every, job).await
        }
        PgCommand::Locks { waiting, from } => {
            let make = |snapshot: &Snapshot| locks::report(snapshot, waiting);
            rounds::run(
                ctx,
                &from,
                None,
                listing("locks", Check::Findings(&["lock."]), locks::PARTS, &make),
            )
            .await
        }
        PgCommand::Transactions { longer_than, from } => {
            if longer_than.is_some() && (from.check || ctx.console.format == Format::Prometheus) {
                return Err(Fault::Usage(
                    "--longer-than is for lists: --check and -o prometheus tell of all transactions".into(),
                ));
            }
            let make =
                |snapshot: &Snapshot| transactions::report(snapshot, longer_than.map(Millis::from));
            rounds::run(
                ctx,
                &from,
                None,
                listing(
                    "transactions",
                    Check::Findings(&["tx."]),
                    transactions::PARTS,
                    &make,
                ),
            )
            .await
        }
        PgCommand::Connections(args) => {
            let job = listing(
                "connections",
                Check::Findings(&["conn."]),
                connections::PARTS,
                &connections::report,
            );
            rounds::run(ctx, &args.snapshot, args.every, job).await
        }
        PgCommand::Settings(args) => {
            rounds::run(
                ctx,
                &args,
                None,
                listing(
                    "settings",
                    Check::Own(settings_code),
                    settings::PARTS,
                    &settings::report,
                ),
            )
            .await
        }
        PgCommand::Deadlocks(args) => deadlocks::run(ctx, &args).await,
        PgCommand::Cancel { grace, act } => act::run(ctx, Verb::Cancel, &act, grace).await,
        PgCommand::Terminate(args) => act::run(ctx, Verb::Terminate, &args, None).await,
        PgCommand::RollbackPrepared(args) => act::rollback(ctx, &args).await,
        PgCommand::Horizon(args) => {
            rounds::run(
                ctx,
                &args,
                None,
                listing(
                    "horizon",
                    Check::Findings(&["horizon."]),
                    horizon::PARTS,
                    &horizon::report,
                ),
            )
            .await
        }
    }
}

async fn activity(ctx: &mut Context<'_>, args: ActivityArgs) -> Result<ExitCode, Fault> {
    let filter = activity::Filter {
        states: args.state,
        users: args
            .user
            .iter()
            .map(|name| sql::name_redacted(name).into_owned())
            .collect(),
        // As they are shown.
        applications: args
            .app
            .iter()
            .map(|name| sql::redacted(name).into_owned())
            .collect(),
        databases: args.database,
        longer_than: args.longer_than.map(Millis::from),
        all: args.all,
    };
    let make = |snapshot: &Snapshot| activity::report(snapshot, &filter);
    rounds::run(
        ctx,
        &args.repeat.snapshot,
        args.repeat.every,
        listing(
            "activity",
            Check::Findings(&["query.", "wait."]),
            activity::PARTS,
            &make,
        ),
    )
    .await
}

/// A stock server's settings are no alarm, but who checks them wants to hear of those to change.
fn settings_code(report: &Report<settings::Settings>) -> ExitCode {
    let change = |s: &settings::Judged| s.verdict == settings::Verdict::Change;
    match report.data.settings.iter().any(change) {
        true => ExitCode::Warning,
        false => listing_code(report),
    }
}

fn listing<'j, D: Serialize + Table>(
    name: &'static str,
    check: Check<D>,
    parts: &'static [Part],
    make: &'j dyn Fn(&Snapshot) -> Report<D>,
) -> Job<'j, D> {
    Job {
        name,
        check,
        thresholds: &[],
        parts,
        make,
        code: listing_code,
        refusal_is_answer: false,
        redis: None,
        pooler: name == "connections",
    }
}
