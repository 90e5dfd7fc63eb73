//! The derivation as a person would write it on a whiteboard, each factor with its source.

use crate::budget::{Count, Report, ServerReport, Source, WorkloadRow};
use crate::view::{clean, wrap};

/// The whole derivation; `largest` are the most pods of a workload with which it still fits.
pub fn explain(report: &Report, largest: &[(String, Option<u64>)], width: Option<usize>) -> String {
    let width = width.unwrap_or(usize::MAX);
    let mut out = String::new();
    for server in &report.servers {
        of_server(server, largest, width, &mut out);
        out.push('\n');
    }
    for unknown in &report.unknowns {
        let at = unknown
            .at
            .as_ref()
            .map_or(String::new(), |at| format!(" ({})", at.words()));
        let text = format!(
            "unknown: {}{at}; settled by: {}",
            unknown.what, unknown.settle
        );
        out.push_str(&wrap(&clean(&text), width, 0));
    }
    out.push_str(&format!("budget: {}\n", report.words(false)));
    out
}

fn of_server(
    server: &ServerReport,
    largest: &[(String, Option<u64>)],
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
        let most = largest.iter().find(|(name, _)| *name == row.name);
        match most {
            Some((_, Some(most))) => line(
                4,
                format!("the most that fits: {most} pods, the others as they are"),
            ),
            Some((_, None)) => line(4, "no number of its pods fits".into()),
            None => {}
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
}

fn product(row: &WorkloadRow) -> String {
    let each = match (row.processes, row.connections) {
        (processes, connections) if processes.times(connections) == row.per_pod => format!(
            "{} processes × {} connections",
            short(processes),
            short(connections)
        ),
        _ => format!("{} connections a pod", short(row.per_pod)),
    };
    format!(
        "{} pods × {each} = {}",
        short(row.pods),
        row.steady().words()
    )
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
