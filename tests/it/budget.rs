//! The pool budget against numbers that were worked out by hand: `budget_cases.yaml`, each case with its derivation.

use std::collections::BTreeMap;

use serde_json::Value;
use stanch::budget::{self, At, Fault, Input, Options, Report, SCENARIOS};

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
    let strict = case["args"]
        .as_array()
        .is_some_and(|args| args.contains(&"--strict".into()));
    let code = report.exit_code(strict) as i64;
    if case["code"].as_i64().is_some_and(|want| want != code) {
        wrong.push(format!(
            "code {code}, not {}: {:?} {:?}",
            case["code"], report.verdict, report.breaches
        ));
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

/// What stands in a file at a place, from there to the end of its line.
fn at_place(files: &BTreeMap<String, String>, at: &At) -> Option<String> {
    let line = files.get(&at.file)?.lines().nth(at.place.line - 1)?;
    let rest: String = line.chars().skip(at.place.column - 1).collect();
    (!rest.is_empty()).then_some(rest)
}

/// Every factor of every case: at its place stands the number that is said, or, where it is counted or follows from a word,
/// what it follows from.
#[test]
fn every_factor_stands_where_it_is_said_to() {
    let all: Value = serde_yaml::from_str(include_str!("budget_cases.yaml")).expect("cases");
    let mut wrong = Vec::new();
    let mut seen = 0;
    for case in all["cases"].as_array().expect("a list") {
        let files = files(case);
        let Ok(report) = judged(&files, &options(case)) else {
            continue;
        };
        let rows = report.servers.iter().flat_map(|server| {
            let of_rows = server.workloads.iter().flat_map(|row| &row.from);
            server.from.iter().chain(of_rows)
        });
        for source in rows {
            let Some(at) = &source.at else { continue };
            seen += 1;
            let Some(there) = at_place(&files, at) else {
                wrong.push(format!("{}: nothing at {at:?}: {source:?}", case["name"]));
                continue;
            };
            // Overlapping runs follow from the deadline that stands there.
            let value = source.what.strip_prefix("runs at once (");
            let value = value.unwrap_or(&source.value);
            let number = value.split(' ').next().unwrap_or_default();
            let stands = there
                .trim_start_matches(['"', '\'', '-'])
                .starts_with(number);
            // `name = 5` of an ini, `NAME=5`, `-w5`, `?connection_limit=5`, `30:5`: the number is in what begins there.
            let word: String = there.chars().take(160).collect();
            let holds = word
                .split(|c: char| !c.is_ascii_digit())
                .any(|digits| digits == number);
            let follows = [
                ("surge", "Recreate"),
                ("surge", "Replace"),
                ("surge", "{"),
                ("surge", "CODE_DEPLOY"),
                ("surge", "order"),
                ("surge", "istio"),
                ("pods ([peers])", "1 = "),
                ("max_connections", "= 0x190"),
                ("connections (of the URL)", "connection_limit=$(N)"),
                ("connections (pg_dump)", "pg_dump -j"),
                ("concurrency (sidekiq.yml), by", "<%="),
                ("pool (database.yml), by", "<%="),
            ];
            let follows = follows
                .iter()
                .any(|(what, text)| source.what.starts_with(what) && there.contains(text));
            if !(source.assumed || stands || holds || follows) {
                wrong.push(format!("{}: {source:?}: {there}", case["name"]));
            }
        }
    }
    assert!(seen > 500, "{seen}");
    assert!(
        wrong.is_empty(),
        "{} of {seen}\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
