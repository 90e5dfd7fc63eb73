//! `pg deadlocks` on stored logs of real servers: what is shown, and that form, packing and language change nothing of it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

const LOGS: [&str; 6] = [
    "english.log",
    "japanese.log",
    "japanese.csv",
    "japanese.json",
    "twelve.csv",
    "eighteen.json",
];

pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures/logs")
}

pub struct Run {
    pub code: i32,
    pub out: String,
    pub err: String,
}

pub fn stanch(args: &[&str], input: &[u8]) -> Run {
    let mut child = Command::new(env!("CARGO_BIN_EXE_stanch"))
        .args(["pg", "deadlocks"])
        .args(args)
        .env_clear()
        .env("COLUMNS", "120")
        .current_dir(folder())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    // It may have stopped reading.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    let output = child.wait_with_output().expect("it ends");
    Run {
        code: output.status.code().expect("a code"),
        out: String::from_utf8(output.stdout).expect("UTF-8"),
        err: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

pub fn json(args: &[&str]) -> Value {
    let run = stanch(&[args, &["--json"]].concat(), b"");
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{args:?}");
    serde_json::from_str(&run.out).expect("JSON")
}

/// All but the time of reading.
fn shown(run: &Run) -> String {
    let mut out = String::new();
    for line in run.out.lines() {
        let line = match line.split_once("\"taken_at\": \"") {
            Some((before, _)) => format!("{before}\"taken_at\": \"[read at]\","),
            None if out.is_empty() => match line.rsplit_once(" · ") {
                Some((before, _)) => format!("{before} · [read at]"),
                None => line.to_owned(),
            },
            None => line.to_owned(),
        };
        out.push_str(&line);
        out.push('\n');
    }
    out
}

/// The circles without what differs between formats: times to the millisecond.
fn circles(report: &Value) -> Vec<Value> {
    let mut all = report["deadlocks"].as_array().expect("a list").clone();
    for deadlock in &mut all {
        let at = deadlock["at"].as_str().expect("a time")[..19].to_owned();
        deadlock["at"] = at.into();
    }
    all
}

pub fn temporary(name: &str, bytes: &[u8]) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).expect("a file");
    (folder, path.display().to_string())
}

#[test]
fn as_people_and_programs_see_it() {
    for log in LOGS {
        for (format, args) in [
            ("table", &[][..]),
            ("json", &["--json"]),
            ("md", &["-o", "md"]),
        ] {
            if format != "table" && log != "english.log" {
                continue;
            }
            let run = stanch(&[&[log], args].concat(), b"");
            assert_eq!((run.code, run.err.as_str()), (0, ""), "{log}");
            insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
                insta::assert_snapshot!(format!("deadlocks-{log}.{format}"), shown(&run));
            });
        }
    }
    let run = stanch(&["english.log", "-o", "csv", "--list", "members"], b"");
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("deadlocks-english.log.csv", run.out.replace("\r\n", "\n"));
    });
}

#[test]
fn one_server_in_three_formats_tells_the_same() {
    let stderr = circles(&json(&["japanese.log"]));
    assert_eq!(stderr.len(), 9);
    for other in ["japanese.csv", "japanese.json"] {
        assert_eq!(circles(&json(&[other])), stderr, "{other}");
    }
}

#[test]
fn the_circle_its_statements_and_its_order() {
    let report = json(&["japanese.csv"]);
    let first = &report["deadlocks"][0];
    assert_eq!(
        first["order_conflict"]["text"],
        "transfer-a locks accounts id 1, then id 2; pid 31144 id 2, then id 1"
    );
    assert_eq!(
        first["members"][0]["statement"],
        "update accounts set balance = balance + 1\n  where id = 2;"
    );
    assert_eq!(first["members"][0]["blocked_by"], 31144);
    assert_eq!(first["members"][1]["blocked_by"], 31145);
    assert_eq!(first["relations"], serde_json::json!(["accounts"]));
    let three = &report["deadlocks"][1]["members"];
    let ring: Vec<(i64, i64)> = three
        .as_array()
        .expect("members")
        .iter()
        .map(|m| {
            (
                m["pid"].as_i64().expect("a pid"),
                m["blocked_by"].as_i64().expect("a pid"),
            )
        })
        .collect();
    assert_eq!(ring, [(31161, 31160), (31160, 31162), (31162, 31161)]);
    let shapes: Vec<&str> = report["deadlocks"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|deadlock| deadlock["shape"].as_str().expect("a word"))
        .collect();
    assert_eq!(
        shapes,
        [
            "row_order",
            "row_order",
            "advisory_order",
            "table_order",
            "lock_upgrade",
            "lock_upgrade",
            "unique_key",
            "row_order",
            "ddl"
        ]
    );
}

