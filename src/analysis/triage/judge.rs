//! What the judges of all areas share, and the report that comes of them.

use serde::Serialize;

use super::{locks, pooler, sessions, settings, slots};
use crate::analysis::Coverage;
use crate::analysis::redis::{Look, RedisPart};
use crate::analysis::{Report, blocking, catalog, connections, stanch_command};
use crate::analysis::{redis_url, shell_word};
use crate::model::{
    ExitCode, FindingId, Millis, Part, Pattern, Section, Session, Severity, Snapshot, Thresholds,
    count,
};

pub const PARTS: &[Part] = &Part::ALL;

#[derive(Clone, Debug, Serialize)]
pub struct Triage {
    /// The worst first.
    pub findings: Vec<Finding>,
    pub summary: Summary,
    /// What couldn't be judged, and why.
    pub unknown: Vec<String>,
    /// The Redis in front, where it was looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redis: Option<RedisPart>,
}

/// The state of the server in numbers, also when nothing is wrong.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    pub capacity: Option<connections::Capacity>,
    /// Sessions that run a statement; `null` where some are hidden.
    pub active: Option<usize>,
    /// Sessions in a transaction; `null` where some are hidden.
    pub in_transaction: Option<usize>,
    pub blocked: Option<usize>,
    /// Of those that may be seen.
    pub oldest_transaction_ms: Option<Millis>,
    /// Clients that wait at the pooler, where its console was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pooler_waiting: Option<u32>,
    /// Why its console couldn't be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pooler_failed: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    pub id: FindingId,
    pub severity: Severity,
    pub pattern: Option<Pattern>,
    pub title: String,
    pub evidence: Vec<String>,
    /// What to know beside the evidence: what it can't tell, and what doesn't help.
    pub notes: Vec<String>,
    pub caused_by: Vec<FindingId>,
    /// Commands to type next.
    pub next: Vec<String>,
    /// The built-in runbook for it, where there is one.
    pub runbook: Option<String>,
}

/// What the judges of all areas share.
pub(super) struct Judge<'a> {
    pub snapshot: &'a Snapshot,
    pub thresholds: &'a Thresholds,
    pub capacity: Option<connections::Capacity>,
    pub blockers: blocking::Blockers,
    pub findings: Vec<Finding>,
    pub unknown: Vec<String>,
}

/// Judges a whole snapshot.
pub fn report(snapshot: &Snapshot, thresholds: &Thresholds) -> Report<Triage> {
    let mut judge = Judge {
        snapshot,
        thresholds,
        capacity: connections::capacity(snapshot),
        blockers: blocking::report(snapshot).data,
        findings: Vec::new(),
        unknown: Vec::new(),
    };
    sessions::judge(&mut judge);
    locks::judge(&mut judge);
    slots::judge(&mut judge);
    pooler::judge(&mut judge);
    settings::judge(&mut judge);
    let hidden = connections::clients(snapshot).filter(|s| s.hidden).count();
    if hidden > 0 {
        judge.unknown.push(format!(
            "conn.leak, conn.oversized_pools, conn.churn, tx.long, tx.idle_in_transaction, query.storm, \
             wait.dominant: what {} {} is hidden from this login",
            count(hidden, "session"),
            if hidden == 1 { "does" } else { "do" }
        ));
    }
    let mut findings = judge.findings;
    // Stable: within a severity the order of the catalog, which has the symptom before its causes.
    findings.sort_by_key(|f| (std::cmp::Reverse(f.severity), f.id));
    walks(&mut findings, snapshot);
    let now = snapshot.taken_at;
    let clients = || connections::clients(snapshot);
    let all_seen = snapshot.activity.get().is_some() && !clients().any(|s| s.hidden);
    let count_all =
        |is: &dyn Fn(&Session) -> bool| all_seen.then(|| clients().filter(|s| is(s)).count());
    let summary = Summary {
        capacity: judge.capacity,
        active: count_all(&|s| s.is_active()),
        in_transaction: count_all(&|s| s.xact_start.is_some() || s.is_idle_in_transaction()),
        blocked: snapshot.locks.get().map(|_| judge.blockers.blocked),
        oldest_transaction_ms: clients().filter_map(|s| s.xact_age(now)).max(),
        pooler_waiting: pooler::waiting(snapshot),
        pooler_failed: snapshot.pooler.as_ref().and_then(Section::why),
    };
    Report::new(
        "triage",
        snapshot,
        PARTS,
        Triage {
            findings,
            summary,
            unknown: judge.unknown,
            redis: None,
        },
    )
}

