//! For a pull request: the verdict first, and what has changed against the base.

use crate::budget::{Level, Report, ServerReport, Verdict};

/// The report; with the base's numbers beside those of now.
pub fn markdown(report: &Report, base: Option<&Report>) -> String {
    let mut out = format!("### Connection budget: {}\n", report.words(false));
    for server in &report.servers {
        let before = base.and_then(|base| base.servers.iter().find(|s| s.name == server.name));
        of_server(server, before, base.is_some(), &mut out);
    }
    let gone = base.into_iter().flat_map(|base| &base.servers);
    for server in gone.filter(|old| !report.servers.iter().any(|s| s.name == old.name)) {
        out.push_str(&format!(
            "\nServer `{}` is in it no more.\n",
            cell(&server.name)
        ));
    }
    let breaches: Vec<_> = report
        .breaches
        .iter()
        .filter(|b| b.level != Level::Note)
        .collect();
    if !breaches.is_empty() {
        out.push_str("\n| level | rule | what | where |\n|---|---|---|---|\n");
        for breach in breaches {
            let at = breach
                .at
                .as_ref()
                .map_or(String::new(), |at| format!("`{}`", at.words()));
            out.push_str(&format!(
                "| {} | {} | {} | {} |\n",
                breach.level.word(),
                breach.rule,
                cell(&breach.message),
                cell(&at)
            ));
        }
    }
    for (breach, why) in &report.accepted {
        out.push_str(&format!(
            "\nAccepted until {}: {}: {} ({})\n",
            why.until,
            breach.rule,
            cell(&breach.message),
            cell(&why.reason)
        ));
    }
    if !report.unknowns.is_empty() {
        out.push_str("\nNot known:\n\n");
        for unknown in &report.unknowns {
            let at = unknown.at.as_ref();
            let at = at.map_or(String::new(), |at| format!(" (`{}`)", at.words()));
            out.push_str(&format!(
                "- {}{}; settled by: {}\n",
                cell(&unknown.what),
                cell(&at),
                cell(&unknown.settle)
            ));
        }
    }
    out
}

fn of_server(
    server: &ServerReport,
    before: Option<&ServerReport>,
    compared: bool,
    out: &mut String,
) {
    out.push_str(&format!(
        "\n**{}**: {} usable of max_connections {}\n\n",
        cell(&server.name),
        server.usable.words(),
        server.max_connections.words()
    ));
    let delta = if compared { " before | change |" } else { "" };
    let rule = if compared { "---:|---:|" } else { "" };
    out.push_str(&format!(
        "| scenario | peak |{delta} usable | verdict |\n|---|---:|{rule}---:|---|\n"
    ));
    for (n, scenario) in server.scenarios.iter().enumerate() {
        let was = before
            .and_then(|before| before.scenarios.get(n))
            .map(|s| s.peak);
        let delta = match (compared, was) {
            (false, _) => String::new(),
            (true, None) => " - | new |".into(),
            (true, Some(was)) => {
                let change = i128::from(scenario.peak.at_least) - i128::from(was.at_least);
                // The difference of two lower bounds is neither.
                let change = match scenario.peak.exact && was.exact {
                    true => format!("{change:+}"),
                    false => format!("{change:+} known"),
                };
                format!(" {} | {change} |", cell(&was.words()))
            }
        };
        let verdict = match scenario.verdict {
            Verdict::Over => "**over**",
            other => other.word(),
        };
        out.push_str(&format!(
            "| {} | {} |{delta} {} | {verdict} |\n",
            scenario.name,
            cell(&scenario.peak.words()),
            server.usable.at_least
        ));
    }
    if server.workloads.is_empty() && before.is_none_or(|before| before.workloads.is_empty()) {
        return;
    }
    out.push_str("\n| workload | pods | each | steady | surge |");
    out.push_str(if compared {
        " before |\n|---|---:|---:|---:|---:|---:|\n"
    } else {
        "\n|---|---:|---:|---:|---:|\n"
    });
    for row in &server.workloads {
        let was = before.and_then(|b| b.workloads.iter().find(|w| w.name == row.name));
        let was = match (compared, was) {
            (false, _) => String::new(),
            (true, None) => " new |".into(),
            (true, Some(was)) => format!(" {} |", was.steady().words()),
        };
        out.push_str(&format!(
            "| {} | {} | {} | {} | {} |{was}\n",
            cell(&row.name),
            row.pods.words(),
            row.per_pod.words(),
            row.steady().words(),
            row.surge.words()
        ));
    }
    gone(server, before, out);
}

/// Workloads of the base that are in it no more.
fn gone(server: &ServerReport, before: Option<&ServerReport>, out: &mut String) {
    let rows = before.into_iter().flat_map(|before| &before.workloads);
    for row in rows.filter(|old| !server.workloads.iter().any(|row| row.name == old.name)) {
        out.push_str(&format!(
            "| {} | gone | | 0 | | {} |\n",
            cell(&row.name),
            row.steady().words()
        ));
    }
}

fn cell(text: &str) -> String {
    crate::view::clean(text)
        .replace('|', "\\|")
        .replace('<', "&lt;")
}
