//! Connection slots: how full, and which of the four patterns fills them.

use super::judge::Judge;
use crate::analysis::connections::{self, Capacity};
use crate::model::{FindingId, Millis, Percent, Session, SessionState, Severity, SlotLimit, count};

/// Churn isn't judged before the server has been up for this long: then every session is new.
/// After a restart pools fill within the first minute: what was opened in the last one of two wasn't.
const CHURN_UPTIME: Millis = Millis::from_secs(120);
const CHURN_LEAST: usize = 20;

pub(super) fn judge(judge: &mut Judge<'_>) {
    let severity = judge.slot_severity();
    if let Some(capacity) = judge.capacity.clone() {
        if let Some(severity) = severity {
            leak(judge, &capacity, severity);
        }
        oversized(judge, &capacity, severity.unwrap_or(Severity::Warning));
    }
    churn(judge);
    unaccounted(judge);
    limit(judge, severity);
    own_limits(judge);
}

/// A role or a database whose own limit is used up: the next of its clients is refused while the server has slots. A pool
/// may be meant to be just as large, so by itself it is a warning.
fn own_limits(judge: &mut Judge<'_>) {
    let full = connections::limits(judge.snapshot);
    let lines: Vec<String> = full
        .iter()
        .filter(|l| l.free == Some(0) && l.limit > 0)
        .filter_map(|l| Some((l, l.used?)))
        .map(|(l, used)| {
            format!(
                "{} {} has used its connection limit: {} of {}",
                l.kind.word(),
                l.name,
                used,
                l.limit
            )
        })
        .collect();
    let Some(first) = lines.first().cloned() else {
        return;
    };
    let refused_by_it = judge
        .snapshot
        .refusals
        .first()
        .is_some_and(|r| matches!(r.limit, SlotLimit::Role | SlotLimit::Database));
    let exhausted = judge
        .findings
        .iter_mut()
        .find(|f| f.id == FindingId::ConnExhausted)
        .filter(|_| refused_by_it);
    if let Some(finding) = exhausted {
        finding.evidence.extend(lines);
    } else {
        let evidence = lines.into_iter().skip(1).collect();
        judge.find(
            FindingId::ConnOwnLimit,
            Severity::Warning,
            first,
            evidence,
            &["pg connections"],
        );
    }
}

fn clients<'j>(judge: &'j Judge<'_>) -> Vec<&'j Session> {
    connections::clients(judge.snapshot).collect()
}

fn limit(judge: &mut Judge<'_>, severity: Option<Severity>) {
    let refused = judge.snapshot.refusals.first().cloned();
    let capacity = judge.capacity.clone();
    let full = capacity
        .as_ref()
        .is_some_and(|c| c.free == 0 && c.usable > 0);
    let mut evidence = Vec::new();
    if let Some(refusal) = &refused {
        let why = match refusal.limit {
            SlotLimit::Nothing => "every slot was taken, the reserved ones too",
            SlotLimit::Reserved => "only reserved slots were left",
            SlotLimit::Role => "the role's connection limit was reached",
            SlotLimit::Database => "the database's connection limit was reached",
            SlotLimit::Pooler => "the pooler had no connection to give",
            SlotLimit::Unknown => "for want of a slot",
        };
        evidence.push(format!(
            "login {} to {} was refused: {why}",
            refusal.user, refusal.database
        ));
    }
    if capacity.is_none() {
        evidence
            .push("a superuser's login (-U) or the target's rescue login may still get in".into());
    }
    if let Some(capacity) = &capacity {
        evidence.push(capacity.words());
        evidence.push(format!(
            "max_connections {}, less {} for superusers and {} reserved",
            capacity.max_connections, capacity.superuser_reserved, capacity.reserved
        ));
    }
    evidence.extend(largest_groups(judge));
    // What was refused before slots freed is evidence, no more.
    let now = refused.as_ref().is_some_and(|r| {
        capacity.is_none() || r.is_fresh() && r.user != judge.snapshot.target.user
    });
    let (finding, severity, title, next): (_, _, _, &[&str]) = if now || full {
        let title = match refused.as_ref().filter(|_| now) {
            Some(r) if r.limit == SlotLimit::Role => "a role's connection limit is reached",
            Some(r) if r.limit == SlotLimit::Database => "a database's connection limit is reached",
            Some(r) if r.limit == SlotLimit::Pooler => "the pooler has no connection to give",
            _ => "no connection slot is free",
        };
        // Where nobody got in, the next look starts with getting in.
        let next: &[&str] = if capacity.is_none() {
            &["triage --wait-slot 60s"]
        } else {
            &["pg connections", "pg activity"]
        };
        let critical = Severity::Critical;
        (FindingId::ConnExhausted, critical, title.into(), next)
    } else {
        let Some(capacity) = capacity else { return };
        let (severity, title) = match (&refused, severity) {
            (Some(refusal), severity) => (
                severity.unwrap_or(Severity::Warning),
                format!(
                    "a login was refused for want of a slot {} ago; now {}",
                    Millis(refusal.ms_before),
                    capacity.words()
                ),
            ),
            (None, Some(severity)) => {
                let noun = if capacity.free == 1 { "slot" } else { "slots" };
                let title = format!("{} connection {noun} left", capacity.free_words());
                (severity, title)
            }
            (None, None) => return,
        };
        (
            FindingId::ConnNearLimit,
            severity,
            title,
            &["pg connections"],
        )
    };
    judge.find(finding, severity, title, evidence, next);
    name_causes(judge);
}

