//! Cancel, terminate, roll back: exactly what was approved, each end in its own word, and nothing without a yes.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use stanch::action::guard::guard;
use stanch::action::{Candidate, Choice, Consent, Facts, Policy, send};
use stanch::drill::{self, Incident, Server, ServerOptions};
use stanch::journal::{self, Event};
use stanch::model::{Outcome, Session, Snapshot, Verb};
use stanch::source::postgres::connect::attempt;
use stanch::source::postgres::{ConnSpec, Connected, Parts, RoundOptions, round};

use crate::harness::{
    self, Run, admin, client, folder, journals, run, scene, sql, stanch_as, stanch_command,
};

/// Runs with journals in a folder of the test's own.
fn act(spec: &ConnSpec, state: &Path, what: &[&str]) -> Run {
    let mut command = stanch_command(spec, what);
    command.env("XDG_STATE_HOME", state);
    run(command)
}

fn outcomes(run: &Run) -> Vec<(i64, String, String)> {
    let json = run.json();
    let list = json["outcomes"].as_array().expect("outcomes").clone();
    list.iter()
        .map(|o| {
            (
                o["pid"].as_i64().expect("a pid"),
                o["outcome"].as_str().expect("an outcome").to_owned(),
                o["reason"].as_str().unwrap_or_default().to_owned(),
            )
        })
        .collect()
}

async fn pid(client: &tokio_postgres::Client) -> i64 {
    let row = client
        .query_one("SELECT pg_backend_pid()::int8", &[])
        .await
        .expect("a pid");
    row.get(0)
}

const ROUND: RoundOptions = RoundOptions {
    statement_timeout: Duration::from_secs(5),
    deadline: Duration::from_secs(15),
    redaction: stanch::model::RedactionLevel::Redacted,
};

async fn connected(spec: &ConnSpec) -> Connected {
    attempt(spec, Duration::from_secs(10))
        .await
        .unwrap_or_else(|e| panic!("{e}"))
}

/// A DDL holds nothing yet, and everybody queues behind it: the table that comes before the question says how many.
#[tokio::test]
async fn what_queues_behind_a_ddl_is_told() {
    let (server, _scene) = scene(Incident::LockQueue).await;
    let (spec, state) = (admin(&server), folder());
    // A queue of a moment is left alone.
    harness::ripe(&spec).await;
    let forest = stanch_as(&spec, &["pg", "blockers", "--json"]).json();
    let root = &forest["roots"][0];
    let (ddl, all) = (&root["remedy"]["pid"], &root["blocked_total"]);
    assert_ne!(ddl, &root["pid"], "{forest:#}");
    let ddl = ddl.to_string();
    let dry = act(&spec, state.path(), &["pg", "cancel", &ddl, "--json"]).json();
    let blocks = &dry["candidates"][0]["blocks"];
    // All but itself.
    assert_eq!(blocks.as_u64(), all.as_u64().map(|all| all - 1), "{dry:#}");
    let shown = act(&spec, state.path(), &["pg", "cancel", &ddl]);
    let line = shown.stdout.lines().find(|line| line.contains(&ddl));
    let number = format!(" {blocks} ");
    assert!(
        line.is_some_and(|line| format!("{line} ").contains(&number)),
        "{shown:?}"
    );
}

/// The leaked sessions end, the others live on; the journal has an intent and a result for each, and the evidence.
#[tokio::test]
async fn leaked_sessions_are_ended_and_no_other() {
    let (server, _scene) = scene(Incident::Leak).await;
    let spec = admin(&server);
    let state = folder();
    let choose = [
        "pg",
        "terminate",
        "--idle-in-transaction",
        "--longer-than",
        "10ms",
    ];
    let too_many = act(
        &spec,
        state.path(),
        &[&choose[..], &["--yes", "--json"]].concat(),
    );
    assert_eq!(too_many.code, 2, "{too_many:?}");
    let stopped = too_many.json()["stopped"].clone();
    assert!(
        stopped
            .as_str()
            .expect("why")
            .contains("14 sessions, more than --max 10"),
        "{stopped}"
    );
    assert!(journals(state.path()).is_empty());
    let args = [
        "--yes", "--json", "--max", "20", "--batch", "20", "--user", "app_rw",
    ];
    let run = act(&spec, state.path(), &[&choose[..], &args].concat()).expect_code(0);
    let all = outcomes(&run);
    assert_eq!(all.len(), 14);
    assert!(
        all.iter().all(|(_, outcome, _)| outcome == "gone"),
        "{all:?}"
    );
    let json = run.json();
    let used = |when: &str| json[when]["capacity"]["used"].as_i64().expect("a number");
    assert_eq!(used("before"), 18, "{json:#}");
    assert_eq!(used("after"), 4, "{json:#}");
    let [journal] = journals(state.path()).try_into().expect("one journal");
    let records = journal::read(&journal).expect("a sound journal");
    let intents = records
        .iter()
        .filter(|r| matches!(r.event, Event::EffectIntent { .. }))
        .count();
    let results = records
        .iter()
        .filter(|r| matches!(r.event, Event::EffectResult { .. }))
        .count();
    assert_eq!((intents, results), (14, 14));
    assert!(matches!(
        records.last().map(|r| &r.event),
        Some(Event::RunEnd { code: 0 })
    ));
    // What justified it can be looked at again.
    let evidence = journal
        .with_extension("snapshot.json")
        .display()
        .to_string();
    let again = harness::run(harness::command(&["triage", "--json", "--from", &evidence]));
    assert!(
        again.stdout.contains("conn.leak") || again.stdout.contains("conn.near_limit"),
        "{again:?}"
    );
}

