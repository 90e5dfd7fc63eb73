//! What is otherwise between two snapshots: the server, its settings, how full it is, who came and went, what triage finds.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::deadlocks::{self, Counted};
use super::glance::{Glance, glance};
use super::redis::Look;
use super::triage;
use crate::model::{BackendId, Pid, Severity, Snapshot, Thresholds};

/// A value that was one thing and is another; `null`: it wasn't there, or couldn't be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    pub what: String,
    pub before: Option<String>,
    pub after: Option<String>,
}

/// Sessions by user, database and application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Moved {
    pub user: Option<String>,
    pub database: Option<String>,
    pub application_name: Option<String>,
    pub before: usize,
    pub after: usize,
    /// Of those after, not there before.
    pub new: usize,
    /// Of those before, not there any more.
    pub gone: usize,
}

/// Two snapshots, the earlier first or not: as they were given.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    pub before: Glance,
    pub after: Glance,
    /// Of the server and its settings.
    pub changes: Vec<Change>,
    pub sessions: Vec<Moved>,
    /// Findings by id that are in one only, or of another severity, each with its title.
    pub findings: Vec<Change>,
    /// Databases whose counter of deadlocks grew, most first.
    pub deadlocks: Vec<Counted>,
    /// Pids that are in transaction in both, in the same transaction.
    pub still_in_transaction: Vec<Pid>,
}

/// Compares them.
pub fn compare(before: &Snapshot, after: &Snapshot, thresholds: &Thresholds) -> Comparison {
    let still = before.activity.rows().iter().filter(|session| {
        session.xact_start.is_some()
            && after
                .activity
                .rows()
                .iter()
                .any(|later| later.id == session.id && later.xact_start == session.xact_start)
    });
    Comparison {
        before: glance(before),
        after: glance(after),
        changes: changes(before, after),
        sessions: moved(before, after),
        findings: findings(before, after, thresholds),
        deadlocks: deadlocks(before, after),
        still_in_transaction: still.map(crate::model::Session::pid).collect(),
    }
}

/// Counters of two servers have nothing to do with one another.
fn deadlocks(before: &Snapshot, after: &Snapshot) -> Vec<Counted> {
    let place = |snapshot: &Snapshot| (snapshot.target.host.clone(), snapshot.target.port);
    if place(before) != place(after) {
        return Vec::new();
    }
    let mut counted = deadlocks::counted(Some(before), after);
    counted.retain(|database| database.grown.is_some_and(|grown| grown > 0));
    counted
}

fn changes(before: &Snapshot, after: &Snapshot) -> Vec<Change> {
    let server = |snapshot: &Snapshot| {
        let server = snapshot.server.get();
        let mut facts: Vec<(String, Option<String>)> = vec![
            ("server".into(), Some(snapshot.target.label())),
            ("version".into(), snapshot.target.server_version.clone()),
            (
                "role".into(),
                snapshot
                    .target
                    .role
                    .map(|role| format!("{role:?}").to_lowercase()),
            ),
            (
                "started at".into(),
                server
                    .and_then(|server| server.started_at)
                    .map(|at| at.to_string()),
            ),
        ];
        facts.extend(snapshot.settings.rows().iter().map(|setting| {
            let unit = setting.unit.clone().unwrap_or_default();
            (
                setting.name.clone(),
                Some(format!("{}{unit}", setting.value)),
            )
        }));
        facts.extend(snapshot.overrides.rows().iter().map(|own| {
            let database = own.datid.map(|oid| {
                let mut all = snapshot.databases.rows().iter();
                let known = all.find(|database| database.oid == oid);
                let name = known.map_or_else(|| oid.to_string(), |known| known.name.clone());
                format!(" of database {name}")
            });
            let role = own.roleid.map(|oid| {
                let known = snapshot.roles.rows().iter().find(|role| role.oid == oid);
                let name = known.map_or_else(|| oid.to_string(), |known| known.name.clone());
                format!(" of role {name}")
            });
            let whose = database.into_iter().chain(role).collect::<String>();
            (format!("{}{whose}", own.name), Some(own.value.clone()))
        }));
        facts
    };
    let (was, is) = (server(before), server(after));
    let later: BTreeMap<&String, &Option<String>> = is.iter().map(|(k, v)| (k, v)).collect();
    let earlier: BTreeSet<&String> = was.iter().map(|(name, _)| name).collect();
    let mut changes: Vec<Change> = was
        .iter()
        .map(|(what, value)| Change {
            what: what.clone(),
            before: value.clone(),
            after: later.get(what).and_then(|value| (*value).clone()),
        })
        .collect();
    changes.extend(
        is.iter()
            .filter(|(what, _)| !earlier.contains(what))
            .map(|(what, value)| Change {
                what: what.clone(),
                before: None,
                after: value.clone(),
            }),
    );
    changes.retain(|change| change.before != change.after);
    // What couldn't be read on one side has no more changed than it hasn't.
    let both = before.settings.get().is_some() && after.settings.get().is_some();
    if !both {
        changes.retain(|change| change.before.is_some() && change.after.is_some());
    }
    changes
}

type Whose = (Option<String>, Option<String>, Option<String>);

