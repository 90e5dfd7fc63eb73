//! How a group of cached keys is guarded against everybody rebuilding it at once.

use serde::{Deserialize, Serialize};

use super::{ExpiryVerdict, KeyName};
use crate::model::{Millis, Percent};

/// What the guards of a group come to; the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protection {
    /// A lock key has no TTL: whoever holds it and dies blocks the rebuild for ever.
    LockWithoutTtl,
    /// A lock lives shorter than the rebuild takes: a second rebuild begins while the first runs.
    LockTooShort,
    /// Several missed the same key while it was being rebuilt.
    Unprotected,
    /// Its keys expire together.
    NoJitter,
    /// No guard was seen: neither a lock, nor a copy that outlives its use.
    NotSeen,
    Protected,
}

impl Protection {
    pub fn word(self) -> &'static str {
        match self {
            Self::LockWithoutTtl => "lock without TTL",
            Self::LockTooShort => "lock too short",
            Self::Unprotected => "unprotected",
            Self::NoJitter => "no jitter",
            Self::NotSeen => "no guard seen",
            Self::Protected => "protected",
        }
    }
}

/// Lock keys that were there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Locks {
    pub group: Option<String>,
    pub keys: u64,
    pub without_ttl: u64,
    /// The longest time left: a lock is given at least so much.
    pub longest_ms: Option<Millis>,
}

/// Whether a copy is kept beyond the time that it is good for, by one value that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Soft {
    /// `null`: not looked at (`--peek`), or not of a kind that can be read.
    pub found: Option<bool>,
    pub field: Option<String>,
    /// How long the copy is kept after its time: what is given to a rebuild.
    pub stale_for_ms: Option<Millis>,
    pub why_unknown: Option<String>,
}

/// Misses of a group's keys while they were listened to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Misses {
    pub misses: u64,
    pub keys: u64,
    /// The key that was missed most often before it was written again.
    pub worst: Option<KeyName>,
    pub worst_misses: u64,
    /// From the first miss of that key to its next write; `null`: it wasn't written while we listened.
    pub rebuild_ms: Option<Millis>,
    /// A lock of that key was set while it was missing: who waits for it misses as well.
    #[serde(default)]
    pub locked: bool,
}

/// One group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Guarded {
    pub group: String,
    pub keys: u64,
    pub with_ttl: u64,
    /// The LFU counter of its hottest key; `null` where there are no counters.
    pub hottest: Option<u64>,
    pub expiry: ExpiryVerdict,
    pub peak_10s_share: Option<Percent>,
    pub locks: Locks,
    pub soft: Soft,
    pub misses: Option<Misses>,
    pub verdict: Protection,
    pub evidence: Vec<String>,
}

/// One statement that many sessions of PostgreSQL run at the same time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storming {
    pub statement: String,
    pub sessions: u64,
    pub longest_ms: Millis,
}
