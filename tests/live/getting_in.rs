//! Every slot taken, and the other ways to stay outside: one clear answer, in time, with the right code.

use std::io::Write as _;
use std::time::{Duration, Instant};

use serde_json::Value;
use stanch::drill::{self, Incident, Scene, Server, ServerOptions};
use stanch::source::postgres::ConnSpec;

use crate::harness::{self, Run, admin, client, command, folder, run, scene, sql, stanch_as};

#[tokio::test]
async fn an_ordinary_login_gets_a_clear_answer_in_time() {
    let (server, _scene) = scene(Incident::Exhaustion).await;
    let app = server.spec("app_rw", Scene::database());
    let started = Instant::now();
    let run = stanch_as(&app, &["pg", "activity", "--wait-slot", "1s"]).expect_code(3);
    let took = started.elapsed();
    assert!(took >= Duration::from_secs(1), "{took:?}");
    assert_eq!(run.stdout, "");
    assert!(
        run.stderr
            .contains("only reserved connection slots are left"),
        "{}",
        run.stderr
    );
    assert!(
        run.stderr.contains("user app_rw, database shop"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("knocking for"), "{}", run.stderr);
    assert!(run.stderr.contains("-U postgres"), "{}", run.stderr);

    let triage = stanch_as(&app, &["triage", "--json", "--wait-slot", "0s"])
        .expect_code(2)
        .json();
    assert_eq!(triage["findings"][0]["id"], "conn.exhausted");
    assert_eq!(triage["findings"][0]["severity"], "critical");
    assert_eq!(
        triage["summary"]["capacity"],
        Value::Null,
        "nothing is made up"
    );
}

#[tokio::test]
async fn a_superuser_gets_in_and_triage_names_the_pattern() {
    let (server, _scene) = scene(Incident::Exhaustion).await;
    let run = stanch_as(&admin(&server), &["triage", "--json"])
        .expect_code(2)
        .json();
    let exhausted = &run["findings"][0];
    assert_eq!(exhausted["id"], "conn.exhausted");
    assert_eq!(exhausted["pattern"], "A");
    assert_eq!(
        exhausted["caused_by"],
        serde_json::json!(["conn.oversized_pools"])
    );
    let capacity = &run["summary"]["capacity"];
    assert_eq!(
        (&capacity["used"], &capacity["free"], &capacity["used_pct"]),
        (&20.into(), &0.into(), &100.0.into())
    );
    assert_eq!(capacity["unaccounted"], Value::Null);
}

fn config(db: &str, rescue: &str) -> tempfile::TempDir {
    let folder = folder();
    let dir = folder.path().join("stanch");
    std::fs::create_dir(&dir).expect("a folder");
    let mut file = std::fs::File::create(dir.join("stanch.yaml")).expect("a file");
    writeln!(
        file,
        "targets:\n  prod:\n    db: \"{db}\"\n    rescue: \"{rescue}\""
    )
    .expect("written");
    folder
}

#[tokio::test]
async fn the_rescue_login_of_a_target() {
    let (server, _scene) = scene(Incident::Exhaustion).await;
    let folder = config(
        &server.url("app_rw", "shop"),
        &server.url("postgres", "shop"),
    );
    let mut command = command(&["triage", "--json", "-d", "prod"]);
    command.env("XDG_CONFIG_HOME", folder.path());
    let run = run(command).expect_code(2);
    assert!(
        run.stderr.contains("trying the target's rescue login"),
        "{}",
        run.stderr
    );
    let report = run.json();
    assert_eq!(report["target"]["name"], "prod");
    assert_eq!(report["target"]["user"], "postgres");
    assert_eq!(report["findings"][0]["id"], "conn.exhausted");
    assert_eq!(
        report["summary"]["capacity"]["unaccounted"], 0,
        "a refusal was met, and every slot is seen"
    );
    assert_eq!(
        report["findings"][0]["next"][0],
        "stanch pg connections -d prod"
    );
}

#[tokio::test]
async fn a_broken_rescue_login_is_told_and_does_not_end_the_knocking() {
    let (server, _scene) = scene(Incident::Exhaustion).await;
    let folder = config(
        &server.url("app_rw", "shop"),
        &server.url("nobody_here", "shop"),
    );
    let mut command = command(&["pg", "activity", "-d", "prod", "--wait-slot", "1s"]);
    command.env("XDG_CONFIG_HOME", folder.path());
    let run = run(command).expect_code(3);
    assert!(
        run.stderr.contains("the rescue login doesn't work"),
        "{}",
        run.stderr
    );
    assert!(
        run.stderr
            .contains("only reserved connection slots are left"),
        "{}",
        run.stderr
    );
}

/// Fills every slot, the reserve too, with sessions of the superuser; one that is leaving still has its own for a moment.
async fn full(server: &Server, slots: usize) -> Vec<tokio_postgres::Client> {
    let spec = server.spec("postgres", "postgres");
    let give_up = Instant::now() + Duration::from_secs(60);
    let mut all = Vec::new();
    while all.len() < slots {
        match drill::connect(&spec, "filler").await {
            Ok(client) => all.push(client),
            Err(error) => {
                assert!(
                    Instant::now() < give_up,
                    "{} of {slots}: {error}",
                    all.len()
                );
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
    all
}

#[tokio::test]
async fn knocking_holds_the_slot_that_frees() {
    let server = harness::server(&[("max_connections", "8"), ("log_connections", "on")]).await;
    let mut all = full(&server, 8).await;
    let spec = server.spec("postgres", "postgres");
    let before = received(&server);
    let knocking = tokio::task::spawn_blocking({
        let spec = spec.clone();
        move || {
            stanch_as(
                &spec,
                &["pg", "connections", "--json", "--wait-slot", "20s"],
            )
        }
    });
    let begun = Instant::now();
    harness::eventually("it knocks on", || received(&server) >= before + 4).await;
    let (knocks, took) = (received(&server) - before, begun.elapsed());
    // The first comes at once, each other at least 250 ms after the answer to the one before.
    assert!(
        took >= Duration::from_millis(700) && knocks as u128 <= 2 + took.as_millis() / 250,
        "{knocks} knocks in {took:?}: at most four a second"
    );
    all.pop();
    let run = knocking.await.expect("a run").expect_code(0);
    assert!(run.stderr.contains("a slot freed"), "{}", run.stderr);
    let capacity = &run.json()["capacity"];
    assert_eq!(capacity["used"], 7);
    assert_eq!(
        capacity["unaccounted"],
        Value::Null,
        "a slot has freed since the refusal"
    );
}

fn received(server: &Server) -> usize {
    let log = std::fs::read_to_string(server.log_file()).expect("the log");
    log.matches("connection received").count()
}

#[tokio::test]
async fn each_limit_is_told_by_its_own_name() {
    let server = harness::server(&[("max_connections", "8")]).await;
    let spec = server.spec("postgres", "postgres");
    let boss = client(&spec, "boss").await;
    sql(&boss, "CREATE ROLE limited LOGIN CONNECTION LIMIT 1").await;
    sql(&boss, "CREATE DATABASE small CONNECTION LIMIT 1").await;
    sql(&boss, "CREATE ROLE app LOGIN").await;
    let outside = |spec: &ConnSpec| {
        stanch_as(spec, &["pg", "activity", "--wait-slot", "0s"])
            .expect_code(3)
            .stderr
    };

    let one = client(&server.spec("limited", "postgres"), "one").await;
    let said = outside(&server.spec("limited", "postgres"));
    assert!(
        said.contains("this role's connection limit is reached"),
        "{said}"
    );
    assert!(said.contains("CONNECTION LIMIT"), "{said}");
    drop(one);

    let one = client(&server.spec("app", "small"), "one").await;
    let said = outside(&server.spec("app", "small"));
    assert!(
        said.contains("this database's connection limit is reached"),
        "{said}"
    );
    let limits = stanch_as(&spec, &["pg", "connections", "--json"])
        .expect_code(0)
        .json()["limits"]
        .clone();
    let small = limits
        .as_array()
        .expect("limits")
        .iter()
        .find(|l| l["name"] == "small")
        .expect("small");
    assert_eq!(
        (&small["kind"], &small["used"], &small["free"]),
        (&"database".into(), &1.into(), &0.into())
    );
    for client in [one, boss] {
        drill::leave(client).await.expect("it ends");
    }

    let all = full(&server, 8).await;
    let said = outside(&spec);
    assert!(
        said.contains("every connection slot is taken, the reserved ones too"),
        "{said}"
    );
    drop(all);
}

/// Slots held by what isn't shown: connections that never authenticate.
#[tokio::test]
async fn slots_that_the_server_does_not_show() {
    let server = harness::start(ServerOptions {
        settings: vec![
            ("max_connections", "8".into()),
            ("authentication_timeout", "60".into()),
        ],
        tcp: true,
        ..ServerOptions::default()
    })
    .await;
    let boss = client(&server.spec("postgres", "postgres"), "boss").await;
    sql(&boss, "CREATE ROLE app LOGIN").await;
    drill::leave(boss).await.expect("it ends");
    let folder = config(
        &server.url("app", "postgres"),
        &server.url("postgres", "postgres"),
    );
    let silent: Vec<_> = (0..5)
        .map(|_| {
            let mut stream =
                std::net::TcpStream::connect(("127.0.0.1", server.port())).expect("a connection");
            // A startup message for a login that must give a password, which it never does.
            let body = b"\0\x03\0\0user\0postgres\0database\0postgres\0\0";
            stream
                .write_all(&u32::try_from(body.len() + 4).expect("short").to_be_bytes())
                .expect("sent");
            stream.write_all(body).expect("sent");
            let mut first = [0_u8; 1];
            std::io::Read::read_exact(&mut stream, &mut first)
                .expect("the server asks for a password");
            assert_eq!(&first, b"R");
            stream
        })
        .collect();
    let mut command = command(&["triage", "--json", "-d", "prod", "--wait-slot", "5s"]);
    command.env("XDG_CONFIG_HOME", folder.path());
    let report = run(command).expect_code(2).json();
    assert_eq!(report["summary"]["capacity"]["used"], 0);
    assert_eq!(
        report["summary"]["capacity"]["unaccounted"], 5,
        "{report:#}"
    );
    let ids: Vec<&str> = report["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .filter_map(|f| f["id"].as_str())
        .collect();
    assert!(ids.contains(&"conn.unaccounted"), "{ids:?}");
    drop(silent);
}

#[tokio::test]
async fn a_locked_catalog_is_named_within_the_connect_timeout() {
    let server = harness::server(&[]).await;
    let spec = server.spec("postgres", "postgres");
    let holder = client(&spec, "holder").await;
    sql(
        &holder,
        "BEGIN; LOCK TABLE pg_authid IN ACCESS EXCLUSIVE MODE",
    )
    .await;
    let run = stanch_as(&spec, &["triage", "--connect-timeout", "1s"]).expect_code(3);
    assert!(
        run.stderr.contains("locked catalog (pg_authid"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("logging in"), "{}", run.stderr);
    sql(&holder, "ROLLBACK").await;
}

fn plain(args: &[&str], env: &[(&str, &str)]) -> Run {
    let mut command = command(args);
    command.envs(env.iter().copied());
    run(command)
}

#[track_caller]
fn one_error(run: &Run, code: i32, says: &str) {
    assert_eq!(run.code, code, "{run:?}");
    assert_eq!(run.stdout, "", "{run:?}");
    assert!(run.stderr.contains(says), "{run:?}");
    assert_eq!(
        run.stderr.matches("stanch: ").count() + run.stderr.matches("error: ").count(),
        1,
        "{run:?}"
    );
    assert!(!run.stderr.contains("hunter2"), "{run:?}");
}

#[tokio::test]
async fn bad_input_gets_one_clear_error() {
    let server = harness::start(ServerOptions {
        tcp: true,
        ..ServerOptions::default()
    })
    .await;
    let port = server.port().to_string();
    let tcp = ["-h", "127.0.0.1", "-p", &port, "-d", "postgres"];

    let run = plain(
        &[&["pg", "activity", "-U", "postgres"][..], &tcp].concat(),
        &[("PGPASSWORD", "hunter2")],
    );
    one_error(&run, 3, "login refused");
    assert!(
        run.stderr.contains("28P01") && run.stderr.contains("port"),
        "{run:?}"
    );
    let run = plain(
        &[&["pg", "activity", "-U", "postgres"][..], &tcp].concat(),
        &[],
    );
    one_error(&run, 3, "the server asks for a password");
    let mut missing = server.spec("postgres", "nowhere");
    one_error(
        &stanch_as(&missing, &["pg", "activity"]),
        3,
        "no such database",
    );
    missing = server.spec("nobody_here", "postgres");
    one_error(
        &stanch_as(&missing, &["pg", "activity"]),
        3,
        "login refused",
    );
    let nowhere = plain(
        &["triage", "-d", "postgresql://u:hunter2@127.0.0.1:1/d"],
        &[],
    );
    assert_eq!(nowhere.code, 3);
    assert!(
        nowhere.stderr.contains("PGPASSWORD keeps it out of sight")
            && !nowhere.stderr.contains("hunter2")
    );
    one_error(
        &plain(&["triage", "-h", "no-such-host.invalid"], &[]),
        3,
        "host name not found",
    );
    one_error(
        &plain(&["triage", "-h", "/nonexistent"], &[]),
        3,
        "no connection",
    );
    one_error(
        &plain(&["triage", "-d", "mysql://u:hunter2@h/d"], &[]),
        64,
        "not a PostgreSQL URL",
    );
    one_error(
        &plain(
            &["triage", "-d", "postgresql://u:hunter2@h/d?sslmode=hunter2"],
            &[],
        ),
        64,
        "sslmode: one of disable",
    );
    one_error(&plain(&["triage", "--format", "xml"], &[]), 64, "xml");
    one_error(
        &plain(&["triage", "--wait-slot", "584000000000y"], &[]),
        64,
        "between 1ms and 24 days",
    );
    one_error(
        &plain(&["triage", "--from", "x", "--wait-slot", "1s"], &[]),
        64,
        "--wait-slot",
    );
    one_error(
        &plain(&["triage", "--timeout", "500us"], &[]),
        64,
        "between 1ms and 24 days",
    );
    one_error(
        &plain(&["triage", "--timeout", "60d"], &[]),
        64,
        "between 1ms and 24 days",
    );
    one_error(
        &plain(&["triage", "--threshold", "nonsense=1"], &[]),
        64,
        "transaction_age",
    );
    one_error(
        &plain(&["triage", "--threshold", "pools"], &[]),
        64,
        "NAME=VALUE",
    );
    one_error(
        &plain(&["triage", "--every", "soon"], &[]),
        64,
        "a time such as",
    );
    one_error(
        &plain(&["pg", "activity", "--state", "sleeping"], &[]),
        64,
        "idle-in-transaction",
    );
    one_error(&plain(&["frobnicate"], &[]), 64, "frobnicate");
    one_error(&plain(&["explain", "no.such"], &[]), 64, "conn.exhausted");
    one_error(&plain(&["query", "show", "no-such"], &[]), 64, "activity");
    one_error(
        &plain(&["triage", "--every", "1ms", "-h", "/nonexistent"], &[]),
        64,
        "--every",
    );

    // The way in by URL and by environment, for comparison.
    let url = format!("postgresql://postgres@127.0.0.1:{port}/postgres");
    let spec = server.tcp_spec("postgres");
    let password = spec.password.as_ref().expect("a password").expose();
    assert_eq!(
        plain(&["triage", "-d", &url], &[("PGPASSWORD", password)]).code,
        0
    );
    assert_eq!(
        plain(
            &["triage"],
            &[("DATABASE_URL", &url), ("PGPASSWORD", password)]
        )
        .code,
        0
    );
    let env = [
        ("PGHOST", "127.0.0.1"),
        ("PGPORT", &port),
        ("PGUSER", "postgres"),
        ("PGPASSWORD", password),
    ];
    assert_eq!(plain(&["triage"], &env).code, 0);
}

#[test]
fn a_damaged_file_is_told_with_its_place() {
    let folder = folder();
    let file = |name: &str, content: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).expect("written");
        path.display().to_string()
    };
    let from = |path: &str| plain(&["triage", "--from", path], &[]);
    one_error(
        &from(&file("other", "{\"a\": 1}")),
        65,
        "not a saved snapshot",
    );
    one_error(&from(&file("text", "hello")), 65, "not a saved snapshot");
    one_error(&from(&file("empty", "")), 65, "not a saved snapshot");
    one_error(
        &from(&file("newer", "{\"format\": \"stanch.snapshot/99\"}")),
        65,
        "another than this version reads",
    );
    one_error(
        &from(&file(
            "cut",
            "{\n  \"format\": \"stanch.snapshot/1\",\n  \"taken_at\": \"20",
        )),
        65,
        "damaged at line 3",
    );
    one_error(&from("/nonexistent/file"), 65, "/nonexistent/file");
}

/// What can't be saved is shown, and the fault is told.
#[tokio::test]
async fn a_save_that_fails() {
    let server = harness::server(&[]).await;
    let spec = server.spec("postgres", "postgres");
    let run = stanch_as(&spec, &["triage", "--save", "/dev/null/x"]).expect_code(3);
    assert!(run.stdout.contains("nothing found: "), "{run:?}");
    assert!(run.stderr.contains("/dev/null/x: not saved"), "{run:?}");
}

/// A link stays a link, and a pipe is written through.
#[tokio::test]
async fn a_save_into_a_link_and_into_a_pipe() {
    let server = harness::server(&[]).await;
    let spec = server.spec("postgres", "postgres");
    let folder = folder();
    let (file, link) = (folder.path().join("file"), folder.path().join("link"));
    std::fs::write(&file, "old").expect("written");
    std::os::unix::fs::symlink(&file, &link).expect("a link");
    stanch_as(&spec, &["triage", "--save", &link.display().to_string()]).expect_code(0);
    assert!(link.is_symlink());
    assert!(
        std::fs::read_to_string(&file)
            .expect("the file")
            .contains("stanch.snapshot/1")
    );
    let both = stanch_as(&spec, &["pg", "horizon", "--save", "/dev/stdout"])
        .expect_code(0)
        .stdout;
    assert!(
        both.contains("stanch.snapshot/1") && both.contains("xmin horizon"),
        "{both}"
    );
    let names: Vec<_> = std::fs::read_dir(folder.path())
        .expect("the folder")
        .collect();
    assert_eq!(names.len(), 2, "nothing half written is left: {names:?}");
}

/// A refusal is worth keeping, whatever was asked for.
#[tokio::test]
async fn a_refusal_is_saved_by_any_report() {
    let (server, _scene) = scene(Incident::Exhaustion).await;
    let folder = folder();
    let file = folder.path().join("refused.json").display().to_string();
    let app = server.spec("app_rw", Scene::database());
    stanch_as(&app, &["pg", "locks", "--wait-slot", "0s", "--save", &file]).expect_code(3);
    let replay = run(command(&["triage", "--from", &file]))
        .expect_code(2)
        .stdout;
    assert!(
        replay.contains("conn.exhausted") && replay.contains("nothing was read: no connection"),
        "{replay}"
    );
}

/// A role's own limit is an exhaustion for its clients, whoever looks on.
#[tokio::test]
async fn a_used_up_limit_is_found_from_outside() {
    let server = harness::server(&[]).await;
    let spec = server.spec("postgres", "postgres");
    let boss = client(&spec, "boss").await;
    sql(&boss, "CREATE ROLE limited LOGIN CONNECTION LIMIT 1").await;
    let _one = client(&server.spec("limited", "postgres"), "one").await;
    let report = stanch_as(&spec, &["triage", "--json"])
        .expect_code(1)
        .json();
    let finding = &report["findings"][0];
    assert_eq!(
        (&finding["id"], &finding["severity"]),
        (&"conn.own_limit".into(), &"warning".into())
    );
    assert_eq!(
        finding["title"],
        "role limited has used its connection limit: 1 of 1"
    );
    // For its own clients it is the end.
    let refused = stanch_as(
        &server.spec("limited", "postgres"),
        &["triage", "--json", "--wait-slot", "0s"],
    );
    assert_eq!(
        refused.expect_code(2).json()["findings"][0]["id"],
        "conn.exhausted"
    );
}

/// A broken rescue login, a broken file: each is told where it matters and nowhere else.
#[tokio::test]
async fn a_broken_configuration() {
    let server = harness::server(&[]).await;
    let with = |folder: &tempfile::TempDir, args: &[&str]| {
        let mut command = command(args);
        command.env("XDG_CONFIG_HOME", folder.path());
        run(command)
    };
    let folder = config(&server.url("postgres", "postgres"), "service=prod-admin");
    let run = with(&folder, &["triage", "-d", "prod"]).expect_code(0);
    assert!(run.stderr.contains("rescue login can't be used"), "{run:?}");
    let run = with(&folder, &["triage", "-d", "prd", "-p", "1"]).expect_code(3);
    assert!(
        run.stderr
            .contains("prd is no target of stanch.yaml (prod)"),
        "{run:?}"
    );
    let folder = config("postgresql://u:hunter2@h/d", "x");
    let run = with(&folder, &["triage", "-d", "prod"]);
    one_error(
        &run,
        65,
        "target prod: a password doesn't belong in this file",
    );
    with(&folder, &["query", "list"]).expect_code(0);
    with(&folder, &["explain", "conn.leak"]).expect_code(0);
}

/// With a place or a login of one's own, a target's name would lead the next command astray.
#[tokio::test]
async fn next_commands_lead_to_the_same_server() {
    let server = harness::server(&[]).await;
    let folder = config(&server.url("nobody_here", "postgres"), "x");
    let mut command = command(&["triage", "--json", "-d", "prod", "-U", "postgres"]);
    command.env("XDG_CONFIG_HOME", folder.path());
    let report = run(command).expect_code(0).json();
    assert_eq!(report["target"]["name"], Value::Null);
    let next = report["findings"][0]["next"][0]
        .as_str()
        .expect("a command");
    assert!(
        next.contains("-U postgres -d postgres") && next.contains("-h /"),
        "{next}"
    );
}
