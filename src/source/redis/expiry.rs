//! When keys expire: the walk that asks each for its time.

use std::time::Instant;

use super::error::Refused;
use super::fleet::Fleet;
use super::hot::some_key;
use super::walk::{Answer, Budget, PerKey, Plan, Watch, walk};
use crate::keys::{Absorb, GroupId, Grouped, Pattern, Spread};
use crate::model::{RedisCoverage, Timestamp};

/// Each group with its expiry times.
pub struct ExpiryPass {
    pub groups: Vec<(String, Spread)>,
    pub coverage: RedisCoverage,
}

struct Item {
    /// `None`: never. Milliseconds since 1970.
    at_ms: Option<i64>,
    now_ms: i64,
}

impl Absorb<Item> for Spread {
    fn absorb(&mut self, item: Item) {
        match item.at_ms {
            Some(at) => self.expires(at, item.now_ms),
            None => self.without_ttl(),
        }
    }
}

/// Walks all keys. `now`: the server's time.
///
/// PEXPIRETIME (7.0) gives the moment itself; before it, PTTL is added to the time of the answer, which may put a key into
/// the second beside its own.
pub async fn expiry_pass(
    fleet: &mut Fleet,
    now: Timestamp,
    pattern: Option<&[u8]>,
    patterns: Vec<Pattern>,
    budget: Budget,
    watch: &dyn Watch,
) -> ExpiryPass {
    let exact = tells_the_moment(fleet).await;
    let per_key: &[PerKey] = if exact {
        &[PerKey::ExpireTime]
    } else {
        &[PerKey::TimeToLive]
    };
    let begun = Instant::now();
    let now_ms = now.utc().timestamp_millis();
    // Seconds are counted one by one: 2048 to a group, as long as there are few groups.
    let mut grouped = Grouped::new(patterns, |n| Spread::new(if n < 256 { 2048 } else { 256 }));
    let mut each = |_: &str, keys: Vec<Vec<u8>>, answers: Vec<Answer>| {
        let elapsed = i64::try_from(begun.elapsed().as_millis()).unwrap_or(0);
        for (key, answer) in keys.into_iter().zip(answers) {
            let Some(number) = answer.number() else {
                continue;
            };
            let at_ms = match number {
                ..0 => None,
                at if exact => Some(at),
                left => Some((now_ms + elapsed).saturating_add(left)),
            };
            grouped.push(key, Item { at_ms, now_ms });
        }
    };
    let coverage = walk(
        fleet,
        Plan {
            pattern,
            of_type: None,
            per_key,
        },
        budget,
        watch,
        &mut each,
    )
    .await;
    let (grouping, sums) = grouped.finish();
    let groups = sums
        .into_iter()
        .enumerate()
        .filter(|(_, spread)| spread.keys > 0)
        .map(|(n, spread)| (grouping.name(GroupId(n as u32)).to_owned(), spread))
        .collect();
    ExpiryPass { groups, coverage }
}

/// Redis from 7.0 on and every Valkey has PEXPIRETIME; where the version isn't told, the older way works everywhere.
pub(super) async fn tells_the_moment(fleet: &mut Fleet) -> bool {
    let target = &fleet.target;
    let version = target.server_version.as_deref().unwrap_or_default();
    let major: u32 = version
        .split('.')
        .next()
        .and_then(|major| major.parse().ok())
        .unwrap_or(0);
    let has = major >= 7 || (target.product.as_deref() == Some("valkey") && major > 0);
    has && may_ask(fleet).await
}

/// Not renamed, and permitted: asked of one key.
async fn may_ask(fleet: &mut Fleet) -> bool {
    let Some(node) = fleet.nodes.first_mut() else {
        return false;
    };
    let Ok(Some(key)) = some_key(node).await else {
        return true;
    };
    match node.ask(&[b"PEXPIRETIME", &key]).await {
        Err(Refused::Unknown(_)) => false,
        // Of this key, or of the command: PTTL is asked the same way.
        Err(Refused::NotPermitted(why)) => why.contains("key"),
        Err(_) => true,
        Ok(_) => {
            node.looked_up(1);
            true
        }
    }
}
