//! What is kept of one capture: numbers, never its sessions.

use crate::analysis::redis::Look;
use crate::analysis::{connections, triage};
use crate::model::{
    Clock, FindingId, Millis, Pooler, Section, Session, SessionState, Severity, SlotLimit,
    Snapshot, Timestamp,
};

/// Applications that are kept of one capture; the rest is counted together.
const MOST_APPLICATIONS: usize = 12;

/// One capture.
#[derive(Clone, Debug)]
pub struct Frame {
    pub at: Timestamp,
    /// `at` is the server's; else of the machine that tried to connect.
    pub by_server: bool,
    pub slots: Option<Slots>,
    /// `None`: the sessions weren't read.
    pub states: Option<States>,
    /// Of the sessions that may be seen.
    pub oldest_transaction: Option<Millis>,
    /// The longest that a session has been idle in its transaction.
    pub oldest_idle: Option<Millis>,
    /// Sessions that wait for another's lock; `None`: the locks weren't read.
    pub blocked: Option<usize>,
    pub longest_wait: Option<Millis>,
    /// At the pooler, where it was looked at: the longest wait, and how many wait.
    pub pooler: (Millis, u32),
    /// Largest first.
    pub applications: Vec<(String, usize)>,
    /// Connections of all the others.
    pub other_applications: usize,
    /// Logins that were refused for want of a slot.
    pub refusals: Vec<SlotLimit>,
    pub findings: Vec<(FindingId, Severity)>,
    /// `None`: Redis wasn't looked at, or not near this capture.
    pub redis: Option<RedisSeen>,
}

/// What is kept of a look at Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisSeen {
    /// `cache:6379`, or why it couldn't be looked at.
    pub label: String,
    /// All of it was seen.
    pub is_whole: bool,
    /// Jobs that wait in all its queues.
    pub jobs: u64,
}

impl RedisSeen {
    pub fn of(look: &Result<Look, String>) -> Self {
        match look {
            Ok(look) => Self {
                label: look.target.label(),
                is_whole: look.coverage.complete,
                jobs: look.queues.iter().filter_map(|row| row.queue.depth).sum(),
            },
            Err(why) => Self {
                label: format!("it couldn't be looked at: {why}"),
                is_whole: false,
                jobs: 0,
            },
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    pub max_connections: u32,
    pub usable: u32,
    pub used: u32,
    /// Those beyond the usable are for superusers alone.
    pub for_superusers: bool,
    /// Hidden sessions are counted as clients, and some may be none.
    pub at_most: bool,
}

impl Slots {
    pub fn of(capacity: &connections::Capacity) -> Self {
        Self {
            max_connections: capacity.max_connections,
            usable: capacity.usable,
            used: capacity.used,
            for_superusers: capacity.usable + capacity.superuser_reserved
                == capacity.max_connections,
            at_most: capacity.used_is == connections::UsedIs::AtMost,
        }
    }

    /// `18 of 20 usable slots taken`; for superusers and their like more are kept.
    pub fn words(self) -> String {
        Self::range(self, self)
    }

    /// `3 kept for superusers`
    pub fn kept(self) -> String {
        let others = match self.for_superusers {
            true => "",
            false => " and other roles",
        };
        let kept = self.max_connections.saturating_sub(self.usable);
        format!("{kept} kept for superusers{others}")
    }

    /// From the fewest to the most.
    pub(super) fn range(least: Self, most: Self) -> String {
        let at_most = if least.at_most || most.at_most {
            "at most "
        } else {
            ""
        };
        let usable = most.usable;
        let reserved = most.used.saturating_sub(usable);
        let taken = match (least.used.min(usable), most.used.min(usable)) {
            (_, most) if reserved > 0 && least.used >= most => format!("all {usable}"),
            (least, most) if least == most => format!("{most} of {usable}"),
            (least, most) => format!("{least} to {most} of {usable}"),
        };
        let kept = most.kept();
        let beyond = match reserved {
            0 => String::new(),
            n if least.used == most.used => format!(", and {n} of the {kept}"),
            n => format!(", and up to {n} of the {kept}"),
        };
        format!("{at_most}{taken} usable slots taken{beyond}")
    }
}

/// Connections by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct States {
    pub active: usize,
    pub idle: usize,
    pub idle_in_transaction: usize,
    pub aborted: usize,
    pub other: usize,
    pub hidden: usize,
}

impl States {
    pub const NAMES: [&'static str; 6] = [
        "active",
        "idle in transaction",
        "idle in transaction (aborted)",
        "idle",
        "other",
        "hidden",
    ];

    /// In the order of `NAMES`.
    pub fn counts(self) -> [usize; 6] {
        [
            self.active,
            self.idle_in_transaction,
            self.aborted,
            self.idle,
            self.other,
            self.hidden,
        ]
    }

    pub fn total(self) -> usize {
        self.counts().iter().sum()
    }

    fn of<'s>(sessions: impl Iterator<Item = &'s Session>) -> Self {
        let mut all = Self::default();
        for session in sessions {
            let count = match &session.state {
                _ if session.hidden => &mut all.hidden,
                Some(SessionState::Active) => &mut all.active,
                Some(SessionState::Idle) => &mut all.idle,
                Some(SessionState::IdleInTransaction) => &mut all.idle_in_transaction,
                Some(SessionState::IdleInTransactionAborted) => &mut all.aborted,
                _ => &mut all.other,
            };
            *count += 1;
        }
        all
    }
}