/// The book that a finding is for, where the finding is more than worth knowing: once, however many it is for.
fn walks(findings: &mut [Finding], snapshot: &Snapshot) {
    let mut told: Vec<String> = Vec::new();
    for finding in findings {
        let book = finding.runbook.clone();
        let Some(book) = book.filter(|_| finding.severity > Severity::Info) else {
            continue;
        };
        if !told.contains(&book) {
            let walk = stanch_command(&format!("runbook run {book}"), &snapshot.target);
            finding.next.push(walk);
            told.push(book);
        }
    }
}

impl Report<Triage> {
    pub fn exit_code(&self) -> ExitCode {
        let findings: Vec<&Finding> = self.data.findings.iter().collect();
        let unseen = self
            .data
            .redis
            .as_ref()
            .is_some_and(|part| !part.is_complete())
            || self.data.unseen_pooler(&[""]);
        match code(&findings, &self.head.coverage) {
            ExitCode::Ok if unseen => ExitCode::Unknown,
            code => code,
        }
    }

    /// The same with what was found of the Redis in front.
    #[must_use]
    pub fn with_redis(mut self, look: Result<&Look, &str>, snapshot: &Snapshot) -> Self {
        let data = &mut self.data;
        match look {
            Ok(look) => {
                let mut found = look.findings();
                walks(&mut found, snapshot);
                for next in found.iter_mut().flat_map(|finding| finding.next.iter_mut()) {
                    if next.contains(" runbook run ") {
                        next.push_str(&format!(
                            " --redis {}",
                            shell_word(&redis_url(&look.target))
                        ));
                    }
                }
                data.findings.extend(found);
                data.unknown.extend(look.unknown());
                data.redis = Some(look.part(snapshot.taken_at));
            }
            Err(why) => {
                data.unknown.push(format!("redis.*, queue.*: {why}"));
                data.redis = Some(RedisPart::failed(why.to_owned()));
            }
        }
        data.findings
            .sort_by_key(|f| (std::cmp::Reverse(f.severity), f.id));
        self
    }
}

/// 2 > 1 > 3 > 0; 3 only where a part that a verdict needs couldn't be read.
pub fn code(findings: &[&Finding], coverage: &Coverage) -> ExitCode {
    match findings.iter().map(|f| f.severity).max() {
        Some(Severity::Critical) => ExitCode::Critical,
        Some(Severity::Warning) => ExitCode::Warning,
        _ if !coverage.is_complete() => ExitCode::Unknown,
        _ => ExitCode::Ok,
    }
}

impl Triage {
    /// Whether findings of these areas may be missing because the pooler couldn't be looked at.
    pub fn unseen_pooler(&self, areas: &[&str]) -> bool {
        let name = FindingId::PoolWaiting.name();
        self.summary.pooler_failed.is_some() && areas.iter().any(|area| name.starts_with(area))
    }

    /// The findings at warning and above whose names begin so.
    pub fn of_areas(&self, areas: &[&str]) -> Vec<&Finding> {
        self.findings
            .iter()
            .filter(|f| f.severity != Severity::Info)
            .filter(|f| areas.iter().any(|area| f.id.name().starts_with(area)))
            .collect()
    }
}

impl Judge<'_> {
    pub fn has(&self, id: FindingId) -> bool {
        self.findings.iter().any(|f| f.id == id)
    }

    /// Adds a finding; its pattern is the catalog's unless set afterwards.
    pub fn find(
        &mut self,
        id: FindingId,
        severity: Severity,
        title: String,
        evidence: Vec<String>,
        next: &[&str],
    ) {
        let next = next
            .iter()
            .map(|what| stanch_command(what, &self.snapshot.target))
            .collect();
        self.findings.push(Finding {
            id,
            severity,
            pattern: catalog::entry(id).pattern,
            title,
            evidence,
            notes: Vec::new(),
            caused_by: Vec::new(),
            next,
            runbook: catalog::runbook(id).map(Into::into),
        });
    }

    /// Something to know beside the evidence of what was found last.
    pub fn note(&mut self, text: &str) {
        if let Some(finding) = self.findings.last_mut() {
            finding.notes.push(text.into());
        }
    }

    /// How bad the state of the slots is by the thresholds, `None` below them.
    pub fn slot_severity(&self) -> Option<Severity> {
        if !self.snapshot.refusals.is_empty() && self.capacity.is_none() {
            return Some(Severity::Critical);
        }
        let used = self.capacity.as_ref()?.used_pct?;
        if used >= self.thresholds.connections_critical {
            Some(Severity::Critical)
        } else if used >= self.thresholds.connections_warning {
            Some(Severity::Warning)
        } else {
            None
        }
    }
}
