//! A log of 1 GiB, sparse in what matters: `stanch pg deadlocks` against `grep -c deadlock`, in turn, medians.
//!
//! grep's answer goes to a file: into the null device it stops at the first match. `STANCH_BENCH_MIB` makes it smaller.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::zombie_processes,
    reason = "a bench writes its own log, ends where something fails, and prints what it measured"
)]

mod child;

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use child::wait;

const RUNS: usize = 7;
const WARM_UPS: usize = 2;
/// Ordinary lines to one deadlock.
const SPARSE: u64 = 20_000;

/// `%m [%p] %q%u@%d/%a `, as a server writes it with log_lock_waits on.
fn deadlock(out: &mut impl std::io::Write, prefix: &str) {
    let lines = [
        "LOG:  process 30265 detected deadlock while waiting for ShareLock on transaction 727 after 1003.427 ms",
        "DETAIL:  Process holding the lock: 30266. Wait queue: .",
        "CONTEXT:  while updating tuple (0,2) in relation \"accounts\"",
        "STATEMENT:  update accounts set balance = balance + 1 where id = 2",
        "ERROR:  deadlock detected",
        "DETAIL:  Process 30265 waits for ShareLock on transaction 727; blocked by process 30266.\n\
         \tProcess 30266 waits for ShareLock on transaction 728; blocked by process 30265.\n\
         \tProcess 30265: update accounts set balance = balance + 1 where id = 2\n\
         \tProcess 30266: update accounts set balance = balance + 2 where id = 1",
        "HINT:  See server log for query details.",
        "CONTEXT:  while updating tuple (0,2) in relation \"accounts\"",
        "STATEMENT:  update accounts set balance = balance + 1 where id = 2",
    ];
    for line in lines {
        writeln!(out, "{prefix} [30265] app@shop/transfer-a {line}").expect("a line");
    }
}

fn write_log(path: &Path, bytes: u64) -> u64 {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path).expect("a file"));
    let (mut written, mut line, mut deadlocks) = (0, 0_u64, 0);
    while written < bytes {
        line += 1;
        let prefix = format!(
            "2026-12-01 {:02}:{:02}:{:02}.{:03} UTC",
            line / 3_600_000 % 24,
            line / 60_000 % 60,
            line / 1000 % 60,
            line % 1000
        );
        let text = format!(
            "{prefix} [{}] app@shop/web LOG:  duration: {}.{:03} ms  statement: select id, name, price from products \
             where category_id = {} order by id limit 50\n",
            10_000 + line % 500,
            line % 97,
            line % 1000,
            line % 1000
        );
        out.write_all(text.as_bytes()).expect("a line");
        written += text.len() as u64;
        if line % SPARSE == 0 {
            deadlock(&mut out, &prefix);
            deadlocks += 1;
        }
    }
    out.flush().expect("all of it");
    deadlocks
}

/// How long it takes, and its peak memory in KiB.
fn run(command: &[&str], answer: &Path) -> (Duration, i64) {
    let out = File::create(answer).expect("a file");
    let started = Instant::now();
    let child = Command::new(command[0])
        .args(&command[1..])
        .stdout(out)
        .stderr(Stdio::null())
        .spawn()
        .expect("the command runs");
    let (status, peak_kib) = wait(&child);
    assert_eq!(status, 0, "{command:?}");
    (started.elapsed(), peak_kib)
}

fn main() {
    let mib: u64 = std::env::var("STANCH_BENCH_MIB")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1024);
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("postgresql.log");
    let deadlocks = write_log(&log, mib << 20);
    let answer = folder.path().join("answer");
    let log = log.display().to_string();
    let sides = [
        (
            "stanch pg deadlocks",
            vec![
                env!("CARGO_BIN_EXE_stanch"),
                "pg",
                "deadlocks",
                &log,
                "--json",
            ],
        ),
        ("grep -c deadlock", vec!["grep", "-c", "deadlock", &log]),
    ];
    let mut times = [Vec::new(), Vec::new()];
    let mut peaks = [0, 0];
    for turn in 0..WARM_UPS + RUNS {
        for (n, (_, command)) in sides.iter().enumerate() {
            let (took, peak) = run(command, &answer);
            if n == 0 && turn == 0 {
                let report = std::fs::read(&answer).expect("a report");
                let report: serde_json::Value = serde_json::from_slice(&report).expect("JSON");
                assert_eq!(report["deadlocks_total"], deadlocks);
            }
            if turn >= WARM_UPS {
                times[n].push(took);
                peaks[n] = peaks[n].max(peak);
            }
        }
    }
    let medians = times.map(|mut times| {
        times.sort();
        times[times.len() / 2].as_secs_f64() * 1000.0
    });
    println!("a log of {mib} MiB with {deadlocks} deadlocks ({RUNS} runs in turn, medians)");
    for (n, (name, _)) in sides.iter().enumerate() {
        println!(
            "  {name:<24} {:8.1} ms   {:5.2} of it   peak {:6.1} MiB",
            medians[n],
            medians[0] / medians[n],
            peaks[n] as f64 / 1024.0
        );
    }
}
