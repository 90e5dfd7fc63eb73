//! Hot keys by the LFU counters, in one walk: `OBJECT FREQ` of every key, and what else is wanted of the hottest.

use redis::Pipeline;

use super::error::Refused;
use super::fleet::{Fleet, Node};
use super::value;
use super::walk::{Answer, Budget, PerKey, Plan, Watch, walk};
use crate::keys::{Absorb, GroupId, Grouped, Pattern, Top};
use crate::model::{
    HotFound, HotGroup, HotKey, HotMethod, HotUnit, KeyFacts, KeyName, KeyType, Millis,
    RedisCoverage,
};

/// What a pass is to give.
#[derive(Clone, Debug)]
pub struct HotOptions<'o> {
    pub top: usize,
    /// TTL and bytes of every key, not only of the hottest.
    pub attributes: bool,
    pub pattern: Option<&'o [u8]>,
    /// Groups of `stanch.yaml`.
    pub patterns: Vec<Pattern>,
    pub budget: Budget,
}

/// What was found, and how.
#[derive(Clone, Debug)]
pub struct HotPass {
    pub found: HotFound,
    pub coverage: RedisCoverage,
}

/// Whether the counters can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lfu {
    Counts,
    /// The maxmemory policy isn't one of LFU: there are no counters.
    Off,
    NoKeys,
    Refused(Refused),
}

/// Reads the counter of one key, if there is one.
///
/// # Errors
/// When the connection is lost.
pub async fn probe_lfu(fleet: &mut Fleet) -> Result<Lfu, Refused> {
    // One key may be kept from this login while others aren't.
    const TRIED: usize = 50;
    let mut last = Lfu::NoKeys;
    for node in &mut fleet.nodes {
        for key in some_keys(node, TRIED).await? {
            match node.ask(&[b"OBJECT", b"FREQ", &key]).await {
                Ok(_) => {
                    node.looked_up(1);
                    return Ok(Lfu::Counts);
                }
                Err(lost @ Refused::Lost(_)) => return Err(lost),
                Err(refused) if refused.text().contains("LFU maxmemory policy") => {
                    node.looked_up(1);
                    return Ok(Lfu::Off);
                }
                Err(refused) => last = Lfu::Refused(refused),
            }
        }
    }
    Ok(last)
}

pub(super) async fn some_key(node: &mut Node) -> Result<Option<Vec<u8>>, Refused> {
    Ok(some_keys(node, 1).await?.into_iter().next())
}

/// Some keys: of the first pages of a walk, which may be empty.
async fn some_keys(node: &mut Node, most: usize) -> Result<Vec<Vec<u8>>, Refused> {
    let mut found = Vec::new();
    let mut cursor = b"0".to_vec();
    for _ in 0..1000 {
        let page = node.ask(&[b"SCAN", &cursor, b"COUNT", b"100"]).await?;
        let mut page = value::list(page).into_iter();
        cursor = page
            .next()
            .and_then(value::bytes)
            .unwrap_or_else(|| b"0".to_vec());
        let keys = value::list(page.next().unwrap_or_default());
        found.extend(keys.into_iter().filter_map(value::bytes));
        if !found.is_empty() || cursor == b"0" {
            break;
        }
    }
    found.truncate(most);
    Ok(found)
}

#[derive(Clone, Copy)]
struct Item {
    counter: Option<u8>,
    expires: Option<bool>,
    bytes: Option<u64>,
}

#[derive(Default)]
struct Heat {
    keys: u64,
    hottest: u8,
    bytes: Option<u64>,
    with_ttl: u64,
}

impl Absorb<Item> for Heat {
    fn absorb(&mut self, item: Item) {
        self.keys += 1;
        self.hottest = self.hottest.max(item.counter.unwrap_or(0));
        self.bytes = match (self.bytes, item.bytes) {
            (None, None) => None,
            (sum, more) => Some(sum.unwrap_or(0) + more.unwrap_or(0)),
        };
        self.with_ttl += u64::from(item.expires == Some(true));
    }
}

