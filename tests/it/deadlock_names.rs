//! No secret in what `pg deadlocks` shows: neither as a name nor in a statement.

use crate::deadlocks::{json, stanch, temporary};

/// A name, and what of it stands nowhere.
const NAMES: [(&str, &str); 4] = [
    ("host=x password=hunter21x", "hunter21x"),
    ("postgres://u:hunter22x@h/d", "hunter22x"),
    ("{\"password\": \"hunter23x\"}", "hunter23x"),
    ("AKIAIOSFODNN7REALKEY", "AKIAIOSFODNN7REALKEY"),
];

/// A deadlock of a session by this name, and a wait of it, as the json format has them.
fn log(name: &str) -> String {
    let line = |pid: i32, severity: &str, message: &str, detail: &str, statement: &str| {
        serde_json::json!({
            "timestamp": "2026-12-01 00:50:00.000 UTC", "user": name, "dbname": "shop", "pid": pid,
            "error_severity": severity, "message": message, "detail": detail, "statement": statement,
            "application_name": name, "backend_type": "client backend",
        })
        .to_string()
    };
    let update = "update \"pw password=hunter25x\" set a = 1 where id = 2";
    [
        line(
            12,
            "LOG",
            "process 12 still waiting for ShareLock on transaction 7 after 50.123 ms",
            "Process holding the lock: 11. Wait queue: 12.",
            update,
        ),
        line(
            11,
            "ERROR",
            "deadlock detected",
            &format!(
                "Process 11 waits for ShareLock on transaction 8; blocked by process 12.\n\
                 Process 12 waits for ShareLock on transaction 7; blocked by process 11.\n\
                 Process 11: {update}\nProcess 12: {update}"
            ),
            update,
        ),
    ]
    .join("\n")
}

#[test]
fn a_secret_is_no_name_of_a_session() {
    for (name, secret) in NAMES {
        let (_folder, path) = temporary("a.json", log(name).as_bytes());
        for args in [
            &[][..],
            &["--wide"],
            &["--json"],
            &["-o", "md"],
            &["-o", "csv", "--list", "members"],
            &["-o", "csv", "--list", "lock_waits"],
        ] {
            let run = stanch(&[&[path.as_str()], args].concat(), b"");
            for secret in [secret, "hunter25x"] {
                assert!(!run.out.contains(secret), "{args:?}\n{}", run.out);
            }
        }
        let shown = json(&[&path, "--unredacted"]);
        let member = &shown["deadlocks"][0]["members"][0];
        assert_eq!([&member["user"], &member["application_name"]], [name; 2]);
    }
}

#[test]
fn a_text_that_may_end_elsewhere_is_hidden_to_the_end() {
    let update = r"update acc set note='it\'s correct horse hunter1x battery' where id=2";
    let log = crate::deadlock_lines::circle([("ShareLock on transaction 7", update); 2]);
    let (_folder, path) = temporary("a.log", log.as_bytes());
    let report = json(&[&path]);
    assert!(!report.to_string().contains("hunter1x"), "{report}");
    let member = &report["deadlocks"][0]["members"][0];
    assert_eq!(member["statement"], "update acc set note='…");
}
