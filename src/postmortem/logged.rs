//! What the logs tell: each moment once, and how many deadlocks there were.

use super::summary::stretch;
use crate::model::{LogMoment, Timestamp, counted};

/// SQLSTATE of a deadlock's victim.
const DEADLOCK: &str = "40P01";

/// The moments of several bundles' logs, and of those that are given, in the order of time. They may be the same: what both tell of
/// the same time is told once.
pub fn once(logs: Vec<Vec<LogMoment>>) -> Vec<LogMoment> {
    let mut all: Vec<LogMoment> = Vec::new();
    for log in logs {
        // Within one log nothing is told twice.
        let known = all.len();
        for moment in log {
            let same = all[..known].iter_mut().find(|other| {
                other.what == moment.what
                    && other.sqlstate == moment.sqlstate
                    && other.at <= moment.until
                    && moment.at <= other.until
            });
            match same {
                Some(other) => {
                    other.at = other.at.min(moment.at);
                    other.until = other.until.max(moment.until);
                    other.count = other.count.max(moment.count);
                }
                None => all.push(moment),
            }
        }
    }
    all.sort_by_key(|moment| moment.at);
    all
}

/// What the logs speak for.
#[derive(Clone, Debug, Default)]
pub(super) struct Logged {
    pub deadlocks: Option<Deadlocks>,
    pub ends: Vec<ServerEnd>,
}

impl Logged {
    pub fn of(log: &[LogMoment]) -> Self {
        Self {
            deadlocks: Deadlocks::of(log),
            ends: ServerEnd::of(log),
        }
    }
}

/// That the server crashed, recovered or was started, as the logs tell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServerEnd {
    pub first: Timestamp,
    /// Nobody ordered it.
    pub is_crash: bool,
    pub words: String,
}

impl ServerEnd {
    fn of(log: &[LogMoment]) -> Vec<Self> {
        const KINDS: [(&str, bool, &str); 3] = [
            (LogMoment::CRASHED, true, "a server process crashed"),
            (
                LogMoment::RECOVERS,
                true,
                "the server was interrupted and recovered",
            ),
            (LogMoment::STARTING, false, "the server started anew"),
        ];
        let mut day = None;
        let mut told = |(of, is_crash, words): (&str, bool, &str)| {
            let moments = log.iter().filter(|moment| moment.what == of);
            let first = moments.clone().map(|moment| moment.at).min()?;
            let last = moments.clone().map(|moment| moment.until).max()?;
            let times = match moments.map(|moment| moment.count.max(1)).sum() {
                1_u64 => String::new(),
                n => format!(" ({n} times)"),
            };
            let when = stretch(first, last, &mut day);
            Some(Self {
                first,
                is_crash,
                words: format!("the server's log tells that {words}, {when} UTC{times}"),
            })
        };
        KINDS.into_iter().filter_map(&mut told).collect()
    }
}

/// Deadlocks that the logs tell of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Deadlocks {
    pub count: u64,
    pub first: Timestamp,
    pub last: Timestamp,
    /// Each circle with its number, the most frequent first.
    pub circles: Vec<(u64, String)>,
}

impl Deadlocks {
    /// `the server's log tells of 3 deadlocks, 2026-11-30 18:56:50 to 18:57:10 UTC`
    pub fn words(&self) -> String {
        let mut day = None;
        let when = stretch(self.first, self.last, &mut day);
        format!(
            "the server's log tells of {}, {when} UTC",
            counted(self.count, "deadlock")
        )
    }

    pub fn of(log: &[LogMoment]) -> Option<Self> {
        let is_deadlock = |moment: &&LogMoment| {
            moment.sqlstate.as_deref() == Some(DEADLOCK) || moment.what.starts_with("deadlock")
        };
        let moments: Vec<&LogMoment> = log.iter().filter(is_deadlock).collect();
        let mut circles: Vec<(u64, String)> = Vec::new();
        for moment in &moments {
            match circles.iter_mut().find(|(_, what)| *what == moment.what) {
                Some((count, _)) => *count += moment.count.max(1),
                None => circles.push((moment.count.max(1), moment.what.clone())),
            }
        }
        circles.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        Some(Self {
            count: circles.iter().map(|(count, _)| count).sum(),
            first: moments.iter().map(|moment| moment.at).min()?,
            last: moments.iter().map(|moment| moment.until).max()?,
            circles,
        })
    }
}
