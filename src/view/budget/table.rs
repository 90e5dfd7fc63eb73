//! The budget at a terminal: what decides first, then what it is made of.

use crate::budget::{Level, Report, Scenario, ServerReport, Verdict, WorkloadRow};
use crate::view::console::Style;
use crate::view::layout::{Column, table as lay_out};
use crate::view::{clean, wrap};

/// The whole report; `live`: what the running server says to it.
pub fn table(report: &Report, strict: bool, live: Option<&str>, style: Style) -> String {
    let mut out = String::new();
    for server in &report.servers {
        of_server(server, style, &mut out);
        out.push('\n');
    }
    if let Some(live) = live {
        out.push_str(live);
        out.push('\n');
    }
    let width = style.width.unwrap_or(usize::MAX);
    let sums = ["budget.over", "budget.tight"];
    let breaches: Vec<_> = report
        .breaches
        .iter()
        .filter(|breach| !sums.contains(&breach.rule))
        .collect();
    for breach in &breaches {
        let at = breach
            .at
            .as_ref()
            .map_or(String::new(), |at| format!(" ({})", at.words()));
        let level = match breach.level {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Note => "note",
        };
        let text = format!("{level}  {}: {}{at}", breach.rule, breach.message);
        out.push_str(&wrap(&clean(&text), width, 0));
    }
    if !breaches.is_empty() {
        out.push('\n');
    }
    for (breach, why) in &report.accepted {
        let text = format!(
            "accepted until {} {}: {} ({})",
            why.until, breach.rule, breach.message, why.reason
        );
        out.push_str(&wrap(&clean(&text), width, 0));
    }
    if !report.accepted.is_empty() {
        out.push('\n');
    }
    for unknown in &report.unknowns {
        out.push_str(&wrap(&clean(&unknown.words()), width, 0));
    }
    if !report.unknowns.is_empty() {
        out.push('\n');
    }
    out.push_str(&format!(
        "{}\n",
        style.strong(&format!("budget: {}", report.words(strict)))
    ));
    out
}

fn of_server(server: &ServerReport, style: Style, out: &mut String) {
    let headroom: u64 = server.headroom.iter().map(|(_, number)| number).sum();
    let kept = server
        .max_connections
        .at_least
        .saturating_sub(server.usable.at_least);
    let head = match server.max_connections.exact {
        true => format!(
            "{}: {} usable of max_connections {} ({kept} reserved); headroom {headroom}",
            server.name, server.usable.at_least, server.max_connections.at_least
        ),
        false => format!(
            "{}: max_connections isn't known; headroom {headroom}",
            server.name
        ),
    };
    let head = wrap(&clean(&head), style.width.unwrap_or(usize::MAX), 0);
    out.push_str(&format!("{}\n", style.strong(head.trim_end())));
    let rows = server
        .scenarios
        .iter()
        .map(|scenario| of_scenario(scenario, server))
        .collect();
    let columns = [
        Column::text("scenario"),
        Column::number("peak"),
        Column::number("of usable"),
        Column::text("verdict"),
        Column::text("whose").flex(20),
    ];
    out.push_str(&lay_out(&columns, rows, style.width));
    let share = server.applications.percent_of(server.max_connections);
    if server.max_connections.exact {
        let text = format!(
            "application pools: {} ({share} % of max_connections in normal operation)",
            server.applications.words()
        );
        out.push_str(&wrap(&text, style.width.unwrap_or(usize::MAX), 0));
    }
    if server.workloads.is_empty() {
        out.push_str("nothing connects to it, as far as the files say\n");
        return;
    }
    out.push('\n');
    let columns = [
        Column::text("workload"),
        Column::text("kind").drop(1),
        Column::number("pods"),
        Column::number("× each"),
        Column::number("= steady"),
        Column::number("surge"),
        Column::text("from").flex(24),
    ];
    let rows = server.workloads.iter().map(of_workload).collect();
    out.push_str(&lay_out(&columns, rows, style.width));
}

fn of_scenario(scenario: &Scenario, server: &ServerReport) -> Vec<String> {
    let share = match server.usable.at_least {
        0 => "-".to_owned(),
        _ => format!("{} %", scenario.peak.percent_of(server.usable)),
    };
    let verdict = match scenario.verdict {
        Verdict::Over => format!(
            "OVER by {}",
            scenario
                .peak
                .at_least
                .saturating_sub(server.usable.at_least)
        ),
        other => other.word().to_owned(),
    };
    vec![
        scenario.name.to_owned(),
        short(scenario.peak),
        share,
        verdict,
        clean(scenario.of.as_deref().unwrap_or("")),
    ]
}

fn of_workload(row: &WorkloadRow) -> Vec<String> {
    let mut from: Vec<String> = Vec::new();
    for source in &row.from {
        let text = match (&source.at, source.assumed) {
            (_, true) => format!("{} {} assumed", source.what, source.value),
            (Some(at), false) => format!("{} {}", source.what, at.words()),
            (None, false) => format!("{} {}", source.what, source.value),
        };
        if !from.contains(&text) {
            from.push(text);
        }
    }
    vec![
        clean(&row.name),
        clean(&row.kind),
        short(row.pods),
        short(row.per_pod),
        short(row.steady()),
        short(row.surge),
        clean(&from.join("; ")),
    ]
}

/// `>= 5` where it isn't exact: the legend is the list of what isn't known.
fn short(count: crate::budget::Count) -> String {
    match count.exact {
        true => count.at_least.to_string(),
        false => format!(">= {}", count.at_least),
    }
}
