//! How often it happened: no event of one log is lost, and none is counted twice where several logs tell of it. And what of a log
//! isn't known is said by all who read one.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::deadlocks::{json, stanch, temporary};

/// The same two sessions, with the same locks, so many times within a second; by `%t` or by `%m`.
fn again(times: usize, exact: bool) -> String {
    (0..times).fold(String::new(), |mut out, n| {
        let fraction = if exact { format!(".{:03}", n * 60) } else { String::new() };
        let head = format!("2026-11-29 19:17:30{fraction} UTC [11]: ");
        let _ = write!(
            out,
            "{head}LOG:  process 11 detected deadlock while waiting for ExclusiveLock on advisory lock [5,0,1,1] after 10.{n:03} ms\n\
             {head}ERROR:  deadlock detected\n\
             {head}DETAIL:  Process 11 waits for ExclusiveLock on advisory lock [5,0,1,1]; blocked by process 12.\n\
             \tProcess 12 waits for ExclusiveLock on advisory lock [5,0,2,1]; blocked by process 11.\n\
             \tProcess 11: select pg_advisory_lock(1)\n\
             \tProcess 12: select pg_advisory_lock(2)\n"
        );
        out
    })
}

/// The same as the server's other formats have it.
fn as_json(times: usize) -> String {
    (0..times).fold(String::new(), |mut out, n| {
        let line = serde_json::json!({
            "timestamp": format!("2026-11-29 19:17:30.{:03} UTC", n * 60), "pid": 11, "error_severity": "ERROR",
            "state_code": "40P01", "message": "deadlock detected", "backend_type": "client backend",
            "detail": "Process 11 waits for ExclusiveLock on advisory lock [5,0,1,1]; blocked by process 12.\n\
                       Process 12 waits for ExclusiveLock on advisory lock [5,0,2,1]; blocked by process 11.\n\
                       Process 11: select pg_advisory_lock(1)\nProcess 12: select pg_advisory_lock(2)",
        });
        let _ = writeln!(out, "{line}");
        out
    })
}

fn total(args: &[&str]) -> (Value, Value) {
    let report = json(args);
    (
        report["deadlocks_total"].clone(),
        report["deadlocks_without_circle"].clone(),
    )
}

#[test]
fn one_log_tells_each_once() {
    for exact in [false, true] {
        let (_folder, path) = temporary("a.log", again(12, exact).as_bytes());
        assert_eq!(total(&[&path]), (12.into(), 0.into()));
        let run = stanch(&[&path, "--json"], b"");
        assert!(!run.out.contains("told once more"), "{}", run.out);
    }
}

#[test]
fn each_try_is_a_wait() {
    let log = (0..10).fold(String::new(), |mut out, n| {
        let head = format!("2026-11-29 19:17:{:02}.{:03} UTC [11] ", 30 + n, 50 * n);
        let _ = write!(
            out,
            "{head}LOG:  process 11 still waiting for AccessShareLock on relation 16385 of database 5 after 1000.12{} ms\n\
             {head}ERROR:  canceling statement due to lock timeout\n",
            n % 3
        );
        out
    });
    let (_folder, path) = temporary("a.log", log.as_bytes());
    let report = json(&[&path]);
    assert_eq!(report["lock_waits"]["waits"], 10);
    assert_eq!(report["lock_waits"]["failed"], 10);
}

#[test]
fn several_logs_tell_the_most_that_one_does() {
    let (_a, cut) = temporary("a.log", again(12, false).as_bytes());
    let (_b, exact) = temporary("a.json", as_json(12).as_bytes());
    let (_c, some) = temporary("b.json", as_json(5).as_bytes());
    for logs in [
        &[&cut, &exact][..],
        &[&exact, &cut],
        &[&some, &cut],
        &[&cut, &some],
        &[&cut, &cut],
        &[&exact, &exact, &cut],
    ] {
        let args: Vec<&str> = logs.iter().map(|log| log.as_str()).collect();
        assert_eq!(total(&args), (12.into(), 0.into()), "{args:?}");
    }
}

#[test]
fn a_log_that_was_rotated_goes_on() {
    let whole = again(12, false);
    // Between two records, and in the middle of one: before its DETAIL.
    let second = whole.match_indices("LOG:").nth(5).expect("a record").0;
    let between = whole[..second].rfind('\n').expect("a line") + 1;
    let detail = whole.match_indices("DETAIL:").nth(5).expect("one").0;
    let torn = whole[..detail].rfind('\n').expect("a line") + 1;
    for at in [between, torn] {
        let (_a, first) = temporary("a.log", &whole.as_bytes()[..at]);
        let (_b, then) = temporary("b.log", &whole.as_bytes()[at..]);
        assert_eq!(total(&[&first, &then]), (12.into(), 0.into()));
        let (_c, other) = temporary("a.json", as_json(12).as_bytes());
        assert_eq!(total(&[&first, &other, &then]), (12.into(), 0.into()));
    }
}

