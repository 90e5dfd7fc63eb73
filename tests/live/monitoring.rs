//! `--check` and Prometheus where things go wrong: always a line, always a code that monitoring knows.

use stanch::drill::Incident;

use crate::harness::{self, REPORTS, Run, admin, command, run, scene, stanch_as};

/// One line, and one of the four codes.
fn is_check(run: &Run, code: i32, words: &str) {
    assert_eq!(run.code, code, "{run:?}");
    assert_eq!(run.stdout.lines().count(), 1, "{run:?}");
    assert!(
        run.stdout.starts_with("STANCH ") && run.stdout.contains(words),
        "{run:?}"
    );
}

#[tokio::test]
async fn a_failure_is_a_line_too() {
    let server = harness::server(&[]).await;
    let spec = server.spec("postgres", "postgres");
    for report in REPORTS {
        let name = report.last().expect("a name").to_uppercase();
        let mut nowhere = spec.clone();
        nowhere.port = 1;
        let check = |what: &[&str]| run(command(&[report, &["--check"], what].concat()));
        let unknown = format!("STANCH {name} UNKNOWN: ");
        is_check(
            &stanch_as(&nowhere, &[report, &["--check"]].concat()),
            3,
            &unknown,
        );
        is_check(&check(&["-d", "service=nowhere"]), 3, &unknown);
        is_check(&check(&["-d", "host=x sslmode=maybe"]), 3, &unknown);
        is_check(&check(&["--from", "/nonexistent"]), 3, &unknown);
        is_check(&check(&["--from", "/etc/passwd"]), 3, &unknown);
    }
    for wrong in [
        &["pg", "transactions", "--longer-than", "1h", "--check"][..],
        &["pg", "locks", "-o", "prometheus"],
        &["triage", "--json", "--list", "findings"],
        &["triage", "--json", "-o", "csv"],
        &["explain", "--list", "x", "-o", "csv"],
        &["triage", "--check", "--every", "1s"],
    ] {
        let run = stanch_as(&spec, wrong);
        assert_eq!(run.code, 64, "{wrong:?}: {run:?}");
    }
}

#[tokio::test]
async fn a_full_server_is_told_from_one_that_is_gone() {
    let (server, _scene) = scene(Incident::Exhaustion).await;
    let app = server.spec("app_rw", "shop");
    let ask = |what: &[&str]| stanch_as(&app, &[what, &["--wait-slot", "0s"]].concat());
    is_check(
        &ask(&["pg", "connections", "--check"]),
        2,
        "CRITICAL: conn.exhausted",
    );
    is_check(&ask(&["triage", "--check"]), 2, "CRITICAL: conn.exhausted");
    is_check(&ask(&["pg", "locks", "--check"]), 3, "UNKNOWN: ");
    let text = ask(&["pg", "connections", "-o", "prometheus"])
        .expect_code(3)
        .stdout;
    for line in ["stanch_up{", "stanch_refused{"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(text.contains("limit=\"unreserved\"} 1"), "{text}");
    let text = ask(&["triage", "-o", "prometheus"]).expect_code(2).stdout;
    assert!(text.contains("id=\"conn.exhausted\""), "{text}");
    assert!(
        !text.contains("stanch_taken_at_seconds"),
        "nothing was read: {text}"
    );
    let mut gone = admin(&server);
    gone.port = 1;
    let text = stanch_as(&gone, &["pg", "connections", "-o", "prometheus"])
        .expect_code(3)
        .stdout;
    assert!(
        text.contains("stanch_up{") && !text.contains("stanch_refused"),
        "{text}"
    );
}

/// No series is in the files of two reports: the collector refuses such.
#[tokio::test]
async fn files_lie_side_by_side() {
    let (server, _scene) = scene(Incident::LockChain).await;
    let mut all: Vec<String> = Vec::new();
    for report in [
        &["triage"][..],
        &["pg", "connections"],
        &["pg", "transactions"],
        &["pg", "blockers"],
    ] {
        let text = stanch_as(&admin(&server), &[report, &["-o", "prometheus"]].concat()).stdout;
        let series = text.lines().filter(|line| !line.starts_with('#'));
        all.extend(series.map(|line| line.rsplit_once(' ').expect("a value").0.to_owned()));
    }
    let mut once = all.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), all.len());
}