/// Who isn't there to say yes says no: on every path that can signal.
#[tokio::test]
async fn without_a_terminal_and_without_yes_nothing_is_signalled() {
    let (server, _scene) = scene(Incident::Prepared).await;
    let spec = admin(&server);
    let idle = client(&server.spec("app_rw", "shop"), "idle").await;
    sql(&idle, "BEGIN; SELECT 1").await;
    let victim = pid(&idle).await.to_string();
    sql(&idle, "SELECT 1").await;
    let state = folder();
    for what in [
        &["pg", "terminate", &victim][..],
        &["pg", "cancel", &victim],
        &[
            "pg",
            "terminate",
            "--idle-in-transaction",
            "--longer-than",
            "1ms",
        ],
        &["pg", "terminate", "--roots"],
        &["pg", "cancel", "--roots", "--grace", "1s"],
        &["pg", "rollback-prepared", "payment-4711"],
    ] {
        let run = act(&spec, state.path(), what);
        assert_eq!(run.code, 0, "{what:?}: {run:?}");
        assert!(
            run.stdout.contains("nothing was") || run.stdout.contains("no session to signal"),
            "{run:?}"
        );
    }
    // A yes that doesn't say where is none either: the environment isn't enough.
    for what in [
        &["pg", "terminate", &victim, "--yes"][..],
        &["pg", "rollback-prepared", "payment-4711", "--yes"],
    ] {
        let mut command = harness::command(what);
        command
            .env("XDG_STATE_HOME", state.path())
            .env("PGHOST", &spec.host)
            .env("PGPORT", spec.port.to_string())
            .env("PGUSER", &spec.user)
            .env("PGDATABASE", &spec.database);
        let run = harness::run(command);
        assert_eq!(run.code, 2, "{what:?}: {run:?}");
        assert!(
            format!("{}{}", run.stdout, run.stderr).contains("--yes needs"),
            "{run:?}"
        );
    }
    let bare = harness::run(harness::command(&[
        "pg",
        "terminate",
        "1",
        "--yes",
        "-d",
        "shop",
    ]));
    assert_eq!(bare.code, 64, "{bare:?}");
    assert!(journals(state.path()).is_empty(), "nothing was begun");
    sql(&idle, "SELECT 1").await;
    let left: i64 = idle
        .query_one("SELECT count(*) FROM pg_prepared_xacts", &[])
        .await
        .expect("a count")
        .get(0);
    assert_eq!(left, 1);
}