/// Walks all keys and ranks them by their counters.
///
/// # Errors
/// When the connection is lost before the hottest could be described.
pub async fn lfu_pass(fleet: &mut Fleet, options: HotOptions<'_>, watch: &dyn Watch) -> HotPass {
    let per_key: &[PerKey] = if options.attributes {
        &[PerKey::Freq, PerKey::TimeToLive, PerKey::Bytes]
    } else {
        &[PerKey::Freq]
    };
    let plan = Plan {
        pattern: options.pattern,
        of_type: None,
        per_key,
    };
    let names: Vec<String> = fleet.nodes.iter().map(|node| node.name.clone()).collect();
    let mut top: Top<usize> = Top::new(options.top);
    let mut grouped: Grouped<Item, Heat> = Grouped::new(options.patterns, |_| Heat::default());
    let mut counters = Box::new([0_u64; 256]);
    let mut sampled = 0;
    let mut each = |node: &str, keys: Vec<Vec<u8>>, answers: Vec<Answer>| {
        let at = names.iter().position(|name| name == node).unwrap_or(0);
        for (key, of_key) in keys.into_iter().zip(answers.chunks(per_key.len())) {
            let counter = of_key
                .first()
                .and_then(Answer::number)
                .map(|counter| counter.clamp(0, 255) as u8);
            if let Some(counter) = counter {
                sampled += 1;
                counters[usize::from(counter)] += 1;
                top.push(&key, counter.into(), || at);
            } else if of_key.first() == Some(&Answer::Gone) {
                continue;
            }
            let number = |n: usize| of_key.get(n).and_then(Answer::number);
            let item = Item {
                counter,
                expires: number(1).map(|ttl| ttl >= 0),
                bytes: number(2).and_then(|bytes| u64::try_from(bytes).ok()),
            };
            grouped.push(key, item);
        }
    };
    let mut coverage = walk(fleet, plan, options.budget, watch, &mut each).await;
    let (mut grouping, sums) = grouped.finish();
    let tied_out = top.tied_out();
    let chosen = top.into_sorted();
    let database = fleet.target.database;
    let wanted: Vec<(usize, &[u8])> = chosen
        .iter()
        .map(|(key, _, at)| (*at, key.as_slice()))
        .collect();
    let facts = describe(fleet, &wanted, &mut coverage).await;
    let keys = chosen
        .iter()
        .zip(facts)
        .map(|((key, score, at), about)| HotKey {
            key: KeyName(key.clone()),
            node: names.get(*at).cloned().unwrap_or_default(),
            database: Some(database),
            group: {
                let id = grouping.assign(key);
                grouping.name(id).to_owned()
            },
            score: score.unsigned_abs(),
            unit: HotUnit::LfuCounter,
            share_pct: None,
            about,
        })
        .collect();
    let mut groups: Vec<HotGroup> = sums
        .iter()
        .enumerate()
        .filter(|(_, heat)| heat.keys > 0)
        .map(|(n, heat)| HotGroup {
            group: grouping.name(GroupId(n as u32)).to_owned(),
            keys: heat.keys,
            hottest: heat.hottest.into(),
            accesses: None,
            share_pct: None,
            bytes: heat.bytes,
            with_ttl: options.attributes.then_some(heat.with_ttl),
        })
        .collect();
    groups.sort_by(|a, b| {
        (b.hottest, b.keys)
            .cmp(&(a.hottest, a.keys))
            .then(a.group.cmp(&b.group))
    });
    HotPass {
        found: HotFound {
            method: HotMethod::Lfu,
            window: None,
            sampled,
            keys,
            groups,
            counters: Some(counters),
            tied_out,
        },
        coverage,
    }
}

/// Type, TTL and bytes of these keys, each on its node. What can't be read stays unknown.
pub(super) async fn describe(
    fleet: &mut Fleet,
    wanted: &[(usize, &[u8])],
    coverage: &mut RedisCoverage,
) -> Vec<KeyFacts> {
    let mut facts = vec![KeyFacts::default(); wanted.len()];
    for (n, node) in fleet.nodes.iter_mut().enumerate() {
        let here: Vec<usize> = (0..wanted.len()).filter(|i| wanted[*i].0 == n).collect();
        let mut commands = Pipeline::new();
        for i in &here {
            let key = wanted[*i].1;
            commands.cmd("TYPE").arg(key);
            commands.cmd("PTTL").arg(key);
            commands.cmd("MEMORY").arg(b"USAGE").arg(key);
        }
        node.looked_up(here.len() as u64 * 2);
        // Whatever it is, the ranking stands: what isn't known is shown as unknown.
        let values = node.ask_all(&commands).await.unwrap_or_default();
        for (i, answers) in here.iter().zip(values.chunks(3)) {
            facts[*i] = facts_of(answers);
        }
    }
    fleet.state_own_effect(coverage);
    facts
}

fn facts_of(answers: &[redis::Value]) -> KeyFacts {
    let kind = answers
        .first()
        .and_then(value::text)
        .filter(|name| name != "none");
    let ttl = answers.get(1).and_then(value::int).filter(|ttl| *ttl != -2);
    KeyFacts {
        kind: kind.map(|name| KeyType::parse(&name)),
        expires: ttl.map(|ttl| ttl >= 0),
        ttl_ms: ttl.and_then(|ttl| u64::try_from(ttl).ok()).map(Millis),
        bytes: answers.get(2).and_then(value::uint),
    }
}
