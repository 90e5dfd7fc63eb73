//! Lock rows and the server's answers → the graph.

use std::collections::HashMap;

use super::graph::{Graph, Holder, Node, Queue, Wait};
use crate::analysis::Lookup;
use crate::model::{Lock, LockMode, LockTag, Pid, ServerRole};

impl<'a> Graph<'a> {
    pub fn new(lookup: &Lookup<'a>) -> Self {
        let snapshot = lookup.snapshot;
        let locks = snapshot.locks.rows();
        let has_waitstart = snapshot
            .server
            .get()
            .is_some_and(|s| s.version_num >= 140_000);
        let mut build = Builder {
            lookup,
            index: HashMap::new(),
            nodes: Vec::new(),
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
            // From PostgreSQL 14 on a wait without a start has only just begun; before it none has one.
            let since = lock
                .waitstart
                .or(has_waitstart.then_some(snapshot.taken_at));
            queues[queue].waits.push(waits.len());
            wait_of_pid.entry(pid).or_default().push(waits.len());
            waits.push(Wait {
                node: build.session(pid),
                mode: &lock.mode,
                since,
                order: since.or_else(|| lookup.session(pid)?.query_start),
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
            queue.waits.sort_by_key(|wait| {
                let wait = &waits[*wait];
                (wait.order.is_none(), wait.order, wait.node)
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

    /// The server's list for one waiter, with prepared transactions put in for 0. An empty list on a standby is no
    /// answer: the function doesn't know about replay (12 to 18).
    fn take_answer(&mut self, wait: usize, blockers: &[Pid], build: &mut Builder<'_, 'a>) {
        let node = self.waits[wait].node;
        if blockers.is_empty() && build.lookup.snapshot.target.role == Some(ServerRole::Standby) {
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
}

/// Bits of the modes that conflict with this one.
fn conflicts(mode: &LockMode) -> u8 {
    LockMode::ALL
        .iter()
        .enumerate()
        .filter(|(_, other)| mode.conflicts_with(other))
        .fold(0, |bits, (bit, _)| bits | 1 << bit)
}

/// Makes nodes, each once.
struct Builder<'l, 'a> {
    lookup: &'l Lookup<'a>,
    index: HashMap<Holder, Node>,
    nodes: Vec<Holder>,
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
                let xid = self.lookup.prepared_xid(lock);
                self.node(Holder::Prepared(xid))
            }
        }
    }
}
