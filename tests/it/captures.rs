//! Every report on every saved incident, as people and as programs see it: a change of what is shown, or of the
//! shape of the JSON, is a changed file under `tests/it/snapshots/`.

use std::path::{Path, PathBuf};
use std::process::Command;

const REPORTS: [(&str, &[&str]); 9] = [
    ("triage", &["triage"]),
    ("activity", &["pg", "activity"]),
    ("blockers", &["pg", "blockers"]),
    ("locks", &["pg", "locks"]),
    ("transactions", &["pg", "transactions"]),
    ("connections", &["pg", "connections"]),
    ("settings", &["pg", "settings"]),
    ("horizon", &["pg", "horizon"]),
    ("doctor", &["doctor"]),
];

fn captures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures");
    let mut all: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the captures")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_file())
        .collect();
    all.sort();
    all
}

fn stanch(args: &[&str], columns: Option<&str>) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stanch"));
    command.args(args).env_clear().current_dir("/");
    if let Some(columns) = columns {
        command.env("COLUMNS", columns);
    }
    let output = command.output().expect("the program runs");
    let out = String::from_utf8(output.stdout).expect("UTF-8");
    let err = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(err, "", "{args:?}");
    format!(
        "{out}[exit code {}]\n",
        output.status.code().expect("a code")
    )
}

fn check(report: &str, args: &[&str], format: &str, more: &[&str], columns: Option<&str>) {
    for capture in captures() {
        let file = capture.display().to_string();
        let name = capture
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let shown = stanch(&[args, more, &["--from", &file]].concat(), columns);
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(format!("{report}-{name}.{format}"), shown);
        });
    }
}

#[test]
fn as_people_see_it() {
    for (report, args) in REPORTS {
        check(report, args, "table", &[], Some("120"));
    }
}

#[test]
fn as_programs_see_it() {
    for (report, args) in REPORTS {
        check(report, args, "json", &["--json"], None);
    }
}

/// However narrow: no line of a table is wider than the screen. Sentences and commands are kept whole for the
/// terminal to wrap: the first lines, and what stands below a table.
#[test]
fn on_any_screen() {
    let tables = ["activity", "locks", "transactions", "connections"];
    for (report, args) in REPORTS
        .into_iter()
        .filter(|(report, _)| tables.contains(report))
    {
        for capture in captures() {
            let file = capture.display().to_string();
            for columns in ["20", "40", "60", "80", "100", "200"] {
                let shown = stanch(&[args, &["--from", &file]].concat(), Some(columns));
                let most: usize = columns.parse().expect("a number");
                for line in shown.lines() {
                    let sentence = [
                        " · ",
                        " UTC",
                        "coverage: ",
                        " session",
                        "usable",
                        "transaction",
                        "awaited",
                    ]
                    .iter()
                    .any(|word| line.contains(word));
                    // A single word is never broken: it may be part of a command.
                    assert!(
                        sentence
                            || !line.contains(' ')
                            || line.starts_with("[exit")
                            || stanch::view::width(line) <= most,
                        "{report} {columns}: {line}"
                    );
                }
            }
        }
    }
}

#[test]
fn as_spreadsheets_see_it() {
    for (report, args) in REPORTS {
        check(report, args, "csv", &["-o", "csv", "-q"], None);
    }
}

#[test]
fn as_an_issue_sees_it() {
    for (report, args) in REPORTS {
        check(report, args, "md", &["-o", "md"], None);
    }
}

#[test]
fn as_monitoring_sees_it() {
    for (report, args) in REPORTS {
        check(report, args, "check", &["--check"], None);
        if ["triage", "blockers", "transactions", "connections"].contains(&report) {
            check(report, args, "prometheus", &["-o", "prometheus"], None);
        }
    }
}

/// A saved snapshot read and written again is the same file.
#[test]
fn a_saved_file_survives_reading() {
    let folder = tempfile::tempdir().expect("a folder");
    for capture in captures() {
        let copy = folder.path().join("copy.json");
        let snapshot = stanch::bundle::read(&capture).expect("a snapshot");
        stanch::bundle::write(&copy, &snapshot).expect("written");
        let (before, after) = (
            std::fs::read(&capture).expect("read"),
            std::fs::read(&copy).expect("read"),
        );
        assert!(before == after, "{}", capture.display());
    }
}
