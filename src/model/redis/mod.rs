//! The data of Redis (and Valkey): its server, its keys, how much of them was seen, its queues.

mod big;
mod coverage;
mod expiry;
mod hot;
mod info;
mod key;
mod queue;
mod queue_limits;
mod rights;
mod stampede;
mod target;

pub use big::{BigKey, BigMeasured, GroupSum, TypeSum};
pub use coverage::{NodeWalk, OwnEffect, RedisCoverage, SectionNote, Stopped, Tally};
pub use expiry::{Cliff, ExpiryGroup, ExpiryVerdict, Jitter};
pub use hot::{HotFound, HotGroup, HotKey, HotMethod, HotUnit, KeyFacts};
pub use info::RedisInfo;
pub use key::{KeyName, KeyType};
pub use queue::{Queue, QueueCounters, QueueHead, QueueSystem};
pub use queue_limits::{QueueBounds, QueueLimits};
pub use rights::{Allowed, Right, SlowCommand};
pub use stampede::{Guarded, Locks, Misses, Protection, Soft, Storming};
pub use target::{RedisMode, RedisRole, RedisTarget};
