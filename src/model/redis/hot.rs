//! Hot keys: which, by which measure, and what else is known of them.

use serde::{Deserialize, Serialize};

use super::{KeyName, KeyType};
use crate::model::{Millis, Percent};

/// How hot keys were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HotMethod {
    /// The server's LFU counters, of every key.
    Lfu,
    /// A sample of the commands that go by.
    Monitor,
    /// A HOTKEYS session that somebody else had started (Redis 8.6).
    HotkeysSession,
    /// A HOTKEYS session of our own (Redis 8.6).
    HotkeysStarted,
    /// The server's own list (Valkey 9.2).
    HotkeysTopK,
}

/// What a score counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HotUnit {
    /// 0 to 255, a logarithm of the accesses that falls with time: never a number of requests.
    LfuCounter,
    /// Commands that named the key, in the window.
    Accesses,
    /// Microseconds of the server's time, in the window.
    CpuUs,
    /// Bytes to and from clients, in the window.
    NetBytes,
    /// Accesses a second, as the server estimates them.
    PerSecond,
}

/// One hot key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HotKey {
    #[serde(flatten)]
    pub key: KeyName,
    pub node: String,
    pub database: Option<u32>,
    pub group: String,
    pub score: u64,
    pub unit: HotUnit,
    /// Of all accesses of the window; unknown for counters.
    pub share_pct: Option<Percent>,
    #[serde(flatten)]
    pub about: KeyFacts,
}

/// What was read of a key after it was chosen; all unknown where it is gone, or may not be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyFacts {
    #[serde(rename = "type")]
    pub kind: Option<KeyType>,
    pub expires: Option<bool>,
    /// `null` where it doesn't expire, or isn't known: see `expires`.
    pub ttl_ms: Option<Millis>,
    pub bytes: Option<u64>,
}

/// A group of keys, and how hot it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HotGroup {
    pub group: String,
    /// Of counters: its keys. Of a sample: those that were seen.
    pub keys: u64,
    /// The score of its hottest key.
    pub hottest: u64,
    /// The sum of a sample; unknown for counters, which are logarithms.
    pub accesses: Option<u64>,
    pub share_pct: Option<Percent>,
    /// With `--attributes`.
    pub bytes: Option<u64>,
    pub with_ttl: Option<u64>,
}

/// A ranking, and how it was come to.
#[derive(Clone, Debug)]
pub struct HotFound {
    pub method: HotMethod,
    /// How long was looked; `None` for counters.
    pub window: Option<Millis>,
    /// Keys whose counter was read, or accesses that were seen.
    pub sampled: u64,
    pub keys: Vec<HotKey>,
    pub groups: Vec<HotGroup>,
    /// Of counters: how many keys have each.
    pub counters: Option<Box<[u64; 256]>>,
    /// Keys left out with the same score as the last one of the list.
    pub tied_out: u64,
}
