//! What is to be known of each group for a verdict on its guards: heat, expiry, and one value where that is allowed.

use std::time::Instant;

use super::expiry::tells_the_moment;
use super::fleet::Fleet;
use super::soft::{SoftFields, peek};
use super::value;
use super::walk::{Answer, Budget, PerKey, Plan, Watch, walk};
use crate::keys::{Absorb, GroupId, GroupSeen, Grouped, Grouping, Pattern, Spread};
use crate::model::{KeyType, RedisCoverage, Soft, Timestamp};

/// What is looked at.
pub struct StampedeOptions<'o> {
    pub pattern: Option<&'o [u8]>,
    pub patterns: Vec<Pattern>,
    pub budget: Budget,
    /// There are LFU counters.
    pub counters: bool,
}

/// One group as it was seen.
pub struct Seen {
    pub seen: GroupSeen,
    /// The hottest key, or any: for a look at its value.
    pub key: Option<(usize, Vec<u8>)>,
}

/// All groups, and the way to a key's group.
pub struct StampedePass {
    pub groups: Vec<Seen>,
    pub grouping: Grouping,
    pub coverage: RedisCoverage,
}

struct Item {
    node: usize,
    counter: Option<u8>,
    at_ms: Option<i64>,
    now_ms: i64,
    key: Option<Vec<u8>>,
}

struct Sum {
    spread: Spread,
    hottest: Option<u8>,
    key: Option<(usize, Vec<u8>)>,
}

impl Absorb<Item> for Sum {
    fn absorb(&mut self, item: Item) {
        match item.at_ms {
            Some(at) => self.spread.expires(at, item.now_ms),
            None => self.spread.without_ttl(),
        }
        if self.key.is_none() || item.counter > self.hottest {
            self.hottest = item.counter.max(self.hottest);
            self.key = item.key.map(|key| (item.node, key));
        }
    }
}

/// Walks all keys for their counters and expiry times.
pub async fn stampede_pass(
    fleet: &mut Fleet,
    now: Timestamp,
    options: StampedeOptions<'_>,
    watch: &dyn Watch,
) -> StampedePass {
    let exact = tells_the_moment(fleet).await;
    let time = if exact {
        PerKey::ExpireTime
    } else {
        PerKey::TimeToLive
    };
    let both = [time, PerKey::Freq];
    let per_key = if options.counters {
        &both[..]
    } else {
        &both[..1]
    };
    let begun = Instant::now();
    let now_ms = now.utc().timestamp_millis();
    let names: Vec<String> = fleet.nodes.iter().map(|node| node.name.clone()).collect();
    let mut grouped: Grouped<Item, Sum> = Grouped::new(options.patterns, |n| Sum {
        spread: Spread::new(if n < 256 { 2048 } else { 256 }),
        hottest: None,
        key: None,
    });
    let mut each = |node: &str, keys: Vec<Vec<u8>>, answers: Vec<Answer>| {
        let elapsed = i64::try_from(begun.elapsed().as_millis()).unwrap_or(0);
        let node = names.iter().position(|name| name == node).unwrap_or(0);
        for (key, of_key) in keys.into_iter().zip(answers.chunks(per_key.len())) {
            let Some(number) = of_key.first().and_then(Answer::number) else {
                continue;
            };
            let at_ms = match number {
                ..0 => None,
                at if exact => Some(at),
                left => Some((now_ms + elapsed).saturating_add(left)),
            };
            let counter = of_key
                .get(1)
                .and_then(Answer::number)
                .map(|counter| counter.clamp(0, 255) as u8);
            let item = Item {
                node,
                counter,
                at_ms,
                now_ms,
                key: Some(key.clone()),
            };
            grouped.push(key, item);
        }
    };
    let plan = Plan {
        pattern: options.pattern,
        of_type: None,
        per_key,
    };
    let coverage = walk(fleet, plan, options.budget, watch, &mut each).await;
    let (grouping, sums) = grouped.finish();
    let groups = sums
        .into_iter()
        .enumerate()
        .filter(|(_, sum)| sum.spread.keys > 0)
        .map(|(n, sum)| Seen {
            seen: GroupSeen {
                group: grouping.name(GroupId(n as u32)).to_owned(),
                spread: sum.spread,
                hottest: sum.hottest,
                soft: Soft::default(),
                misses: None,
            },
            key: sum.key,
        })
        .collect();
    StampedePass {
        groups,
        grouping,
        coverage,
    }
}

/// Reads one value of each of these groups: `GET` of a string of 64 KiB at most, or the named fields of a hash. It makes
/// that key a little hotter, and adds to the hits.
pub async fn look_into(
    fleet: &mut Fleet,
    groups: &mut [&mut Seen],
    fields: &SoftFields,
    coverage: &mut RedisCoverage,
) {
    const LARGEST: u64 = 64 << 10;
    for seen in groups.iter_mut() {
        let Some((at, key)) = &seen.key else { continue };
        let Some(node) = fleet.nodes.get_mut(*at) else {
            continue;
        };
        node.looked_up(2);
        let kind = node
            .ask(&[b"TYPE", key])
            .await
            .ok()
            .and_then(|kind| value::text(&kind));
        let left = node
            .ask(&[b"PTTL", key])
            .await
            .ok()
            .and_then(|left| value::int(&left));
        let unknown = |why: &str| Soft {
            why_unknown: Some(why.to_owned()),
            ..Soft::default()
        };
        seen.seen.soft = match kind.as_deref().map(KeyType::parse) {
            Some(KeyType::String) => {
                node.looked_up(1);
                let length = node
                    .ask(&[b"STRLEN", key])
                    .await
                    .ok()
                    .and_then(|length| value::uint(&length));
                match length {
                    Some(length) if length <= LARGEST => {
                        node.looked_up(1);
                        match node.ask(&[b"GET", key]).await.ok().and_then(value::bytes) {
                            Some(text) => peek(&text, fields, left),
                            None => unknown("it is gone"),
                        }
                    }
                    Some(_) => unknown("larger than 64 KiB: not read"),
                    None => unknown("it is gone, or may not be read"),
                }
            }
            Some(KeyType::Hash) => {
                node.looked_up(1);
                let mut words: Vec<&[u8]> = vec![b"HMGET", key];
                words.extend(fields.names().map(str::as_bytes));
                match node.ask(&words).await {
                    Ok(found) => {
                        let values = value::list(found).into_iter().map(value::bytes);
                        fields.of_hash(values.collect(), left)
                    }
                    Err(refused) => unknown(refused.text()),
                }
            }
            Some(kind) => unknown(&format!("a {}: no envelope", kind.name())),
            None => unknown("it is gone, or may not be read"),
        };
    }
    fleet.state_own_effect(coverage);
}
