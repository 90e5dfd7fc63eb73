//! Deadlocks made for real, read out of the logs of real servers: three formats, several prefixes, two languages.

use std::path::{Path, PathBuf};

use futures_util::future::join_all;
use serde_json::Value;
use stanch::drill::{self, Scene, Server, ServerOptions};
use tokio_postgres::Client;

use crate::harness::{
    Run, admin, bin_dirs, client, command, eventually, oncall, run, say, sql, stanch_as, start,
};

/// Who locks what first, and then what.
type Script = [(&'static str, &'static str, &'static str)];

const TWO: &Script = &[
    (
        "transfer-a",
        "update accounts set balance = balance - 1 where id = 1",
        "update accounts set balance = balance + 1\n  where id = 2",
    ),
    (
        "transfer-b",
        "update accounts set balance = balance - 2 where id = 2",
        "update accounts set balance = balance + 2\n\n  where id = 1",
    ),
];
const THREE: &Script = &[
    (
        "step-1",
        "select * from accounts where id = 1 for update",
        "update accounts\n\tset balance = 0 -- one\n where id = 2",
    ),
    (
        "step-2",
        "select * from accounts where id = 2 for update",
        "update accounts\n\tset balance = 0 -- two\n where id = 3",
    ),
    (
        "step-3",
        "select * from accounts where id = 3 for update",
        "update accounts\n\tset balance = 0 -- three\n where id = 1",
    ),
];
const ADVISORY: &Script = &[
    (
        "job-1",
        "select pg_advisory_xact_lock(11)",
        "select pg_advisory_xact_lock(22)",
    ),
    (
        "job-2",
        "select pg_advisory_xact_lock(22)",
        "select pg_advisory_xact_lock(11)",
    ),
];
const TABLES: &Script = &[
    (
        "load-1",
        "lock table accounts in exclusive mode",
        "lock table orders in exclusive mode",
    ),
    (
        "load-2",
        "lock table orders in exclusive mode",
        "lock table accounts in exclusive mode",
    ),
];

/// Everybody takes the first, then all ask for the second at once; one of them is aborted.
async fn deadlock(server: &Server, script: &Script) {
    let spec = admin(server);
    let clients: Vec<Client> = join_all(
        script
            .iter()
            .map(|(application, ..)| client(&spec, application)),
    )
    .await;
    for (client, (_, first, _)) in clients.iter().zip(script) {
        sql(client, &format!("begin; {first}")).await;
    }
    let asked = clients
        .iter()
        .zip(script)
        .map(|(client, (_, _, then))| async move {
            let done = drill::batch(client, then).await;
            // Whoever gets through makes way for the next.
            let _ = drill::batch(client, "rollback").await;
            done.is_err()
        });
    let aborted = join_all(asked)
        .await
        .into_iter()
        .filter(|failed| *failed)
        .count();
    assert_eq!(aborted, 1, "one victim");
}

pub async fn with_tables(options: ServerOptions) -> Server {
    let server = start(options).await;
    let boss = client(&server.spec(server.superuser(), "postgres"), "boss").await;
    sql(&boss, &format!("create database {}", Scene::database())).await;
    drop(boss);
    let boss = client(&admin(&server), "boss").await;
    sql(
        &boss,
        "create table accounts (id int primary key, balance int); insert into accounts values (1, 10), (2, 20), (3, 30);\
         create table orders (id int primary key)",
    )
    .await;
    server
}

pub fn collecting(bin_dir: PathBuf, destination: &str) -> ServerOptions {
    ServerOptions {
        bin_dir,
        settings: [
            ("logging_collector", "on"),
            ("log_destination", destination),
            ("log_directory", "log"),
            ("log_filename", "pg.log"),
            ("log_lock_waits", "on"),
            ("deadlock_timeout", "200ms"),
            ("log_timezone", "Asia/Tokyo"),
        ]
        .into_iter()
        .map(|(name, value)| (name, value.to_owned()))
        .collect(),
        ..ServerOptions::default()
    }
}

/// A log by its name, wherever below the server's folder it lies.
pub fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    std::fs::read_dir(folder).ok()?.flatten().find_map(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return find(&path, name);
        }
        (entry.file_name() == *name).then_some(path)
    })
}

