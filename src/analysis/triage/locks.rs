//! Lock findings: what is at the root decides which one it is.

use super::judge::{Judge, count};
use crate::analysis::blocking::{Action, Root, RootKind};
use crate::model::{FindingId, Millis, Severity};

/// Ten sessions that wait for a tenth of a second are a busy row, not a pile-up.
const MOMENT: Millis = Millis::from_secs(1);

pub(super) fn judge(judge: &mut Judge<'_>) {
    if judge.blockers.blocked == 0 {
        return;
    }
    let prepared: Vec<Root> = of_kind(judge, RootKind::Prepared);
    if !prepared.is_empty() {
        let blocked: usize = prepared.iter().map(|r| r.blocked_total).sum();
        let title = format!(
            "{} behind a prepared transaction",
            count(blocked, "blocked session")
        );
        let evidence = prepared
            .iter()
            .map(|r| {
                let age = r
                    .xact_age_ms
                    .map_or("unknown age".into(), |age| format!("prepared {age} ago"));
                let database = r.database.as_deref().unwrap_or("?");
                format!(
                    "gid {} in {database}, {age}, blocks {}",
                    r.gid.as_deref().unwrap_or("?"),
                    r.blocked_total
                )
            })
            .collect();
        judge.find(
            FindingId::LockPreparedRoot,
            Severity::Critical,
            title,
            evidence,
            &["pg blockers"],
        );
    }
    cycles(judge);
    chain(judge);
}

fn of_kind(judge: &Judge<'_>, kind: RootKind) -> Vec<Root> {
    judge
        .blockers
        .roots
        .iter()
        .filter(|r| r.kind == kind)
        .cloned()
        .collect()
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
    judge
        .thresholds
        .lock_wait
        .unwrap_or(server.min(judge.thresholds.lock_wait_critical))
}

/// The chain as a whole, and the queue behind a DDL as its cause where there is one.
fn chain(judge: &mut Judge<'_>) {
    let longest = judge.blockers.longest_wait_ms;
    let blocked = judge.blockers.blocked;
    // Before PostgreSQL 14 the time of waiting isn't known: then the wait counts from its being seen.
    let critical = blocked >= judge.thresholds.blocked_critical
        && longest.is_none_or(|wait| wait >= MOMENT)
        || longest.is_some_and(|wait| wait >= judge.thresholds.lock_wait_critical);
    if !critical && longest.is_some_and(|wait| wait < lock_wait(judge)) {
        return;
    }
    let severity = if critical {
        Severity::Critical
    } else {
        Severity::Warning
    };
    let waits = longest.map_or(String::new(), |wait| format!(", the longest for {wait}"));
    let roots = judge.blockers.roots.clone();
    let evidence = roots.iter().take(3).map(root_line).collect();
    let title = format!("{} for a lock{waits}", count_wait(blocked));
    let queue: Vec<&Root> = roots.iter().filter(|r| is_lock_queue(r)).collect();
    let has_queue = !queue.is_empty();
    if has_queue {
        let total: usize = queue.iter().map(|r| r.blocked_total).sum();
        let title = format!(
            "{} behind a DDL that waits itself",
            count(total.saturating_sub(queue.len()), "session")
        );
        let evidence = queue.iter().map(|r| r.remedy.why.clone()).collect();
        judge.find(
            FindingId::LockQueueBehindDdl,
            severity,
            title,
            evidence,
            &["pg blockers", "pg locks --waiting"],
        );
    }
    judge.find(
        FindingId::LockChain,
        severity,
        title,
        evidence,
        &["pg blockers"],
    );
    let causes = [
        FindingId::LockPreparedRoot,
        FindingId::LockCycle,
        FindingId::LockQueueBehindDdl,
    ];
    let causes: Vec<FindingId> = causes.into_iter().filter(|id| judge.has(*id)).collect();
    if let Some(finding) = judge.findings.last_mut() {
        finding.caused_by = causes;
    }
}

fn count_wait(blocked: usize) -> String {
    if blocked == 1 {
        "1 session waits".into()
    } else {
        format!("{blocked} sessions wait")
    }
}

/// Its remedy is to cancel another session than the root.
fn is_lock_queue(root: &Root) -> bool {
    root.kind == RootKind::Session
        && root.remedy.action == Action::Cancel
        && root.remedy.pid.is_some()
        && root.remedy.pid != root.pid
}

fn root_line(root: &Root) -> String {
    let who = match (root.kind, &root.gid, root.pid) {
        (RootKind::Prepared, Some(gid), _) => format!("prepared transaction {gid}"),
        (RootKind::Cycle, ..) => "a deadlock".into(),
        (_, _, Some(pid)) => {
            let state = root.state.as_ref().map_or("state hidden", |s| s.as_str());
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
