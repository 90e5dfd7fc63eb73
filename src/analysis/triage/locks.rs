//! Lock findings: what is at the root decides which one it is.

use super::judge::Judge;
use std::collections::BTreeMap;

use crate::analysis::blocking::{Root, RootKind};
use crate::model::{BackendType, FindingId, Millis, Pid, Severity, count};

/// Ten sessions that wait for a tenth of a second are a busy row, not a pile-up.
const MOMENT: Millis = Millis::from_secs(1);

pub(super) fn judge(judge: &mut Judge<'_>) {
    if judge.blockers.blocked == 0 {
        return;
    }
    prepared(judge);
    cycles(judge);
    chain(judge);
}

/// A prepared transaction that others have waited for longer than for the moment until its coordinator ends it.
fn prepared(judge: &mut Judge<'_>) {
    let least = lock_wait(judge);
    let prepared: Vec<&Root> = judge
        .blockers
        .roots
        .iter()
        .filter(|r| {
            r.kind == RootKind::Prepared && r.longest_wait_ms.is_none_or(|wait| wait >= least)
        })
        .collect();
    if prepared.is_empty() {
        return;
    }
    // One that waits under two of them is counted once: those freed by each, or else the most under one.
    let freed: usize = prepared.iter().filter_map(|r| r.freed).sum();
    let most = prepared.iter().map(|r| r.blocked_total).max().unwrap_or(0);
    let title = format!(
        "{} behind a prepared transaction",
        count(freed.max(most), "blocked session")
    );
    let lines = prepared.iter().map(|r| {
        let age = r
            .xact_age_ms
            .map_or("unknown age".into(), |age| format!("prepared {age} ago"));
        let database = r.database.as_deref().unwrap_or("?");
        let gid = r.gid.as_deref().unwrap_or("?");
        format!("gid {gid} in {database}, {age}, blocks {}", r.blocked_total)
    });
    let evidence = first_few(lines.collect(), "prepared transaction");
    judge.find(
        FindingId::LockPreparedRoot,
        Severity::Critical,
        title,
        evidence,
        &["pg blockers"],
    );
}

/// What a finding shows of a list, and how many more there are.
fn first_few(mut lines: Vec<String>, noun: &str) -> Vec<String> {
    const MOST: usize = 3;
    let more = lines.len().saturating_sub(MOST);
    lines.truncate(MOST);
    if more > 0 {
        lines.push(format!("and {}", count(more, &format!("more {noun}"))));
    }
    lines
}

fn cycles(judge: &mut Judge<'_>) {
    if judge.blockers.cycles.is_empty() {
        return;
    }
    let evidence = judge
        .blockers
        .cycles
        .iter()
        .map(|pids| {
            let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
            format!("pids {} wait for each other", pids.join(", "))
        })
        .collect();
    let title = format!(
        "{} that the server hasn't broken yet",
        count(judge.blockers.cycles.len(), "deadlock")
    );
    judge.find(
        FindingId::LockCycle,
        Severity::Critical,
        title,
        evidence,
        &["pg blockers"],
    );
}

/// From where on a wait counts: `deadlock_timeout`, but a server on which that is hours long is no quieter for it.
fn lock_wait(judge: &Judge<'_>) -> Millis {
    let server = judge
        .snapshot
        .server
        .get()
        .and_then(|s| s.deadlock_timeout_ms)
        .map_or(MOMENT, Millis);
    judge.thresholds.lock_wait.unwrap_or(server.min(MOMENT))
}

