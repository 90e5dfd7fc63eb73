//! A lock queue: those who wait only because a DDL that waits itself stands ahead of them.

use super::graph::{Graph, Holder, Node};
use super::remedy::{Action, Blocked, Remedy, waiter};
use super::signal::signal_all;
use crate::analysis::Lookup;
use crate::model::{BackendType, LockMode, LockTag, Session};

/// The DDL to cancel, where most of those who wait do so only because it stands ahead of them in the queue.
pub(super) fn queued_ddl(
    graph: &Graph<'_>,
    lookup: &Lookup<'_>,
    blocked: &mut Blocked<'_>,
) -> Option<Remedy> {
    // The statements that stand at the front of each queue, one behind another.
    let mut fronts: Vec<(&LockTag, Vec<Node>)> = Vec::new();
    for link in blocked.direct {
        let (wait, tag) = (&graph.waits[link.wait], graph.tag(link.wait));
        let ddl = !link.soft
            && matches!(tag, LockTag::Relation { .. })
            && wait.mode.strength() >= LockMode::ShareUpdateExclusive.strength()
            // Replay and autovacuum stand in queues too.
            && waiter(graph, lookup, link).is_some_and(|s| s.backend_type == Some(BackendType::Client));
        match fronts.iter_mut().find(|(known, _)| *known == tag) {
            Some((_, ddls)) if ddl && ddls.len() < MOST_DDLS => ddls.push(wait.node),
            None if ddl => fronts.push((tag, vec![wait.node])),
            _ => {}
        }
    }
    // Of each queue the shortest front that at least half of those blocked wait behind; of these the one that frees most.
    let (ddls, behind) = fronts
        .into_iter()
        .filter_map(|(_, ddls)| {
            (1..=ddls.len()).find_map(|number| {
                let front = ddls[..number].to_vec();
                let known = blocked.only_behind.entry(front);
                let behind = *known.or_insert_with_key(|front| only_behind(graph, front));
                (behind > 0 && behind * 2 >= blocked.total)
                    .then(|| (ddls[..number].to_vec(), behind))
            })
        })
        .max_by_key(|(_, behind)| *behind)?;
    let sessions: Vec<&Session> = ddls
        .iter()
        .filter_map(|node| match graph.nodes[*node] {
            Holder::Session(pid) => lookup.session(pid),
            Holder::Prepared(_) => None,
        })
        .filter(|s| !s.hidden)
        .collect();
    let first = *sessions.first().filter(|_| sessions.len() == ddls.len())?;
    let pids: Vec<String> = sessions.iter().map(|s| s.pid().to_string()).collect();
    let (which, them) = match sessions.len() {
        1 => (format!("this statement (pid {}) stands", pids[0]), "it"),
        _ => (
            format!("these statements (pids {}) stand", pids.join(", ")),
            "them",
        ),
    };
    let why = format!(
        "a lock queue: {behind} of {} wait only because {which} ahead of them; cancel {them} and run {them} again later \
         with a lock_timeout",
        blocked.total
    );
    Some(Remedy {
        behind: Some(behind),
        ..signal_all(lookup, first, &sessions, Action::Cancel, why)
    })
}

/// More statements than these aren't cancelled by one advice.
const MOST_DDLS: usize = 5;

/// How many would go on if these waiters left the queue: those whose blockers are all either it, or
/// others that would go on as well.
fn only_behind(graph: &Graph<'_>, ddls: &[Node]) -> usize {
    let mut walk = graph.walk();
    for ddl in ddls {
        walk.reached[*ddl] = true;
    }
    let mut behind = ddls.to_vec();
    let mut at = 0;
    while at < behind.len() {
        let links = walk.step(behind[at]);
        behind.extend(links.iter().map(|link| graph.waits[link.wait].node));
        at += 1;
    }
    // It counts as gone; of the others those stay that wait for somebody who stays.
    let mut goes = walk.reached;
    loop {
        let stays = |node: &Node| graph.blockers_of(*node).any(|link| !goes[link.blocker]);
        let kept: Vec<Node> = behind[ddls.len()..]
            .iter()
            .copied()
            .filter(|n| goes[*n] && stays(n))
            .collect();
        if kept.is_empty() {
            return behind[ddls.len()..]
                .iter()
                .filter(|node| goes[**node])
                .count();
        }
        for node in kept {
            goes[node] = false;
        }
    }
}
