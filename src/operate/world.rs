//! What a book is walked against: a live server, or what was kept of one.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::act::ActError;
use super::book::BookRequest;
use super::command::command;
use super::found::found;
use super::redis;
use super::steps::of_command;
use crate::analysis::triage;
use crate::model::{FindingId, Snapshot};
use crate::runbook::walk::Walk;
use crate::runbook::{Kind, Step};
use crate::source::pgbouncer;
use crate::source::postgres::query::{QueryError, run_statement};
use crate::source::postgres::{Connected, Parts, Plan, RoundError, RoundOptions, round};

/// Where reads come from.
#[derive(Clone, Copy)]
pub enum World<'w> {
    /// With the console of the pooler in front, where the target names one.
    Live(&'w Connected, Option<&'w Plan>),
    /// A snapshot, and the reports of Redis that were kept with it, by name.
    Saved(&'w Snapshot, &'w BTreeMap<String, Json>),
}

/// What a read found.
pub(super) enum Found {
    Report {
        name: String,
        snapshot: Box<Snapshot>,
        value: Result<Json, String>,
    },
    Rows(Vec<Json>),
    Lines {
        text: String,
        value: Json,
    },
}

/// Why a read found nothing: the server's SQLSTATE or our own word, and why.
pub(super) struct Unread {
    pub code: String,
    pub why: String,
}

impl Unread {
    pub fn new(code: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            why: why.into(),
        }
    }
}

/// A command that only looks isn't waited for longer, where its step doesn't say.
const COMMAND: Duration = Duration::from_secs(30);

/// Between the server's limit and ours.
const SLACK: Duration = Duration::from_secs(2);

impl World<'_> {
    pub fn is_saved(&self) -> bool {
        matches!(self, Self::Saved(..))
    }

    /// Everything, as it is now or was then.
    ///
    /// # Errors
    /// When it can't be read.
    pub async fn snapshot(
        &self,
        parts: Parts,
        options: RoundOptions,
    ) -> Result<Snapshot, RoundError> {
        match self {
            Self::Live(connected, console) => {
                let look = async {
                    match console {
                        Some(plan) => Some(pgbouncer::look(plan, options.redaction).await),
                        None => None,
                    }
                };
                let (read, pooler) = tokio::join!(round(connected, parts, options), look);
                Ok(Snapshot { pooler, ..read? })
            }
            Self::Saved(snapshot, _) => Ok((*snapshot).clone()),
        }
    }

    /// What a step that reads finds.
    ///
    /// # Errors
    /// Outside when the connection is lost; inside what else the read came to.
    pub(super) async fn find(
        &self,
        step: &Step,
        walk: &Walk<'_>,
        request: &BookRequest,
        stop: &dyn Fn() -> bool,
    ) -> Result<Result<Found, Unread>, ActError> {
        let round = match step.timeout {
            Some(limit) => RoundOptions {
                statement_timeout: limit.min(request.round.statement_timeout),
                // The server's own limit comes first.
                deadline: (limit + SLACK).min(request.round.deadline),
                redaction: request.round.redaction,
            },
            None => request.round,
        };
        let found = match &step.kind {
            Kind::Query(report) => self.report(&report.text, request, round).await,
            Kind::Check(id) if id.is_of_redis() => {
                return Ok(Err(Unread::new(
                    "not_looked_at",
                    format!(
                        "{id} is found in the Redis: a step `redis` looks at it, with a condition on what it gives"
                    ),
                )));
            }
            Kind::Check(id) => {
                let read = self.report("triage", request, round).await;
                read.map(|read| checked(read, *id, request))
            }
            Kind::Sql(statement) => {
                let Self::Live(connected, _) = self else {
                    return Ok(Err(Unread::new(
                        "not_saved",
                        "a statement of a book isn't part of a snapshot",
                    )));
                };
                let args: Result<Vec<String>, String> = statement
                    .args
                    .iter()
                    .map(|arg| walk.operand(step, arg))
                    .collect();
                let args = match args {
                    Ok(args) => args,
                    Err(why) => return Ok(Err(Unread::new("unknown", why))),
                };
                match run_statement(connected, &statement.text.text, &args, round).await {
                    Ok(rows) => Ok(Found::Rows(rows)),
                    Err(QueryError::Read(error)) => Err(error),
                    Err(QueryError::Row(error)) => {
                        return Ok(Err(Unread::new("row", error.to_string())));
                    }
                }
            }
            Kind::Command(what) => {
                if self.is_saved() {
                    return Ok(Err(Unread::new(
                        "not_saved",
                        "a command would tell of now, not of then",
                    )));
                }
                let argv: Result<Vec<String>, String> = what
                    .argv
                    .iter()
                    .map(|arg| walk.operand(step, arg))
                    .collect();
                let argv = match argv {
                    Ok(argv) => argv,
                    Err(why) => return Ok(Err(Unread::new("unknown", why))),
                };
                return Ok(looked(step, &argv, stop).await);
            }
            other => {
                let Kind::Redis(report) = other else {
                    return Ok(Err(Unread::new("step", "a step that reads nothing")));
                };
                if let Self::Saved(_, reports) = self {
                    return Ok(kept(&report.text, reports));
                }
                let limit = step.timeout.unwrap_or(round.statement_timeout);
                return Ok(asked(&report.text, request, limit, stop).await);
            }
        };
        match found {
            Ok(found) => Ok(Ok(found)),
            Err(error) if error.connection_lost => Err(error.into()),
            Err(error) => Ok(Err(Unread::new(error.code.clone(), error.to_string()))),
        }
    }

    async fn report(
        &self,
        name: &str,
        request: &BookRequest,
        options: RoundOptions,
    ) -> Result<Found, RoundError> {
        let snapshot = self.snapshot(Parts::ALL, options).await?;
        let value = found(name, &snapshot, &request.thresholds);
        Ok(Found::Report {
            name: name.to_owned(),
            snapshot: Box::new(snapshot),
            value,
        })
    }
}

