//! `redis queues`: how fast they change between two looks, and what to think of each.

mod rates;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::head::RedisReport;
use crate::model::{
    ExitCode, Millis, Queue, QueueBounds, QueueLimits, RedisCoverage, RedisTarget, Timestamp,
};

pub use rates::rates;

/// What to think of one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueVerdict {
    Ok,
    /// Its library tells nothing, or this login may not read it, or nobody has said what is too much.
    Unknown,
    Warning,
    Critical,
}

/// One queue and what to think of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueRow {
    #[serde(flatten)]
    pub queue: Queue,
    pub verdict: QueueVerdict,
    /// What speaks for it, the worst first.
    pub reasons: Vec<String>,
    /// How bad each of them is. Reports of before have none.
    #[serde(default)]
    pub severities: Vec<QueueVerdict>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Queues {
    /// Between the two looks; `null`: it was looked once, so nothing is known of rates.
    pub sampled_ms: Option<Millis>,
    pub queues: Vec<QueueRow>,
}

/// Queues in the order they are given in; `sampled`: how far apart the two looks were that `rates` was told of.
pub fn report(
    taken_at: Timestamp,
    target: RedisTarget,
    coverage: RedisCoverage,
    queues: Vec<Queue>,
    bounds: &QueueBounds,
    sampled: Option<Duration>,
) -> RedisReport<Queues> {
    let queues = queues
        .into_iter()
        .map(|queue| judged(queue, bounds))
        .collect();
    let data = Queues {
        sampled_ms: sampled.map(Millis::from),
        queues,
    };
    RedisReport::of("queues", taken_at, target, coverage, data)
}

/// Of this many percent of its bound on a queue is told.
const NEAR_PCT: f64 = 80.0;
/// Times the limit of its oldest job's age that are critical, and times the usual number of dead that are told.
const FAR: u64 = 3;

impl QueueVerdict {
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unknown => "unknown",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

impl QueueRow {
    /// `sidekiq/default`
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.queue.system.name(), self.queue.name)
    }

    /// Each reason, and how bad it is.
    pub fn judged(&self) -> impl Iterator<Item = (QueueVerdict, &str)> {
        let severity = |n| self.severities.get(n).copied().unwrap_or(self.verdict);
        let reasons = self.reasons.iter().enumerate();
        reasons.map(move |(n, reason)| (severity(n), reason.as_str()))
    }
}

impl RedisReport<Queues> {
    /// For `--check`: by the worst queue. What nobody has set a limit for is no alarm. That the quick way finds none
    /// doesn't tell that there is none.
    pub fn exit_code(&self) -> ExitCode {
        let coverage = &self.head.coverage;
        match self.data.queues.iter().map(|row| row.verdict).max() {
            Some(QueueVerdict::Critical) => ExitCode::Critical,
            Some(QueueVerdict::Warning) => ExitCode::Warning,
            None if coverage.skipped("discovery").is_some() => ExitCode::Unknown,
            _ if !coverage.sees_all() => ExitCode::Unknown,
            _ => ExitCode::Ok,
        }
    }
}

/// Where nobody has set a limit.
const USUAL: Millis = Millis::from_secs(300);
/// A job that has waited for so long isn't one that has just come.
const OLD: Millis = Millis::from_secs(60);

/// One queue against its limits.
pub fn judged(queue: Queue, bounds: &QueueBounds) -> QueueRow {
    let (verdict, said) = verdict(&queue, bounds.of(&queue));
    let (severities, reasons) = said.into_iter().unzip();
    QueueRow {
        queue,
        verdict,
        reasons,
        severities,
    }
}

/// Why, and how bad that is.
type Said = (QueueVerdict, String);

