//! The lists of `pg deadlocks LOG…`, for CSV and Markdown.

use serde_json::{Value, json};

use crate::analysis::deadlocks::{Deadlock, Deadlocks};
use crate::view::sheet::{Col, Sheet, col, more};

pub(super) fn sheets(report: &Deadlocks) -> Vec<Sheet> {
    const DEADLOCKS: [Col; 9] = [
        col("at", "at"),
        col("group", "kind"),
        col("victim_pid", "victim"),
        col("applications", "applications"),
        col("relations", "relations"),
        col("order_conflict.text", "lock order"),
        more("order_conflict.basis"),
        more("shape"),
        col("advice", "advice"),
    ];
    const MEMBERS: [Col; 14] = [
        col("at", "at"),
        more("group"),
        col("pid", "pid"),
        more("victim"),
        col("application_name", "application"),
        more("user"),
        more("database"),
        more("waits_for.locktype"),
        col("waits_for.mode", "mode"),
        col("waits_for.on", "waits for"),
        col("blocked_by", "held by"),
        more("relation"),
        more("earlier"),
        col("query", "statement"),
    ];
    const GROUPS: [Col; 10] = [
        col("group", "kind"),
        col("count", "deadlocks"),
        col("first", "first"),
        col("last", "last"),
        col("applications", "applications"),
        col("relations", "relations"),
        more("shape"),
        col("order_conflict.text", "lock order"),
        col("advice", "advice"),
        col("query", "statements"),
    ];
    const WAITS: [Col; 14] = [
        col("at", "at"),
        col("pid", "pid"),
        col("application_name", "application"),
        more("user"),
        more("database"),
        more("mode"),
        col("on", "waits for"),
        more("relation"),
        col("waited_ms", "waited"),
        col("ended", "ended"),
        col("holders", "held by"),
        col("holder_applications", "application"),
        more("queued"),
        col("query", "statement"),
    ];
    const HOURS: [Col; 3] = [
        col("group", "kind"),
        col("hour", "hour"),
        col("count", "deadlocks"),
    ];
    let members: Vec<Value> = report.deadlocks.iter().flat_map(member_rows).collect();
    let deadlocks: Vec<Value> = report.deadlocks.iter().map(deadlock_row).collect();
    let groups: Vec<Value> = report
        .groups
        .iter()
        .map(|group| with_query(group, &group.statements.join("\n")))
        .collect();
    let waits: Vec<Value> = report
        .lock_waits
        .longest
        .iter()
        .map(|wait| with_query(wait, wait.statement.as_deref().unwrap_or_default()))
        .collect();
    let hours: Vec<Value> = report
        .groups
        .iter()
        .flat_map(|group| {
            group
                .per_hour
                .iter()
                .map(|hour| json!({ "group": group.group, "hour": hour.hour, "count": hour.count }))
        })
        .collect();
    vec![
        Sheet::of("deadlocks", &DEADLOCKS, &deadlocks),
        Sheet::of("members", &MEMBERS, &members),
        Sheet::of("groups", &GROUPS, &groups),
        Sheet::of("hours", &HOURS, &hours),
        Sheet::of("lock_waits", &WAITS, &waits),
    ]
}

fn with_query(row: &impl serde::Serialize, text: &str) -> Value {
    let mut json = serde_json::to_value(row).unwrap_or_default();
    json["query"] = text.into();
    json
}

fn deadlock_row(deadlock: &Deadlock) -> Value {
    let mut json = serde_json::to_value(deadlock).unwrap_or_default();
    let names: Vec<&str> = deadlock
        .members
        .iter()
        .filter_map(|member| member.application_name.as_deref())
        .collect();
    json["applications"] = names.into();
    json
}

fn member_rows(deadlock: &Deadlock) -> Vec<Value> {
    deadlock
        .members
        .iter()
        .map(|member| {
            let mut json = with_query(member, member.statement.as_deref().unwrap_or_default());
            json["at"] = serde_json::to_value(deadlock.at).unwrap_or_default();
            json["group"] = deadlock.group.into();
            json
        })
        .collect()
}
