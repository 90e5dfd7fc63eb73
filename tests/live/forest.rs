//! The forest against the server's own word, and what that can't say.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::Value;
use stanch::drill::{Incident, Server, ServerOptions};

use crate::harness::{self, admin, client, scene, sql, stanch_as};

/// (waiter, blocker), 0 for a prepared transaction.
pub type Edges = BTreeSet<(i64, i64)>;

pub async fn truth(server: &Server) -> Edges {
    let client = client(&admin(server), "truth").await;
    let rows = client
        .query_typed(
            "SELECT pid, pg_blocking_pids(pid) FROM (SELECT DISTINCT pid FROM pg_locks WHERE NOT granted) w",
            &[],
        )
        .await
        .expect("pg_blocking_pids");
    rows.iter()
        .flat_map(|row| {
            let waiter: i32 = row.get(0);
            let blockers: Vec<i32> = row.get(1);
            blockers
                .into_iter()
                .map(move |blocker| (waiter.into(), blocker.into()))
        })
        .collect()
}

pub fn edges(report: &Value) -> Edges {
    report["edges"]
        .as_array()
        .expect("edges")
        .iter()
        .map(|edge| {
            (
                edge["waiter"].as_i64().expect("a waiter"),
                edge["blocker"].as_i64().unwrap_or(0),
            )
        })
        .collect()
}

pub async fn blockers(server: &Server) -> Value {
    harness::ripe(&admin(server)).await;
    stanch_as(&admin(server), &["pg", "blockers", "--json"])
        .expect_code(0)
        .json()
}

/// On the scene as it stands the forest is what the server says, edge for edge.
async fn equals_the_truth(incident: Incident) -> Value {
    let (server, _scene) = scene(incident).await;
    let report = match incident {
        Incident::Storm | Incident::Leak => {
            stanch_as(&admin(&server), &["pg", "blockers", "--json"])
                .expect_code(0)
                .json()
        }
        _ => blockers(&server).await,
    };
    let truth = truth(&server).await;
    assert_eq!(edges(&report), truth, "{report:#}");
    assert_eq!(report["edges_total"].as_u64(), Some(truth.len() as u64));
    report
}

#[tokio::test]
async fn lock_chain() {
    let report = equals_the_truth(Incident::LockChain).await;
    let root = &report["roots"][0];
    assert_eq!(report["roots"].as_array().map(Vec::len), Some(1));
    assert_eq!(root["blocked_total"], 7);
    assert_eq!(root["blocked_direct"], 1);
    assert_eq!(root["freed"], 7);
    assert_eq!(root["state"], "idle in transaction");
    assert_eq!(root["remedy"]["action"], "terminate");
    assert_eq!(root["remedy"]["pid"], root["pid"]);
    assert_eq!(root["remedy"]["backend_start"], root["backend_start"]);
}

#[tokio::test]
async fn lock_queue() {
    let report = equals_the_truth(Incident::LockQueue).await;
    let root = &report["roots"][0];
    assert_eq!(root["blocked_total"], 9);
    assert_eq!(root["remedy"]["action"], "cancel");
    assert_ne!(
        root["remedy"]["pid"], root["pid"],
        "the DDL goes, not the reader"
    );
    let edges = report["edges"].as_array().expect("edges");
    let soft = edges.iter().filter(|edge| edge["soft"] == true).count();
    assert_eq!(
        soft, 8,
        "the readers are blocked by the queue, not by a holder"
    );
    let ddl = edges
        .iter()
        .find(|edge| edge["soft"] == false)
        .expect("a hard edge");
    assert_eq!(ddl["waiter"], root["remedy"]["pid"]);
    assert_eq!(ddl["lock"]["mode"], "AccessExclusiveLock");
    assert_eq!(ddl["lock"]["relation"], "public.orders");
}

#[tokio::test]
async fn deadlock() {
    let report = equals_the_truth(Incident::Deadlock).await;
    let root = &report["roots"][0];
    assert_eq!(root["kind"], "cycle");
    assert_eq!(root["pid"], Value::Null);
    assert_eq!(report["cycles"].as_array().map(Vec::len), Some(1));
    assert_eq!(report["cycles"][0].as_array().map(Vec::len), Some(2));
    assert_eq!(
        root["blocked_total"], 3,
        "both of the circle and the one behind it"
    );
}

#[tokio::test]
async fn scenes_without_a_lock_have_no_forest() {
    for incident in [Incident::Storm, Incident::Leak] {
        let report = equals_the_truth(incident).await;
        assert_eq!(report["roots"], Value::Array(vec![]));
    }
}