#[test]
fn packed_piped_and_in_pieces() {
    let plain = std::fs::read(folder().join("japanese.json")).expect("a log");
    let expected = circles(&json(&["japanese.json"]));
    let half = plain[..plain.len() / 2]
        .iter()
        .rposition(|b| *b == b'\n')
        .expect("lines")
        + 1;
    let gzip = |bytes: &[u8]| {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(bytes).expect("packed");
        out.finish().expect("packed")
    };
    let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 1).expect("packed");
    for (name, bytes) in [
        (
            "log.gz",
            [gzip(&plain[..half]), gzip(&plain[half..])].concat(),
        ),
        (
            "log.zst",
            [zstd(&plain[..half]), zstd(&plain[half..])].concat(),
        ),
    ] {
        let (_folder, path) = temporary(name, &bytes);
        assert_eq!(circles(&json(&[&path])), expected, "{name}");
        let piped = stanch(&["-", "--json"], &bytes);
        let piped: Value = serde_json::from_str(&piped.out).expect("JSON");
        assert_eq!(circles(&piped), expected, "{name}");
    }
    let (_one, first) = temporary("1.json", &plain[..half]);
    let (_two, second) = temporary("2.json", &plain[half..]);
    assert_eq!(circles(&json(&[&first, &second])), expected);
}

#[test]
fn a_prefix_that_nobody_knows() {
    let log = std::fs::read_to_string(folder().join("japanese.log")).expect("a log");
    // `%t [%p]: [%l-1] user=…` with everything shuffled.
    let odd: String = log
        .lines()
        .map(|line| match line.split_once("]: [") {
            Some((before, rest)) => {
                let (_, rest) = rest.split_once("] ").expect("a count");
                let (names, text) = rest.split_once(",client=").expect("names");
                let text = text.split_once(' ').expect("a label").1;
                format!(
                    "<{}] | {names}> {text}\n",
                    before.replace(" JST [", " JST> [pid=")
                )
            }
            None => format!("{line}\n"),
        })
        .collect();
    let (_folder, path) = temporary("odd.log", odd.as_bytes());
    let report = json(&[&path]);
    assert_eq!(circles(&report), circles(&json(&["japanese.log"])), "{odd}");
    assert_eq!(report["logs"][0]["log_line_prefix"], Value::Null);
    let given = json(&[&path, "--prefix", "<%t> [pid=%p] | user=%u,db=%d,app=%a> "]);
    assert_eq!(circles(&given), circles(&report));
}

#[test]
fn lines_of_others_between() {
    let log = std::fs::read_to_string(folder().join("english.log")).expect("a log");
    let noise = "2026-12-01 02:35:34.717 JST [4711] app@shop/noise LOG:  duration: 1.000 ms  statement: select 'ShareLock'\n\
                 2026-12-01 02:35:34.717 JST [4711] app@shop/noise ERROR:  duplicate key\n\
                 2026-12-01 02:35:34.717 JST [4711] app@shop/noise DETAIL:  Key (id)=(secret) already exists.\n";
    let mut mixed = String::new();
    for line in log.lines() {
        if !line.starts_with('\t') {
            mixed.push_str(noise);
        }
        mixed.push_str(line);
        mixed.push('\n');
    }
    let (_folder, path) = temporary("mixed.log", mixed.as_bytes());
    let report = json(&[&path]);
    assert_eq!(circles(&report), circles(&json(&["english.log"])));
    assert!(!report.to_string().contains("secret"));
}

