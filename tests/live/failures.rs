//! What breaks while it is read: a part is lost, the rest is shown, and it is said.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use serde_json::Value;
use stanch::drill::{Incident, Scene};

use crate::harness::{self, admin, client, oncall, scene, sql, stanch_as, stanch_command};

/// A lock on a catalog that one section reads: that section fails, the others are shown.
#[tokio::test]
async fn a_locked_catalog_costs_its_section() {
    let (server, _scene) = scene(Incident::LockChain).await;
    let oncall = oncall(&server, Scene::database()).await;
    let holder = client(&admin(&server), "holder").await;
    // A superuser's rights are known without a look into it.
    sql(
        &holder,
        "BEGIN; LOCK TABLE pg_auth_members IN ACCESS EXCLUSIVE MODE",
    )
    .await;
    let run = stanch_as(&oncall, &["triage", "--json"]);
    let report = run.json();
    let sections = report["coverage"]["sections"]
        .as_object()
        .expect("sections");
    for (name, section) in sections {
        // What asks for a role's memberships can't be answered; the locks can.
        let asks = ["login", "activity", "settings"].contains(&name.as_str());
        assert_eq!(
            section["status"],
            if asks { "failed" } else { "collected" },
            "{name}: {section}"
        );
        assert_eq!(
            asks,
            section["why"]
                .as_str()
                .is_some_and(|why| why.contains("55P03")),
            "{name}: {section}"
        );
    }
    assert_eq!(report["summary"]["blocked"], 7);
    assert_eq!(
        report["summary"]["capacity"],
        Value::Null,
        "no total is made of a part"
    );
    let blockers = stanch_as(&oncall, &["pg", "blockers"])
        .expect_code(3)
        .stdout;
    assert!(
        blockers.contains("not seen: activity: canceling statement due to lock timeout"),
        "{blockers}"
    );
    assert!(blockers.contains("blocks 7 (1 directly)"), "{blockers}");
    let doctor = stanch_as(&oncall, &["doctor"]).expect_code(3).stdout;
    assert!(doctor.contains("this section can't be read"), "{doctor}");
}

/// The same for a login that sees all, over a connection that was open before.
#[tokio::test]
async fn a_catalog_that_is_locked_between_rounds() {
    let (server, _scene) = scene(Incident::LockChain).await;
    let mut child = stanch_command(
        &admin(&server),
        &["pg", "blockers", "--json", "--every", "300ms"],
    )
    .stdout(Stdio::piped())
    .spawn()
    .expect("the program runs");
    let mut out = BufReader::new(child.stdout.take().expect("stdout"));
    let mut round = || {
        let mut line = String::new();
        out.read_line(&mut line).expect("a round");
        serde_json::from_str::<Value>(&line).expect("one report a line")
    };
    assert_eq!(round()["roots"][0]["user"], "app_rw");
    let holder = client(&admin(&server), "holder").await;
    sql(
        &holder,
        "BEGIN; LOCK TABLE pg_authid IN ACCESS EXCLUSIVE MODE",
    )
    .await;
    let locked = loop {
        let report = round();
        if report["coverage"]["sections"]["roles"]["status"] == "failed" {
            break report;
        }
    };
    assert_eq!(locked["roots"][0]["blocked_total"], 7);
    assert_eq!(locked["roots"][0]["state"], "idle in transaction");
    assert_eq!(
        locked["roots"][0]["user"],
        Value::Null,
        "its name is what couldn't be read"
    );
    let failed: Vec<&String> = locked["coverage"]["sections"]
        .as_object()
        .expect("sections")
        .iter()
        .filter(|(_, section)| section["status"] != "collected")
        .map(|(name, _)| name)
        .collect();
    assert_eq!(failed, ["roles"]);
    child.kill().expect("a signal");
    child.wait().expect("it ends");
}

/// A table of the application's may be locked as it likes: nothing of it is read.
#[tokio::test]
async fn a_locked_table_costs_nothing() {
    let (server, _scene) = scene(Incident::Exhaustion).await;
    let holder = client(&admin(&server), "holder").await;
    sql(
        &holder,
        "BEGIN; LOCK TABLE orders, product IN ACCESS EXCLUSIVE MODE",
    )
    .await;
    let report = stanch_as(&admin(&server), &["pg", "locks", "--json"])
        .expect_code(0)
        .json();
    let locks = report["locks"].as_array().expect("locks");
    assert!(
        locks
            .iter()
            .any(|l| l["relation"] == "public.orders" && l["mode"] == "AccessExclusiveLock")
    );
}

