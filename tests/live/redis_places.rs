//! Every way in: cluster, sentinels, TLS, sockets, passwords; and a walk that leaves the server to others.

use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::Value;
use stanch::drill::{self, Cache, find_tool};

use crate::harness::{command, eventually, path, run};
use crate::pki::Pki;
use crate::redis_keys::{cache, connect, say_to, stanch, start, start_with};

/// Three primaries on loopback that share the slots.
async fn cluster() -> Option<Vec<Cache>> {
    let settings = [
        ("cluster-enabled", "yes"),
        ("cluster-config-file", "nodes.conf"),
        ("maxmemory", "100mb"),
        ("maxmemory-policy", "allkeys-lfu"),
    ];
    let mut nodes = Vec::new();
    for _ in 0..3 {
        nodes.push(start("redis-server", &settings, true).await?);
    }
    for (n, (from, to)) in [(0, 5460), (5461, 10922), (10923, 16383)]
        .into_iter()
        .enumerate()
    {
        let mut connection = connect(&nodes[n].url());
        say_to(
            &mut connection,
            &format!("CLUSTER ADDSLOTSRANGE {from} {to}"),
        );
        say_to(
            &mut connection,
            &format!(
                "CLUSTER MEET 127.0.0.1 {}",
                nodes[0].port().expect("a port")
            ),
        );
    }
    let urls: Vec<String> = nodes.iter().map(Cache::url).collect();
    eventually("the cluster comes about", || {
        urls.iter().all(|url| {
            let info = say_to(&mut connect(url), "CLUSTER INFO");
            let text = format!("{info:?}");
            text.contains("cluster_state:ok") && text.contains("cluster_known_nodes:3")
        })
    })
    .await;
    Some(nodes)
}

#[tokio::test]
async fn every_primary_of_a_cluster() {
    let Some(nodes) = cluster().await else { return };
    let url = |n: usize| format!("redis://127.0.0.1:{}", nodes[n].port().expect("a port"));
    let mut written = 0;
    for node in &nodes {
        let mut connection = connect(&node.url());
        for n in 0..900 {
            let set = redis::cmd("SET")
                .arg(format!("session:{n}"))
                .arg("v")
                .arg("EX")
                .arg(900)
                .exec(&mut connection);
            written += u64::from(set.is_ok());
        }
    }
    assert_eq!(written, 900);
    for n in 0..3 {
        let report = stanch(&url(n), &["expiry", "--full", "--json"])
            .expect_code(0)
            .json();
        assert_eq!(report["target"]["mode"], "cluster");
        assert_eq!(report["coverage"]["keys_seen"], 900);
        assert_eq!(
            report["coverage"]["nodes"].as_array().map(Vec::len),
            Some(3)
        );
        assert_eq!(report["groups"][0]["keys"], 900);
    }
    let seeds = format!(
        "redis-cluster://127.0.0.1:1,127.0.0.1:{}",
        nodes[1].port().expect("a port")
    );
    let hot = stanch(&seeds, &["hotkeys", "--full", "--json"])
        .expect_code(0)
        .json();
    assert_eq!(hot["sampled"], 900);
    let info = stanch(&url(0), &["info", "--sample", "10ms", "--json"])
        .expect_code(0)
        .json();
    assert_eq!(info["info"].as_array().map(Vec::len), Some(3));
    // A node that is gone: nothing is told as if it were all.
    let mut nodes = nodes;
    nodes[2].kill().expect("it ends");
    let run = stanch(
        &format!("redis://127.0.0.1:{}", nodes[0].port().expect("a port")),
        &["expiry", "--full", "--json"],
    );
    assert_eq!(run.code, 3, "{run:?}");
}

struct Sentinel(Child);