/// Each end has its own word, and one that is refused doesn't stop the others.
#[tokio::test]
async fn each_in_its_own_word() {
    let server = harness::server(&[("max_wal_senders", "4")]).await;
    let boss = client(&server.spec("postgres", "postgres"), "boss").await;
    for statement in [
        "CREATE DATABASE other",
        "CREATE ROLE app LOGIN",
        "CREATE ROLE weak LOGIN",
        "CREATE ROLE strong LOGIN",
        "GRANT pg_monitor TO weak, strong",
        "GRANT pg_signal_backend TO strong",
    ] {
        sql(&boss, statement).await;
    }
    let app = server.spec("app", "postgres");
    let one = client(&app, "one").await;
    let two = client(&app, "two").await;
    let elsewhere = client(&server.spec("app", "other"), "elsewhere").await;
    let billing = client(&app, "billing").await;
    let (one, two, elsewhere, billing, superuser) = (
        pid(&one).await,
        pid(&two).await,
        pid(&elsewhere).await,
        pid(&billing).await,
        pid(&boss).await,
    );
    drill::until(
        &boss,
        "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'autovacuum launcher'",
    )
    .await
    .expect("the launcher is there");
    let launcher: i64 = boss
        .query_one(
            "SELECT pid::int8 FROM pg_stat_activity WHERE backend_type = 'autovacuum launcher'",
            &[],
        )
        .await
        .expect("the launcher")
        .get(0);
    let standby = harness::start(ServerOptions {
        standby_of: Some(server.spec("postgres", "postgres")),
        ..ServerOptions::default()
    })
    .await;
    // What copied the primary has a walsender too, for a moment more.
    drill::until(
        &boss,
        "SELECT count(*) = 1 AND bool_and(state = 'streaming') FROM pg_stat_replication",
    )
    .await
    .expect("it follows");
    let walsender: i64 = boss
        .query_one("SELECT pid::int8 FROM pg_stat_replication", &[])
        .await
        .expect("the walsender")
        .get(0);
    let state = folder();
    std::fs::write(
        state.path().join("stanch.yaml"),
        format!(
            "targets: {{ prod: {{ db: \"{}\", protect: {{ applications: [billing] }} }} }}",
            server.url("strong", "postgres")
        ),
    )
    .expect("a file");
    let as_user = |user: &str, pids: &[i64]| {
        let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
        let mut args = vec!["pg", "terminate", "--yes", "--json"];
        args.extend(pids.iter().map(String::as_str));
        let mut command = stanch_command(&server.spec(user, "postgres"), &args);
        command
            .env("XDG_STATE_HOME", state.path())
            .current_dir(state.path());
        harness::run(command)
    };
    let word = |run: &Run, pid: i64| {
        let all = outcomes(run);
        all.into_iter()
            .find(|(p, ..)| *p == pid)
            .map(|(_, outcome, why)| (outcome, why))
            .unwrap_or_default()
    };
    // By the server: no right to.
    let run = as_user("weak", &[one]);
    assert_eq!(run.code, 2);
    let (outcome, why) = word(&run, one);
    assert_eq!(outcome, "refused");
    assert!(
        why.contains("42501") && why.contains("pg_signal_backend"),
        "{why}"
    );
    // By the guard, and past it by nothing but the ways it names.
    let run = as_user(
        "strong",
        &[
            superuser, launcher, walsender, elsewhere, billing, 2_000_000, two,
        ],
    );
    assert_eq!(run.code, 2);
    for (pid, want) in [
        (superuser, "superuser's session"),
        (launcher, "autovacuum launcher"),
        (walsender, "walsender"),
        (elsewhere, "in database other"),
        (billing, "protected in stanch.yaml"),
    ] {
        let (outcome, why) = word(&run, pid);
        assert_eq!(outcome, "refused", "{why}");
        assert!(why.contains(want), "{want}: {why}");
    }
    assert_eq!(
        word(&run, two).0,
        "gone",
        "one refused doesn't stop the others"
    );
    assert_eq!(
        word(&run, 2_000_000),
        ("changed".to_owned(), "no such process".to_owned())
    );
    // A superuser's own privilege is the server's to judge.
    let mut args = stanch_command(
        &server.spec("strong", "postgres"),
        &[
            "pg",
            "terminate",
            "--yes",
            "--json",
            "--allow-superuser",
            &superuser.to_string(),
        ],
    );
    args.env("XDG_STATE_HOME", state.path());
    let run = harness::run(args);
    let (outcome, why) = word(&run, superuser);
    assert_eq!(outcome, "refused");
    assert!(why.contains("42501"), "{why}");
    sql(&boss, "SELECT 1").await;
    drop(standby);
}

/// A session that is stopped takes no signal: that is said, with what it waits in.
#[tokio::test]
async fn one_that_ignores_the_signal() {
    let server = harness::server(&[]).await;
    let boss = client(&server.spec("postgres", "postgres"), "boss").await;
    sql(&boss, "CREATE ROLE app LOGIN").await;
    let app = client(&server.spec("app", "postgres"), "app").await;
    let victim = pid(&app).await;
    // It answers before it says that it waits for its client, and stopped between the two it would never say so.
    drill::until(
        &boss,
        &format!("SELECT count(*) = 1 FROM pg_stat_activity WHERE pid = {victim} AND wait_event = 'ClientRead'"),
    )
    .await
    .expect("it waits for its client");
    let kill = |signal: &str| {
        let status = Command::new("kill")
            .args([signal, &victim.to_string()])
            .status()
            .expect("kill runs");
        assert!(status.success());
    };
    kill("-STOP");
    let state = folder();
    let args = [
        "pg",
        "terminate",
        "--yes",
        "--json",
        "--wait",
        "300ms",
        &victim.to_string(),
    ];
    let run = act(&server.spec("postgres", "postgres"), state.path(), &args);
    kill("-CONT");
    assert_eq!(run.code, 2, "{run:?}");
    let [(_, outcome, why)] = outcomes(&run).try_into().expect("one");
    assert_eq!(outcome, "still_alive");
    assert!(
        why.contains("still there after") && why.contains("Client/ClientRead"),
        "{why}"
    );
}

/// A session whose statement catches its cancel, by pid, and somebody who looks on.
async fn stubborn() -> (Server, tokio_postgres::Client, String) {
    let server = harness::server(&[]).await;
    let boss = client(&server.spec("postgres", "postgres"), "boss").await;
    sql(&boss, "CREATE ROLE app LOGIN").await;
    let stubborn = "DO $$ BEGIN LOOP BEGIN PERFORM pg_sleep(5); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END $$";
    let session = client(&server.spec("app", "postgres"), "stubborn").await;
    let victim = pid(&session).await.to_string();
    drill::leave_running(session, stubborn);
    drill::until(
        &boss,
        "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'",
    )
    .await
    .expect("it sleeps");
    (server, boss, victim)
}

