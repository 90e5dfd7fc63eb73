//! The largest keys, by bytes and by elements, without the look itself making any of them hotter.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use super::fleet::Fleet;
use super::measure::{Candidate, at_most, is_estimated, measure};
use super::touch::{NO_TOUCH, NoTouch};
use super::walk::{Answer, Budget, PerKey, Plan, Watch, walk};
use crate::keys::{Absorb, GroupId, Grouped, Pattern, Top};
use crate::model::{BigKey, BigMeasured, GroupSum, KeyName, KeyType, RedisCoverage, TypeSum};

/// Keys beyond those that are asked for: an estimate may have put one of them too far down.
const MORE: usize = 1000;
/// Collections that are measured, the largest of them by elements (by bytes, where those aren't counted).
const MEASURED: usize = 10_000;

/// What a pass is to give.
#[derive(Clone, Debug)]
pub struct BigOptions<'o> {
    pub top: usize,
    pub pattern: Option<&'o [u8]>,
    pub patterns: Vec<Pattern>,
    pub budget: Budget,
    /// Count elements also where that moves LFU counters and idle times (before `CLIENT NO-TOUCH`).
    pub touch: bool,
}

/// The largest keys, and what there is of each type and group.
pub struct BigPass {
    pub by_bytes: Vec<BigKey>,
    /// Of each type of collections those with most elements.
    pub by_elements: Vec<BigKey>,
    pub types: Vec<TypeSum>,
    pub groups: Vec<GroupSum>,
    /// What was measured element by element.
    pub measured: BigMeasured,
    pub coverage: RedisCoverage,
}

#[derive(Clone, Copy)]
struct About {
    node: usize,
    kind: KeyType,
    bytes: Option<u64>,
    elements: Option<u64>,
}

impl About {
    fn estimated(&self) -> bool {
        self.bytes
            .is_some_and(|bytes| is_estimated(self.kind, bytes, self.elements))
    }
}

#[derive(Clone, Copy)]
struct Item {
    bytes: Option<u64>,
    estimated: bool,
}

#[derive(Default)]
struct Sum {
    keys: u64,
    bytes: Option<u64>,
    largest: Option<u64>,
    /// Keys whose size is an estimate.
    estimated: u64,
}

impl Absorb<Item> for Sum {
    fn absorb(&mut self, item: Item) {
        self.keys += 1;
        self.bytes = plus(self.bytes, item.bytes);
        self.largest = self.largest.max(item.bytes);
        self.estimated += u64::from(item.estimated);
    }
}

/// A sum, once one of its keys is known better.
fn corrected(sum: Option<u64>, was: u64, is: u64) -> Option<u64> {
    sum.map(|sum| sum.saturating_sub(was).saturating_add(is))
}

/// What is known of a sum: nothing, where nothing of it is.
fn plus(sum: Option<u64>, more: Option<u64>) -> Option<u64> {
    match (sum, more) {
        (None, None) => None,
        (sum, more) => Some(sum.unwrap_or(0) + more.unwrap_or(0)),
    }
}

