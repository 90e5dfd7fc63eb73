//! Each report on a scene whose numbers are known.

use serde_json::Value;
use stanch::drill::Incident;

use crate::harness::{self, admin, client, command, run, scene, sql, stanch_as};

fn list<'v>(report: &'v Value, name: &str) -> &'v Vec<Value> {
    report[name]
        .as_array()
        .unwrap_or_else(|| panic!("{name}: {report:#}"))
}

#[tokio::test]
async fn a_healthy_server_in_three_lines() {
    let server = harness::server(&[]).await;
    let _app = client(&server.spec("postgres", "postgres"), "app").await;
    let out = stanch_as(&server.spec("postgres", "postgres"), &["triage"])
        .expect_code(0)
        .stdout;
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 3, "{out}");
    assert!(lines[0].starts_with("postgres@"), "{out}");
    assert_eq!(
        lines[1],
        "nothing found: 1 of 97 usable slots taken (1 %), 0 active, no open transaction, nobody blocked"
    );
    assert!(
        lines[2].starts_with("for later: 3 settings to change: stanch pg settings -h "),
        "{out}"
    );
    let detail = stanch_as(&server.spec("postgres", "postgres"), &["triage", "-v"])
        .expect_code(0)
        .stdout;
    assert!(
        detail.contains(
            "info  settings.no_idle_tx_timeout: idle_in_transaction_session_timeout is off"
        ),
        "{detail}"
    );
}

#[tokio::test]
async fn activity_is_ordered_and_filtered() {
    let (server, _scene) = scene(Incident::LockChain).await;
    let spec = admin(&server);
    let _idle = client(&spec, "bystander").await;
    let report = stanch_as(&spec, &["pg", "activity", "--json"])
        .expect_code(0)
        .json();
    let sessions = list(&report, "sessions");
    assert_eq!(sessions.len(), 9);
    let starts: Vec<Option<&str>> = sessions.iter().map(|s| s["xact_start"].as_str()).collect();
    let known = starts.iter().flatten().count();
    assert_eq!(known, 8);
    assert!(starts[..known].is_sorted(), "{starts:?}");
    assert_eq!(
        starts[known..],
        [None],
        "those without a transaction are last"
    );
    assert_eq!(sessions[0]["application_name"], "psql");
    assert_eq!(sessions[0]["client_addr"], Value::Null);

    let count = |args: &[&str]| {
        let args: Vec<&str> = ["pg", "activity", "--json"]
            .iter()
            .chain(args)
            .copied()
            .collect();
        list(&stanch_as(&spec, &args).expect_code(0).json(), "sessions").len()
    };
    assert_eq!(count(&["--state", "active"]), 7);
    assert_eq!(count(&["--state", "idle-in-transaction"]), 1);
    assert_eq!(
        count(&["--state", "active", "--state", "idle in transaction"]),
        8
    );
    assert_eq!(count(&["--app", "worker"]), 3);
    assert_eq!(count(&["--user", "postgres"]), 1);
    assert_eq!(count(&["--database", "template1"]), 0);
    assert_eq!(count(&["--longer-than", "1h"]), 0);
    assert!(count(&["--all"]) > 9, "background processes too");
    let empty = stanch_as(&spec, &["pg", "activity", "--app", "nobody"])
        .expect_code(0)
        .stdout;
    assert!(
        empty.contains("no session (9 more don't match the filter)"),
        "{empty}"
    );
}

