//! The largest keys, by bytes and by elements, without the look itself making any of them hotter.

use std::collections::BTreeMap;

use super::fleet::Fleet;
use super::touch::{NO_TOUCH, NoTouch};
use super::walk::{Answer, Budget, PerKey, Plan, Watch, walk};
use crate::keys::{Absorb, GroupId, Grouped, Pattern, Top};
use crate::model::{BigKey, GroupSum, KeyName, KeyType, RedisCoverage, TypeSum};

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
    pub coverage: RedisCoverage,
}

#[derive(Clone, Copy)]
struct About {
    node: usize,
    kind: KeyType,
    bytes: Option<u64>,
    elements: Option<u64>,
}

#[derive(Default)]
struct Sum {
    keys: u64,
    bytes: Option<u64>,
    largest: Option<u64>,
}

impl Absorb<Option<u64>> for Sum {
    fn absorb(&mut self, bytes: Option<u64>) {
        self.keys += 1;
        self.bytes = plus(self.bytes, bytes);
        self.largest = self.largest.max(bytes);
    }
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
    let no_touch = fleet.no_touch().await;
    let counts = no_touch == NoTouch::On || options.touch;
    // TYPE and MEMORY USAGE touch nothing.
    let per_key: &[PerKey] = if counts {
        &[PerKey::Type, PerKey::Bytes, PerKey::Elements]
    } else {
        &[PerKey::Type, PerKey::Bytes]
    };
    let names: Vec<String> = fleet.nodes.iter().map(|node| node.name.clone()).collect();
    let mut by_bytes: Top<About> = Top::new(options.top);
    let mut by_elements: BTreeMap<KeyType, Top<About>> = BTreeMap::new();
    let mut types: BTreeMap<KeyType, TypeSum> = BTreeMap::new();
    let mut grouped: Grouped<Option<u64>, Sum> = Grouped::new(options.patterns, |_| Sum::default());
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
            let sum = types.entry(*kind).or_insert(TypeSum {
                kind: *kind,
                keys: 0,
                bytes: None,
                elements: (counts && kind.length_command().is_some()).then_some(0),
            });
            sum.keys += 1;
            sum.bytes = plus(sum.bytes, about.bytes);
            sum.elements = sum.elements.map(|all| all + about.elements.unwrap_or(0));
            let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
            if let Some(bytes) = about.bytes {
                by_bytes.push(&key, signed(bytes), || about);
            }
            if let Some(elements) = about.elements {
                let top = by_elements
                    .entry(*kind)
                    .or_insert_with(|| Top::new(options.top));
                top.push(&key, signed(elements), || about);
            }
            grouped.push(key, about.bytes);
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
    let (mut grouping, sums) = grouped.finish();
    let mut name = |key: &[u8]| {
        let id = grouping.assign(key);
        grouping.name(id).to_owned()
    };
    let mut told = |top: Top<About>| -> Vec<BigKey> {
        top.into_sorted()
            .into_iter()
            .map(|(key, _, about)| BigKey {
                node: names.get(about.node).cloned().unwrap_or_default(),
                group: name(&key),
                kind: about.kind,
                bytes: about.bytes,
                elements: about.elements,
                key: KeyName(key),
            })
            .collect()
    };
    let by_bytes = told(by_bytes);
    let by_elements = by_elements.into_values().flat_map(&mut told).collect();
    let mut groups: Vec<GroupSum> = sums
        .iter()
        .enumerate()
        .filter(|(_, sum)| sum.keys > 0)
        .map(|(n, sum)| GroupSum {
            group: grouping.name(GroupId(n as u32)).to_owned(),
            keys: sum.keys,
            bytes: sum.bytes,
            largest: sum.largest,
        })
        .collect();
    groups.sort_by(|a, b| b.bytes.cmp(&a.bytes).then(a.group.cmp(&b.group)));
    let mut types: Vec<TypeSum> = types.into_values().collect();
    types.sort_by_key(|of| std::cmp::Reverse(of.bytes));
    BigPass {
        by_bytes,
        by_elements,
        types,
        groups,
        coverage,
    }
}