#[test]
fn earlier_statements_are_looked_for() {
    let log = std::fs::read_to_string(folder().join("english.log")).expect("a log");
    let line = |pid: i32, app: &str, text: &str| {
        format!("2026-12-01 02:35:34.000 JST [{pid}] app@shop/{app} LOG:  statement: {text}\n")
    };
    let before = [
        line(
            30266,
            "transfer-b",
            "update accounts set balance = 0 where id = 1;",
        ),
        line(30266, "transfer-b", "begin;"),
        line(
            30266,
            "transfer-b",
            "update accounts set balance = balance - 2\n\t where id = 2;",
        ),
        line(
            30265,
            "transfer-a",
            "update accounts set balance = balance - 1 where id = 1;",
        ),
    ]
    .concat();
    let (_folder, path) = temporary("seen.log", format!("{before}{log}").as_bytes());
    let report = json(&[&path]);
    let first = &report["deadlocks"][0];
    assert_eq!(
        first["order_conflict"]["text"],
        "transfer-a locks accounts id 1, then id 2; transfer-b id 2, then id 1"
    );
    assert_eq!(first["order_conflict"]["basis"], "seen");
    assert_eq!(
        first["members"][1]["earlier"],
        serde_json::json!(["update accounts set balance = balance - 2\n where id = 2;"])
    );
}

#[test]
fn texts_are_shown_only_when_asked_for() {
    for args in [
        &["english.log"][..],
        &["english.log", "--json"],
        &["english.log", "-o", "md"],
    ] {
        let run = stanch(args, b"");
        for text in ["secret-x", "花子", "taro"] {
            assert!(!run.out.contains(text), "{text}: {}", run.out);
        }
    }
    let run = stanch(&["english.log", "--unredacted"], b"");
    assert!(
        run.out.contains("names name '花子', then name 'taro'")
            || run.out.contains("names name 'taro', then name '花子'"),
        "{}",
        run.out
    );
}

#[test]
fn codes_times_and_faults() {
    assert_eq!(stanch(&["english.log", "--check"], b"").code, 1);
    let later = json(&[
        "english.log",
        "--since",
        "2026-11-30T17:35:40Z",
        "--until",
        "2026-12-01T02:35:41+09:00",
    ]);
    assert_eq!(later["deadlocks_total"], 1);
    let empty = stanch(&["-", "--check"], b"");
    assert_eq!(empty.code, 0);
    assert!(empty.out.contains("no deadlock\n"), "{}", empty.out);
    let wrong = stanch(&["-"], b"hello\nworld\n");
    assert_eq!(wrong.code, 65);
    assert_eq!(
        wrong.err,
        "stanch: -: nothing in it looks like a log of PostgreSQL's (stderr, csvlog or jsonlog)\n  \
         try: --prefix with the server's log_line_prefix, or --log-format\n"
    );
    assert_eq!(stanch(&["/nonexistent/log"], b"").code, 65);
    assert_eq!(
        stanch(&["english.log", "--since", "yesterday"], b"").code,
        64
    );
    assert_eq!(stanch(&["english.log", "--prefix", "%"], b"").code, 64);
    let xz = stanch(&["-"], b"\xfd7zXZ\0.......");
    assert_eq!(xz.code, 65);
    assert!(xz.err.contains("compressed with xz"), "{}", xz.err);
    // A file that was cut off while it was packed is told as far as it goes.
    let plain = std::fs::read(folder().join("english.log")).expect("a log");
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    out.write_all(&plain).expect("packed");
    let packed = out.finish().expect("packed");
    let cut = stanch(&["-"], &packed[..packed.len() - 3000]);
    assert_eq!(cut.code, 3, "{}", cut.err);
    assert!(cut.out.contains("not read to its end"), "{}", cut.out);
}

