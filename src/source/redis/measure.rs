//! Large keys measured element by element, where `MEMORY USAGE` has estimated them from five: bounded in elements and time.

use std::time::{Duration, Instant};

use redis::Pipeline;

use super::error::Refused;
use super::fleet::{Fleet, Node};
use super::pace::Pace;
use super::value;
use super::walk::{Budget, Watch};
use crate::model::{BigMeasured, KeyType, Stopped};

/// Elements that `MEMORY USAGE` looks at unless it is told otherwise.
const SAMPLED: u64 = 5;
/// An element takes at least so much, where it isn't in a part that is measured as a whole.
const LEAST_BYTES: u64 = 16;
/// What a key takes beside its elements, at least.
const KEY_BYTES: u64 = 40;
/// Elements that are looked at in one write: others wait for so long.
const AT_ONCE: u64 = 20_000;
const KEYS_AT_ONCE: usize = 500;

/// How much is looked at: of one key, and in all.
#[derive(Clone, Copy)]
struct Bounds {
    of_a_key: u64,
    in_all: u64,
}

impl Bounds {
    fn of(budget: Budget) -> Self {
        match budget.share {
            Some(_) => Self {
                of_a_key: 100_000,
                in_all: 4_000_000,
            },
            None => Self {
                of_a_key: 1_000_000,
                in_all: 40_000_000,
            },
        }
    }
}

/// A key to be measured.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub key: Vec<u8>,
    pub node: usize,
    /// It has no more elements than this.
    pub elements: u64,
    /// What was estimated before it, and what is known after.
    pub bytes: u64,
    pub estimated: bool,
}

/// How many elements there are at the most: counted, or as many as have room in its bytes.
pub(super) fn at_most(bytes: u64, elements: Option<u64>) -> u64 {
    elements.unwrap_or(bytes.saturating_sub(KEY_BYTES) / LEAST_BYTES)
}

/// The size isn't of all its elements; of a module's types nobody knows.
pub(super) fn is_estimated(kind: KeyType, bytes: u64, elements: Option<u64>) -> bool {
    match kind {
        KeyType::String => false,
        KeyType::Other => true,
        _ => at_most(bytes, elements) > SAMPLED,
    }
}

/// Measures them in their order, as far as the bounds and the budget allow. `begun`: when the budget did.
pub(super) async fn measure(
    fleet: &mut Fleet,
    candidates: &mut [Candidate],
    budget: Budget,
    begun: Instant,
    watch: &dyn Watch,
) -> (BigMeasured, Duration) {
    let bounds = Bounds::of(budget);
    let mut told = BigMeasured {
        keys: 0,
        elements: 0,
        of_a_key_at_most: bounds.of_a_key,
        in_all_at_most: bounds.in_all,
        stopped: None,
    };
    let mut waited = Duration::ZERO;
    for (n, node) in fleet.nodes.iter_mut().enumerate() {
        let here: Vec<&mut Candidate> = candidates
            .iter_mut()
            .filter(|candidate| candidate.node == n && candidate.estimated)
            .collect();
        if here.is_empty() || told.stopped.is_some() {
            continue;
        }
        let mut pace = Pace::new(budget.share);
        let stopped = match of_node(
            node,
            here,
            (bounds, budget, begun),
            watch,
            &mut pace,
            &mut told,
        )
        .await
        {
            Ok(stopped) => stopped,
            Err(refused) => Some(Stopped::Failed(refused.text().to_owned())),
        };
        told.stopped = stopped;
        waited += pace.waited;
    }
    (told, waited)
}

async fn of_node(
    node: &mut Node,
    mut here: Vec<&mut Candidate>,
    (bounds, budget, begun): (Bounds, Budget, Instant),
    watch: &dyn Watch,
    pace: &mut Pace,
    told: &mut BigMeasured,
) -> Result<Option<Stopped>, Refused> {
    pace.measure(node).await?;
    let mut next = 0;
    while next < here.len() {
        if watch.is_stopped() {
            return Ok(Some(Stopped::Asked));
        }
        if let Some(limit) = budget.wall.filter(|limit| begun.elapsed() >= *limit) {
            return Ok(Some(Stopped::Time(limit.into())));
        }
        let mut commands = Pipeline::new();
        let mut asked = Vec::new();
        let mut cost = 0;
        while next < here.len() && asked.len() < KEYS_AT_ONCE {
            let of_key = here[next].elements.clamp(1, bounds.of_a_key);
            if !asked.is_empty() && cost + of_key > AT_ONCE {
                break;
            }
            // What doesn't fit any more is left out; a smaller one may.
            if told.elements + cost + of_key <= bounds.in_all {
                let samples = bounds.of_a_key.to_string();
                let usage = commands.cmd("MEMORY").arg(b"USAGE").arg(&here[next].key);
                usage.arg(b"SAMPLES").arg(samples);
                asked.push(next);
                cost += of_key;
            }
            next += 1;
        }
        let sent = Instant::now();
        for (at, answer) in asked.iter().zip(node.ask_all(&commands).await?) {
            let candidate = &mut *here[*at];
            let Some(bytes) = value::uint(&answer) else {
                continue;
            };
            candidate.bytes = bytes;
            candidate.estimated = candidate.elements > bounds.of_a_key;
            told.keys += u64::from(!candidate.estimated);
        }
        told.elements += cost;
        if let Some(slower) = pace.after(node, sent.elapsed()).await? {
            return Ok(Some(slower));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_five_elements_tell() {
        let cases = [
            (KeyType::String, 3_000_000, None, false),
            (KeyType::Hash, 56_000, Some(1500), true),
            (KeyType::Hash, 3_000_000, Some(5), false),
            // Not counted: it has room for so many.
            (KeyType::Hash, 88, None, false),
            (KeyType::Hash, 56_000, None, true),
            (KeyType::Other, 88, None, true),
        ];
        for (kind, bytes, elements, want) in cases {
            assert_eq!(
                is_estimated(kind, bytes, elements),
                want,
                "{kind:?} {bytes} {elements:?}"
            );
        }
        assert_eq!((at_most(56_000, None), at_most(9, Some(3))), (3497, 3));
    }
}
