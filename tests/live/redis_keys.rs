//! Hot keys, big keys and expiry on real servers: what is found is what is there, and looking changes nothing.

use std::collections::HashMap;

use serde_json::Value;
use stanch::drill::{Cache, CacheOptions, find_tool};

use crate::harness::{Run, command, path, run, say};

/// A Redis of this test's own; `None` where this machine has none.
pub async fn cache(settings: &[(&'static str, &str)]) -> Option<Cache> {
    start("redis-server", settings, false).await
}

/// `program`: by its name in PATH, or `valkey-9.1/valkey-server` below the folder of `STANCH_TEST_CACHES`.
pub async fn start(program: &str, settings: &[(&'static str, &str)], tcp: bool) -> Option<Cache> {
    start_with(program, settings, tcp, Vec::new()).await
}

pub async fn start_with(
    program: &str,
    settings: &[(&'static str, &str)],
    tcp: bool,
    files: Vec<(&'static str, Vec<u8>)>,
) -> Option<Cache> {
    let (folders, name) = match program.split_once('/') {
        Some((folder, name)) => {
            let all = std::env::var("STANCH_TEST_CACHES").unwrap_or_default();
            (format!("{all}/{folder}"), name)
        }
        None => (path(), program),
    };
    let found = find_tool(&folders, name)
        .filter(|file| !program.contains('/') || file.starts_with(&folders));
    let Some(program) = found else {
        say(&format!("there is no {program} here: left out"));
        return None;
    };
    let settings = settings
        .iter()
        .map(|(name, value)| (*name, (*value).to_owned()))
        .collect();
    let options = CacheOptions {
        program,
        settings,
        files,
        tcp,
    };
    Some(Cache::start(&options).await.expect("it starts"))
}

pub fn connect(url: &str) -> redis::Connection {
    let client = redis::Client::open(url).expect("a client");
    client.get_connection().expect("a connection")
}

/// Sends words as one command.
pub fn say_to(connection: &mut redis::Connection, line: &str) -> redis::Value {
    let mut command = redis::Cmd::new();
    for word in line.split(' ') {
        command.arg(word);
    }
    command
        .query(connection)
        .unwrap_or_else(|e| panic!("{line}: {e}"))
}

/// `stanch redis <what> --redis URL`
pub fn stanch(url: &str, what: &[&str]) -> Run {
    let mut command = command(&[&["redis"], what].concat());
    command.env("REDIS_URL", url);
    run(command)
}

/// The same numbers in every run.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// Numbers 0 … n-1 as often as Zipf's law has it.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(n: usize, exponent: f64) -> Self {
        let mut sum = 0.0;
        let sums = (1..=n).map(|rank| {
            sum += 1.0 / (rank as f64).powf(exponent);
            sum
        });
        Self(sums.collect())
    }

    fn draw(&self, random: &mut Random) -> usize {
        let most = self.0.last().copied().expect("a number");
        let at = random.below(1 << 50) as f64 / (1_u64 << 50) as f64 * most;
        self.0.partition_point(|sum| *sum < at)
    }
}

/// Reads by Zipf's law; how often each was really read.
fn load(connection: &mut redis::Connection, keys: usize, reads: usize) -> HashMap<String, u64> {
    let (zipf, mut random) = (Zipf::new(keys, 1.15), Random::new(7));
    let mut counts = HashMap::new();
    for chunk in 0..reads / 1000 {
        let mut pipe = redis::pipe();
        for _ in 0..1000 {
            let key = name(zipf.draw(&mut random));
            pipe.cmd("GET").arg(&key);
            *counts.entry(key).or_insert(0) += 1;
        }
        let values: Vec<redis::Value> = pipe
            .query(connection)
            .unwrap_or_else(|e| panic!("{chunk}: {e}"));
        drop(values);
    }
    counts
}

fn name(n: usize) -> String {
    format!("catalog:product:{n}:v1")
}

fn fill(connection: &mut redis::Connection, keys: usize) {
    for from in (0..keys).step_by(1000) {
        let mut pipe = redis::pipe();
        for n in from..(from + 1000).min(keys) {
            pipe.cmd("SET").arg(name(n)).arg("x".repeat(40 + n % 50));
        }
        pipe.exec(connection).expect("it is written");
    }
}

fn hottest(counts: &HashMap<String, u64>, most: usize) -> Vec<String> {
    let mut sorted: Vec<(&String, &u64)> = counts.iter().collect();
    sorted.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    sorted
        .into_iter()
        .take(most)
        .map(|(key, _)| key.clone())
        .collect()
}

fn keys_of(report: &Value) -> Vec<String> {
    let keys = report["keys"].as_array().expect("keys");
    keys.iter()
        .map(|key| key["key"].as_str().expect("a name").to_owned())
        .collect()
}

fn recall(found: &[String], wanted: &[String]) -> usize {
    wanted.iter().filter(|key| found.contains(key)).count()
}

#[tokio::test]
async fn the_hottest_are_found_by_counters_and_by_listening() {
    let lfu = [("maxmemory", "500mb"), ("maxmemory-policy", "allkeys-lfu")];
    let Some(server) = cache(&lfu).await else {
        return;
    };
    let mut connection = connect(&server.url());
    fill(&mut connection, 20_000);
    // The server counts at random, so neighbours change places. After so many reads the tenth is among the first twenty in
    // each of 2,000 runs of its rule (of 400,000 reads and the first sixteen: in 98 of 100).
    let counts = load(&mut connection, 20_000, 1_600_000);
    let wanted = hottest(&counts, 10);
    let run = stanch(
        &server.url(),
        &["hotkeys", "--top", "20", "--full", "--json"],
    )
    .expect_code(0);
    let report = run.json();
    assert_eq!(report["schema"], "stanch.hotkeys/1");
    assert_eq!(report["method"], "lfu");
    assert_eq!(report["sampled"], 20_000);
    assert_eq!(recall(&keys_of(&report), &wanted), 10, "{report}");
    let first = &report["keys"][0];
    assert_eq!(first["group"], "catalog:product:*:v1");
    assert_eq!(
        (&first["type"], &first["expires"], &first["unit"]),
        (&"string".into(), &false.into(), &"lfu_counter".into())
    );
    assert!(
        first["bytes"].as_u64().is_some_and(|bytes| bytes > 40),
        "{first}"
    );

    // The same load again while MONITOR listens: lines end the sample, not the time.
    let url = server.url();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let ended = std::sync::Arc::clone(&stop);
    let loader = std::thread::spawn(move || {
        let mut connection = connect(&url);
        while !ended.load(std::sync::atomic::Ordering::Relaxed) {
            load(&mut connection, 20_000, 20_000);
        }
    });
    let run = stanch(
        &server.url(),
        &[
            "hotkeys",
            "--monitor",
            "--top",
            "10",
            "--monitor-lines",
            "60000",
            "--monitor-for",
            "40s",
            "--json",
        ],
    );
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    loader.join().expect("it ends");
    let report = run.expect_code(0).json();
    assert_eq!(report["method"], "monitor");
    // All but a few: what we ask meanwhile is heard as well, and names no key.
    assert!(
        report["sampled"]
            .as_u64()
            .is_some_and(|n| (59_900..=60_000).contains(&n)),
        "{report}"
    );
    assert!(
        report["window_ms"]
            .as_u64()
            .is_some_and(|ms| ms > 0 && ms < 40_000),
        "{report}"
    );
    assert_eq!(recall(&keys_of(&report), &wanted), 10, "{report}");
    assert!(
        !report.to_string().contains("xxxx"),
        "values are never kept"
    );
    let share = report["keys"][0]["share_pct"].as_f64().expect("a share");
    let real = counts[&wanted[0]] as f64 / 16_000.0;
    assert!((share - real).abs() < 1.0, "{share} {real}");
}

#[tokio::test]
async fn without_counters_it_says_what_would_work() {
    let Some(server) = cache(&[]).await else {
        return;
    };
    let mut connection = connect(&server.url());
    fill(&mut connection, 100);
    let without = stanch(&server.url(), &["hotkeys", "--json"]).expect_code(3);
    let report = without.json();
    assert_eq!(report["method"], Value::Null);
    let next = report["next"][0].as_str().expect("a command");
    assert_eq!(
        next,
        format!("stanch redis hotkeys --monitor --redis {}", server.url())
    );
    // And it does.
    let words: Vec<&str> = next.split(' ').skip(1).collect();
    let mut again = command(&words);
    again.args(["--monitor-for", "300ms"]);
    let again = run(again).expect_code(0);
    assert!(again.stdout.contains("by a MONITOR sample"), "{again:?}");
}

#[tokio::test]
async fn a_fixed_lifetime_among_jittered_ones_is_named() {
    let Some(server) = cache(&[]).await else {
        return;
    };
    let mut connection = connect(&server.url());
    let mut random = Random::new(3);
    let now: (i64, i64) = redis::cmd("TIME").query(&mut connection).expect("a time");
    let cliff = now.0 + 1800;
    let mut pipe = redis::pipe();
    for n in 0..9_000_u64 {
        // Three quarters of a group in eight seconds, 2,000 of them in one; the rest over two hours.
        let at = match n {
            0..2_000 => cliff * 1000 + 3_000 + random.below(1000) as i64,
            2_000..6_750 => cliff * 1000 + random.below(8000) as i64,
            _ => (now.0 + 60) * 1000 + random.below(7_200_000) as i64,
        };
        pipe.cmd("SET")
            .arg(format!("catalog:product:{n}:v1"))
            .arg("x")
            .arg("PXAT")
            .arg(at);
        pipe.cmd("SET")
            .arg(format!("session:{:016x}", random.next()))
            .arg("x")
            .arg("PX")
            .arg(60_000 + random.below(7_200_000));
        if n < 500 {
            pipe.cmd("SET").arg(format!("user:{n}:name")).arg("x");
        }
    }
    pipe.exec(&mut connection).expect("it is written");
    let run = stanch(&server.url(), &["expiry", "--full", "--json"]).expect_code(0);
    let report = run.json();
    let groups = report["groups"].as_array().expect("groups");
    let group = |name: &str| {
        groups
            .iter()
            .find(|group| group["group"] == name)
            .unwrap_or_else(|| panic!("{name}: {report}"))
    };
    assert_eq!(group("session:*")["verdict"], "spread");
    assert_eq!(group("user:*:name")["verdict"], "no_ttl");
    let catalog = group("catalog:product:*:v1");
    assert_eq!(catalog["verdict"], "cliff");
    assert_eq!(catalog["with_ttl"], 9_000);
    let time = |value: &Value| {
        chrono::DateTime::parse_from_rfc3339(value.as_str().expect("a time"))
            .expect("a time")
            .timestamp()
    };
    assert_eq!(time(&catalog["peak_1s_at"]), cliff + 3, "{catalog}");
    // 2,000 and an eighth of 4,750 in the second, 6,750 in the ten, and what the spread part adds.
    assert!(
        (catalog["peak_1s_share"].as_f64().expect("a share") - 28.8).abs() < 1.0,
        "{catalog}"
    );
    assert!(
        (catalog["peak_10s_share"].as_f64().expect("a share") - 75.0).abs() < 1.0,
        "{catalog}"
    );
    let cliffs = report["cliffs"].as_array().expect("cliffs");
    let [only] = cliffs.as_slice() else {
        panic!("{cliffs:?}")
    };
    assert_eq!(time(&only["at"]), cliff + 3, "{only} {cliff}");
    assert!(
        only["keys"]
            .as_u64()
            .is_some_and(|keys| (6_750..6_800).contains(&keys)),
        "{only}"
    );
    // For monitoring: it is half an hour off.
    stanch(&server.url(), &["expiry", "--full", "--check", "--json"]).expect_code(1);
}

/// Everything that a look could change, key by key.
fn dump(
    connection: &mut redis::Connection,
) -> Vec<(Vec<u8>, redis::Value, redis::Value, redis::Value)> {
    let mut keys: Vec<Vec<u8>> = redis::cmd("KEYS").arg("*").query(connection).expect("keys");
    keys.sort();
    keys.into_iter()
        .map(|key| {
            let mut of = |words: &[&str]| -> redis::Value {
                let mut command = redis::cmd(words[0]);
                for word in &words[1..] {
                    command.arg(*word);
                }
                command.arg(&key).query(connection).expect("an answer")
            };
            // The counter first: reading the value would raise it.
            let counter = of(&["OBJECT", "FREQ"]);
            let expires = of(&["PEXPIRETIME"]);
            let encoding = of(&["OBJECT", "ENCODING"]);
            (key, counter, expires, encoding)
        })
        .collect()
}

fn stats(connection: &mut redis::Connection) -> (u64, u64) {
    let text: String = redis::cmd("INFO")
        .arg("stats")
        .query(connection)
        .expect("INFO");
    let number = |name: &str| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .expect("a field");
        line.trim_start_matches(':').parse().expect("a number")
    };
    (number("keyspace_hits"), number("keyspace_misses"))
}

fn configuration(connection: &mut redis::Connection) -> Vec<String> {
    redis::cmd("CONFIG")
        .arg("GET")
        .arg("*")
        .query(connection)
        .expect("CONFIG")
}

#[tokio::test]
async fn looking_changes_nothing_but_what_is_stated() {
    // Counters that never decay by themselves, so that whatever moves was moved.
    let settings = [
        ("maxmemory", "200mb"),
        ("maxmemory-policy", "allkeys-lfu"),
        ("lfu-decay-time", "0"),
        ("lfu-log-factor", "0"),
    ];
    let Some(server) = cache(&settings).await else {
        return;
    };
    let mut connection = connect(&server.url());
    fill(&mut connection, 500);
    for line in [
        "RPUSH jobs 1 2 3",
        "HSET h a 1",
        "ZADD z 1 a",
        "SADD s a",
        "XADD x 1-1 a b",
        "XGROUP CREATE x g 0",
        "SET k v EX 5000",
    ] {
        say_to(&mut connection, line);
    }
    load(&mut connection, 500, 2_000);
    let before = (dump(&mut connection), configuration(&mut connection));
    for what in [
        &["info", "--sample", "50ms"][..],
        &["hotkeys", "--full"],
        &["hotkeys", "--full", "--attributes"],
        &["hotkeys"],
        &["bigkeys", "--full"],
        &["expiry", "--full"],
        &["stampede", "--full"],
        // 7.0 can't be told not to touch: without an opt-in the queues are left alone, and that isn't "none".
        &["queues", "--full"],
        &["queues", "--quick"],
    ] {
        let (hits, misses) = stats(&mut connection);
        let mut all = what.to_vec();
        all.push("--json");
        let of_queues = what[0] == "queues";
        let code = if of_queues { 3 } else { 0 };
        let report = stanch(&server.url(), &all).expect_code(code).json();
        let after = stats(&mut connection);
        let stated = report["coverage"]["own_effect"]["lookups"]
            .as_u64()
            .expect("lookups");
        let left = &report["coverage"]["sections"]["queues"];
        let says = left["why"].to_string().contains("queues --touch");
        assert_eq!(says && left["status"] == "skipped", of_queues, "{report}");
        // A key that isn't there (a queue's usual place) is a lookup as well.
        assert_eq!(after.0 - hits + after.1 - misses, stated, "{what:?}");
    }
    let after = (dump(&mut connection), configuration(&mut connection));
    let changed: Vec<String> = before
        .0
        .iter()
        .zip(&after.0)
        .filter(|(was, is)| was != is)
        .map(|(was, _)| String::from_utf8_lossy(&was.0).into_owned())
        .collect();
    assert!(changed.is_empty(), "{changed:?}");
    assert_eq!((before.0.len(), before.1), (after.0.len(), after.1));
    let clients: String = redis::cmd("CLIENT")
        .arg("LIST")
        .query(&mut connection)
        .expect("clients");
    assert_eq!(clients.lines().count(), 1, "{clients}");
    let touched = stanch(&server.url(), &["queues", "--full", "--touch", "--json"]);
    let touched = touched.expect_code(0).json();
    assert_eq!(touched["queues"][0]["name"], "x/g", "{touched}");
    assert!(touched["coverage"]["sections"]["touched"].is_object());
    // Where nothing is evicted for having been idle, nobody is made colder.
    say_to(&mut connection, "CONFIG SET maxmemory-policy noeviction");
    let harmless = stanch(&server.url(), &["queues", "--full", "--json"]).expect_code(0);
    assert_eq!(harmless.json()["queues"][0]["name"], "x/g");
}

#[tokio::test]
async fn a_login_that_may_only_read() {
    let settings = [
        ("maxmemory", "200mb"),
        ("maxmemory-policy", "allkeys-lfu"),
        ("user", "reader on >hunter2 ~* +@read"),
        ("user", "narrow on >hunter2 ~catalog:* +@read"),
        ("user", "default on nopass ~* +@all"),
    ];
    let Some(server) = cache(&settings).await else {
        return;
    };
    let mut connection = connect(&server.url());
    fill(&mut connection, 300);
    for n in 0..40 {
        say_to(&mut connection, &format!("SET secret:{n} v EX 900"));
    }
    let url = |user: &str| {
        format!(
            "unix://{}?user={user}&pass=hunter2",
            server.socket().display()
        )
    };
    let run = stanch(&url("reader"), &["hotkeys", "--full", "--json"]).expect_code(0);
    assert_eq!(run.json()["method"], "lfu");
    assert_eq!(run.json()["coverage"]["keys_seen"], 340);
    assert_eq!(
        run.json()["target"]["server_version"],
        Value::Null,
        "unknown, since INFO isn't allowed"
    );
    assert_eq!(run.json()["target"]["user"], "reader");
    for what in [&["expiry", "--full"][..], &["bigkeys", "--full"]] {
        stanch(&url("reader"), what).expect_code(0);
    }
    let info = stanch(&url("reader"), &["info", "--sample", "10ms", "--json"]).expect_code(3);
    assert!(
        info.json()["coverage"]["missing_permissions"]
            .to_string()
            .contains("ACL SETUSER reader +info")
            || info.json()["coverage"]["sections"]["info"]["why"]
                .to_string()
                .contains("NOPERM"),
        "{info:?}"
    );
    // It may not ask who it is: the address says so.
    let grants = info.stdout.contains("ACL SETUSER reader +info");
    assert!(grants && !info.stdout.contains("<user>"), "{info:?}");
    // What isn't permitted is counted, and the rest is told.
    let narrow = stanch(&url("narrow"), &["hotkeys", "--full", "--json"]);
    assert_eq!(narrow.json()["coverage"]["not_permitted"], 40, "{narrow:?}");
    assert_eq!(narrow.json()["sampled"], 300);
    let shown = stanch(&url("narrow"), &["hotkeys", "--full"]);
    assert!(
        shown
            .stdout
            .contains("40 keys: not permitted to this login"),
        "{shown:?}"
    );
    for run in [&run, &info, &narrow, &shown] {
        assert!(!format!("{run:?}").contains("hunter2"), "{run:?}");
    }
    let wrong = stanch(&url("reader").replace("hunter2", "hunter3"), &["hotkeys"]).expect_code(3);
    assert!(
        wrong.stderr.contains("WRONGPASS") && !wrong.stderr.contains("hunter3"),
        "{wrong:?}"
    );
}

#[tokio::test]
async fn commands_that_are_renamed_or_gone() {
    let settings = [
        ("rename-command", "INFO \"\""),
        ("rename-command", "CONFIG hidden-config"),
        ("rename-command", "MONITOR \"\""),
        ("rename-command", "TIME \"\""),
    ];
    let Some(server) = cache(&settings).await else {
        return;
    };
    let mut connection = connect(&server.url());
    fill(&mut connection, 100);
    stanch(&server.url(), &["expiry", "--full"]).expect_code(0);
    let info = stanch(&server.url(), &["info", "--sample", "10ms"]).expect_code(3);
    assert!(info.stdout.contains("unknown command"), "{info:?}");
    let monitor = stanch(&server.url(), &["hotkeys", "--monitor"]).expect_code(3);
    assert!(monitor.stderr.contains("unknown command"), "{monitor:?}");
    let bar = stanch(&server.url(), &["hotkeys", "--json"]).expect_code(3);
    assert_eq!(bar.json()["method"], Value::Null);
}

#[tokio::test]
async fn names_of_any_bytes_and_very_long_ones() {
    let lfu = [("maxmemory", "500mb"), ("maxmemory-policy", "allkeys-lfu")];
    let Some(server) = cache(&lfu).await else {
        return;
    };
    let mut connection = connect(&server.url());
    let long = vec![b'k'; 64 << 10];
    let odd: [&[u8]; 6] = [
        b"bad\xff\x00key",
        b"two words",
        b"line\nbreak",
        b"\x1b[31mred",
        "在庫:1".as_bytes(),
        &long,
    ];
    for key in odd {
        redis::cmd("SET")
            .arg(key)
            .arg("v")
            .arg("EX")
            .arg(900)
            .exec(&mut connection)
            .expect("it is written");
    }
    let mut pipe = redis::pipe();
    for n in 0..200_000 {
        pipe.cmd("RPUSH").arg("long list").arg(n);
    }
    pipe.exec(&mut connection).expect("it is written");
    let report = stanch(&server.url(), &["hotkeys", "--full", "--json"])
        .expect_code(0)
        .json();
    let keys = report["keys"].as_array().expect("keys");
    let bad = keys
        .iter()
        .find(|key| key["key_base64"] != Value::Null)
        .expect("the one that isn't UTF-8");
    assert_eq!(
        (&bad["key"], &bad["key_base64"]),
        (&"bad\\xff\u{0}key".into(), &"YmFk/wBrZXk=".into())
    );
    assert!(keys.iter().any(|key| {
        key["key"]
            .as_str()
            .is_some_and(|name| name.len() == 64 << 10)
    }));
    for what in ["hotkeys", "bigkeys", "expiry"] {
        let shown = stanch(&server.url(), &[what, "--full"]).expect_code(0);
        assert!(!shown.stdout.contains('\x1b'), "{what}");
        let mut narrow = command(&["redis", what, "--full"]);
        narrow.env("REDIS_URL", server.url()).env("COLUMNS", "60");
        for line in run(narrow).stdout.lines() {
            assert!(stanch::view::width(line) <= 60, "{what}: {line}");
        }
    }
    let big = stanch(&server.url(), &["bigkeys", "--full", "--touch", "--json"])
        .expect_code(0)
        .json();
    assert_eq!(big["bigkeys"][0]["key"], "long list");
    assert_eq!(big["bigkeys"][0]["elements"], 200_000);
    assert_eq!(big["by_elements"][0]["elements"], 200_000);
}
