//! How groups are guarded, who misses what, and that a setting which is changed for a while is put back whatever happens.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::harness::{command, eventually, folder, journals, run, server, stanch_command};
use crate::redis_keys::{cache, connect, say_to, stanch, start};

fn group<'r>(report: &'r Value, name: &str) -> &'r Value {
    let groups = report["stampede"].as_array().expect("groups");
    groups
        .iter()
        .find(|group| group["group"] == name)
        .unwrap_or_else(|| panic!("{name}: {report:#}"))
}

/// A catalog of one lifetime, and one that is jittered.
fn fill(connection: &mut redis::Connection) {
    let mut pipe = redis::pipe();
    for n in 0..2_000_u64 {
        pipe.cmd("SET")
            .arg(format!("catalog:product:{n}"))
            .arg("{}")
            .arg("PX")
            .arg(1_800_000 + n);
        let stale = format!("{{\"data\":1,\"stale_at\":{}}}", 1_000_000_000_u64);
        pipe.cmd("SET")
            .arg(format!("page:{n}:html"))
            .arg(stale)
            .arg("PX")
            .arg(60_000 + n * 3_001);
    }
    pipe.exec(connection).expect("it is written");
}

#[tokio::test]
async fn every_guard_with_its_evidence() {
    let Some(server) = cache(&[("maxmemory", "100mb"), ("maxmemory-policy", "allkeys-lfu")]).await
    else {
        return;
    };
    let mut connection = connect(&server.url());
    fill(&mut connection);
    let report = stanch(&server.url(), &["stampede", "--full", "--json"])
        .expect_code(0)
        .json();
    assert_eq!(report["schema"], "stanch.stampede/1");
    assert_eq!(group(&report, "catalog:product:*")["verdict"], "no_jitter");
    assert_eq!(group(&report, "page:*:html")["verdict"], "not_seen");
    assert_eq!(
        (&report["misses_by"], &report["statements"]),
        (&Value::Null, &Value::Null)
    );
    // Only by name: one value of each group.
    let report = stanch(&server.url(), &["stampede", "--full", "--peek", "--json"])
        .expect_code(0)
        .json();
    let page = group(&report, "page:*:html");
    assert_eq!(
        (&page["verdict"], &page["soft"]["field"]),
        (&"protected".into(), &"stale_at".into()),
        "{page}"
    );
    assert_eq!(group(&report, "catalog:product:*")["soft"]["found"], false);
    // A lock that lives shorter than a rebuild, and one that lives for ever.
    for n in 0..6 {
        say_to(&mut connection, &format!("SET lock:page:{n} me PX 9000"));
    }
    let report = stanch(&server.url(), &["stampede", "--full", "--json"])
        .expect_code(0)
        .json();
    assert_eq!(group(&report, "page:*:html")["verdict"], "protected");
    let short = stanch(
        &server.url(),
        &[
            "stampede",
            "--full",
            "--rebuild",
            "30s",
            "--check",
            "--json",
        ],
    )
    .expect_code(1);
    assert_eq!(
        group(&short.json(), "page:*:html")["verdict"],
        "lock_too_short"
    );
    say_to(&mut connection, "SET lock:page:8 me");
    let line = stanch(&server.url(), &["stampede", "--full", "--check"]).expect_code(2);
    assert!(
        line.stdout
            .starts_with("STANCH STAMPEDE CRITICAL: page:*:html: ")
            && line.stdout.lines().count() == 1,
        "{line:?}"
    );
    let forever = stanch(&server.url(), &["stampede", "--full"]).expect_code(0);
    assert!(
        forever.stdout.contains("1 lock key without TTL"),
        "{forever:?}"
    );
}

/// The program with a home for its journals.
fn at_home(state: &Path, url: &str, what: &[&str]) -> Command {
    let mut command = command(&[&["redis"], what].concat());
    command.env("REDIS_URL", url).env("XDG_STATE_HOME", state);
    command
}

fn flags(connection: &mut redis::Connection) -> String {
    let (_, flags): (String, String) = redis::cmd("CONFIG")
        .arg("GET")
        .arg("notify-keyspace-events")
        .query(connection)
        .expect("a setting");
    flags
}

