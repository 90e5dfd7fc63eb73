//! Events one by one → the report, in memory that doesn't grow with the log.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use chrono::{DurationRound as _, TimeDelta};

use super::aim::Aim;
use super::linked::Waiting;
use super::masked::{masked, sure};
use super::names;
use super::once::{Known, Once};
use super::order;
use super::report::{Deadlock, Deadlocks, Group, Hour, session, told};
use super::waits::Waits;
use crate::model::{
    LogBefore, LogDeadlock, LogEdge, LogEvent, LogSession, LogStart, LogWaitStage, LogWhat, Pid,
    Timestamp,
};
use crate::sql;

/// Groups that are counted apart.
const GROUPS: usize = 500;
/// Of all deadlocks the last so many are listed, besides the first of each group.
const LISTED: usize = 500;
/// Processes whose names are kept.
const SESSIONS: usize = 20_000;
/// A pid is another process's after so long.
const FRESH: TimeDelta = TimeDelta::minutes(10);
/// How many deadlocks back a later line still names a process.
const LATER: usize = 16;

/// A deadlock with the group it counts in.
#[derive(Clone, Debug)]
pub struct Kept {
    pub event: LogEvent,
    /// From 0 on, in order of appearance; while reading.
    pub group: Option<usize>,
}

#[derive(Debug)]
struct Counting {
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    count: u64,
    hours: BTreeMap<Timestamp, u64>,
    applications: BTreeSet<String>,
    /// What the first is about, and whether others are about something else.
    things: Vec<String>,
    varies: bool,
    sample: Kept,
}

/// Takes events in the order of the log.
#[derive(Debug, Default)]
pub struct Collector {
    unredacted: bool,
    total: u64,
    /// Of each process the lines that a deadlock was found, and the circles.
    ends: BTreeMap<Pid, [u64; 2]>,
    /// Errors without a circle.
    bare: u64,
    ungrouped: u64,
    by_key: BTreeMap<String, usize>,
    groups: Vec<Counting>,
    listed: VecDeque<Kept>,
    sessions: BTreeMap<Pid, (LogSession, Option<Timestamp>)>,
    waits: Waits,
    waiting: Waiting,
    once: Once,
    repeated: u64,
    repeated_waits: u64,
}

impl Collector {
    /// `unredacted`: texts in statements are shown.
    pub fn new(unredacted: bool) -> Self {
        Self {
            unredacted,
            ..Self::default()
        }
    }

    /// The next log, before its events.
    pub fn begin(&mut self, start: LogStart) {
        self.once.begin(start);
    }

    /// Its end; `last`: the time of its last line.
    pub fn end_of_log(&mut self, last: Option<Timestamp>) {
        self.once.end(last);
    }