/// The name of a prepared transaction, in both forms that its virtual transaction has.
#[tokio::test]
async fn prepared_by_name_before_and_after_a_restart() {
    let report = equals_the_truth(Incident::Prepared).await;
    check_prepared(&report);

    let server = harness::server(&[("max_prepared_transactions", "5")]).await;
    let spec = server.spec("postgres", "postgres");
    let admin = client(&spec, "admin").await;
    sql(&admin, "CREATE ROLE app_rw LOGIN").await;
    sql(&admin, "CREATE DATABASE shop OWNER app_rw").await;
    let app = server.spec("app_rw", "shop");
    let payments = client(&app, "payments").await;
    sql(
        &payments,
        "CREATE TABLE orders (id int); INSERT INTO orders VALUES (7)",
    )
    .await;
    sql(
        &payments,
        "BEGIN; UPDATE orders SET id = 7; PREPARE TRANSACTION 'payment-4711'",
    )
    .await;
    sql(&admin, "CHECKPOINT").await;
    drop((payments, admin));
    let server = server.restart().await.expect("the server comes back");
    let before = client(&server.spec("postgres", "shop"), "admin").await;
    let vxid = before
        .query_typed(
            "SELECT virtualtransaction FROM pg_locks WHERE pid IS NULL LIMIT 1",
            &[],
        )
        .await
        .expect("locks");
    assert!(
        vxid[0].get::<_, String>(0).starts_with("-1/"),
        "the form after a restart"
    );
    for _ in 0..3 {
        stanch::drill::leave_running(client(&app, "checkout").await, "UPDATE orders SET id = 8");
    }
    let waiting = "SELECT count(DISTINCT pid) = 3 FROM pg_locks WHERE NOT granted";
    stanch::drill::until(&before, waiting)
        .await
        .expect("they wait");
    let report = blockers(&server).await;
    assert_eq!(edges(&report), truth(&server).await);
    check_prepared(&report);
}

fn check_prepared(report: &Value) {
    let root = &report["roots"][0];
    assert_eq!(root["kind"], "prepared");
    assert_eq!(root["pid"], Value::Null);
    assert_eq!(root["gid"], "payment-4711");
    assert_eq!(root["database"], "shop");
    assert_eq!(root["user"], "app_rw");
    assert_eq!(root["blocked_total"], 3);
    assert_eq!(root["remedy"]["action"], "resolve_prepared");
    let command = root["remedy"]["command"].as_str().expect("a command");
    assert!(
        command.contains("-d shop -c \"ROLLBACK PREPARED 'payment-4711'\""),
        "{command}"
    );
    let edge = report["edges"]
        .as_array()
        .expect("edges")
        .iter()
        .find(|edge| edge["blocker"].is_null());
    assert_eq!(edge.expect("an edge to it")["gid"], "payment-4711");
}

/// An idle session blocks by a session-level lock: roots are never told by their state.
#[tokio::test]
async fn an_idle_root() {
    let server = harness::server(&[]).await;
    let spec = server.spec("postgres", "postgres");
    let holder = client(&spec, "holder").await;
    sql(&holder, "SELECT pg_advisory_lock(42)").await;
    stanch::drill::leave_running(client(&spec, "waiter").await, "SELECT pg_advisory_lock(42)");
    let watcher = client(&spec, "watcher").await;
    let waiting = "SELECT count(*) = 1 FROM pg_locks WHERE NOT granted";
    stanch::drill::until(&watcher, waiting)
        .await
        .expect("it waits");
    harness::ripe(&spec).await;
    let report = stanch_as(&spec, &["pg", "blockers", "--json"])
        .expect_code(0)
        .json();
    let root = &report["roots"][0];
    assert!(
        root["remedy"]["why"]
            .as_str()
            .expect("why")
            .contains("ask the application first")
    );
    assert_eq!(root["state"], "idle");
    assert_eq!(root["remedy"]["action"], "terminate");
    assert_eq!(root["xact_age_ms"], Value::Null);
    let table = stanch_as(&spec, &["pg", "blockers"]).expect_code(0).stdout;
    assert!(
        table.contains("ExclusiveLock on advisory lock 42"),
        "{table}"
    );
}

/// A lock in another database: its relation may be something else here, so it is shown as database:oid.
#[tokio::test]
async fn a_lock_of_another_database() {
    let (server, _scene) = scene(Incident::LockQueue).await;
    let elsewhere = server.spec("postgres", "postgres");
    let report = stanch_as(&elsewhere, &["pg", "blockers", "--json"])
        .expect_code(0)
        .json();
    let shop = client(&admin(&server), "oid").await;
    let rows = shop
        .query_typed("SELECT 'orders'::regclass::oid", &[])
        .await
        .expect("an oid");
    let oid: u32 = rows[0].get(0);
    for edge in report["edges"].as_array().expect("edges") {
        assert_eq!(edge["lock"]["relation"], format!("shop:{oid}"));
    }
    assert_eq!(report["roots"][0]["database"], "shop");
}

