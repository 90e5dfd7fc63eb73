//! Behind PgBouncer in transaction mode: everything that reads works, and nothing stays on the server connection.

use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use stanch::drill::{self, Incident, Scene, Server, ServerOptions, find_tool};
use stanch::source::postgres::ConnSpec;
use tokio_postgres::SimpleQueryMessage;

use crate::harness::{
    REPORTS, Run, admin, client, command, folder, path, run, scene, stanch_as, stanch_command,
    start,
};

struct Pooler(Child);

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One server connection for everyone, over a socket in the drill's own folder.
async fn start_pooler(server: &Server) -> (Pooler, ConnSpec) {
    let program = find_tool(&path(), "pgbouncer").expect("PgBouncer; `make servers` installs it");
    let folder = server.folder().display().to_string();
    let port = server.port() + 1;
    let users = server
        .write_file("users.txt", "\"postgres\" \"\"\n\"app_rw\" \"\"\n")
        .expect("a file");
    let ini = format!(
        "[databases]\nshop = host={folder} port={}\ngone = host={folder} port=1\n[pgbouncer]\nlisten_addr =\nlisten_port = {port}\n\
         unix_socket_dir = {folder}\nauth_type = trust\nauth_file = {}\npool_mode = transaction\n\
         default_pool_size = 1\nmax_client_conn = 20\nadmin_users = postgres\n",
        server.port(),
        users.display()
    );
    let ini = server.write_file("pgbouncer.ini", &ini).expect("a file");
    let child = server
        .spawn_beside(&program, &[&ini.display().to_string()], "pgbouncer.log")
        .expect("PgBouncer starts");
    let pooler = Pooler(child);
    let spec = ConnSpec {
        port,
        ..server.spec("postgres", Scene::database())
    };
    let socket = spec.socket().expect("a socket");
    let give_up = Instant::now() + Duration::from_secs(10);
    while !std::path::Path::new(&socket).exists() {
        assert!(Instant::now() < give_up, "PgBouncer doesn't come up");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    (pooler, spec)
}

async fn pooler(server: &Server) -> (Pooler, ConnSpec) {
    let (pooler, spec) = start_pooler(server).await;
    let give_up = Instant::now() + Duration::from_secs(10);
    while stanch::drill::connect(&spec, "").await.is_err() {
        let log =
            std::fs::read_to_string(server.folder().join("pgbouncer.log")).unwrap_or_default();
        assert!(Instant::now() < give_up, "PgBouncer doesn't come up: {log}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    (pooler, spec)
}

/// All that a session could have left behind, seen through the pooler and from the side.
async fn state(pooled: &ConnSpec, direct: &ConnSpec) -> Vec<String> {
    let through = client(pooled, "").await;
    let mut seen = Vec::new();
    let queries = [
        "SELECT name || '=' || setting || ' ' || source FROM pg_settings WHERE name <> 'application_name' ORDER BY 1",
        "SELECT 'prepared ' || name FROM pg_prepared_statements",
        "SELECT 'backend ' || pg_backend_pid()",
    ];
    for query in queries {
        let rows = through.simple_query(query).await.expect("an answer");
        for row in rows {
            if let tokio_postgres::SimpleQueryMessage::Row(row) = row {
                seen.push(row.get(0).unwrap_or_default().to_owned());
            }
        }
    }
    let side = client(direct, "side").await;
    let rows = side
        .query_typed(
            "SELECT pid, application_name, state, xact_start IS NULL FROM pg_stat_activity \
             WHERE backend_type = 'client backend' AND application_name NOT IN ('side', 'web')",
            &[],
        )
        .await
        .expect("activity");
    for row in rows {
        seen.push(format!(
            "session {} {:?} {} {}",
            row.get::<_, i32>(0),
            row.get::<_, String>(1),
            row.get::<_, String>(2),
            row.get::<_, bool>(3)
        ));
    }
    seen
}

#[tokio::test]
async fn every_reading_subcommand_and_nothing_stays() {
    let (server, _scene) = scene(Incident::Storm).await;
    let (_pooler, pooled) = pooler(&server).await;
    let before = state(&pooled, &admin(&server)).await;
    assert!(
        before
            .iter()
            .any(|line| line.starts_with("statement_timeout=0 ")),
        "{before:#?}"
    );
    for what in REPORTS {
        let report = stanch_as(&pooled, &[what, &["--json"]].concat());
        assert!(report.code <= 1, "{what:?}: {report:?}");
        let json = report.json();
        assert_eq!(json["target"]["via_pooler"], true, "{what:?}");
        for (name, section) in json["coverage"]["sections"].as_object().expect("sections") {
            assert_eq!(section["status"], "collected", "{what:?} {name}: {section}");
        }
        assert_eq!(
            state(&pooled, &admin(&server)).await,
            before,
            "after {what:?}"
        );
    }
    for query in stanch::source::postgres::catalog::all() {
        stanch_as(&pooled, &["query", "run", query.name]).expect_code(0);
        assert_eq!(
            state(&pooled, &admin(&server)).await,
            before,
            "after {}",
            query.name
        );
    }
    let triage = stanch_as(&pooled, &["triage"]).stdout;
    assert!(
        triage.contains("through a pooler") && triage.contains("the pooler's own queue isn't seen"),
        "{triage}"
    );
    let direct = stanch_as(&admin(&server), &["doctor", "--json"])
        .expect_code(0)
        .json();
    assert_eq!(direct["target"]["via_pooler"], false);
}

/// A pooler that has no connection left for its clients says so by itself.
#[tokio::test]
async fn a_pooler_that_is_full() {
    let (server, _scene) = scene(Incident::Storm).await;
    let (_pooler, pooled) = pooler(&server).await;
    let mut all = Vec::new();
    while let Ok(client) = stanch::drill::connect(&pooled, "").await {
        all.push(client);
        assert!(all.len() < 100);
    }
    let run = stanch_as(&pooled, &["pg", "activity", "--wait-slot", "0s"]).expect_code(3);
    assert!(
        run.stderr.contains("the pooler has no connection to give"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("past the pooler"), "{}", run.stderr);
}

/// A pooler whose one server connection is busy logs a client in and then stays silent.
#[tokio::test]
async fn a_pooler_that_stays_silent() {
    let (server, _scene) = scene(Incident::Storm).await;
    let (_pooler, pooled) = pooler(&server).await;
    let hog = client(&pooled, "").await;
    hog.batch_execute("BEGIN").await.expect("a transaction");
    let run = stanch_as(&pooled, &["pg", "activity", "--connect-timeout", "3s"]).expect_code(3);
    assert!(
        run.stderr.contains("waiting for the first answer"),
        "{}",
        run.stderr
    );
    assert!(
        run.stderr
            .contains("a pooler without a free server connection"),
        "{}",
        run.stderr
    );
}

/// The server is full, and the pooler in front of it says so in its own way: that is want of a slot too.
#[tokio::test]
async fn a_full_server_behind_a_pooler() {
    let (server, _scene) = scene(Incident::Exhaustion).await;
    let (_pooler, pooled) = start_pooler(&server).await;
    let app = ConnSpec {
        user: "app_rw".into(),
        ..pooled
    };
    let triage = stanch_as(&app, &["triage", "--json", "--wait-slot", "600ms"]).expect_code(2);
    assert!(
        triage
            .stderr
            .contains("the pooler has no connection to give"),
        "{}",
        triage.stderr
    );
    assert!(triage.stderr.contains("knocking for"), "{}", triage.stderr);
    assert_eq!(triage.json()["findings"][0]["id"], "conn.exhausted");
    // From now on it holds logins back until it tries its server again: silence proves nothing.
    let run = stanch_as(&app, &["pg", "activity", "--connect-timeout", "1s"]).expect_code(3);
    assert!(
        run.stderr
            .contains("a pooler without a free server connection"),
        "{}",
        run.stderr
    );
}

/// `-d prod`, with the pooler's console beside the server itself.
fn target(home: &Path, direct: &ConnSpec, console: &str, what: &[&str]) -> Run {
    let db = format!(
        "host={} port={} user={} dbname={}",
        direct.host, direct.port, direct.user, direct.database
    );
    let yaml = format!("targets: {{ prod: {{ db: \"{db}\", pgbouncer: \"{console}\" }} }}\n");
    std::fs::write(home.join("stanch.yaml"), yaml).expect("a file");
    let mut command = command(&[what, &["-d", "prod"]].concat());
    command.current_dir(home).env("XDG_STATE_HOME", home);
    run(command)
}

/// A client that asks for something, and waits until a server connection is to be had.
fn waiter(pooled: &ConnSpec) -> tokio::task::JoinHandle<()> {
    let pooled = pooled.clone();
    tokio::spawn(async move {
        let client = client(&pooled, "").await;
        client.simple_query("SELECT 1").await.expect("an answer");
    })
}

/// Until a client waits in the pool of this database, and for a second where the pool tells for how long.
async fn queued(pooled: &ConnSpec, database: &str, seconds: u64) {
    let console = ConnSpec {
        database: "pgbouncer".into(),
        ..pooled.clone()
    };
    let console = drill::connect(&console, "").await.expect("the console");
    let give_up = Instant::now() + Duration::from_secs(60);
    loop {
        let rows = console.simple_query("SHOW POOLS").await.expect("the pools");
        let waits = rows.iter().any(|row| {
            let SimpleQueryMessage::Row(row) = row else {
                return false;
            };
            let number = |name: &str| row.get(name).and_then(|text| text.parse().ok());
            row.get("database") == Some(database)
                && number("cl_waiting") >= Some(1_u64)
                && number("maxwait") >= Some(seconds)
        });
        if waits {
            return;
        }
        assert!(Instant::now() < give_up, "nobody waits in {database}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Clients queue at the pooler while the server looks idle: seen by its console, live and replayed.
#[tokio::test]
async fn clients_that_wait_at_the_pooler() {
    let (server, _scene) = scene(Incident::Storm).await;
    let (_pooler, pooled) = pooler(&server).await;
    let direct = admin(&server);
    let console = console_of(&pooled);
    let home = folder();
    let saved = home.path().join("saved").display().to_string();
    let quiet = target(
        home.path(),
        &direct,
        &console,
        &["pg", "connections", "--json"],
    );
    let pool = &quiet.json()["pooler"]["pools"][0];
    assert_eq!(pool["clients_waiting"], 0, "{quiet:?}");
    assert_eq!(pool["size"], 1, "{quiet:?}");

    let hog = client(&pooled, "").await;
    hog.batch_execute("BEGIN").await.expect("a transaction");
    let waiting = waiter(&pooled);
    queued(&pooled, "shop", 1).await;
    let args = ["triage", "--json", "--save", &saved];
    let told = target(home.path(), &direct, &console, &args).json();
    let found = told["findings"].as_array().expect("findings");
    let found = found.iter().find(|finding| finding["id"] == "pool.waiting");
    let found = found.unwrap_or_else(|| panic!("{told:#}"));
    assert_eq!(found["severity"], "warning");
    assert_eq!(told["summary"]["pooler_waiting"], 1);
    let evidence = found["evidence"][0].as_str().expect("a text");
    assert!(
        evidence.starts_with("shop as postgres: 1 client waiting, the longest for ")
            && evidence.contains("its one server connection is in use: a transaction holds it"),
        "{evidence}"
    );
    let table = target(
        home.path(),
        &direct,
        &console,
        &["pg", "connections", "--save", &saved],
    );
    assert!(table.stdout.contains("PgBouncer 1."), "{table:?}");
    assert!(table.stdout.contains("pool of"), "{table:?}");
    // What was saved tells the same, also of the first of the two.
    let again = run(command(&["pg", "connections", "--from", &saved]));
    assert_eq!(again.stdout, table.stdout);

    // Paused, nobody gets on; the console stays open.
    hog.batch_execute("COMMIT").await.expect("it ends");
    waiting.await.expect("it ends");
    drop(hog);
    let boss = ConnSpec {
        database: "pgbouncer".into(),
        ..pooled.clone()
    };
    let boss = drill::connect(&boss, "").await.expect("the console");
    boss.simple_query("PAUSE shop").await.expect("paused");
    let waiting = waiter(&pooled);
    queued(&pooled, "shop", 1).await;
    let out = home.path().display().to_string();
    let args = ["capture", "--out", &out, "--json"];
    let captured = target(home.path(), &direct, &console, &args)
        .expect_code(0)
        .json();
    let bundle = captured["path"].as_str().expect("a path");
    let again = run(command(&["triage", "--from", bundle]));
    assert!(again.stdout.contains("pool.waiting"), "{again:?}");
    assert!(again.stdout.contains("paused in the pooler"), "{again:?}");
    boss.simple_query("RESUME shop").await.expect("resumed");
    waiting.await.expect("it ends");

    // A console that can't be reached is said, and costs nothing else.
    let nobody = console.replace(&format!("port={}", pooled.port), "port=1");
    let triage = target(home.path(), &direct, &nobody, &["triage", "--json"]);
    let unknown = triage.json()["unknown"].to_string();
    assert!(
        unknown.contains("pool.waiting: PgBouncer's console"),
        "{unknown}"
    );
    let table = target(home.path(), &direct, &nobody, &["pg", "connections"]);
    assert!(table.stdout.contains("PgBouncer's console"), "{table:?}");
    assert_eq!(table.code, 0, "{table:?}");
}

fn console_of(pooled: &ConnSpec) -> String {
    format!(
        "host={} port={} user=postgres dbname=pgbouncer",
        pooled.host, pooled.port
    )
}

/// What can't be seen isn't nothing: in the table, in the code, and by which console it is.
#[tokio::test]
async fn a_pooler_that_cannot_be_looked_at() {
    let server = start(ServerOptions::default()).await;
    let direct = server.spec(server.superuser(), "postgres");
    let home = folder();
    let nobody = format!("host={} port=1 user=postgres dbname=pgbouncer", direct.host);
    let table = target(home.path(), &direct, &nobody, &["triage"]).expect_code(3);
    assert!(
        table
            .stdout
            .contains("the pooler couldn't be looked at: PgBouncer's console: no connection"),
        "{table:?}"
    );
    assert!(
        table.stdout.contains("the pooler's own queue isn't seen"),
        "{table:?}"
    );
    let check = target(home.path(), &direct, &nobody, &["triage", "--check"]).expect_code(3);
    assert!(check.stdout.contains("TRIAGE UNKNOWN"), "{check:?}");
    assert!(check.stdout.contains("pool.waiting"), "{check:?}");

    // A server isn't a console, also where it has the database.
    let server_itself = nobody.replace("port=1 ", &format!("port={} ", direct.port));
    let server_itself = server_itself.replace("dbname=pgbouncer", "dbname=postgres");
    let wrong = target(home.path(), &direct, &server_itself, &["triage"]).expect_code(3);
    assert!(
        wrong.stdout.contains("that is no console of PgBouncer"),
        "{wrong:?}"
    );
}

/// Without a database the console's own is meant, and not the one of the environment.
#[tokio::test]
async fn a_console_without_a_database() {
    let (server, _scene) = scene(Incident::Storm).await;
    let (_pooler, pooled) = pooler(&server).await;
    let home = folder();
    let console = format!("host={} port={} user=postgres", pooled.host, pooled.port);
    let direct = admin(&server);
    let json = target(
        home.path(),
        &direct,
        &console,
        &["pg", "connections", "--json"],
    )
    .json();
    assert_eq!(json["pooler"]["pools"][0]["database"], "shop", "{json:#}");
}

/// The server behind it is down: nobody gets a welcome, and the pooler tells no wait.
#[tokio::test]
async fn clients_that_no_server_lets_in() {
    let (server, _scene) = scene(Incident::Storm).await;
    let (_pooler, pooled) = pooler(&server).await;
    let gone = ConnSpec {
        database: "gone".into(),
        ..pooled.clone()
    };
    let waiting = tokio::spawn(async move {
        let _ = drill::connect(&gone, "").await;
    });
    queued(&pooled, "gone", 0).await;
    let home = folder();
    let console = console_of(&pooled);
    let told = target(
        home.path(),
        &admin(&server),
        &console,
        &["triage", "--json"],
    )
    .json();
    let found = told["findings"].as_array().expect("findings");
    let found = found.iter().find(|finding| finding["id"] == "pool.waiting");
    let found = found.unwrap_or_else(|| panic!("{told:#}"));
    assert_eq!(found["severity"], "warning");
    let title = found["title"].as_str().expect("a title");
    assert!(
        title.ends_with("and no server connection is open; for how long isn't told"),
        "{title}"
    );
    let pools = target(
        home.path(),
        &admin(&server),
        &console,
        &["pg", "connections", "--json"],
    )
    .json();
    let pool = &pools["pooler"]["pools"][0];
    assert_eq!(pool["database"], "gone", "{pools:#}");
    assert!(pool["max_wait_ms"].is_null(), "{pools:#}");
    waiting.abort();
}

/// A book sees the queue at the pooler; where no pooler is named it can't tell. What else is saved has it too.
#[tokio::test]
async fn a_book_looks_at_the_pooler() {
    let (server, _scene) = scene(Incident::Storm).await;
    let (_pooler, pooled) = pooler(&server).await;
    let direct = admin(&server);
    let home = folder();
    let book = home.path().join("book.yaml");
    let text = "\
runbook: v1
id: tried
title: Tried
steps:
  - { id: queue, check: pool.waiting }
  - id: way
    decide:
      - { if: 'steps.queue.found', goto: waits }
      - { else: nobody }
  - { id: waits, end: resolved }
  - { id: nobody, end: false_alarm }
";
    std::fs::write(&book, text).expect("a file");
    let book = book.display().to_string();
    let walk = ["runbook", "run", "--file", &book, "--yes", "--json"];
    let hog = client(&pooled, "").await;
    hog.batch_execute("BEGIN").await.expect("a transaction");
    let waiting = waiter(&pooled);
    queued(&pooled, "shop", 1).await;
    let console = console_of(&pooled);
    let walked = target(home.path(), &direct, &console, &walk);
    assert_eq!(walked.json()["ended"], "resolved", "{walked:?}");
    let mut without = stanch_command(&direct, &walk);
    without.env("XDG_STATE_HOME", home.path());
    let without = run(without);
    let ended = without.json()["ended"].to_string();
    assert!(
        without.code == 3 && ended.contains("could not tell"),
        "{without:?}"
    );
    let saved = home.path().join("saved").display().to_string();
    let save = ["query", "run", "activity", "--save", &saved];
    target(home.path(), &direct, &console, &save).expect_code(0);
    let looks = home.path().join("looks").display().to_string();
    let twice = ["pg", "deadlocks", "--for", "1s", "--save", &looks];
    target(home.path(), &direct, &console, &twice);
    for file in [&saved, &looks] {
        let again = run(command(&["triage", "--from", file]));
        assert!(again.stdout.contains("pool.waiting"), "{again:?}");
    }
    hog.batch_execute("COMMIT").await.expect("it ends");
    waiting.await.expect("it ends");
}

/// A console that hangs costs a capture one interval, and is left alone for a while then.
#[tokio::test]
async fn a_console_that_hangs() {
    let (server, _scene) = scene(Incident::Storm).await;
    let (pooler, pooled) = pooler(&server).await;
    let home = folder();
    let signal = |name: &str| {
        let pid = pooler.0.id().to_string();
        let sent = std::process::Command::new("kill")
            .args([name, &pid])
            .status();
        assert!(sent.expect("kill").success());
    };
    signal("-STOP");
    let out = home.path().display().to_string();
    let args = [
        "capture", "--out", &out, "--every", "500ms", "--for", "4s", "--json",
    ];
    let captured = target(home.path(), &admin(&server), &console_of(&pooled), &args)
        .expect_code(0)
        .json();
    signal("-CONT");
    assert!(
        captured["frames"].as_u64().expect("a number") >= 2,
        "{captured:#}"
    );
    let bundle = captured["path"].as_str().expect("a path");
    let first = run(command(&["triage", "--from", bundle, "--at", "first"]));
    assert!(first.stdout.contains("no answer within"), "{first:?}");
    let last = run(command(&["triage", "--from", bundle, "--at", "last"]));
    assert!(
        last.stdout
            .contains("not asked again so soon: PgBouncer's console"),
        "{last:?}"
    );
}