/// What of the other findings explains full slots, the likeliest first; the pattern is that one's.
fn name_causes(judge: &mut Judge<'_>) {
    let causes: Vec<FindingId> = [
        FindingId::ConnLeak,
        FindingId::LockPreparedRoot,
        FindingId::LockCycle,
        FindingId::LockQueueBehindDdl,
        FindingId::LockChain,
        FindingId::QueryStorm,
        FindingId::ConnOversizedPools,
        FindingId::TxIdleInTransaction,
        FindingId::TxLong,
        FindingId::ConnChurn,
        FindingId::ConnUnaccounted,
    ]
    .into_iter()
    .filter(|id| judge.has(*id))
    .collect();
    let pattern = causes
        .iter()
        .find_map(|id| judge.findings.iter().find(|f| f.id == *id)?.pattern);
    if let Some(finding) = judge.findings.last_mut() {
        finding.caused_by = causes;
        finding.pattern = pattern;
    }
}

fn largest_groups(judge: &Judge<'_>) -> Vec<String> {
    let report = connections::report(judge.snapshot);
    let name = |value: &Option<String>| value.clone().unwrap_or_else(|| "?".into());
    let mut groups: Vec<String> = report
        .data
        .groups
        .iter()
        .take(3)
        .map(|g| {
            let mut states = Vec::new();
            for (number, word) in [
                (g.active, "active"),
                (g.idle, "idle"),
                (
                    g.idle_in_transaction + g.idle_in_transaction_aborted,
                    "idle in transaction",
                ),
                (g.other, "other"),
                (g.hidden, "hidden"),
            ] {
                if number > 0 {
                    states.push(format!("{number} {word}"));
                }
            }
            let from = g
                .client_addr
                .as_deref()
                .map_or(String::new(), |addr| format!(" from {addr}"));
            let application = g
                .application_name
                .as_deref()
                .map_or(String::new(), |app| format!(", {app}"));
            let user = name(&g.user);
            format!(
                "{} by {user}@{}{application}{from}: {}",
                g.total,
                name(&g.database),
                states.join(", ")
            )
        })
        .collect();
    let rest = report.data.groups.len().saturating_sub(groups.len());
    if rest > 0 {
        groups.push(format!("and {} more", count(rest, "group")));
    }
    groups
}

fn leak(judge: &mut Judge<'_>, capacity: &Capacity, severity: Severity) {
    let now = judge.snapshot.taken_at;
    let least = judge.thresholds.idle_in_transaction_age;
    let all = clients(judge);
    let leaked: Vec<&&Session> = all
        .iter()
        .filter(|s| s.is_idle_in_transaction() && s.state_age(now).is_some_and(|age| age >= least))
        .collect();
    if leaked.is_empty() || leaked.len() * 2 < capacity.used as usize {
        return;
    }
    let aborted = leaked
        .iter()
        .any(|s| s.state == Some(SessionState::IdleInTransactionAborted));
    let title = format!(
        "{} idle in transaction hold {} of {} taken slots",
        count(leaked.len(), "session"),
        leaked.len(),
        capacity.used
    );
    let oldest = leaked
        .iter()
        .filter_map(|s| s.state_age(now))
        .max()
        .unwrap_or_default();
    let evidence = vec![format!("the longest has been idle for {oldest}")];
    judge.find(
        FindingId::ConnLeak,
        severity,
        title,
        evidence,
        &["pg transactions", super::sessions::idle_filter(aborted)],
    );
    judge.note(
        "leaked connections without an open transaction would look like an idle pool and aren't counted here",
    );
}

