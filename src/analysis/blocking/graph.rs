//! The wait-for graph: who waits for which lock, in which order, and who has what they want.
//!
//! It is kept as queues, not as edges: a thousand sessions in one queue are half a million edges.

use std::collections::HashMap;

use super::walk::Walk;
use crate::model::{LockMode, LockTag, Millis, Pid, Timestamp, Xid};

/// Who can hold a lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Holder {
    /// A session, workers folded into their leader.
    Session(Pid),
    /// A prepared transaction; its xid where the lock rows tell it.
    Prepared(Option<Xid>),
}

/// Index into `Graph::nodes`.
pub type Node = usize;

/// One ungranted lock.
pub struct Wait<'a> {
    pub node: Node,
    pub mode: &'a LockMode,
    /// By `waitstart` (PostgreSQL 14+).
    pub since: Option<Timestamp>,
    /// When it joined the queue: `since`, or where that isn't known when its statement began.
    pub(super) order: Option<Timestamp>,
    pub(super) queue: usize,
    pub(super) position: usize,
    /// Modes that conflict with the one wanted, as bits by strength; and the one wanted.
    pub(super) unwanted: u8,
    pub(super) bit: u8,
    /// The server's answer, where it was asked.
    pub(super) answer: Option<Vec<Node>>,
}

/// Everyone who holds or wants one thing.
pub struct Queue<'a> {
    pub(super) tag: &'a LockTag,
    /// Holders with the modes they hold, as bits by strength.
    pub(super) holders: Vec<(Node, u8)>,
    pub(super) held: HashMap<Node, u8>,
    /// Waits in the order in which they joined.
    pub(super) waits: Vec<usize>,
}

/// A blocker of one wait.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    pub blocker: Node,
    pub wait: usize,
    pub soft: bool,
    pub derived: bool,
}

/// Who waits for whom.
pub struct Graph<'a> {
    pub nodes: Vec<Holder>,
    pub waits: Vec<Wait<'a>>,
    pub(super) queues: Vec<Queue<'a>>,
    /// Waits of a node: more than one only for a parallel query.
    pub(super) waits_of: HashMap<Node, Vec<usize>>,
    /// Queues in which a node holds or waits.
    pub(super) queues_of: HashMap<Node, Vec<usize>>,
    /// Waits whose answer from the server names a node.
    pub(super) named_by: HashMap<Node, Vec<usize>>,
}