#[test]
fn a_line_without_end_stays_small() {
    // 40 MiB in one line, and a deadlock behind it.
    let mut log =
        b"2026-12-01 02:35:34.000 JST [7] app@shop/x LOG:  statement: select 'eLock ".to_vec();
    log.resize(40 << 20, b'x');
    log.extend_from_slice(b"'\n");
    log.extend_from_slice(&std::fs::read(folder().join("english.log")).expect("a log"));
    let (_folder, path) = temporary("long.log", &log);
    let report = json(&[&path]);
    assert_eq!(report["deadlocks_total"], 9);
}

/// The README's example, word for word but for the time of reading.
#[test]
fn the_readme_shows_what_it_shows() {
    let readme = include_str!("../../README.md");
    let (_, rest) = readme
        .split_once("$ stanch pg deadlocks postgresql.log\n")
        .expect("the example");
    let (example, _) = rest.split_once("```").expect("its end");
    let without_time = |text: &str| {
        let (first, rest) = text.split_once('\n').expect("lines");
        let (who, _) = first.rsplit_once(" · ").expect("a time");
        format!("{who}\n{rest}")
    };
    let run = stanch(&["postgresql.log"], b"");
    assert_eq!(without_time(&run.out), without_time(example));
}

/// All that a bundle and a postmortem look for in a log.
pub fn all_events(log: &Path) -> Vec<stanch::model::LogEvent> {
    use stanch::logs::{ScanOptions, Wanted, Zone, begin, open};
    let options = ScanOptions {
        wanted: Wanted::All,
        format: None,
        prefix: None,
        zone: Zone::default(),
        since: None,
        until: None,
    };
    let mut events = Vec::new();
    let opened = open(log).expect("a log");
    let begun = begin(opened, &options).expect("a log");
    begun
        .read(&mut |event| events.push(event), &mut |_, _| true)
        .expect("it is read");
    events
}

/// What a timeline shows of a log, by format and language.
#[test]
fn moments_of_a_log() {
    let told = |log: &str| {
        let events = all_events(&folder().join(log));
        let again: Vec<stanch::model::LogEvent> =
            serde_json::from_value(serde_json::to_value(&events).expect("JSON")).expect("the same");
        assert_eq!(again, events, "{log}");
        stanch::logs::moments(&events, &stanch::analysis::deadlocks::relations)
            .iter()
            .map(|moment| {
                let what = moment.what.replace(|c: char| c.is_ascii_digit(), "");
                format!("{}{what}", if moment.count > 1 { "several: " } else { "" })
            })
            .filter(|what| !what.starts_with("deadlock"))
            .collect::<Vec<_>>()
    };
    let expected = [
        "server ready",
        "waiter waits for a row of accounts",
        "statement canceled (statement timeout): cancels",
        "server asked to shut down",
        "server shut down",
    ];
    for log in [
        "english.log",
        "japanese.log",
        "japanese.csv",
        "japanese.json",
    ] {
        assert_eq!(told(log), expected, "{log}");
    }
}

/// How many events, and how many of them are errors without a circle.
fn events_of(bytes: Vec<u8>, wanted: stanch::logs::Wanted) -> (usize, usize) {
    use stanch::logs::{Opened, ScanOptions, Zone, begin};
    let options = ScanOptions {
        wanted,
        format: None,
        prefix: None,
        zone: Zone::default(),
        since: None,
        until: None,
    };
    let opened = Opened {
        name: "made up".into(),
        packing: stanch::model::LogPacking::None,
        size: None,
        position: Default::default(),
        reader: Box::new(std::io::Cursor::new(bytes)),
    };
    let (mut events, mut bare) = (0, 0);
    let mut sink = |event: stanch::model::LogEvent| {
        events += 1;
        bare += usize::from(event.what == stanch::model::LogWhat::BareDeadlock);
    };
    let begun = begin(opened, &options);
    let read = begun.and_then(|begun| begun.read(&mut sink, &mut |_, _| true));
    // That nothing is a log's any more is an answer too.
    let _ = read;
    (events, bare)
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]

    /// Whatever became of a log, it is read to its end, and most of what wasn't touched is found.
    #[test]
    fn a_log_that_was_damaged(
        log in 0_usize..LOGS.len(),
        edits in proptest::collection::vec((0.0_f64..1.0, 0_usize..40, "[\\x00-\\x7f\u{3042}\u{ff1a}\"\\n\\t]{0,8}"), 1..6),
    ) {
        let mut bytes = std::fs::read(folder().join(LOGS[log])).expect("a log");
        for (at, gone, new) in &edits {
            let at = (bytes.len() as f64 * at) as usize;
            let end = (at + gone).min(bytes.len());
            bytes.splice(at..end, new.bytes());
        }
        let (events, bare) = events_of(bytes.clone(), stanch::logs::Wanted::Locks);
        // Damage takes events away and adds none: 20 are whole, one of them a timeout. It may part an error from its circle.
        proptest::prop_assert!(events - bare <= 20 && bare <= edits.len(), "{events} {bare}");
        events_of(bytes, stanch::logs::Wanted::All);
    }
}

