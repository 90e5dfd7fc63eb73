//! A root's waiters as lines for a screen: nearest first, cut in depth, breadth and length, what is cut counted.

use super::forest::Found;
use super::graph::{Graph, Holder, Link, Node};
use super::report::RootKind;
use super::walk::Walk;
use crate::analysis::Lookup;
use crate::model::{BackendType, Millis, Pid, SessionState};

/// What a screen takes.
const MOST_CHILDREN: usize = 4;
const MOST_DEPTH: usize = 5;
const MOST_LINES: usize = 14;

/// A root's tree, cut to a screen.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    pub lines: Vec<TreeLine>,
}

/// One line below a root.
#[derive(Clone, Debug)]
pub enum TreeLine {
    Waiter(Box<TreeWaiter>),
    /// So many more wait for the one above, with all that wait for them.
    More {
        depth: usize,
        count: usize,
        longest_wait_ms: Option<Millis>,
    },
}

/// A session that waits, under the one it waits for.
#[derive(Clone, Debug)]
pub struct TreeWaiter {
    pub depth: usize,
    pub pid: Pid,
    pub user: Option<String>,
    pub application_name: Option<String>,
    pub state: Option<SessionState>,
    pub backend_type: Option<BackendType>,
    /// How many roots it waits under: ending one of several doesn't free it.
    pub roots: usize,
    pub soft: bool,
    /// `ShareLock on transaction 742`
    pub wanted: String,
    pub wait_ms: Option<Millis>,
    pub query: Option<String>,
    pub query_truncated: bool,
}

/// The root's waiters, nearest first, cut in depth, in breadth and in length; what is cut is counted.
pub(super) fn grow(graph: &Graph<'_>, lookup: &Lookup<'_>, root: &Found, under: &[usize]) -> Tree {
    let mut walk = graph.walk();
    let mut lines = Vec::new();
    let mut grow = Grow {
        graph,
        lookup,
        walk: &mut walk,
        lines: &mut lines,
        under,
    };
    if root.kind == RootKind::Cycle {
        for node in &root.nodes {
            grow.walk.reached[*node] = true;
        }
        let (shown, cut) = root.nodes.split_at(root.nodes.len().min(MOST_CHILDREN));
        let in_circle = |node: &Node| {
            graph
                .blockers_of(*node)
                .find(|link| root.nodes.contains(&link.blocker))
        };
        for link in shown.iter().filter_map(in_circle) {
            grow.waiter(&link, 0);
            grow.children(graph.waits[link.wait].node, 1);
        }
        let cut: Vec<Link> = cut.iter().filter_map(in_circle).collect();
        if !cut.is_empty() {
            grow.more(&cut, 0);
        }
    } else {
        grow.children(root.nodes[0], 0);
    }
    Tree { lines }
}

struct Grow<'g, 'a> {
    graph: &'g Graph<'a>,
    lookup: &'g Lookup<'a>,
    walk: &'g mut Walk<'g, 'a>,
    lines: &'g mut Vec<TreeLine>,
    under: &'g [usize],
}

impl Grow<'_, '_> {
    fn children(&mut self, node: Node, depth: usize) {
        let links = self.walk.step(node);
        let room = if depth < MOST_DEPTH {
            MOST_CHILDREN.min(MOST_LINES.saturating_sub(self.lines.len()))
        } else {
            0
        };
        // One line more says as much as the line that would count it.
        let shown = if links.len() == room + 1 && room > 0 {
            links.len()
        } else {
            links.len().min(room)
        };
        for link in &links[..shown] {
            self.waiter(link, depth);
            self.children(self.graph.waits[link.wait].node, depth + 1);
        }
        let rest = &links[shown..];
        if !rest.is_empty() {
            self.more(rest, depth);
        }
    }

    fn more(&mut self, links: &[Link], depth: usize) {
        let now = self.lookup.snapshot.taken_at;
        let mut all: Vec<(Node, Option<Millis>)> = links
            .iter()
            .map(|l| {
                (
                    self.graph.waits[l.wait].node,
                    self.graph.wait_age(l.wait, now),
                )
            })
            .collect();
        let mut at = 0;
        while at < all.len() {
            let below = self.walk.step(all[at].0);
            all.extend(below.iter().map(|l| {
                (
                    self.graph.waits[l.wait].node,
                    self.graph.wait_age(l.wait, now),
                )
            }));
            at += 1;
        }
        let longest_wait_ms = all.iter().filter_map(|(_, wait)| *wait).max();
        self.lines.push(TreeLine::More {
            depth,
            count: all.len(),
            longest_wait_ms,
        });
    }

    fn waiter(&mut self, link: &Link, depth: usize) {
        let wait = &self.graph.waits[link.wait];
        let Holder::Session(pid) = self.graph.nodes[wait.node] else {
            return;
        };
        let session = self.lookup.session(pid);
        self.lines.push(TreeLine::Waiter(Box::new(TreeWaiter {
            depth,
            pid,
            user: session.and_then(|s| s.user.clone()),
            application_name: session.and_then(|s| s.application_name.clone()),
            state: session.and_then(|s| s.state.clone()),
            backend_type: session.and_then(|s| s.backend_type.clone()),
            roots: self.under[wait.node],
            soft: link.soft,
            wanted: self.lookup.wanted(wait.mode, self.graph.tag(link.wait)),
            wait_ms: self
                .graph
                .wait_age(link.wait, self.lookup.snapshot.taken_at),
            query: session.and_then(|s| s.query.clone()),
            query_truncated: session.is_some_and(|s| s.query_truncated),
        })));
    }
}
