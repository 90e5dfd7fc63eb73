//! What the evidence speaks for, and what isn't as it was designed.

use std::fmt::Write as _;

use super::super::escape::{cell, code, table, text};
use super::course::heading;
use super::{Clock, LEFT, RIGHT, capital};
use crate::postmortem::{Drift, Match, Postmortem, Suggestion, shown};

pub fn causes(of: &Postmortem) -> String {
    let servers = of.servers();
    if let [one] = servers.as_slice() {
        if one.course.frames.is_empty() && one.causes.is_empty() {
            return "## Probable cause\n\nNot known: there is no capture.\n".into();
        }
        return format!("## Probable cause\n\n{}", speaks_for(one.causes));
    }
    let mut told: Vec<String> = servers
        .iter()
        .map(|server| format!("{}{}", heading(server), speaks_for(server.causes)))
        .collect();
    if !of.said.is_empty() {
        told.push(format!(
            "### Journals and logs, of whichever server\n\n{}",
            speaks_for(&of.said)
        ));
    }
    format!("## Probable cause\n\n{}", told.join("\n"))
}

fn speaks_for(causes: &[Suggestion]) -> String {
    let mut out = String::new();
    if causes.is_empty() {
        out.push_str("Nothing that was measured speaks for one of the known causes.\n");
        return out;
    }
    out.push_str("What the evidence speaks for, the likeliest first. It is a suggestion and may be wrong: people decide below.\n\n");
    for (n, one) in causes.iter().enumerate() {
        let said = if one.measured {
            ""
        } else {
            " (said, not measured)"
        };
        let _ = writeln!(
            out,
            "{}. **{}**{said}",
            n + 1,
            text(&capital(one.cause.words()))
        );
        for line in &one.evidence {
            let _ = writeln!(out, "   - {}", text(line));
        }
    }
    out
}

pub fn drift(of: &Postmortem) -> String {
    let told = of.servers();
    let told = told
        .iter()
        .map(|server| format!("{}{}", heading(server), drift_of(server.drift)));
    format!(
        "## Settings against the design\n\n{}",
        told.collect::<Vec<_>>().join("\n")
    )
}

fn drift_of(drift: &Drift) -> String {
    let mut out = String::new();
    let mut clock = Clock(None);
    if let Some(at) = drift.at {
        let _ = write!(out, "As they were live at {} UTC. ", clock.tell(at));
    }
    match (&drift.design, &drift.no_design) {
        (Some(server), _) => {
            let off = drift
                .rows
                .iter()
                .filter(|row| row.verdict == Match::Differs)
                .count();
            let off = off
                + drift
                    .workloads
                    .iter()
                    .filter(|row| row.verdict == Match::Differs)
                    .count();
            let _ = write!(
                out,
                "The design is that of {} in the budget: {}.\n\n",
                code(server, false),
                match off {
                    0 => "nothing is known to differ".to_owned(),
                    n => format!("**{n} differ**"),
                }
            );
        }
        (None, Some(why)) => {
            let _ = write!(
                out,
                "There is no design to compare with: {}.\n\n",
                text(why)
            );
        }
        (None, None) => {}
    }
    let verdict = |verdict: Match| match verdict {
        Match::Differs => "**differs**".to_owned(),
        other => other.word().to_owned(),
    };
    if !drift.rows.is_empty() {
        let rows: Vec<Vec<String>> = drift
            .rows
            .iter()
            .map(|row| {
                let was = row
                    .was
                    .as_ref()
                    .map_or(String::new(), |was| format!(" (at first {})", cell(was)));
                vec![
                    code(&row.what, true),
                    cell(row.declared_words()),
                    row.from
                        .as_ref()
                        .map_or(String::new(), |from| code(from, true)),
                    format!("{}{was}", cell(row.live_words())),
                    verdict(row.verdict),
                ]
            })
            .collect();
        let head = [
            ("setting", LEFT),
            ("designed", LEFT),
            ("declared in", LEFT),
            ("live", LEFT),
            ("verdict", LEFT),
        ];
        let _ = writeln!(out, "{}", table(&head, &rows));
    }
    if !drift.workloads.is_empty() {
        let rows: Vec<Vec<String>> = drift
            .workloads
            .iter()
            .map(|row| {
                vec![
                    code(&row.name, true),
                    row.designed
                        .map_or_else(|| "not known".into(), |n| n.to_string()),
                    row.most
                        .map_or_else(|| "not seen".into(), |n| n.to_string()),
                    clock.maybe(row.at, "-"),
                    verdict(row.verdict),
                ]
            })
            .collect();
        let head = [
            ("workload", LEFT),
            ("designed at most", RIGHT),
            ("most seen", RIGHT),
            ("at (UTC)", LEFT),
            ("verdict", LEFT),
        ];
        let _ = writeln!(out, "{}", table(&head, &rows));
    }
    if !drift.advice.is_empty() {
        out.push_str("What is advised whatever the design says:\n\n");
        let rows: Vec<Vec<String>> = drift
            .advice
            .iter()
            .map(|one| {
                vec![
                    code(&one.name, true),
                    cell(&shown(one)),
                    cell(one.recommended.as_deref().unwrap_or("-")),
                    cell(&one.why),
                ]
            })
            .collect();
        out.push_str(&table(
            &[
                ("setting", LEFT),
                ("live", LEFT),
                ("advised", LEFT),
                ("why", LEFT),
            ],
            &rows,
        ));
    } else if drift.at.is_none() {
        out.push_str("No capture has the settings.\n");
    }
    format!("{}\n", out.trim_end())
}
