//! What can't be had of a real server at will: pages that come twice, cursors of 64 bits, a server that loads or dies in
//! the middle. A stand-in that answers what it is told to; it is no Redis.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use crate::redis_keys::stanch;

/// Answers each command (its words, joined by blanks) with raw bytes; none: it hangs up.
type Answers = Arc<dyn Fn(&str) -> Option<Vec<u8>> + Send + Sync>;

struct Fake {
    url: String,
    heard: Arc<Mutex<Vec<String>>>,
}

fn fake(answers: impl Fn(&str) -> Option<Vec<u8>> + Send + Sync + 'static) -> Fake {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("redis://{}", listener.local_addr().expect("an address"));
    let heard = Arc::new(Mutex::new(Vec::new()));
    let (answers, kept): (Answers, _) = (Arc::new(answers), Arc::clone(&heard));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (answers, kept) = (Arc::clone(&answers), Arc::clone(&kept));
            std::thread::spawn(move || serve(stream, &answers, &kept));
        }
    });
    Fake { url, heard }
}

fn serve(mut stream: TcpStream, answers: &Answers, heard: &Mutex<Vec<String>>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
        let count: usize = line.trim_end().strip_prefix('*')?.parse().ok()?;
        let mut words = Vec::new();
        for _ in 0..count {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let length: usize = line.trim_end().strip_prefix('$')?.parse().ok()?;
            let mut word = vec![0; length + 2];
            reader.read_exact(&mut word).ok()?;
            word.truncate(length);
            words.push(String::from_utf8_lossy(&word).into_owned());
        }
        let command = words.join(" ");
        let answer = answers(&command);
        heard.lock().ok()?.push(command);
        stream.write_all(&answer?).ok()?;
    }
}

fn bulk(text: &str) -> Vec<u8> {
    format!("${}\r\n{text}\r\n", text.len()).into_bytes()
}

fn page(cursor: &str, keys: &[&str]) -> Vec<u8> {
    let mut out = b"*2\r\n".to_vec();
    out.extend(bulk(cursor));
    out.extend(format!("*{}\r\n", keys.len()).into_bytes());
    for key in keys {
        out.extend(bulk(key));
    }
    out
}

/// A healthy one with these pages; the probe for a key asks with COUNT 100.
fn healthy(command: &str, pages: &[(&str, &str, &[&str])]) -> Option<Vec<u8>> {
    if let Some(rest) = command.strip_prefix("SCAN ") {
        let cursor = rest.split(' ').next().unwrap_or_default();
        let (_, next, keys) = pages.iter().find(|(at, ..)| *at == cursor)?;
        return Some(page(next, keys));
    }
    Some(match command.split(' ').next().unwrap_or_default() {
        "INFO" => bulk("redis_version:7.2.0\r\nrole:master\r\ncluster_enabled:0\r\n"),
        "TIME" => [b"*2\r\n".to_vec(), bulk("1700000000"), bulk("0")].concat(),
        "DBSIZE" => b":4\r\n".to_vec(),
        "OBJECT" => match command.rsplit(' ').next() {
            Some("a") => b":9\r\n".to_vec(),
            Some("b") => b":200\r\n".to_vec(),
            _ => b":7\r\n".to_vec(),
        },
        "TYPE" => b"+string\r\n".to_vec(),
        "PTTL" | "PEXPIRETIME" => b":-1\r\n".to_vec(),
        "MEMORY" => b":72\r\n".to_vec(),
        "PING" => b"+PONG\r\n".to_vec(),
        _ => b"-ERR unknown command\r\n".to_vec(),
    })
}

const LARGEST: &str = "18446744073709551615";
const PAGES: &[(&str, &str, &[&str])] = &[
    ("0", LARGEST, &[]),
    (LARGEST, "9223372036854775808", &["a", "b"]),
    ("9223372036854775808", "5", &["b", "c"]),
    ("5", "6", &[]),
    ("6", "0", &["c", "d"]),
];

