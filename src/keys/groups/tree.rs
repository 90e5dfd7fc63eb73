//! What was learned: a tree, a token further down with each step.

use std::collections::BTreeMap;

use super::grouping::GroupId;

/// The first node.
pub const ROOT: u32 = 0;

/// A position within keys.
#[derive(Default)]
pub struct Node {
    pub parent: u32,
    pub label: Box<[u8]>,
    pub children: BTreeMap<Box<[u8]>, u32>,
    /// Where values lead.
    pub star: Option<u32>,
    /// Words that end the key, or don't, and have no child are values.
    pub last_are_values: bool,
    pub inner_are_values: bool,
    /// Words that look odd and have no child are values.
    pub draws_in_odd: bool,
    /// Delimiters that have no child are values too.
    pub drops_delimiters: bool,
    /// Whatever follows is one value.
    pub takes_all: bool,
    /// The value goes on to the end of its segment.
    pub skips_segment: bool,
    /// Keys of the sample that end here.
    pub keys: u32,
    pub group: Option<GroupId>,
    /// Wasn't learned, but came later.
    pub is_late: bool,
    pub late_children: u16,
}

/// Nodes, of which the first is the root.
pub struct Tree {
    pub nodes: Vec<Node>,
}

impl Tree {
    pub fn new() -> Self {
        Self {
            nodes: vec![Node::default()],
        }
    }

    pub fn node(&self, id: u32) -> &Node {
        &self.nodes[id as usize]
    }

    pub fn node_mut(&mut self, id: u32) -> &mut Node {
        &mut self.nodes[id as usize]
    }

    fn push(&mut self, parent: u32, label: &[u8]) -> u32 {
        let id = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        self.nodes.push(Node {
            parent,
            label: label.into(),
            ..Node::default()
        });
        id
    }

    /// A new child for a name or a delimiter.
    pub fn child(&mut self, parent: u32, label: &[u8]) -> u32 {
        let id = self.push(parent, label);
        self.node_mut(parent).children.insert(label.into(), id);
        id
    }

    /// The child for values, a new one if there is none.
    pub fn star(&mut self, parent: u32) -> u32 {
        if let Some(id) = self.node(parent).star {
            return id;
        }
        let id = self.push(parent, b"*");
        self.node_mut(parent).star = Some(id);
        id
    }

    /// The name of the group of keys that end here.
    pub fn name(&self, id: u32) -> String {
        let mut labels = Vec::new();
        let mut at = id;
        while at != ROOT {
            labels.push(&*self.node(at).label);
            at = self.node(at).parent;
        }
        let mut name = Vec::new();
        for label in labels.into_iter().rev() {
            for &byte in label {
                // Values that only a `-` parts are one.
                if byte == b'*' {
                    match name.as_slice() {
                        [.., b'*'] => continue,
                        [.., b'*', b'-' | b'_'] => {
                            name.pop();
                            continue;
                        }
                        _ => {}
                    }
                }
                name.push(byte);
            }
        }
        String::from_utf8_lossy(&name).into_owned()
    }
}
