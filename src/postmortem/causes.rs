//! Which cause the evidence speaks for, out of a fixed list. A suggestion: people decide.

use super::course::Course;
use super::drift::{Drift, Match};
use super::logged::{Deadlocks, Logged};
use super::server::{Change, ChangeOf, role};
use crate::journal::{Event, Record};
use crate::model::{FindingId, Severity, SlotLimit, Timestamp};

/// What such incidents come of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Leak,
    PoolSum,
    LongTransaction,
    Deadlock,
    LockQueue,
    ReconnectStorm,
    PoolerMisconfigured,
    LimitLowered,
    Failover,
    Autoscale,
    RolloutOverlap,
    CacheStampede,
    WorkerBacklog,
    RedisLimit,
}

impl Cause {
    pub const ALL: [Self; 14] = [
        Self::Leak,
        Self::PoolSum,
        Self::LongTransaction,
        Self::Deadlock,
        Self::LockQueue,
        Self::ReconnectStorm,
        Self::PoolerMisconfigured,
        Self::LimitLowered,
        Self::Failover,
        Self::Autoscale,
        Self::RolloutOverlap,
        Self::CacheStampede,
        Self::WorkerBacklog,
        Self::RedisLimit,
    ];

    pub fn words(self) -> &'static str {
        match self {
            Self::Leak => "leaked connections: transactions were begun and left",
            Self::PoolSum => "pools too large in sum for what the server has",
            Self::LongTransaction => "a slow statement or a long transaction",
            Self::Deadlock => "a deadlock: sessions wait for one another in a circle",
            Self::LockQueue => "a lock queue: sessions waited behind one that held a lock",
            Self::ReconnectStorm => {
                "a reconnect storm: connections didn't live, timeouts don't fit"
            }
            Self::PoolerMisconfigured => "the pooler's own limit",
            Self::LimitLowered => "a limit that is lower than it was designed, or was lowered",
            Self::Failover => "a restart or a failover",
            Self::Autoscale => "more instances than the server was meant for (autoscaling)",
            Self::RolloutOverlap => "old and new instances at the same time during a release",
            Self::CacheStampede => {
                "a cache stampede: many keys expire at once, or one is read by everybody"
            }
            Self::WorkerBacklog => "a worker backlog: jobs come faster than they are done",
            Self::RedisLimit => {
                "Redis at a limit of its own (memory, clients), or its cluster down"
            }
        }
    }

    /// Findings that speak for it.
    fn findings(self) -> &'static [FindingId] {
        match self {
            Self::Leak => &[FindingId::ConnLeak, FindingId::TxIdleInTransaction],
            Self::PoolSum => &[FindingId::ConnOversizedPools],
            Self::LongTransaction => &[
                FindingId::TxLong,
                FindingId::QueryStorm,
                FindingId::WaitDominant,
            ],
            Self::Deadlock => &[FindingId::LockCycle],
            Self::LockQueue => &[
                FindingId::LockQueueBehindDdl,
                FindingId::LockPreparedRoot,
                FindingId::LockChain,
            ],
            Self::ReconnectStorm => &[FindingId::ConnChurn],
            Self::CacheStampede => &[
                FindingId::RedisExpiryCliff,
                FindingId::RedisHotKey,
                FindingId::RedisLockTtl,
            ],
            Self::WorkerBacklog => &[FindingId::QueueBacklog, FindingId::QueueDeadLetters],
            Self::RedisLimit => &[FindingId::RedisClusterDown, FindingId::RedisNearLimit],
            _ => &[],
        }
    }
}

/// A cause that something speaks for.
#[derive(Clone, Debug)]
pub struct Suggestion {
    pub cause: Cause,
    pub evidence: Vec<String>,
    /// It was measured; else it was only said.
    pub measured: bool,
    weight: usize,
}

/// Those that something speaks for, the likeliest first.
pub(super) fn suggest(
    course: &Course,
    drift: &Drift,
    runs: &[Vec<Record>],
    logged: &Logged,
) -> Vec<Suggestion> {
    let mut all: Vec<Suggestion> = Cause::ALL
        .into_iter()
        .filter_map(|cause| {
            let mut one = Suggestion {
                cause,
                evidence: Vec::new(),
                measured: false,
                weight: 0,
            };
            one.findings(course);
            one.server(course);
            one.design(course, drift);
            one.answers(runs);
            match (cause, &logged.deadlocks) {
                (Cause::Deadlock, Some(deadlocks)) => one.logged(deadlocks),
                (Cause::Failover, _) => one.ended(logged, course),
                _ => {}
            }
            (!one.evidence.is_empty()).then_some(one)
        })
        .collect();
    // Stable: of the same weight the list's order.
    all.sort_by_key(|one| (!one.measured, std::cmp::Reverse(one.weight)));
    all
}

impl Suggestion {
    fn measured(&mut self, text: String, weight: usize) {
        self.evidence.push(text);
        self.measured = true;
        self.weight += weight;
    }

    /// As long as it was seen, and as bad as it was.
    fn findings(&mut self, course: &Course) {
        for id in self.cause.findings() {
            let Some(seen) = course.seen.iter().find(|seen| seen.id == *id) else {
                continue;
            };
            let bad = if seen.severity == Severity::Critical {
                2
            } else {
                1
            };
            self.measured(
                format!(
                    "{id}, in {} of {} captures: {}",
                    seen.captures,
                    course.frames.len(),
                    seen.title
                ),
                bad * seen.captures,
            );
            self.evidence.extend(seen.evidence.iter().take(3).cloned());
        }
    }