/// With two looks triage tells of deadlocks between them, and with none it keeps silent.
#[test]
fn triage_tells_what_grew() {
    use stanch::analysis::triage;
    use stanch::model::{FindingId, Section, Severity, Snapshot, Thresholds, Timestamp};
    let file = folder().join("../leak.json");
    let with = |deadlocks: i64, later: i64| -> Snapshot {
        let mut snapshot = stanch::bundle::read(&file).expect("a snapshot");
        let mut rows = snapshot.databases.rows().to_vec();
        rows[0].deadlocks = Some(deadlocks);
        snapshot.databases = Section::Collected(rows);
        snapshot.taken_at =
            Timestamp::new(snapshot.taken_at.utc() + chrono::TimeDelta::seconds(later));
        snapshot
    };
    let told = |before: &Snapshot, now: &Snapshot| {
        let report = triage::report(now, &Thresholds::default()).with_growth(before, now);
        let of = report
            .data
            .findings
            .iter()
            .find(|found| found.id == FindingId::LockDeadlocks);
        of.map(|found| {
            (
                found.severity,
                found.title.clone(),
                found.next[0].starts_with("stanch pg deadlocks -h"),
            )
        })
    };
    assert_eq!(told(&with(3, 0), &with(3, 2)), None);
    assert_eq!(
        told(&with(3, 0), &with(5, 2)),
        Some((Severity::Warning, "2 deadlocks in 2 s".into(), true))
    );
    assert_eq!(told(&with(3, 0), &with(1, 2)), None);
}

/// A circle as the server writes it, with `prefix` before each line.
fn written(prefix: &str, codes: [&str; 2]) -> String {
    let [log, error] = codes;
    format!(
        "{prefix}LOG:  {log}process 13411 detected deadlock while waiting for ShareLock on transaction 1107 after 200.107 ms\n\
         {prefix}DETAIL:  Process holding the lock: 13412. Wait queue: .\n\
         {prefix}CONTEXT:  while updating tuple (0,2) in relation \"accounts\"\n\
         {prefix}STATEMENT:  update accounts set n = 1 where id = 2\n\
         {prefix}ERROR:  {error}deadlock detected\n\
         {prefix}DETAIL:  Process 13411 waits for ShareLock on transaction 1107; blocked by process 13412.\n\
         \tProcess 13412 waits for ShareLock on transaction 1106; blocked by process 13411.\n\
         \tProcess 13411: update accounts set n = 1 where id = 2\n\
         \tProcess 13412: update accounts set n = 1 where id = 1\n\
         {prefix}HINT:  See server log for query details.\n\
         {prefix}CONTEXT:  while updating tuple (0,2) in relation \"accounts\"\n\
         {prefix}STATEMENT:  update accounts set n = 1 where id = 2\n"
    )
}

/// Victim, its application, and the process of the one lock wait.
fn victim(text: &str, args: &[&str]) -> (Value, Value, Value) {
    let (_folder, path) = temporary("a.log", text.as_bytes());
    let report = json(&[&[path.as_str()], args].concat());
    assert_eq!(report["deadlocks_total"], 1, "{text}");
    assert_eq!(report["lock_waits"]["waits"], 1, "{text}");
    let deadlock = &report["deadlocks"][0];
    assert_eq!(deadlock["members"][0]["victim"], true);
    assert_eq!(deadlock["relations"][0], "accounts");
    (
        deadlock["victim_pid"].clone(),
        deadlock["members"][0]["application_name"].clone(),
        report["lock_waits"]["longest"][0]["pid"].clone(),
    )
}

