//! From the sampled keys to the tree: position by position, all keys that came so far the same way together.

use std::collections::{BTreeMap, BTreeSet};

use super::judge::{MANY, Member, Place, Verdict, judge};
use super::sample::{NONE, Step, StepKind, Steps};
use super::token::Kind;
use super::tree::{ROOT, Tree};

/// Beyond, the rest of a key is a value.
const MOST_NODES: usize = 65_536;
/// More names that differ in one digit, `level1`, `level2`, and so on, are one.
const MOST_DIGITS: usize = 4;
const MOST_DELIMITERS: usize = 8;
const MOST_ENDINGS: usize = 8;
/// So many values at a position draw in what might be one.
const FEW_VALUES: usize = 4;

/// The tree for these keys, whatever their order.
pub fn learn(of: &Steps) -> Tree {
    let mut learner = Learner {
        of,
        tree: Tree::new(),
    };
    learner.grow(ROOT, of.starts.clone());
    learner.tree
}

struct Learner<'a> {
    of: &'a Steps,
    tree: Tree,
}

/// Where keys go on from a position: each is an offset into the steps.
type Rows = Vec<u32>;

impl Learner<'_> {
    fn step(&self, row: u32) -> Step {
        self.of.steps[row as usize]
    }

    fn grow(&mut self, at: u32, rows: Rows) {
        if self.tree.nodes.len() >= MOST_NODES {
            self.stop(at, &rows);
            return;
        }
        let mut delimiters: BTreeMap<u32, Rows> = BTreeMap::new();
        let mut words: BTreeMap<u32, Rows> = BTreeMap::new();
        let mut values = Rows::new();
        for row in rows {
            let step = self.step(row);
            match step.kind {
                StepKind::End => self.tree.node_mut(at).keys += 1,
                StepKind::Token(Kind::Value) => values.push(row),
                StepKind::Token(Kind::Delimiter { .. }) => {
                    delimiters.entry(step.label).or_default().push(row);
                }
                _ => words.entry(step.label).or_default().push(row),
            }
        }
        let rare = self.drop_delimiters(at, &mut delimiters);
        self.join_digits(&mut words);
        let mut star = self.draw_in_odd(at, &values, &mut words);
        star.extend(rare);
        star.extend(values.iter().map(|row| row + 1));
        let merged = self.merge(at, &mut words);
        let skips = self.skips_segment(&merged);
        star.extend(merged.into_iter().map(|row| row + 1));
        if !star.is_empty() {
            let id = self.tree.star(at);
            self.tree.node_mut(id).skips_segment = skips;
            if skips {
                star = star
                    .into_iter()
                    .map(|row| self.end_of_segment(row))
                    .collect();
            }
            self.grow(id, star);
        }
        let mut named: Vec<(u32, Rows)> = words.into_iter().chain(delimiters).collect();
        named.sort_by(|(a, _), (b, _)| self.label(*a).cmp(self.label(*b)));
        for (label, rows) in named {
            let label = &self.of.labels[label as usize];
            let id = self.tree.child(at, label);
            self.grow(id, rows.into_iter().map(|row| row + 1).collect());
        }
    }

    /// Whatever follows here is one value.
    fn stop(&mut self, at: u32, rows: &Rows) {
        self.tree.node_mut(at).takes_all = true;
        let star = self.tree.star(at);
        for row in rows {
            let ends = self.step(*row).kind == StepKind::End;
            self.tree.node_mut(if ends { at } else { star }).keys += 1;
        }
    }

    fn label(&self, label: u32) -> &[u8] {
        &self.of.labels[label as usize]
    }

    /// Of more kinds than anyone would use, those that are rare part nothing: text or bytes. Gives where these keys go on.
    fn drop_delimiters(&mut self, at: u32, delimiters: &mut BTreeMap<u32, Rows>) -> Rows {
        let mut rare = Rows::new();
        if delimiters.len() > MOST_DELIMITERS {
            let all: usize = delimiters.values().map(Vec::len).sum();
            delimiters.retain(|_, rows| {
                let is_rare = rows.len() == 1 || rows.len() * 20 < all;
                if is_rare {
                    rare.extend(rows.drain(..).map(|row| row + 1));
                }
                !is_rare
            });
            self.tree.node_mut(at).drops_delimiters = true;
        }
        rare
    }

    /// `user1` goes to the `user*` of `user10` and others, or of enough of its own kind.
    fn join_digits(&self, words: &mut BTreeMap<u32, Rows>) {
        let mut stems: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (label, rows) in words.iter() {
            let stem = rows.first().map_or(NONE, |row| self.step(*row).stem);
            if stem != NONE {
                stems.entry(stem).or_default().push(*label);
            }
        }
        for (stem, labels) in stems {
            if labels.len() > MOST_DIGITS || words.contains_key(&stem) {
                let joined: Rows = labels
                    .iter()
                    .filter_map(|label| words.remove(label))
                    .flatten()
                    .collect();
                words.entry(stem).or_default().extend(joined);
            }
        }
    }

    /// Odd names beside values are values. Gives where these keys go on.
    fn draw_in_odd(&mut self, at: u32, values: &Rows, words: &mut BTreeMap<u32, Rows>) -> Rows {
        let mut drawn = Rows::new();
        if values.len() < FEW_VALUES {
            return drawn;
        }
        self.tree.node_mut(at).draws_in_odd = true;
        words.retain(|_, rows| {
            let is = |row: &u32, kind| self.step(*row).kind == StepKind::Token(kind);
            let whole = |row: &u32| is(row, Kind::OddSegment);
            drawn.extend(
                rows.iter()
                    .filter(|row| whole(row))
                    .map(|row| self.end_of_segment(*row)),
            );
            rows.retain(|row| !whole(row));
            if rows.len() <= values.len() && rows.iter().all(|row| is(row, Kind::Odd)) {
                drawn.extend(rows.drain(..).map(|row| row + 1));
            }
            !rows.is_empty()
        });
        drawn
    }

    /// Takes out the words that are values, and notes at the node what will be one.
    fn merge(&mut self, at: u32, words: &mut BTreeMap<u32, Rows>) -> Rows {
        let inner = self.members(words, true);
        let (of_last, of_inner) = self.verdicts(at, words, &inner);
        let node = self.tree.node_mut(at);
        (node.last_are_values, node.inner_are_values) = (of_last.values, of_inner.values);
        let inner: BTreeSet<u32> = inner.iter().map(|member| member.label).collect();
        let mut merged = Rows::new();
        words.retain(|label, rows| {
            let of = if inner.contains(label) {
                &of_inner
            } else {
                &of_last
            };
            let is_name = !of.values || of.names.contains(label) || self.is_fixed(rows);
            if !is_name {
                merged.append(rows);
            }
            is_name
        });
        merged
    }

    fn is_fixed(&self, rows: &[u32]) -> bool {
        rows.iter()
            .any(|row| self.step(*row).kind == StepKind::Fixed)
    }

    /// The words that could be values: with, or without further segments behind.
    fn members(&self, words: &BTreeMap<u32, Rows>, inner: bool) -> Vec<Member> {
        let mut all = Vec::new();
        for (&label, rows) in words.iter().filter(|(_, rows)| !self.is_fixed(rows)) {
            let (mut count, mut growing) = (0, 0);
            for step in rows.iter().map(|row| self.step(*row)) {
                if step.more_segments == inner {
                    count += 1;
                    growing += u32::from(step.value_ahead);
                }
            }
            if count > 0 {
                all.push(Member {
                    label,
                    count,
                    growing,
                });
            }
        }
        all
    }

    /// On the words that end the key, and on those that don't; what is a value as the one is so as the other.
    fn verdicts(
        &self,
        at: u32,
        words: &BTreeMap<u32, Rows>,
        inner: &[Member],
    ) -> (Verdict, Verdict) {
        let place = |place| if at == ROOT { Place::Start } else { place };
        let last = self.members(words, false);
        let mut of_last = judge(&last, place(Place::Last), |_| true, |_, _| false);
        let mut of_inner = judge(
            inner,
            place(Place::Inner),
            |small| self.are_alike(words, small),
            |one, small| self.is_apart(words, one, small),
        );
        let names = |of: &[Member], is: &dyn Fn(&Member) -> bool| {
            let names = of.iter().filter(|member| is(member));
            names.map(|member| member.label).collect()
        };
        let both: BTreeSet<u32> = last.iter().map(|member| member.label).collect();
        let shared = inner
            .iter()
            .filter(|member| both.contains(&member.label))
            .count();
        if of_last.values && !of_inner.values && shared > 0 && shared * 2 >= inner.len() {
            of_inner = Verdict {
                values: true,
                names: names(inner, &|member| !both.contains(&member.label)),
            };
        }
        if of_inner.values && !of_last.values && shared > 0 {
            of_last = Verdict {
                values: true,
                names: names(&last, &|member| member.count >= MANY),
            };
        }
        (of_last, of_inner)
    }

    /// The first word behind, with its delimiter.
    fn next(&self, row: u32) -> (u32, u32) {
        let delimiter = self.step(row + 1);
        let word = if delimiter.is_delimiter() {
            self.step(row + 2).label
        } else {
            NONE
        };
        (delimiter.label, word)
    }

    fn inner_rows<'b>(
        &self,
        words: &'b BTreeMap<u32, Rows>,
        label: u32,
    ) -> impl Iterator<Item = u32> + use<'_, 'b> {
        let rows = words.get(&label).into_iter().flatten().copied();
        rows.filter(|row| self.step(*row).more_segments)
    }

    fn are_alike(&self, words: &BTreeMap<u32, Rows>, members: &[Member]) -> bool {
        let all = || {
            members
                .iter()
                .flat_map(|member| self.inner_rows(words, member.label))
        };
        let different: BTreeSet<(u32, u32)> = all().map(|row| self.next(row)).collect();
        different.len() * 2 <= all().count()
    }

    fn is_apart(&self, words: &BTreeMap<u32, Rows>, one: &Member, members: &[Member]) -> bool {
        let theirs = members
            .iter()
            .flat_map(|member| self.inner_rows(words, member.label));
        let theirs: BTreeSet<(u32, u32)> = theirs.map(|row| self.next(row)).collect();
        let same = self
            .inner_rows(words, one.label)
            .filter(|row| theirs.contains(&self.next(*row)));
        same.count() * 10 < one.count as usize
    }

    /// Behind merged words: a few endings such as `_lock` stay, free text doesn't.
    fn skips_segment(&self, merged: &Rows) -> bool {
        let ending = |row: &u32| -> Vec<u32> {
            let rest = row + 1..self.end_of_segment(*row);
            rest.map(|row| self.step(row).label).collect()
        };
        let endings: BTreeSet<Vec<u32>> = merged.iter().map(ending).collect();
        let few = endings.len() <= MOST_ENDINGS && endings.len() * 4 <= merged.len();
        !few && endings.iter().any(|ending| !ending.is_empty())
    }

    fn end_of_segment(&self, row: u32) -> u32 {
        let mut at = row;
        while !self.step(at).ends_segment() {
            at += 1;
        }
        at
    }
}