fn listening(state: &Path, url: &str) -> Child {
    at_home(
        state,
        url,
        &[
            "stampede",
            "--full",
            "--enable-keymiss",
            "--listen",
            "60s",
            "--json",
        ],
    )
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .expect("it runs")
}

#[tokio::test]
async fn misses_are_counted_and_the_setting_is_put_back() {
    let (Some(server), state) = (cache(&[("notify-keyspace-events", "KEA")]).await, folder())
    else {
        return;
    };
    let mut connection = connect(&server.url());
    fill(&mut connection);
    let before = flags(&mut connection);
    // Nothing is switched on that isn't asked for.
    let plain = run(at_home(
        state.path(),
        &server.url(),
        &["stampede", "--full", "--json"],
    ))
    .expect_code(0);
    assert_eq!(
        (&plain.json()["misses_by"], flags(&mut connection)),
        (&Value::Null, before.clone())
    );
    assert!(journals(state.path()).is_empty());

    let child = at_home(
        state.path(),
        &server.url(),
        &[
            "stampede",
            "--full",
            "--enable-keymiss",
            "--listen",
            "8s",
            "--json",
        ],
    )
    .stdout(Stdio::piped())
    .spawn()
    .expect("it runs");
    let url = server.url();
    let mut looker = connect(&url);
    eventually("the events are on", || flags(&mut looker).contains('m')).await;
    eventually("it listens", || {
        let patterns: u64 = redis::cmd("PUBSUB")
            .arg("NUMPAT")
            .query(&mut looker)
            .expect("a number");
        patterns > 0
    })
    .await;
    for _ in 0..12 {
        say_to(&mut connection, "GET catalog:product:99999");
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    say_to(&mut connection, "SET catalog:product:99999 v EX 900");
    let output = child.wait_with_output().expect("it ends");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let catalog = group(&report, "catalog:product:*");
    assert_eq!(catalog["verdict"], "unprotected", "{catalog}");
    assert_eq!(
        (
            &catalog["misses"]["misses"],
            &catalog["misses"]["worst_misses"]
        ),
        (&12.into(), &12.into())
    );
    assert_eq!(catalog["misses"]["worst"]["key"], "catalog:product:99999");
    let rebuild = catalog["misses"]["rebuild_ms"].as_u64().expect("a time");
    assert!((280..8000).contains(&rebuild), "{rebuild}");
    assert_eq!(flags(&mut connection), before);
    let text = std::fs::read_to_string(&journals(state.path())[0]).expect("a journal");
    assert_eq!(
        text.matches("effect_intent").count(),
        2,
        "there and back: {text}"
    );

    // Ctrl-C ends the listening, and the setting is put back.
    let child = listening(state.path(), &server.url());
    eventually("the events are on", || flags(&mut looker).contains('m')).await;
    kill_process(Pid::from_child(&child), Signal::INT).expect("it is there");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("again"),
        "{output:?}"
    );
    assert_eq!(flags(&mut connection), before);

    // Where they are on already, nothing is changed.
    say_to(&mut connection, "CONFIG SET notify-keyspace-events Em");
    let on = run(at_home(
        state.path(),
        &server.url(),
        &["stampede", "--full", "--listen", "100ms", "--json"],
    ))
    .expect_code(0);
    assert_eq!(on.json()["misses_by"], "events that were on");
    assert_eq!(journals(state.path()).len(), 2);
}

#[tokio::test]
async fn what_a_killed_run_left_is_put_back_and_only_what_is_still_ours() {
    let (Some(server), state) = (cache(&[]).await, folder()) else {
        return;
    };
    let mut connection = connect(&server.url());
    fill(&mut connection);
    let restore = || run(at_home(state.path(), &server.url(), &["restore"]));
    assert!(restore().expect_code(0).stdout.contains("nothing of ours"));
    for meanwhile in [None, Some("KEA")] {
        let mut child = listening(state.path(), &server.url());
        eventually("the events are on", || flags(&mut connection).contains('m')).await;
        child.kill().expect("it is there");
        child.wait().expect("it ends");
        assert!(flags(&mut connection).contains('m'), "it is left so");
        if let Some(other) = meanwhile {
            say_to(
                &mut connection,
                &format!("CONFIG SET notify-keyspace-events {other}"),
            );
        }
        let run = restore().expect_code(0);
        match meanwhile {
            None => {
                assert!(run.stdout.contains("is \"\" again"), "{run:?}");
                assert_eq!(flags(&mut connection), "");
            }
            Some(_) => {
                assert!(run.stdout.contains("is left alone"), "{run:?}");
                assert_eq!(flags(&mut connection), "AKE");
            }
        }
        assert!(
            restore().expect_code(0).stdout.contains("nothing of ours"),
            "once is enough"
        );
    }
}