/// Replay waits behind a reader, which `pg_blocking_pids` doesn't tell; and readers wait behind replay.
#[tokio::test]
async fn a_standby_in_both_directions() {
    standby_in_both_directions(harness::bin_dir()).await;
}

pub async fn standby_in_both_directions(bin_dir: PathBuf) {
    let primary = harness::start(ServerOptions {
        settings: vec![("max_wal_senders", "5".into())],
        bin_dir: bin_dir.clone(),
        ..ServerOptions::default()
    })
    .await;
    let boss = client(&primary.spec("postgres", "postgres"), "boss").await;
    sql(&boss, "CREATE DATABASE shop").await;
    let shop = client(&primary.spec("postgres", "shop"), "boss").await;
    sql(&shop, "CREATE TABLE orders (id int)").await;
    let standby = harness::start(ServerOptions {
        bin_dir,
        settings: vec![
            ("max_standby_streaming_delay", "-1".into()),
            ("hot_standby_feedback", "off".into()),
        ],
        standby_of: Some(primary.spec("postgres", "postgres")),
        ..ServerOptions::default()
    })
    .await;
    let reader = client(&admin(&standby), "report").await;
    sql(&reader, "BEGIN; SELECT * FROM orders").await;
    let writer = client(&admin(&primary), "migration").await;
    sql(&writer, "BEGIN; ALTER TABLE orders ADD COLUMN note text").await;
    // Only a commit makes the primary flush what it has written of it.
    let other = client(&admin(&primary), "other").await;
    sql(&other, "CREATE TABLE other (id int)").await;
    let watcher = client(&admin(&standby), "watcher").await;
    let waiting =
        "SELECT count(*) = 1 FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'";
    stanch::drill::until(&watcher, waiting)
        .await
        .expect("replay waits");

    let report = blockers(&standby).await;
    assert_eq!(
        truth(&standby).await,
        Edges::new(),
        "the server's function is silent on it"
    );
    assert_eq!(report["target"]["role"], "standby");
    let root = &report["roots"][0];
    assert_eq!(
        (root["kind"].as_str(), root["application_name"].as_str()),
        (Some("session"), Some("report"))
    );
    let why = root["remedy"]["why"].as_str().expect("why");
    assert!(why.contains("WAL replay waits for it"), "{why}");
    assert_eq!(
        root["remedy"]["pid"], root["pid"],
        "replay itself is never to be signalled"
    );
    let edge = &report["edges"][0];
    assert_eq!(
        (edge["source"].as_str(), edge["blocker"].as_i64()),
        (Some("derived"), root["pid"].as_i64())
    );

    // Once the reader is gone, replay holds the lock until the primary's transaction ends.
    drop(reader);
    let held = "SELECT count(*) > 0 FROM pg_locks WHERE granted AND mode = 'AccessExclusiveLock'";
    stanch::drill::until(&watcher, held)
        .await
        .expect("replay has it");
    stanch::drill::leave_running(
        client(&admin(&standby), "late").await,
        "SELECT * FROM orders",
    );
    let waiting = "SELECT count(*) = 1 FROM pg_locks WHERE NOT granted";
    stanch::drill::until(&watcher, waiting)
        .await
        .expect("a reader waits");
    let report = blockers(&standby).await;
    let root = &report["roots"][0];
    assert_eq!(root["kind"], "startup");
    assert_eq!(root["gid"], Value::Null);
    assert_eq!(root["remedy"]["action"], "wait");
    assert!(
        root["remedy"]["why"]
            .as_str()
            .expect("why")
            .contains("on the primary")
    );
    assert_eq!(edges(&report), truth(&standby).await);
}