impl Drop for Sentinel {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn the_primary_that_the_sentinels_name() {
    let Some(server) = start("redis-server", &[("requirepass", "hunter2")], true).await else {
        return;
    };
    let home = crate::harness::folder();
    let port = drill::free_port().expect("a port");
    let conf = home.path().join("sentinel.conf");
    let lines = format!(
        "port {port}\nbind 127.0.0.1\ndir {}\nsentinel monitor main 127.0.0.1 {} 1\nsentinel auth-pass main hunter2\n",
        home.path().display(),
        server.port().expect("a port")
    );
    std::fs::write(&conf, lines).expect("it is written");
    let program = find_tool(&path(), "redis-server").expect("it was there");
    let child = Command::new(program)
        .arg(&conf)
        .arg("--sentinel")
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    let _sentinel = Sentinel(child);
    eventually("the sentinel listens", || {
        std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
    })
    .await;
    let url = format!("redis-sentinel://:hunter2@127.0.0.1:1,127.0.0.1:{port}/0#main");
    let report = stanch(&url, &["expiry", "--full", "--json"])
        .expect_code(0)
        .json();
    assert_eq!(report["target"]["mode"], "sentinel");
    assert_eq!(report["target"]["port"], server.port().expect("a port"));
    let unknown = stanch(
        &format!("redis-sentinel://:hunter2@127.0.0.1:{port}#other"),
        &["expiry"],
    )
    .expect_code(3);
    assert!(
        unknown
            .stderr
            .contains("the sentinels know of no primary \"other\"")
            && unknown.stderr.contains("SENTINEL MASTERS"),
        "{unknown:?}"
    );
    assert!(!unknown.stderr.contains("hunter2"));
}

#[tokio::test]
async fn by_tls_and_only_to_whom_it_trusts() {
    let Some(probe) = cache(&[]).await else {
        return;
    };
    drop(probe);
    let pki = Pki::new();
    let port = drill::free_port().expect("a port").to_string();
    let read = |name: &str| std::fs::read(pki.path(name)).expect("a file");
    let files = vec![
        ("server.crt", read("server.crt")),
        ("server.key", read("server.key")),
        ("ca.crt", read("ca.crt")),
    ];
    let settings = [
        ("tls-port", port.as_str()),
        ("tls-cert-file", "server.crt"),
        ("tls-key-file", "server.key"),
        ("tls-ca-cert-file", "ca.crt"),
        ("tls-auth-clients", "no"),
    ];
    let ca = pki.path("ca.crt").display().to_string();
    let Some(_server) = start_with("redis-server", &settings, false, files).await else {
        return;
    };
    let url = format!("rediss://localhost:{port}");
    let report = stanch(&url, &["expiry", "--full", "--json", "--cacert", &ca])
        .expect_code(0)
        .json();
    assert_eq!(report["target"]["tls"], true);
    let stranger = stanch(&url, &["expiry"]).expect_code(3);
    assert!(stranger.stderr.contains("certificate"), "{stranger:?}");
    stanch(&url, &["expiry", "--insecure"]).expect_code(0);
    let plain = stanch("redis://localhost:1", &["expiry", "--insecure"]).expect_code(64);
    assert!(plain.stderr.contains("rediss://"), "{plain:?}");
}

#[tokio::test]
async fn passwords_of_other_places_and_other_databases() {
    let Some(server) = start("redis-server", &[("requirepass", "hunter2")], true).await else {
        return;
    };
    let url = format!("redis://127.0.0.1:{}", server.port().expect("a port"));
    let mut connection = connect(&format!(
        "unix://{}?pass=hunter2",
        server.socket().display()
    ));
    for line in ["SELECT 3", "SET only:here v"] {
        say_to(&mut connection, line);
    }
    let none = stanch(&url, &["expiry"]).expect_code(3);
    assert!(
        none.stderr.contains("NOAUTH") && none.stderr.contains("REDISCLI_AUTH"),
        "{none:?}"
    );
    let mut with = command(&["redis", "expiry", "--json", "--redis-db", "3"]);
    with.env("REDIS_URL", &url).env("REDISCLI_AUTH", "hunter2");
    let report = run(with).expect_code(0).json();
    assert_eq!(
        (&report["target"]["database"], &report["groups"][0]["group"]),
        (&3.into(), &"only:here".into())
    );
    // Of a target, and only of one that has a Redis.
    let home = crate::harness::folder();
    let file = "targets:\n  prod: { db: postgresql://h/d, redis: URL }\n  other: { db: postgresql://h/d }\nredis: { groups: [\"only:*\"] }\n";
    std::fs::write(
        home.path().join("stanch.yaml"),
        file.replace("URL", &format!("{url}/3")),
    )
    .expect("it is written");
    let in_folder = |target: &str| {
        let mut command = command(&["redis", "expiry", "--json", "-d", target]);
        command
            .current_dir(home.path())
            .env("REDISCLI_AUTH", "hunter2");
        run(command)
    };
    let report = in_folder("prod").expect_code(0).json();
    assert_eq!(
        (&report["target"]["name"], &report["groups"][0]["group"]),
        (&"prod".into(), &"only:*".into())
    );
    for other in ["other", "nothing"] {
        let run = in_folder(other).expect_code(64);
        assert!(
            run.stderr
                .contains("no target of stanch.yaml with a `redis` (prod)"),
            "{run:?}"
        );
    }
    let shown = format!(
        "redis://:hunter2@127.0.0.1:{}",
        server.port().expect("a port")
    );
    let flag = run(command(&["redis", "expiry", "--redis", &shown]));
    assert!(
        flag.stderr.contains("can be read by others") && !format!("{flag:?}").contains("hunter2"),
        "{flag:?}"
    );
    assert_eq!(run(command(&["redis", "expiry"])).code, 64);
}

fn cpu_ticks(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let fields: Vec<&str> = text
        .rsplit(')')
        .next()
        .expect("fields")
        .split_whitespace()
        .collect();
    fields[11].parse::<u64>().expect("ticks") + fields[12].parse::<u64>().expect("ticks")
}

#[tokio::test]
async fn the_default_budget_leaves_the_server_to_others() {
    let lfu = [
        ("maxmemory", "500mb"),
        ("maxmemory-policy", "allkeys-lfu"),
        ("enable-debug-command", "yes"),
    ];
    let Some(server) = cache(&lfu).await else {
        return;
    };
    let mut connection = connect(&server.url());
    say_to(&mut connection, "DEBUG POPULATE 60000 user:session 60");
    let (before, begun) = (cpu_ticks(server.pid()), Instant::now());
    let report = stanch(&server.url(), &["hotkeys", "--json"])
        .expect_code(0)
        .json();
    let (used, took) = (cpu_ticks(server.pid()) - before, begun.elapsed());
    let share = used as f64 / 100.0 / took.as_secs_f64();
    assert!(share <= 0.27, "{used} ticks in {took:?}");
    let own = &report["coverage"]["own_effect"];
    assert!(
        own["waited_ms"].as_u64() >= own["took_ms"].as_u64().map(|ms| ms / 2),
        "{own}"
    );
    // A smaller budget ends it, and that is said.
    let run = stanch(&server.url(), &["hotkeys", "--budget", "500ms", "--json"]).expect_code(3);
    let coverage = &run.json()["coverage"];
    assert_eq!(
        (
            &coverage["complete"],
            &coverage["nodes"][0]["stopped"]["why"]
        ),
        (&false.into(), &"time".into())
    );
    let seen = coverage["keys_seen"].as_u64().expect("a number");
    assert!(seen > 0 && seen < 60_000, "{coverage}");
    assert!(
        !run.json()["keys"].as_array().expect("keys").is_empty(),
        "what was seen is shown"
    );
    // --full takes what it can get.
    let full = stanch(&server.url(), &["hotkeys", "--full", "--json"])
        .expect_code(0)
        .json();
    assert_eq!(full["coverage"]["own_effect"]["waited_ms"], 0);
}

#[tokio::test]
async fn a_server_that_becomes_slow_is_left_alone() {
    let lfu = [
        ("maxmemory", "500mb"),
        ("maxmemory-policy", "allkeys-lfu"),
        ("enable-debug-command", "yes"),
    ];
    let Some(server) = cache(&lfu).await else {
        return;
    };
    let mut connection = connect(&server.url());
    say_to(&mut connection, "DEBUG POPULATE 400000 user:session 20");
    // From some moment on each command of another client takes the server 60 ms.
    let url = server.url();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let ended = std::sync::Arc::clone(&stop);
    let slow = std::thread::spawn(move || {
        let mut connection = connect(&url);
        // Once it walks: what is slow from the beginning is how that server is.
        let scans = |connection: &mut redis::Connection| {
            let stats: String = redis::cmd("INFO")
                .arg("commandstats")
                .query(connection)
                .expect("the statistics");
            let line = stats.lines().find(|line| line.starts_with("cmdstat_scan:"));
            line.and_then(|line| line.split_once("calls=")?.1.split(',').next()?.parse().ok())
                .unwrap_or(0_u64)
        };
        while scans(&mut connection) < 20 && !ended.load(std::sync::atomic::Ordering::Relaxed) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        while !ended.load(std::sync::atomic::Ordering::Relaxed) {
            say_to(&mut connection, "DEBUG SLEEP 0.06");
        }
    });
    let run = stanch(&server.url(), &["expiry", "--json"]);
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    slow.join().expect("it ends");
    let report: Value = run.json();
    assert_eq!(run.code, 3, "{report}");
    assert_eq!(
        report["coverage"]["nodes"][0]["stopped"]["why"], "slower",
        "{report}"
    );
}

#[tokio::test]
async fn other_versions_and_a_valkey_is_told_from_a_redis() {
    let lfu = [("maxmemory", "100mb"), ("maxmemory-policy", "allkeys-lfu")];
    for (program, product, version, counts) in [
        ("redis-6.2/redis-server", "redis", "6.2", false),
        ("valkey-8.1/valkey-server", "valkey", "8.1", true),
        ("valkey-9.1/valkey-server", "valkey", "9.1", true),
    ] {
        let Some(server) = start(program, &lfu, false).await else {
            continue;
        };
        let mut connection = connect(&server.url());
        for line in ["SET a:1 v EX 900", "RPUSH l 1 2 3", "GET a:1"] {
            say_to(&mut connection, line);
        }
        let report = stanch(&server.url(), &["expiry", "--full", "--json"])
            .expect_code(0)
            .json();
        assert_eq!(report["target"]["product"], product);
        assert!(
            report["target"]["server_version"]
                .as_str()
                .is_some_and(|v| v.starts_with(version)),
            "{report}"
        );
        assert_eq!(
            report["groups"].as_array().map(Vec::len),
            Some(2),
            "{report}"
        );
        // Where a connection can be told not to touch, elements are counted.
        let big = stanch(&server.url(), &["bigkeys", "--full", "--json"])
            .expect_code(0)
            .json();
        let elements = big["by_elements"][0]["elements"].as_u64();
        assert_eq!(elements, counts.then_some(3), "{program}: {big}");
        let hot = stanch(&server.url(), &["hotkeys", "--full", "--json"])
            .expect_code(0)
            .json();
        assert_eq!(
            (&hot["method"], &hot["sampled"]),
            (&"lfu".into(), &2.into()),
            "{program}"
        );
        stanch(&server.url(), &["info", "--sample", "10ms"]).expect_code(0);
    }
}
