//! Lock waits from log_lock_waits: who waited longest, on whom, and how it ended.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use serde::Serialize;

use super::masked::masked;
use super::target::{Target, target};
use crate::model::{
    LogEvent, LogLockWait, LogObject, LogSession, LogWaitStage, Millis, Pid, Timestamp,
};

/// So many of the longest are told.
const LONGEST: usize = 20;
/// So many that go on are followed at a time.
const OPEN: usize = 10_000;

#[derive(Clone, Debug, Serialize)]
pub struct LockWaits {
    pub waits: u64,
    pub acquired: u64,
    pub deadlocked: u64,
    pub failed: u64,
    /// The log doesn't say how they ended.
    pub open: u64,
    pub longest: Vec<WaitRow>,
}

/// One wait, as long as it is known to have lasted.
#[derive(Clone, Debug, Serialize)]
pub struct WaitRow {
    pub at: Option<Timestamp>,
    pub pid: Pid,
    pub user: Option<String>,
    pub database: Option<String>,
    pub application_name: Option<String>,
    /// `transactionid` as a rule, where a row is meant.
    pub locktype: Option<&'static str>,
    pub mode: String,
    pub on: String,
    pub relation: Option<String>,
    pub waited_ms: Millis,
    pub ended: WaitEnd,
    /// Who held it when the wait was first told; 0: a prepared transaction.
    pub holders: Vec<Pid>,
    pub holder_applications: Vec<String>,
    /// Others in the queue at that time.
    pub queued: usize,
    pub statement: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitEnd {
    Acquired,
    Deadlock,
    Failed,
    Unknown,
}

/// A wait that goes on.
#[derive(Debug)]
struct Open {
    on: LogObject,
    row: WaitRow,
    /// By the last line of it.
    until: Option<Timestamp>,
}

#[derive(Debug, Default)]
pub struct Waits {
    counts: [u64; 4],
    total: u64,
    open: BTreeMap<Pid, Open>,
    longest: Vec<WaitRow>,
}

impl Waits {
    pub fn add(
        &mut self,
        event: &LogEvent,
        wait: &LogLockWait,
        session: impl Fn(Pid) -> Option<LogSession>,
        unredacted: bool,
    ) {
        let waited = wait.waited_ms.unwrap_or_default();
        let known = self.open.remove(&wait.pid);
        let known = match known {
            // Of a wait for something else the end isn't told.
            Some(other) if other.on != wait.on => {
                self.close(other.row);
                None
            }
            known => known,
        };
        let mut row = match known {
            Some(open) => open.row,
            None => {
                self.total += 1;
                new_row(event, wait, &session, unredacted)
            }
        };
        row.waited_ms = row.waited_ms.max(waited);
        if row.holders.is_empty() {
            row.holders.clone_from(&wait.holders);
        }
        row.ended = match wait.stage {
            LogWaitStage::StillWaiting | LogWaitStage::Avoided => {
                if self.open.len() >= OPEN
                    && let Some((_, oldest)) = self.open.pop_first()
                {
                    self.close(oldest.row);
                }
                let open = Open {
                    on: wait.on.clone(),
                    row,
                    until: event.at,
                };
                self.open.insert(wait.pid, open);
                return;
            }
            LogWaitStage::Acquired => WaitEnd::Acquired,
            LogWaitStage::Deadlock => WaitEnd::Deadlock,
            LogWaitStage::Failed => WaitEnd::Failed,
        };
        self.close(row);
    }

    /// The statement or the session of a process ended: so did its wait, if it had one.
    pub fn ended(&mut self, pid: Pid, at: Option<Timestamp>) {
        let (Some(open), Some(at)) = (self.open.get(&pid), at) else {
            return;
        };
        // Without a time it can't be told whether it is the same process.
        let Some(since) = open
            .until
            .map(|until| at.utc() - until.utc())
            .filter(|since| *since >= TimeDelta::zero())
        else {
            return;
        };
        if let Some(mut open) = self.open.remove(&pid) {
            let more = u64::try_from(since.num_milliseconds()).unwrap_or(0);
            open.row.waited_ms = Millis(open.row.waited_ms.0 + more);
            open.row.ended = WaitEnd::Failed;
            self.close(open.row);
        }
    }

    fn close(&mut self, row: WaitRow) {
        self.counts[row.ended as usize] += 1;
        self.longest.push(row);
        if self.longest.len() >= 4 * LONGEST {
            self.trim();
        }
    }

    fn trim(&mut self) {
        self.longest
            .sort_by_key(|row| (std::cmp::Reverse(row.waited_ms), row.at));
        self.longest.truncate(LONGEST);
    }

    pub fn finish(mut self) -> LockWaits {
        while let Some((_, open)) = self.open.pop_first() {
            self.close(open.row);
        }
        self.trim();
        let [acquired, deadlocked, failed, open] = self.counts;
        LockWaits {
            waits: self.total,
            acquired,
            deadlocked,
            failed,
            open,
            longest: self.longest,
        }
    }
}

fn new_row(
    event: &LogEvent,
    wait: &LogLockWait,
    session: &impl Fn(Pid) -> Option<LogSession>,
    unredacted: bool,
) -> WaitRow {
    let mut target = [target(
        &wait.on,
        &wait.mode,
        wait.place.as_ref(),
        wait.statement.as_deref(),
        wait.inner.as_deref(),
    )];
    Target::confirm(&mut target);
    let [target] = target;
    let relation = target.named(unredacted);
    let on = match (&wait.on, &relation, &target.index) {
        (LogObject::Transaction { xid }, None, None) => format!("a row (transaction {xid})"),
        (LogObject::Tuple { relation, .. }, None, None) => format!("a row of relation {relation}"),
        (on, ..) => target.words(on, unredacted),
    };
    let mut applications: Vec<String> = wait
        .holders
        .iter()
        .filter_map(|pid| session(*pid)?.application_name)
        .collect();
    applications.dedup();
    WaitRow {
        at: event.at,
        pid: wait.pid,
        user: event.session.user.clone(),
        database: event.session.database.clone(),
        application_name: event.session.application_name.clone(),
        locktype: wait.on.locktype(),
        mode: wait.mode.as_str().to_owned(),
        on,
        relation,
        waited_ms: Millis(0),
        ended: WaitEnd::Unknown,
        holders: wait.holders.clone(),
        holder_applications: applications,
        queued: wait.queue.iter().filter(|pid| **pid != wait.pid).count(),
        statement: wait.statement.as_deref().map(|text| {
            if unredacted {
                text.to_owned()
            } else {
                masked(text)
            }
        }),
    }
}
