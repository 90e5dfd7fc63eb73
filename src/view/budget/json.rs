//! `stanch.budget/1`.

use serde_json::{Value, json};

use crate::budget::{
    At, Breach, Count, Largest, Most, Report, Scenario, ServerReport, Source, Suppression, Unknown,
    WorkloadRow, smallest_max_connections,
};

/// The whole report as one object.
pub fn json(report: &Report) -> Value {
    json!({
        "schema": "stanch.budget/1",
        "servers": report.servers.iter().map(server).collect::<Vec<_>>(),
        "verdict": report.verdict.word(),
        "unknowns": report.unknowns.iter().map(unknown).collect::<Vec<_>>(),
        "breaches": report.breaches.iter().map(breach).collect::<Vec<_>>(),
        "accepted": report.accepted.iter().map(accepted).collect::<Vec<_>>(),
    })
}

fn accepted((of, why): &(Breach, Suppression)) -> Value {
    let mut json = breach(of);
    json["reason"] = why.reason.clone().into();
    json["until"] = why.until.to_string().into();
    json
}

/// `stanch.budget_explain/1`: the report, and what still fits; `null`: any number, or none where `fits` is false.
pub fn explained(report: &Report, largest: &[Largest], fail_on: &[&str]) -> Value {
    let mut whole = json(report);
    whole["schema"] = "stanch.budget_explain/1".into();
    let most = |most: Most| match most {
        Most::UpTo(number) => Some(number),
        Most::Never | Most::Any => None,
    };
    let one = |one: &Largest| {
        json!({
            "workload": one.workload,
            "server": one.server,
            "fits": one.pods != Most::Never,
            "pods": most(one.pods),
            "processes": one.processes.and_then(most),
            "connections": one.connections.and_then(most),
        })
    };
    whole["largest"] = largest.iter().map(one).collect();
    whole["smallest_max_connections"] = report
        .servers
        .iter()
        .map(|server| {
            (
                server.name.clone(),
                smallest_max_connections(server, fail_on).into(),
            )
        })
        .collect::<serde_json::Map<String, Value>>()
        .into();
    whole
}

/// A number that isn't known is null, and what is known of it beside it.
fn number(count: Count) -> Value {
    match count.exact {
        true => count.at_least.into(),
        false => Value::Null,
    }
}

fn server(server: &ServerReport) -> Value {
    json!({
        "name": server.name,
        "max_connections": number(server.max_connections),
        "usable": number(server.usable),
        "headroom": server.headroom.iter().map(|(name, number)| (name.clone(), (*number).into()))
            .collect::<serde_json::Map<String, Value>>(),
        "applications": server.applications.at_least,
        "scenarios": server.scenarios.iter().map(scenario).collect::<Vec<_>>(),
        "workloads": server.workloads.iter().map(workload).collect::<Vec<_>>(),
        "verdict": server.verdict.word(),
        "from": sources(&server.from),
    })
}

fn scenario(scenario: &Scenario) -> Value {
    json!({
        "name": scenario.name,
        "peak": scenario.peak.at_least,
        "at_least": !scenario.peak.exact,
        "of": scenario.of,
        "verdict": scenario.verdict.word(),
    })
}

fn workload(row: &WorkloadRow) -> Value {
    json!({
        "name": row.name,
        "kind": row.kind,
        "pods": number(row.pods),
        "surge": number(row.surge),
        "drain": number(row.drain),
        "processes": number(row.processes),
        "connections": number(row.connections),
        "per_pod": number(row.per_pod),
        "steady_at_least": row.steady().at_least,
        "from": sources(&row.from),
    })
}

fn sources(all: &[Source]) -> Vec<Value> {
    let one = |source: &Source| {
        json!({
            "what": source.what,
            "value": source.value,
            "assumed": source.assumed,
            "file": source.at.as_ref().map(|at| at.file.clone()),
            "line": source.at.as_ref().map(|at| at.place.line),
        })
    };
    all.iter().map(one).collect()
}

fn place(at: Option<&At>) -> (Option<String>, Option<usize>) {
    (at.map(|at| at.file.clone()), at.map(|at| at.place.line))
}

fn unknown(unknown: &Unknown) -> Value {
    let (file, line) = place(unknown.at.as_ref());
    json!({ "what": unknown.what, "settle": unknown.settle, "file": file, "line": line })
}

fn breach(breach: &Breach) -> Value {
    let (file, line) = place(breach.at.as_ref());
    json!({ "rule": breach.rule, "level": breach.level.word(), "message": breach.message, "file": file, "line": line })
}
