//! `budget init`: a budget.yaml of what is found, which people complete.

use super::files;
use crate::budget::{Count, Server, Workload};
use crate::cli::args_budget::BudgetInput;
use crate::cli::commands::Context;
use crate::cli::fault::Fault;
use crate::model::ExitCode;

pub fn run(ctx: &mut Context<'_>, input: &BudgetInput) -> Result<ExitCode, Fault> {
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
    for workload in &budget.workloads {
        out.push_str(&of_workload(workload));
    }
    if !budget.poolers.is_empty() {
        out.push_str("poolers:\n");
    }
    for pooler in &budget.poolers {
        let target = pooler
            .target
            .as_ref()
            .map_or(String::new(), |name| format!("target: {}, ", word(name)));
        out.push_str(&format!(
            "  {}: {{ {target}pods: {} }}      # {} server connections an instance at most; add pgbouncer: PATH\n",
            word(&pooler.name),
            pooler.pods.at_least,
            pooler.cap.words()
        ));
    }
    ctx.console.result(&out)?;
    Ok(ExitCode::Ok)
}

fn of_server(server: &Server) -> String {
    let max = match server.max_connections {
        Count {
            exact: true,
            at_least,
        } => at_least.to_string(),
        _ => "100      # isn't known: SHOW max_connections".to_owned(),
    };
    format!(
        "  {}:\n    max_connections: {max}\n    superuser_reserved_connections: {}\n    reserved_connections: {}\n    provider_reserve: {}      # RDS and others keep some\n    headroom: {{ admin: 10, migrations: 5, exporter: 2 }}\n    warn_at: {}%\n",
        word(&server.name),
        server.superuser_reserved,
        server.reserved,
        server.provider_reserve,
        server.warn_at
    )
}

fn of_workload(workload: &Workload) -> String {
    let target = workload
        .target
        .as_ref()
        .map_or(String::new(), |name| format!("target: {}, ", word(name)));
    let known = |count: Count| match count.exact {
        true => count.at_least.to_string(),
        false => "1".to_owned(),
    };
    let unsure = match (workload.pods.exact, workload.connections.exact) {
        (true, true) => "",
        _ => "      # not all of it is known",
    };
    format!(
        "  {}: {{ {target}pods: {}, processes: {}, connections: {}, surge: {} }}{unsure}\n",
        word(&workload.name),
        known(workload.pods),
        known(workload.processes),
        known(workload.connections),
        workload.surge.at_least
    )
}

/// A name as YAML takes it.
fn word(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(plain) {
        true => name.to_owned(),
        false => serde_json::to_string(name).unwrap_or_else(|_| name.to_owned()),
    }
}