/// A report of the Redis in front that was kept.
fn kept(name: &str, reports: &BTreeMap<String, Json>) -> Result<Found, Unread> {
    let Some(value) = reports.get(name) else {
        return Err(Unread::new(
            "not_saved",
            format!("no report {name} of Redis was kept (stanch capture --redis URL keeps them)"),
        ));
    };
    let (lines, value) =
        redis::told(name, value.clone()).map_err(|why| Unread::new("redis", why))?;
    let text = format!("Redis, as it was\n{}\n", lines.join("\n"));
    Ok(Found::Lines { text, value })
}

/// A report of the Redis in front.
async fn asked(
    name: &str,
    request: &BookRequest,
    limit: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<Found, Unread> {
    let address = request.redis.as_ref().ok_or_else(|| {
        Unread::new(
            "no_redis",
            "no Redis is given: --redis URL, REDIS_URL, or the target's in stanch.yaml",
        )
    })?;
    let read = redis::report(
        name,
        address,
        &request.redis_config,
        limit,
        request.clock,
        stop,
    );
    let (lines, value) = read.await.map_err(|why| Unread::new("redis", why))?;
    let text = format!("Redis at {}\n{}\n", address.shown(), lines.join("\n"));
    Ok(Found::Lines { text, value })
}

/// Of all of triage one finding.
fn checked(read: Found, id: FindingId, request: &BookRequest) -> Found {
    let Found::Report {
        snapshot, value, ..
    } = &read
    else {
        return read;
    };
    let report = triage::report(snapshot, &request.thresholds);
    let finding = report.data.findings.iter().find(|f| f.id == id);
    // One that is there is there, whatever else wasn't read.
    if value.is_err() && finding.is_none() {
        return read;
    }
    // What couldn't be judged isn't absent.
    let no_pooler = (id == FindingId::PoolWaiting && snapshot.pooler.is_none()).then(|| {
        format!(
            "{id}: no pooler was looked at: the target in stanch.yaml names its console (pgbouncer)"
        )
    });
    let unknown = report.data.unknown.iter().chain(&no_pooler).find(|text| {
        text.split(':')
            .next()
            .is_some_and(|names| names.split(", ").any(|n| n == id.name()))
    });
    let text = match (finding, unknown) {
        (Some(finding), _) => format!("{}: {}", id.name(), finding.title),
        (None, Some(unknown)) => format!("not known: {unknown}"),
        (None, None) => format!("{}: not found", id.name()),
    };
    let found = match (finding, unknown) {
        (None, Some(_)) => Json::Null,
        (finding, _) => Json::Bool(finding.is_some()),
    };
    Found::Lines {
        text,
        value: json!({
            "found": found,
            "severity": finding.map_or("none", |f| f.severity.word()),
            "title": finding.map(|f| f.title.clone()),
        }),
    }
}

async fn looked(step: &Step, argv: &[String], stop: &dyn Fn() -> bool) -> Result<Found, Unread> {
    let ran = command(argv, step.timeout.unwrap_or(COMMAND), stop)
        .await
        .map_err(|error| Unread::new("start", format!("{}: {error}", argv[0])))?;
    let Some(exit) = ran.exit else {
        return Err(Unread::new("command", format!("{}: {}", argv[0], ran.why)));
    };
    let mut text = ran.stdout.clone();
    text.push_str(&ran.stderr);
    Ok(Found::Lines {
        text,
        value: of_command(Some(exit), &ran.stdout, ran.elapsed.as_millis()),
    })
}
