//! Queues of job libraries and consumer groups of streams: how much waits, how old it is, who works on it.

use serde::{Deserialize, Serialize};

use crate::model::Millis;

/// Whose layout of keys it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueSystem {
    Sidekiq,
    Resque,
    Celery,
    Bullmq,
    Rq,
    /// A consumer group of a stream.
    Stream,
}

impl QueueSystem {
    pub fn name(self) -> &'static str {
        match self {
            Self::Sidekiq => "sidekiq",
            Self::Resque => "resque",
            Self::Celery => "celery",
            Self::Bullmq => "bullmq",
            Self::Rq => "rq",
            Self::Stream => "stream",
        }
    }
}

/// The next job to run. Its arguments are never kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueHead {
    /// The class, task or function; of an Active Job the one that is wrapped.
    pub class: Option<String>,
    pub id: Option<String>,
    /// Since it was put into the queue. With priorities, or after a job at the front, another one is older.
    pub age_ms: Option<Millis>,
    /// Tells it from other heads without keeping what is in it.
    #[serde(skip)]
    pub mark: u64,
}

/// What the library has counted since ever, for rates between two looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounters {
    /// Jobs put in: BullMQ's `:id`, a stream's entries-added.
    pub added: Option<u64>,
    /// Jobs taken out: a group's entries-read; jobs run by Sidekiq (`stat:processed`), where it has but one queue.
    pub taken: Option<u64>,
    /// Jobs of BullMQ in any state, finished ones that are kept included; entries that a stream has.
    pub kept: Option<u64>,
    /// The entry of a stream that a group was given last.
    pub given: Option<(u64, u64)>,
}

/// One queue as it stands. What its library doesn't tell, or this login may not read, is `None`, never 0.
///
/// Where a library keeps something for all of its queues together and it is too long to be shared out among them, a row
/// with the name `*` has it and the others have `None`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Queue {
    pub system: QueueSystem,
    /// With the prefix of its keys where that isn't the library's own; of a stream `stream/group`.
    pub name: String,
    /// Waiting to be run now, of all priorities; without those that are due later.
    pub depth: Option<u64>,
    /// Of the waiting ones.
    pub oldest_age_ms: Option<Millis>,
    /// The oldest one is at least that old: it was concluded, not read.
    pub oldest_age_at_least: bool,
    /// Taken by a worker and not done. Of Celery: taken and not acknowledged.
    pub in_flight: Option<u64>,
    pub oldest_in_flight_ms: Option<Millis>,
    /// The longest in flight is so for at least that long: not all of them were looked at.
    #[serde(default)]
    pub oldest_in_flight_at_least: bool,
    /// With a time at which it is due, overdue ones included. In BullMQ and RQ retries are among them.
    pub scheduled: Option<u64>,
    /// Scheduled, or to be tried again, at a time that has passed.
    pub overdue: Option<u64>,
    /// Waiting to be tried again.
    pub retry: Option<u64>,
    /// Failed for good, as far as they are kept.
    pub dead: Option<u64>,
    pub oldest_dead_ms: Option<Millis>,
    /// Live workers that listen to it.
    pub workers: Option<u64>,
    /// Of the worker that has been silent for longest, dead ones included where their last word is kept.
    pub oldest_heartbeat_ms: Option<Millis>,
    pub paused: Option<bool>,
    pub head: Option<QueueHead>,
    /// Jobs put in, where the library counts them: streams, and BullMQ while the jobs that it keeps account for its counter
    /// (it counts a job whose id is there already as well). Of Sidekiq with one queue what was run and the change of depth
    /// tell it, retries included.
    pub arrival_per_s: Option<f64>,
    /// Jobs taken out: counted by streams, and by Sidekiq with one queue; what is trimmed away isn't taken. Of BullMQ what
    /// came less what is left, so a job that is to be tried again hasn't gone.
    pub drain_per_s: Option<f64>,
    /// How fast the depth changes; below 0 it drains.
    pub net_per_s: Option<f64>,
    /// At that pace; `None` where it doesn't drain.
    pub empty_in_ms: Option<Millis>,
    pub notes: Vec<String>,
    /// Why a part of it couldn't be read.
    pub refused: Option<String>,
    /// Of the overdue ones: for more than a minute. Schedulers look every few seconds, so others are no fault.
    #[serde(skip)]
    pub long_overdue: Option<u64>,
    #[serde(skip)]
    pub counters: QueueCounters,
    /// What was counted of an unknown depth.
    #[serde(skip)]
    pub depth_at_least: Option<u64>,
    /// Between two looks, long enough apart, the next to run has stayed the same.
    #[serde(skip)]
    pub head_stays: Option<bool>,
}

impl Queue {
    /// Nothing is known of it yet.
    pub fn new(system: QueueSystem, name: String) -> Self {
        Self {
            system,
            name,
            depth: None,
            oldest_age_ms: None,
            oldest_age_at_least: false,
            in_flight: None,
            oldest_in_flight_ms: None,
            oldest_in_flight_at_least: false,
            scheduled: None,
            overdue: None,
            retry: None,
            dead: None,
            oldest_dead_ms: None,
            workers: None,
            oldest_heartbeat_ms: None,
            paused: None,
            head: None,
            arrival_per_s: None,
            drain_per_s: None,
            net_per_s: None,
            empty_in_ms: None,
            notes: Vec::new(),
            refused: None,
            long_overdue: None,
            depth_at_least: None,
            head_stays: None,
            counters: QueueCounters::default(),
        }
    }

    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }
}