#[test]
fn pages_that_are_empty_or_come_twice_and_cursors_of_64_bits() {
    let fake = fake(|command| healthy(command, PAGES));
    for budget in [&["--full"][..], &[]] {
        let what = [&["hotkeys", "--json"], budget].concat();
        let report = stanch(&fake.url, &what).expect_code(0).json();
        let keys: Vec<(&str, u64)> = report["keys"]
            .as_array()
            .expect("keys")
            .iter()
            .map(|key| {
                (
                    key["key"].as_str().expect("a name"),
                    key["score"].as_u64().expect("a score"),
                )
            })
            .collect();
        assert_eq!(keys, [("b", 200), ("a", 9), ("c", 7), ("d", 7)]);
        assert_eq!(report["coverage"]["complete"], true);
    }
    let heard = fake.heard.lock().expect("what was heard");
    assert!(
        heard
            .iter()
            .any(|command| command == &format!("SCAN {LARGEST} COUNT 1000")),
        "{heard:?}"
    );
    let forbidden = [
        "KEYS",
        "SMEMBERS",
        "LRANGE",
        "GET ",
        "HGETALL",
        "CONFIG",
        "SELECT",
        "CLIENT SET",
    ];
    assert!(
        !heard
            .iter()
            .any(|command| forbidden.iter().any(|word| command.starts_with(word))),
        "{heard:?}"
    );
}

#[test]
fn a_server_that_reads_its_data_still() {
    let fake = fake(|_| Some(b"-LOADING Redis is loading the dataset in memory\r\n".to_vec()));
    for what in ["hotkeys", "expiry", "bigkeys", "info"] {
        let run = stanch(&fake.url, &[what]).expect_code(3);
        assert!(
            run.stderr.contains("LOADING Redis is loading")
                && run.stderr.contains("try: the same command again"),
            "{run:?}"
        );
    }
}

#[test]
fn keys_on_their_way_to_another_node() {
    let fake = fake(|command| match command {
        "OBJECT FREQ c" => Some(b"-MOVED 7365 127.0.0.1:7001\r\n".to_vec()),
        _ => healthy(command, PAGES),
    });
    let run = stanch(&fake.url, &["hotkeys", "--full", "--json"]).expect_code(3);
    assert_eq!(run.json()["coverage"]["moved"], 2);
    let shown = stanch(&fake.url, &["hotkeys", "--full"]).expect_code(3);
    assert!(
        shown.stdout.contains("2 keys: on its way to another node"),
        "{shown:?}"
    );
}

#[test]
fn a_server_that_dies_in_the_middle() {
    let fake = fake(|command| match command {
        "SCAN 5 COUNT 1000" => None,
        _ => healthy(command, PAGES),
    });
    for what in ["hotkeys", "expiry", "bigkeys"] {
        let run = stanch(&fake.url, &[what, "--full", "--json"]).expect_code(3);
        let coverage = &run.json()["coverage"];
        assert_eq!(
            (&coverage["complete"], &coverage["keys_seen"]),
            (&false.into(), &2.into()),
            "{what}: {coverage}"
        );
        assert_eq!(coverage["nodes"][0]["stopped"]["why"], "failed");
        let shown = stanch(&fake.url, &[what, "--full"]).expect_code(3);
        assert!(
            shown.stdout.contains("incomplete: 2 of about 4 keys seen"),
            "{shown:?}"
        );
    }
}

#[test]
fn a_server_that_dies_after_it_has_answered_spoke_our_language() {
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let fake = fake(move |command| match command {
        // Each run asks it when it opens, and twice for the report.
        "INFO" if asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) > 0 => None,
        _ => healthy(command, PAGES),
    });
    let run = stanch(&fake.url, &["info", "--sample", "10ms"]).expect_code(3);
    assert!(
        run.stderr.contains("the server closed the connection")
            && run.stderr.contains("was restarted")
            && !run.stderr.contains("rediss://"),
        "{run:?}"
    );
    let silent = self::fake(|_| None);
    let run = stanch(&silent.url, &["info"]).expect_code(3);
    assert!(run.stderr.contains("rediss://"), "{run:?}");
    let dying = self::fake(|command| match command {
        "SCAN 5 COUNT 1000" => None,
        _ => healthy(command, PAGES),
    });
    let run = stanch(&dying.url, &["expiry", "--full"]).expect_code(3);
    let closed = "keys seen: the server closed the connection";
    assert!(run.stdout.contains(closed), "{run:?}");
}

#[test]
fn a_clock_and_a_slow_log_that_are_not_told_for_another_reason_than_rights() {
    let said = |answer: &'static [u8]| {
        let fake = fake(move |command| match command {
            "TIME" | "SLOWLOG LEN" => Some(answer.to_vec()),
            _ if command.starts_with("SLOWLOG GET") => Some(answer.to_vec()),
            _ => healthy(command, PAGES),
        });
        stanch(&fake.url, &["info", "--sample", "10ms"])
    };
    let busy = said(b"-BUSY Redis is busy running a script.\r\n");
    assert!(
        busy.stderr.contains("times are this machine's: BUSY") && !busy.stderr.contains("+time"),
        "{busy:?}"
    );
    assert!(busy.stdout.contains("slow log  BUSY"), "{busy:?}");
    let renamed = said(b"-ERR unknown command 'TIME'\r\n");
    assert!(
        renamed.stderr.contains("the server has no TIME") && !renamed.stderr.contains("+time"),
        "{renamed:?}"
    );
    let refused = said(b"-NOPERM User default has no permissions to run the 'time' command\r\n");
    assert!(refused.stderr.contains("(+time)"), "{refused:?}");
    assert!(
        refused.stdout.contains("slow log  not permitted"),
        "{refused:?}"
    );
}