/// A statement that catches its cancel is terminated after the grace, where that was asked for; and only there.
#[tokio::test]
async fn cancel_then_terminate() {
    let (server, boss, victim) = stubborn().await;
    let state = folder();
    let spec = server.spec("postgres", "postgres");
    let run = act(
        &spec,
        state.path(),
        &[
            "pg", "cancel", &victim, "--yes", "--json", "--wait", "200ms",
        ],
    );
    assert_eq!(outcomes(&run)[0].1, "still_alive", "{run:?}");
    assert_eq!(run.code, 2);
    let run = act(
        &spec,
        state.path(),
        &[
            "pg", "cancel", &victim, "--yes", "--json", "--grace", "200ms",
        ],
    )
    .expect_code(0);
    let all = outcomes(&run);
    assert_eq!(
        all.last().map(|(_, outcome, _)| outcome.as_str()),
        Some("gone"),
        "{all:?}"
    );
    assert_eq!(run.json()["outcomes"][0]["action"], "terminate");
    // An ordinary one goes at the first word.
    let session = client(&server.spec("app", "postgres"), "ordinary").await;
    let victim = pid(&session).await.to_string();
    let sleeping = tokio::spawn(async move {
        let error = session
            .batch_execute("SELECT pg_sleep(60)")
            .await
            .expect_err("cancelled");
        (
            error.code().map(|code| code.code().to_owned()),
            session.is_closed(),
        )
    });
    drill::until(
        &boss,
        "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'",
    )
    .await
    .expect("it sleeps");
    act(&spec, state.path(), &["pg", "cancel", &victim, "--yes"]).expect_code(0);
    assert_eq!(
        sleeping.await.expect("it ends"),
        (Some("57014".into()), false),
        "the session lives on"
    );
}

/// The prepared transaction that holds everybody up, in its own database; not twice.
#[tokio::test]
async fn a_prepared_transaction() {
    let (server, _scene) = scene(Incident::Prepared).await;
    let spec = server.spec("postgres", "postgres");
    let state = folder();
    let roots = act(
        &admin(&server),
        state.path(),
        &["pg", "terminate", "--roots", "--json"],
    )
    .expect_code(0);
    assert!(
        roots.json()["notes"][0]
            .as_str()
            .expect("a note")
            .contains("payment-4711"),
        "{roots:?}"
    );
    // Whose owner is protected, or a superuser, is left alone.
    let protect = "targets: { t: { db: postgresql://h/d, protect: { users: [app_rw] } } }";
    std::fs::create_dir_all(state.path().join("stanch")).expect("a folder");
    std::fs::write(state.path().join("stanch/stanch.yaml"), protect).expect("a file");
    let mut command = stanch_command(
        &spec,
        &["pg", "rollback-prepared", "payment-4711", "--yes", "--json"],
    );
    command
        .env("XDG_STATE_HOME", state.path())
        .env("XDG_CONFIG_HOME", state.path());
    let run = harness::run(command);
    assert_eq!(run.code, 2, "{run:?}");
    let refused = run.json()["outcomes"][0].clone();
    assert_eq!(
        (refused["outcome"].as_str(), refused["gid"].as_str()),
        (Some("refused"), Some("payment-4711"))
    );
    assert!(
        refused["reason"]
            .as_str()
            .expect("why")
            .contains("protected"),
        "{refused}"
    );
    let run = act(
        &spec,
        state.path(),
        &["pg", "rollback-prepared", "payment-4711", "--yes"],
    )
    .expect_code(0);
    assert!(run.stdout.contains("payment-4711  gone"), "{run:?}");
    let watcher = client(&admin(&server), "watcher").await;
    drill::until(
        &watcher,
        "SELECT count(*) = 0 FROM pg_locks WHERE NOT granted",
    )
    .await
    .expect("they go on");
    let again = act(
        &spec,
        state.path(),
        &["pg", "rollback-prepared", "payment-4711", "--yes"],
    );
    assert_eq!(again.code, 2);
    let [journal] = journals(state.path()).try_into().expect("one journal");
    let records = journal::read(&journal).expect("a sound journal");
    assert!(records.iter().any(|r| matches!(
        &r.event,
        Event::EffectResult {
            outcome: Outcome::Gone,
            ..
        }
    )));
}

/// The question is answered with each of `typed`.
fn at_terminal(server: &Server, state: &Path, what: &str, typed: &[&str]) -> (Option<i32>, String) {
    let answers: Vec<_> = typed
        .iter()
        .map(|text| ("anything else leaves it:", *text))
        .collect();
    harness::at_terminal(&server.spec("postgres", "postgres"), state, what, &answers)
}

/// At a terminal the target's name is typed; anything else leaves everything as it is, Ctrl-C too.
#[tokio::test]
async fn the_name_is_typed() {
    let server = harness::server(&[]).await;
    let boss = client(&server.spec("postgres", "postgres"), "boss").await;
    sql(&boss, "CREATE ROLE app LOGIN").await;
    let app = client(&server.spec("app", "postgres"), "app").await;
    let what = format!("pg terminate {}", pid(&app).await);
    let state = folder();
    for wrong in ["yes\n", "y\n", "postgres\n", "\n"] {
        let (code, shown) = at_terminal(&server, state.path(), &what, &[wrong]);
        assert_eq!(code, Some(5), "{wrong}: {shown}");
        assert!(shown.contains("nothing was done"), "{wrong}: {shown}");
    }
    // Ctrl-C at the question ends the program; what is typed after it reaches nobody.
    let (code, shown) = at_terminal(&server, state.path(), &what, &["\u{3}"]);
    assert_ne!(code, Some(0), "{shown}");
    assert!(journals(state.path()).is_empty());
    sql(&app, "SELECT 1").await;
    let name = format!("postgres@{}:{}\n", server.folder().display(), server.port());
    let (code, shown) = at_terminal(&server, state.path(), &what, &[&name]);
    assert_eq!(code, Some(0), "{shown}");
    assert!(
        shown.contains("terminate") && shown.contains("gone"),
        "{shown}"
    );
}

