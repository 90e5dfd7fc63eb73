//! One look at all queues that were found.

use std::time::Instant;

use super::discover::QueuePlaces;
use super::moment::Clock;
use super::{bullmq, celery, resque, rq, sidekiq, stream};
use crate::model::{Queue, RedisCoverage, Timestamp};
use crate::source::redis::fleet::Fleet;

/// Looks at each once; `now` is the server's time at the call. What it adds to the server's statistics, and what couldn't
/// be read, goes to the coverage.
pub async fn inspect(
    fleet: &mut Fleet,
    places: &QueuePlaces,
    now: Timestamp,
    coverage: &mut RedisCoverage,
) -> Vec<Queue> {
    at(fleet, places, &Clock::new(now), coverage).await
}

pub(super) async fn at(
    fleet: &mut Fleet,
    places: &QueuePlaces,
    clock: &Clock,
    coverage: &mut RedisCoverage,
) -> Vec<Queue> {
    let begun = Instant::now();
    for node in &mut fleet.nodes {
        node.silent = None;
    }
    let mut rows = Vec::new();
    for site in &places.sidekiq {
        rows.extend(sidekiq::inspect(fleet, site, clock).await);
    }
    for site in &places.resque {
        rows.extend(resque::inspect(fleet, site, clock).await);
    }
    for broker in &places.celery {
        rows.extend(celery::inspect(fleet, broker, clock).await);
    }
    rows.extend(bullmq::inspect(fleet, &places.bullmq, clock).await);
    for site in &places.rq {
        rows.extend(rq::inspect(fleet, site, clock).await);
    }
    rows.extend(stream::inspect(fleet, &places.streams, clock).await);
    rows.sort_by(|a, b| (a.system, &a.name).cmp(&(b.system, &b.name)));
    fleet.state_own_effect(coverage);
    coverage.own_effect.took_ms += u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let refused: Vec<&Queue> = rows.iter().filter(|row| row.refused.is_some()).collect();
    if let Some(first) = refused.first() {
        let why = format!(
            "{} of {} queues couldn't be read wholly: {}: {}",
            refused.len(),
            rows.len(),
            first.name,
            first.refused.clone().unwrap_or_default()
        );
        coverage.without("queues", "partial", why);
    }
    rows
}
