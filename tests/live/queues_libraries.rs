//! Queues of real job libraries: every number that a library's own API gives, against ours.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use stanch::model::{Millis, Queue, QueueSystem, Timestamp};
use stanch::source::redis::queues::queues;

use crate::harness::{folder, say};
use crate::queues::{ALL, Nobody, now, open};
use crate::redis_server::{Redis, free_port, redis as server};

/// A Redis and what a library has made in it; both end with the test.
struct Scene {
    told: Value,
    url: String,
    child: Child,
    _redis: Redis,
    _folder: tempfile::TempDir,
}

impl Drop for Scene {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// `None`: this machine has no such library, or no Redis.
async fn scene(library: &str) -> Option<Scene> {
    let libraries = std::env::var("STANCH_TEST_QUEUES").unwrap_or_default();
    let there = PathBuf::from(libraries).join(library);
    if !there.join(".version").exists() {
        say(&format!("{library} isn't here (make libraries): left out"));
        return None;
    }
    let home = folder();
    let port = free_port();
    let redis = server(home.path(), port, &[]).await?;
    let url = format!("redis://127.0.0.1:{port}/0");
    let scenes = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/queues");
    let (kind, _) = library.split_once('-').unwrap_or((library, ""));
    let python = |name: &str| {
        let mut command = Command::new("python3");
        command
            .env("PYTHONPATH", &there)
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command.arg(scenes.join(name));
        command
    };
    let node = |name: &str| {
        let mut command = Command::new("node");
        command.env("NODE_PATH", there.join("node_modules"));
        command.arg(scenes.join(name));
        command
    };
    let mut command = match kind {
        "celery" => python("celery_scene.py"),
        "rq" => python("rq_scene.py"),
        "bullmq" => node("bullmq_scene.mjs"),
        "resque" => node("resque_scene.mjs"),
        _ => {
            let mut command = Command::new(there.join("ruby"));
            command.arg(scenes.join("sidekiq_scene.rb"));
            command
        }
    };
    let mut child = command
        .arg(&url)
        .current_dir(home.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the scene starts");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("its output");
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    let told = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{library}: {e}: {line:?}"));
    Some(Scene {
        told,
        url,
        child,
        _redis: redis,
        _folder: home,
    })
}

/// What we say, and the server's time before and after.
struct Ours {
    rows: Vec<Queue>,
    between: (i64, i64),
}

async fn ours(url: &str) -> Ours {
    let mut fleet = open(url).await;
    let before = now(&mut fleet).await;
    let (rows, coverage) = queues(&mut fleet, before, &Nobody, ALL).await;
    let after = now(&mut fleet).await;
    assert!(coverage.complete, "{coverage:?}");
    assert!(rows.iter().all(|row| row.refused.is_none()), "{rows:#?}");
    let ms = |at: Timestamp| at.utc().timestamp_millis();
    Ours {
        rows,
        between: (ms(before), ms(after)),
    }
}

impl Ours {
    fn row(&self, name: &str) -> &Queue {
        let mut rows = self.rows.iter().filter(|row| row.name == name);
        let row = rows
            .next()
            .unwrap_or_else(|| panic!("{name}: {:#?}", self.rows));
        assert!(rows.next().is_none(), "{name} twice");
        row
    }

    /// The same moment, told as an age at another time.
    #[track_caller]
    fn same_moment(&self, what: &str, theirs: &Value, at_ms: i64, ours: Option<u64>) {
        let Some(theirs) = theirs.as_i64() else {
            assert_eq!(ours, None, "{what}");
            return;
        };
        let moment = at_ms - theirs;
        let ours = ours.unwrap_or_else(|| panic!("{what}: unknown, theirs is {theirs}"));
        let ours = i64::try_from(ours).expect("an age");
        let (from, to) = (self.between.0 - ours - 100, self.between.1 - ours + 100);
        assert!(
            (from..=to).contains(&moment),
            "{what}: {moment} is not in {from}..{to}"
        );
    }
}

fn number(value: &Value) -> Option<u64> {
    value.as_u64()
}

#[track_caller]
fn noted(row: &Queue, wanted: bool, text: &str) {
    let found = row.notes.iter().any(|note| note.contains(text));
    assert_eq!(found, wanted, "{text}: {row:#?}");
}

/// Compares one queue, field by field; a field that isn't known here fails.
fn compare(system: QueueSystem, told: &Value, theirs: &Value, ours: &Ours) {
    let name = theirs["name"].as_str().expect("a name");
    let at_ms = told["at_ms"].as_i64().expect("a time");
    let row = ours.row(name);
    assert_eq!(row.system, system);
    for (field, value) in theirs.as_object().expect("a queue") {
        let what = format!("{name}: {field}: {row:#?}");
        let moment = |ms: Option<Millis>| {
            ours.same_moment(&what, value, at_ms, ms.map(|ms| ms.0));
        };
        let same = |ours: Option<u64>| assert_eq!(ours, number(value), "{what}");
        match (field.as_str(), system) {
            ("name", _) => {}
            ("depth", _) => same(row.depth),
            // Celery's running tasks are in no key, see `unacked`; what was prefetched is among those.
            ("in_flight" | "prefetched" | "oldest_in_flight_ms", QueueSystem::Celery) => {}
            ("unacked", _) => same(row.in_flight.zip(row.scheduled).map(|(a, b)| a + b)),
            ("oldest_unacked_ms", _) if row.scheduled == Some(0) => moment(row.oldest_in_flight_ms),
            ("oldest_unacked_ms", _) => {
                let oldest = row.oldest_in_flight_ms.map_or(0, |ms| ms.0);
                assert!(oldest <= number(value).expect("an age") + 60_000, "{what}");
            }
            ("in_flight", _) => same(row.in_flight),
            ("scheduled", _) => same(row.scheduled),
            // Ours has those that are to be tried again as well.
            ("overdue", QueueSystem::Sidekiq) => {
                let retries = number(&theirs["retry_overdue"]).expect("a number");
                assert_eq!(row.overdue, number(value).map(|n| n + retries), "{what}");
            }
            ("retry_overdue", _) => {}
            ("overdue", _) => same(row.overdue),
            ("retry", _) => same(row.retry),
            ("dead", _) => same(row.dead),
            ("oldest_dead_ms", _) => moment(row.oldest_dead_ms),
            // Resque's API counts the ghost; RQ's does until its hash expires.
            ("workers", QueueSystem::Resque) => {}
            ("live_workers", _) => same(row.workers),
            ("workers", QueueSystem::Rq) => rq_workers(told, name, number(value), row, ours),
            // No key tells of Celery's workers.
            ("workers", QueueSystem::Celery) => assert_eq!(row.workers, None),
            ("workers", _) => same(row.workers),
            // RQ can suspend all queues together, and Resque can't at all.
            ("paused", QueueSystem::Rq) => assert_eq!(row.paused, Some(false), "{what}"),
            ("paused", _) => assert_eq!(row.paused, value.as_bool(), "{what}"),
            ("oldest_age_ms", _) => moment(row.oldest_age_ms),
            ("head_age_ms", _) => moment(row.head.as_ref().and_then(|head| head.age_ms)),
            ("oldest_in_flight_ms", _) => moment(row.oldest_in_flight_ms),
            ("head", _) => {
                let head = row.head.as_ref();
                assert_eq!(head.is_some(), value.is_object(), "{what}");
                assert_eq!(
                    head.and_then(|head| head.class.as_deref()),
                    value["class"].as_str(),
                    "{what}"
                );
                assert_eq!(
                    head.and_then(|head| head.id.as_deref()),
                    value["id"].as_str(),
                    "{what}"
                );
            }
            ("prioritized", _) => {
                let count = number(value).expect("a number");
                noted(
                    row,
                    count > 0,
                    &format!("waiting by priority, after those without one: {count}"),
                );
            }
            ("waiting_children", _) => {
                let count = number(value).expect("a number");
                noted(
                    row,
                    count > 0,
                    &format!("waiting for their children: {count}"),
                );
            }
            ("stalled", _) => {
                let (count, of) = (number(value).expect("a number"), row.in_flight.unwrap_or(0));
                noted(
                    row,
                    count > 0,
                    &format!("{count} of {of} in flight without a lock"),
                );
            }
            ("deferred", _) => {
                let count = number(value).expect("a number");
                noted(row, count > 0, &format!("waiting for other jobs: {count}"));
            }
            ("intermediate", _) => {
                let count = number(value).expect("a number");
                noted(row, count > 0, &format!("not begun: {count}"));
            }
            // History: it is no part of a queue's state.
            ("completed", _) => {}
            (other, _) => panic!("{other} is not compared"),
        }
    }
}

/// RQ counts a worker whose hash is still there; we leave out those that are silent for too long, and say so.
fn rq_workers(told: &Value, name: &str, theirs: Option<u64>, row: &Queue, ours: &Ours) {
    let workers = told["workers"].as_array().expect("workers");
    let listens = |worker: &&Value| {
        let queues = worker["queues"].as_array().expect("queues");
        queues.iter().any(|queue| queue == name)
    };
    let workers: Vec<&Value> = workers.iter().filter(listens).collect();
    let silent = workers
        .iter()
        .filter(|worker| worker["state"] == "busy")
        .filter(|worker| worker["heartbeat_ms"].as_u64() > Some(120_000))
        .count() as u64;
    assert_eq!(row.workers.map(|live| live + silent), theirs, "{row:#?}");
    noted(
        row,
        silent > 0,
        "workers silent for longer than they may be",
    );
    let oldest = workers
        .iter()
        .max_by_key(|worker| worker["heartbeat_ms"].as_u64());
    let oldest = oldest.map_or(Value::Null, |worker| worker["heartbeat_ms"].clone());
    let at_ms = told["at_ms"].as_i64().expect("a time");
    let ours_ms = row.oldest_heartbeat_ms.map(|ms| ms.0);
    ours.same_moment("heartbeat", &oldest, at_ms, ours_ms);
}

/// Totals over all queues, where the library tells them.
fn compare_totals(system: QueueSystem, told: &Value, ours: &Ours) {
    let sum = |of: fn(&Queue) -> Option<u64>| -> Option<u64> { ours.rows.iter().map(of).sum() };
    for (field, value) in told["totals"].as_object().into_iter().flatten() {
        let ours = match (field.as_str(), system) {
            // Celery's failures are in results, which name no queue.
            ("dead" | "oldest_dead_ms" | "retry" | "workers", QueueSystem::Celery) => continue,
            // Each of the queues has its workers; what was processed is history.
            ("workers" | "live_workers" | "processed" | "failed", _) => continue,
            ("depth", _) => sum(|row| row.depth),
            ("in_flight", _) => sum(|row| row.in_flight),
            ("scheduled", _) => sum(|row| row.scheduled),
            ("retry", _) => sum(|row| row.retry),
            ("dead", _) => sum(|row| row.dead),
            ("unacked", _) => sum(|row| Some(row.in_flight? + row.scheduled?)),
            ("ghosts", _) => {
                for row in &ours.rows {
                    noted(
                        row,
                        true,
                        &format!("in the set of processes still: {value}"),
                    );
                }
                continue;
            }
            (other, _) => panic!("{other} is not compared"),
        };
        assert_eq!(ours, number(value), "{field}: {told}");
    }
}

/// The whole scene of a library: its queues are found, no others, and every number is the same.
async fn same_as(library: &str, system: QueueSystem) -> Option<(Scene, Ours)> {
    let scene = scene(library).await?;
    let ours = ours(&scene.url).await;
    let theirs = scene.told["queues"].as_array().expect("queues");
    let names: Vec<&str> = theirs
        .iter()
        .filter_map(|queue| queue["name"].as_str())
        .collect();
    let found: Vec<&str> = ours.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(found, names, "{library}");
    for queue in theirs {
        compare(system, &scene.told, queue, &ours);
    }
    compare_totals(system, &scene.told, &ours);
    Some((scene, ours))
}

#[tokio::test]
async fn sidekiq_6() {
    same_as("sidekiq-6", QueueSystem::Sidekiq).await;
}

#[tokio::test]
async fn sidekiq_7() {
    same_as("sidekiq-7", QueueSystem::Sidekiq).await;
}

#[tokio::test]
async fn sidekiq_8() {
    same_as("sidekiq-8", QueueSystem::Sidekiq).await;
}

#[tokio::test]
async fn resque() {
    same_as("resque", QueueSystem::Resque).await;
}

#[tokio::test]
async fn celery() {
    let Some((_scene, ours)) = same_as("celery", QueueSystem::Celery).await else {
        return;
    };
    for row in &ours.rows {
        noted(row, true, "a running task without acks_late is in no key");
        noted(row, row.name == "images", "taken more than an hour ago: 2");
        noted(
            row,
            row.name == "celery",
            "due more than an hour after it was taken: 1",
        );
    }
}

#[tokio::test]
async fn bullmq_5() {
    same_as("bullmq-5", QueueSystem::Bullmq).await;
}

#[tokio::test]
async fn bullmq_6() {
    same_as("bullmq-6", QueueSystem::Bullmq).await;
}

#[tokio::test]
async fn rq_1() {
    same_as("rq-1", QueueSystem::Rq).await;
}

#[tokio::test]
async fn rq_2() {
    same_as("rq-2", QueueSystem::Rq).await;
}

#[tokio::test]
async fn rq_3() {
    same_as("rq-3", QueueSystem::Rq).await;
}
