//! What the reports of Redis have in common on their way out: the clock, the exit code, the line of a check.

use serde::Serialize;

use crate::analysis::redis::{RedisHead, RedisReport};
use crate::cli::commands::Context;
use crate::cli::fault::Fault;
use crate::model::{ExitCode, Timestamp};
use crate::source::redis::{Fleet, Refused, time};
use crate::view::{self, Format, Table};

/// 0 when all of it was read, 3 when not, 5 when the person ended it.
pub fn listing_code<D>(report: &RedisReport<D>) -> ExitCode {
    let coverage = &report.head.coverage;
    if coverage.was_stopped() {
        ExitCode::Stopped
    } else if coverage.complete {
        ExitCode::Ok
    } else {
        ExitCode::Unknown
    }
}

/// The report; of a check at a terminal or in a pipe its one line only, which `checked` writes.
pub fn show<D: Serialize + Table<RedisHead>>(
    ctx: &mut Context<'_>,
    check: bool,
    report: &RedisReport<D>,
) -> Result<(), Fault> {
    if !(check && ctx.console.format == Format::Table) {
        view::lists(ctx.console, &report.data.sheets())?;
        view::show(ctx.console, report)?;
    }
    Ok(())
}

/// The exit code; for monitoring by severity, with one line.
pub fn checked<D: Table<RedisHead>>(
    ctx: &mut Context<'_>,
    check: bool,
    name: &str,
    code: ExitCode,
    report: &RedisReport<D>,
) -> Result<ExitCode, Fault> {
    if !check {
        return Ok(listing_code(report));
    }
    if ctx.console.format == Format::Table {
        let said = report.data.sentences(&report.head);
        ctx.console
            .result(&view::check::of_redis(name, code, &said, &report.head))?;
    }
    Ok(code)
}

/// The server's time; this machine's where it isn't told, and why it isn't. Of a link that is lost the report itself tells.
pub async fn clock(ctx: &mut Context<'_>, fleet: &mut Fleet) -> Timestamp {
    match time(fleet).await {
        Ok(at) => return at,
        Err(Refused::NotPermitted(_)) => ctx
            .console
            .note("times are this machine's: the login may not ask for the server's (+time)"),
        Err(Refused::Lost(_)) => {}
        Err(Refused::Unknown(_)) => ctx
            .console
            .note("times are this machine's: the server has no TIME (renamed?)"),
        Err(refused) => ctx
            .console
            .note(&format!("times are this machine's: {}", refused.text())),
    }
    crate::cli::rounds::local_now()
}