/// Many waiters in one queue: a screen stays a screen, and the derived part is right.
#[tokio::test]
async fn three_hundred_in_one_queue() {
    let server = harness::server(&[("max_connections", "330")]).await;
    let spec = server.spec("postgres", "postgres");
    let holder = client(&spec, "holder").await;
    sql(
        &holder,
        "CREATE TABLE orders (id int); INSERT INTO orders VALUES (1)",
    )
    .await;
    sql(&holder, "BEGIN; UPDATE orders SET id = 2").await;
    for _ in 0..300 {
        stanch::drill::leave_running(client(&spec, "web").await, "UPDATE orders SET id = 3");
    }
    let waiting = "SELECT count(DISTINCT pid) = 300 FROM pg_locks WHERE NOT granted";
    stanch::drill::until(&holder, waiting)
        .await
        .expect("they wait");
    let report = stanch_as(&spec, &["pg", "blockers", "--json"])
        .expect_code(0)
        .json();
    assert_eq!(report["roots"][0]["blocked_total"], 300);
    assert_eq!(report["roots"][0]["freed"], 300);
    assert_eq!(report["edges_truncated"], true);
    // The first waits for the holder, each of the others for the first and for all ahead of it.
    assert_eq!(report["edges_total"], 1 + 299 * 300 / 2);
    let sources: BTreeSet<&str> = report["edges"]
        .as_array()
        .expect("edges")
        .iter()
        .filter_map(|edge| edge["source"].as_str())
        .collect();
    assert_eq!(sources, BTreeSet::from(["server", "derived"]));
    let table = stanch_as(&spec, &["pg", "blockers"]).expect_code(0).stdout;
    assert!(table.lines().count() < 20, "{table}");
    assert!(table.contains("and 295 more"), "{table}");
}

/// What has only just begun to wait is a busy row.
#[tokio::test]
async fn momentary_waits_are_no_reason_to_act() {
    let (server, _scene) = scene(Incident::LockChain).await;
    let started = std::time::Instant::now();
    let report = stanch_as(&admin(&server), &["pg", "blockers", "--json"])
        .expect_code(0)
        .json();
    if started.elapsed() < std::time::Duration::from_millis(500)
        && report["longest_wait_ms"].as_u64() < Some(1000)
    {
        assert_eq!(report["roots"][0]["remedy"]["action"], "wait");
        assert_eq!(report["roots"][0]["remedy"]["command"], Value::Null);
    }
    let report = blockers(&server).await;
    assert_eq!(report["roots"][0]["remedy"]["action"], "terminate");
}

/// CREATE INDEX CONCURRENTLY waits for older transactions and holds up nobody: nothing is to be ended for it.
#[tokio::test]
async fn an_index_that_waits_for_old_transactions() {
    let server = harness::server(&[]).await;
    let spec = server.spec("postgres", "postgres");
    let holder = client(&spec, "payments").await;
    sql(
        &holder,
        "CREATE TABLE orders (id int); CREATE TABLE other (id int)",
    )
    .await;
    sql(
        &holder,
        "BEGIN ISOLATION LEVEL REPEATABLE READ; INSERT INTO other VALUES (1)",
    )
    .await;
    stanch::drill::leave_running(
        client(&spec, "migration").await,
        "CREATE INDEX CONCURRENTLY i ON orders (id)",
    );
    harness::ripe(&spec).await;
    let report = stanch_as(&spec, &["pg", "blockers", "--json"])
        .expect_code(0)
        .json();
    assert_eq!(report["edges"][0]["lock"]["locktype"], "virtualxid");
    let remedy = &report["roots"][0]["remedy"];
    assert_eq!(
        (&remedy["action"], &remedy["command"]),
        (&"wait".into(), &Value::Null),
        "{remedy:#}"
    );
    let triage = stanch_as(&spec, &["triage", "--json"])
        .expect_code(0)
        .json();
    let chain = triage["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .find(|f| f["id"] == "lock.chain");
    assert_eq!(chain.expect("it is told")["severity"], "info");
}

/// Of a row that several share the server names one holder at a time.
#[tokio::test]
async fn shared_row_locks_are_said_to_be_shared() {
    let server = harness::server(&[]).await;
    let spec = server.spec("postgres", "postgres");
    let first = client(&spec, "first").await;
    sql(
        &first,
        "CREATE TABLE orders (id int); INSERT INTO orders VALUES (1)",
    )
    .await;
    let second = client(&spec, "second").await;
    for client in [&first, &second] {
        sql(client, "BEGIN; SELECT * FROM orders FOR SHARE").await;
    }
    stanch::drill::leave_running(client(&spec, "web").await, "UPDATE orders SET id = 2");
    harness::ripe(&spec).await;
    let report = stanch_as(&spec, &["pg", "blockers", "--json"])
        .expect_code(0)
        .json();
    assert_eq!(report["roots"].as_array().map(Vec::len), Some(1));
    assert_eq!(report["roots"][0]["shared_rows"], true);
    let table = stanch_as(&spec, &["pg", "blockers"]).expect_code(0).stdout;
    assert!(table.contains("others may hold the same rows"), "{table}");
}