    /// What the server itself wrote.
    fn logged(&mut self, deadlocks: &Deadlocks) {
        let weight = usize::try_from(deadlocks.count).unwrap_or(usize::MAX);
        // The server broke each of them: many don't weigh more than what lasted.
        self.measured(deadlocks.words(), weight.min(3));
        for (count, what) in deadlocks.circles.iter().take(3) {
            let times = match count {
                1 => String::new(),
                n => format!(" ({n} times)"),
            };
            self.evidence.push(format!("{what}{times}"));
        }
    }

    /// The server's own end by its log: a crash is an incident whatever was amiss before it; an orderly start amid trouble is a
    /// remedy.
    fn ended(&mut self, logged: &Logged, course: &Course) {
        let began = began(course);
        for end in &logged.ends {
            if end.is_crash || began.is_none_or(|began| end.first <= began) {
                self.measured(end.words.clone(), captures_of_trouble(course).max(1));
            }
        }
    }

    fn server(&mut self, course: &Course) {
        let refused = |limit: &[SlotLimit]| {
            let with =
                |frame: &&super::frame::Frame| frame.refusals.iter().any(|r| limit.contains(r));
            course.frames.iter().filter(with).count()
        };
        match self.cause {
            Cause::PoolerMisconfigured => {
                let n = refused(&[SlotLimit::Pooler]);
                if n > 0 {
                    self.measured(
                        format!("in {n} captures the pooler itself refused a login"),
                        2 * n,
                    );
                }
            }
            Cause::LimitLowered => {
                for (limit, word) in [(SlotLimit::Role, "role"), (SlotLimit::Database, "database")]
                {
                    let n = refused(&[limit]);
                    if n > 0 {
                        let text = format!(
                            "in {n} captures a login was refused by its {word}'s own limit"
                        );
                        self.measured(text, 2 * n);
                    }
                }
                for change in changes_before_trouble(course) {
                    if change.what.is_lower() {
                        self.measured(change.what.words(), captures_of_trouble(course));
                    }
                }
            }
            Cause::Failover => {
                for change in changes_before_trouble(course) {
                    let text = match change.what {
                        ChangeOf::Restart(at) => {
                            format!("the server started anew at {}", clock(at))
                        }
                        ChangeOf::Role(_, is) => {
                            format!("between two captures it became a {}", role(is))
                        }
                        ChangeOf::MaxConnections(..) | ChangeOf::Limit(..) => continue,
                    };
                    self.measured(text, captures_of_trouble(course));
                }
            }
            _ => {}
        }
    }

    fn design(&mut self, course: &Course, drift: &Drift) {
        match self.cause {
            Cause::LimitLowered => {
                for row in drift.rows.iter().filter(|row| row.is_lower_limit) {
                    self.measured(
                        format!(
                            "{} is {}, designed {}",
                            row.what,
                            row.live_words(),
                            row.declared_words()
                        ),
                        course.frames.len(),
                    );
                }
            }
            Cause::PoolSum => {
                for row in drift
                    .workloads
                    .iter()
                    .filter(|row| row.verdict == Match::Differs)
                {
                    if let (Some(most), Some(designed)) = (row.most, row.designed) {
                        self.measured(
                            format!(
                                "{} had {most} connections, designed at most {designed}",
                                row.name
                            ),
                            course.frames.len(),
                        );
                    }
                }
            }
            _ => {}
        }
    }

    /// What a person said of releases and scaling: nobody measured it.
    fn answers(&mut self, runs: &[Vec<Record>]) {
        let (wanted, text) = match self.cause {
            Cause::RolloutOverlap => (
                "release",
                "the operator answered that there was a release or a flag in the last hour",
            ),
            Cause::Autoscale => (
                "scaled",
                "the operator answered that instances, workers or jobs were scaled up in the last hour",
            ),
            _ => return,
        };
        let said = runs.iter().flatten().any(|record| {
            matches!(&record.event, Event::Answer { step, answer, attended: true } if step.rsplit('.').next() == Some("release") && answer == wanted)
        });
        if said {
            self.evidence.push(text.into());
            self.weight += 1;
        }
    }
}

/// Since when there was trouble.
fn began(course: &Course) -> Option<Timestamp> {
    let bounds = course.critical.or(course.trouble);
    bounds.map(|bounds| bounds.first)
}

/// What was changed once the trouble was there is a remedy, or comes of it: no cause.
fn changes_before_trouble(course: &Course) -> impl Iterator<Item = &Change> {
    let began = began(course);
    let changes = course.server.changes.iter();
    changes.filter(move |change| began.is_none_or(|began| change.at <= began))
}

/// As many as show the finding that was seen most: looking on for longer makes nothing likelier.
fn captures_of_trouble(course: &Course) -> usize {
    let most = course.seen.iter().map(|seen| seen.captures).max();
    most.unwrap_or(course.frames.len())
}

/// `03:12:06`
fn clock(at: Timestamp) -> String {
    format!("{} UTC", at.utc().format("%H:%M:%S"))
}
