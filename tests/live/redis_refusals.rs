//! A Redis that lets nobody in, and a cluster of which one is gone: told as what it is.

use crate::harness::eventually;
use crate::redis_keys::{connect, say_to, stanch, start};

#[tokio::test]
async fn a_server_without_room_for_another_client() {
    let Some(cache) = start("redis-server", &[], true).await else {
        return;
    };
    let mut link = connect(&cache.url());
    say_to(&mut link, "CONFIG SET maxclients 1");
    let socket = format!("127.0.0.1:{}", cache.port().expect("a port"));
    for url in [
        cache.url(),
        format!("redis://{socket}"),
        format!("redis://u:hunter2@{socket}/2"),
    ] {
        let run = stanch(&url, &["info"]).expect_code(3);
        assert!(
            run.stderr.contains("max number of clients reached"),
            "{run:?}"
        );
        assert!(run.stderr.contains("CONFIG SET maxclients"), "{run:?}");
        assert!(
            !run.stderr.contains("TLS") && !run.stderr.contains("hunter2"),
            "{run:?}"
        );
    }
}

#[tokio::test]
async fn a_cluster_of_which_one_primary_is_gone() {
    let settings = [
        ("cluster-enabled", "yes"),
        ("cluster-config-file", "nodes.conf"),
        ("cluster-require-full-coverage", "no"),
    ];
    let mut nodes = Vec::new();
    for _ in 0..2 {
        let Some(node) = start("redis-server", &settings, true).await else {
            return;
        };
        nodes.push(node);
    }
    let url = |n: usize| format!("redis://127.0.0.1:{}", nodes[n].port().expect("a port"));
    let (first, second) = (url(0), url(1));
    let mut link = connect(&first);
    say_to(&mut link, "CLUSTER ADDSLOTSRANGE 0 8191");
    say_to(&mut connect(&second), "CLUSTER ADDSLOTSRANGE 8192 16383");
    let port = second.rsplit(':').next().expect("a port").to_owned();
    say_to(&mut link, &format!("CLUSTER MEET 127.0.0.1 {port}"));
    eventually("the cluster", || {
        [&first, &second].iter().all(|url| {
            let info = format!("{:?}", say_to(&mut connect(url), "CLUSTER INFO"));
            info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:2")
        })
    })
    .await;
    // Of these the first has its slot.
    say_to(&mut link, "SET {06S}:a 1");
    drop(nodes.pop());
    for what in ["expiry", "queues", "info"] {
        let run = stanch(&first, &[what, "--json"]).expect_code(3);
        let report = run.json();
        let missing = report["coverage"]["sections"]["primaries"]["why"].to_string();
        assert!(
            missing.contains(&format!("127.0.0.1:{port} isn't reached")),
            "{run:?}"
        );
        assert_eq!(report["target"]["nodes"].as_array().map(Vec::len), Some(1));
    }
    let run = stanch(&first, &["expiry"]).expect_code(3);
    assert!(run.stdout.contains("1 key"), "{run:?}");
}

#[tokio::test]
async fn a_server_that_is_busy_with_a_script() {
    let Some(cache) = start("redis-server", &[("busy-reply-threshold", "10")], true).await else {
        return;
    };
    let url = cache.url();
    let looping = std::thread::spawn(move || {
        let mut command = redis::cmd("EVAL");
        command.arg("while true do end").arg(0);
        let _ = command.query::<redis::Value>(&mut connect(&url));
    });
    let mut link = connect(&cache.url());
    eventually("the script runs", || {
        let said = redis::cmd("PING").query::<redis::Value>(&mut link);
        said.is_err_and(|error| error.code() == Some("BUSY"))
    })
    .await;
    for what in ["info", "expiry", "queues"] {
        let run = stanch(&cache.url(), &[what]).expect_code(3);
        assert!(run.stderr.contains("BUSY"), "{run:?}");
        assert!(run.stderr.contains("SCRIPT KILL"), "{run:?}");
        assert!(!format!("{run:?}").contains("+time"), "{run:?}");
    }
    say_to(&mut link, "SCRIPT KILL");
    looping.join().expect("it ends");
}

/// What is granted as `info` says it is enough to listen.
#[tokio::test]
async fn the_grant_that_lets_a_login_listen_for_misses() {
    let Some(cache) = start("redis-server", &[], true).await else {
        return;
    };
    let mut link = connect(&cache.url());
    say_to(&mut link, "CONFIG SET notify-keyspace-events Em$");
    say_to(
        &mut link,
        "ACL SETUSER looker on >pw ~* resetchannels +@all -psubscribe",
    );
    let url = format!(
        "redis://looker:pw@127.0.0.1:{}/3",
        cache.port().expect("a port")
    );
    let granted = |url: &str| {
        let report = stanch(url, &["info", "--json"]).json();
        let rights = report["info"][0]["rights"].as_array().cloned();
        let right = rights
            .into_iter()
            .flatten()
            .find(|right| right["command"] == "PSUBSCRIBE");
        right.expect("the right")
    };
    let right = granted(&url);
    assert_eq!(right["allowed"], "no");
    let grant = right["grant"].as_str().expect("a grant").to_owned();
    assert_eq!(grant, "ACL SETUSER looker +psubscribe '&__keyevent@3__:*'");
    say_to(&mut link, &grant.replace('\'', ""));
    assert_eq!(granted(&url)["allowed"], "yes");
    let mut listener = connect(&url);
    let mut listener = listener.as_pubsub();
    listener
        .psubscribe("__keyevent@3__:*")
        .expect("it may listen");
}