#[test]
fn keys_that_vanish_and_answers_of_older_versions() {
    let fake = fake(|command| match command {
        "OBJECT FREQ a" => Some(b"$-1\r\n".to_vec()),
        "OBJECT FREQ d" => Some(b"-ERR no such key\r\n".to_vec()),
        "PEXPIRETIME a" => Some(b":-2\r\n".to_vec()),
        _ => healthy(command, PAGES),
    });
    let report = stanch(&fake.url, &["hotkeys", "--full", "--json"])
        .expect_code(0)
        .json();
    assert_eq!(
        (&report["coverage"]["vanished"], &report["sampled"]),
        (&2.into(), &4.into()),
        "{report}"
    );
    let report = stanch(&fake.url, &["expiry", "--full", "--json"])
        .expect_code(0)
        .json();
    assert_eq!(report["coverage"]["vanished"], 1);
    let groups = report["groups"].as_array().expect("groups");
    let keys: u64 = groups
        .iter()
        .filter_map(|group| group["keys"].as_u64())
        .sum();
    assert_eq!(keys, 5, "{report}");
}

#[test]
fn an_answer_that_is_none() {
    let garbage = fake(|command| match command.starts_with("SCAN") {
        true => Some(b"+what?\r\n".to_vec()),
        false => healthy(command, PAGES),
    });
    let run = stanch(&garbage.url, &["expiry", "--full", "--json"]).expect_code(3);
    assert_eq!(run.json()["coverage"]["complete"], false);
    let silent = fake(|_| Some(Vec::new()));
    let run = stanch(
        &silent.url,
        &["info", "--connect-timeout", "300ms", "--timeout", "300ms"],
    )
    .expect_code(3);
    assert!(run.stderr.contains("no answer in time"), "{run:?}");
}

/// An array of bulk strings and, where they are numbers, integers.
fn array(words: &[&str]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        match word.parse::<u64>() {
            Ok(number) => out.extend(format!(":{number}\r\n").into_bytes()),
            Err(_) => out.extend(bulk(word)),
        }
    }
    out
}

/// As Redis 8.6 tells a session.
fn session() -> Vec<u8> {
    let mut out = b"*1\r\n*12\r\n".to_vec();
    for (name, number) in [
        ("tracking-active", 1),
        ("sample-ratio", 1),
        ("all-commands-all-slots-us", 2000),
        ("collection-start-time-unix-ms", 1_769_420_604_522_u64),
        ("collection-duration-ms", 6408),
    ] {
        out.extend(bulk(name));
        out.extend(format!(":{number}\r\n").into_bytes());
    }
    out.extend(bulk("by-cpu-time-us"));
    out.extend(array(&["hot", "1500", "warm", "40"]));
    out
}

#[test]
fn a_session_of_somebody_else_is_read_and_left_alone() {
    let fake = fake(|command| match command {
        "HOTKEYS GET" => Some(session()),
        _ => healthy(command, PAGES),
    });
    let report = stanch(&fake.url, &["hotkeys", "--json"])
        .expect_code(0)
        .json();
    assert_eq!(
        (&report["method"], &report["window_ms"]),
        (&"hotkeys_session".into(), &6408.into())
    );
    let first = &report["keys"][0];
    assert_eq!(
        (&first["key"], &first["score"], &first["unit"]),
        (&"hot".into(), &1500.into(), &"cpu_us".into())
    );
    assert_eq!(first["share_pct"], 75.0);
    stanch(&fake.url, &["hotkeys", "--server-hotkeys", "--json"]).expect_code(0);
    let heard = fake.heard.lock().expect("what was heard");
    assert!(
        !heard
            .iter()
            .any(|command| command.starts_with("HOTKEYS") && command != "HOTKEYS GET"),
        "{heard:?}"
    );
}