/// Ctrl-C once ends it after the batch, twice at once, and nothing stronger is sent after it.
#[tokio::test]
async fn a_stop_is_a_stop() {
    let (server, boss, victim) = stubborn().await;
    let state = folder();
    let spec = server.spec("postgres", "postgres");
    let args = ["pg", "cancel", &victim, "--yes", "--json", "--grace", "30s"];
    let mut command = stanch_command(&spec, &args);
    command
        .env("XDG_STATE_HOME", state.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null());
    let child = command.spawn().expect("it runs");
    let own = child.id().to_string();
    harness::eventually("the intent is on disk", || {
        journals(state.path()).first().is_some_and(|journal| {
            std::fs::read_to_string(journal).is_ok_and(|text| text.contains("effect_intent"))
        })
    })
    .await;
    let started = std::time::Instant::now();
    // Two of a kind would be one, if they come before it looks.
    for signal in ["-INT", "-TERM"] {
        Command::new("kill")
            .args([signal, &own])
            .status()
            .expect("kill runs");
    }
    let output = tokio::task::spawn_blocking(move || child.wait_with_output())
        .await
        .expect("it ends")
        .expect("its output");
    assert!(started.elapsed() < Duration::from_secs(60), "now is now");
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        json["outcomes"].as_array().expect("outcomes").len(),
        1,
        "no stronger signal: {json:#}"
    );
    assert_eq!(json["outcomes"][0]["outcome"], "still_alive");
    assert_eq!(json["stopped"], "stopped by the operator");
    drill::until(
        &boss,
        "SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'stubborn'",
    )
    .await
    .expect("it lives");
    let records = journal::read(&journals(state.path())[0]).expect("a sound journal");
    assert!(
        records
            .iter()
            .any(|r| matches!(&r.event, Event::Stopped { .. })),
        "{records:#?}"
    );
}

