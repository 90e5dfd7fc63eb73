//! PgBouncer's pools against its limits per database and per user: the most that can be open at once is a maximum flow.

use std::collections::VecDeque;

/// `pools[d][u]` server connections of a database for a user at most, `rows[d]` over a database, `columns[u]` over a user;
/// `None`: without a limit.
pub fn most(pools: &[Vec<u64>], rows: &[Option<u64>], columns: &[Option<u64>]) -> u64 {
    let (databases, users) = (rows.len(), columns.len());
    let sum = |all: &mut dyn Iterator<Item = u64>| all.fold(0_u64, u64::saturating_add);
    let (source, sink) = (0, databases + users + 1);
    let mut net = Net::of(sink + 1);
    for (d, row) in rows.iter().enumerate() {
        let own = sum(&mut pools[d].iter().copied());
        net.edge(source, 1 + d, row.unwrap_or(own).min(own));
        for (u, size) in pools[d].iter().enumerate().filter(|(_, size)| **size > 0) {
            net.edge(1 + d, 1 + databases + u, *size);
        }
    }
    for (u, column) in columns.iter().enumerate() {
        let own = sum(&mut pools.iter().map(|row| row.get(u).copied().unwrap_or(0)));
        net.edge(1 + databases + u, sink, column.unwrap_or(own).min(own));
    }
    net.flow(source, sink)
}

/// Edges in pairs: the second of each is what flows back.
struct Net {
    of: Vec<Vec<usize>>,
    to: Vec<usize>,
    room: Vec<u64>,
}

impl Net {
    fn of(nodes: usize) -> Self {
        Self {
            of: vec![Vec::new(); nodes],
            to: Vec::new(),
            room: Vec::new(),
        }
    }

    fn edge(&mut self, from: usize, to: usize, room: u64) {
        for (from, to, room) in [(from, to, room), (to, from, 0)] {
            self.of[from].push(self.to.len());
            self.to.push(to);
            self.room.push(room);
        }
    }

    /// By levels, each filled up before the next is looked for.
    fn flow(&mut self, source: usize, sink: usize) -> u64 {
        let mut flow = 0_u64;
        while let Some(levels) = self.levels(source, sink) {
            let mut next = vec![0; self.of.len()];
            loop {
                let pushed = self.push(source, sink, u64::MAX, &levels, &mut next);
                if pushed == 0 {
                    break;
                }
                flow = flow.saturating_add(pushed);
            }
        }
        flow
    }

    /// How far each node is from the source, where there is room; `None`: the sink can't be reached.
    fn levels(&self, source: usize, sink: usize) -> Option<Vec<usize>> {
        let mut levels = vec![usize::MAX; self.of.len()];
        levels[source] = 0;
        let mut queue = VecDeque::from([source]);
        while let Some(at) = queue.pop_front() {
            for &edge in &self.of[at] {
                let to = self.to[edge];
                if self.room[edge] > 0 && levels[to] == usize::MAX {
                    levels[to] = levels[at] + 1;
                    queue.push_back(to);
                }
            }
        }
        (levels[sink] < usize::MAX).then_some(levels)
    }

    fn push(
        &mut self,
        at: usize,
        sink: usize,
        most: u64,
        levels: &[usize],
        next: &mut [usize],
    ) -> u64 {
        if at == sink {
            return most;
        }
        while next[at] < self.of[at].len() {
            let edge = self.of[at][next[at]];
            let to = self.to[edge];
            if self.room[edge] > 0 && levels[to] == levels[at] + 1 {
                let pushed = self.push(to, sink, most.min(self.room[edge]), levels, next);
                if pushed > 0 {
                    self.room[edge] -= pushed;
                    self.room[edge ^ 1] = self.room[edge ^ 1].saturating_add(pushed);
                    return pushed;
                }
            }
            next[at] += 1;
        }
        0
    }
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
        // As large as a shared pooler is: 3,000 databases by 20 users, both limited.
        let pools = vec![vec![20; 20]; 3000];
        let rows = vec![Some(100); 3000];
        assert_eq!(most(&pools, &rows, &[Some(1000); 20]), 20_000);
        assert_eq!(most(&pools, &rows, &[None; 20]), 300_000);
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