#[tokio::test]
async fn every_slot_is_accounted_for() {
    let (server, _scene) = scene(Incident::Exhaustion).await;
    let report = stanch_as(&admin(&server), &["pg", "connections", "--json"])
        .expect_code(0)
        .json();
    let capacity = &report["capacity"];
    for (field, want) in [
        ("max_connections", 23),
        ("superuser_reserved", 3),
        ("reserved", 0),
        ("usable", 20),
        ("used", 20),
        ("free", 0),
    ] {
        assert_eq!(capacity[field], want, "{field}");
    }
    assert_eq!(capacity["used_is"], "exact");
    let groups = list(&report, "groups");
    let totals: Vec<(&str, i64)> = groups
        .iter()
        .map(|g| {
            (
                g["application_name"].as_str().expect("a name"),
                g["total"].as_i64().expect("a total"),
            )
        })
        .collect();
    assert_eq!(totals, [("web", 12), ("worker", 6), ("reports", 2)]);
    for group in groups {
        let parts = [
            "active",
            "idle",
            "idle_in_transaction",
            "idle_in_transaction_aborted",
            "other",
            "hidden",
        ];
        let sum: i64 = parts
            .iter()
            .map(|part| group[*part].as_i64().expect("a count"))
            .sum();
        assert_eq!(sum, group["total"].as_i64().expect("a total"));
    }
}

/// Superusers and sessions in the reserve count too: it may pass 100 %, and nothing goes below 0.
#[tokio::test]
async fn more_than_full() {
    let (server, _scene) = scene(Incident::Exhaustion).await;
    let one = client(&admin(&server), "boss").await;
    let report = stanch_as(&admin(&server), &["pg", "connections", "--json"])
        .expect_code(0)
        .json();
    assert_eq!(report["capacity"]["used"], 21);
    assert_eq!(report["capacity"]["free"], 0);
    assert_eq!(report["capacity"]["used_pct"], 105.0);
    drop(one);
}

#[tokio::test]
async fn transactions_with_what_they_hold() {
    let (server, _scene) = scene(Incident::Prepared).await;
    let spec = admin(&server);
    let reader = client(&spec, "reader").await;
    sql(
        &reader,
        "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM product",
    )
    .await;
    let failed = client(&spec, "failed").await;
    sql(&failed, "BEGIN").await;
    let _ = failed.batch_execute("SELECT 1/0").await;
    let report = stanch_as(&spec, &["pg", "transactions", "--json"])
        .expect_code(0)
        .json();
    let find = |name: &str| {
        list(&report, "transactions")
            .iter()
            .find(|t| t["application_name"] == name)
            .unwrap_or_else(|| panic!("{name}"))
    };
    assert_eq!(
        (
            &find("reader")["xid_assigned"],
            &find("reader")["holds_xmin"]
        ),
        (&false.into(), &true.into())
    );
    assert_eq!(find("failed")["state"], "idle in transaction (aborted)");
    assert_eq!(find("checkout")["state"], "active");
    let prepared = &list(&report, "prepared")[0];
    assert_eq!(
        (&prepared["gid"], &prepared["owner"]),
        (&"payment-4711".into(), &"app_rw".into())
    );
    let table = stanch_as(&spec, &["pg", "transactions"])
        .expect_code(0)
        .stdout;
    assert!(table.contains("payment-4711"), "{table}");
    let old = stanch_as(
        &spec,
        &["pg", "transactions", "--longer-than", "1h", "--json"],
    )
    .expect_code(0)
    .json();
    let names: Vec<&Value> = list(&old, "transactions")
        .iter()
        .map(|t| &t["application_name"])
        .collect();
    assert_eq!(names, ["failed"], "one of unknown age is never left out");
    assert!(list(&old, "prepared").is_empty());
}

