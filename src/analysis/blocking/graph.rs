//! The wait-for graph: who waits for which lock, in which order, and who has what they want.
//!
//! It is kept as queues, not as edges: a thousand sessions in one queue are half a million edges.

use std::collections::HashMap;

use crate::analysis::Lookup;
use crate::model::{Lock, LockMode, LockTag, Millis, Pid, Timestamp, Xid};

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
    pub since: Option<Timestamp>,
    queue: usize,
    position: usize,
    /// Modes that conflict with the one wanted, as bits by strength; and the one wanted.
    unwanted: u8,
    bit: u8,
    /// The server's answer, where it was asked.
    answer: Option<Vec<Node>>,
}

struct Queue<'a> {
    tag: &'a LockTag,
    /// Holders with the modes they hold, as bits by strength.
    holders: Vec<(Node, u8)>,
    held: HashMap<Node, u8>,
    /// Waits in the order in which they joined.
    waits: Vec<usize>,
}

/// A blocker of one wait.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    pub blocker: Node,
    pub wait: usize,
    pub soft: bool,
    pub derived: bool,
}

pub struct Graph<'a> {
    pub nodes: Vec<Holder>,
    pub waits: Vec<Wait<'a>>,
    queues: Vec<Queue<'a>>,
    /// Waits of a node: more than one only for a parallel query.
    waits_of: HashMap<Node, Vec<usize>>,
    /// Queues in which a node holds or waits.
    queues_of: HashMap<Node, Vec<usize>>,
    /// Waits whose answer from the server names a node.
    named_by: HashMap<Node, Vec<usize>>,
}

impl<'a> Graph<'a> {
    pub fn new(lookup: &Lookup<'a>) -> Self {
        let snapshot = lookup.snapshot;
        let locks = snapshot.locks.rows();
        let mut build = Builder {
            lookup,
            index: HashMap::new(),
            nodes: Vec::new(),
            prepared: prepared_xids(lookup),
        };
        let mut queues: Vec<Queue<'a>> = Vec::new();
        let mut queue_of: HashMap<&LockTag, usize> = HashMap::new();
        let mut waits: Vec<Wait<'a>> = Vec::new();
        let mut wait_of_pid: HashMap<Pid, Vec<usize>> = HashMap::new();
        for lock in locks.iter().filter(|lock| !lock.granted) {
            let Some(pid) = lock.pid else { continue };
            let queue = *queue_of.entry(&lock.tag).or_insert_with(|| {
                queues.push(Queue {
                    tag: &lock.tag,
                    holders: Vec::new(),
                    held: HashMap::new(),
                    waits: Vec::new(),
                });
                queues.len() - 1
            });
            queues[queue].waits.push(waits.len());
            wait_of_pid.entry(pid).or_default().push(waits.len());
            waits.push(Wait {
                node: build.session(pid),
                mode: &lock.mode,
                since: lock.waitstart,
                queue,
                position: 0,
                unwanted: conflicts(&lock.mode),
                bit: lock.mode.strength().map_or(0, |strength| 1 << strength),
                answer: None,
            });
        }
        for lock in locks.iter().filter(|lock| lock.granted) {
            let Some(queue) = queue_of.get(&lock.tag) else {
                continue;
            };
            let (Some(bit), queue) = (lock.mode.strength(), &mut queues[*queue]) else {
                continue;
            };
            *queue.held.entry(build.holder(lock)).or_default() |= 1 << bit;
        }
        for queue in &mut queues {
            queue.holders = queue
                .held
                .iter()
                .map(|(node, modes)| (*node, *modes))
                .collect();
            queue.holders.sort_unstable();
            // Those who have only begun to wait have no start yet: they are last.
            queue.waits.sort_by_key(|wait| {
                (
                    waits[*wait].since.is_none(),
                    waits[*wait].since,
                    waits[*wait].node,
                )
            });
            for (position, wait) in queue.waits.iter().enumerate() {
                waits[*wait].position = position;
            }
        }
        let mut graph = Self {
            nodes: Vec::new(),
            waits,
            queues,
            waits_of: HashMap::new(),
            queues_of: HashMap::new(),
            named_by: HashMap::new(),
        };
        for answer in snapshot.blocking.rows() {
            for wait in wait_of_pid.get(&answer.pid).into_iter().flatten() {
                graph.take_answer(*wait, &answer.blockers, &mut build);
            }
        }
        graph.nodes = build.nodes;
        graph.index();
        graph
    }