fn oversized(judge: &mut Judge<'_>, capacity: &Capacity, severity: Severity) {
    let all = clients(judge);
    let pools: Vec<&&Session> = all.iter().filter(|s| s.superuser != Some(true)).collect();
    let share = Percent::of(pools.len() as u64, capacity.max_connections.into());
    let idle = pools
        .iter()
        .filter(|s| s.state == Some(SessionState::Idle))
        .count();
    let large = share.is_some_and(|share| share > judge.thresholds.pools);
    if !large || idle * 2 < pools.len() {
        return;
    }
    let title = format!(
        "applications hold {} of {} connections, and {idle} of them are idle",
        pools.len(),
        capacity.max_connections
    );
    let evidence = vec![format!(
        "pools in sum: {} of max_connections, at most {} is sound",
        share.unwrap_or(Percent(0.0)),
        judge.thresholds.pools
    )];
    judge.find(
        FindingId::ConnOversizedPools,
        severity,
        title,
        evidence,
        &["pg connections"],
    );
    judge.note(
        "terminating doesn't help: pools reconnect; fewer instances, smaller pools, or ALTER ROLE … CONNECTION LIMIT do",
    );
}

/// Sessions that open all the time. One look can tell it from a pool that has just started only by the times of opening:
/// a start is over at once, churn is spread over the whole minute.
fn churn(judge: &mut Judge<'_>) {
    let now = judge.snapshot.taken_at;
    let all = clients(judge);
    let mut by_third = [0_usize; 3];
    for age in all
        .iter()
        .filter_map(|s| s.id.backend_start)
        .map(|at| at.age_at(now))
    {
        if age < Millis::from_secs(60) {
            by_third[usize::try_from(age.0 / 20_000).unwrap_or(0)] += 1;
        }
    }
    let opened: usize = by_third.iter().sum();
    let spread = by_third.iter().all(|third| third * 6 >= opened);
    if opened < CHURN_LEAST || opened * 2 < all.len() {
        return;
    }
    let total = all.len();
    let uptime = judge
        .snapshot
        .server
        .get()
        .and_then(|s| s.started_at)
        .map(|at| at.age_at(now));
    match uptime {
        Some(uptime) if uptime >= CHURN_UPTIME && spread => {
            let title = format!(
                "{opened} of {total} sessions were opened in the last minute, and all through it"
            );
            judge.find(
                FindingId::ConnChurn,
                Severity::Warning,
                title,
                Vec::new(),
                &["pg connections"],
            );
            judge.note("a rolling deployment looks the same while it lasts");
        }
        Some(uptime) if uptime >= CHURN_UPTIME => {
            judge.unknown.push(
                "conn.churn: most sessions are new, all opened at once, as when a pool starts"
                    .into(),
            );
        }
        Some(uptime) => {
            judge.unknown.push(format!(
                "conn.churn: the server has been up for only {uptime}, so every session is new"
            ));
        }
        None => judge
            .unknown
            .push("conn.churn: the server's start isn't known".into()),
    }
}

fn unaccounted(judge: &mut Judge<'_>) {
    let Some(slots) = judge
        .capacity
        .as_ref()
        .and_then(|c| c.unaccounted)
        .filter(|slots| *slots > 0)
    else {
        return;
    };
    let title = format!(
        "at least {} held by what the server doesn't show",
        count(slots as usize, "slot")
    );
    let evidence =
        vec!["a login was refused for want of a slot while fewer sessions are shown than slots are taken".into()];
    judge.find(
        FindingId::ConnUnaccounted,
        Severity::Warning,
        title,
        evidence,
        &["pg connections"],
    );
}