impl Frame {
    pub fn of(
        snapshot: &Snapshot,
        triage: &triage::Triage,
        longest_wait: Option<Millis>,
        redis: Option<RedisSeen>,
    ) -> Self {
        let read = snapshot.activity.get().is_some();
        let clients = || connections::clients(snapshot);
        let mut applications: Vec<(String, usize)> = Vec::new();
        let mut names: Vec<&str> = clients()
            .map(|s| s.application_name.as_deref().unwrap_or_default())
            .collect();
        names.sort_unstable();
        for all in names.chunk_by(|a, b| a == b) {
            applications.push((all[0].to_owned(), all.len()));
        }
        applications.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let rest = applications.split_off(applications.len().min(MOST_APPLICATIONS));
        Self {
            at: snapshot.taken_at,
            by_server: snapshot.clock == Clock::Server,
            slots: triage.summary.capacity.as_ref().map(Slots::of),
            states: read.then(|| States::of(clients())),
            oldest_transaction: triage.summary.oldest_transaction_ms,
            oldest_idle: clients()
                .filter(|session| is_idle_in_transaction(session))
                .filter_map(|session| session.state_age(snapshot.taken_at))
                .max(),
            blocked: triage.summary.blocked,
            longest_wait,
            pooler: snapshot
                .pooler
                .as_ref()
                .and_then(Section::get)
                .map_or((Millis(0), 0), Pooler::queue),
            applications,
            other_applications: rest.iter().map(|(_, count)| count).sum(),
            refusals: snapshot
                .refusals
                .iter()
                .map(|refusal| refusal.limit)
                .collect(),
            findings: triage
                .findings
                .iter()
                .map(|found| (found.id, found.severity))
                .collect(),
            redis,
        }
    }

    /// How bad it is, by what the finding itself is of.
    pub fn measure(&self, id: FindingId) -> [u64; 3] {
        let used = self.slots.map_or(0, |slots| slots.used.into());
        let blocked = self.blocked.map_or(0, |blocked| blocked as u64);
        let age = self.oldest_transaction.map_or(0, |age| age.0);
        let wait = self.longest_wait.map_or(0, |wait| wait.0);
        match id.name().split('.').next() {
            Some("lock") => [blocked, wait, 0],
            Some("conn") => [used, self.refusals.len() as u64, age],
            Some("pool") => [self.pooler.0.0, self.pooler.1.into(), 0],
            Some("tx") if id == FindingId::TxIdleInTransaction => {
                let idle = self.states.map_or(0, |s| s.idle_in_transaction + s.aborted);
                [idle as u64, age, 0]
            }
            Some("tx") => [age, 0, 0],
            Some("queue") => [self.redis.as_ref().map_or(0, |redis| redis.jobs), 0, 0],
            Some("redis") => [0; 3],
            _ => [used, blocked, age],
        }
    }

    /// How long the worst of it had been so, where what it is of has an age.
    pub fn age(&self, id: FindingId) -> Option<Millis> {
        match id {
            FindingId::TxLong => self.oldest_transaction,
            FindingId::TxIdleInTransaction => self.oldest_idle,
            FindingId::LockDeadlocks => None,
            id if id.name().starts_with("lock.") => self.longest_wait,
            _ => None,
        }
    }

    /// Enough was read to say that nothing is wrong.
    pub fn is_judged(&self) -> bool {
        self.slots.is_some() && self.blocked.is_some()
    }

    /// Enough of Redis was seen to say that what isn't found there isn't so.
    pub fn is_redis_judged(&self) -> bool {
        self.redis.as_ref().is_some_and(|redis| redis.is_whole)
    }

    /// The findings at warning or above, in the order of their ids.
    pub fn troubles(&self) -> Vec<(FindingId, Severity)> {
        let mut all: Vec<_> = self
            .findings
            .iter()
            .filter(|(_, severity)| *severity > Severity::Info)
            .copied()
            .collect();
        all.sort_by_key(|(id, _)| *id);
        all.dedup();
        all
    }
}

fn is_idle_in_transaction(session: &Session) -> bool {
    matches!(
        session.state,
        Some(SessionState::IdleInTransaction | SessionState::IdleInTransactionAborted)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_of_a_pooler_is_by_its_wait() {
        let frame = |wait, waiting| Frame {
            at: Timestamp::new(chrono::DateTime::UNIX_EPOCH),
            by_server: true,
            slots: None,
            states: None,
            oldest_transaction: None,
            oldest_idle: None,
            blocked: None,
            longest_wait: None,
            pooler: (Millis(wait), waiting),
            applications: Vec::new(),
            other_applications: 0,
            refusals: Vec::new(),
            findings: Vec::new(),
            redis: None,
        };
        let measure = |frame: Frame| frame.measure(FindingId::PoolWaiting);
        assert!(measure(frame(9_000, 2)) > measure(frame(3_000, 40)));
        assert!(measure(frame(3_000, 40)) > measure(frame(3_000, 2)));
    }
}