    /// The server's list for one waiter, with prepared transactions put in for 0. An empty list of the startup
    /// process is no answer: the function doesn't know about replay (12 to 18).
    fn take_answer(&mut self, wait: usize, blockers: &[Pid], build: &mut Builder<'_, 'a>) {
        let node = self.waits[wait].node;
        if blockers.is_empty() && build.is_startup(node) {
            return;
        }
        let mut list: Vec<Node> = Vec::with_capacity(blockers.len());
        for pid in blockers {
            if *pid == Pid(0) {
                list.extend(self.prepared_holders(wait, build));
            } else {
                list.push(build.session(*pid));
            }
        }
        // A leader stands there once for each of its workers; a session may be named as its own blocker.
        let mut seen = std::collections::HashSet::with_capacity(list.len());
        list.retain(|blocker| *blocker != node && seen.insert(*blocker));
        self.waits[wait].answer = Some(list);
    }

    /// Which prepared transactions hold what this wait wants; an unnamed one where the locks don't tell.
    fn prepared_holders(&self, wait: usize, build: &mut Builder<'_, 'a>) -> Vec<Node> {
        let wait = &self.waits[wait];
        let found: Vec<Node> = self.queues[wait.queue]
            .holders
            .iter()
            .filter(|(node, modes)| {
                matches!(build.nodes[*node], Holder::Prepared(_)) && modes & wait.unwanted != 0
            })
            .map(|(node, _)| *node)
            .collect();
        if found.is_empty() {
            vec![build.node(Holder::Prepared(None))]
        } else {
            found
        }
    }

    fn index(&mut self) {
        for (i, wait) in self.waits.iter().enumerate() {
            self.waits_of.entry(wait.node).or_default().push(i);
            self.queues_of
                .entry(wait.node)
                .or_default()
                .push(wait.queue);
            for blocker in wait.answer.iter().flatten() {
                self.named_by.entry(*blocker).or_default().push(i);
            }
        }
        for (i, queue) in self.queues.iter().enumerate() {
            for (node, _) in &queue.holders {
                let queues = self.queues_of.entry(*node).or_default();
                if !queues.contains(&i) {
                    queues.push(i);
                }
            }
        }
    }