impl<'a> Graph<'a> {
    pub fn tag(&self, wait: usize) -> &'a LockTag {
        self.queues[self.waits[wait].queue].tag
    }

    pub fn wait_age(&self, wait: usize, now: Timestamp) -> Option<Millis> {
        self.waits[wait].since.map(|since| since.age_at(now))
    }

    /// An upper bound: a wait is no older than the statement that waits. Before PostgreSQL 14 nothing else is known.
    pub fn wait_at_most(&self, wait: usize, now: Timestamp) -> Option<Millis> {
        self.waits[wait].order.map(|order| order.age_at(now))
    }

    pub fn waits_of(&self, node: Node) -> &[usize] {
        self.waits_of.get(&node).map_or(&[], Vec::as_slice)
    }

    /// All blockers of a node, lazily; one may come more than once.
    pub fn blockers_of(&self, node: Node) -> Blockers<'_, 'a> {
        Blockers {
            graph: self,
            waits: self.waits_of(node),
            at: 0,
        }
    }

    /// All blockers of one wait.
    pub fn blockers_of_wait(&self, wait: usize) -> impl Iterator<Item = Link> + '_ {
        (0..self.candidates(wait)).filter_map(move |at| self.link(wait, at))
    }

    pub fn is_blocked(&self, node: Node) -> bool {
        self.blockers_of(node).next().is_some()
    }

    /// How many places there are to look at for blockers of a wait.
    fn candidates(&self, wait: usize) -> usize {
        let wait = &self.waits[wait];
        match &wait.answer {
            Some(list) => list.len(),
            None => self.queues[wait.queue].holders.len() + wait.position,
        }
    }

    /// The blocker at one of these places, if it is one.
    fn link(&self, index: usize, at: usize) -> Option<Link> {
        let wait = &self.waits[index];
        let queue = &self.queues[wait.queue];
        if let Some(list) = &wait.answer {
            return Some(self.answered(index, list[at]));
        }
        if let Some((blocker, modes)) = queue.holders.get(at) {
            return (*blocker != wait.node && modes & wait.unwanted != 0).then_some(Link {
                blocker: *blocker,
                wait: index,
                soft: false,
                derived: true,
            });
        }
        let ahead = &self.waits[queue.waits[at - queue.holders.len()]];
        let known = comes_before(ahead, wait);
        (known && ahead.node != wait.node && wait.unwanted & ahead.bit != 0).then_some(Link {
            blocker: ahead.node,
            wait: index,
            soft: true,
            derived: true,
        })
    }

    /// Somebody waits for this one.
    pub fn blocks(&self, node: Node) -> bool {
        self.named_by.contains_key(&node)
            || self
                .queues_of
                .get(&node)
                .into_iter()
                .flatten()
                .any(|queue| self.blocks_in(*queue, node))
    }

    /// Somebody in this queue, of whom the server wasn't asked, waits for the node.
    fn blocks_in(&self, queue: usize, node: Node) -> bool {
        let q = &self.queues[queue];
        let own = self.waits_of(node).iter().map(|wait| &self.waits[*wait]);
        // Who only waits is in the way of those behind.
        let from = match q.held.contains_key(&node) {
            true => 0,
            false => own
                .filter(|wait| wait.queue == queue)
                .map(|wait| wait.position + 1)
                .min()
                .unwrap_or(0),
        };
        q.waits[from..].iter().any(|wait| {
            let waiting = &self.waits[*wait];
            waiting.answer.is_none() && waiting.node != node && self.derived(*wait, node).is_some()
        })
    }

    /// It waits for one lock and holds another that somebody waits for: every cycle goes through such a one, since
    /// inside of one queue everybody waits only for those ahead.
    pub fn may_be_in_a_cycle(&self, node: Node) -> bool {
        self.is_blocked(node) && self.blocks(node) && !self.only_queued(node)
    }

    /// It blocks only by standing ahead of others in the one queue that it waits in.
    fn only_queued(&self, node: Node) -> bool {
        let mut known = self.queues_of.get(&node).into_iter().flatten();
        let holds = known.any(|queue| self.queues[*queue].held.contains_key(&node));
        let mut queues: Vec<usize> = self
            .waits_of(node)
            .iter()
            .map(|wait| self.waits[*wait].queue)
            .collect();
        queues.dedup();
        let named_elsewhere = self.named_by.get(&node).into_iter().flatten();
        !holds
            && queues.len() < 2
            && named_elsewhere
                .copied()
                .all(|wait| queues.contains(&self.waits[wait].queue))
    }

    /// The first blocker of a wait that holds the lock, and the last one ahead of it in the queue.
    pub fn nearest_of_wait(&self, wait: usize) -> Vec<Link> {
        let places = 0..self.candidates(wait);
        let holders = match self.waits[wait].answer {
            Some(_) => places.end,
            None => self.queues[self.waits[wait].queue].holders.len(),
        };
        let holder = places
            .clone()
            .take(holders)
            .filter_map(|at| self.link(wait, at))
            .find(|link| !link.soft);
        let ahead = places
            .rev()
            .filter_map(|at| self.link(wait, at))
            .find(|link| link.soft);
        holder.into_iter().chain(ahead).collect()
    }

    /// How many pairs of waiter and blocker there are, each counted once.
    pub fn count_edges(&self) -> usize {
        if self.waits_of.values().any(|waits| waits.len() > 1) {
            // A parallel query may wait at several places for the same one.
            let mut pairs = std::collections::HashSet::new();
            for (index, wait) in self.waits.iter().enumerate() {
                pairs.extend(
                    self.blockers_of_wait(index)
                        .map(|link| (wait.node, link.blocker)),
                );
            }
            return pairs.len();
        }
        let answered: usize = self
            .waits
            .iter()
            .filter_map(|wait| Some(wait.answer.as_ref()?.len()))
            .sum();
        answered
            + self
                .queues
                .iter()
                .map(|queue| self.count_derived(queue))
                .sum::<usize>()
    }

    /// The derived edges of a queue, by counting who wants which mode from the front on.
    fn count_derived(&self, queue: &Queue<'_>) -> usize {
        if queue
            .waits
            .iter()
            .any(|wait| self.waits[*wait].since.is_none())
        {
            // Where the order is partly unknown there is nothing to count on.
            let derived = queue
                .waits
                .iter()
                .filter(|wait| self.waits[**wait].answer.is_none());
            return derived
                .map(|wait| self.blockers_of_wait(*wait).count())
                .sum();
        }
        let (mut ahead, mut edges) = ([0_usize; 8], 0);
        for wait in queue.waits.iter().map(|wait| &self.waits[*wait]) {
            if wait.answer.is_none() {
                let holds =
                    |(node, modes): &&(Node, u8)| *node != wait.node && modes & wait.unwanted != 0;
                let blocking = queue.holders.iter().filter(holds);
                // One that holds the lock already and wants more of it is the same blocker, not a second.
                edges += blocking
                    .filter(|(node, _)| !self.is_ahead(*node, wait))
                    .count();
                edges += (0..8)
                    .filter(|bit| wait.unwanted & (1 << bit) != 0)
                    .map(|bit| ahead[bit])
                    .sum::<usize>();
            }
            if wait.bit != 0 {
                ahead[wait.bit.trailing_zeros() as usize] += 1;
            }
        }
        edges
    }

    /// The node waits in the same queue, ahead, in a conflicting mode.
    fn is_ahead(&self, node: Node, wait: &Wait<'_>) -> bool {
        self.waits_of(node)
            .iter()
            .map(|other| &self.waits[*other])
            .any(|other| {
                other.queue == wait.queue
                    && other.position < wait.position
                    && comes_before(other, wait)
                    && wait.unwanted & other.bit != 0
            })
    }

    /// A fresh walk from blockers to those that wait for them.
    pub fn walk(&self) -> Walk<'_, 'a> {
        Walk::new(self)
    }
}

