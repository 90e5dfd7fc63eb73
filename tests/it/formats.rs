//! CSV and Markdown against the JSON of the same report: no field is left out, no cell differs, no text breaks a row.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// A report, its lists as JSON names them, and the fields that are no cells.
const LISTS: [(&[&str], &[&str]); 9] = [
    (&["triage"], &["findings"]),
    (&["pg", "activity"], &["sessions"]),
    (&["pg", "blockers"], &["roots", "edges"]),
    (&["pg", "locks"], &["locks"]),
    (&["pg", "transactions"], &["transactions", "prepared"]),
    (&["pg", "connections"], &["groups", "limits"]),
    (&["pg", "settings"], &["settings"]),
    (&["pg", "horizon"], &["horizon"]),
    (&["doctor"], &["doctor"]),
];

fn captures() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/captures");
    let mut all: Vec<PathBuf> = folder
        .read_dir()
        .expect("the captures")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_file())
        .collect();
    all.sort();
    all
}

/// A saved report is as it was: what would choose other keys isn't silently left out.
#[test]
fn a_saved_report_is_not_looked_for_anew() {
    for more in [
        &["expiry", "--match", "page:*"][..],
        &["expiry", "--full"],
        &["expiry", "--redis-db", "2"],
        &["hotkeys", "--budget", "1s"],
        &["queues", "--quick"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_stanch"))
            .args([&["redis"], more, &["--from", "saved.json"]].concat())
            .env_clear()
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(64), "{said}");
        assert!(said.contains("cannot be used with"), "{said}");
    }
}

fn stanch(args: &[&str], more: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_stanch"))
        .args(args)
        .args(more)
        .env_clear()
        .current_dir("/")
        .output()
        .expect("the program runs");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// `remedy.action` → value, for every field that a cell can hold.
fn flat(path: &str, value: &Value, into: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let path = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                flat(&path, field, into);
            }
        }
        // A list of its own (`settings` has `overrides`).
        Value::Array(all) if all.iter().any(Value::is_object) => {}
        other => {
            into.insert(path.to_owned(), cell(other));
        }
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(all) => {
            let texts = all.iter().any(Value::is_string);
            let cells: Vec<String> = all.iter().map(cell).collect();
            cells.join(if texts { "\n" } else { " " })
        }
        other => other.to_string(),
    }
}

#[test]
fn csv_has_what_the_json_has() {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for capture in captures() {
        let file = capture.display().to_string();
        for (report, lists) in LISTS {
            let json: Value =
                serde_json::from_str(&stanch(report, &["--json", "--from", &file])).expect("JSON");
            for list in lists {
                let text = stanch(report, &["-o", "csv", "--list", list, "--from", &file]);
                assert!(text.ends_with("\r\n"), "{report:?} {list}");
                let mut reader = csv::Reader::from_reader(text.as_bytes());
                let header = reader.headers().expect("a header").clone();
                let records: Vec<csv::StringRecord> =
                    reader.records().collect::<Result<_, _>>().expect("records");
                let rows = json[list].as_array().expect(list);
                assert_eq!(records.len(), rows.len(), "{file} {report:?} {list}");
                *seen.entry(list).or_default() += rows.len();
                for (record, row) in records.iter().zip(rows) {
                    let mut fields = BTreeMap::new();
                    flat("", row, &mut fields);
                    for (name, want) in fields {
                        let at = header.iter().position(|column| column == name);
                        // An object that isn't there is null as a whole: its columns are empty.
                        let Some(at) = at else {
                            let inner = format!("{name}.");
                            let empty = header.iter().any(|column| column.starts_with(&inner));
                            let own_list = want.is_empty() && name == "overrides";
                            assert!(empty || own_list, "{report:?} {list}: no column {name}");
                            continue;
                        };
                        assert_eq!(&record[at], want, "{file} {list} {name}");
                    }
                }
            }
        }
    }
    for (list, rows) in seen {
        // Nobody in the captures has set a limit.
        assert!(rows > 0 || list == "limits", "{list} is empty everywhere");
    }
}

#[test]
fn markdown_tables_have_as_many_cells_in_each_row() {
    for capture in captures() {
        let file = capture.display().to_string();
        for (report, _) in LISTS {
            let text = stanch(report, &["-o", "md", "--from", &file]);
            let mut width = None;
            for line in text.lines() {
                if !line.starts_with('|') {
                    width = None;
                    continue;
                }
                let bars = line.replace("\\|", "").matches('|').count();
                assert_eq!(
                    *width.get_or_insert(bars),
                    bars,
                    "{file} {report:?}: {line}"
                );
            }
            assert!(text.starts_with("**"), "{text}");
        }
    }
}

/// The text format: HELP and TYPE before the series, one sample a line, no name twice.
#[test]
fn prometheus_text_by_the_letter() {
    for capture in captures() {
        let file = capture.display().to_string();
        for report in [
            &["triage"][..],
            &["pg", "connections"],
            &["pg", "transactions"],
            &["pg", "blockers"],
        ] {
            let text = stanch(report, &["-o", "prometheus", "--from", &file]);
            let mut names = Vec::new();
            let mut current = "";
            for line in text.lines() {
                if let Some(rest) = line.strip_prefix("# HELP ") {
                    current = rest.split(' ').next().expect("a name");
                    assert!(!names.contains(&current), "{current} twice");
                    names.push(current);
                } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                    assert_eq!(rest, format!("{current} gauge"));
                } else {
                    let (series, value) = line.rsplit_once(' ').expect("a sample");
                    assert!(
                        series.starts_with(&format!("{current}{{server=\"")),
                        "{line}"
                    );
                    assert!(series.ends_with("\"}"), "{line}");
                    assert!(value.parse::<f64>().is_ok_and(f64::is_finite), "{line}");
                }
            }
            assert!(names.contains(&"stanch_up"), "{text}");
        }
    }
}

/// What isn't known has no sample: a 0 would be taken for the truth.
#[test]
fn prometheus_leaves_out_what_is_hidden() {
    let file = captures()
        .into_iter()
        .find(|path| path.ends_with("no-rights.json"))
        .expect("the capture")
        .display()
        .to_string();
    let text = stanch(&["triage"], &["-o", "prometheus", "--from", &file]);
    for name in [
        "stanch_sessions_active",
        "stanch_transaction_oldest_seconds",
        "stanch_slots_used{",
    ] {
        assert!(!text.contains(name), "{name}: {text}");
    }
    assert!(text.contains("stanch_slots_used_at_most{"), "{text}");
    let text = stanch(
        &["pg", "transactions"],
        &["-o", "prometheus", "--from", &file],
    );
    assert!(!text.contains("stanch_transactions"), "{text}");
}
