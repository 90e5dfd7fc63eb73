//! What a library keeps for all of its queues together, shared out among them while it is short.

use std::collections::BTreeMap;

use super::moment::Clock;
use crate::model::{Millis, Queue};

/// One thing that is kept, without what is in it: the queue it belongs to, and its time.
pub struct Entry {
    pub queue: String,
    pub at: Option<i64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Part {
    count: u64,
    passed: u64,
    long_passed: u64,
    oldest: Option<i64>,
}

/// Overdue for longer than a scheduler's round.
pub const LONG_MS: i64 = 60_000;

/// `None`: it couldn't be read, or there is too much to be read.
#[derive(Debug, Default)]
pub struct Share(Option<BTreeMap<String, Part>>);

impl Share {
    pub fn unread(total: Option<u64>) -> Self {
        Self((total == Some(0)).then(BTreeMap::new))
    }

    pub fn of(entries: Vec<Entry>, clock: &Clock) -> Self {
        let now = clock.ms();
        let mut parts: BTreeMap<String, Part> = BTreeMap::new();
        for entry in entries {
            let part = parts.entry(entry.queue).or_default();
            part.count += 1;
            part.passed += u64::from(entry.at.is_some_and(|at| at < now));
            part.long_passed += u64::from(entry.at.is_some_and(|at| at < now - LONG_MS));
            part.oldest = match (part.oldest, entry.at) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        }
        Self(Some(parts))
    }

    pub fn is_shared(&self) -> bool {
        self.0.is_some()
    }

    fn part(&self, queue: &str) -> Option<Part> {
        Some(self.0.as_ref()?.get(queue).copied().unwrap_or_default())
    }

    pub fn count(&self, queue: &str) -> Option<u64> {
        Some(self.part(queue)?.count)
    }

    /// Those whose time has passed.
    pub fn passed(&self, queue: &str) -> Option<u64> {
        Some(self.part(queue)?.passed)
    }

    /// Those whose time passed more than a minute ago.
    pub fn long_passed(&self, queue: &str) -> Option<u64> {
        Some(self.part(queue)?.long_passed)
    }

    pub fn oldest(&self, queue: &str, clock: &Clock) -> Option<Millis> {
        Some(clock.age(self.part(queue)?.oldest?))
    }

    /// Those that belong to none of these queues.
    pub fn strangers<'q>(&self, known: impl Fn(&str) -> bool + 'q) -> u64 {
        let parts = self.0.iter().flatten();
        let of_others = parts.filter(|(queue, _)| !known(queue));
        of_others.map(|(_, part)| part.count).sum()
    }
}

/// A note on the row for all queues, where jobs wait, or are dead, for a queue that isn't there.
pub fn note_strangers(row: &mut Queue, strangers: u64) {
    if strangers > 0 {
        row.note(format!(
            "{strangers} of the scheduled, retried and dead are for queues that aren't registered"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Timestamp;

    #[test]
    fn what_is_too_long_is_unknown_and_nothing_is_none() {
        let at = chrono::DateTime::from_timestamp(1_000_000, 0).expect("a time");
        let clock = Clock::new(Timestamp::new(at));
        let share = Share::of(
            [
                ("a", Some(999_000_000)),
                ("a", Some(2_000_000_000)),
                ("b", None),
            ]
            .map(|(queue, at)| Entry {
                queue: queue.into(),
                at,
            })
            .into(),
            &clock,
        );
        assert_eq!((share.count("a"), share.passed("a")), (Some(2), Some(1)));
        assert!(
            share
                .oldest("a", &clock)
                .is_some_and(|age| age.0 / 1000 == 1000)
        );
        assert_eq!((share.count("b"), share.passed("b")), (Some(1), Some(0)));
        assert_eq!(
            (share.count("c"), share.strangers(|q| q == "a")),
            (Some(0), 1)
        );
        assert_eq!(Share::unread(Some(0)).count("a"), Some(0));
        assert_eq!(Share::unread(Some(101)).count("a"), None);
        assert_eq!(Share::unread(None).count("a"), None);
    }
}
