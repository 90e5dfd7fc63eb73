//! Books walked on what was saved: how far they lead, and never that something has been done.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

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