    pub fn take(&mut self, mut event: LogEvent) {
        if !self.unredacted {
            names::redact(&mut event);
        }
        self.meet(&event);
        self.waiting.meet(&mut event);
        let known = self.once.meet(&event);
        match &mut event.what {
            LogWhat::Deadlock(deadlock) => {
                if known == Known::Bare {
                    self.bare = self.bare.saturating_sub(1);
                }
                if known == Known::Again {
                    self.repeated += 1;
                    for before in &deadlock.before {
                        self.rename(before.pid, &before.session, event.at);
                    }
                    return;
                }
                self.name(deadlock, event.at);
                if let Some(victim) = deadlock.edges.first() {
                    self.end(victim.pid, 1);
                }
                self.deadlock(event);
            }
            LogWhat::LockWait(wait) => {
                let sessions = &self.sessions;
                let at = event.at;
                let of = |pid: Pid| {
                    let (session, seen) = sessions.get(&pid)?;
                    near(*seen, at).then(|| session.clone())
                };
                if known == Known::Again {
                    self.repeated_waits += 1;
                    return;
                }
                let wait = wait.clone();
                self.waits.add(&event, &wait, of, self.unredacted);
                if wait.stage == LogWaitStage::Deadlock {
                    self.end(wait.pid, 0);
                }
            }
            LogWhat::BareDeadlock => {
                self.bare += u64::from(known == Known::New);
            }
            LogWhat::Canceled { .. } | LogWhat::Terminated { .. } => {
                if let Some(pid) = event.pid {
                    self.waits.ended(pid, event.at);
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, pid: Pid, what: usize) {
        if self.ends.len() >= SESSIONS && !self.ends.contains_key(&pid) {
            self.ends.pop_first();
        }
        self.ends.entry(pid).or_default()[what] += 1;
    }

    /// A deadlock has a line that it was found, an error, or both; whose error it is an unknown prefix may not tell.
    fn without_circle(&self) -> u64 {
        let found: u64 = self
            .ends
            .values()
            .map(|[found, circles]| found.saturating_sub(*circles))
            .sum();
        found.max(self.bare)
    }

    /// Whose process it is, for this event and for deadlocks shortly before.
    fn meet(&mut self, event: &LogEvent) {
        let Some(pid) = event.pid.filter(|_| event.session.is_known()) else {
            return;
        };
        if self.sessions.len() >= SESSIONS && !self.sessions.contains_key(&pid) {
            self.sessions.pop_first();
        }
        self.sessions.insert(pid, (event.session.clone(), event.at));
        self.rename(pid, &event.session, event.at);
    }

    /// Deadlocks shortly before get the name.
    fn rename(&mut self, pid: Pid, session: &LogSession, at: Option<Timestamp>) {
        let samples = self
            .groups
            .iter_mut()
            .rev()
            .take(LATER)
            .map(|group| &mut group.sample);
        for kept in self.listed.iter_mut().rev().take(LATER).chain(samples) {
            if !near(kept.event.at, at) {
                continue;
            }
            if let LogWhat::Deadlock(deadlock) = &mut kept.event.what {
                add_name(deadlock, pid, session);
            }
        }
    }

    fn name(&self, deadlock: &mut LogDeadlock, at: Option<Timestamp>) {
        let pids: Vec<Pid> = deadlock.edges.iter().map(|edge| edge.pid).collect();
        for pid in pids {
            if let Some((session, seen)) = self.sessions.get(&pid)
                && near(*seen, at)
            {
                add_name(deadlock, pid, session);
            }
        }
    }

    fn deadlock(&mut self, event: LogEvent) {
        self.total += 1;
        let at = event.at;
        let LogWhat::Deadlock(deadlock) = &event.what else {
            return;
        };
        let (key, things) = key(deadlock);
        let group = match self.by_key.get(&key) {
            Some(group) => Some(*group),
            None if self.groups.len() < GROUPS => {
                let group = self.groups.len();
                self.by_key.insert(key, group);
                self.groups.push(Counting {
                    first: None,
                    last: None,
                    count: 0,
                    hours: BTreeMap::new(),
                    applications: BTreeSet::new(),
                    things: things.clone(),
                    varies: false,
                    sample: Kept {
                        event: event.clone(),
                        group: Some(group),
                    },
                });
                Some(group)
            }
            None => {
                self.ungrouped += 1;
                None
            }
        };
        if let Some(counting) = group.and_then(|group| self.groups.get_mut(group)) {
            counting.count += 1;
            counting.varies |= counting.things != things;
            if let Some(at) = at {
                counting.first = Some(counting.first.map_or(at, |first| first.min(at)));
                counting.last = Some(counting.last.map_or(at, |last| last.max(at)));
                if let Ok(hour) = at.utc().duration_trunc(TimeDelta::hours(1)) {
                    *counting.hours.entry(Timestamp::new(hour)).or_default() += 1;
                }
            }
        }
        if self.listed.len() == LISTED {
            self.retire();
        }
        self.listed.push_back(Kept { event, group });
    }

    /// The oldest of the list goes; what its group needs of it stays.
    fn retire(&mut self) {
        let Some(kept) = self.listed.pop_front() else {
            return;
        };
        let event = &kept.event;
        let LogWhat::Deadlock(deadlock) = &event.what else {
            return;
        };
        if let Some(counting) = kept.group.and_then(|group| self.groups.get_mut(group)) {
            counting.applications.extend(
                deadlock
                    .edges
                    .iter()
                    .filter_map(|edge| session(event, edge.pid).application_name),
            );
        }
    }

    /// The groups by count, and all that is listed by time.
    pub fn finish(self) -> Deadlocks {
        let without_circle = self.without_circle();
        let unredacted = self.unredacted;
        let mut groups = self.groups;
        let mut order: Vec<usize> = (0..groups.len()).collect();
        order.sort_by_key(|group| {
            (
                std::cmp::Reverse(groups[*group].count),
                groups[*group].first,
                *group,
            )
        });
        let mut number = vec![0; groups.len()];
        for (n, group) in order.iter().enumerate() {
            number[*group] = n + 1;
        }
        let tell = |kept: &Kept| {
            let mut deadlock = told(kept, unredacted)?;
            deadlock.group = kept.group.map(|group| number[group]);
            Some(deadlock)
        };
        let mut deadlocks: Vec<Deadlock> = self.listed.iter().filter_map(tell).collect();
        for deadlock in &deadlocks {
            if let Some(group) = deadlock.group.and_then(|n| order.get(n - 1)) {
                groups[*group].applications.extend(applications(deadlock));
            }
        }
        let mut told_groups = Vec::new();
        for (n, group) in order.iter().enumerate() {
            let counting = &groups[*group];
            let Some(mut sample) = tell(&counting.sample) else {
                continue;
            };
            let mut names = counting.applications.clone();
            names.extend(applications(&sample));
            let listed = deadlocks
                .iter()
                .filter(|deadlock| deadlock.group == Some(n + 1))
                .count() as u64;
            let order_conflict = sample.order_conflict.take();
            told_groups.push(Group {
                group: n + 1,
                count: counting.count,
                first: counting.first,
                last: counting.last,
                applications: names.into_iter().collect(),
                relations: sample.relations.clone(),
                statements: statements(&counting.sample.event, unredacted),
                shape: sample.shape,
                order_conflict: order_conflict.clone(),
                varies: counting.varies,
                advice: sample.advice.clone(),
                per_hour: counting
                    .hours
                    .iter()
                    .map(|(hour, count)| Hour {
                        hour: *hour,
                        count: *count,
                    })
                    .collect(),
            });
            // Of each group the first is told too, where it has left the list.
            if listed < counting.count
                && !deadlocks
                    .iter()
                    .any(|other| other.at == sample.at && other.victim_pid == sample.victim_pid)
            {
                sample.order_conflict = order_conflict;
                deadlocks.push(sample);
            }
        }
        deadlocks.sort_by_key(|deadlock| deadlock.at);
        Deadlocks {
            deadlocks,
            groups: told_groups,
            lock_waits: self.waits.finish(),
            deadlocks_total: self.total,
            deadlocks_without_circle: without_circle,
            ungrouped: self.ungrouped,
            repeated: self.repeated,
            repeated_waits: self.repeated_waits,
        }
    }
}

fn near(a: Option<Timestamp>, b: Option<Timestamp>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => (a.utc() - b.utc()).abs() <= FRESH,
        // Without times the order of the lines is all there is.
        _ => true,
    }
}

/// Adds what isn't known yet.
fn add_name(deadlock: &mut LogDeadlock, pid: Pid, session: &LogSession) {
    if !deadlock.edges.iter().any(|edge| edge.pid == pid) {
        return;
    }
    match deadlock.before.iter_mut().find(|before| before.pid == pid) {
        Some(before) => before.session = std::mem::take(&mut before.session).or(session),
        None => deadlock.before.push(LogBefore {
            pid,
            session: session.clone(),
            statements: Vec::new(),
        }),
    }
}

fn applications(deadlock: &Deadlock) -> Vec<String> {
    deadlock
        .members
        .iter()
        .filter_map(|member| member.application_name.clone())
        .collect()
}

/// The statements in the circle, values left out, in an order of their own.
fn statements(event: &LogEvent, unredacted: bool) -> Vec<String> {
    let LogWhat::Deadlock(deadlock) = &event.what else {
        return Vec::new();
    };
    let shown = |text: String| if unredacted { text } else { masked(&text) };
    let mut all: Vec<String> = deadlock
        .edges
        .iter()
        .filter_map(fingerprint)
        .map(shown)
        .collect();
    all.sort();
    all.dedup();
    all
}

/// Of a DO, whose body is a text, the statement in it that waits, where the log has it.
fn fingerprint(edge: &LogEdge) -> Option<String> {
    let whole = sql::fingerprint(sure(edge.statement.as_deref()?));
    let hidden = whole.starts_with("do ?") || whole.starts_with("do language ");
    Some(match edge.inner.as_deref().filter(|_| hidden) {
        Some(inner) => format!("do: {}", sql::fingerprint(sure(inner))),
        None => whole,
    })
}

/// Alike: the same statements around the circle in a conflict of the same shape, on the same tables where those don't
/// tell them. Which rows it is about comes apart.
fn key(deadlock: &LogDeadlock) -> (String, Vec<String>) {
    let wants = order::wants(deadlock, false);
    let shape = order::shape(deadlock, &wants);
    let parts: Vec<String> = deadlock
        .edges
        .iter()
        .zip(&wants)
        .map(|(edge, want)| {
            let told = want.target.aim.as_ref().and_then(Aim::named);
            let table = want
                .table
                .as_ref()
                .filter(|table| told.as_ref() != Some(table));
            let kind = if edge.on.is_row() {
                "row"
            } else {
                edge.on.locktype().unwrap_or("?")
            };
            let statement = fingerprint(edge);
            format!(
                "{kind} {}\n{}",
                table.map_or("", String::as_str),
                statement.as_deref().unwrap_or(edge.mode.as_str())
            )
        })
        .collect();
    // The victim stands first, and may be any of them.
    let turn = (0..parts.len())
        .min_by_key(|n| (&parts[*n..], &parts[..*n]))
        .unwrap_or(0);
    let mut things: Vec<String> = wants.into_iter().map(|want| want.on).collect();
    things.sort();
    let circle = [&parts[turn..], &parts[..turn]].concat();
    (format!("{shape:?}\n{}", circle.join("\n")), things)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::deadlocks::{Basis, Shape, WaitEnd};
    use crate::model::{LockMode, LogLockWait, LogObject, LogPlace, Millis};

    fn at(second: i64) -> Option<Timestamp> {
        chrono::DateTime::from_timestamp(1_780_000_000 + second, 0).map(Timestamp::new)
    }

    /// With the place that the line of its wait has.
    fn edge(pid: i32, by: i32, on: LogObject, statement: &str) -> LogEdge {
        let aim = super::super::aim::aim(statement);
        let place = aim.table.filter(|_| on.is_row()).map(|relation| LogPlace {
            relation,
            page: 0,
            tuple: 1,
            index: false,
            foreign_key: false,
        });
        LogEdge {
            pid: Pid(pid),
            mode: LockMode::Share,
            on,
            blocked_by: Pid(by),
            statement: Some(statement.into()),
            place,
            inner: None,
        }
    }

    fn row(xid: u32) -> LogObject {
        LogObject::Transaction { xid }
    }

    fn event(second: i64, application: &str, edges: Vec<LogEdge>) -> LogEvent {
        LogEvent {
            at: at(second),
            pid: edges.first().map(|edge| edge.pid),
            session: LogSession {
                application_name: Some(application.into()),
                ..LogSession::default()
            },
            sqlstate: Some("40P01".into()),
            what: LogWhat::Deadlock(LogDeadlock {
                edges,
                before: Vec::new(),
            }),
        }
    }

    fn transfer(second: i64, a: i32, b: i32) -> LogEvent {
        event(
            second,
            "transfer-a",
            vec![
                edge(a, b, row(1), "update accounts set n = 'x' where id = 2"),
                edge(b, a, row(2), "update accounts set n = 'y' where id = 1"),
            ],
        )
    }

    fn report(events: Vec<LogEvent>) -> Deadlocks {
        let mut collector = Collector::new(false);
        for event in events {
            collector.take(event);
        }
        collector.finish()
    }

    fn order(edges: Vec<LogEdge>) -> (Shape, Option<String>) {
        let told = report(vec![event(0, "a", edges)]);
        let deadlock = &told.deadlocks[0];
        (
            deadlock.shape,
            deadlock
                .order_conflict
                .as_ref()
                .map(|order| order.text.clone()),
        )
    }

    #[test]
    fn two_rows_in_two_orders() {
        let told = report(vec![transfer(0, 7, 8), transfer(7200, 9, 10)]);
        assert_eq!(
            (
                told.deadlocks.len(),
                told.groups.len(),
                told.groups[0].count
            ),
            (2, 1, 2)
        );
        assert_eq!(told.groups[0].per_hour.len(), 2);
        let first = &told.deadlocks[0];
        assert_eq!(first.shape, Shape::RowOrder);
        assert_eq!(first.relations, ["accounts"]);
        assert_eq!(
            first.members[0].statement.as_deref(),
            Some("update accounts set n = '…' where id = 2")
        );
        let order = first.order_conflict.as_ref().expect("an order");
        assert_eq!(
            order.text,
            "transfer-a locks accounts id 1, then id 2; pid 8 id 2, then id 1"
        );
        assert_eq!(order.basis, Basis::Deduced);
    }

    #[test]
    fn without_its_line_a_write_is_of_a_table_that_another_is_known_to_be_of() {
        let of = |other: &str| {
            let mut edges = vec![
                edge(1, 2, row(1), "update accounts set n = 1 where id = 2"),
                edge(2, 1, row(2), other),
            ];
            edges[1].place = None;
            let told = report(vec![event(0, "a", edges)]);
            let deadlock = told.deadlocks[0].clone();
            let other = deadlock.members[1].clone();
            (
                other.relation,
                other.waits_for.on,
                deadlock.order_conflict.is_some(),
            )
        };
        let known = (Some("accounts".into()), "accounts id 1".into(), true);
        assert_eq!(of("update accounts set n = 1 where id = 1"), known);
        let unknown = (
            None,
            "a row (of the statement's table or of one it refers to)".into(),
            false,
        );
        for other in [
            "insert into transfers values (7, 2)",
            "update transfers set account = 2 where id = 1",
            "insert into accounts values (2)",
            "update s2.accounts set n = 1 where id = 2; update x set a = 1",
        ] {
            let told = of(other);
            if other.contains(';') {
                assert_eq!(told, (None, "a row".into(), false), "{other}");
            } else {
                assert_eq!(told, unknown, "{other}");
            }
        }
    }

    #[test]
    fn the_line_of_its_own_wait_tells_what_a_member_waits_for() {
        let mut wait = event(1, "b", vec![edge(8, 7, row(2), "x")]);
        let line = |statement: &str, relation: &str| {
            LogWhat::LockWait(LogLockWait {
                pid: Pid(8),
                mode: LockMode::Share,
                on: row(2),
                stage: LogWaitStage::StillWaiting,
                waited_ms: Some(Millis(200)),
                holders: Vec::new(),
                queue: Vec::new(),
                place: Some(LogPlace {
                    relation: relation.into(),
                    page: 0,
                    tuple: 1,
                    index: false,
                    foreign_key: false,
                }),
                statement: Some(statement.into()),
                inner: Some("update parent set n = 2 where id = 5".into()),
            })
        };
        let circle = |statement: Option<&str>| {
            let mut edges = vec![
                edge(7, 8, row(1), "update parent set n = 1 where id = 2"),
                edge(8, 7, row(2), ""),
            ];
            edges[1].statement = statement.map(str::to_owned);
            event(9, "a", edges)
        };
        wait.what = line("select /* long */ f()", "parent");
        for statement in [None, Some("select /* lo"), Some("select /* long */ f()")] {
            let told = report(vec![wait.clone(), circle(statement)]);
            let member = &told.deadlocks[0].members[1];
            assert_eq!(member.relation.as_deref(), Some("parent"));
            assert_eq!(member.waits_for.on, "parent id 5");
            assert_eq!(member.statement.as_deref(), Some("select  f()"));
        }
        // Of another wait of a process by that number.
        let told = report(vec![wait.clone(), circle(Some("select g()"))]);
        assert_eq!(told.deadlocks[0].members[1].relation, None);
        let mut over = wait.clone();
        if let LogWhat::LockWait(wait) = &mut over.what {
            wait.stage = LogWaitStage::Acquired;
        }
        let told = report(vec![wait, over, circle(None)]);
        assert_eq!(told.deadlocks[0].members[1].relation, None);
    }

    #[test]
    fn a_later_line_names_the_other() {
        let mut wait = event(1, "transfer-b", vec![edge(8, 7, row(2), "x")]);
        wait.what = LogWhat::LockWait(LogLockWait {
            pid: Pid(8),
            mode: LockMode::Share,
            on: row(2),
            stage: LogWaitStage::Acquired,
            waited_ms: Some(Millis(1500)),
            holders: Vec::new(),
            queue: Vec::new(),
            place: None,
            statement: None,
            inner: None,
        });
        let told = report(vec![transfer(0, 7, 8), wait]);
        let order = told.deadlocks[0].order_conflict.as_ref().expect("an order");
        assert_eq!(
            order.text,
            "transfer-a locks accounts id 1, then id 2; transfer-b id 2, then id 1"
        );
        assert_eq!((told.lock_waits.waits, told.lock_waits.acquired), (1, 1));
        assert_eq!(told.lock_waits.longest[0].ended, WaitEnd::Acquired);
    }

    #[test]
    fn earlier_statements_prove_it() {
        let mut seen = transfer(0, 7, 8);
        if let LogWhat::Deadlock(deadlock) = &mut seen.what {
            for (pid, id) in [(7, 1), (8, 2)] {
                deadlock.before.push(LogBefore {
                    pid: Pid(pid),
                    session: LogSession::default(),
                    statements: vec![format!("update accounts set n = 'z' where id = {id}")],
                });
            }
        }
        let told = report(vec![seen]);
        assert_eq!(
            told.deadlocks[0]
                .order_conflict
                .as_ref()
                .expect("an order")
                .basis,
            Basis::Seen
        );
    }

    #[test]
    fn three_in_a_circle_and_other_things_than_rows() {
        let set = |id: u32| format!("update t set a = 1 where id = {id}");
        assert_eq!(
            order(vec![
                edge(1, 2, row(1), &set(3)),
                edge(2, 3, row(2), &set(1)),
                edge(3, 1, row(3), &set(2))
            ]),
            (
                Shape::RowOrder,
                Some(
                    "a locks t id 2, then id 3; pid 2 id 3, then id 1; pid 3 id 1, then id 2"
                        .into()
                )
            )
        );
        let advisory = |low| LogObject::Advisory {
            database: 5,
            key: [0, low, 1],
        };
        assert_eq!(
            order(vec![
                edge(1, 2, advisory(11), "select pg_advisory_lock(11)"),
                edge(2, 1, advisory(22), "select pg_advisory_lock(22)")
            ]),
            (
                Shape::AdvisoryOrder,
                Some("a locks advisory lock 22, then advisory lock 11; pid 2 advisory lock 11, then advisory lock 22".into())
            )
        );
        let table = |relation| LogObject::Relation {
            relation,
            database: 5,
        };
        assert_eq!(
            order(vec![
                edge(1, 2, table(9), "lock table a in share mode"),
                edge(2, 1, table(8), "lock table b in share mode")
            ]),
            (
                Shape::TableOrder,
                Some("a locks b, then a; pid 2 a, then b".into())
            )
        );
    }

    #[test]
    fn what_cannot_be_told_is_not() {
        let by_parameter = "update t set a = 1 where id = $1";
        assert_eq!(
            order(vec![
                edge(1, 2, row(1), by_parameter),
                edge(2, 1, row(2), by_parameter)
            ]),
            (Shape::RowOrder, None)
        );
        let same = "update t set a = 1 where id = 3";
        let (shape, text) = order(vec![edge(1, 2, row(1), same), edge(2, 1, row(2), same)]);
        assert_eq!(shape, Shape::LockUpgrade);
        assert_eq!(
            text.as_deref(),
            Some("a and pid 2 each hold a weaker lock on t id 3 and ask for a stronger one")
        );
    }

    #[test]
    fn many_rows_of_one_key_are_no_upgrade() {
        let batch = "update orders set done = true where customer = 5";
        assert_eq!(
            order(vec![edge(1, 2, row(1), batch), edge(2, 1, row(2), batch)]),
            (Shape::RowOrder, None)
        );
    }

    #[test]
    fn tables_of_one_name_are_told_apart_by_their_oid() {
        let table = |relation| LogObject::Relation {
            relation,
            database: 5,
        };
        let (shape, text) = order(vec![
            edge(1, 2, table(9), "lock table a.t in share mode"),
            edge(2, 1, table(8), "lock table b.t in share mode"),
        ]);
        assert_eq!(shape, Shape::TableOrder);
        assert_eq!(
            text.as_deref(),
            Some("a locks b.t, then a.t; pid 2 a.t, then b.t")
        );
        let (_, text) = order(vec![
            edge(1, 2, table(9), "update t set a = 1 where id = 1"),
            edge(2, 1, table(8), "lock table b in share mode"),
        ]);
        assert_eq!(
            text.as_deref(),
            Some(
                "a locks b, then relation 9 of database 5; pid 2 relation 9 of database 5, then b"
            )
        );
    }

    #[test]
    fn rows_of_two_schemas_are_two() {
        let of = |a: &str, b: &str| {
            let set = |table: &str| format!("update {table} set a = 1 where id = 1");
            order(vec![
                edge(1, 2, row(1), &set(a)),
                edge(2, 1, row(2), &set(b)),
            ])
        };
        assert_eq!(
            of("s2.t", "public.t"),
            (
                Shape::TableOrder,
                Some("a locks t id 1, then s2.t id 1; pid 2 s2.t id 1, then t id 1".into())
            )
        );
        assert_eq!(of("s2.t", "s2.t").0, Shape::LockUpgrade);
        assert_eq!(of("t", "public.t").0, Shape::LockUpgrade);
        // By the search path it may be one table or two.
        assert_eq!(of("s2.t", "t"), (Shape::Mixed, None));
    }

    #[test]
    fn conflicts_of_two_shapes_are_two_kinds() {
        let same = "update accounts set n = 'x' where id = 3";
        let upgrade = event(
            9,
            "b",
            vec![edge(1, 2, row(1), same), edge(2, 1, row(2), same)],
        );
        let told = report(vec![transfer(0, 7, 8), transfer(5, 8, 7), upgrade]);
        let shapes: Vec<_> = told.groups.iter().map(|g| (g.shape, g.count)).collect();
        assert_eq!(shapes, [(Shape::RowOrder, 2), (Shape::LockUpgrade, 1)]);
        assert!(!told.groups[0].varies);
        let mut others = transfer(5, 8, 7);
        if let LogWhat::Deadlock(deadlock) = &mut others.what {
            deadlock.edges[0].statement = Some("update accounts set n = 'x' where id = 4".into());
        }
        let told = report(vec![transfer(0, 7, 8), others]);
        assert_eq!((told.groups.len(), told.groups[0].varies), (1, true));
    }

    #[test]
    fn two_do_of_two_bodies_are_two_kinds() {
        let with = |second: i64, inner: &str| {
            let body = "do $$ begin x; end $$";
            let mut edges = vec![edge(1, 2, row(1), body), edge(2, 1, row(2), body)];
            for edge in &mut edges {
                edge.inner = Some(inner.into());
            }
            event(second, "a", edges)
        };
        let told = report(vec![
            with(0, "update t set a = 1 where id = 1"),
            with(60, "update t set a = 2 where id = 2"),
            with(120, "delete from t where id = 1"),
        ]);
        let counts: Vec<_> = told.groups.iter().map(|group| group.count).collect();
        assert_eq!(counts, [2, 1]);
        assert_eq!(
            told.groups[0].statements,
            ["do: update t set a = ? where id = ?"]
        );
    }

    #[test]
    fn a_timeout_ends_a_wait() {
        let waits = |stage| {
            let mut wait = event(1, "a", vec![edge(8, 7, row(2), "x")]);
            wait.what = LogWhat::LockWait(LogLockWait {
                pid: Pid(8),
                mode: LockMode::Share,
                on: row(2),
                stage,
                waited_ms: Some(Millis(200)),
                holders: Vec::new(),
                queue: Vec::new(),
                place: None,
                statement: None,
                inner: None,
            });
            wait
        };
        let mut end = waits(LogWaitStage::StillWaiting);
        end.at = at(3);
        end.what = LogWhat::Canceled {
            why: crate::model::LogCancellation::LockTimeout,
        };
        let told = report(vec![waits(LogWaitStage::StillWaiting), end.clone()]).lock_waits;
        assert_eq!((told.failed, told.open), (1, 0));
        assert_eq!(told.longest[0].waited_ms, Millis(2200));
        end.pid = Some(Pid(9));
        let told = report(vec![waits(LogWaitStage::StillWaiting), end]).lock_waits;
        assert_eq!((told.failed, told.open), (0, 1));
        assert_eq!(told.longest[0].waited_ms, Millis(200));
    }

    #[test]
    fn texts_in_keys_get_letters() {
        let (_, text) = order(vec![
            edge(1, 2, row(1), "update t set a = 1 where name = 'taro'"),
            edge(2, 1, row(2), "update t set a = 1 where name = '花子'"),
        ]);
        assert_eq!(
            text.as_deref(),
            Some("a locks t name B, then name A; pid 2 name A, then name B")
        );
    }

    #[test]
    fn the_check_of_a_foreign_key_is_told_by_its_place() {
        let mut event = event(
            0,
            "a",
            vec![
                edge(1, 2, row(1), "insert into child values (1, 1)"),
                edge(2, 1, row(2), "update parent set n = 1 where id = 1"),
            ],
        );
        if let LogWhat::Deadlock(deadlock) = &mut event.what {
            deadlock.edges[0].place = Some(LogPlace {
                relation: "parent".into(),
                page: 0,
                tuple: 1,
                index: false,
                foreign_key: true,
            });
        }
        let told = report(vec![event]);
        assert_eq!(told.deadlocks[0].shape, Shape::ForeignKey);
        assert_eq!(
            told.deadlocks[0]
                .order_conflict
                .as_ref()
                .map(|order| &order.text),
            None
        );
        assert_eq!(told.deadlocks[0].members[0].waits_for.on, "a row of parent");
    }

    #[test]
    fn very_many_are_counted_and_some_are_listed() {
        let events = (0..2000).map(|n| transfer(n * 5, 7, 8)).collect();
        let told = report(events);
        assert_eq!((told.deadlocks_total, told.groups[0].count), (2000, 2000));
        assert_eq!(told.deadlocks.len(), LISTED + 1);
        assert_eq!(told.deadlocks[0].at, at(0));
    }
}