#[test]
fn verbose_codes_session_ids_and_odd_names() {
    let pid = Value::from(13411);
    let head = "2026-11-30 19:07:45.438 UTC [13411] ";
    let verbose = written(head, ["00000: ", "40P01: "]);
    assert_eq!(
        victim(&verbose, &[]),
        (pid.clone(), Value::Null, pid.clone())
    );
    for prefix in [
        "6b0dc985.3463 [1] 2026-11-30 19:07:45.438 UTC ",
        "6b0dc985.3463 1 2026-11-30 19:07:45.438 UTC 3/273/904: ",
    ] {
        let text = written(prefix, ["", ""]);
        assert_eq!(victim(&text, &[]), (pid.clone(), Value::Null, pid.clone()));
    }
    let by_prefix = written(
        "6b0dc985.3463 1 2026-11-30 19:07:45.438 UTC 3/273/904: ",
        ["", ""],
    );
    let told = victim(&by_prefix, &["--prefix", "%c %l %m %v/%x: "]);
    assert_eq!(told, (pid.clone(), Value::Null, pid.clone()));
    for name in ["x LOG:  process 1", "DETAIL:  a"] {
        let line = format!("2026-11-30 19:07:45.438 UTC [13411] app@shop/{name} ");
        let text = written(&line, ["", ""]);
        for args in [&[][..], &["--prefix", "%m [%p] %q%u@%d/%a "]] {
            let told = victim(&text, args);
            assert_eq!(told, (pid.clone(), name.into(), pid.clone()), "{args:?}");
        }
    }
}

#[test]
fn a_forged_circle_in_a_statement_is_none() {
    let text = "2026-11-30 19:07:45.438 UTC [7] app@shop/a LOG:  statement: select DETAIL:  Process 7 waits for \
                ShareLock on transaction 1; blocked by process 7.\n\
                2026-11-30 19:07:46.438 UTC [7] app@shop/a LOG:  statement: select 1\n";
    let (_folder, path) = temporary("a.log", text.as_bytes());
    assert_eq!(json(&[&path])["deadlocks_total"], 0);
}

#[test]
fn several_logs_of_one_server_count_once() {
    let one = json(&["japanese.log"]);
    let all = json(&[
        "japanese.log",
        "japanese.csv",
        "japanese.json",
        "japanese.log",
    ]);
    for field in ["deadlocks_total", "lock_waits"] {
        let (one, all) = (&one[field], &all[field]);
        if field == "lock_waits" {
            assert_eq!(one["waits"], all["waits"]);
        } else {
            assert_eq!(one, all);
        }
    }
    let missing = all["coverage"]["missing"].to_string();
    assert!(missing.contains("27 deadlocks told once more"), "{missing}");
}

#[test]
fn a_wait_ends_with_its_statement() {
    let head = "2026-11-30 19:08:26.812 UTC [15686] ";
    let wait = format!(
        "{head}LOG:  process 15686 still waiting for ShareLock on transaction 9 after 201.617 ms\n"
    );
    let (_folder, path) = temporary("a.log", wait.as_bytes());
    let run = stanch(&[&path], b"");
    assert!(run.out.contains("at least 201"), "{}", run.out);
    for end in [
        "ERROR:  canceling statement due to lock timeout",
        "ERROR:  57014: ステートメントのタイムアウトのためステートメントをキャンセルしています",
        "FATAL:  terminating connection due to administrator command",
    ] {
        let text = format!("{wait}2026-11-30 19:08:27.211 UTC [15686] {end}\n");
        let (_folder, path) = temporary("a.log", text.as_bytes());
        let waits = &json(&[&path])["lock_waits"];
        assert_eq!((&waits["failed"], &waits["open"]), (&1.into(), &0.into()));
        assert_eq!(waits["longest"][0]["waited_ms"], 600, "{end}");
    }
}
