//! The derivation as a person would write it on a whiteboard, each factor with its source.

use crate::budget::{
    Count, Largest, Most, Report, ServerReport, Source, WorkloadRow, smallest_max_connections,
};
use crate::view::{clean, wrap};

/// The whole derivation; `largest` are the most pods of a workload with which it still fits.
pub fn explain(
    report: &Report,
    largest: &[Largest],
    fail_on: &[&str],
    width: Option<usize>,
) -> String {
    let width = width.unwrap_or(usize::MAX);
    let mut out = String::new();
    for server in &report.servers {
        of_server(server, largest, fail_on, width, &mut out);
        out.push('\n');
    }
    for unknown in &report.unknowns {
        out.push_str(&wrap(&clean(&unknown.words()), width, 0));
    }
    out.push_str(&format!("budget: {}\n", report.words(false)));
    out
}

fn of_server(
    server: &ServerReport,
    largest: &[Largest],
    fail_on: &[&str],
    width: usize,
    out: &mut String,
) {
    out.push_str(&format!("{}\n", clean(&server.name)));
    let mut line = |indent: usize, text: String| match text.is_empty() {
        true => out.push('\n'),
        false => out.push_str(&wrap(&clean(&text), width, indent)),
    };
    for source in &server.from {
        line(
            2,
            format!("{} = {}{}", source.what, source.value, where_from(source)),
        );
    }
    let kept = server
        .max_connections
        .at_least
        .saturating_sub(server.usable.at_least);
    let usable = match server.max_connections.exact {
        true => format!(
            "usable = {} - {kept} = {}",
            server.max_connections.at_least, server.usable.at_least
        ),
        false => "usable isn't known: max_connections isn't".to_owned(),
    };
    line(2, usable);
    for row in &server.workloads {
        line(2, String::new());
        line(2, format!("{} ({})", row.name, row.kind));
        for source in &row.from {
            line(
                4,
                format!("{} = {}{}", source.what, source.value, where_from(source)),
            );
        }
        line(4, product(row));
        if row.surge.at_least > 0 || !row.surge.exact {
            line(
                4,
                format!(
                    "while it is rolled out {} more: {} × {} = {}",
                    row.surge.words(),
                    row.surge.words(),
                    row.per_pod.words(),
                    row.surge.times(row.per_pod).words()
                ),
            );
        }
        let of_row = |one: &&Largest| one.workload == row.name && one.server == server.name;
        if let Some(one) = largest.iter().find(of_row) {
            line(4, still_fits(one));
        }
    }
    line(2, String::new());
    let parts: Vec<String> = server
        .workloads
        .iter()
        .map(|row| short(row.steady()))
        .collect();
    let headroom: Vec<String> = server
        .headroom
        .iter()
        .map(|(name, number)| format!("{number} {name}"))
        .collect();
    let all: Vec<String> = parts.into_iter().chain(headroom).collect();
    for scenario in &server.scenarios {
        let over = scenario
            .peak
            .at_least
            .saturating_sub(server.usable.at_least);
        let sum = match scenario.name {
            "steady" if !all.is_empty() => format!(" = {}", all.join(" + ")),
            _ => scenario
                .of
                .as_ref()
                .map_or(String::new(), |of| format!(" ({of})")),
        };
        let verdict = match scenario.verdict.word() {
            "over" => format!("over by {over}"),
            word => word.to_owned(),
        };
        line(
            2,
            format!(
                "{}{sum} = {} of {}: {verdict}",
                scenario.name,
                scenario.peak.words(),
                server.usable.words()
            ),
        );
    }
    if server.scenarios.iter().all(|scenario| scenario.peak.exact) {
        let least = smallest_max_connections(server, fail_on);
        line(2, format!("it fits from max_connections {least} on"));
    }
}

/// The largest value of each factor, the others as they are.
fn still_fits(one: &Largest) -> String {
    let mut parts = Vec::new();
    for (one_of, what, most) in [
        ("pod", "pods", Some(one.pods)),
        ("process", "processes", one.processes),
        ("connection", "connections", one.connections),
    ] {
        match most {
            Some(Most::Never) => return "it doesn't fit, whatever its numbers are".into(),
            // One process is what there is at least.
            Some(Most::UpTo(0)) if what == "processes" => {}
            Some(Most::UpTo(1)) => parts.push(format!("1 {one_of}")),
            Some(Most::UpTo(number)) => parts.push(format!("{number} {what}")),
            Some(Most::Any) | None => {}
        }
    }
    match parts.is_empty() {
        true => "any number of it fits".into(),
        false => format!("the most that fits, each by itself: {}", parts.join(", ")),
    }
}

fn product(row: &WorkloadRow) -> String {
    let each = match (row.processes, row.connections) {
        (processes, connections) if processes.times(connections) == row.per_pod => format!(
            "{} × {}",
            counted(processes, "process", "processes"),
            counted(connections, "connection", "connections")
        ),
        _ => format!(
            "{} a pod",
            counted(row.per_pod, "connection", "connections")
        ),
    };
    format!(
        "{} × {each} = {}",
        counted(row.pods, "pod", "pods"),
        row.steady().words()
    )
}

fn counted(count: Count, one: &str, many: &str) -> String {
    let word = if count == Count::known(1) { one } else { many };
    format!("{} {word}", short(count))
}

fn short(count: Count) -> String {
    match count.exact {
        true => count.at_least.to_string(),
        false => format!(">= {}", count.at_least),
    }
}

fn where_from(source: &Source) -> String {
    match (&source.at, source.assumed) {
        (Some(at), true) => format!("   (assumed, nothing says it; {})", at.words()),
        (None, true) => "   (assumed)".into(),
        (Some(at), false) => format!("   ({})", at.words()),
        (None, false) => String::new(),
    }
}