#[tokio::test]
async fn the_server_dies_in_mid_query() {
    let mut server = harness::server(&[]).await;
    let oncall = oncall(&server, "postgres").await;
    let spec = server.spec("postgres", "postgres");
    let holder = client(&spec, "holder").await;
    // The first read of the round waits for this lock until its timeout: time enough to die in.
    sql(
        &holder,
        "BEGIN; LOCK TABLE pg_auth_members IN ACCESS EXCLUSIVE MODE",
    )
    .await;
    let watcher = client(&spec, "watcher").await;
    let child = stanch_command(&oncall, &["triage"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    stanch::drill::until(
        &watcher,
        "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted",
    )
    .await
    .expect("it reads");
    server.stop().expect("the server stops");
    let output = child.wait_with_output().expect("it ends");
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.contains("not seen: activity: "),
        "what was read before is kept: {said}"
    );
    assert!(said.contains("slots and sessions unknown"), "{said}");
}

#[tokio::test]
async fn the_server_dies_between_rounds() {
    let mut server = harness::server(&[]).await;
    let spec = server.spec("postgres", "postgres");
    let mut child = stanch_command(&spec, &["pg", "activity", "--json", "--every", "300ms"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut out = BufReader::new(child.stdout.take().expect("stdout"));
    for _ in 0..2 {
        let mut line = String::new();
        out.read_line(&mut line).expect("a round");
        let report: Value = serde_json::from_str(&line).expect("one report a line");
        assert_eq!(report["schema"], "stanch.activity/1");
    }
    server.stop().expect("the server stops");
    assert_eq!(child.wait().expect("it ends").code(), Some(3));
    let mut said = String::new();
    child
        .stderr
        .take()
        .expect("stderr")
        .read_to_string(&mut said)
        .expect("text");
    assert_eq!(said.matches("stanch: ").count(), 1, "{said}");
}

/// A repeat keeps its one connection, and Ctrl-C is how it ends.
#[tokio::test]
async fn repeats_over_one_connection() {
    let server = harness::server(&[("log_connections", "on")]).await;
    let spec = server.spec("postgres", "postgres");
    let mut child = stanch_command(&spec, &["triage", "--json", "--every", "200ms"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let log = || {
        std::fs::read_to_string(server.log_file())
            .expect("the log")
            .matches("connection authorized")
            .count()
    };
    let mut out = BufReader::new(child.stdout.take().expect("stdout"));
    let mut line = String::new();
    out.read_line(&mut line).expect("a round");
    let before = log();
    for _ in 0..3 {
        line.clear();
        out.read_line(&mut line).expect("a round");
        assert!(
            line.starts_with("{\"schema\":\"stanch.triage/1\""),
            "{line}"
        );
    }
    assert_eq!(log(), before);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("a signal");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

/// A round that isn't answered in time doesn't end the repeat: the slot is kept.
#[tokio::test]
async fn a_repeat_outlives_a_failed_round() {
    for what in [&["pg", "activity"][..], &["pg", "blockers"], &["triage"]] {
        outlives_a_failed_round(what).await;
    }
}

async fn outlives_a_failed_round(what: &[&str]) {
    let server = harness::server(&[]).await;
    let spec = server.spec("postgres", "postgres");
    let mut child = stanch_command(
        &spec,
        &[what, &["--json", "--every", "200ms", "--deadline", "300ms"]].concat(),
    )
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .expect("the program runs");
    let mut out = BufReader::new(child.stdout.take().expect("stdout"));
    let mut said = BufReader::new(child.stderr.take().expect("stderr"));
    let mut line = String::new();
    out.read_line(&mut line).expect("a round");
    // Its backend is the only client there is.
    let looker = client(&spec, "looker").await;
    let rows = looker
        .query_typed(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
            &[],
        )
        .await
        .expect("activity");
    assert_eq!(rows.len(), 1);
    let backend = rustix::process::Pid::from_raw(rows[0].get(0)).expect("a pid");
    rustix::process::kill_process(backend, rustix::process::Signal::STOP).expect("a signal");
    line.clear();
    said.read_line(&mut line).expect("a word");
    assert!(
        line.contains("the read failed") && line.contains("--deadline"),
        "{line}"
    );
    rustix::process::kill_process(backend, rustix::process::Signal::CONT).expect("a signal");
    // The next rounds are whole again, over the same connection, and between them no transaction is open.
    for _ in 0..3 {
        let mut line = String::new();
        out.read_line(&mut line).expect("a round");
        let report: Value = serde_json::from_str(&line).expect("one report a line");
        for (name, section) in report["coverage"]["sections"]
            .as_object()
            .expect("sections")
        {
            assert_eq!(section["status"], "collected", "{what:?} {name}: {section}");
        }
    }
    stanch::drill::until(
        &looker,
        "SELECT bool_and(state = 'idle') FROM pg_stat_activity \
         WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
    )
    .await
    .expect("no transaction is left open");
    child.kill().expect("a signal");
    child.wait().expect("it ends");
}

/// A reader that goes away is no failure.
#[tokio::test]
async fn a_closed_pipe_is_success() {
    let (server, _scene) = scene(Incident::Storm).await;
    let mut child = stanch_command(
        &admin(&server),
        &["pg", "activity", "--json", "--every", "200ms"],
    )
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .expect("the program runs");
    let mut out = BufReader::new(child.stdout.take().expect("stdout"));
    out.read_line(&mut String::new()).expect("a round");
    drop(out);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(output.stderr, b"");
}

/// A deadline of this side's own, for waits that no timeout of the server's bounds.
#[tokio::test]
async fn the_deadline_of_a_round() {
    let server = harness::server(&[]).await;
    let oncall = oncall(&server, "postgres").await;
    let holder = client(&server.spec("postgres", "postgres"), "holder").await;
    sql(
        &holder,
        "BEGIN; LOCK TABLE pg_auth_members IN ACCESS EXCLUSIVE MODE",
    )
    .await;
    let run = stanch_as(&oncall, &["triage", "--deadline", "100ms"]).expect_code(3);
    assert!(
        format!("{}{}", run.stdout, run.stderr).contains("--deadline"),
        "{run:?}"
    );
}