/// Whether the first is known to stand ahead of the second. By the start of their statements alone two that began at
/// once can't be told apart.
fn comes_before(ahead: &Wait<'_>, behind: &Wait<'_>) -> bool {
    match (ahead.order, behind.order) {
        (Some(a), Some(b)) => a < b || ahead.since.is_some() && behind.since.is_some(),
        _ => false,
    }
}

/// Iterator over the blockers of a node's waits; small enough to be a frame of a depth-first search.
#[derive(Clone)]
pub struct Blockers<'g, 'a> {
    graph: &'g Graph<'a>,
    waits: &'g [usize],
    at: usize,
}

impl Iterator for Blockers<'_, '_> {
    type Item = Link;

    fn next(&mut self) -> Option<Link> {
        while let [wait, rest @ ..] = self.waits {
            if self.at < self.graph.candidates(*wait) {
                self.at += 1;
                if let Some(link) = self.graph.link(*wait, self.at - 1) {
                    return Some(link);
                }
            } else {
                self.waits = rest;
                self.at = 0;
            }
        }
        None
    }
}

impl Graph<'_> {
    /// A blocker that the server named: it is hard if it holds a conflicting mode, and prepared ones always hold.
    pub(super) fn answered(&self, index: usize, blocker: Node) -> Link {
        let wait = &self.waits[index];
        let held = self.queues[wait.queue].held.get(&blocker);
        let holds = held.is_some_and(|modes| modes & wait.unwanted != 0);
        let prepared = matches!(self.nodes[blocker], Holder::Prepared(_));
        Link {
            blocker,
            wait: index,
            soft: !holds && !prepared,
            derived: false,
        }
    }

    /// Whether a wait that the server wasn't asked about is for this node, without going through the whole queue.
    pub(super) fn derived(&self, index: usize, blocker: Node) -> Option<Link> {
        let wait = &self.waits[index];
        let queue = &self.queues[wait.queue];
        if let Ok(at) = queue
            .holders
            .binary_search_by_key(&blocker, |(node, _)| *node)
            && let Some(link) = self.link(index, at)
        {
            return Some(link);
        }
        let ahead = self
            .waits_of(blocker)
            .iter()
            .map(|w| &self.waits[*w])
            .filter(|w| w.queue == wait.queue)
            .min_by_key(|w| w.position)?;
        (ahead.position < wait.position)
            .then(|| self.link(index, queue.holders.len() + ahead.position))
            .flatten()
    }
}
