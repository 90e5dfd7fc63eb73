//! Which group a key belongs to.

use std::collections::HashMap;

use super::pattern::Pattern;
use super::shape::{LONGEST_WORD, is_delimiter, is_fixed};
use super::token::{Kind, Token, Tokens};
use super::tree::{ROOT, Tree};

/// In all, with those of patterns, and the one for what goes beyond.
const MOST_GROUPS: usize = 4096;
/// Learned ones: room is left for what the sample didn't have.
const MOST_LEARNED: usize = 3072;
const MOST_NODES: usize = 131_072;
/// Names at a position that the sample didn't have.
const MOST_LATE: u16 = 1024;
/// The same where all is new, and nothing tells names from values.
const MOST_LATE_OF_LATE: u16 = 8;

const OTHERS: &str = "(others)";

/// A group of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupId(pub u32);

/// The groups that were learned, and those that came later.
pub struct Grouping {
    patterns: Vec<(Pattern, GroupId)>,
    tree: Tree,
    names: Vec<Box<str>>,
    ids: HashMap<Box<str>, GroupId>,
    others: GroupId,
}

impl Grouping {
    pub(crate) fn new(patterns: Vec<Pattern>, tree: Tree) -> Self {
        let mut all = Self {
            patterns: Vec::new(),
            tree,
            names: Vec::new(),
            ids: HashMap::new(),
            others: GroupId(0),
        };
        all.others = all.add(OTHERS.to_owned());
        for pattern in patterns {
            let id = all.add(pattern.text().to_owned());
            all.patterns.push((pattern, id));
        }
        all.add_learned();
        all
    }

    /// The largest ones, if there are too many.
    fn add_learned(&mut self) {
        let mut keys: HashMap<String, (u32, Vec<u32>)> = HashMap::new();
        for id in 0..self.tree.nodes.len() as u32 {
            let of_node = self.tree.node(id).keys;
            if of_node > 0 {
                let entry = keys.entry(self.tree.name(id)).or_default();
                entry.0 += of_node;
                entry.1.push(id);
            }
        }
        let mut found: Vec<(String, (u32, Vec<u32>))> = keys.into_iter().collect();
        found.sort_by(|(a, (of_a, _)), (b, (of_b, _))| of_b.cmp(of_a).then_with(|| a.cmp(b)));
        for (name, (_, nodes)) in found {
            let id = match self.ids.get(&*name) {
                Some(id) => *id,
                None if self.names.len() >= MOST_LEARNED => self.others,
                None => self.add(name),
            };
            for node in nodes {
                self.tree.node_mut(node).group = Some(id);
            }
        }
    }

    fn add(&mut self, name: String) -> GroupId {
        if let Some(id) = self.ids.get(&*name) {
            return *id;
        }
        let id = GroupId(u32::try_from(self.names.len()).unwrap_or(u32::MAX));
        self.names.push(name.clone().into());
        self.ids.insert(name.into(), id);
        id
    }

