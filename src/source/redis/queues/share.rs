//! What a library keeps for all of its queues together, shared out among them while it is short.

use std::collections::BTreeMap;

use super::moment::Clock;
use super::sidekiq::earlier;
use crate::model::{Millis, Queue};

/// One thing that is kept, without what is in it: the queue it belongs to, and its time.
pub struct Entry {
    /// `None`: it can't be read, or names none.
    pub queue: Option<String>,
    pub at: Option<i64>,
}

/// Entries together: all of a queue, or what belongs to none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    pub count: u64,
    /// Of these: whose time has passed, and for longer than a minute.
    pub passed: u64,
    pub long_passed: u64,
    pub oldest: Option<i64>,
}

impl Part {
    fn and(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            passed: self.passed + other.passed,
            long_passed: self.long_passed + other.long_passed,
            oldest: earlier(self.oldest, other.oldest),
        }
    }
}

/// Overdue for longer than a scheduler's round.
pub const LONG_MS: i64 = 60_000;

/// `None`: it couldn't be read, or there is too much to be read.
#[derive(Debug, Default)]
pub struct Share(Option<BTreeMap<Option<String>, Part>>);

impl Share {
    pub fn unread(total: Option<u64>) -> Self {
        Self((total == Some(0)).then(BTreeMap::new))
    }

    pub fn of(entries: Vec<Entry>, clock: &Clock) -> Self {
        let now = clock.ms();
        let mut parts: BTreeMap<Option<String>, Part> = BTreeMap::new();
        for entry in entries {
            let before = |moment| u64::from(entry.at.is_some_and(|at| at < moment));
            let one = Part {
                count: 1,
                passed: before(now),
                long_passed: before(now - LONG_MS),
                oldest: entry.at,
            };
            let part = parts.entry(entry.queue).or_default();
            *part = part.and(one);
        }
        Self(Some(parts))
    }

    pub fn is_shared(&self) -> bool {
        self.0.is_some()
    }

    fn part(&self, queue: &str) -> Option<Part> {
        let part = self.0.as_ref()?.get(&Some(queue.to_owned()));
        Some(part.copied().unwrap_or_default())
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

    /// Those that belong to none of these queues; `None` where it isn't shared out.
    pub fn rest(&self, known: impl Fn(&str) -> bool) -> Option<Part> {
        let is_rest = |queue: &Option<String>| !queue.as_deref().is_some_and(&known);
        let parts = self.0.as_ref()?.iter();
        let rest = parts.filter(|(queue, _)| is_rest(queue));
        Some(rest.fold(Part::default(), |sum, (_, part)| sum.and(*part)))
    }

    /// Those of which it can't be read whose they are.
    fn unread_count(&self) -> u64 {
        let part = self.0.as_ref().and_then(|parts| parts.get(&None));
        part.map_or(0, |part| part.count)
    }
}

/// A note on the row for all queues, where jobs wait, or are dead, for a queue that isn't there, or for none that can be
/// read; whether there are any.
pub fn note_strangers(row: &mut Queue, shares: &[&Share], known: impl Fn(&str) -> bool) -> bool {
    let unread: u64 = shares.iter().map(|share| share.unread_count()).sum();
    let rest = shares.iter().filter_map(|share| share.rest(&known));
    let all: u64 = rest.map(|part| part.count).sum();
    if all > unread {
        row.note(format!(
            "{} of the scheduled, retried and dead are for queues that aren't registered",
            all - unread
        ));
    }
    if unread > 0 {
        row.note(format!(
            "{unread} of the scheduled, retried and dead can't be read, or name no queue"
        ));
    }
    all > 0
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
                queue: Some(queue.into()),
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
        let rest = share.rest(|queue| queue == "a");
        assert_eq!(
            (share.count("c"), rest.map(|rest| rest.count)),
            (Some(0), Some(1))
        );
        // What can't be read is of none.
        let nameless = |at| Entry { queue: None, at };
        let share = Share::of(vec![nameless(Some(1)), nameless(None)], &clock);
        let mut row = Queue::new(crate::model::QueueSystem::Resque, "*".into());
        assert!(note_strangers(&mut row, &[&share], |_| true));
        assert_eq!(
            row.notes,
            ["2 of the scheduled, retried and dead can't be read, or name no queue"]
        );
        let rest = share.rest(|_| true).expect("shared");
        assert_eq!((rest.count, rest.passed, rest.oldest), (2, 1, Some(1)));
        assert_eq!(Share::unread(Some(0)).count("a"), Some(0));
        assert_eq!(Share::unread(Some(101)).count("a"), None);
        assert_eq!(Share::unread(None).count("a"), None);
    }
}
