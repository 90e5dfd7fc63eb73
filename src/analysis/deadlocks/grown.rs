//! `pg deadlocks` without a log: what the server's counters and settings tell, by two looks.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::analysis::Report;
use crate::analysis::settings::{Judged, judge_all};
use crate::model::{Database, FindingId, Millis, Oid, Part, Severity, Snapshot, Timestamp, count};

pub const PARTS: &[Part] = &[
    Part::Server,
    Part::Databases,
    Part::Roles,
    Part::Settings,
    Part::Overrides,
];

/// The settings that decide what of a deadlock is in the log.
const SETTINGS: [&str; 9] = [
    "deadlock_timeout",
    "log_destination",
    "log_error_verbosity",
    "log_line_prefix",
    "log_lock_waits",
    "log_min_error_statement",
    "log_min_messages",
    "logging_collector",
    "track_activity_query_size",
];

#[derive(Clone, Debug, Serialize)]
pub struct Deadlocking {
    pub databases: Vec<Counted>,
    /// Between the two looks, by the server's clock; `null`: there was one.
    pub window_ms: Option<Millis>,
    pub settings: Vec<Judged>,
    pub finding: Option<Growth>,
}

/// `pg_stat_database.deadlocks` of a database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Counted {
    pub database: String,
    /// Since `stats_reset`; `null`: not read.
    pub deadlocks: Option<i64>,
    pub stats_reset: Option<Timestamp>,
    /// Between the two looks; `null`: there was one, or the counter began anew.
    pub grown: Option<i64>,
}

/// The finding `lock.deadlocks`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Growth {
    pub id: FindingId,
    pub severity: Severity,
    pub title: String,
    pub evidence: Vec<String>,
}

/// The counters of the later look, with what was added since the earlier; most first.
pub fn counted(before: Option<&Snapshot>, after: &Snapshot) -> Vec<Counted> {
    let mut growing = Growing::default();
    if let Some(before) = before {
        growing.add(before);
    }
    growing.add(after);
    growing.counted(after)
}

/// What was added to the counters from look to look: where they begin anew in between, the others are known all the same.
#[derive(Debug, Default)]
pub struct Growing {
    first: Option<Timestamp>,
    last: Vec<Database>,
    added: BTreeMap<Oid, i64>,
}

impl Growing {
    pub fn add(&mut self, look: &Snapshot) {
        self.first.get_or_insert(look.taken_at);
        self.take(look.databases.rows());
    }

    fn take(&mut self, rows: &[Database]) {
        for database in rows {
            if let Some(added) = grown(&self.last, database) {
                *self.added.entry(database.oid).or_default() += added;
            }
        }
        // What couldn't be read is compared with what was read before.
        if !rows.is_empty() {
            self.last = rows.to_vec();
        }
    }

    fn counted(&self, after: &Snapshot) -> Vec<Counted> {
        let grown = |database: &Database| self.added.get(&database.oid).copied();
        sorted(after, grown)
    }
}

fn sorted(after: &Snapshot, grown: impl Fn(&Database) -> Option<i64>) -> Vec<Counted> {
    let mut all: Vec<Counted> = after
        .databases
        .rows()
        .iter()
        .map(|database| Counted {
            database: database.name.clone(),
            deadlocks: database.deadlocks,
            stats_reset: database.stats_reset,
            grown: grown(database),
        })
        .collect();
    all.sort_by(|a, b| {
        let key = |c: &Counted| (c.grown.unwrap_or(0), c.deadlocks.unwrap_or(0));
        key(b)
            .cmp(&key(a))
            .then_with(|| a.database.cmp(&b.database))
    });
    all
}

fn grown(before: &[Database], now: &Database) -> Option<i64> {
    let then = before.iter().find(|database| database.oid == now.oid)?;
    let added = now.deadlocks? - then.deadlocks?;
    // A reset between the two makes the difference meaningless.
    (added >= 0 && then.stats_reset == now.stats_reset).then_some(added)
}

