//! `schemas/`: what editors are told of books, held against the reader.

use serde_json::Value;
use stanch::budget::schema as budget_schema;
use stanch::runbook::{self, builtin, schema};

use crate::{language, runbook as broken};

fn written(name: &str, schema: &Value) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("schemas")
        .join(name);
    let text = format!("{}\n", serde_json::to_string_pretty(schema).expect("text"));
    if std::env::var_os("STANCH_UPDATE").is_some() {
        std::fs::write(&path, &text).expect("written");
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == text,
        "{name} is old: STANCH_UPDATE=1 writes it anew"
    );
}

fn yaml(text: &str) -> Option<Value> {
    serde_yaml::from_str(text).ok()
}

#[test]
fn the_files_are_those_of_the_reader() {
    written("runbook.schema.json", &schema::book());
    written("runbook-test.schema.json", &schema::cases());
    written("budget.schema.json", &budget_schema::budget());
}

#[test]
fn what_is_sound_passes() {
    let book = jsonschema::validator_for(&schema::book()).expect("a schema");
    let cases = jsonschema::validator_for(&schema::cases()).expect("a schema");
    let mut texts: Vec<&str> = builtin::BOOKS.iter().map(|book| book.text).collect();
    texts.extend([broken::SOUND, language::SOUND]);
    for text in texts {
        let found: Vec<String> = book
            .iter_errors(&yaml(text).expect("yaml"))
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(found.is_empty(), "{text}\n{found:#?}");
    }
    for found in builtin::BOOKS {
        assert!(
            cases.is_valid(&yaml(found.cases).expect("yaml")),
            "{}",
            found.id
        );
    }
}

/// What the reader faults for its form, the schema faults as well; what it can't know (names, ways) it lets through.
#[test]
fn what_has_another_form_is_faulted_by_both() {
    let book = jsonschema::validator_for(&schema::book()).expect("a schema");
    let form = [
        "unknown key",
        "unknown report",
        "unknown end",
        "unknown finding",
        "unknown type",
        "unknown part",
        "is missing",
        "is expected here",
        "a step is of one kind",
        "a step without a kind",
        "reads `runbook: v1`",
        "a whole number",
        "no day such as",
        "at least two answers",
        "read the - as minus",
        "a name is lower case",
        "a command has a name",
    ];
    let all = broken::CASES.iter().map(|case| (broken::SOUND, case));
    let all = all.chain(language::CASES.iter().map(|case| (language::SOUND, case)));
    let mut both = 0;
    for (sound, (from, to, _, _, want)) in all {
        let text = sound.replacen(from, to, 1);
        let Some(value) = yaml(&text) else { continue };
        let faults = runbook::load(&text, &builtin::text)
            .err()
            .unwrap_or_default();
        let of_form = faults
            .iter()
            .all(|f| form.iter().any(|form| f.what.contains(form)));
        if of_form
            && form
                .iter()
                .any(|form| want.contains(form) || form.contains(want))
        {
            assert!(!book.is_valid(&value), "{to}: {want}");
            both += 1;
        }
    }
    assert!(both > 30, "only {both}");
}

/// Every budget.yaml of the cases: what the reader takes, the schema takes; what it faults for its form, the schema faults.
#[test]
fn budgets_as_the_reader_takes_them() {
    let schema = jsonschema::validator_for(&budget_schema::budget()).expect("a schema");
    let all: Value = serde_yaml::from_str(include_str!("budget_cases.yaml")).expect("cases");
    let (mut sound, mut faulted) = (0, 0);
    for case in all["cases"].as_array().expect("a list") {
        let Some(text) = case["files"]["budget.yaml"].as_str() else {
            continue;
        };
        let Some(budget) = yaml(text) else { continue };
        let fits = schema.is_valid(&budget);
        let error = case["error"].as_str().unwrap_or_default();
        let of_form = ["whole number", "is expected here", "is known"];
        if error.starts_with("budget.yaml") && of_form.iter().any(|form| error.contains(form)) {
            assert!(!fits, "{}: {error}", case["name"]);
            faulted += 1;
        } else if error.is_empty() {
            let found: Vec<String> = schema
                .iter_errors(&budget)
                .map(|error| format!("{}: {error}", error.instance_path()))
                .collect();
            assert!(fits, "{}: {found:?}", case["name"]);
            sound += 1;
        }
    }
    assert!(sound > 150 && faulted > 0, "{sound}, {faulted}");
}
