//! For which waiters the server is asked who blocks them. Its answer grows with the queue, so for a long queue
//! asking for everyone would cost it the square of the length.

use std::collections::{BTreeSet, HashMap};

use crate::model::{Lock, LockTag, Pid, Timestamp};

/// Up to so many waiters, each is asked for; above, so many queues at most, one waiter each.
const MOST_CALLS: usize = 200;

/// All distinct waiters if they are few; else the last in line of each queue, the longest queues first: its answer
/// holds everyone ahead.
pub fn to_ask(locks: &[Lock]) -> Vec<Pid> {
    let waiting: Vec<(&Lock, Pid)> = locks
        .iter()
        .filter(|lock| !lock.granted)
        .filter_map(|lock| Some((lock, lock.pid?)))
        .collect();
    let distinct: BTreeSet<Pid> = waiting.iter().map(|(_, pid)| *pid).collect();
    if distinct.len() <= MOST_CALLS {
        return distinct.into_iter().collect();
    }
    let mut queues: HashMap<&LockTag, Vec<(Option<Timestamp>, Pid)>> = HashMap::new();
    for (lock, pid) in waiting {
        queues
            .entry(&lock.tag)
            .or_default()
            .push((lock.waitstart, pid));
    }
    let mut queues: Vec<_> = queues.into_values().collect();
    queues.sort_by_key(|queue| std::cmp::Reverse(queue.len()));
    queues.truncate(MOST_CALLS);
    let mut last: Vec<Pid> = queues
        .iter()
        .filter_map(|queue| {
            queue
                .iter()
                .max_by_key(|(since, pid)| (since.is_none(), *since, *pid))
                .map(|(_, pid)| *pid)
        })
        .collect();
    last.sort_unstable();
    last.dedup();
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::LockMode;

    fn waiter(xid: u32, pid: i32, second: u32) -> Lock {
        let at = format!("2026-01-01T00:00:00.{second:06}Z");
        Lock {
            tag: LockTag::Transaction { xid },
            pid: Some(Pid(pid)),
            vxid: String::new(),
            mode: LockMode::Share,
            granted: false,
            waitstart: Some(Timestamp::new(at.parse().expect("a time"))),
        }
    }

    #[test]
    fn few_are_all_asked_for() {
        let locks: Vec<Lock> = (0..200).map(|n| waiter(1, n, 0)).collect();
        assert_eq!(to_ask(&locks).len(), 200);
    }

    #[test]
    fn of_a_long_queue_only_the_last() {
        let mut locks: Vec<Lock> = (0..1000).map(|n| waiter(1, n, 5000 - n as u32)).collect();
        locks.push(waiter(2, 2000, 1));
        assert_eq!(to_ask(&locks), [Pid(0), Pid(2000)]);
    }

    #[test]
    fn never_more_than_the_most() {
        let locks: Vec<Lock> = (0..5000).map(|n| waiter(n / 2, n as i32, 0)).collect();
        assert_eq!(to_ask(&locks).len(), MOST_CALLS);
    }
}
