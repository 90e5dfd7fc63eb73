//! `--check`: one line as Nagios and its kin read it, `STANCH <REPORT> <STATE>: words | measures`.

use super::clean;
use super::header::Heading as _;
use super::prometheus::Metric;
use super::reports::Table;
use crate::analysis::Report;
use crate::analysis::redis::RedisHead;
use crate::analysis::triage::Finding;
use crate::model::{ExitCode, Thresholds};

fn state(code: ExitCode) -> &'static str {
    match code {
        ExitCode::Ok => "OK",
        ExitCode::Warning => "WARNING",
        ExitCode::Critical => "CRITICAL",
        _ => "UNKNOWN",
    }
}

/// The line of a report; `findings` are those that made its state, the worst first.
pub fn line<D: Table>(
    report: &Report<D>,
    code: ExitCode,
    findings: &[&Finding],
    thresholds: &Thresholds,
) -> String {
    let mut words = match findings {
        [] => report.data.sentences(&report.head).join("; "),
        [worst, rest @ ..] => {
            let mut words = format!("{}: {}", worst.id.name(), worst.title);
            for finding in rest {
                words.push_str(&format!("; {}", finding.id.name()));
            }
            words
        }
    };
    for unseen in report.head.unseen() {
        words.push_str(&format!("; {unseen}"));
    }
    let measures: Vec<String> = report
        .data
        .metrics(&report.head)
        .iter()
        .filter_map(|metric| measure(metric, thresholds))
        .collect();
    let measures = match measures.as_slice() {
        [] => String::new(),
        all => format!(" | {}", all.join(" ")),
    };
    format!("{}{measures}\n", head(&report.head.schema, code, &words))
}

/// The line of a report of Redis: what it comes to, and what couldn't be seen.
pub fn of_redis(name: &str, code: ExitCode, sentences: &[String], of: &RedisHead) -> String {
    let mut words = sentences.iter().take(3).cloned().collect::<Vec<_>>();
    words.extend(of.unseen());
    format!("{}\n", head(name, code, &words.join("; ")))
}

/// The line where there is no report: no connection, a failed read, a file that can't be read.
pub fn unknown(report: &str, why: &str) -> String {
    let first = why.lines().next().unwrap_or_default();
    format!("{}\n", head(report, ExitCode::Unknown, first))
}

/// `stanch.blockers/1` → `blockers`.
pub fn name(schema: &str) -> String {
    let name = schema.trim_start_matches("stanch.");
    name.split('/').next().unwrap_or(name).to_owned()
}

/// A `|` would begin the measures.
fn head(schema: &str, code: ExitCode, words: &str) -> String {
    let name = name(schema).to_uppercase();
    let words = clean(words).replace('|', "/");
    format!("STANCH {name} {}: {words}", state(code))
}

/// `slots_used=41;40;44`, `lock_wait_longest=2.5s`
fn measure(metric: &Metric, thresholds: &Thresholds) -> Option<String> {
    let (name, value) = metric.single()?;
    let name = name.strip_prefix("stanch_").unwrap_or(name);
    Some(match name.strip_suffix("_seconds") {
        Some(name) => format!("{name}={value}s"),
        None if name == "used_percent" => format!(
            "{name}={value}%;{};{}",
            thresholds.connections_warning.0, thresholds.connections_critical.0
        ),
        None => format!("{name}={value}"),
    })
}