#[tokio::test]
async fn a_killed_run_is_put_back_by_another_name_of_its_server() {
    let (Some(server), state) = (start("redis-server", &[], true).await, folder()) else {
        return;
    };
    let mut connection = connect(&server.url());
    fill(&mut connection);
    let port = server.port().expect("a port");
    let restore = |url: &str| run(at_home(state.path(), url, &["restore"]));
    let by_name = format!("redis://localhost:{port}");
    let killed = async |connection: &mut redis::Connection| {
        let mut child = listening(state.path(), &server.url());
        eventually("the events are on", || flags(connection).contains('m')).await;
        child.kill().expect("it is there");
        child.wait().expect("it ends");
    };
    killed(&mut connection).await;
    let other = cache(&[]).await.expect("another");
    let elsewhere = restore(&other.url()).expect_code(0);
    assert!(
        elsewhere.stderr.contains("is for another Redis"),
        "{elsewhere:?}"
    );
    assert!(
        elsewhere.stdout.contains("nothing of ours"),
        "{elsewhere:?}"
    );
    let back = restore(&by_name).expect_code(0);
    assert!(back.stdout.contains("is \"\" again"), "{back:?}");
    assert_eq!(flags(&mut connection), "");
    assert!(
        restore(&server.url())
            .expect_code(0)
            .stdout
            .contains("nothing of ours")
    );
}

#[tokio::test]
async fn a_login_that_may_not_switch_events_on() {
    let settings = [
        ("user", "reader on >hunter2 ~* +@read"),
        ("user", "default on nopass ~* +@all"),
    ];
    let (Some(server), state) = (cache(&settings).await, folder()) else {
        return;
    };
    let mut connection = connect(&server.url());
    fill(&mut connection);
    let url = format!(
        "unix://{}?user=reader&pass=hunter2",
        server.socket().display()
    );
    run(at_home(state.path(), &url, &["stampede", "--full"])).expect_code(0);
    let refused = run(at_home(
        state.path(),
        &url,
        &["stampede", "--full", "--enable-keymiss"],
    ))
    .expect_code(3);
    assert!(refused.stderr.contains("NOPERM"), "{refused:?}");
    assert_eq!(flags(&mut connection), "");
}

