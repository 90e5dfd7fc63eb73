//! The graph → roots with their counts, edges, cycles, and trees short enough for a screen.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use super::graph::{Graph, Holder, Link, Node};
use super::report::{Blockers, Edge, EdgeLock, Root, RootKind, Source};
use super::{cycles, remedy, tree};
use crate::analysis::Lookup;
use crate::model::{BackendType, Millis, Pid, PreparedXact};

/// Up to so many edges the list is complete.
const MOST_EDGES: usize = 10_000;
/// Trees that a screen takes.
const MOST_TREES: usize = 10;

/// One root while it is worked on.
pub(super) struct Found {
    pub nodes: Vec<Node>,
    pub kind: RootKind,
    direct: Vec<Link>,
    /// Everyone who waits for it, directly or through others.
    reached: Rc<[Node]>,
}

pub fn build(lookup: &Lookup<'_>) -> Blockers {
    let graph = Graph::new(lookup);
    let now = lookup.snapshot.taken_at;
    let blocked: Vec<bool> = (0..graph.nodes.len())
        .map(|node| graph.is_blocked(node))
        .collect();
    let cycles = cycles::find(&graph);
    let mut found = roots(&graph, &blocked, &cycles, lookup);
    let mut under = vec![0_usize; graph.nodes.len()];
    for node in found.iter().flat_map(|root| root.reached.iter()) {
        under[*node] += 1;
    }
    let freed = |root: &Found| {
        root.reached
            .iter()
            .filter(|node| under[**node] == 1)
            .count()
    };
    // Most freed first; among equals the older transaction, which a stable order keeps the same live and replayed.
    found.sort_by_cached_key(|root| {
        let since = root
            .nodes
            .first()
            .and_then(|node| since(lookup, &graph.nodes[*node]));
        (
            std::cmp::Reverse((freed(root), root.reached.len())),
            since.is_none(),
            since,
            root.nodes.clone(),
        )
    });
    let mut behind = HashMap::new();
    let described = found
        .iter()
        .map(|root| describe(&graph, lookup, root, freed(root), &mut behind))
        .collect();
    let trees = found
        .iter()
        .take(MOST_TREES)
        .map(|root| tree::grow(&graph, lookup, root, &under))
        .collect();
    let (edges, edges_total) = edges(&graph, lookup);
    let longest = (0..graph.waits.len())
        .filter(|wait| blocked[graph.waits[*wait].node])
        .filter_map(|wait| graph.wait_age(wait, now))
        .max();
    let at_most = (0..graph.waits.len())
        .filter(|wait| blocked[graph.waits[*wait].node])
        .map(|wait| graph.wait_at_most(wait, now));
    // One of which nothing is known may have waited for any time.
    let at_most = at_most.map(|age| age.unwrap_or(Millis(u64::MAX))).max();
    Blockers {
        roots: described,
        edges_truncated: edges.len() < edges_total,
        edges,
        edges_total,
        cycles: cycles.iter().map(|nodes| pids(&graph, nodes)).collect(),
        blocked: blocked.iter().filter(|blocked| **blocked).count(),
        longest_wait_ms: longest,
        wait_at_most: at_most,
        trees,
    }
}

fn since(lookup: &Lookup<'_>, holder: &Holder) -> Option<crate::model::Timestamp> {
    match holder {
        Holder::Session(pid) => lookup.session(*pid).and_then(|s| s.xact_start),
        Holder::Prepared(_) => prepared(lookup, holder).map(|p| p.prepared),
    }
}

fn prepared<'a>(lookup: &Lookup<'a>, holder: &Holder) -> Option<&'a PreparedXact> {
    let Holder::Prepared(Some(xid)) = holder else {
        return None;
    };
    lookup.prepared(*xid)
}

fn pids(graph: &Graph<'_>, nodes: &[Node]) -> Vec<Pid> {
    let mut pids: Vec<Pid> = nodes
        .iter()
        .filter_map(|node| match graph.nodes[*node] {
            Holder::Session(pid) => Some(pid),
            Holder::Prepared(_) => None,
        })
        .collect();
    pids.sort_unstable();
    pids
}

