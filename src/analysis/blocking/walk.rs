//! From blockers to those that wait for them, each reached once.

use std::collections::HashMap;

use super::graph::{Graph, Link, Node};

/// Remembers what was reached, and from which place of a queue on everyone was looked at already.
pub struct Walk<'g, 'a> {
    graph: &'g Graph<'a>,
    pub reached: Vec<bool>,
    from: HashMap<(usize, usize), usize>,
}

impl<'g, 'a> Walk<'g, 'a> {
    pub fn new(graph: &'g Graph<'a>) -> Self {
        Self {
            graph,
            reached: vec![false; graph.nodes.len()],
            from: HashMap::new(),
        }
    }

    /// Those that wait for `node` directly and weren't reached before, in the order of waiting.
    pub fn step(&mut self, node: Node) -> Vec<Link> {
        let mut links = Vec::new();
        for wait in self.graph.named_by.get(&node).into_iter().flatten() {
            self.reach(*wait, node, &mut links, |graph| {
                Some(graph.answered(*wait, node))
            });
        }
        for queue in self.graph.queues_of.get(&node).into_iter().flatten() {
            let from = self.unseen_from(*queue, node);
            let waits = &self.graph.queues[*queue].waits;
            for wait in &waits[from] {
                if self.graph.waits[*wait].answer.is_none() {
                    self.reach(*wait, node, &mut links, |graph| graph.derived(*wait, node));
                }
            }
        }
        links.sort_by_key(|link| {
            let wait = &self.graph.waits[link.wait];
            (link.soft, wait.since.is_none(), wait.since, wait.node)
        });
        links
    }

    /// Places of the queue that may wait for `node`: all for a holder, those behind for a waiter. Of waiters of one
    /// mode only the foremost needs a look, since whoever waits behind a later one waits behind it as well.
    fn unseen_from(&mut self, queue: usize, node: Node) -> std::ops::Range<usize> {
        let q = &self.graph.queues[queue];
        if q.held.contains_key(&node) {
            return 0..q.waits.len();
        }
        let own = self
            .graph
            .waits_of(node)
            .iter()
            .map(|w| &self.graph.waits[*w])
            .filter(|w| w.queue == queue)
            .min_by_key(|w| w.position);
        let Some((position, mode)) = own.and_then(|w| Some((w.position, w.mode.strength()?)))
        else {
            return 0..0;
        };
        let seen = self.from.entry((queue, mode)).or_insert(q.waits.len());
        let range = position + 1..(*seen).max(position + 1);
        *seen = (*seen).min(position + 1);
        range
    }

    fn reach(
        &mut self,
        wait: usize,
        blocker: Node,
        links: &mut Vec<Link>,
        link: impl Fn(&Graph<'_>) -> Option<Link>,
    ) {
        let waiter = self.graph.waits[wait].node;
        if waiter == blocker || self.reached[waiter] {
            return;
        }
        if let Some(link) = link(self.graph) {
            self.reached[waiter] = true;
            links.push(link);
        }
    }
}
