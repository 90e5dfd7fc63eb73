//! The pool budget against numbers that were worked out by hand: `budget_cases.yaml`, each case with its derivation.

use std::collections::BTreeMap;

use serde_json::Value;
use stanch::budget::{self, Fault, Input, Options, Report, SCENARIOS};

/// The scenarios that decide where nothing else is said.
pub const FAIL_ON: [&str; 3] = ["steady", "rollout-worst-one", "rollout-all"];

pub fn judged(files: &BTreeMap<String, String>, options: &Options) -> Result<Report, Fault> {
    let named = |path: &str| files.get(path).cloned();
    let mut found = Vec::new();
    for (path, text) in files {
        let input = Input {
            path: path.clone(),
            text: text.clone(),
        };
        found.extend(budget::read(&input, &named)?);
    }
    let budget = budget::join(found, options)?;
    Ok(budget::judge(&budget, &FAIL_ON))
}

fn files(case: &Value) -> BTreeMap<String, String> {
    let all = case["files"].as_object().into_iter().flatten();
    all.map(|(name, text)| (name.clone(), text.as_str().unwrap_or_default().to_owned()))
        .collect()
}

fn options(case: &Value) -> Options {
    let args: Vec<&str> = case["args"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let after = |flag: &str| -> Option<u64> {
        let at = args.iter().position(|arg| *arg == flag)?;
        args.get(at + 1)?.parse().ok()
    };
    Options {
        max_connections: after("--max-connections"),
        nodes: after("--nodes"),
        ..Options::default()
    }
}

/// What is otherwise than the case says.
fn otherwise(case: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let report = match (judged(&files(case), &options(case)), case["error"].as_str()) {
        (Err(fault), Some(want)) => {
            let shown = format!(
                "{}:{}:{}: {}",
                fault.file, fault.place.line, fault.place.column, fault.what
            );
            if !shown.to_lowercase().contains(&want.to_lowercase()) {
                wrong.push(format!("error {shown}, not {want}"));
            }
            return wrong;
        }
        (Err(fault), None) => return vec![format!("error {fault:?}")],
        (Ok(_), Some(want)) => return vec![format!("no error, where {want} is expected")],
        (Ok(report), None) => report,
    };
    for (name, want) in case["servers"].as_object().into_iter().flatten() {
        let Some(server) = report.servers.iter().find(|server| server.name == *name) else {
            wrong.push(format!("no server {name}"));
            continue;
        };
        let mut number = |what: &str, have: u64, want: &Value| {
            if want.as_u64().is_some_and(|want| want != have) {
                wrong.push(format!("{name} {what}: {have}, not {want}"));
            }
        };
        number("usable", server.usable.at_least, &want["usable"]);
        for scenario in &server.scenarios {
            number(scenario.name, scenario.peak.at_least, &want[scenario.name]);
        }
        if let Some(verdict) = want["verdict"].as_str()
            && verdict != server.verdict.word()
        {
            wrong.push(format!(
                "{name} verdict: {}, not {verdict}",
                server.verdict.word()
            ));
        }
    }
    if let Some(unknown) = case["unknown"].as_bool()
        && unknown == report.unknowns.is_empty()
    {
        wrong.push(format!("unknown: {:?}", report.unknowns));
    }
    wrong
}

#[test]
fn as_worked_out_by_hand() {
    let text = include_str!("budget_cases.yaml");
    let all: Value = serde_yaml::from_str(text).expect("cases");
    let cases = all["cases"].as_array().expect("a list");
    assert!(cases.len() > 60, "{}", cases.len());
    assert_eq!(SCENARIOS[0], "steady");
    let mut wrong = Vec::new();
    for case in cases {
        let found = otherwise(case);
        if !found.is_empty() {
            wrong.push(format!("{}\n   {}", case["name"], found.join("\n   ")));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}