/// Those that block and aren't blocked, and each cycle as one.
fn roots(
    graph: &Graph<'_>,
    blocked: &[bool],
    cycles: &[Vec<Node>],
    lookup: &Lookup<'_>,
) -> Vec<Found> {
    let free = (0..graph.nodes.len())
        .filter(|node| !blocked[*node] && graph.blocks(*node))
        .map(|node| {
            let kind = match &graph.nodes[node] {
                Holder::Prepared(_) => RootKind::Prepared,
                Holder::Session(pid) => {
                    match lookup.session(*pid).and_then(|s| s.backend_type.as_ref()) {
                        Some(BackendType::Startup) => RootKind::Startup,
                        _ => RootKind::Session,
                    }
                }
            };
            (vec![node], kind)
        });
    let turning = cycles.iter().map(|nodes| (nodes.clone(), RootKind::Cycle));
    // Thousands of readers before one DDL all reach the same: it is walked once.
    let mut known = HashMap::new();
    free.chain(turning)
        .map(|(nodes, kind)| reach(graph, nodes, kind, &mut known))
        .collect()
}

/// Everyone who waits for one of these, directly or through others.
fn reach(
    graph: &Graph<'_>,
    nodes: Vec<Node>,
    kind: RootKind,
    known: &mut HashMap<Vec<Node>, Rc<[Node]>>,
) -> Found {
    let mut walk = graph.walk();
    let mut next = Vec::new();
    if kind == RootKind::Cycle {
        // Its members wait for each other: they count, and aren't found again behind one another.
        next.clone_from(&nodes);
        for node in &nodes {
            walk.reached[*node] = true;
        }
    }
    let direct: Vec<Link> = nodes.iter().flat_map(|node| walk.step(*node)).collect();
    next.extend(direct.iter().map(|link| graph.waits[link.wait].node));
    let reached = known.entry(next).or_insert_with_key(|next| {
        let mut all = next.clone();
        let mut at = 0;
        while at < all.len() {
            let links = walk.step(all[at]);
            all.extend(links.iter().map(|link| graph.waits[link.wait].node));
            at += 1;
        }
        all.into()
    });
    Found {
        reached: Rc::clone(reached),
        nodes,
        kind,
        direct,
    }
}

/// How many wait behind each of these, directly or through others, whether it holds what they want or only stands ahead of them
/// in the queue.
pub fn behind(lookup: &Lookup<'_>, pids: &[Pid]) -> BTreeMap<Pid, usize> {
    let graph = Graph::new(lookup);
    let mut known = HashMap::new();
    let nodes = graph.nodes.iter().enumerate();
    nodes
        .filter_map(|(node, holder)| match holder {
            Holder::Session(pid) if pids.contains(pid) => Some((node, *pid)),
            _ => None,
        })
        .map(|(node, pid)| {
            let found = reach(&graph, vec![node], RootKind::Session, &mut known);
            // In a circle it comes behind itself.
            let others = found.reached.iter().filter(|other| **other != node);
            (pid, others.count())
        })
        .collect()
}