#[tokio::test]
async fn locks_by_object_and_mode() {
    let (server, _scene) = scene(Incident::LockQueue).await;
    let report = stanch_as(&admin(&server), &["pg", "locks", "--waiting", "--json"])
        .expect_code(0)
        .json();
    let locks = list(&report, "locks");
    let seen: Vec<(&str, &str, bool, i64)> = locks
        .iter()
        .map(|l| {
            (
                l["relation"].as_str().unwrap_or("-"),
                l["mode"].as_str().expect("a mode"),
                l["granted"].as_bool().expect("granted"),
                l["sessions"].as_i64().expect("a count"),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("public.orders", "AccessShareLock", true, 1),
            ("public.orders", "AccessExclusiveLock", false, 1),
            ("public.orders", "AccessShareLock", false, 8),
        ]
    );
}

#[tokio::test]
async fn settings_with_overrides_counted_in() {
    let server = harness::server(&[("idle_in_transaction_session_timeout", "0")]).await;
    let spec = server.spec("postgres", "postgres");
    let boss = client(&spec, "boss").await;
    sql(&boss, "CREATE ROLE app LOGIN; CREATE ROLE other LOGIN").await;
    sql(
        &boss,
        "ALTER ROLE app SET idle_in_transaction_session_timeout = '60s'",
    )
    .await;
    let judged = |name: &str| {
        let report = stanch_as(&spec, &["pg", "settings", "--json"])
            .expect_code(0)
            .json();
        list(&report, "settings")
            .iter()
            .find(|s| s["name"] == name)
            .unwrap_or_else(|| panic!("{name}"))
            .clone()
    };
    let _app = client(&server.spec("app", "postgres"), "app").await;
    let idle = judged("idle_in_transaction_session_timeout");
    assert_eq!(
        idle["value"], "0",
        "the server's value, not our own local one"
    );
    assert_eq!(
        idle["verdict"], "ok",
        "all application sessions have it from their role: {idle:#}"
    );
    assert_eq!(
        idle["overrides"],
        serde_json::json!([{"role": "app", "database": null, "value": "60s"}])
    );
    let _other = client(&server.spec("other", "postgres"), "other").await;
    let idle = judged("idle_in_transaction_session_timeout");
    assert_eq!(idle["verdict"], "change");
    assert!(
        idle["why"]
            .as_str()
            .expect("why")
            .contains("1 of 2 sessions have none"),
        "{idle:#}"
    );
    let statement = judged("statement_timeout");
    assert_eq!(
        (&statement["value"], &statement["verdict"]),
        (&"0".into(), &"change".into())
    );
    assert_eq!(judged("lock_timeout")["value"], "0");
}

#[tokio::test]
async fn everything_that_holds_the_horizon() {
    let server =
        harness::server(&[("wal_level", "logical"), ("max_prepared_transactions", "2")]).await;
    let spec = server.spec("postgres", "postgres");
    let boss = client(&spec, "boss").await;
    sql(&boss, "CREATE TABLE t (id int)").await;
    sql(
        &boss,
        "SELECT pg_create_logical_replication_slot('forgotten', 'test_decoding')",
    )
    .await;
    sql(
        &boss,
        "BEGIN; INSERT INTO t VALUES (1); PREPARE TRANSACTION 'two'",
    )
    .await;
    let reader = client(&spec, "reader").await;
    sql(
        &reader,
        "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM t",
    )
    .await;
    for _ in 0..5 {
        sql(&boss, "INSERT INTO t VALUES (1)").await;
    }
    let report = stanch_as(&spec, &["pg", "horizon", "--json"])
        .expect_code(0)
        .json();
    let held = list(&report, "horizon");
    let kinds: Vec<(&str, &str)> = held
        .iter()
        .map(|h| {
            (
                h["kind"].as_str().expect("a kind"),
                h["name"].as_str().expect("a name"),
            )
        })
        .collect();
    for want in [
        ("slot_catalog", "forgotten"),
        ("prepared", "two"),
        ("session", "reader"),
    ] {
        assert!(kinds.contains(&want), "{kinds:?}");
    }
    let ages: Vec<i64> = held
        .iter()
        .map(|h| h["xmin_age"].as_i64().expect("an age"))
        .collect();
    assert!(ages.is_sorted_by(|a, b| a >= b), "{ages:?}");
    assert!(ages[0] >= 5, "{ages:?}");
    let table = stanch_as(&spec, &["pg", "horizon"]).expect_code(0).stdout;
    assert!(
        table.contains("pg_drop_replication_slot('forgotten')"),
        "{table}"
    );
}

#[tokio::test]
async fn built_in_queries_by_name() {
    let (server, _scene) = scene(Incident::LockChain).await;
    let listed = run(command(&["query", "list"])).expect_code(0).stdout;
    for topic in stanch::source::postgres::catalog::all() {
        assert!(listed.contains(topic.name), "{listed}");
        let shown = run(command(&["query", "show", topic.name, "--server", "15"]))
            .expect_code(0)
            .stdout;
        // What is shown is what psql takes.
        let spec = admin(&server);
        let port = spec.port.to_string();
        let psql = std::process::Command::new("psql")
            .args([
                "-X",
                "-v",
                "ON_ERROR_STOP=1",
                "-h",
                &spec.host,
                "-p",
                &port,
                "-U",
                &spec.user,
                "-d",
                &spec.database,
            ])
            .args(["--csv", "-c", &shown])
            .output()
            .expect("psql");
        assert!(
            psql.status.success(),
            "{}: {}",
            topic.name,
            String::from_utf8_lossy(&psql.stderr)
        );
        let columns: Vec<&str> = topic.columns().collect();
        let told = String::from_utf8_lossy(&psql.stdout);
        assert_eq!(told.lines().next(), Some(&*columns.join(",")));
        let rows = stanch_as(&spec, &["query", "run", topic.name, "--json"])
            .expect_code(0)
            .json();
        assert_eq!(rows["schema"], "stanch.query/1", "{}", topic.name);
        assert_eq!(
            rows["columns"],
            serde_json::json!(columns),
            "{}",
            topic.name
        );
    }
    let blocking = stanch_as(&admin(&server), &["query", "run", "blocking", "--json"])
        .expect_code(0)
        .json();
    assert_eq!(list(&blocking, "rows").len(), 7);
    let table = stanch_as(&admin(&server), &["query", "run", "waits"])
        .expect_code(0)
        .stdout;
    assert!(
        table.contains("transactionid") && table.contains("rows)"),
        "{table}"
    );
}

#[test]
fn explain_tells_each_finding() {
    let all = run(command(&["explain"])).expect_code(0).stdout;
    for id in stanch::model::FindingId::ALL {
        assert!(all.contains(id.name()), "{all}");
        let page = run(command(&["explain", id.name()])).expect_code(0).stdout;
        for title in ["when", "meaning", "relief", "cure"] {
            assert!(page.lines().any(|line| line == title), "{page}");
        }
    }
    let json = run(command(&["explain", "conn.leak", "--json"]))
        .expect_code(0)
        .json();
    assert_eq!(
        (&json["id"], &json["pattern"]),
        (&"conn.leak".into(), &"B".into())
    );
}

/// A login's own value hides the server's: it is unknown then, and no session is counted by it.
#[tokio::test]
async fn settings_of_the_reading_login_are_not_the_servers() {
    let server = harness::server(&[]).await;
    let spec = server.spec("postgres", "postgres");
    let boss = client(&spec, "boss").await;
    sql(
        &boss,
        "CREATE ROLE mon LOGIN; GRANT pg_monitor TO mon; CREATE ROLE app LOGIN",
    )
    .await;
    sql(&boss, "ALTER ROLE mon SET statement_timeout = '30s'").await;
    sql(
        &boss,
        "ALTER ROLE mon SET log_min_duration_statement = '1s'",
    )
    .await;
    let _app = client(&server.spec("app", "postgres"), "app").await;
    let report = stanch_as(
        &server.spec("mon", "postgres"),
        &["pg", "settings", "--json"],
    )
    .expect_code(0)
    .json();
    let find = |name: &str| {
        list(&report, "settings")
            .iter()
            .find(|s| s["name"] == name)
            .expect("the setting")
            .clone()
    };
    let statement = find("statement_timeout");
    assert_eq!(statement["verdict"], "unknown", "{statement:#}");
    assert_eq!(statement["source"], Value::Null);
    assert!(
        statement["why"]
            .as_str()
            .expect("why")
            .contains("of 1 it isn't known"),
        "{statement:#}"
    );
    assert_eq!(find("log_min_duration_statement")["verdict"], "unknown");
    assert_eq!(
        find("lock_timeout")["source"],
        Value::Null,
        "our own local value is nobody's"
    );
    assert_eq!(find("max_connections")["source"], "configuration file");
}

/// A server that checks for deadlocks only after minutes is no quieter for it.
#[tokio::test]
async fn a_long_deadlock_timeout_hides_no_chain() {
    let server = harness::server(&[("deadlock_timeout", "10min")]).await;
    let spec = server.spec("postgres", "postgres");
    let holder = client(&spec, "holder").await;
    sql(&holder, "CREATE TABLE t (id int)").await;
    sql(&holder, "BEGIN; LOCK TABLE t").await;
    for _ in 0..10 {
        stanch::drill::leave_running(client(&spec, "web").await, "SELECT * FROM t");
    }
    stanch::drill::until(
        &holder,
        "SELECT count(*) = 10 AND min(waitstart) < clock_timestamp() - interval '1.1 s' FROM pg_locks WHERE NOT granted",
    )
    .await
    .expect("they wait");
    let report = stanch_as(&spec, &["triage", "--json"])
        .expect_code(2)
        .json();
    assert_eq!(report["findings"][0]["id"], "lock.chain", "{report:#}");
}

/// Settings in units that the server itself can't read back.
#[tokio::test]
async fn odd_settings_end_no_report() {
    let server = harness::server(&[
        ("track_activity_query_size", "5000"),
        ("deadlock_timeout", "1500ms"),
    ])
    .await;
    let spec = server.spec("postgres", "postgres");
    for what in [&["triage"][..], &["pg", "activity"], &["doctor"]] {
        stanch_as(&spec, what).expect_code(0);
    }
    let long = client(&spec, "long").await;
    sql(&long, &format!("SELECT '{}'", "x".repeat(3000))).await;
    let report = stanch_as(&spec, &["pg", "activity", "--json"])
        .expect_code(0)
        .json();
    assert_eq!(list(&report, "sessions")[0]["query_truncated"], false);
}

/// Limits by flag win over the defaults.
#[tokio::test]
async fn thresholds_by_flag() {
    let (server, _scene) = scene(Incident::LongTransaction).await;
    let ids = |args: &[&str]| {
        let args: Vec<&str> = ["triage", "--json"].iter().chain(args).copied().collect();
        let report = stanch_as(&admin(&server), &args).json();
        list(&report, "findings")
            .iter()
            .map(|f| f["id"].as_str().expect("an id").to_owned())
            .collect::<Vec<_>>()
    };
    assert!(!ids(&["--threshold", "transaction_age=1h"]).contains(&"tx.long".to_owned()));
    assert!(ids(&["--threshold", "transaction_age=1ms"]).contains(&"tx.long".to_owned()));
}

/// The command that a remedy names does what it says, to exactly that session.
#[tokio::test]
async fn a_remedys_command_frees_the_queue() {
    let (server, _scene) = scene(Incident::LockQueue).await;
    harness::ripe(&admin(&server)).await;
    let report = stanch_as(&admin(&server), &["pg", "blockers", "--json"])
        .expect_code(0)
        .json();
    let remedy = report["roots"][0]["remedy"].clone();
    let command = remedy["command"].as_str().expect("a command");
    let output = std::process::Command::new("sh")
        .args(["-c", command])
        .output()
        .expect("a shell");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let watcher = client(&admin(&server), "watcher").await;
    stanch::drill::until(
        &watcher,
        "SELECT count(*) = 0 FROM pg_locks WHERE NOT granted",
    )
    .await
    .expect("freed");
    // A second time it finds nobody: the statement that it named is over.
    let again = std::process::Command::new("sh")
        .args(["-c", command])
        .output()
        .expect("a shell");
    assert!(
        String::from_utf8_lossy(&again.stdout).contains("(0 rows)"),
        "{again:?}"
    );
}
