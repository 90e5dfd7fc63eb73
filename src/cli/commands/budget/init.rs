//! `budget init`: a budget.yaml of what is found, which people complete.

use std::collections::BTreeSet;

use super::files;
use crate::budget::sources::Surge;
use crate::budget::{Count, Server, Workload};
use crate::cli::args::budget::BudgetInput;
use crate::cli::commands::Context;
use crate::cli::fault::Fault;
use crate::model::ExitCode;
use crate::view::Format;

pub fn run(ctx: &mut Context<'_>, input: &BudgetInput) -> Result<ExitCode, Fault> {
    if ctx.console.format != Format::Table {
        return Err(Fault::Usage(
            "budget init writes YAML, and no other format".into(),
        ));
    }
    let budget = files::budget(input)?;
    let mut out = String::from(
        "# The connection budget: what may connect, and what there is. stanch budget check budget.yaml\nservers:\n",
    );
    for server in &budget.servers {
        out.push_str(&of_server(server));
    }
    if !budget.workloads.is_empty() {
        out.push_str("workloads:\n");
    }
    let mut names = BTreeSet::new();
    for workload in &budget.workloads {
        // A name stands there once: the second is told by its kind, or by a number.
        let kind = workload.kind.to_lowercase().replace(' ', "-");
        let mut name = workload.name.clone();
        for n in 1.. {
            if names.insert(name.clone()) {
                break;
            }
            name = match n {
                1 => format!("{}-{kind}", workload.name),
                n => format!("{}-{kind}-{n}", workload.name),
            };
        }
        out.push_str(&of_workload(&name, workload));
    }
    if !budget.poolers.is_empty() {
        out.push_str("poolers:\n");
    }
    for pooler in &budget.poolers {
        let target = pooler
            .target
            .as_ref()
            .map_or(String::new(), |name| format!("target: {}, ", word(name)));
        let file = match &pooler.file {
            Some(file) => format!("pgbouncer: {}, ", word(file)),
            None => String::new(),
        };
        out.push_str(&format!(
            "  {}: {{ {target}{file}pods: {} }}      # {} server connections an instance at most\n",
            word(&pooler.name),
            pooler.pods.at_least,
            pooler.cap.words()
        ));
    }
    ctx.console.result(&out)?;
    Ok(ExitCode::Ok)
}

fn of_server(server: &Server) -> String {
    // What isn't known is left out: then it stays unknown.
    let max = match server.max_connections {
        Count {
            exact: true,
            at_least,
        } => format!("max_connections: {at_least}"),
        _ => "# max_connections: isn't known: SHOW max_connections".to_owned(),
    };
    let headroom: Vec<String> = server
        .headroom
        .iter()
        .map(|(name, number)| format!("{}: {number}", word(name)))
        .collect();
    let headroom = match headroom.is_empty() {
        true => "# headroom: { admin: 10, migrations: 5, exporter: 2 }".to_owned(),
        false => format!("headroom: {{ {} }}", headroom.join(", ")),
    };
    format!(
        "  {}:\n    {max}\n    superuser_reserved_connections: {}\n    reserved_connections: {}\n    provider_reserve: {}      # RDS and others keep some\n    {headroom}\n    warn_at: {}%\n",
        word(&server.name),
        server.superuser_reserved,
        server.reserved,
        server.provider_reserve,
        server.warn_at
    )
}

fn of_workload(name: &str, workload: &Workload) -> String {
    let mut fields = Vec::new();
    if let Some(target) = &workload.target {
        fields.push(format!("target: {}", word(target)));
    }
    let is_one_product = workload.processes.times(workload.connections) == workload.per_pod;
    let (processes, connections) = match is_one_product {
        true => (workload.processes, workload.connections),
        false => (Count::known(1), workload.per_pod),
    };
    let mut unknown = Vec::new();
    for (name, count) in [
        ("pods", workload.pods),
        ("processes", processes),
        ("connections", connections),
    ] {
        match count.exact {
            true => fields.push(format!("{name}: {}", count.at_least)),
            false => unknown.push(name),
        }
    }
    let surge = match workload.surge_rule {
        Surge::All | Surge::Over(_) => workload.surge.at_least.to_string(),
        surge => surge.words(),
    };
    fields.push(format!("surge: {surge}"));
    if workload.drain.at_least > 0 {
        fields.push(format!("drain: {}", workload.drain.at_least));
    }
    let unsure = match unknown.is_empty() {
        true => String::new(),
        false => format!("      # not known: {}", unknown.join(", ")),
    };
    format!("  {}: {{ {} }}{unsure}\n", word(name), fields.join(", "))
}

/// A name as YAML takes it.
fn word(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(plain) {
        true => name.to_owned(),
        false => serde_json::to_string(name).unwrap_or_else(|_| name.to_owned()),
    }
}
