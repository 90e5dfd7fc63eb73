//! Books walked on what was saved: how far they lead, and never that something has been done.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use stanch::bundle;
use stanch::model::{SlotLimit, SlotRefusal, Snapshot};
use stanch::runbook::builtin;

use crate::build;

struct Walked {
    code: i32,
    stdout: String,
}

/// `runbook run BOOK --from FILE`, with nobody there.
fn walk(book: &str, file: &Path, more: &[&str]) -> Walked {
    let state = tempfile::tempdir().expect("a folder");
    let output = Command::new(env!("CARGO_BIN_EXE_stanch"))
        .args(["runbook", "run", book, "--from"])
        .arg(file)
        .args(more)
        .env_clear()
        .env("HOME", state.path())
        .current_dir("/")
        .stdin(Stdio::null())
        .output()
        .expect("the program runs");
    Walked {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
    }
}

fn capture(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/captures/{name}.json"))
}

#[test]
fn what_was_saved_is_never_resolved() {
    let walked = walk("lock-pileup", &capture("lock-queue"), &[]);
    assert_eq!(walked.code, 0);
    assert_eq!(
        walked.stdout,
        "lock-pileup on what was saved at 2026-11-29 19:17:36 UTC: it leads to the end resolved; nothing was done\n\
         way: picture > release > settled > choose > behind_ddl > evidence_ddl > cancel_ddl > recovered > write_up\n\
         only read: picture, settled, behind_ddl, recovered\n\
         asked of a person: release, write_up\n\
         would have been done: cancel_ddl (cancel 1 session: 864)\n"
    );
    // Where nobody would be signalled.
    let calm = walk("lock-pileup", &capture("leak"), &[]);
    assert_eq!(calm.code, 0);
    let end = calm.stdout;
    assert!(
        end.contains("it leads to the end false_alarm; nothing was done\n"),
        "{end}"
    );
    assert!(end.ends_with("\nwould have been done: nothing\n"), "{end}");
}

#[test]
fn scripts_see_that_it_was_a_replay() {
    let set = ["--json", "--set", "older_than=1s"];
    let walked = walk("idle-in-transaction", &capture("leak"), &set);
    let json: Value = serde_json::from_str(&walked.stdout).expect("JSON");
    assert_eq!((walked.code, &json["exit_code"]), (0, &json!(0)));
    assert_eq!(
        json["ended"],
        "it leads to the end resolved; nothing was done"
    );
    assert_eq!(
        (&json["replayed"], &json["dry_run"]),
        (&json!(true), &json!(false))
    );
    let rehearsal = &json["rehearsal"];
    assert_eq!(rehearsal["leads_to"], "resolved");
    assert_eq!(rehearsal["asked"], json!(["release", "write_up"]));
    assert_eq!(rehearsal["read"], json!(["picture", "recovered"]));
    assert_eq!(rehearsal["would"][0]["step"], "drain");
    let what = rehearsal["would"][0]["what"].as_str().expect("words");
    assert!(what.starts_with("terminate 14 sessions: "), "{what}");
}

/// What is kept of a round that found no free slot.
fn no_connection(folder: &Path) -> std::path::PathBuf {
    let known = build::snapshot();
    let refused = SlotRefusal {
        limit: SlotLimit::Reserved,
        user: "app_rw".into(),
        database: "shop".into(),
        ms_before: 1,
    };
    let none =
        Snapshot::without_connection(known.taken_at, known.target, vec![refused], known.redaction);
    let file = folder.join("refused.json");
    bundle::write(&file, &none).expect("written");
    file
}

/// Of a server that couldn't be read nothing is known: no book takes that for calm, or says it in words of its language.
#[test]
fn every_book_says_that_nothing_was_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = no_connection(folder.path());
    for found in builtin::BOOKS {
        let walked = walk(found.id, &file, &["--json"]);
        let json: Value = serde_json::from_str(&walked.stdout).expect("JSON");
        let ended = json["ended"].as_str().expect("how");
        // The one for it has a way for when the server can't be read.
        let (code, said) = match found.id {
            "connection-exhaustion" => (6, "it leads to the end escalated; nothing was done"),
            _ => (3, "couldn't be read: no connection; nothing was done"),
        };
        assert_eq!(walked.code, code, "{}: {json:#}", found.id);
        assert!(ended.ends_with(said), "{}: {ended}", found.id);
        assert!(
            code == 6 || ended.starts_with("could not tell: "),
            "{}: {ended}",
            found.id
        );
        assert_eq!(
            json["path"].as_array().map(Vec::len),
            Some(code as usize / 5 + 1)
        );
    }
}

/// A finding that is there needs no more to be seen; of one that isn't nothing is known.
#[test]
fn a_condition_on_what_is_not_known_is_said_as_such() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = no_connection(folder.path());
    let book = folder.path().join("book.yaml");
    let look = |id: &str, condition: &str| {
        let text = format!(
            "runbook: v1
id: looks
title: It looks
steps:
  - {{ id: full, check: {id}, on_error: away }}
  - {{ id: way, decide: [{{ if: \"{condition}\", goto: here }}, {{ else: away }}] }}
  - {{ id: here, end: resolved }}
  - {{ id: away, end: escalated }}
"
        );
        std::fs::write(&book, text).expect("written");
        let book = book.display().to_string();
        let output = Command::new(env!("CARGO_BIN_EXE_stanch"))
            .args(["runbook", "run", "--json", "--file", &book, "--from"])
            .arg(&file)
            .env_clear()
            .env("HOME", folder.path())
            .stdin(Stdio::null())
            .output()
            .expect("the program runs");
        let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        (
            output.status.code(),
            json["ended"].as_str().map(str::to_owned),
        )
    };
    let said = |text: &str| Some(format!("{text}; nothing was done"));
    let found = look("conn.exhausted", "steps.full.found");
    assert_eq!(found, (Some(0), said("it leads to the end resolved")));
    let unread = look("tx.long", "steps.full.found");
    assert_eq!(unread, (Some(6), said("it leads to the end escalated")));
    // The title of one that is there is known, and what a person was to answer isn't.
    let unknown = look(
        "conn.exhausted",
        "steps.full.title.size() > 3 && steps.full.nothing > 3",
    );
    assert_eq!(unknown.0, Some(3));
    let why = unknown.1.expect("how");
    assert!(why.starts_with("could not tell: way: "), "{why}");
}
