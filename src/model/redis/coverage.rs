//! How much of a Redis was seen, and what seeing it did to the server.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::Millis;

/// Why a walk ended before its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "why", content = "what")]
pub enum Stopped {
    /// The budget of time is used up.
    Time(Millis),
    /// The server answers slower than before: its PING then and now, in microseconds.
    Slower { before_us: u64, now_us: u64 },
    /// The person stopped it.
    Asked,
    /// The connection or the server failed, in its own words.
    Failed(String),
}

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Time(limit) => write!(f, "the budget of {limit} is used up (--budget, --full)"),
            Self::Slower { before_us, now_us } => write!(
                f,
                "the server's PING went from {:.1} ms to {:.1} ms (--full goes on all the same)",
                *before_us as f64 / 1000.0,
                *now_us as f64 / 1000.0
            ),
            Self::Asked => f.write_str("stopped by you"),
            Self::Failed(what) => f.write_str(what),
        }
    }
}

/// What became of single keys between the walk and the read of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Gone when they were read.
    pub vanished: u64,
    /// This login may not read them.
    pub not_permitted: u64,
    /// They were on their way to another node of the cluster.
    pub moved: u64,
    /// Any other refusal.
    pub failed: u64,
}

impl Tally {
    pub fn add(&mut self, other: Self) {
        self.vanished += other.vanished;
        self.not_permitted += other.not_permitted;
        self.moved += other.moved;
        self.failed += other.failed;
    }
}

/// One node's keys, walked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeWalk {
    pub node: String,
    /// `DBSIZE` before the walk: keys that are logically expired count until they are removed.
    pub keys_total: Option<u64>,
    pub keys_seen: u64,
    /// The cursor came back to 0.
    pub complete: bool,
    pub stopped: Option<Stopped>,
    #[serde(flatten)]
    pub tally: Tally,
}

/// What the reads themselves did to the server's statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnEffect {
    pub commands: u64,
    /// Added to `keyspace_hits` and, for keys that weren't there, to `keyspace_misses`: how many to which isn't known.
    pub lookups: u64,
    pub took_ms: u64,
    /// Slept, so as to leave the server to others.
    pub waited_ms: u64,
}

/// A part that couldn't be read, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SectionNote {
    pub status: Cow<'static, str>,
    pub why: Option<String>,
}

/// Stated with every report of Redis, so that a part is never taken for the whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedisCoverage {
    /// All that the report needs was read.
    pub complete: bool,
    /// Only keys that this pattern matches were looked at.
    pub pattern: Option<String>,
    /// `null` where no keys were walked, or DBSIZE may not be asked.
    pub keys_total: Option<u64>,
    pub keys_seen: Option<u64>,
    #[serde(flatten)]
    pub tally: Tally,
    pub nodes: Vec<NodeWalk>,
    /// Slots of the cluster that no primary serves.
    pub slots_unserved: u32,
    pub sections: BTreeMap<Cow<'static, str>, SectionNote>,
    pub missing_permissions: Vec<String>,
    pub own_effect: OwnEffect,
}

impl RedisCoverage {
    /// Of walks over all nodes.
    pub fn of(nodes: Vec<NodeWalk>, own_effect: OwnEffect, slots_unserved: u32) -> Self {
        let mut tally = Tally::default();
        for node in &nodes {
            tally.add(node.tally);
        }
        Self {
            complete: nodes.iter().all(|node| node.complete)
                && tally.moved == 0
                && slots_unserved == 0
                // A login that may read none of them has seen nothing.
                && (tally.not_permitted + tally.failed == 0
                    || tally.not_permitted + tally.failed < nodes.iter().map(|node| node.keys_seen).sum()),
            keys_total: nodes.iter().map(|node| node.keys_total).sum(),
            keys_seen: Some(nodes.iter().map(|node| node.keys_seen).sum()),
            tally,
            nodes,
            slots_unserved,
            own_effect,
            ..Self::default()
        }
    }

    /// Everything was read, and nothing is kept from this login: what isn't found isn't there.
    pub fn sees_all(&self) -> bool {
        self.complete && self.tally.not_permitted == 0 && self.tally.failed == 0
    }

    /// A part that couldn't be read: the report isn't whole.
    pub fn without(&mut self, section: &'static str, status: &'static str, why: String) {
        self.complete = false;
        self.sections.insert(
            section.into(),
            SectionNote {
                status: status.into(),
                why: Some(why),
            },
        );
    }

    /// A part that was left out on purpose: the report is whole without it.
    pub fn note(&mut self, section: &'static str, status: &'static str, why: &str) {
        let why = Some(why.to_owned());
        let status = status.into();
        self.sections
            .insert(section.into(), SectionNote { status, why });
    }

    /// What would have to be granted; each once.
    pub fn lacks(&mut self, grant: String) {
        if !self.missing_permissions.contains(&grant) {
            self.missing_permissions.push(grant);
        }
    }

    /// Why all that was read is doubtful: the cluster is down, or the link to the primary.
    pub fn is_down(&self, section: &str) -> Option<&str> {
        let note = self.sections.get(section)?;
        (note.status == "down").then_some(note.why.as_deref()?)
    }

    /// Why a part wasn't looked at.
    pub fn skipped(&self, section: &str) -> Option<&str> {
        let note = self.sections.get(section)?;
        (note.status == "skipped").then_some(note.why.as_deref()?)
    }

    /// The person ended it.
    pub fn was_stopped(&self) -> bool {
        self.nodes
            .iter()
            .any(|node| node.stopped == Some(Stopped::Asked))
    }
}