    pub fn tag(&self, wait: usize) -> &'a LockTag {
        self.queues[self.waits[wait].queue].tag
    }

    pub fn wait_age(&self, wait: usize, now: Timestamp) -> Option<Millis> {
        self.waits[wait].since.map(|since| since.age_at(now))
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
        // Without both starts the order isn't known (before PostgreSQL 14 there are none).
        let known = ahead.since.is_some() && wait.since.is_some();
        (known && ahead.node != wait.node && wait.unwanted & ahead.bit != 0).then_some(Link {
            blocker: ahead.node,
            wait: index,
            soft: true,
            derived: true,
        })
    }

    /// Somebody waits for this one.
    pub fn blocks(&self, node: Node) -> bool {
        let named = self.named_by.contains_key(&node);
        named
            || self
                .queues_of
                .get(&node)
                .into_iter()
                .flatten()
                .any(|queue| {
                    let waits = self.queues[*queue].waits.iter();
                    waits
                        .filter(|wait| {
                            self.waits[**wait].answer.is_none() && self.waits[**wait].node != node
                        })
                        .any(|wait| self.derived(*wait, node).is_some())
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
        let (mut ahead, mut edges) = ([0_usize; 8], 0);
        for wait in queue.waits.iter().map(|wait| &self.waits[*wait]) {
            if wait.answer.is_none() {
                let holds =
                    |(node, modes): &&(Node, u8)| *node != wait.node && modes & wait.unwanted != 0;
                let blocking = queue.holders.iter().filter(holds);
                // One that holds the lock already and wants more of it is the same blocker, not a second.
                let twice = |node: Node| wait.since.is_some() && self.is_ahead(node, wait);
                edges += blocking.filter(|(node, _)| !twice(*node)).count();
                if wait.since.is_some() {
                    edges += (0..8)
                        .filter(|bit| wait.unwanted & (1 << bit) != 0)
                        .map(|bit| ahead[bit])
                        .sum::<usize>();
                }
            }
            if wait.since.is_some() && wait.bit != 0 {
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
                    && other.since.is_some()
                    && wait.unwanted & other.bit != 0
            })
    }

    /// A fresh walk from blockers to those that wait for them.
    pub fn walk(&self) -> Walk<'_, 'a> {
        Walk {
            graph: self,
            reached: vec![false; self.nodes.len()],
            from: HashMap::new(),
        }
    }
}

/// Bits of the modes that conflict with this one.
fn conflicts(mode: &LockMode) -> u8 {
    const ALL: [LockMode; 8] = [
        LockMode::AccessShare,
        LockMode::RowShare,
        LockMode::RowExclusive,
        LockMode::ShareUpdateExclusive,
        LockMode::Share,
        LockMode::ShareRowExclusive,
        LockMode::Exclusive,
        LockMode::AccessExclusive,
    ];
    ALL.iter()
        .enumerate()
        .filter(|(_, other)| mode.conflicts_with(other))
        .fold(0, |bits, (bit, _)| bits | 1 << bit)
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

/// Remembers what was reached, and from which place of a queue on everyone was looked at already.
pub struct Walk<'g, 'a> {
    graph: &'g Graph<'a>,
    pub reached: Vec<bool>,
    from: HashMap<(usize, usize), usize>,
}

impl Walk<'_, '_> {
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
            .find(|w| w.queue == queue);
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

impl Graph<'_> {
    /// A blocker that the server named: it is hard if it holds a conflicting mode, and prepared ones always hold.
    fn answered(&self, index: usize, blocker: Node) -> Link {
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
    fn derived(&self, index: usize, blocker: Node) -> Option<Link> {
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
            .find(|w| w.queue == wait.queue)?;
        (ahead.position < wait.position)
            .then(|| self.link(index, queue.holders.len() + ahead.position))
            .flatten()
    }
}

/// Makes nodes, each once.
struct Builder<'l, 'a> {
    lookup: &'l Lookup<'a>,
    index: HashMap<Holder, Node>,
    nodes: Vec<Holder>,
    prepared: HashMap<String, Xid>,
}

impl Builder<'_, '_> {
    fn node(&mut self, holder: Holder) -> Node {
        *self.index.entry(holder).or_insert_with_key(|holder| {
            self.nodes.push(holder.clone());
            self.nodes.len() - 1
        })
    }

    fn session(&mut self, pid: Pid) -> Node {
        let leader = self.lookup.leader(pid);
        self.node(Holder::Session(leader))
    }

    fn holder(&mut self, lock: &Lock) -> Node {
        match lock.pid {
            Some(pid) => self.session(pid),
            None => {
                let xid = self.prepared.get(&lock.vxid).copied();
                self.node(Holder::Prepared(xid))
            }
        }
    }

    fn is_startup(&self, node: Node) -> bool {
        let Holder::Session(pid) = self.nodes[node] else {
            return false;
        };
        let session = self.lookup.session(pid);
        session.is_some_and(|s| s.backend_type == Some(crate::model::BackendType::Startup))
    }
}

/// The xid behind each virtual transaction of a prepared one. It has two forms: `-1/<xid>` once the server was
/// restarted, and until then that of the session that prepared it, which only its own transactionid row resolves.
fn prepared_xids(lookup: &Lookup<'_>) -> HashMap<String, Xid> {
    let known: Vec<Xid> = lookup
        .snapshot
        .prepared
        .rows()
        .iter()
        .map(|p| p.xid)
        .collect();
    let mut xids = HashMap::new();
    for lock in lookup
        .snapshot
        .locks
        .rows()
        .iter()
        .filter(|lock| lock.pid.is_none() && lock.granted)
    {
        if let Some(xid) = lock
            .vxid
            .strip_prefix("-1/")
            .and_then(|xid| xid.parse().ok())
        {
            xids.insert(lock.vxid.clone(), Xid(xid));
        } else if let Some(xid) = lock.tag.xid()
            // Subtransactions have rows of their own; the name belongs to the top one.
            && (known.contains(&xid) || !xids.contains_key(&lock.vxid))
        {
            xids.insert(lock.vxid.clone(), xid);
        }
    }
    xids
}