fn describe(
    graph: &Graph<'_>,
    lookup: &Lookup<'_>,
    root: &Found,
    freed: usize,
    only_behind: &mut HashMap<Vec<Node>, usize>,
) -> Root {
    let now = lookup.snapshot.taken_at;
    let node = root.nodes[0];
    let holder = &graph.nodes[node];
    let prepared = prepared(lookup, holder);
    let session = match (holder, root.kind) {
        (Holder::Session(pid), RootKind::Session | RootKind::Startup) => lookup.session(*pid),
        _ => None,
    };
    let pid = match (holder, root.kind) {
        (Holder::Session(pid), RootKind::Session | RootKind::Startup) => Some(*pid),
        _ => None,
    };
    let waits = || root.reached.iter().flat_map(|node| graph.waits_of(*node));
    let longest = waits().filter_map(|wait| graph.wait_age(*wait, now)).max();
    let bounds = waits().map(|wait| graph.wait_at_most(*wait, now).unwrap_or(Millis(u64::MAX)));
    let at_most = bounds.max();
    let shared_rows =
        pid.is_some_and(|pid| remedy::may_share_rows(graph, lookup, pid, &root.direct));
    let mut blocked = remedy::Blocked {
        direct: &root.direct,
        total: root.reached.len(),
        freed,
        only_behind,
    };
    let momentary = at_most.is_some_and(|wait| wait < remedy::MOMENT);
    let remedy = match root.kind {
        RootKind::Prepared | RootKind::Session if momentary => remedy::momentary(at_most),
        RootKind::Prepared => remedy::prepared(lookup, prepared),
        RootKind::Cycle => remedy::cycle(lookup, &pids(graph, &root.nodes)),
        RootKind::Startup => remedy::startup(),
        RootKind::Session => remedy::session(graph, lookup, pid, &mut blocked),
    };
    Root {
        pid,
        backend_start: session.and_then(|s| s.id.backend_start),
        backend_type: session.and_then(|s| s.backend_type.clone()),
        xact_start: session
            .and_then(|s| s.xact_start)
            .or(prepared.map(|p| p.prepared)),
        database: session
            .and_then(|s| s.database.clone())
            .or_else(|| prepared.and_then(|p| p.database.clone())),
        client_addr: session.and_then(|s| s.client.addr.clone()),
        wait_event_type: session
            .and_then(|s| s.wait.as_ref())
            .map(|w| w.class.clone()),
        wait_event: session
            .and_then(|s| s.wait.as_ref())
            .map(|w| w.event.clone()),
        gid: prepared.map(|p| p.gid.clone()),
        kind: root.kind,
        state: session.and_then(|s| s.state.clone()),
        user: session
            .and_then(|s| s.user.clone())
            .or_else(|| prepared.and_then(|p| p.owner.clone())),
        application_name: session.and_then(|s| s.application_name.clone()),
        xact_age_ms: session
            .and_then(|s| s.xact_age(now))
            .or(prepared.map(|p| p.prepared.age_at(now))),
        state_age_ms: session.and_then(|s| s.state_age(now)),
        query: session.and_then(|s| s.query.clone()),
        query_truncated: session.is_some_and(|s| s.query_truncated),
        hidden: session.is_some_and(|s| s.hidden),
        blocked_direct: match root.kind {
            RootKind::Cycle => root.nodes.len() + root.direct.len(),
            _ => root.direct.len(),
        },
        blocked_total: root.reached.len(),
        freed: (!shared_rows).then_some(freed),
        members: if root.kind == RootKind::Cycle {
            pids(graph, &root.nodes)
        } else {
            Vec::new()
        },
        shared_rows,
        longest_wait_ms: longest,
        remedy,
    }
}

fn edges(graph: &Graph<'_>, lookup: &Lookup<'_>) -> (Vec<Edge>, usize) {
    let now = lookup.snapshot.taken_at;
    let total = graph.count_edges();
    let mut edges: Vec<(Node, Edge)> = Vec::new();
    for wait in 0..graph.waits.len() {
        let links = if total > MOST_EDGES {
            graph.nearest_of_wait(wait)
        } else {
            graph.blockers_of_wait(wait).collect()
        };
        let waiting = &graph.waits[wait];
        let Holder::Session(waiter) = graph.nodes[waiting.node] else {
            continue;
        };
        let tag = graph.tag(wait);
        edges.extend(links.into_iter().map(|link| {
            let edge = Edge {
                waiter,
                blocker: match graph.nodes[link.blocker] {
                    Holder::Session(pid) => Some(pid),
                    Holder::Prepared(_) => None,
                },
                gid: prepared(lookup, &graph.nodes[link.blocker]).map(|p| p.gid.clone()),
                soft: link.soft,
                source: if link.derived {
                    Source::Derived
                } else {
                    Source::Server
                },
                lock: Some(EdgeLock {
                    locktype: tag.locktype().to_owned(),
                    mode: waiting.mode.clone(),
                    relation: tag
                        .relation()
                        .map(|(database, relation)| lookup.relation(database, relation)),
                    database: tag.database().and_then(|oid| lookup.database(oid)),
                }),
                wait_ms: graph.wait_age(wait, now),
            };
            (link.blocker, edge)
        }));
    }
    edges.sort_by(|(a_node, a), (b_node, b)| {
        let key = |edge: &Edge| (edge.waiter, edge.blocker);
        key(a)
            .cmp(&key(b))
            .then_with(|| a.gid.cmp(&b.gid))
            .then(a_node.cmp(b_node))
    });
    edges.dedup_by_key(|(node, edge)| (edge.waiter, *node));
    (edges.into_iter().map(|(_, edge)| edge).collect(), total)
}