/// The worst of what speaks against it; `Unknown` where nothing could be looked at.
fn verdict(queue: &Queue, limits: QueueLimits) -> (QueueVerdict, Vec<Said>) {
    let waits = queue.depth.or(queue.depth_at_least).is_some_and(|n| n > 0);
    let mut looked_at = queue.depth == Some(0);
    let mut said: Vec<Said> = Vec::new();
    if let (Some(depth), Some(bound)) = (queue.depth, limits.bound) {
        looked_at = true;
        let pct = 100.0 * depth as f64 / bound.max(1) as f64;
        let what = format!(
            "{depth} {}, {pct:.0} % of the bound of {bound}",
            waits_or_wait(depth)
        );
        if depth >= bound {
            said.push((QueueVerdict::Critical, what));
        } else if pct > NEAR_PCT {
            said.push((QueueVerdict::Warning, what));
        }
    }
    if let (Some(least), Some(bound)) = (queue.depth_at_least, limits.bound)
        && least >= bound
    {
        looked_at = true;
        let what = format!(
            "at least {least} {}, the bound is {bound}",
            waits_or_wait(least)
        );
        said.push((QueueVerdict::Critical, what));
    }
    if let (Some(age), Some(limit)) = (queue.oldest_age_ms, limits.oldest) {
        // Of a bound only that it is too old can be known.
        looked_at |= !queue.oldest_age_at_least || age > limit;
        let least = if queue.oldest_age_at_least {
            "at least "
        } else {
            ""
        };
        let what = format!("the oldest waits for {least}{age}, the limit is {limit}");
        if age.0 > limit.0.saturating_mul(FAR) {
            said.push((QueueVerdict::Critical, what));
        } else if age > limit {
            said.push((QueueVerdict::Warning, what));
        }
    }
    if let (Some(dead), Some(usual)) = (queue.dead, limits.dead) {
        looked_at = true;
        if dead > usual.saturating_mul(FAR) {
            let are = |n: u64| if n == 1 { "is" } else { "are" };
            let what = format!("{dead} {} dead, {usual} {} usual", are(dead), are(usual));
            said.push((QueueVerdict::Warning, what));
        }
    }
    if let Some(overdue) = queue.long_overdue {
        looked_at = true;
        if overdue > 0 {
            let have = if overdue == 1 { "has" } else { "have" };
            let what = format!(
                "{overdue} {have} been overdue for more than a minute: the scheduler is late, or there is none"
            );
            said.push((QueueVerdict::Warning, what));
        }
    }
    if let Some(workers) = queue.workers {
        looked_at = true;
        let idle = queue.drain_per_s.is_none_or(|drain| drain <= 0.0);
        // Who pauses it stops its workers as well.
        if workers == 0 && waits && idle && queue.paused != Some(true) {
            // A job that has just come is taken by the next worker that starts.
            let far = limits.oldest.unwrap_or(USUAL).0.saturating_mul(FAR);
            let severity = match queue.oldest_age_ms {
                Some(age) if age.0 > far => QueueVerdict::Critical,
                _ => QueueVerdict::Warning,
            };
            said.push((severity, "no worker listens to it".into()));
        }
    }
    if waits && queue.paused != Some(true) {
        let still = match (queue.drain_per_s, queue.net_per_s) {
            (Some(drain), _) => Some(drain <= 0.0),
            (None, Some(net)) => queue.head_stays.map(|stays| stays && net >= 0.0),
            (None, None) => None,
        };
        looked_at |= still.is_some();
        if still == Some(true) {
            let what = "nothing was taken out of it between the two looks";
            said.push((QueueVerdict::Warning, what.into()));
        }
        // It needs no limit to be a backlog: it gets longer, and what waits has waited for a while.
        if let (Some(net), Some(age)) = (queue.net_per_s, queue.oldest_age_ms)
            && net > 0.0
            && age >= OLD
        {
            let what = format!("it grows by {net:.1} a second, and the oldest waits for {age}");
            said.push((QueueVerdict::Warning, what));
        }
    }
    let moves =
        queue.drain_per_s.is_some_and(|drain| drain > 0.0) || queue.head_stays == Some(false);
    if let (true, None, Some(age)) = (
        waits && queue.paused != Some(true),
        limits.oldest,
        queue.oldest_age_ms,
    ) && age > USUAL
    {
        let what =
            format!("the oldest waits for {age}; no limit is set, from {USUAL} on it is told");
        said.push((QueueVerdict::Warning, what));
    }
    if said.is_empty() && waits && !moves && limits.bound.is_none() && limits.oldest.is_none() {
        let what = "no limit is set for it: redis.queues in stanch.yaml";
        return (
            QueueVerdict::Unknown,
            vec![(QueueVerdict::Unknown, what.into())],
        );
    }
    said.sort_by_key(|(verdict, _)| std::cmp::Reverse(*verdict));
    let worst = match said.first() {
        Some((worst, _)) => *worst,
        None if !looked_at => QueueVerdict::Unknown,
        None if queue.refused.is_some() => QueueVerdict::Unknown,
        None => QueueVerdict::Ok,
    };
    (worst, said)
}

