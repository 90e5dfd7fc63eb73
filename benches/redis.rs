//! `stanch redis hotkeys` against `redis-cli --hotkeys`: wall time, the server's own time, round trips, memory; all sides in
//! one run, in turn, warm, medians.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::zombie_processes,
    reason = "a bench finds its own servers, ends where something fails, and prints what it measured"
)]

mod child;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use stanch::drill::{Cache, CacheOptions, find_tool};

use child::wait;

const RUNS: usize = 5;
/// Half a round trip.
const ONE_WAY: Duration = Duration::from_micros(500);

struct Side {
    name: &'static str,
    command: Vec<String>,
    wall: Vec<f64>,
    server: Vec<f64>,
    peak_kib: i64,
}

impl Side {
    fn new(name: &'static str, command: &[&str]) -> Self {
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        Self {
            name,
            command,
            wall: Vec::new(),
            server: Vec::new(),
            peak_kib: 0,
        }
    }

    fn run(&mut self, pid: u32, counted: bool) {
        let (started, before) = (Instant::now(), server_seconds(pid));
        let child = Command::new(&self.command[0])
            .args(&self.command[1..])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the command runs");
        let (status, peak_kib) = wait(&child);
        assert_eq!(status, 0, "{}", self.name);
        if counted {
            self.wall.push(started.elapsed().as_secs_f64());
            self.server.push(server_seconds(pid) - before);
            self.peak_kib = self.peak_kib.max(peak_kib);
        }
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// The time that the server has used, by the kernel's count of hundredths.
fn server_seconds(pid: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let fields: Vec<&str> = text
        .rsplit(')')
        .next()
        .expect("fields")
        .split_whitespace()
        .collect();
    let ticks = |n: usize| fields[n].parse::<f64>().expect("a number");
    (ticks(11) + ticks(12)) / 100.0
}

fn compare(title: &str, pid: u32, runs: usize, mut sides: Vec<Side>) -> Vec<Side> {
    for run in 0..=runs {
        for side in &mut sides {
            side.run(pid, run > 0);
        }
    }
    println!("{title} ({runs} runs in turn, medians)");
    let base = sides.last().expect("a side");
    let (wall, server) = (median(&base.wall), median(&base.server));
    for side in &sides {
        println!(
            "  {:<36} {:8.2} s {:6.3} of it   server {:6.2} s {:6.3} of it   peak {:6.1} MiB",
            side.name,
            median(&side.wall),
            median(&side.wall) / wall,
            median(&side.server),
            median(&side.server) / server,
            side.peak_kib as f64 / 1024.0
        );
    }
    sides
}

async fn populated(program: &std::path::Path, keys: u32) -> Cache {
    let settings = vec![
        ("maxmemory", "2gb".into()),
        ("maxmemory-policy", "allkeys-lfu".into()),
        ("enable-debug-command", "yes".into()),
        ("protected-mode", "no".into()),
    ];
    let options = CacheOptions {
        program: program.into(),
        settings,
        tcp: true,
        ..CacheOptions::default()
    };
    let cache = Cache::start(&options).await.expect("it starts");
    let client = redis::Client::open(cache.url()).expect("a client");
    let mut connection = client.get_connection().expect("a connection");
    redis::cmd("DEBUG")
        .arg("POPULATE")
        .arg(keys)
        .arg("user:session")
        .arg(60)
        .exec(&mut connection)
        .expect("keys");
    // A third expires, over two hours.
    for from in (0..keys).step_by(3000) {
        let mut pipe = redis::pipe();
        for n in (from..(from + 3000).min(keys)).step_by(3) {
            pipe.cmd("PEXPIRE")
                .arg(format!("user:session:{n}"))
                .arg(3_600_000 + u64::from(n) * 7);
        }
        pipe.exec(&mut connection).expect("expiry");
    }
    cache
}

/// A relay that holds everything back for half a round trip in each direction.
fn far_away(port: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let relay = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for near in listener.incoming().flatten() {
            let far = TcpStream::connect(("127.0.0.1", port)).expect("the server");
            for stream in [&near, &far] {
                stream.set_nodelay(true).expect("an option");
            }
            carry(
                near.try_clone().expect("a copy"),
                far.try_clone().expect("a copy"),
            );
            carry(far, near);
        }
    });
    relay
}

fn carry(mut from: TcpStream, mut to: TcpStream) {
    let (sender, receiver) = mpsc::channel::<(Instant, Vec<u8>)>();
    std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(n @ 1..) = from.read(&mut buffer) {
            if sender
                .send((Instant::now() + ONE_WAY, buffer[..n].to_vec()))
                .is_err()
            {
                return;
            }
        }
    });
    std::thread::spawn(move || {
        for (due, bytes) in receiver {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                return;
            }
        }
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let path = std::env::var("PATH").unwrap_or_default();
    let program = find_tool(&path, "redis-server").expect("redis-server");
    let stanch = env!("CARGO_BIN_EXE_stanch");
    let hot = |url: &str, more: &[&str]| -> Vec<String> {
        let all = [
            &[stanch, "redis", "hotkeys", "--full", "--redis", url][..],
            more,
        ]
        .concat();
        all.iter().map(|word| (*word).to_owned()).collect()
    };
    let side = |name, command: Vec<String>| {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        Side::new(name, &words)
    };

    let million = populated(&program, 1_000_000).await;
    let port = million.port().expect("a port").to_string();
    let url = format!("redis://127.0.0.1:{port}");
    let cli = Side::new(
        "redis-cli --hotkeys",
        &["redis-cli", "-p", &port, "--hotkeys"],
    );
    let sides = compare(
        "one million keys on this machine",
        million.pid(),
        RUNS,
        vec![
            side("stanch redis hotkeys", hot(&url, &[])),
            side(
                "stanch redis hotkeys --attributes",
                hot(&url, &["--attributes"]),
            ),
            cli,
        ],
    );
    let of_million = (sides[0].peak_kib, sides[1].peak_kib);
    drop(million);

    let small = populated(&program, 100_000).await;
    let port = small.port().expect("a port");
    let url = format!("redis://127.0.0.1:{port}");
    let mut sides = [
        side("", hot(&url, &[])),
        side("", hot(&url, &["--attributes"])),
    ];
    for side in &mut sides {
        side.run(small.pid(), true);
    }
    println!("peak memory, 100 thousand and 1 million keys");
    for (name, few, many) in [
        ("hotkeys", sides[0].peak_kib, of_million.0),
        ("hotkeys --attributes", sides[1].peak_kib, of_million.1),
    ] {
        println!(
            "  {name:<36} {:6.1} and {:6.1} MiB",
            few as f64 / 1024.0,
            many as f64 / 1024.0
        );
    }
    let relay = far_away(port);
    let (url, port) = (format!("redis://127.0.0.1:{relay}"), relay.to_string());
    compare(
        "100 thousand keys at a round trip of 1 ms",
        small.pid(),
        3,
        vec![
            side("stanch redis hotkeys", hot(&url, &[])),
            side(
                "stanch redis hotkeys --attributes",
                hot(&url, &["--attributes"]),
            ),
            Side::new(
                "redis-cli --hotkeys",
                &["redis-cli", "-p", &port, "--hotkeys"],
            ),
        ],
    );
}