/// Walks all keys.
pub async fn big_pass(fleet: &mut Fleet, options: BigOptions<'_>, watch: &dyn Watch) -> BigPass {
    let begun = Instant::now();
    let no_touch = fleet.no_touch().await;
    let counts = no_touch == NoTouch::On || options.touch;
    // TYPE and MEMORY USAGE touch nothing.
    let per_key: &[PerKey] = if counts {
        &[PerKey::Type, PerKey::Bytes, PerKey::Elements]
    } else {
        &[PerKey::Type, PerKey::Bytes]
    };
    let names: Vec<String> = fleet.nodes.iter().map(|node| node.name.clone()).collect();
    let mut by_bytes: Top<About> = Top::new(options.top.saturating_add(MORE));
    let mut collections: Top<About> = Top::new(MEASURED);
    let mut by_elements: BTreeMap<KeyType, Top<About>> = BTreeMap::new();
    let mut types: BTreeMap<KeyType, (TypeSum, u64)> = BTreeMap::new();
    let mut grouped: Grouped<Item, Sum> = Grouped::new(options.patterns, |_| Sum::default());
    let mut each = |node: &str, keys: Vec<Vec<u8>>, answers: Vec<Answer>| {
        let at = names.iter().position(|name| name == node).unwrap_or(0);
        for (key, of_key) in keys.into_iter().zip(answers.chunks(per_key.len())) {
            let Some(Answer::Type(kind)) = of_key.first() else {
                continue;
            };
            let number = |n: usize| {
                of_key
                    .get(n)
                    .and_then(Answer::number)
                    .map(i64::unsigned_abs)
            };
            let about = About {
                node: at,
                kind: *kind,
                bytes: number(1),
                elements: number(2),
            };
            let estimated = about.estimated();
            let (sum, guesses) = types.entry(*kind).or_insert_with(|| {
                let sum = TypeSum {
                    kind: *kind,
                    keys: 0,
                    bytes: None,
                    bytes_estimated: false,
                    elements: (counts && kind.length_command().is_some()).then_some(0),
                };
                (sum, 0)
            });
            *guesses += u64::from(estimated);
            sum.keys += 1;
            sum.bytes = plus(sum.bytes, about.bytes);
            sum.elements = sum.elements.map(|all| all + about.elements.unwrap_or(0));
            let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
            if let Some(bytes) = about.bytes {
                by_bytes.push(&key, signed(bytes), || about);
                if estimated && *kind != KeyType::Other {
                    let elements = at_most(bytes, about.elements);
                    collections.push(&key, signed(elements), || about);
                }
            }
            if let Some(elements) = about.elements {
                let top = by_elements
                    .entry(*kind)
                    .or_insert_with(|| Top::new(options.top));
                top.push(&key, signed(elements), || about);
            }
            let bytes = about.bytes;
            grouped.push(key, Item { bytes, estimated });
        }
    };
    let plan = Plan {
        pattern: options.pattern,
        of_type: None,
        per_key,
    };
    let mut coverage = walk(fleet, plan, options.budget, watch, &mut each).await;
    let by_bytes_is_empty = by_bytes.is_empty();
    let refused = coverage.tally.failed + coverage.tally.not_permitted;
    if by_bytes_is_empty && refused > 0 {
        let why = "MEMORY USAGE is refused for every key: it is renamed, or not permitted (+memory|usage)";
        coverage.without("sizes", "failed", why.into());
    }
    if !counts {
        let why = format!(
            "{}: counting would raise each key's LFU counter; --touch counts all the same",
            fleet.why_touched(no_touch)
        );
        coverage.note("elements", "skipped", &why);
        if no_touch == NoTouch::NotPermitted {
            coverage.lacks(fleet.grant(NO_TOUCH));
        }
    }
    let (mut grouping, mut sums) = grouped.finish();
    let by_bytes = by_bytes.into_sorted();
    let by_elements: Vec<_> = by_elements
        .into_values()
        .flat_map(Top::into_sorted)
        .collect();
    let collections = collections.into_sorted();
    // Those that are asked for first: the bounds may not allow for more.
    let (first, rest) = by_bytes.split_at(options.top.min(by_bytes.len()));
    let mut known: HashMap<Vec<u8>, (About, usize)> = HashMap::new();
    let mut candidates: Vec<Candidate> = Vec::new();
    for (key, _, about) in first
        .iter()
        .chain(&by_elements)
        .chain(rest)
        .chain(&collections)
    {
        if known.contains_key(key) {
            continue;
        }
        known.insert(key.clone(), (*about, candidates.len()));
        let bytes = about.bytes.unwrap_or(0);
        candidates.push(Candidate {
            key: key.clone(),
            node: about.node,
            elements: at_most(bytes, about.elements),
            bytes,
            estimated: about.estimated() && about.kind != KeyType::Other,
        });
    }
    let (measured, waited) = measure(fleet, &mut candidates, options.budget, begun, watch).await;
    fleet.state_own_effect(&mut coverage);
    let millis = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    coverage.own_effect.took_ms = millis(begun.elapsed());
    coverage.own_effect.waited_ms += millis(waited);
    for (key, (about, at)) in &known {
        let (Some(was), now) = (about.bytes, &candidates[*at]) else {
            continue;
        };
        let GroupId(n) = grouping.assign(key);
        let exact = u64::from(about.estimated() && about.kind != KeyType::Other && !now.estimated);
        if let Some((sum, guesses)) = types.get_mut(&about.kind) {
            sum.bytes = corrected(sum.bytes, was, now.bytes);
            *guesses = guesses.saturating_sub(exact);
        }
        if let Some(sum) = sums.get_mut(n as usize) {
            sum.bytes = corrected(sum.bytes, was, now.bytes);
            sum.estimated = sum.estimated.saturating_sub(exact);
            if sum.largest == Some(was) && now.bytes < was {
                sum.largest = None;
            }
        }
    }
    let mut told: Vec<BigKey> = Vec::new();
    for (key, (about, at)) in known {
        let id = grouping.assign(&key);
        let now = &candidates[at];
        let bytes = about.bytes.map(|_| now.bytes);
        if let Some(sum) = sums.get_mut(id.0 as usize) {
            sum.largest = sum.largest.max(bytes);
        }
        told.push(BigKey {
            node: names.get(about.node).cloned().unwrap_or_default(),
            group: grouping.name(id).to_owned(),
            kind: about.kind,
            bytes,
            bytes_estimated: bytes.is_some() && (now.estimated || about.kind == KeyType::Other),
            elements: about.elements,
            key: KeyName(key),
        });
    }
    let listed = |of: &[(Vec<u8>, i64, About)]| -> Vec<BigKey> {
        let places: HashMap<&[u8], usize> = of
            .iter()
            .enumerate()
            .map(|(place, (key, _, _))| (key.as_slice(), place))
            .collect();
        let mut kept: Vec<(usize, &BigKey)> = told
            .iter()
            .filter_map(|key| Some((*places.get(key.key.0.as_slice())?, key)))
            .collect();
        kept.sort_by_key(|(place, _)| *place);
        kept.into_iter().map(|(_, key)| key.clone()).collect()
    };
    let by_elements = listed(&by_elements);
    told.retain(|key| key.bytes.is_some());
    told.sort_by(|a, b| b.bytes.cmp(&a.bytes).then(a.key.cmp(&b.key)));
    told.truncate(options.top);
    let mut groups: Vec<GroupSum> = sums
        .iter()
        .enumerate()
        .filter(|(_, sum)| sum.keys > 0)
        .map(|(n, sum)| GroupSum {
            group: grouping.name(GroupId(n as u32)).to_owned(),
            keys: sum.keys,
            bytes: sum.bytes,
            bytes_estimated: sum.estimated > 0,
            largest: sum.largest,
        })
        .collect();
    groups.sort_by(|a, b| b.bytes.cmp(&a.bytes).then(a.group.cmp(&b.group)));
    let mut types: Vec<TypeSum> = types
        .into_values()
        .map(|(sum, guesses)| TypeSum {
            bytes_estimated: guesses > 0,
            ..sum
        })
        .collect();
    types.sort_by_key(|of| std::cmp::Reverse(of.bytes));
    BigPass {
        by_bytes: told,
        by_elements,
        types,
        groups,
        measured,
        coverage,
    }
}