    /// How many groups there are, those of all patterns and the one for others too.
    #[expect(
        clippy::len_without_is_empty,
        reason = "the group of the others is always there"
    )]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Such as `catalog:product:*:v1`. What isn't printable is a `*`.
    pub fn name(&self, id: GroupId) -> &str {
        self.names.get(id.0 as usize).map_or(OTHERS, |name| name)
    }

    /// Whether the name says anything: not if it is nothing but values, nor if there were too many groups.
    pub fn is_classified(&self, id: GroupId) -> bool {
        let name = self.name(id);
        let says = |byte: u8| byte != b'*' && !is_delimiter(byte);
        id != self.others && (name.bytes().any(says) || !name.contains('*'))
    }

    /// The group of a key; a new one if the sample had nothing like it. The same key has the same group ever after.
    pub fn assign(&mut self, key: &[u8]) -> GroupId {
        if let Some((_, id)) = self
            .patterns
            .iter()
            .find(|(pattern, _)| pattern.matches(key))
        {
            return *id;
        }
        let Some(at) = self.walk(key) else {
            return self.others;
        };
        if let Some(id) = self.tree.node(at).group {
            return id;
        }
        let name = self.tree.name(at);
        let id = match self.ids.get(&*name) {
            Some(id) => *id,
            None if self.names.len() >= MOST_GROUPS => return self.others,
            None => self.add(name),
        };
        self.tree.node_mut(at).group = Some(id);
        id
    }

    /// The node at which the key ends. `None`: there is no room for it.
    fn walk(&mut self, key: &[u8]) -> Option<u32> {
        let mut at = ROOT;
        let mut tokens = Tokens::new(key);
        loop {
            let node = self.tree.node(at);
            if node.skips_segment {
                tokens.skip_segment();
            }
            let Some(token) = tokens.next() else {
                return Some(at);
            };
            if node.takes_all {
                return node.star;
            }
            at = match token.kind {
                Kind::Value => self.star(at)?,
                Kind::Delimiter { .. } => self.named(at, &token)?,
                Kind::Name | Kind::Odd | Kind::OddSegment => self.word(at, &token, &mut tokens)?,
            };
        }
    }

    fn star(&mut self, at: u32) -> Option<u32> {
        match self.tree.node(at).star {
            None if self.tree.nodes.len() >= MOST_NODES => None,
            None => {
                let id = self.tree.star(at);
                self.tree.node_mut(id).is_late = true;
                Some(id)
            }
            star => star,
        }
    }

    fn word(&mut self, at: u32, token: &Token<'_>, tokens: &mut Tokens<'_>) -> Option<u32> {
        let node = self.tree.node(at);
        if node.draws_in_odd && token.kind == Kind::OddSegment {
            tokens.skip_segment();
            return self.star(at);
        }
        let mut buffer = [0; LONGEST_WORD + 1];
        // Late ones count only where a word without a child isn't a value: or else groups would depend on what came before.
        let learned = |child: &&u32| !self.tree.node(**child).is_late;
        let child = node.children.get(token.label(&mut buffer)).filter(learned);
        if let Some(child) = child {
            return Some(*child);
        }
        let stem = token
            .stem(&mut buffer)
            .and_then(|stem| node.children.get(stem));
        if let Some(child) = stem.filter(learned) {
            return Some(*child);
        }
        if node.draws_in_odd && token.kind == Kind::Odd {
            return self.star(at);
        }
        let is_value = match (node.last_are_values, node.inner_are_values) {
            (false, false) => false,
            (true, true) => true,
            (_, inner) => tokens.has_more_segments() == inner,
        };
        let is_fixed = || token.kind == Kind::Name && is_fixed(token.raw);
        if is_value && !is_fixed() {
            return self.star(at);
        }
        self.named(at, token)
    }

    /// The child for a name, a new one as long as there is room; then that for values.
    fn named(&mut self, at: u32, token: &Token<'_>) -> Option<u32> {
        let mut buffer = [0; LONGEST_WORD + 1];
        let label = token.label(&mut buffer);
        let node = self.tree.node(at);
        if let Some(child) = node.children.get(label) {
            return Some(*child);
        }
        let most = if node.is_late {
            MOST_LATE_OF_LATE
        } else {
            MOST_LATE
        };
        let dropped = node.drops_delimiters && matches!(token.kind, Kind::Delimiter { .. });
        let full = self.tree.nodes.len() >= MOST_NODES || self.names.len() >= MOST_GROUPS;
        if full || dropped || node.late_children >= most {
            return self.star(at);
        }
        let id = self.tree.child(at, label);
        self.tree.node_mut(id).is_late = true;
        self.tree.node_mut(at).late_children += 1;
        Some(id)
    }
}

#[cfg(test)]
impl Grouping {
    /// How many keys of the sample ended in each group when it was learned.
    pub(crate) fn learned(&self) -> HashMap<GroupId, usize> {
        let mut all = HashMap::new();
        for node in self.tree.nodes.iter().filter(|node| node.keys > 0) {
            let id = node.group.unwrap_or(self.others);
            *all.entry(id).or_insert(0) += node.keys as usize;
        }
        all
    }
}
