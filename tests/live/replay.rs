//! What is shown live is shown again from the saved file: the same bytes, also with the server gone.

use std::os::unix::fs::PermissionsExt as _;

use stanch::drill::Incident;

use crate::harness::{REPORTS, Run, admin, command, folder, run, scene, stanch_as};

async fn same_bytes(incident: Incident) {
    let (server, scene) = scene(incident).await;
    let folder = folder();
    let spec = admin(&server);
    let mut seen: Vec<(Vec<&str>, String, Run)> = Vec::new();
    for (n, report) in REPORTS.iter().enumerate() {
        let formats = [
            &[][..],
            &["--json"],
            &["-v", "--color", "always"],
            &["-o", "csv"],
            &["-o", "md"],
            &["--check"],
        ];
        for (m, format) in formats.into_iter().enumerate() {
            let file = folder
                .path()
                .join(format!("{n}-{m}.json"))
                .display()
                .to_string();
            let args: Vec<&str> = report.iter().chain(format).copied().collect();
            let live = stanch_as(&spec, &[&args[..], &["--save", &file]].concat());
            assert!(!live.stdout.is_empty(), "{args:?}: {live:?}");
            assert!(live.code <= 2, "{args:?}: {live:?}");
            seen.push((args, file, live));
        }
    }
    let mode = std::fs::metadata(&seen[0].1)
        .expect("the file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    drop((scene, server));
    for (args, file, live) in seen {
        let replay = run(command(&[&args[..], &["--from", &file]].concat()));
        assert_eq!(replay.stdout, live.stdout, "{args:?}");
        assert_eq!(replay.code, live.code, "{args:?}");
        assert_eq!(replay.stderr, "", "{args:?}");
    }
}

#[tokio::test]
async fn exhaustion() {
    same_bytes(Incident::Exhaustion).await;
}

#[tokio::test]
async fn leak() {
    same_bytes(Incident::Leak).await;
}

#[tokio::test]
async fn long_transaction() {
    same_bytes(Incident::LongTransaction).await;
}

#[tokio::test]
async fn lock_chain() {
    same_bytes(Incident::LockChain).await;
}

#[tokio::test]
async fn lock_queue() {
    same_bytes(Incident::LockQueue).await;
}

#[tokio::test]
async fn prepared() {
    same_bytes(Incident::Prepared).await;
}

#[tokio::test]
async fn deadlock() {
    same_bytes(Incident::Deadlock).await;
}

#[tokio::test]
async fn storm() {
    same_bytes(Incident::Storm).await;
}

#[tokio::test]
async fn pool_timeouts() {
    same_bytes(Incident::PoolTimeouts).await;
}

/// A file saved by one report serves every other: it holds the whole round.
#[tokio::test]
async fn any_report_saves_the_whole_round() {
    let (server, scene) = scene(Incident::LockChain).await;
    let folder = folder();
    let file = folder.path().join("round.json").display().to_string();
    stanch_as(&admin(&server), &["pg", "settings", "--save", &file]).expect_code(0);
    drop((scene, server));
    let report = run(command(&["pg", "blockers", "--json", "--from", &file]))
        .expect_code(0)
        .json();
    assert_eq!(report["roots"][0]["blocked_total"], 7);
    assert_eq!(
        report["coverage"]["sections"]["locks"]["status"],
        "collected"
    );
}

/// A refusal for want of a slot is an answer too, and replays.
#[tokio::test]
async fn a_refusal_replays() {
    let (server, scene) = scene(Incident::Exhaustion).await;
    let folder = folder();
    let file = folder.path().join("refused.json").display().to_string();
    let app = server.spec("app_rw", "shop");
    let live = stanch_as(
        &app,
        &["triage", "--json", "--wait-slot", "0s", "--save", &file],
    )
    .expect_code(2);
    drop((scene, server));
    let replay = run(command(&["triage", "--json", "--from", &file])).expect_code(2);
    assert_eq!(replay.stdout, live.stdout);
    assert_eq!(live.json()["findings"][0]["id"], "conn.exhausted");
}