/// What changes while the question stands is looked at again in the statement that signals.
#[tokio::test]
async fn the_rules_hold_at_the_signal_too() {
    let server = harness::server(&[]).await;
    let boss = client(&server.spec("postgres", "postgres"), "boss").await;
    sql(&boss, "CREATE ROLE app LOGIN").await;
    let actor = connected(&server.spec("postgres", "postgres")).await;
    let app = client(&server.spec("app", "postgres"), "victim").await;
    let listed = session(
        &round(&actor, Parts::ALL, ROUND).await.expect("a round"),
        "victim",
    )
    .expect("the victim");
    sql(&app, "SET application_name = 'billing'").await;
    let facts = Facts {
        own_pid: 0,
        database: "postgres".into(),
    };
    let policy = Policy {
        max: 10,
        protected_applications: vec!["billing".into()],
        ..Policy::default()
    };
    let candidate = Candidate {
        session: listed.clone(),
        choice: Choice::Pid,
    };
    let guarded = guard(vec![candidate], Verb::Terminate, &facts, &policy);
    let approved = guarded
        .approve(&Consent::Typed("t".into()), "t")
        .expect("approved");
    let signal = approved.get(0).expect("one");
    let (outcome, _) = send(&actor.client, &signal, Duration::from_secs(5), &|| false).await;
    assert!(
        matches!(&outcome, Outcome::Refused(why) if why.contains("protected")),
        "{outcome:?}"
    );
    sql(&app, "SELECT 1").await;
    // A commit that waits for a standby stands already: there is none, so it waits.
    sql(&boss, "CREATE TABLE t (n int); GRANT ALL ON t TO app").await;
    sql(
        &boss,
        "ALTER SYSTEM SET synchronous_standby_names = 'nobody'",
    )
    .await;
    sql(&boss, "SELECT pg_reload_conf()").await;
    drill::until(
        &boss,
        "SELECT setting = 'nobody' FROM pg_settings WHERE name = 'synchronous_standby_names'",
    )
    .await
    .expect("reloaded");
    // A commit waits only once the checkpointer has heard of it too: one that commits on and on tells when.
    let probe = client(&server.spec("postgres", "postgres"), "probe").await;
    drill::leave_running(
        probe,
        "DO $$ BEGIN LOOP INSERT INTO t VALUES (0); COMMIT; END LOOP; END $$",
    );
    let waits = |sessions: u32| {
        format!("SELECT count(*) = {sessions} FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
    };
    drill::until(&boss, &waits(1)).await.expect("commits wait");
    sql(&app, "SET application_name = 'victim'").await;
    sql(&app, "BEGIN; INSERT INTO t VALUES (1)").await;
    let listed = session(
        &round(&actor, Parts::ALL, ROUND).await.expect("a round"),
        "victim",
    )
    .expect("the victim");
    drill::leave_running(app, "COMMIT");
    drill::until(&boss, &waits(2)).await.expect("it waits");
    for choice in [Choice::Pid, Choice::Transaction] {
        let outcome = signalled(&actor, listed.clone(), Verb::Terminate, choice)
            .await
            .expect("allowed");
        assert!(
            matches!(&outcome, Outcome::Changed(why) if why.contains("--allow-syncrep")),
            "{outcome:?}"
        );
    }
    actor.close().await;
}

/// The second operator is told of the first.
#[tokio::test]
async fn one_operator_at_a_time() {
    let server = harness::server(&[]).await;
    let spec = server.spec("postgres", "postgres");
    let state = folder();
    let boss = client(&spec, "boss").await;
    let identity: String = boss
        .query_one(
            "SELECT system_identifier::text FROM pg_control_system()",
            &[],
        )
        .await
        .expect("an identity")
        .get(0);
    let locks = state.path().join("stanch/locks");
    let held =
        stanch::journal::TargetLock::take(&locks, &identity, "ada since noon").expect("the lock");
    let run = act(&spec, state.path(), &["pg", "terminate", "1", "--yes"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("ada since noon"), "{run:?}");
    drop(held);
    act(
        &spec,
        state.path(),
        &["pg", "terminate", "2000000", "--yes"],
    );
}

fn session(snapshot: &Snapshot, application: &str) -> Option<Session> {
    let all = snapshot.activity.rows().iter();
    all.into_iter()
        .find(|s| s.application_name.as_deref() == Some(application))
        .cloned()
}

/// One session, guarded and approved, as the engine does it.
async fn signalled(
    actor: &Connected,
    session: Session,
    verb: Verb,
    choice: Choice,
) -> Result<Outcome, String> {
    let facts = Facts {
        own_pid: 0,
        database: "postgres".into(),
    };
    let policy = Policy {
        max: 10,
        ..Policy::default()
    };
    let guarded = guard(vec![Candidate { session, choice }], verb, &facts, &policy);
    if let Some((_, outcome)) = guarded.refused.first() {
        return Err(outcome.reason().unwrap_or_default().to_owned());
    }
    let approved = guarded.approve(&Consent::Typed("t".into()), "t")?;
    let signal = approved.get(0).ok_or("nothing approved")?;
    Ok(
        send(&actor.client, &signal, Duration::from_secs(5), &|| false)
            .await
            .0,
    )
}

/// What moved on between the list and the signal is left alone: its transaction, its statement, its pid.
#[tokio::test]
async fn what_moved_on_is_left_alone() {
    let server = harness::server(&[]).await;
    let boss = client(&server.spec("postgres", "postgres"), "boss").await;
    sql(&boss, "CREATE ROLE app LOGIN").await;
    let actor = connected(&server.spec("postgres", "postgres")).await;
    let app = client(&server.spec("app", "postgres"), "victim").await;
    sql(&app, "BEGIN; SELECT 1").await;
    let listed = session(
        &round(&actor, Parts::ALL, ROUND).await.expect("a round"),
        "victim",
    )
    .expect("the victim");
    // It goes on in its transaction: as idle it isn't meant any more, as this transaction it still is.
    sql(&app, "SELECT 2").await;
    let outcome = signalled(
        &actor,
        listed.clone(),
        Verb::Terminate,
        Choice::IdleTransaction,
    )
    .await
    .expect("allowed");
    assert_eq!(
        outcome,
        Outcome::Changed("it goes on in its transaction".into())
    );
    sql(&app, "COMMIT; BEGIN; SELECT 1").await;
    for choice in [Choice::Transaction, Choice::IdleTransaction] {
        let outcome = signalled(&actor, listed.clone(), Verb::Terminate, choice)
            .await
            .expect("allowed");
        assert_eq!(
            outcome,
            Outcome::Changed("its transaction had ended by itself".into())
        );
    }
    // A transaction that has failed is named by its state: once it has been left, the session isn't meant any more.
    assert!(app.batch_execute("SELECT 1 / 0").await.is_err());
    let look = round(&actor, Parts::ALL, ROUND).await.expect("a round");
    let failed = session(&look, "victim").expect("the victim");
    assert_eq!(failed.xact_start, None, "a failed transaction has no start");
    sql(&app, "ROLLBACK; BEGIN; SELECT 1").await;
    let outcome = signalled(&actor, failed, Verb::Terminate, Choice::IdleTransaction)
        .await
        .expect("allowed");
    let left = "it has left its failed transaction by itself";
    assert_eq!(outcome, Outcome::Changed(left.into()));
    // Its pid is another's: no server reuses one on demand, so the list is older than the session.
    let mut reused = listed.clone();
    reused.id.backend_start = reused.xact_start;
    let outcome = signalled(&actor, reused, Verb::Terminate, Choice::Pid)
        .await
        .expect("allowed");
    assert_eq!(
        outcome,
        Outcome::Changed("the pid is another session's by now".into())
    );
    sql(&app, "COMMIT").await;
    drill::leave(app).await.expect("it ends");
    let outcome = signalled(&actor, listed, Verb::Terminate, Choice::Pid)
        .await
        .expect("allowed");
    assert_eq!(outcome, Outcome::Changed("it had ended by itself".into()));
    actor.close().await;
}

/// Sessions that come and go while they are listed and signalled: ten thousand times, and never another one than meant.
///
/// Nor another transaction than meant, but for one moment: PostgreSQL reads who a backend is and signals it in two steps of
/// one statement, and a transaction may end, and the next begin, between them. Such a next one is younger than the signal's
/// statement, which is asserted of each: one that was there before is never hit.
#[tokio::test]
async fn ten_thousand_races() {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex};
    const RACES: usize = 10_000;
    const VICTIMS: usize = 12;
    /// A session: pid and start, in microseconds of the server's clock, which is this machine's.
    type Who = (i32, i64);
    struct Ended {
        who: Who,
        /// When the transaction began that it was ended in: at the earliest, and exactly where the server could tell.
        since: i64,
        xact: Option<i64>,
        writes: bool,
    }
    struct Approved {
        who: Who,
        xact: Option<i64>,
        /// When the signal was asked for.
        asked: i64,
    }
    let now = || chrono::Utc::now().timestamp_micros();
    let server = harness::server(&[("max_connections", "40")]).await;
    let boss = client(&server.spec("postgres", "postgres"), "boss").await;
    sql(&boss, "CREATE ROLE app LOGIN").await;
    let ended: Arc<Mutex<Vec<Ended>>> = Arc::default();
    let over = Arc::new(AtomicBool::new(false));
    let mut victims = Vec::new();
    for n in 0..VICTIMS {
        let (spec, ended, over) = (
            server.spec("app", "postgres"),
            Arc::clone(&ended),
            Arc::clone(&over),
        );
        victims.push(tokio::spawn(async move {
            while !over.load(Ordering::Relaxed) {
                let Ok(client) = drill::connect(&spec, &format!("v{n}")).await else { continue };
                let born = "SELECT pid, (extract(epoch FROM backend_start) * 1000000)::int8 FROM pg_stat_activity WHERE pid = pg_backend_pid()";
                let Ok(row) = client.query_one(born, &[]).await else { continue };
                let who = (row.get(0), row.get(1));
                // Transactions come and go in a session that lives on, as a pool's do; some sessions end by themselves.
                for turn in 0..40 {
                    let since = now();
                    // Every second one writes.
                    let begin = if n % 2 == 0 { "BEGIN; SELECT txid_current()" } else { "BEGIN" };
                    let Ok(()) = client.batch_execute(begin).await else { break };
                    let begun = "SELECT (extract(epoch FROM xact_start) * 1000000)::int8 FROM pg_stat_activity WHERE pid = pg_backend_pid()";
                    let xact = client.query_one(begun, &[]).await.ok().map(|row| row.get::<_, i64>(0));
                    tokio::time::sleep(Duration::from_micros(rand::random_range(0..4000))).await;
                    // Whoever is ended learns of it here, in the transaction that it was ended in.
                    let held = client.batch_execute("SELECT 1").await.is_ok() && !client.is_closed();
                    if !held || client.batch_execute("COMMIT").await.is_err() {
                        ended.lock().expect("the list").push(Ended { who, since, xact, writes: n % 2 == 0 });
                        break;
                    }
                    if turn == 39 || over.load(Ordering::Relaxed) {
                        break;
                    }
                }
            }
        }));
    }
    let actor = connected(&server.spec("postgres", "postgres")).await;
    let mut approved: Vec<Approved> = Vec::new();
    let mut races = 0;
    while races < RACES {
        let snapshot = round(&actor, Parts::of(&[stanch::model::Part::Activity]), ROUND)
            .await
            .expect("a round");
        let sessions: Vec<Session> = snapshot
            .activity
            .rows()
            .iter()
            .filter(|s| s.user.as_deref() == Some("app"))
            .cloned()
            .collect();
        for mut session in sessions {
            races += 1;
            // A list from before the pid was this session's.
            let stale = rand::random_range(0..10) == 0;
            if stale {
                session.id.backend_start = session.id.backend_start.map(|at| {
                    stanch::model::Timestamp::new(at.utc() - chrono::Duration::microseconds(1))
                });
            }
            let micros =
                |at: Option<stanch::model::Timestamp>| at.map(|at| at.utc().timestamp_micros());
            let (pid, start) = (session.id.pid.0, micros(session.id.backend_start));
            let meant = Approved {
                who: (pid, start.unwrap_or(0)),
                xact: micros(session.xact_start),
                asked: now(),
            };
            let (Ok(outcome), true) = (
                signalled(&actor, session, Verb::Terminate, Choice::Transaction).await,
                !stale,
            ) else {
                continue;
            };
            match outcome {
                Outcome::Gone | Outcome::StillAlive(_) => approved.push(meant),
                Outcome::Changed(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }
    over.store(true, Ordering::Relaxed);
    for victim in victims {
        victim.await.expect("a victim");
    }
    actor.close().await;
    let ended = ended.lock().expect("the list");
    // Of those that write, and of those that only read.
    let (mut late, mut all) = ([0, 0], [0, 0]);
    for victim in ended.iter() {
        let (who, kind) = (victim.who, usize::from(!victim.writes));
        let meant = (approved.iter().find(|meant| meant.who == who))
            .unwrap_or_else(|| panic!("{who:?} was ended and wasn't approved"));
        let same = match victim.xact {
            Some(xact) => Some(xact) == meant.xact,
            // Ended before the server could tell: nothing of this session had begun after `since` but this.
            None => meant.xact.is_some_and(|xact| xact >= victim.since),
        };
        all[kind] += 1;
        late[kind] += usize::from(!same);
        assert!(
            same || victim.xact.unwrap_or(i64::MAX) >= meant.asked,
            "{who:?} was ended in {:?}, which was there before the signal at {}: meant was {:?}",
            victim.xact,
            meant.asked,
            meant.xact
        );
    }
    let gone = approved.len();
    // What writes is looked at once more, right before the signal; of what only reads, the server tells no more. Here a
    // transaction lasts a few milliseconds: what anybody ends in earnest has lasted thousands of times longer.
    assert!(late[0] <= 1, "{late:?} of {all:?}");
    assert!(late[1] * 20 <= all[1], "{late:?} of {all:?}");
    assert!(gone > 200, "{gone} of {races} were signalled");
    assert!(!ended.is_empty());
    assert!(
        races - gone > 200,
        "{races} races, {gone} signalled: too few moved on"
    );
}

/// Also where transaction ids have gone round: a backend's has 32 bits, and the server's has 64.
#[tokio::test]
async fn a_writer_of_another_epoch() {
    // Not every version here comes with the tool.
    let with_tool = harness::bin_dirs().into_iter();
    let with_tool = with_tool.filter(|(_, bin_dir)| bin_dir.join("pg_resetwal").exists());
    let with_tool: Vec<_> = with_tool.collect();
    assert!(!with_tool.is_empty(), "the system's PostgreSQL has it");
    for (major, bin_dir) in with_tool {
        let server: Server = harness::start(ServerOptions {
            bin_dir,
            ..ServerOptions::default()
        })
        .await;
        let boss = client(&server.spec("postgres", "postgres"), "boss").await;
        sql(&boss, "CREATE ROLE app LOGIN").await;
        sql(&boss, "CHECKPOINT").await;
        drill::leave(boss).await.expect("it ends");
        Command::new("kill")
            .args(["-INT", &server.pid().to_string()])
            .status()
            .expect("kill runs");
        let data = server.folder().join("data");
        harness::eventually("the server is down", || {
            !data.join("postmaster.pid").exists()
        })
        .await;
        let reset = server.bin_dir().join("pg_resetwal");
        let args = ["-e", "7", "-D", data.to_str().expect("a path")];
        let mut reset = server
            .spawn_beside(&reset, &args, "resetwal")
            .expect("it starts");
        assert!(reset.wait().expect("it ends").success(), "{major}");
        let server = server.restart().await.expect("it comes back");

        let app = client(&server.spec("app", "postgres"), "app").await;
        let actor = connected(&server.spec("postgres", "postgres")).await;
        sql(&app, "BEGIN; SELECT txid_current()").await;
        let row = app
            .query_one("SELECT txid_current() >> 32", &[])
            .await
            .expect("its id");
        assert_eq!(row.get::<_, i64>(0), 7, "{major}");
        let look = round(&actor, Parts::ALL, ROUND).await.expect("a round");
        let listed = session(&look, "app").expect("the writer");
        assert!(listed.backend_xid.is_some(), "{major}");
        let outcome = signalled(&actor, listed, Verb::Terminate, Choice::Transaction).await;
        assert_eq!(outcome, Ok(Outcome::Gone), "{major}");
        actor.close().await;
    }
}

/// A server of each kind of text: what it says to a login without the right.
#[tokio::test]
async fn every_versions_refusal() {
    for (major, bin_dir) in harness::bin_dirs() {
        let server: Server = harness::start(ServerOptions {
            bin_dir,
            ..ServerOptions::default()
        })
        .await;
        let boss = client(&server.spec("postgres", "postgres"), "boss").await;
        sql(&boss, "CREATE ROLE app LOGIN; CREATE ROLE weak LOGIN").await;
        sql(&boss, "GRANT pg_monitor TO weak").await;
        let app = client(&server.spec("app", "postgres"), "app").await;
        let victim = pid(&app).await.to_string();
        let state = folder();
        let args = ["pg", "terminate", "--yes", "--json", &victim];
        let run = act(&server.spec("weak", "postgres"), state.path(), &args);
        let [(_, outcome, why)] = outcomes(&run).try_into().expect("one");
        assert_eq!(
            (run.code, outcome.as_str()),
            (2, "refused"),
            "{major}: {why}"
        );
        assert!(
            why.contains("pg_signal_backend") && why.contains("42501"),
            "{major}: {why}"
        );
        let json: Value = run.json();
        assert_eq!(json["schema"], "stanch.actions/1");
        act(&server.spec("postgres", "postgres"), state.path(), &args).expect_code(0);
    }
}