/// The chain as a whole, and the queue behind a DDL as its cause where there is one.
fn chain(judge: &mut Judge<'_>) {
    let longest = judge.blockers.longest_wait_ms;
    let blocked = judge.blockers.blocked;
    // Before PostgreSQL 14 the time of waiting isn't known, but no wait is older than its statement.
    let at_most = judge.blockers.wait_at_most;
    let critical = blocked >= judge.thresholds.blocked_critical
        && at_most.is_none_or(|wait| wait >= MOMENT)
        || longest.is_some_and(|wait| wait >= judge.thresholds.lock_wait_critical);
    if !critical && at_most.is_some_and(|wait| wait < lock_wait(judge)) {
        return;
    }
    let severity = match (critical, mildest(judge)) {
        (true, None) => Severity::Critical,
        (_, Some(most)) => most,
        (false, None) => Severity::Warning,
    };
    let waits = longest.map_or(String::new(), |wait| format!(", the longest for {wait}"));
    let title = format!("{} for a lock{waits}", count_wait(blocked));
    let evidence = first_few(judge.blockers.roots.iter().map(root_line).collect(), "root");
    queue(judge, severity);
    judge.find(
        FindingId::LockChain,
        severity,
        title,
        evidence,
        &["pg blockers"],
    );
    let mut causes = vec![
        FindingId::LockPreparedRoot,
        FindingId::LockCycle,
        FindingId::LockQueueBehindDdl,
    ];
    let replicating = |r: &Root| {
        r.wait_event
            .as_deref()
            .is_some_and(|e| e.eq_ignore_ascii_case("SyncRep"))
    };
    if judge.blockers.roots.iter().any(replicating) {
        causes.insert(0, FindingId::WaitDominant);
    }
    causes.retain(|id| judge.has(*id));
    if let Some(finding) = judge.findings.last_mut() {
        finding.caused_by = causes;
    }
}

/// Waits that are by design: for another transaction's end (CREATE INDEX CONCURRENTLY blocks nobody), or for an advisory
/// lock (one leader, one job at a time). `None`: some are not.
fn mildest(judge: &Judge<'_>) -> Option<Severity> {
    let all = |locktype: &str| {
        judge.blockers.edges.iter().all(|e| {
            e.lock
                .as_ref()
                .is_some_and(|lock| lock.locktype == locktype)
        })
    };
    if all("virtualxid") {
        Some(Severity::Info)
    } else if all("advisory") {
        Some(Severity::Warning)
    } else {
        None
    }
}

/// The DDLs behind which others queue, each once, however many roots it waits under.
fn queue(judge: &mut Judge<'_>, severity: Severity) {
    let mut ddls: BTreeMap<Pid, (usize, String)> = BTreeMap::new();
    for root in judge
        .blockers
        .roots
        .iter()
        .filter(|r| r.kind == RootKind::Session)
    {
        if let (Some(pid), Some(behind)) = (root.remedy.pid, root.remedy.behind) {
            ddls.entry(pid)
                .or_insert_with(|| (behind, root.remedy.why.clone()));
        }
    }
    if ddls.is_empty() {
        return;
    }
    let behind: usize = ddls.values().map(|(behind, _)| behind).sum();
    let title = format!(
        "{} behind a DDL that waits itself",
        count(behind, "session")
    );
    let evidence = first_few(ddls.into_values().map(|(_, why)| why).collect(), "DDL");
    judge.find(
        FindingId::LockQueueBehindDdl,
        severity,
        title,
        evidence,
        &["pg blockers", "pg locks --waiting"],
    );
}

fn count_wait(blocked: usize) -> String {
    if blocked == 1 {
        "1 session waits".into()
    } else {
        format!("{blocked} sessions wait")
    }
}

fn root_line(root: &Root) -> String {
    let who = match (root.kind, &root.gid, root.pid) {
        (RootKind::Prepared, Some(gid), _) => format!("prepared transaction {gid}"),
        (RootKind::Cycle, ..) => "a deadlock".into(),
        (_, _, Some(pid)) => {
            let unseen = if root.hidden {
                "state hidden"
            } else {
                "not seen"
            };
            let kind = root
                .backend_type
                .as_ref()
                .filter(|kind| **kind != BackendType::Client);
            let state = match (kind, &root.state) {
                (Some(kind), _) => kind.as_str(),
                (None, Some(state)) => state.as_str(),
                (None, None) => unseen,
            };
            let application = root
                .application_name
                .as_deref()
                .map_or(String::new(), |app| format!(", {app}"));
            format!("pid {pid} ({state}{application})")
        }
        _ => "an unnamed prepared transaction".into(),
    };
    format!("root {who} blocks {}", root.blocked_total)
}