#[tokio::test]
async fn in_triage_and_in_books() {
    let Some(server_of_cache) =
        cache(&[("maxmemory", "100mb"), ("maxmemory-policy", "allkeys-lfu")]).await
    else {
        return;
    };
    let mut connection = connect(&server_of_cache.url());
    fill(&mut connection);
    say_to(&mut connection, "SET lock:catalog:product:8 me");
    let database = server(&[]).await;
    let spec = database.spec(database.superuser(), "postgres");
    let url = server_of_cache.url();
    let triage = run(stanch_command(
        &spec,
        &["triage", "--json", "--redis", &url],
    ))
    .expect_code(2);
    let report = triage.json();
    let ids: Vec<&str> = report["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .filter_map(|f| f["id"].as_str())
        .collect();
    assert!(
        ids.contains(&"redis.expiry_cliff") && ids.contains(&"redis.lock_ttl"),
        "{ids:?}"
    );
    assert_eq!(report["redis"]["coverage"]["complete"], true);
    let lock = report["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .find(|f| f["id"] == "redis.lock_ttl")
        .expect("it");
    assert_eq!(
        lock["next"][0],
        format!("stanch redis stampede --redis {url}")
    );
    // Without one nothing is said of it; one that can't be reached is no all-clear.
    let without = run(stanch_command(&spec, &["triage", "--json"]));
    assert_eq!(without.json()["redis"], Value::Null);
    let gone = run(stanch_command(
        &spec,
        &["triage", "--redis", "redis://127.0.0.1:1"],
    ))
    .expect_code(3);
    assert!(
        gone.stdout.contains("Redis couldn't be looked at"),
        "{gone:?}"
    );
    run(stanch_command(
        &spec,
        &["triage", "--redis", &url, "--every", "1s"],
    ))
    .expect_code(64);
    // That PostgreSQL is away is an error, and no reason to keep back what was seen of Redis.
    let away = [
        "triage",
        "--json",
        "-h",
        "127.0.0.1",
        "-p",
        "1",
        "--redis",
        &url,
    ];
    let away = run(command(&away)).expect_code(3);
    assert!(away.stderr.contains("no connection"), "{away:?}");
    let report = away.json();
    assert_eq!(
        report["coverage"]["sections"]["activity"]["status"],
        "skipped"
    );
    assert_eq!(report["redis"]["coverage"]["complete"], true);
    let found = report["findings"].to_string();
    assert!(found.contains("redis.expiry_cliff"), "{found}");

    let state = folder();
    let book = state.path().join("book.yaml");
    std::fs::write(
        &book,
        "runbook: v1\nid: looks\ntitle: Looks\nsteps:\n  - { id: when, redis: { report: expiry } }\n  - { id: guards, redis: { report: stampede } }\n  \
         - { id: hot, redis: { report: hotkeys } }\n  - { id: way, decide: [{ if: \"steps.when.cliffs.exists(c, c.keys == 2000) && steps.hot.method == \
         'lfu' && steps.guards.stampede.exists(g, g.verdict == 'lock_without_ttl')\", goto: seen }, { else: blind }] }\n  - { id: seen, end: resolved }\n  \
         - { id: blind, end: escalated }\n",
    )
    .expect("it is written");
    let file = book.display().to_string();
    let mut walk = stanch_command(
        &spec,
        &["runbook", "run", "--json", "--yes", "--file", &file],
    );
    walk.env("XDG_STATE_HOME", state.path())
        .env("REDIS_URL", &url);
    let walked = run(walk);
    assert_eq!(walked.json()["ended"], "resolved", "{walked:?}");
}

#[tokio::test]
async fn numbers_for_prometheus() {
    let Some(server) = cache(&[]).await else {
        return;
    };
    let mut connection = connect(&server.url());
    for line in ["SADD queues default", "LPUSH queue:default {}"] {
        say_to(&mut connection, line);
    }
    let queues = stanch(&server.url(), &["queues", "--full", "-o", "prometheus"]).expect_code(0);
    let depth = queues
        .stdout
        .lines()
        .find(|line| line.starts_with("stanch_queue_depth{"))
        .unwrap_or_else(|| panic!("{queues:?}"));
    assert!(
        depth.contains("queue=\"default\"") && depth.ends_with(" 1"),
        "{depth}"
    );
    let info = stanch(
        &server.url(),
        &["info", "--sample", "10ms", "-o", "prometheus"],
    )
    .expect_code(0);
    assert!(info.stdout.contains("stanch_redis_keys{"), "{info:?}");
    stanch(&server.url(), &["expiry", "-o", "prometheus"]).expect_code(64);
}

#[test]
fn the_drills_show_what_they_are() {
    for (incident, check) in [
        (
            "hot-key",
            (|report: &Value| report["keys"][0]["key"] == "config:feature-flags")
                as fn(&Value) -> bool,
        ),
        ("stampede", |report| {
            report["stampede"][0]["verdict"] == "no_jitter"
                && report["cliffs"][0]["keys"] == 3000
                && report["statements"].is_array()
        }),
        ("queue-backlog", |report| {
            let queues = report["queues"].as_array().expect("queues");
            let default = queues
                .iter()
                .find(|queue| queue["name"] == "default")
                .expect("the queue");
            default["verdict"] == "warning"
                && default["workers"] == 1
                && default["depth"].as_u64().is_some_and(|depth| depth > 4_000)
                && default["net_per_s"].as_f64().is_some_and(|net| net > 0.0)
        }),
    ] {
        let run = run(command(&["drill", incident, "--once", "--json"])).expect_code(0);
        assert!(check(&run.json()), "{incident}: {run:?}");
    }
}
