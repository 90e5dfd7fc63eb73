//! PgBouncer's pools against its limits per database and per user: the most that can be open at once is a maximum flow.

/// `pools[d][u]` server connections of a database for a user at most, `rows[d]` over a database, `columns[u]` over a user;
/// `None`: without a limit.
pub fn most(pools: &[Vec<u64>], rows: &[Option<u64>], columns: &[Option<u64>]) -> u64 {
    let (databases, users) = (rows.len(), columns.len());
    let sum: u64 = pools.iter().flatten().sum();
    // Source, databases, users, sink.
    let nodes = databases + users + 2;
    let (source, sink) = (0, nodes - 1);
    let mut left = vec![vec![0_u64; nodes]; nodes];
    for d in 0..databases {
        left[source][1 + d] = rows[d].unwrap_or(sum);
        for u in 0..users {
            left[1 + d][1 + databases + u] = pools[d].get(u).copied().unwrap_or(0);
        }
    }
    for u in 0..users {
        left[1 + databases + u][sink] = columns[u].unwrap_or(sum);
    }
    let mut flow = 0;
    while let Some(path) = shortest(&left, source, sink) {
        let Some(least) = path.windows(2).map(|pair| left[pair[0]][pair[1]]).min() else {
            break;
        };
        for pair in path.windows(2) {
            left[pair[0]][pair[1]] -= least;
            left[pair[1]][pair[0]] += least;
        }
        flow += least;
    }
    flow
}

/// The shortest way on which something is left, breadth first.
fn shortest(left: &[Vec<u64>], source: usize, sink: usize) -> Option<Vec<usize>> {
    let mut before = vec![None; left.len()];
    before[source] = Some(source);
    let mut queue = std::collections::VecDeque::from([source]);
    while let Some(at) = queue.pop_front() {
        for (to, room) in left[at].iter().enumerate() {
            if *room > 0 && before[to].is_none() {
                before[to] = Some(at);
                queue.push_back(to);
            }
        }
    }
    let mut path = vec![sink];
    let mut at = sink;
    while at != source {
        at = before[at]?;
        path.push(at);
    }
    path.reverse();
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_limits_meet() {
        // Two databases, two users, 20 each: 80 without limits.
        let pools = vec![vec![20, 20], vec![20, 20]];
        assert_eq!(most(&pools, &[None, None], &[None, None]), 80);
        assert_eq!(most(&pools, &[Some(30), None], &[None, None]), 70);
        assert_eq!(most(&pools, &[None, None], &[Some(25), None]), 65);
        // Smaller than both simple bounds: rows 10 + 40 = 50, columns 40 + 10 = 50, and yet 40: the first database has at
        // most 10, the second user at most 10, and the first user of the second database 20.
        let bound = most(&pools, &[Some(10), None], &[None, Some(10)]);
        assert_eq!(bound, 40);
        assert_eq!(most(&[], &[], &[]), 0);
    }

    proptest! {
        /// Never above any of the simple bounds, never above the pools in sum, and with one limit exactly its bound.
        #[test]
        fn never_above_a_bound(
            pools in prop::collection::vec(prop::collection::vec(0..50_u64, 3), 1..4),
            row in 0..100_u64, column in 0..100_u64,
        ) {
            let rows = vec![Some(row); pools.len()];
            let columns = vec![Some(column); 3];
            let flow = most(&pools, &rows, &columns);
            let by_rows: u64 = pools.iter().map(|pools| pools.iter().sum::<u64>().min(row)).sum();
            let by_columns: u64 = (0..3).map(|u| pools.iter().map(|d| d[u]).sum::<u64>().min(column)).sum();
            prop_assert!(flow <= by_rows.min(by_columns));
            prop_assert_eq!(most(&pools, &rows, &[None, None, None]), by_rows);
            prop_assert_eq!(most(&pools, &vec![None; pools.len()], &columns), by_columns);
        }
    }
}
