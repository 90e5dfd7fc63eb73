//! 10,000 manifests: read, put together and judged, against the YAML crate reading the same bytes alone. Both in one run, in
//! turns, warm, the median of several.
//!
//! `cargo bench --bench budget` prints both and their ratio; at most 1.5 is wanted; and the program's memory, of which less than
//! 200 MiB is wanted.
#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a bench says what it measured"
)]

use std::time::{Duration, Instant};

use stanch::budget::{self, Input, Options};

const MANIFESTS: usize = 10_000;
const TURNS: usize = 7;

fn manifest(n: usize) -> String {
    format!(
        "apiVersion: apps/v1
kind: Deployment
metadata:
  name: web-{n}
  namespace: shop
  labels: {{ app: web-{n}, team: checkout }}
  annotations:
    stanch.dev/target: main
spec:
  replicas: {}
  strategy:
    type: RollingUpdate
    rollingUpdate: {{ maxSurge: 25%, maxUnavailable: 0 }}
  selector:
    matchLabels: {{ app: web-{n} }}
  template:
    metadata:
      labels: {{ app: web-{n} }}
    spec:
      terminationGracePeriodSeconds: 30
      containers:
        - name: app
          image: shop/web:1.{n}
          ports:
            - containerPort: 8080
          env:
            - name: RAILS_MAX_THREADS
              value: \"5\"
            - name: WEB_CONCURRENCY
              value: \"2\"
            - name: LOG_LEVEL
              value: info
          resources:
            requests: {{ cpu: 250m, memory: 512Mi }}
            limits: {{ cpu: \"1\", memory: 1Gi }}
          readinessProbe:
            httpGet: {{ path: /ready, port: 8080 }}
            periodSeconds: 5
",
        n % 7 + 1
    )
}

fn yaml_alone(inputs: &[Input]) -> usize {
    let docs = inputs.iter().map(|input| {
        serde_yaml::from_multiple::<serde_json::Value>(&input.text)
            .expect("yaml")
            .len()
    });
    docs.sum()
}

fn whole(inputs: &[Input]) -> usize {
    let mut found = Vec::new();
    for input in inputs {
        found.extend(budget::read(input, &|_| None).expect("read"));
    }
    let options = Options {
        max_connections: Some(1_000_000),
        ..Options::default()
    };
    let budget = budget::join(found, &options).expect("a budget");
    let report = budget::judge(&budget, &["steady", "rollout-worst-one", "rollout-all"]);
    report.servers[0].workloads.len()
}

fn timed(work: impl FnOnce() -> usize) -> Duration {
    let began = Instant::now();
    assert_eq!(work(), MANIFESTS);
    began.elapsed()
}

fn median(mut all: Vec<Duration>) -> Duration {
    all.sort();
    all[all.len() / 2]
}

/// The most memory that the program itself has had, on files, in MiB.
fn peak(inputs: &[Input]) -> u64 {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("deploy")).expect("a folder");
    for input in inputs {
        std::fs::write(folder.path().join(&input.path), &input.text).expect("written");
    }
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_stanch"))
        .args([
            "budget",
            "check",
            ".",
            "--json",
            "--max-connections",
            "200000",
        ])
        .current_dir(folder.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("the program runs");
    let path = format!("/proc/{}/status", child.id());
    let mut most = 0;
    while child.try_wait().expect("a status").is_none() {
        let status = std::fs::read_to_string(&path).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        most = most.max(number.unwrap_or(0));
        std::thread::sleep(Duration::from_millis(2));
    }
    most / 1024
}

fn main() {
    let inputs: Vec<Input> = (0..MANIFESTS)
        .map(|n| Input {
            path: format!("deploy/{n}.yaml"),
            text: manifest(n).replace("stanch.dev/target: main", "stanch.dev/processes: \"2\""),
        })
        .collect();
    let (mut alone, mut ours) = (Vec::new(), Vec::new());
    for turn in 0..=TURNS {
        let (a, b) = (timed(|| yaml_alone(&inputs)), timed(|| whole(&inputs)));
        // The first turn warms up.
        if turn > 0 {
            alone.push(a);
            ours.push(b);
        }
    }
    println!(
        "the program on as many files: {} MiB at its most",
        peak(&inputs)
    );
    let (alone, ours) = (median(alone), median(ours));
    println!(
        "{MANIFESTS} manifests: YAML alone {alone:.0?}, budget {ours:.0?}, ratio {:.2}",
        ours.as_secs_f64() / alone.as_secs_f64()
    );
}