fn waits_or_wait(jobs: u64) -> &'static str {
    if jobs == 1 { "waits" } else { "wait" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::QueueSystem;

    fn queue(system: QueueSystem, depth: u64) -> Queue {
        Queue {
            depth: Some(depth),
            ..Queue::new(system, "q".into())
        }
    }

    type Case = (fn(&mut Queue), QueueLimits, QueueVerdict);

    #[test]
    fn verdicts() {
        use QueueVerdict::{Critical, Ok, Unknown, Warning};
        let limits = QueueLimits {
            bound: Some(100),
            oldest: Some(Millis(60_000)),
            dead: Some(10),
        };
        let none = QueueLimits::default();
        let with = |change: fn(&mut Queue)| {
            let mut queue = queue(QueueSystem::Rq, 5);
            change(&mut queue);
            queue
        };
        let cases: [Case; 26] = [
            (|_| (), none, Unknown),
            (|q| q.depth = Some(1_000_000), none, Unknown),
            (|q| q.depth = Some(0), none, Ok),
            (|q| q.depth = Some(80), limits, Ok),
            (|q| q.depth = Some(81), limits, Warning),
            (|q| q.depth = Some(100), limits, Critical),
            (
                |q| (q.depth, q.depth_at_least) = (None, Some(100)),
                limits,
                Critical,
            ),
            (
                |q| (q.depth, q.depth_at_least) = (None, Some(99)),
                limits,
                Unknown,
            ),
            (|q| q.oldest_age_ms = Some(Millis(60_000)), limits, Ok),
            (|q| q.oldest_age_ms = Some(Millis(60_001)), limits, Warning),
            (
                |q| q.oldest_age_ms = Some(Millis(180_001)),
                limits,
                Critical,
            ),
            (|q| q.dead = Some(30), limits, Ok),
            (|q| q.dead = Some(31), limits, Warning),
            (|q| q.dead = Some(31), none, Unknown),
            (|q| q.long_overdue = Some(1), none, Warning),
            // Schedulers look every few seconds.
            (
                |q| (q.overdue, q.long_overdue) = (Some(3), Some(0)),
                none,
                Unknown,
            ),
            (|q| q.workers = Some(0), none, Warning),
            (|q| q.workers = Some(0), limits, Warning),
            (
                |q| (q.workers, q.oldest_age_ms) = (Some(0), Some(Millis(180_001))),
                limits,
                Critical,
            ),
            // Where no limit is set, the usual one of five minutes stands for it.
            (
                |q| (q.workers, q.oldest_age_ms) = (Some(0), Some(Millis(900_001))),
                none,
                Critical,
            ),
            (
                |q| (q.workers, q.paused) = (Some(0), Some(true)),
                none,
                Unknown,
            ),
            (|q| (q.workers, q.depth) = (Some(0), Some(0)), none, Ok),
            (|q| q.workers = Some(2), none, Unknown),
            (|q| q.drain_per_s = Some(0.0), none, Warning),
            (|q| q.drain_per_s = Some(0.5), none, Ok),
            (
                |q| (q.workers, q.refused) = (Some(2), Some("NOPERM".into())),
                none,
                Unknown,
            ),
        ];
        for (n, (change, limits, want)) in cases.into_iter().enumerate() {
            let (verdict, reasons) = verdict(&with(change), limits);
            assert_eq!(verdict, want, "{n}: {reasons:?}");
            assert!(want == Unknown || reasons.is_empty() == (want == Ok), "{n}");
        }
        let paused = with(|q| (q.drain_per_s, q.paused) = (Some(0.0), Some(true)));
        assert_eq!(verdict(&paused, none).0, Unknown);
    }

    #[test]
    fn a_bound_of_the_age_is_no_good_news() {
        let mut bounded = queue(QueueSystem::Celery, 5);
        bounded.oldest_age_ms = Some(Millis(1000));
        bounded.oldest_age_at_least = true;
        let limits = |ms| QueueLimits {
            oldest: Some(Millis(ms)),
            ..QueueLimits::default()
        };
        assert_eq!(verdict(&bounded, limits(2000)).0, QueueVerdict::Unknown);
        assert_eq!(verdict(&bounded, limits(500)).0, QueueVerdict::Warning);
    }

    #[test]
    fn each_reason_is_as_bad_as_it_is() {
        let mut unheard = queue(QueueSystem::Rq, 1);
        (unheard.workers, unheard.long_overdue) = (Some(0), Some(1));
        (unheard.dead, unheard.oldest_age_ms) = (Some(1), Some(Millis(1_000_000)));
        let default = QueueLimits {
            dead: Some(0),
            ..QueueLimits::default()
        };
        let bounds = QueueBounds {
            default,
            ..QueueBounds::default()
        };
        let mut row = judged(unheard, &bounds);
        let told: Vec<String> = row
            .judged()
            .map(|(severity, why)| format!("{}: {}", severity.word(), why))
            .collect();
        assert_eq!(
            told,
            [
                "critical: no worker listens to it",
                "warning: 1 is dead, 0 are usual",
                "warning: 1 has been overdue for more than a minute: the scheduler is late, or there is none",
                "warning: the oldest waits for 16m 40s; no limit is set, from 5m 00s on it is told",
            ]
        );
        row.severities.clear();
        assert!(
            row.judged()
                .all(|(severity, _)| severity == QueueVerdict::Critical)
        );
    }

    #[test]
    fn a_head_that_stays_is_told() {
        let mut stays = queue(QueueSystem::Celery, 5);
        (stays.net_per_s, stays.head_stays) = (Some(0.1), Some(true));
        let (verdict_of, reasons) = verdict(&stays, QueueLimits::default());
        assert_eq!(verdict_of, QueueVerdict::Warning);
        assert!(
            reasons[0].1.contains("nothing was taken out"),
            "{reasons:?}"
        );
        stays.head_stays = Some(false);
        let moves = verdict(&stays, QueueLimits::default());
        assert_eq!(moves.0, QueueVerdict::Ok);
        stays.head_stays = None;
        let soon = verdict(&stays, QueueLimits::default());
        assert_eq!(soon.0, QueueVerdict::Unknown);
    }
}
