//! `stanch triage`

use std::cell::RefCell;

use super::Context;
use crate::analysis::redis::Look;
use crate::analysis::triage;
use crate::cli::args::TriageArgs;
use crate::cli::fault::Fault;
use crate::cli::redis::look as redis_look;
use crate::cli::rounds::{self, Check, Job};
use crate::cli::settings;
use crate::model::{ExitCode, Snapshot};

pub async fn run(ctx: &mut Context<'_>, args: &TriageArgs) -> Result<ExitCode, Fault> {
    let thresholds = settings::thresholds(ctx.env, &args.threshold)?;
    let snapshot = &args.repeat.snapshot;
    if args.redis.is_asked() {
        // What was saved has the Redis of then, and a walk over all keys isn't for every other second.
        for (given, option) in [
            (snapshot.frame.from.is_some(), "--from"),
            (snapshot.check, "--check"),
            (args.repeat.every.is_some(), "--every"),
        ] {
            if given {
                return Err(Fault::Usage(format!("--redis can't be used with {option}")));
            }
        }
    }
    let target = snapshot.frame.connect.dbname.as_deref();
    let redis = redis_look::look(ctx, &args.redis, target, !snapshot.frame.unredacted).await?;
    let last = RefCell::new(None);
    let make = |snapshot: &Snapshot| {
        let mut report = triage::report(snapshot, &thresholds);
        if args.repeat.every.is_some()
            && let Some(before) = last.replace(Some(snapshot.clone()))
        {
            report = report.with_growth(&before, snapshot);
        }
        match Look::of(snapshot) {
            Some(look) => report.with_redis(look.as_ref().map_err(String::as_str), snapshot),
            None => report,
        }
    };
    let job = Job {
        name: "triage",
        check: Check::Findings(&[""]),
        thresholds: &args.threshold,
        parts: triage::PARTS,
        make: &make,
        code: |report| report.exit_code(),
        refusal_is_answer: true,
        redis,
        pooler: true,
    };
    rounds::run(ctx, snapshot, args.repeat.every, job).await
}