fn report(server: &Server, log: &str, more: &[&str]) -> Value {
    read(server, log, more).expect_code(0).json()
}

fn read(server: &Server, log: &str, more: &[&str]) -> Run {
    let path = find(server.folder(), log).unwrap_or_else(|| panic!("{log}"));
    let path = path.display().to_string();
    run(command(
        &[&["pg", "deadlocks", &path, "--json"], more].concat(),
    ))
}

/// How many deadlocks are in it by now: what is half written may not be readable yet.
fn so_far(server: &Server, log: &str, more: &[&str]) -> Option<u64> {
    let run = read(server, log, more);
    (run.code == 0).then(|| run.json()["deadlocks_total"].as_u64())?
}

/// The log is written by another process, a moment later.
pub async fn written(server: &Server, log: &str, deadlocks: u64) -> Value {
    eventually(&format!("{log} has {deadlocks}"), || {
        find(server.folder(), log)
            .and_then(|path| std::fs::read(path).ok())
            .is_some_and(|bytes| !bytes.is_empty())
            && so_far(server, log, &[]) >= Some(deadlocks)
    })
    .await;
    report(server, log, &[])
}

/// The circle of the report is that of the script: who holds what the one before asks for.
#[track_caller]
fn is_as_made(deadlock: &Value, script: &Script, applications: bool) {
    let members = deadlock["members"].as_array().expect("members");
    assert_eq!(members.len(), script.len(), "{deadlock}");
    for (n, member) in members.iter().enumerate() {
        let next = &members[(n + 1) % members.len()];
        assert_eq!(member["blocked_by"], next["pid"], "{deadlock}");
        let statement = member["statement"].as_str().expect("a statement");
        let of = |text: &str| script.iter().position(|(_, _, then)| masked(then) == text);
        let own = of(statement).unwrap_or_else(|| panic!("{statement:?} of {deadlock}"));
        // It waits for what its statement asks for, which the next took first.
        let holder = of(next["statement"].as_str().expect("a statement")).expect("the script's");
        assert_eq!((own + 1) % script.len(), holder, "{deadlock}");
        if member["victim"] == true && applications {
            assert_eq!(member["application_name"], script[own].0);
        }
    }
    assert_eq!(
        members
            .iter()
            .filter(|member| member["victim"] == true)
            .count(),
        1
    );
    assert_eq!(members[0]["pid"], deadlock["victim_pid"]);
}

