//! The shape of `pg deadlocks LOG…`.

use serde::Serialize;

use super::collect::Kept;
use super::masked::masked;
use super::order::{conflict, shape, wants};
use super::waits::LockWaits;
use crate::analysis::Report;
use crate::model::{LogEvent, LogRead, LogSession, LogWhat, Pid, Timestamp};

#[derive(Clone, Debug, Serialize)]
pub struct Deadlocks {
    /// Oldest first.
    pub deadlocks: Vec<Deadlock>,
    /// By the statements in the circle, the most frequent first.
    pub groups: Vec<Group>,
    pub lock_waits: LockWaits,
    /// With those that aren't listed: of very many the last are, and the first of each group.
    pub deadlocks_total: u64,
    /// Besides those: the log has that they happened and nothing more.
    pub deadlocks_without_circle: u64,
    /// Deadlocks of groups beyond those that are counted apart.
    pub ungrouped: u64,
    /// Told more than once, and counted once.
    #[serde(skip)]
    pub repeated: u64,
    /// Lines on lock waits likewise.
    #[serde(skip)]
    pub repeated_waits: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct Deadlock {
    pub at: Option<Timestamp>,
    /// Number of its group, from 1 on; `null` beyond those that are counted apart.
    pub group: Option<usize>,
    /// It was aborted; the others went on.
    pub victim_pid: Option<Pid>,
    /// Each waits for the next, the last for the first.
    pub members: Vec<Member>,
    pub relations: Vec<String>,
    pub shape: Shape,
    /// `null`: it can't be told from the log.
    pub order_conflict: Option<OrderConflict>,
    pub advice: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct Member {
    pub pid: Pid,
    pub victim: bool,
    pub user: Option<String>,
    pub database: Option<String>,
    pub application_name: Option<String>,
    pub waits_for: WaitsFor,
    pub blocked_by: Pid,
    pub relation: Option<String>,
    pub statement: Option<String>,
    /// Earlier statements of its transaction, where the log has them.
    pub earlier: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct WaitsFor {
    /// `transactionid` as a rule, where a row is meant; `null`: another kind, in the server's words in `on`.
    pub locktype: Option<&'static str>,
    pub mode: String,
    pub on: String,
}

/// What kind of conflict it is: the advice follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Rows of one table in different order.
    RowOrder,
    /// Tables, or rows of several, in different order.
    TableOrder,
    /// All hold a weak lock on one thing and want a strong one.
    LockUpgrade,
    ForeignKey,
    UniqueKey,
    AdvisoryOrder,
    Ddl,
    Mixed,
}

impl Shape {
    /// What to do about it.
    pub fn advice(self) -> &'static str {
        match self {
            Self::RowOrder => {
                "lock the rows in one order on every path: SELECT … ORDER BY key FOR UPDATE at the start, or sort a batch by key"
            }
            Self::TableOrder => "write or lock the tables in one order on every path",
            Self::LockUpgrade => {
                "take the strong lock at once: FOR UPDATE instead of FOR SHARE or a plain read before the write, or the final mode in LOCK TABLE"
            }
            Self::ForeignKey => {
                "a foreign key's check shares a lock on the parent row: write the parent first (FOR NO KEY UPDATE) on every path, and don't \
                 change its key"
            }
            Self::UniqueKey => {
                "insert in one order of the unique key, sorted within a batch, or ON CONFLICT with short transactions"
            }
            Self::AdvisoryOrder => {
                "take advisory locks in one order of their keys on every path, or try (pg_try_advisory_xact_lock) and start anew"
            }
            Self::Ddl => {
                "run the DDL alone, first in its transaction, with lock_timeout and retries; LOCK TABLE in its mode before anything else"
            }
            Self::Mixed => {
                "shorten the transactions, and lock what they share in one order at their start"
            }
        }
    }

    pub fn words(self) -> &'static str {
        match self {
            Self::RowOrder => "rows in different order",
            Self::TableOrder => "tables in different order",
            Self::LockUpgrade => "a weak lock made strong",
            Self::ForeignKey => "check of a foreign key",
            Self::UniqueKey => "the same unique keys inserted in different order",
            Self::AdvisoryOrder => "advisory locks in different order",
            Self::Ddl => "DDL against the others",
            Self::Mixed => "locks of several kinds",
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct OrderConflict {
    pub text: String,
    pub basis: Basis,
    pub orders: Vec<Order>,
}

/// How it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Earlier statements in the log took what each holds.
    Seen,
    /// Who is waited for holds what is asked for.
    Deduced,
}

/// In which order one of them locks.
#[derive(Clone, Debug, Serialize)]
pub struct Order {
    pub pid: Pid,
    pub who: String,
    pub first: String,
    pub then: String,
    /// The log has the statement that took the first.
    pub seen: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct Group {
    pub group: usize,
    pub count: u64,
    pub first: Option<Timestamp>,
    pub last: Option<Timestamp>,
    pub applications: Vec<String>,
    pub relations: Vec<String>,
    /// Their statements, values left out.
    pub statements: Vec<String>,
    pub shape: Shape,
    /// Of its first.
    pub order_conflict: Option<OrderConflict>,
    /// Others of the group are about other rows or keys.
    #[serde(skip)]
    pub varies: bool,
    pub advice: String,
    pub per_hour: Vec<Hour>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Hour {
    pub hour: Timestamp,
    pub count: u64,
}

/// What every report of a log begins with.
#[derive(Clone, Debug, Serialize)]
pub struct LogHead {
    pub schema: String,
    /// When it was read, by this machine's clock.
    pub taken_at: Timestamp,
    /// Always `null`: a log doesn't say which server's it is.
    pub target: Option<()>,
    pub logs: Vec<LogRead>,
    pub coverage: LogCoverage,
}

/// What couldn't be seen, and what would have told more.
#[derive(Clone, Debug, Serialize)]
pub struct LogCoverage {
    pub complete: bool,
    pub bytes: u64,
    pub lines: u64,
    /// Times of the first and the last event.
    pub first: Option<Timestamp>,
    pub last: Option<Timestamp>,
    pub missing: Vec<String>,
    /// Settings of the server with which the log would have told more.
    pub advice: Vec<String>,
}

pub type LogReport<D> = Report<D, LogHead>;

/// The report of what was read.
pub fn report(taken_at: Timestamp, logs: Vec<LogRead>, data: Deadlocks) -> LogReport<Deadlocks> {
    let coverage = coverage(&logs, &data);
    Report {
        head: LogHead {
            schema: "stanch.deadlocks/1".into(),
            taken_at,
            target: None,
            logs,
            coverage,
        },
        data,
    }
}

fn coverage(logs: &[LogRead], data: &Deadlocks) -> LogCoverage {
    let sum = |of: fn(&LogRead) -> u64| logs.iter().map(of).sum::<u64>();
    let mut missing = Vec::new();
    for log in logs {
        if let Some(why) = &log.stopped {
            missing.push(format!("{}: not read to its end: {why}", log.name));
        }
        for zone in &log.zones {
            missing.push(format!(
                "{}: time zone {zone}; --log-timezone says it",
                log.name
            ));
        }
    }
    let amiss = logs.iter().map(LogRead::amiss).reduce(|mut sum, of_one| {
        for (sum, one) in sum.iter_mut().zip(of_one) {
            sum.0 += one.0;
        }
        sum
    });
    for (number, what) in amiss.into_iter().flatten() {
        if number > 0 {
            missing.push(format!("{}: {what}", crate::model::counted(number, "line")));
        }
    }
    if logs.iter().any(|log| log.hasty) {
        missing.push(
            "of very many deadlocks only the nearest lines before them were looked at for their processes"
                .into(),
        );
    }
    for (number, what) in [
        (data.repeated, "deadlock"),
        (data.repeated_waits, "lock wait line"),
    ] {
        if number > 0 {
            missing.push(format!(
                "{} told once more, as by several logs of one server: not counted again",
                crate::model::counted(number, what)
            ));
        }
    }
    let unlisted = data
        .deadlocks_total
        .saturating_sub(data.deadlocks.len() as u64);
    if unlisted > 0 {
        missing.push(format!(
            "{} counted, and not listed",
            crate::model::counted(unlisted, "deadlock")
        ));
    }
    let mut advice = Vec::new();
    if data.deadlocks_without_circle > 0 {
        let without = crate::model::counted(data.deadlocks_without_circle, "deadlock");
        let wrapped: Vec<_> = logs
            .iter()
            .filter_map(|log| Some((&log.name, log.wrapped?)))
            .collect();
        for (name, by) in &wrapped {
            missing.push(format!(
                "{without} without a circle: each line of {name} has other words before it, by {by}"
            ));
        }
        if wrapped.is_empty() {
            missing.push(format!(
                "{without} without a circle: log_error_verbosity = terse leaves it out, and a function that catches the error"
            ));
            advice.push(
                "log_error_verbosity = default: not every deadlock's circle is in the log".into(),
            );
        }
    }
    let members = || data.deadlocks.iter().flat_map(|deadlock| &deadlock.members);
    if data.lock_waits.waits == 0 {
        advice.push("log_lock_waits = on: no lock wait is in the log".into());
    }
    if members().any(|member| member.application_name.is_none()) {
        advice.push(
            "log_line_prefix with %a and log_connections = on: not every application in a circle is known".into(),
        );
    }
    if members().any(|member| member.statement.is_none()) {
        advice.push(
            "track_activities = on, and a superuser's report: not every statement in a circle is known".into(),
        );
    }
    let stopped = logs.iter().any(|log| log.stopped.is_some());
    LogCoverage {
        complete: !stopped && sum(|log| log.unread) == 0,
        bytes: sum(|log| log.bytes),
        lines: sum(|log| log.lines),
        first: logs.iter().filter_map(|log| log.first).min(),
        last: logs.iter().filter_map(|log| log.last).max(),
        missing,
        advice,
    }
}

/// One kept event as it is told.
pub fn told(kept: &Kept, unredacted: bool) -> Option<Deadlock> {
    let event = &kept.event;
    let LogWhat::Deadlock(deadlock) = &event.what else {
        return None;
    };
    let wants = wants(deadlock, unredacted);
    let sessions: Vec<LogSession> = deadlock
        .edges
        .iter()
        .map(|edge| session(event, edge.pid))
        .collect();
    let names: Vec<String> = deadlock
        .edges
        .iter()
        .enumerate()
        .map(|(n, edge)| who(&sessions, n, edge.pid))
        .collect();
    let show = |text: &str| {
        if unredacted {
            text.to_owned()
        } else {
            masked(text)
        }
    };
    let members = deadlock
        .edges
        .iter()
        .zip(&wants)
        .zip(&sessions)
        .map(|((edge, want), session)| Member {
            pid: edge.pid,
            victim: event.pid == Some(edge.pid),
            user: session.user.clone(),
            database: session.database.clone(),
            application_name: session.application_name.clone(),
            waits_for: WaitsFor {
                locktype: edge.on.locktype(),
                mode: edge.mode.as_str().to_owned(),
                on: want.on.clone(),
            },
            blocked_by: edge.blocked_by,
            relation: want.table.clone(),
            statement: edge.statement.as_deref().map(show),
            earlier: deadlock
                .before
                .iter()
                .filter(|before| before.pid == edge.pid)
                .flat_map(|before| &before.statements)
                .map(|text| show(text))
                .collect(),
        })
        .collect();
    let shape = shape(deadlock, &wants);
    let mut relations: Vec<String> = wants.iter().filter_map(|want| want.table.clone()).collect();
    relations.sort();
    relations.dedup();
    Some(Deadlock {
        at: event.at,
        group: kept.group,
        victim_pid: event.pid,
        members,
        relations,
        shape,
        order_conflict: conflict(deadlock, &wants, &names),
        advice: shape.advice().to_owned(),
    })
}

/// Whose process it is: by its own lines, or by those shortly before or after.
pub fn session(event: &LogEvent, pid: Pid) -> LogSession {
    let LogWhat::Deadlock(deadlock) = &event.what else {
        return LogSession::default();
    };
    let own = if event.pid == Some(pid) {
        event.session.clone()
    } else {
        LogSession::default()
    };
    deadlock
        .before
        .iter()
        .filter(|before| before.pid == pid)
        .fold(own, |session, before| session.or(&before.session))
}

/// The application where its name tells them apart, else with its pid.
fn who(sessions: &[LogSession], n: usize, pid: Pid) -> String {
    match &sessions[n].application_name {
        Some(name) => {
            let alone = sessions
                .iter()
                .filter(|session| session.application_name.as_ref() == Some(name))
                .count()
                == 1;
            if alone {
                name.clone()
            } else {
                format!("{name} (pid {pid})")
            }
        }
        None => format!("pid {pid}"),
    }
}