#[tokio::test]
async fn a_sample_of_one_pattern_in_two_databases() {
    let Some(cache) = start("redis-server", &[], true).await else {
        return;
    };
    let url = cache.url();
    let (done, kept) = (
        std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false)),
        std::sync::atomic::Ordering::Relaxed,
    );
    let loading = {
        let done = std::sync::Arc::clone(&done);
        std::thread::spawn(move || {
            let mut link = connect(&url);
            while !done.load(kept) {
                for line in [
                    "SELECT 3",
                    "GET session:1",
                    "SELECT 0",
                    "GET session:1",
                    "GET other",
                ] {
                    say_to(&mut link, line);
                }
            }
        })
    };
    let sample = ["--monitor", "--monitor-lines", "2000", "--match", "sess*"];
    let json = stanch(
        &cache.url(),
        &[&["hotkeys", "--json"], &sample[..]].concat(),
    )
    .json();
    let table = stanch(&cache.url(), &[&["hotkeys"], &sample[..]].concat());
    done.store(true, kept);
    loading.join().expect("it ends");
    let keys = json["keys"].as_array().expect("keys");
    let mut found: Vec<(&str, u64)> = keys
        .iter()
        .map(|key| {
            let database = key["database"].as_u64().expect("a database");
            (key["key"].as_str().expect("a key"), database)
        })
        .collect();
    found.sort_unstable();
    assert_eq!(found, [("session:1", 0), ("session:1", 3)]);
    assert_eq!(json["coverage"]["pattern"], "sess*");
    assert!(table.stdout.contains(" db  key"), "{table:?}");
}

#[tokio::test]
async fn a_server_without_keys_and_a_list_that_there_is_not() {
    let Some(cache) = start("redis-server", &[], true).await else {
        return;
    };
    let run = stanch(&cache.url(), &["hotkeys", "--json"]).expect_code(3);
    let report = run.json();
    assert_eq!(report["method"], serde_json::Value::Null);
    let why = &report["coverage"]["sections"]["ranking"]["why"];
    assert!(
        why.as_str().is_some_and(|why| why.contains("no keys")),
        "{why}"
    );
    for what in ["info", "bigkeys", "expiry", "queues", "stampede"] {
        let run = stanch(&cache.url(), &[what, "-o", "csv", "--list", "nope"]).expect_code(64);
        assert!(run.stderr.contains("no list \"nope\""), "{run:?}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_said_with_what_to_try() {
    let Some(cache) = start("redis-server", &[], true).await else {
        return;
    };
    let tried = |url: &str, what: &[&str], try_it: &str| {
        let run = stanch(url, what).expect_code(3);
        let hint = run.stderr.lines().find(|line| line.contains("try:"));
        let hint = hint.unwrap_or_else(|| panic!("{run:?}"));
        assert!(hint.contains(try_it), "{run:?}");
        run.stderr
    };
    let url = cache.url();
    tried(&url, &["info", "--redis-db", "99"], "CONFIG GET databases");
    let has_hotkeys = redis::cmd("HOTKEYS")
        .arg("GET")
        .query::<redis::Value>(&mut connect(&url))
        .is_ok();
    if !has_hotkeys {
        let state = crate::harness::folder();
        let mut command = crate::harness::command(&["redis", "hotkeys", "--server-hotkeys"]);
        command
            .env("REDIS_URL", &url)
            .env("XDG_STATE_HOME", state.path());
        let run = crate::harness::run(command).expect_code(3);
        assert!(run.stderr.contains("doesn't count hot keys"), "{run:?}");
        assert!(run.stderr.contains("hotkeys --monitor"), "{run:?}");
        assert!(!run.stderr.contains("unknown command"), "{run:?}");
    }
    // The quick way doesn't find a queue of BullMQ: that isn't good news.
    let mut link = connect(&url);
    say_to(&mut link, "HSET bull:mail:meta opts.maxLenEvents 10000");
    say_to(&mut link, "LPUSH bull:mail:wait 1");
    let check = stanch(&url, &["queues", "--quick", "--check"]).expect_code(3);
    let none = "STANCH QUEUES UNKNOWN: no queue found in the usual places; ";
    assert!(check.stdout.starts_with(none), "{check:?}");
    assert!(check.stdout.contains("BullMQ"), "{check:?}");
    let port = stanch::drill::free_port().expect("a free port");
    let nobody = format!("redis://127.0.0.1:{port}");
    tried(&nobody, &["info"], "is the server up");
    let settings = [
        ("cluster-enabled", "yes"),
        ("cluster-config-file", "nodes.conf"),
    ];
    let Some(node) = start("redis-server", &settings, true).await else {
        return;
    };
    let alone = "without --redis-db";
    tried(&node.url(), &["info", "--redis-db", "2"], alone);
}