/// As it is shown: without comments.
fn masked(statement: &str) -> String {
    statement
        .split('\n')
        .map(|line| line.split("--").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n")
}

#[track_caller]
fn all_four(report: &Value, what: &str) {
    let deadlocks = report["deadlocks"].as_array().expect("a list");
    assert_eq!(deadlocks.len(), 4, "{what}: {report}");
    for (deadlock, (script, shape, relations)) in deadlocks.iter().zip([
        (TWO, "row_order", &["accounts"][..]),
        (THREE, "row_order", &["accounts"]),
        (ADVISORY, "advisory_order", &[]),
        (TABLES, "table_order", &["accounts", "orders"]),
    ]) {
        is_as_made(deadlock, script, true);
        assert_eq!(deadlock["shape"], shape, "{what}");
        assert_eq!(
            deadlock["relations"],
            serde_json::json!(relations),
            "{what}"
        );
        assert_eq!(deadlock["order_conflict"]["basis"], "deduced");
    }
    let orders = deadlocks[0]["order_conflict"]["orders"]
        .as_array()
        .expect("orders");
    let mut orders: Vec<(&str, &str)> = orders
        .iter()
        .map(|order| {
            (
                order["first"].as_str().expect("a row"),
                order["then"].as_str().expect("a row"),
            )
        })
        .collect();
    orders.sort_unstable();
    assert_eq!(
        orders,
        [
            ("accounts id 1", "accounts id 2"),
            ("accounts id 2", "accounts id 1")
        ]
    );
    assert!(
        report["lock_waits"]["deadlocked"].as_u64() >= Some(4),
        "{what}"
    );
}

#[tokio::test]
async fn every_format_of_every_server() {
    for (major, bin_dir) in bin_dirs() {
        let formats: &[(&str, &str)] = if major >= 15 {
            &[("pg.log", "stderr"), ("pg.csv", "csv"), ("pg.json", "json")]
        } else {
            &[("pg.log", "stderr"), ("pg.csv", "csv")]
        };
        let destination = if major >= 15 {
            "stderr,csvlog,jsonlog"
        } else {
            "stderr,csvlog"
        };
        let server = with_tables(collecting(bin_dir, destination)).await;
        for script in [TWO, THREE, ADVISORY, TABLES] {
            deadlock(&server, script).await;
        }
        for (log, format) in formats {
            let report = written(&server, log, 4).await;
            assert_eq!(report["logs"][0]["format"], *format);
            all_four(&report, &format!("{major} {format}"));
        }
    }
}

#[tokio::test]
async fn in_japanese() {
    let mut tried = false;
    for (major, bin_dir) in bin_dirs() {
        let mut options = collecting(
            bin_dir,
            if major >= 15 {
                "stderr,csvlog,jsonlog"
            } else {
                "stderr,csvlog"
            },
        );
        options.settings.push((
            "log_line_prefix",
            "%t [%p]: [%l-1] user=%u,db=%d,app=%a,client=%h ".into(),
        ));
        let server = with_tables(options).await;
        let boss = client(&admin(&server), "boss").await;
        if drill::batch(&boss, "alter system set lc_messages = 'ja_JP.UTF-8'")
            .await
            .is_err()
        {
            continue;
        }
        sql(&boss, "select pg_reload_conf()").await;
        drill::until(
            &boss,
            "select current_setting('lc_messages') = 'ja_JP.UTF-8'",
        )
        .await
        .expect("it is set");
        for script in [TWO, THREE, ADVISORY, TABLES] {
            deadlock(&server, script).await;
        }
        for log in ["pg.log", "pg.csv", "pg.json"] {
            if major < 15 && log == "pg.json" {
                continue;
            }
            let report = written(&server, log, 4).await;
            all_four(&report, &format!("{major} {log}"));
            let text =
                std::fs::read_to_string(find(server.folder(), log).expect("a log")).expect("UTF-8");
            tried |= text.contains("デッドロックを検出しました");
        }
    }
    if !tried {
        say("deadlocks in Japanese: no server here has the locale ja_JP.UTF-8 and its messages");
    }
}

#[tokio::test]
async fn any_prefix() {
    let server = with_tables(collecting(PathBuf::new(), "stderr")).await;
    let boss = client(&admin(&server), "boss").await;
    let prefixes = [
        ("%m [%p] %q%u@%d/%a ", true, true),
        ("%m [%p] ", false, true),
        ("%t:%r:%u@%d:[%p]:", false, true),
        ("%m:%r:%u@%d:[%p]:%l:%e:%s:%v:%x:%c:%q%a:", true, true),
        ("%t [%p-%l] %q%u@%d ", false, true),
        ("%m %p %u %d %a %e ", true, true),
        ("%n %10u|%-10d|%a|%i|%Q|%b|%P|%c|%p|%% ", true, false),
        ("%p ", false, false),
        ("", false, false),
    ];
    for (n, (prefix, names, known)) in prefixes.into_iter().enumerate() {
        let log = format!("{n}.log");
        sql(
            &boss,
            &format!("alter system set log_line_prefix = '{prefix}'"),
        )
        .await;
        sql(&boss, &format!("alter system set log_filename = '{log}'")).await;
        sql(&boss, "select pg_reload_conf()").await;
        drill::until(
            &boss,
            &format!("select current_setting('log_filename') = '{log}'"),
        )
        .await
        .expect("it is set");
        eventually("the new file", || find(server.folder(), &log).is_some()).await;
        deadlock(&server, TWO).await;
        deadlock(&server, THREE).await;
        let report = if known || prefix.len() < 4 {
            written(&server, &log, 2).await
        } else {
            eventually("two deadlocks", || {
                so_far(&server, &log, &["--prefix", prefix]) == Some(2)
            })
            .await;
            report(&server, &log, &["--prefix", prefix])
        };
        let deadlocks = report["deadlocks"].as_array().expect("a list");
        assert_eq!(deadlocks.len(), 2, "{prefix}: {report}");
        is_as_made(&deadlocks[0], TWO, names);
        is_as_made(&deadlocks[1], THREE, names);
        assert_eq!(deadlocks[0]["at"].is_null(), prefix.len() < 4, "{prefix}");
    }
}

#[tokio::test]
async fn a_lock_wait_with_its_holder() {
    let mut options = collecting(PathBuf::new(), "stderr");
    options
        .settings
        .push(("log_line_prefix", "%m [%p] %q%u@%d/%a ".into()));
    options.settings.push(("log_connections", "on".into()));
    let server = with_tables(options).await;
    let (holder, waiter) = (
        client(&admin(&server), "holder").await,
        client(&admin(&server), "waiter").await,
    );
    sql(
        &holder,
        "begin; update accounts set balance = 7 where id = 1",
    )
    .await;
    let boss = client(&admin(&server), "boss").await;
    let wait = async { sql(&waiter, "update accounts set balance = 8 where id = 1").await };
    let free = async {
        drill::until(
            &boss,
            "select count(*) = 1 from pg_locks where not granted and waitstart < clock_timestamp() - interval '400 ms'",
        )
        .await
        .expect("it waits");
        // The server tells of it once its own clock has rung, which may be later than this one's.
        eventually("the server tells of it", || {
            find(server.folder(), "pg.log")
                .and_then(|path| std::fs::read_to_string(path).ok())
                .is_some_and(|text| text.contains("still waiting for"))
        })
        .await;
        sql(&holder, "rollback").await;
    };
    tokio::join!(wait, free);
    eventually("the wait is told", || {
        let run = read(&server, "pg.log", &[]);
        run.code == 0 && run.json()["lock_waits"]["acquired"] == 1
    })
    .await;
    let report = report(&server, "pg.log", &[]);
    let wait = &report["lock_waits"]["longest"][0];
    assert_eq!(wait["application_name"], "waiter");
    assert_eq!(wait["on"], "a row of accounts");
    assert_eq!(wait["ended"], "acquired");
    assert!(wait["waited_ms"].as_u64() >= Some(400), "{wait}");
    assert_eq!(
        wait["statement"],
        "update accounts set balance = 8 where id = 1"
    );
    assert_eq!(wait["holders"].as_array().map(Vec::len), Some(1));
    assert_eq!(report["deadlocks_total"], 0);
}

#[tokio::test]
async fn counters_and_settings_by_two_looks() {
    let server = with_tables(ServerOptions {
        settings: vec![
            ("deadlock_timeout", "200ms".into()),
            ("log_min_error_statement", "panic".into()),
        ],
        ..ServerOptions::default()
    })
    .await;
    let spec = oncall(&server, Scene::database()).await;
    let quiet = stanch_as(
        &spec,
        &["pg", "deadlocks", "--for", "1s", "--json", "-q", "--check"],
    )
    .expect_code(0)
    .json();
    assert_eq!(quiet["finding"], Value::Null);
    let verdict = |name: &str| {
        let settings = quiet["settings"].as_array().expect("settings").clone();
        let setting = settings
            .into_iter()
            .find(|s| s["name"] == name)
            .expect("the setting");
        setting["verdict"].as_str().expect("a word").to_owned()
    };
    assert_eq!(verdict("log_lock_waits"), "change");
    assert_eq!(verdict("log_min_error_statement"), "change");
    assert_eq!(verdict("log_line_prefix"), "ok");
    let looks = tokio::task::spawn_blocking(move || {
        stanch_as(&spec, &["pg", "deadlocks", "--for", "12s", "--check"])
    });
    let boss = client(&admin(&server), "boss").await;
    drill::until(
        &boss,
        "SELECT count(*) = 1 FROM pg_stat_activity WHERE usename = 'oncall' AND state = 'idle' AND query = 'COMMIT'",
    )
    .await
    .expect("the first look is over");
    deadlock(&server, TWO).await;
    let grown = looks.await.expect("it ran").expect_code(1);
    assert!(
        grown
            .stdout
            .contains("warning: lock.deadlocks: 1 deadlock in "),
        "{}",
        grown.stdout
    );
    assert!(
        grown
            .stdout
            .contains("ALTER SYSTEM SET log_lock_waits = on;"),
        "{}",
        grown.stdout
    );
}

#[test]
fn a_log_and_two_looks_are_two_things() {
    run(command(&["pg", "deadlocks", "-", "--for", "1s"])).expect_code(64);
}
