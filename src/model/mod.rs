//! The data: plain serde structs that every other module reads. No I/O, no clock, no colour.
//!
//! A `Snapshot` is one round of reads of one server; everything that is shown is a pure function of it.

mod catalog;
mod effect;
mod exit;
mod finding;
mod lock;
mod log;
mod log_read;
mod origin;
mod pooler;
mod redis;
mod secret;
mod section;
mod session;
mod snapshot;
mod target;
mod thresholds;
mod units;
mod watchlist;

pub use catalog::{Database, Override, PreparedXact, Relation, Role, Setting, Slot};
pub use effect::{Done, Outcome, Signal, Verb};
pub use exit::ExitCode;
pub use finding::{FindingId, Pattern, Severity};
pub use lock::{BlockedBy, Lock, LockMode, LockTag};
pub use log::{
    LOG_UNREAD, LogBefore, LogCancellation, LogDeadlock, LogEdge, LogEvent, LogLockWait, LogMoment,
    LogObject, LogPlace, LogServer, LogSession, LogStart, LogTermination, LogWaitStage, LogWhat,
};
pub use log_read::{LogFormat, LogPacking, LogRead};
pub use origin::{Link, Origin, Parameter, Tls, Verified};
pub use pooler::{Pool, Pooler};
pub use redis::{
    Allowed, BigKey, BigMeasured, Cliff, ExpiryGroup, ExpiryVerdict, GroupSum, Guarded, HotFound,
    HotGroup, HotKey, HotMethod, HotUnit, Jitter, KeyFacts, KeyName, KeyType, Locks, Misses,
    NodeWalk, OwnEffect, Protection, Queue, QueueBounds, QueueCounters, QueueHead, QueueLimits,
    QueueSystem, RedisCoverage, RedisInfo, RedisMode, RedisRole, RedisTarget, Right, SectionNote,
    SlowCommand, Soft, Stopped, Storming, Tally, TypeSum,
};
pub use secret::Secret;
pub use section::{Part, Section};
pub use session::{BackendId, BackendType, Client, Session, SessionState, WaitEvent};
pub use snapshot::{
    Clock, Login, QueryRows, Redaction, RedactionLevel, SNAPSHOT_FORMAT, Server, SlotLimit,
    SlotRefusal, Snapshot,
};
pub use target::{ServerRole, Target};
pub use thresholds::Thresholds;
pub use units::{Millis, Oid, Percent, Pid, Timestamp, Xid, count, counted, thousands};
pub use watchlist::WATCHED_SETTINGS;
