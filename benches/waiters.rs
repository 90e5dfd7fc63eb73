//! A thousand sessions wait on one row: `stanch pg blockers` against psql, all in one run, in turn, medians.
//!
//! Sides: the self-join of pg_locks that is in wide use, and a plain read of pg_locks and pg_stat_activity. On a
//! small server besides: `stanch pg activity` against psql with the same SQL.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::zombie_processes,
    reason = "a bench finds its own servers, ends where something fails, and prints what it measured"
)]

mod child;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use stanch::drill::{self, Server, ServerOptions};
use stanch::source::postgres::catalog;

use child::wait;

const WAITERS: usize = 1000;
const RUNS: usize = 9;
const WARM_UPS: usize = 2;

/// Who waits for whom by joining pg_locks with itself on every column of the lock's identity, as it is in wide use:
/// whoever waits for the same thing counts as a blocker too, so psql has a million rows to print.
const SELF_JOIN: &str = "SELECT waiting.pid AS waiting_pid, wa.usename, holding.pid AS holding_pid, ha.usename, \
    wa.query, ha.query, wa.application_name, ha.application_name \
  FROM pg_catalog.pg_locks waiting \
  JOIN pg_catalog.pg_stat_activity wa ON wa.pid = waiting.pid \
  JOIN pg_catalog.pg_locks holding ON holding.locktype = waiting.locktype \
   AND holding.database IS NOT DISTINCT FROM waiting.database \
   AND holding.relation IS NOT DISTINCT FROM waiting.relation \
   AND holding.page IS NOT DISTINCT FROM waiting.page \
   AND holding.tuple IS NOT DISTINCT FROM waiting.tuple \
   AND holding.virtualxid IS NOT DISTINCT FROM waiting.virtualxid \
   AND holding.transactionid IS NOT DISTINCT FROM waiting.transactionid \
   AND holding.classid IS NOT DISTINCT FROM waiting.classid \
   AND holding.objid IS NOT DISTINCT FROM waiting.objid \
   AND holding.objsubid IS NOT DISTINCT FROM waiting.objsubid \
   AND holding.pid <> waiting.pid \
  JOIN pg_catalog.pg_stat_activity ha ON ha.pid = holding.pid \
  WHERE NOT waiting.granted";

struct Side {
    name: &'static str,
    command: Vec<String>,
    times: Vec<Duration>,
    peak_kib: i64,
}

impl Side {
    fn new(name: &'static str, command: &[&str]) -> Self {
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        Self {
            name,
            command,
            times: Vec::new(),
            peak_kib: 0,
        }
    }

    fn run(&mut self, counted: bool) {
        let started = Instant::now();
        let child = Command::new(&self.command[0])
            .args(&self.command[1..])
            .stdout(Stdio::null())
            .spawn()
            .expect("the command runs");
        let (status, peak_kib) = wait(&child);
        assert_eq!(status, 0, "{}", self.name);
        if counted {
            self.times.push(started.elapsed());
            self.peak_kib = self.peak_kib.max(peak_kib);
        }
    }

    fn median_ms(&self) -> f64 {
        let mut times = self.times.clone();
        times.sort();
        times[times.len() / 2].as_secs_f64() * 1000.0
    }
}

fn compare(title: &str, mut sides: Vec<Side>) {
    for run in 0..WARM_UPS + RUNS {
        for side in &mut sides {
            side.run(run >= WARM_UPS);
        }
    }
    println!("{title} ({RUNS} runs in turn, medians)");
    let ours = sides[0].median_ms();
    for side in &sides {
        let median = side.median_ms();
        println!(
            "  {:<44} {median:8.1} ms   {:5.2} of it   peak {:6.1} MiB",
            side.name,
            ours / median,
            side.peak_kib as f64 / 1024.0
        );
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let path = std::env::var("PATH").unwrap_or_default();
    let bin_dir = drill::bin_dirs(&path)
        .into_iter()
        .next()
        .expect("a PostgreSQL server");
    let stanch = env!("CARGO_BIN_EXE_stanch");

    let server = start(&bin_dir, "20").await;
    let [host, port] = place(&server);
    let to = ["-h", &host, "-p", &port, "-U", "postgres", "-d", "postgres"];
    let activity = catalog::ACTIVITY.sql(15);
    compare(
        "pg activity on a small server",
        vec![
            Side::new(
                "stanch pg activity",
                &[&[stanch, "pg", "activity"][..], &to].concat(),
            ),
            Side::new(
                "psql with the same SQL",
                &[&["psql", "-X"][..], &to, &["-c", activity]].concat(),
            ),
        ],
    );
    drop(server);

    let server = start(&bin_dir, &(WAITERS + 20).to_string()).await;
    let spec = server.spec("postgres", "postgres");
    let holder = drill::connect(&spec, "holder").await.expect("a connection");
    drill::batch(
        &holder,
        "CREATE TABLE hot (id int); INSERT INTO hot VALUES (1)",
    )
    .await
    .expect("a table");
    drill::batch(&holder, "BEGIN; UPDATE hot SET id = 2")
        .await
        .expect("a lock");
    for _ in 0..WAITERS {
        let client = drill::connect(&spec, "web").await.expect("a connection");
        drill::leave_running(client, "UPDATE hot SET id = 3");
    }
    let waiting = format!("SELECT count(DISTINCT pid) = {WAITERS} FROM pg_locks WHERE NOT granted");
    drill::until(&holder, &waiting).await.expect("they wait");
    let [host, port] = place(&server);
    let to = ["-h", &host, "-p", &port, "-U", "postgres", "-d", "postgres"];
    let holders_only = format!("{SELF_JOIN} AND holding.granted");
    let raw = [
        "-c",
        "select * from pg_locks",
        "-c",
        "select * from pg_stat_activity",
    ];
    compare(
        "pg blockers with 1000 sessions waiting on one row",
        vec![
            Side::new(
                "stanch pg blockers",
                &[&[stanch, "pg", "blockers"][..], &to].concat(),
            ),
            Side::new(
                "psql, self-join of pg_locks",
                &[&["psql", "-X"][..], &to, &["-c", SELF_JOIN]].concat(),
            ),
            Side::new(
                "psql, the same with holders only",
                &[&["psql", "-X"][..], &to, &["-c", &holders_only]].concat(),
            ),
            Side::new(
                "psql, pg_locks and pg_stat_activity",
                &[&["psql", "-X"][..], &to, &raw].concat(),
            ),
        ],
    );
    drop(holder);
}

async fn start(bin_dir: &std::path::Path, connections: &str) -> Server {
    let options = ServerOptions {
        bin_dir: bin_dir.into(),
        settings: vec![("max_connections", connections.into())],
        ..ServerOptions::default()
    };
    Server::start(&options).await.expect("the server starts")
}

fn place(server: &Server) -> [String; 2] {
    [
        server.folder().display().to_string(),
        server.port().to_string(),
    ]
}
