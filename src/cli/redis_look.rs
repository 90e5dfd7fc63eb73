//! One look at a Redis for triage: its numbers and its groups, within a small budget.

use std::time::Duration;

use super::args::redis::RedisArgs;
use super::commands::Context;
use super::fault::Fault;
use super::redis_place::{self, Looker};
use super::settings;
use crate::analysis::redis::Look;
use crate::analysis::redis::queues::judged;
use crate::analysis::redis::stampede::{self, Around};
use crate::model::KeyName;
use crate::source::redis::queues::{QueueOptions, queues};
use crate::source::redis::{
    self, Budget, Lfu, Limits, StampedeOptions, node_info, probe_lfu, stampede_pass, time,
};

/// Triage is to answer soon.
const WALL: Duration = Duration::from_secs(10);

/// Looks, or says why it can't; `None` where no Redis is asked for.
///
/// # Errors
/// When what was given is no address.
pub async fn look(
    ctx: &mut Context<'_>,
    args: &RedisArgs,
) -> Result<Option<Result<Look, String>>, Fault> {
    if args.redis.is_none() {
        return Ok(None);
    }
    redis_place::warn_of_password(ctx, args);
    let Some(address) = redis_place::address(args, None, ctx.env)? else {
        return Ok(None);
    };
    let limits = Limits {
        connect: redis_place::CONNECT,
        answer: redis_place::CONNECT,
    };
    let mut fleet = match redis::open(&address, None, limits).await {
        Ok(fleet) => fleet,
        Err(error) => return Ok(Some(Err(error.to_string()))),
    };
    let taken_at = match time(&mut fleet).await {
        Some(at) => at,
        None => super::rounds::local_now(),
    };
    let place = fleet.target.label();
    let counters = match probe_lfu(&mut fleet).await {
        Ok(lfu) => lfu == Lfu::Counts,
        Err(lost) => return Ok(Some(Err(lost.at(&place).to_string()))),
    };
    let info = match fleet.nodes.first_mut() {
        Some(node) => node_info(node).await.ok(),
        None => None,
    };
    let looker = Looker::new(ctx, "looking at Redis", "keys")?;
    let options = StampedeOptions {
        pattern: None,
        patterns: redis_place::patterns(ctx.env)?,
        budget: Budget::gentle(WALL),
        counters,
    };
    let pass = stampede_pass(&mut fleet, taken_at, options, &looker).await;
    let options = QueueOptions {
        walk: true,
        streams: false,
        touch: false,
        budget: Budget::gentle(WALL),
    };
    let (found, of_queues) = queues(&mut fleet, taken_at, &looker, options).await;
    drop(looker);
    let bounds = settings::redis_config(ctx.env)?.queues();
    let rows = found
        .into_iter()
        .map(|queue| judged(queue, &bounds))
        .collect();
    let mut coverage = pass.coverage;
    coverage.complete &= of_queues.complete;
    if let Some(note) = of_queues.sections.get("queues") {
        coverage.sections.insert("queues", note.clone());
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
    let report = stampede::report(taken_at, fleet.target, coverage, groups, around);
    Ok(Some(Ok(Look {
        target: report.head.target,
        coverage: report.head.coverage,
        info,
        stampede: report.data,
        hottest,
        queues: rows,
    })))
}
