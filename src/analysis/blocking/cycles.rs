//! Circles of waiting: until `deadlock_timeout` fires, nobody in one moves.

use super::graph::{Graph, Node};

/// Strongly connected components of more than one node: until `deadlock_timeout` fires, nobody in them moves.
///
/// Tarjan's algorithm without recursion: a queue may be thousands deep.
pub(super) fn find(graph: &Graph<'_>) -> Vec<Vec<Node>> {
    const NEW: usize = usize::MAX;
    let count = graph.nodes.len();
    let (mut index, mut low, mut on_stack) =
        (vec![NEW; count], vec![NEW; count], vec![false; count]);
    let (mut stack, mut found, mut next) = (Vec::new(), Vec::new(), 0);
    for start in 0..count {
        if index[start] != NEW || !graph.may_be_in_a_cycle(start) {
            continue;
        }
        let mut frames = vec![(start, graph.blockers_of(start))];
        index[start] = next;
        low[start] = next;
        next += 1;
        stack.push(start);
        on_stack[start] = true;
        while let Some((node, blockers)) = frames.last_mut() {
            let node = *node;
            if let Some(link) = blockers.next() {
                let to = link.blocker;
                if index[to] == NEW {
                    index[to] = next;
                    low[to] = next;
                    next += 1;
                    stack.push(to);
                    on_stack[to] = true;
                    frames.push((to, graph.blockers_of(to)));
                } else if on_stack[to] {
                    low[node] = low[node].min(index[to]);
                }
                continue;
            }
            frames.pop();
            if let Some((parent, _)) = frames.last() {
                low[*parent] = low[*parent].min(low[node]);
            }
            if low[node] == index[node] {
                let mut component = Vec::new();
                while let Some(member) = stack.pop() {
                    on_stack[member] = false;
                    component.push(member);
                    if member == node {
                        break;
                    }
                }
                if component.len() > 1 {
                    component.sort_unstable();
                    found.push(component);
                }
            }
        }
    }
    found.sort();
    found
}