/// `None`: there were no deadlocks, or the counters couldn't be read.
pub fn finding(counted: &[Counted], window: Option<Millis>) -> Option<Growth> {
    let sum = |of: fn(&Counted) -> Option<i64>| counted.iter().filter_map(of).sum::<i64>();
    let (grown, total) = (sum(|c| c.grown), sum(|c| c.deadlocks));
    let times = |n: i64| count(usize::try_from(n).unwrap_or(0), "deadlock");
    let (severity, title) = match (grown, total) {
        (1.., _) => (
            Severity::Warning,
            format!(
                "{} in {}",
                times(grown),
                window.map_or_else(
                    || "the time between two looks".into(),
                    |window| window.to_string()
                )
            ),
        ),
        (_, 1..) => (
            Severity::Info,
            format!("{} since the statistics were reset", times(total)),
        ),
        _ => return None,
    };
    let evidence = counted
        .iter()
        .filter(|c| {
            if grown > 0 {
                c.grown.unwrap_or(0) > 0
            } else {
                c.deadlocks.unwrap_or(0) > 0
            }
        })
        .map(|c| {
            let since = c.stats_reset.map_or_else(
                || "since its statistics began".into(),
                |at| format!("since {}", at.utc().format("%Y-%m-%d %H:%M UTC")),
            );
            let added = c
                .grown
                .filter(|grown| *grown > 0)
                .map_or_else(String::new, |grown| format!("{grown} now, "));
            format!(
                "{}: {added}{} {since}",
                c.database,
                c.deadlocks.unwrap_or(0)
            )
        })
        .collect();
    Some(Growth {
        id: FindingId::LockDeadlocks,
        severity,
        title,
        evidence,
    })
}

/// The report of the last look, and of those before it.
pub fn report(mut before: Growing, after: &Snapshot) -> Report<Deadlocking> {
    let window_ms = before.first.map(|first| first.age_at(after.taken_at));
    before.add(after);
    let databases = before.counted(after);
    let settings = judge_all(after)
        .into_iter()
        .filter(|setting| SETTINGS.contains(&setting.name.as_str()))
        .collect();
    let finding = finding(&databases, window_ms);
    Report::new(
        "deadlock_counters",
        after,
        PARTS,
        Deadlocking {
            databases,
            window_ms,
            settings,
            finding,
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The counters of one database, by frame.
    fn growth(counters: &[i64]) -> Option<i64> {
        let mut growing = Growing::default();
        for deadlocks in counters {
            growing.take(&[Database {
                oid: Oid(5),
                name: "shop".into(),
                encoding: "UTF8".into(),
                connection_limit: None,
                backends: 1,
                deadlocks: Some(*deadlocks),
                stats_reset: None,
            }]);
        }
        growing.added.get(&Oid(5)).copied()
    }

    #[test]
    fn a_counter_that_begins_anew_keeps_what_was_before() {
        assert_eq!(growth(&[3, 5, 9]), Some(6));
        assert_eq!(growth(&[3, 5, 0, 2]), Some(4));
        assert_eq!(growth(&[3]), None);
        assert_eq!(growth(&[3, 0]), None);
    }

    fn counts(deadlocks: Option<i64>, grown: Option<i64>) -> Counted {
        Counted {
            database: "shop".into(),
            deadlocks,
            stats_reset: None,
            grown,
        }
    }

    fn database(deadlocks: i64, reset: &str) -> Database {
        Database {
            oid: crate::model::Oid(5),
            name: "shop".into(),
            encoding: "UTF8".into(),
            connection_limit: None,
            backends: 0,
            deadlocks: Some(deadlocks),
            stats_reset: Some(Timestamp::new(reset.parse().expect("a time"))),
        }
    }

    #[test]
    fn a_counter_that_began_anew_tells_nothing() {
        let (old, new) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
        assert_eq!(grown(&[database(3, old)], &database(5, old)), Some(2));
        assert_eq!(grown(&[database(3, old)], &database(5, new)), None);
        assert_eq!(grown(&[database(3, old)], &database(1, old)), None);
        assert_eq!(grown(&[], &database(1, old)), None);
    }

    #[test]
    fn growth_is_a_warning_and_history_is_none() {
        let of = |counted: &[Counted]| {
            finding(counted, Some(Millis(10_000))).map(|f| (f.severity, f.title))
        };
        assert_eq!(of(&[counts(Some(0), Some(0)), counts(None, None)]), None);
        assert_eq!(
            of(&[counts(Some(4), Some(0))]),
            Some((
                Severity::Info,
                "4 deadlocks since the statistics were reset".into()
            ))
        );
        assert_eq!(
            of(&[counts(Some(4), Some(1))]),
            Some((Severity::Warning, "1 deadlock in 10 s".into()))
        );
    }
}