fn moved(before: &Snapshot, after: &Snapshot) -> Vec<Moved> {
    let groups = |snapshot: &Snapshot| {
        let mut groups: BTreeMap<Whose, Vec<BackendId>> = BTreeMap::new();
        let taking = snapshot.activity.rows().iter().filter(|s| s.takes_slot());
        for session in taking {
            let whose = (
                session.user.clone(),
                session.database.clone(),
                session.application_name.clone(),
            );
            groups.entry(whose).or_default().push(session.id);
        }
        groups
    };
    let (was, is) = (groups(before), groups(after));
    let all: BTreeSet<&Whose> = was.keys().chain(is.keys()).collect();
    let none = Vec::new();
    let mut rows: Vec<Moved> = all
        .into_iter()
        .map(|whose| {
            let (earlier, later) = (
                was.get(whose).unwrap_or(&none),
                is.get(whose).unwrap_or(&none),
            );
            let not_in = |of: &[BackendId], other: &[BackendId]| {
                of.iter().filter(|id| !other.contains(id)).count()
            };
            Moved {
                user: whose.0.clone(),
                database: whose.1.clone(),
                application_name: whose.2.clone(),
                before: earlier.len(),
                after: later.len(),
                new: not_in(later, earlier),
                gone: not_in(earlier, later),
            }
        })
        .filter(|row| row.new + row.gone > 0)
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.before.abs_diff(row.after)));
    rows
}

fn findings(before: &Snapshot, after: &Snapshot, thresholds: &Thresholds) -> Vec<Change> {
    let of = |snapshot: &Snapshot| -> BTreeMap<&'static str, (Severity, String)> {
        let report = triage::report(snapshot, thresholds);
        let report = match Look::of(snapshot) {
            Some(look) => report.with_redis(look.as_ref().map_err(String::as_str), snapshot),
            None => report,
        };
        let found = report.data.findings.into_iter();
        found
            .map(|finding| (finding.id.name(), (finding.severity, finding.title)))
            .collect()
    };
    let (was, is) = (of(before), of(after));
    let ids: BTreeSet<&&str> = was.keys().chain(is.keys()).collect();
    ids.into_iter()
        .filter(|id| was.get(*id).map(|(how, _)| how) != is.get(*id).map(|(how, _)| how))
        .map(|id| {
            let words = |found: Option<&(Severity, String)>| {
                found.map(|(severity, title)| format!("{}: {title}", severity.word()))
            };
            Change {
                what: (*id).to_owned(),
                before: words(was.get(*id)),
                after: words(is.get(*id)),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{RedactionLevel, ServerRole, Target};

    fn snapshot() -> Snapshot {
        let target = Target {
            name: None,
            host: "db1".into(),
            port: 5432,
            conninfo: None,
            database: "app".into(),
            user: "oncall".into(),
            server_version: Some("15.18".into()),
            role: Some(ServerRole::Primary),
            via_pooler: None,
        };
        let redaction = crate::model::Redaction {
            rule: String::new(),
            level: RedactionLevel::Redacted,
            statements_reduced: 0,
            values_masked: 0,
        };
        let at = crate::model::Timestamp::new(chrono::DateTime::UNIX_EPOCH);
        Snapshot::without_connection(at, target, vec![], redaction)
    }

    #[test]
    fn what_was_not_read_has_not_changed() {
        let before = snapshot();
        let mut after = before.clone();
        after.target.role = Some(ServerRole::Standby);
        after.target.server_version = None;
        let found = compare(&before, &after, &Thresholds::default());
        let whats: Vec<&str> = found.changes.iter().map(|c| c.what.as_str()).collect();
        assert_eq!(whats, ["role"]);
        assert_eq!(found.changes[0].after.as_deref(), Some("standby"));
        assert!(found.sessions.is_empty() && found.before.used.is_none());
    }

    #[test]
    fn counters_of_deadlocks_that_grew() {
        use crate::model::{Database, Oid, Section};
        let of = |counts: [i64; 2], reset: i64| {
            let rows = counts.iter().zip(["shop", "jobs"]).zip(1..);
            let rows = rows.map(|((deadlocks, name), oid)| Database {
                oid: Oid(oid),
                name: name.into(),
                encoding: "UTF8".into(),
                connection_limit: None,
                backends: 1,
                deadlocks: Some(*deadlocks),
                stats_reset: chrono::DateTime::from_timestamp(reset, 0)
                    .map(crate::model::Timestamp::new),
            });
            Snapshot {
                databases: Section::Collected(rows.collect()),
                ..snapshot()
            }
        };
        let grown = |before: &Snapshot, after: &Snapshot| {
            let found = compare(before, after, &Thresholds::default());
            let all = found.deadlocks.into_iter();
            all.map(|one| (one.database, one.deadlocks, one.grown))
                .collect::<Vec<_>>()
        };
        let (before, after) = (of([2, 7], 0), of([5, 7], 0));
        assert_eq!(
            grown(&before, &after),
            [("shop".to_owned(), Some(5), Some(3))]
        );
        assert_eq!(grown(&after, &before), []);
        // Anew since then: how many isn't known.
        assert_eq!(grown(&before, &of([5, 7], 9)), []);
        let mut other = after;
        other.target.port = 5433;
        assert_eq!(grown(&before, &other), []);
    }
}
