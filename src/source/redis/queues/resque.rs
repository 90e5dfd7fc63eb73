//! Resque, Ruby's and node's: `queue:<name>` lists that are pushed at the right and taken from the left, without a time in
//! them unless they are Active Jobs; `failed` and the delayed jobs of resque-scheduler for all queues together.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value as Json;

use super::ask::{Ask, SMALL, WORKERS, answers, ask, members};
use super::moment::{self, Clock};
use super::share::{Entry, Share, note_strangers};
use super::sidekiq::earlier;
use super::site::{Site, mark, text};
use crate::keys::is_like;
use crate::model::{Millis, Queue, QueueHead, QueueSystem, count};
use crate::source::redis::fleet::Fleet;
use crate::source::redis::value;

pub const USUAL: &[u8] = b"resque:";
/// Ruby's own limit: a worker that is silent for longer is taken off.
const SILENT: Millis = Millis::from_secs(300);

/// What is read of a job; of its arguments only what Active Job wraps it in.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Job {
    class: Json,
    queue: Json,
    args: Arguments,
}

/// What isn't written by a library may have no list of them.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Arguments {
    List(Vec<Argument>),
    Other(serde::de::IgnoredAny),
}

impl Default for Arguments {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Argument {
    Wrapped {
        job_class: String,
        #[serde(default)]
        job_id: Json,
        #[serde(default)]
        enqueued_at: Json,
    },
    Other(serde::de::IgnoredAny),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Failure {
    queue: Json,
    failed_at: Json,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Work {
    queue: Json,
    run_at: Json,
}

fn word(json: &Json) -> Option<String> {
    json.as_str().map(str::to_owned)
}

fn time(json: &Json) -> Option<i64> {
    json.as_str()
        .and_then(moment::resque)
        .or_else(|| moment::of_json(json))
}

fn head(payload: &[u8], clock: &Clock) -> QueueHead {
    let job: Job = serde_json::from_slice(payload).unwrap_or_default();
    let bare = QueueHead {
        class: word(&job.class),
        mark: mark(payload),
        ..QueueHead::default()
    };
    let first = match job.args {
        Arguments::List(args) => args.into_iter().next(),
        Arguments::Other(_) => None,
    };
    match first {
        Some(Argument::Wrapped {
            job_class,
            job_id,
            enqueued_at,
        }) => QueueHead {
            class: Some(job_class),
            id: word(&job_id),
            age_ms: time(&enqueued_at).map(|at| clock.age(at)),
            ..bare
        },
        _ => bare,
    }
}

pub async fn inspect(fleet: &mut Fleet, site: &Site, clock: &Clock) -> Vec<Queue> {
    let mut all = site.all(QueueSystem::Resque, USUAL);
    let delayed = delayed(fleet, site, clock, &mut all).await;
    let failed = failed(fleet, site, clock, &mut all).await;
    let workers = Workers::read(fleet, site, clock).await;
    let mut asks = vec![ask("EXISTS", site.key(&[b"failed_queues"]))];
    for name in &site.names {
        let list = site.key(&[b"queue:", &name.bytes]);
        asks.push(ask("LLEN", list.clone()));
        asks.push(ask("LINDEX", list).arg("0"));
        // Of the backend with a list of failures per queue.
        let failures = site.key(&[&name.bytes, b"_failed"]);
        asks.push(ask("LLEN", failures.clone()));
        asks.push(ask("LINDEX", failures).arg("0"));
    }
    let mut answers = answers(fleet, asks).await;
    let apart = answers.yes() == Some(true);
    let mut rows = Vec::new();
    for name in &site.names {
        let of = text(&name.bytes);
        let mut row = site.row(QueueSystem::Resque, USUAL, name);
        row.depth = answers.uint();
        row.head = answers.bytes().map(|payload| head(&payload, clock));
        row.oldest_age_ms = row.head.as_ref().and_then(|head| head.age_ms);
        let (failures, first) = (answers.uint(), answers.bytes());
        row.refused = answers.refusal().map(|refused| refused.text().to_owned());
        row.scheduled = delayed.count(&of);
        row.overdue = delayed.passed(&of);
        row.long_overdue = delayed.long_passed(&of);
        if apart {
            row.dead = failures;
            let at = first.and_then(|first| failure(&first).at);
            row.oldest_dead_ms = at.map(|at| clock.age(at));
        } else {
            row.dead = failed.count(&of);
            row.oldest_dead_ms = failed.oldest(&of, clock);
        }
        workers.tell(&of, &mut row, clock);
        rows.push(row);
    }
    let known = |queue: &str| site.names.iter().any(|name| text(&name.bytes) == queue);
    let shares = [&delayed, &failed];
    let strangers = note_strangers(&mut all, &shares, known);
    // What is shared out stands with its queues.
    let some = |count: u64| Some(count).filter(|count| *count > 0);
    if let Some(rest) = delayed.rest(known) {
        all.scheduled = some(rest.count);
        all.overdue = some(rest.passed);
        all.long_overdue = some(rest.long_passed);
    }
    if let Some(rest) = failed.rest(known) {
        all.dead = some(rest.count);
        all.oldest_dead_ms = rest.oldest.map(|at| clock.age(at));
    }
    if strangers || shares.iter().any(|share| !share.is_shared()) {
        rows.push(all);
    }
    rows
}

fn failure(member: &[u8]) -> Entry {
    let failure: Failure = serde_json::from_slice(member).unwrap_or_default();
    Entry {
        queue: word(&failure.queue),
        at: time(&failure.failed_at),
    }
}

async fn failed(fleet: &mut Fleet, site: &Site, clock: &Clock, all: &mut Queue) -> Share {
    let list = site.key(&[b"failed"]);
    let mut first = answers(
        fleet,
        vec![
            ask("LLEN", list.clone()),
            ask("LINDEX", list.clone()).arg("0"),
        ],
    )
    .await;
    all.dead = first.uint();
    let oldest = first.bytes().and_then(|member| failure(&member).at);
    all.oldest_dead_ms = oldest.map(|at| clock.age(at));
    if let Some(refused) = first.refusal() {
        all.refused = Some(refused.text().to_owned());
    }
    if !all.dead.is_some_and(|dead| (1..=SMALL).contains(&dead)) {
        return Share::unread(all.dead);
    }
    let last = (SMALL - 1).to_string();
    let mut page = answers(fleet, vec![ask("LRANGE", list).arg("0").arg(last)]).await;
    let Some(members) = page.list() else {
        return Share::unread(all.dead);
    };
    let members = members.into_iter().filter_map(value::bytes);
    Share::of(members.map(|member| failure(&member)).collect(), clock)
}

/// The delayed jobs of resque-scheduler: a list for each second that one is due at.
async fn delayed(fleet: &mut Fleet, site: &Site, clock: &Clock, all: &mut Queue) -> Share {
    let schedule = site.key(&[b"delayed_queue_schedule"]);
    let until = format!("({}", clock.seconds_ago(0));
    let mut counts = answers(
        fleet,
        vec![
            ask("ZCARD", schedule.clone()),
            ask("ZCOUNT", schedule.clone()).arg("-inf").arg(until),
        ],
    )
    .await;
    let (moments, passed) = (counts.uint(), counts.uint());
    if let Some(refused) = counts.refusal() {
        all.refused = Some(refused.text().to_owned());
    }
    match moments {
        Some(0) => return Share::unread(Some(0)),
        Some(moments) if moments <= SMALL => {}
        moments => {
            if let (Some(moments), Some(passed)) = (moments, passed) {
                all.note(format!(
                    "jobs are due at {moments} moments, of which {passed} have passed: not counted"
                ));
            }
            return Share::unread(None);
        }
    }
    let range = ask("ZRANGE", schedule)
        .arg("0")
        .arg((SMALL - 1).to_string());
    let mut due = answers(fleet, vec![range]).await;
    let due: Vec<Vec<u8>> = due
        .list()
        .unwrap_or_default()
        .into_iter()
        .filter_map(value::bytes)
        .collect();
    let key = |at: &[u8]| site.key(&[b"delayed:", at]);
    let lengths = due.iter().map(|at| ask("LLEN", key(at))).collect();
    let mut lengths = answers(fleet, lengths).await;
    let total: Option<u64> = due.iter().map(|_| lengths.uint()).sum();
    all.scheduled = total;
    if total.is_none_or(|total| total > SMALL) {
        return Share::unread(total);
    }
    let last = (SMALL - 1).to_string();
    let asks: Vec<Ask> = due
        .iter()
        .map(|at| ask("LRANGE", key(at)).arg("0").arg(&last))
        .collect();
    let mut lists = answers(fleet, asks).await;
    let mut entries = Vec::new();
    for at in &due {
        let at = moment::of_text(&text(at));
        for job in lists.list().unwrap_or_default() {
            let job = value::bytes(job).and_then(|job| serde_json::from_slice::<Job>(&job).ok());
            let queue = job.and_then(|job| word(&job.queue));
            entries.push(Entry { queue, at });
        }
    }
    Share::of(entries, clock)
}

/// What a worker runs.
#[derive(Default)]
struct OfQueue {
    in_flight: u64,
    oldest: Option<i64>,
}

struct Worker {
    /// Names of queues, or patterns such as `mail*` (`File.fnmatch?` in Ruby).
    listens: Vec<String>,
    silent: bool,
    beat: Option<i64>,
}

#[derive(Default)]
struct Workers {
    all: Vec<Worker>,
    by_queue: BTreeMap<String, OfQueue>,
    known: bool,
    note: Option<String>,
}

impl Workers {
    async fn read(fleet: &mut Fleet, site: &Site, clock: &Clock) -> Self {
        let ids = match members(fleet, &site.key(&[b"workers"]), WORKERS).await {
            Ok((ids, true)) => ids,
            Ok((_, false)) => {
                return Self {
                    note: Some(format!("more than {WORKERS} workers: not counted")),
                    ..Self::default()
                };
            }
            Err(refused) => {
                return Self {
                    note: Some(format!("its workers: {}", refused.text())),
                    ..Self::default()
                };
            }
        };
        let mut asks = Vec::new();
        for id in &ids {
            asks.push(ask("GET", site.key(&[b"worker:", id])));
            // Ruby keeps the heartbeats in one hash, node in a key each.
            asks.push(ask("HGET", site.key(&[b"workers:heartbeat"])).arg(id));
            asks.push(ask(
                "GET",
                site.key(&[b"worker:ping:", name_and_queues(id).0]),
            ));
        }
        let mut told = answers(fleet, asks).await;
        let mut read = Self {
            known: true,
            ..Self::default()
        };
        for id in &ids {
            let work: Option<Work> = told
                .bytes()
                .and_then(|work| serde_json::from_slice(&work).ok());
            let ruby = told
                .value()
                .and_then(|beat| moment::iso(&value::text(&beat)?));
            let node = told.bytes().and_then(|ping| ping_time(&ping));
            let beat = ruby.max(node);
            let silent = beat.is_some_and(|beat| clock.age(beat) > SILENT);
            let queues = text(name_and_queues(id).1);
            read.all.push(Worker {
                listens: queues.split(',').map(str::to_owned).collect(),
                silent,
                beat,
            });
            if let Some(work) = work
                && let Some(queue) = word(&work.queue)
            {
                let of = read.by_queue.entry(queue).or_default();
                of.in_flight += 1;
                of.oldest = earlier(of.oldest, time(&work.run_at));
            }
        }
        if let Some(refused) = told.refusal() {
            read.known = false;
            read.note = Some(format!("its workers: {}", refused.text()));
        }
        read
    }

    fn tell(&self, queue: &str, row: &mut Queue, clock: &Clock) {
        row.notes.extend(self.note.clone());
        if !self.known {
            return;
        }
        let of = self.by_queue.get(queue);
        let age = |at: Option<i64>| at.map(|at| clock.age(at));
        let of_it = |worker: &&Worker| {
            let mut patterns = worker.listens.iter();
            patterns.any(|pattern| is_like(pattern.as_bytes(), queue.as_bytes()))
        };
        let mine: Vec<&Worker> = self.all.iter().filter(of_it).collect();
        let silent = mine.iter().filter(|worker| worker.silent).count();
        row.workers = Some((mine.len() - silent) as u64);
        let beat = mine.iter().filter_map(|worker| worker.beat).min();
        row.oldest_heartbeat_ms = age(beat);
        row.in_flight = Some(of.map_or(0, |of| of.in_flight));
        row.oldest_in_flight_ms = age(of.and_then(|of| of.oldest));
        if silent > 0 {
            row.note(format!(
                "{} silent for more than {SILENT}: in flight is what they ran, too",
                count(silent, "worker")
            ));
        }
    }
}

/// `host:pid:queue,queue`, or node's `name:queue,queue`.
fn name_and_queues(id: &[u8]) -> (&[u8], &[u8]) {
    match id.iter().rposition(|byte| *byte == b':') {
        Some(colon) => (&id[..colon], &id[colon + 1..]),
        None => (id, b""),
    }
}

fn ping_time(ping: &[u8]) -> Option<i64> {
    let ping: Json = serde_json::from_slice(ping).ok()?;
    moment::of_json(ping.get("time")?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Timestamp;

    #[test]
    fn only_active_jobs_have_a_time() {
        let at = chrono::DateTime::from_timestamp(1_796_035_700, 0).expect("a time");
        let clock = Clock::new(Timestamp::new(at));
        let of = |job: &str| head(job.as_bytes(), &clock);
        let wrapped = of(
            r#"{"class":"W::JobWrapper","args":[{"job_class":"Invoice","job_id":"a1","arguments":[7],"enqueued_at":"2026-11-30T10:46:26.227Z"}]}"#,
        );
        assert_eq!(wrapped.class.as_deref(), Some("Invoice"));
        assert_eq!(wrapped.id.as_deref(), Some("a1"));
        assert_eq!(wrapped.age_ms.map(|age| age.0 / 1000), Some(113));
        let plain = of(r#"{"class":"Charge","args":[{"secret":1},[2],"x"]}"#);
        assert_eq!(plain.class.as_deref(), Some("Charge"));
        assert_eq!((plain.id, plain.age_ms), (None, None));
        assert_ne!(plain.mark, wrapped.mark);
        assert_eq!(of("{").class, None);
        for odd in ["null", r#"{"a":1}"#, "7"] {
            let job = format!(r#"{{"class":"Odd","queue":"q","args":{odd}}}"#);
            assert_eq!(of(&job).class.as_deref(), Some("Odd"), "{odd}");
        }
    }

    #[test]
    fn workers_of_ruby_and_of_node() {
        assert_eq!(
            name_and_queues(b"web1:71:high,low"),
            (&b"web1:71"[..], &b"high,low"[..])
        );
        assert_eq!(name_and_queues(b"scene:1:*"), (&b"scene:1"[..], &b"*"[..]));
    }
}