fn report(folder: &Path, logs: &[&str], more: &[&str]) -> (i32, String, String) {
    let bundle = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures/deadlock.json");
    let mut args = vec!["report".to_owned(), bundle.display().to_string()];
    for log in logs {
        args.extend(["--log".to_owned(), (*log).to_owned()]);
    }
    args.extend(["-o", "md"].map(str::to_owned));
    args.extend(more.iter().map(|arg| (*arg).to_owned()));
    let output = Command::new(env!("CARGO_BIN_EXE_stanch"))
        .args(args)
        .env_clear()
        .env("HOME", folder)
        .current_dir(folder)
        .output()
        .expect("the program runs");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    (
        output.status.code().expect("a code"),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn a_postmortem_counts_alike() {
    let (folder, cut) = temporary("a.log", again(12, false).as_bytes());
    let (_b, exact) = temporary("a.json", as_json(12).as_bytes());
    for logs in [&[cut.as_str()][..], &[&cut, &exact], &[&exact, &cut]] {
        let (code, text, err) = report(folder.path(), logs, &[]);
        assert_eq!(code, 0, "{err}");
        assert!(text.contains("tells of 12 deadlocks"), "{text}");
    }
}

#[test]
fn what_of_a_log_is_unknown_is_a_gap() {
    let log = again(3, true);
    let (folder, _) = temporary("a.log", b"");
    let path = folder.path().join("z.log");
    let name = path.display().to_string();
    let told = |text: &[u8], more: &[&str]| {
        std::fs::write(&path, text).expect("a file");
        report(folder.path(), &[&name], more)
    };
    // Of a zone that nobody knows the times are anybody's guess.
    let (code, text, _) = told(log.replace("UTC", "FOO").as_bytes(), &[]);
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("time zone FOO taken as UTC"), "{text}");
    // Of several meanings one is taken, and it is said which.
    for (zone, hint) in [("CST", "China"), ("PST", "Philippines")] {
        let (code, _, err) = told(log.replace("UTC", zone).as_bytes(), &[]);
        assert_eq!(code, 0, "{err}");
        assert!(
            err.contains(&format!("{zone} taken as")) && err.contains(hint),
            "{err}"
        );
    }
    let east = log
        .replace("2026-11-29 19", "2026-11-30 03")
        .replace("UTC", "CST");
    let (code, text, err) = told(east.as_bytes(), &["--log-timezone", "+08:00"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(text.contains("tells of 3 deadlocks"), "{text}");
    // Without a time, and cut short.
    let (code, text, _) = told(log.replace("2026-11-29 19:17:30", "").as_bytes(), &[]);
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("without a time"), "{text}");
    let mut packed = zstd::encode_all(log.repeat(3000).as_bytes(), 1).expect("packed");
    packed.truncate(packed.len() - 9);
    let (code, text, _) = told(&packed, &[]);
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("not read to its end"), "{text}");
}

/// A function that catches the error leaves the line that the deadlock was found, and no circle.
#[test]
fn one_that_a_function_caught_is_told_by_a_postmortem_too() {
    let line = |second: i32, pid: i32, label: &str, text: &str| {
        format!("2026-11-29 19:16:{second:02}.000 UTC [{pid}] {label}:  {text}\n")
    };
    let found = |second, pid| {
        let text = "detected deadlock while waiting for ShareLock on transaction 9 after 50.123 ms";
        line(second, pid, "LOG", &format!("process {pid} {text}"))
            + &line(
                second,
                pid,
                "DETAIL",
                "Process holding the lock: 13. Wait queue: .",
            )
            + &line(second, pid, "STATEMENT", "select swap()")
    };
    let error = |second, pid| line(second, pid, "ERROR", "deadlock detected");
    let cases = [
        (found(1, 11) + &error(1, 11), 1),
        (found(1, 11), 1),
        // Of two that one session meets, one error; and others after it.
        (found(1, 11) + &found(2, 11) + &error(2, 11), 2),
        (
            found(1, 11) + &found(2, 12) + &error(3, 12) + &found(40, 11),
            3,
        ),
    ];
    for (log, count) in cases {
        let (folder, path) = temporary("a.log", log.as_bytes());
        let (code, text, err) = report(folder.path(), &[&path], &["--prefix", "%m [%p] "]);
        assert_eq!(code, 0, "{err}");
        let told = match count {
            1 => "tells of 1 deadlock,".to_owned(),
            n => format!("tells of {n} deadlocks,"),
        };
        assert!(text.contains(&told), "{log}{text}");
    }
}