fn with_home(url: &str, what: &[&str]) -> (crate::harness::Run, tempfile::TempDir) {
    let home = crate::harness::folder();
    let mut command = crate::harness::command(&[&["redis"], what].concat());
    command
        .env("REDIS_URL", url)
        .env("XDG_STATE_HOME", home.path());
    (crate::harness::run(command), home)
}

#[test]
fn a_session_of_ours_has_an_end_and_is_cleared() {
    let started = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let begun = Arc::clone(&started);
    let fake = fake(move |command| match command {
        "HOTKEYS GET" if begun.load(std::sync::atomic::Ordering::SeqCst) => Some(session()),
        "HOTKEYS GET" => Some(b"$-1\r\n".to_vec()),
        "HOTKEYS STOP" | "HOTKEYS RESET" => Some(b"+OK\r\n".to_vec()),
        _ if command.starts_with("HOTKEYS START") => {
            begun.store(true, std::sync::atomic::Ordering::SeqCst);
            Some(b"+OK\r\n".to_vec())
        }
        _ => healthy(command, PAGES),
    });
    let (run, home) = with_home(
        &fake.url,
        &[
            "hotkeys",
            "--server-hotkeys",
            "--server-for",
            "1s",
            "--top",
            "5",
            "--json",
        ],
    );
    let report = run.expect_code(0).json();
    assert_eq!(report["method"], "hotkeys_started");
    let heard: Vec<String> = fake
        .heard
        .lock()
        .expect("what was heard")
        .iter()
        .filter(|c| c.starts_with("HOTKEYS"))
        .cloned()
        .collect();
    assert_eq!(
        heard,
        [
            "HOTKEYS GET",
            "HOTKEYS START METRICS 1 CPU COUNT 5 DURATION 1",
            "HOTKEYS GET",
            "HOTKEYS STOP",
            "HOTKEYS RESET"
        ]
    );
    let journal =
        std::fs::read_to_string(&crate::harness::journals(home.path())[0]).expect("a journal");
    assert!(journal.contains("redis_session"), "{journal}");
    // One that can't be started is nobody's to end.
    let refusing = self::fake(|command| match command {
        "HOTKEYS GET" => Some(b"$-1\r\n".to_vec()),
        _ if command.starts_with("HOTKEYS START") => {
            Some(b"-ERR hotkeys tracking session is already in progress\r\n".to_vec())
        }
        _ => healthy(command, PAGES),
    });
    let (run, _home) = with_home(
        &refusing.url,
        &["hotkeys", "--server-hotkeys", "--server-for", "1s"],
    );
    assert!(run.expect_code(3).stderr.contains("already in progress"));
    let heard = refusing.heard.lock().expect("what was heard");
    assert!(
        !heard
            .iter()
            .any(|command| command == "HOTKEYS STOP" || command == "HOTKEYS RESET"),
        "{heard:?}"
    );
}

#[test]
fn the_list_of_a_valkey_is_switched_off_again() {
    let kept = Arc::new(Mutex::new("0".to_owned()));
    let setting = Arc::clone(&kept);
    let fake = fake(move |command| {
        let mut now = setting.lock().ok()?;
        match command {
            "INFO" => Some(bulk(
                "redis_version:7.2.4\r\nvalkey_version:9.2.0\r\nrole:master\r\ncluster_enabled:0\r\n",
            )),
            "CONFIG GET hotkeys-top-k" => {
                Some([b"*2\r\n".to_vec(), bulk("hotkeys-top-k"), bulk(&now)].concat())
            }
            "CONFIG GET hotkey-top-k" => Some(b"*0\r\n".to_vec()),
            "HOTKEYS GET" if *now == "0" => {
                Some(b"-ERR hot key detection is disabled\r\n".to_vec())
            }
            "HOTKEYS GET" => Some(
                [
                    b"*1\r\n".to_vec(),
                    array(&["key", "hot", "db", "0", "qps", "900"]),
                ]
                .concat(),
            ),
            _ => match command.strip_prefix("CONFIG SET hotkeys-top-k ") {
                Some(value) => {
                    *now = value.to_owned();
                    Some(b"+OK\r\n".to_vec())
                }
                None => healthy(command, PAGES),
            },
        }
    });
    let (run, _home) = with_home(
        &fake.url,
        &[
            "hotkeys",
            "--server-hotkeys",
            "--server-for",
            "200ms",
            "--json",
        ],
    );
    let report = run.expect_code(0).json();
    assert_eq!(
        (&report["method"], &report["keys"][0]["score"]),
        (&"hotkeys_top_k".into(), &900.into())
    );
    assert_eq!(*kept.lock().expect("the setting"), "0");
}
