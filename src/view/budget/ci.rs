//! What CI systems read: SARIF 2.1.0, JUnit, and the annotations of a code forge.

use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::budget::{At, Breach, Level, RULES, Report, Verdict};
use crate::view::annotation::annotation;

/// Every breach as a result; `results` is there also when there is none.
pub fn sarif(report: &Report, version: &str) -> Value {
    let all = all(report);
    let rules: Vec<Value> = RULES
        .iter()
        .map(|(id, what)| json!({ "id": id, "shortDescription": { "text": what } }))
        .collect();
    let suppressed = report.accepted.iter().map(|(breach, why)| {
        let mut result = result(breach);
        let text = format!("{} (until {})", why.reason, why.until);
        result["suppressions"] = json!([{ "kind": "external", "justification": text }]);
        result
    });
    let results: Vec<Value> = all.iter().map(result).chain(suppressed).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "stanch", "version": version, "rules": rules } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

/// What is broken, and what isn't known.
fn all(report: &Report) -> Vec<Breach> {
    let unknown = report.unknowns.iter().map(|unknown| {
        let message = format!("unknown: {}; settled by: {}", unknown.what, unknown.settle);
        Breach::new(
            "budget.unknown",
            Level::Warning,
            message,
            unknown.at.clone(),
        )
    });
    report.breaches.iter().cloned().chain(unknown).collect()
}

fn result(breach: &Breach) -> Value {
    let file = breach.at.as_ref().map_or("", |at| at.file.as_str());
    // The same breach in another line is the same: a reader follows it over changes.
    let digest = Sha256::digest(format!("{}\n{file}\n{}", breach.rule, breach.message));
    let fingerprint: String = digest
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let index = RULES.iter().position(|(id, _)| *id == breach.rule);
    let locations: Vec<Value> = breach.at.iter().map(location).collect();
    let mut result = json!({
        "ruleId": breach.rule,
        "level": breach.level.word(),
        "message": { "text": breach.message },
        "locations": locations,
        "partialFingerprints": { "stanch/v1": fingerprint },
    });
    if let Some(index) = index {
        result["ruleIndex"] = index.into();
    }
    result
}

fn location(at: &At) -> Value {
    json!({ "physicalLocation": {
        "artifactLocation": { "uri": uri(&at.file) },
        "region": { "startLine": at.place.line, "startColumn": at.place.column },
    } })
}

/// A path as a relative reference; one that isn't below the working folder as a URI of its own.
fn uri(path: &str) -> String {
    const KEPT: &percent_encoding::AsciiSet = &percent_encoding::NON_ALPHANUMERIC
        .remove(b'/')
        .remove(b'.')
        .remove(b'-')
        .remove(b'_')
        .remove(b'~');
    let path_only = percent_encoding::utf8_percent_encode(path, KEPT).to_string();
    match path.starts_with('/') {
        true => format!("file://{path_only}"),
        false => path_only,
    }
}

/// A test for each scenario of each server, and one for each breach of another rule.
///
/// # Errors
/// When it can't be written.
pub fn junit(report: &Report) -> Result<String, String> {
    let mut suites = quick_junit::Report::new("stanch budget check");
    for server in &report.servers {
        let mut suite = TestSuite::new(&server.name);
        for scenario in &server.scenarios {
            let text = format!(
                "{} of {} usable slots",
                scenario.peak.words(),
                server.usable.words()
            );
            let breach = report.breaches.iter().find(|b| {
                let words = format!(" in {}", scenario.name);
                b.rule == "budget.over"
                    && b.of.as_ref() == Some(&server.name)
                    && (b.message.ends_with(&words) || b.message.contains(&format!("{words} (")))
            });
            let status = match (scenario.verdict, breach.map(|b| b.level)) {
                (Verdict::Over, Some(Level::Error)) => {
                    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                    status.set_message(text);
                    status
                }
                (Verdict::Unknown, _) => {
                    let mut status = TestCaseStatus::skipped();
                    status.set_message(format!("{text}: not all of it is known"));
                    status
                }
                _ => TestCaseStatus::success(),
            };
            let mut case = TestCase::new(scenario.name, status);
            if let Some(breach) = breach {
                case.set_system_out(format!("{}: {}", breach.level.word(), breach.message));
            }
            suite.add_test_case(case);
        }
        suites.add_test_suite(suite);
    }
    let mut rules = TestSuite::new("rules");
    for (id, _) in RULES.iter().filter(|(id, _)| !id.starts_with("budget.")) {
        let of: Vec<&Breach> = report.breaches.iter().filter(|b| b.rule == *id).collect();
        let failed = of.iter().any(|breach| breach.level == Level::Error);
        let status = match failed {
            true => {
                let text: Vec<&str> = of.iter().map(|breach| breach.message.as_str()).collect();
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_message(text.join("; "));
                status
            }
            false => TestCaseStatus::success(),
        };
        let mut case = TestCase::new(*id, status);
        if !of.is_empty() {
            let lines = of
                .iter()
                .map(|b| format!("{}: {}", b.level.word(), b.message));
            case.set_system_out(lines.collect::<Vec<_>>().join("\n"));
        }
        rules.add_test_case(case);
    }
    suites.add_test_suite(rules);
    suites.to_string().map_err(|error| error.to_string())
}

/// `::error file=…,line=…::…`, one a line; notes are left out: a forge shows only so many.
pub fn github(report: &Report) -> String {
    let mut out = String::new();
    for breach in all(report)
        .iter()
        .filter(|breach| breach.level != Level::Note)
    {
        let level = breach.level.word();
        let mut fields = Vec::new();
        if let Some(at) = &breach.at {
            fields.push(("file", at.file.clone()));
            fields.push(("line", at.place.line.to_string()));
            fields.push(("col", at.place.column.to_string()));
        }
        fields.push(("title", breach.rule.to_owned()));
        out.push_str(&annotation(level, &fields, &breach.message));
    }
    out
}
