//! Queues of job libraries and streams: where they are, and how each stands. Of a queue only what costs the server no
//! time is read; of jobs their class, id and times, never their arguments.

mod ask;
mod bullmq;
mod celery;
mod discover;
mod inspect;
mod moment;
mod resque;
mod rq;
mod seen;
mod share;
mod sidekiq;
mod site;
mod stream;
mod whose;

use super::fleet::Fleet;
use super::walk::{Budget, Watch};
use crate::model::{Queue, RedisCoverage, Timestamp};

pub use discover::{QueuePlaces, discover};
pub use inspect::inspect;

/// How queues are looked for.
#[derive(Clone, Copy, Debug)]
pub struct QueueOptions {
    /// All keys are walked for them, by name; else only the libraries' usual places are looked at.
    pub walk: bool,
    /// Streams have no names of their own: a second walk (`SCAN TYPE`), which adds a lookup of each key to
    /// `keyspace_hits` (measured on 7.0.15), though none moves its LRU or LFU.
    pub streams: bool,
    /// Read them also where that makes their keys hotter, and the server evicts by it.
    pub touch: bool,
    pub budget: Budget,
}

/// Finds the queues and looks at each once. `now` is the server's time at the call.
pub async fn queues(
    fleet: &mut Fleet,
    now: Timestamp,
    watch: &dyn Watch,
    options: QueueOptions,
) -> (Vec<Queue>, RedisCoverage) {
    let clock = moment::Clock::new(now);
    let (places, mut coverage) = discover(fleet, watch, options).await;
    let queues = inspect::at(fleet, &places, &clock, &mut coverage).await;
    (queues, coverage)
}
