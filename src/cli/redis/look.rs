//! One look at a Redis for triage: its numbers and its groups, within a small budget.

use std::time::Duration;

use serde_json::Value;

use super::place::{self as redis_place, Looker};
use crate::analysis::redis::Look;
use crate::analysis::redis::queues::judged;
use crate::analysis::redis::stampede::{self, Around};
use crate::bundle;
use crate::cli::args::redis::RedisArgs;
use crate::cli::commands::Context;
use crate::cli::fault::Fault;
use crate::cli::rounds::local_now;
use crate::cli::settings;
use crate::config::RedisConfig;
use crate::keys::Pattern;
use crate::model::{KeyName, Section, Timestamp};
use crate::source::redis::queues::{QueueOptions, queues};
use crate::source::redis::{
    self, Budget, Fleet, Lfu, Limits, StampedeOptions, Watch, node_info, probe_lfu, stampede_pass,
    time,
};

/// Triage is to answer soon.
const WALL: Duration = Duration::from_secs(10);

/// Looks, or says why it can't; `None` where no Redis is asked for. As it may be seen and saved.
///
/// # Errors
/// When none is named, or what is named is no address.
pub async fn look(
    ctx: &mut Context<'_>,
    args: &RedisArgs,
    target: Option<&str>,
    redacted: bool,
) -> Result<Option<Section<Value>>, Fault> {
    redis_place::warn_of_password(ctx, args);
    let Some(address) = redis_place::asked(args, target, ctx.env)? else {
        return Ok(None);
    };
    let limits = Limits {
        connect: redis_place::CONNECT,
        answer: redis_place::CONNECT,
    };
    let config = settings::redis_config(ctx.env)?;
    let looker = Looker::new(ctx, "looking at Redis", "keys")?;
    let seen = match redis::open(&address, None, limits).await {
        Ok(mut fleet) => see(&mut fleet, &config, local_now, &looker).await,
        Err(error) => Err(error.to_string()),
    };
    Ok(Some(section(seen, redacted)))
}

/// A look as a snapshot has it.
pub fn section(seen: Result<Look, String>, redacted: bool) -> Section<Value> {
    let value = seen.and_then(|look| serde_json::to_value(look).map_err(|error| error.to_string()));
    let mut value = match value {
        Ok(value) => value,
        Err(message) => {
            return Section::Failed {
                code: "redis".into(),
                message: crate::sql::redacted(&message).into_owned(),
            };
        }
    };
    if redacted {
        bundle::redact_value(&mut value);
    }
    Section::Collected(value)
}

/// One look.
///
/// # Errors
/// Why there is none, in words.
pub async fn see(
    fleet: &mut Fleet,
    config: &RedisConfig,
    clock: fn() -> Timestamp,
    looker: &dyn Watch,
) -> Result<Look, String> {
    let taken_at = match time(fleet).await {
        Ok(at) => at,
        Err(_) => clock(),
    };
    let place = fleet.target.label();
    let counters = match probe_lfu(fleet).await {
        Ok(lfu) => lfu == Lfu::Counts,
        Err(lost) => return Err(lost.at(&place).to_string()),
    };
    let info = match fleet.nodes.first_mut() {
        Some(node) => node_info(node).await.ok(),
        None => None,
    };
    let options = StampedeOptions {
        pattern: None,
        patterns: config
            .groups
            .iter()
            .map(|text| Pattern::new(text))
            .collect(),
        budget: Budget::gentle(WALL),
        counters,
    };
    let pass = stampede_pass(fleet, taken_at, options, looker).await;
    let options = QueueOptions {
        walk: true,
        streams: false,
        touch: false,
        budget: Budget::gentle(WALL),
    };
    let (found, of_queues) = queues(fleet, taken_at, looker, options).await;
    let bounds = config.queues();
    let rows = found
        .into_iter()
        .map(|queue| judged(queue, &bounds))
        .collect();
    let mut coverage = pass.coverage;
    coverage.complete &= of_queues.complete;
    if let Some(note) = of_queues.sections.get("queues") {
        coverage.sections.insert("queues".into(), note.clone());
    }
    fleet.state_own_effect(&mut coverage);
    let hottest = pass
        .groups
        .iter()
        .filter_map(|seen| Some((seen.seen.hottest?, seen)))
        .max_by_key(|(counter, _)| *counter)
        .and_then(|(counter, seen)| {
            let (_, key) = seen.key.clone()?;
            Some((KeyName(key).text(), seen.seen.group.clone(), counter))
        });
    let groups = pass.groups.into_iter().map(|seen| seen.seen).collect();
    let around = Around {
        top: 20,
        ..Around::default()
    };
    let target = fleet.target.clone();
    let report = stampede::report(taken_at, target, coverage, groups, around);
    Ok(Look {
        taken_at: Some(taken_at),
        target: report.head.target,
        coverage: report.head.coverage,
        info,
        stampede: report.data,
        hottest,
        queues: rows,
    })
}
