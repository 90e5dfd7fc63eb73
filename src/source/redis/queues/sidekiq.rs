//! Sidekiq 6 to 8: `queue:<name>` lists that are pushed at the left and taken from the right; `schedule`, `retry` and
//! `dead` for all queues together; a hash for each live process.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value as Json;

use super::ask::{Ask, SMALL, WORKERS, answers, ask, members, whole_hash};
use super::moment::{self, Clock};
use super::share::{Entry, LONG_MS, Share, note_strangers};
use super::site::{Site, mark, text};
use crate::model::{Queue, QueueHead, QueueSystem};
use crate::source::redis::fleet::Fleet;
use crate::source::redis::value;

/// It cuts its dead set to less than 10,000.
const DEAD_FULL: u64 = 9_999;

/// What is read of a job; its arguments aren't.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Job {
    class: Json,
    wrapped: Json,
    jid: Json,
    queue: Json,
    enqueued_at: Json,
    created_at: Json,
}

impl Job {
    fn read(payload: &[u8]) -> Option<Self> {
        serde_json::from_slice(payload).ok()
    }

    /// Since when it waits in its queue. Of a job that was scheduled `created_at` is older than that.
    fn waiting_since(&self) -> Option<i64> {
        moment::of_json(&self.enqueued_at).or_else(|| moment::of_json(&self.created_at))
    }

    fn shown_class(&self) -> Option<String> {
        let word = |json: &Json| json.as_str().map(str::to_owned);
        word(&self.wrapped).or_else(|| word(&self.class))
    }
}

#[derive(Debug, Deserialize)]
struct Work {
    queue: String,
    #[serde(default)]
    run_at: Json,
}

#[derive(Debug, Deserialize)]
struct Info {
    #[serde(default)]
    queues: Vec<String>,
}

fn head(payload: &[u8], clock: &Clock) -> QueueHead {
    let job = Job::read(payload).unwrap_or_default();
    QueueHead {
        class: job.shown_class(),
        id: job.jid.as_str().map(str::to_owned),
        age_ms: job.waiting_since().map(|at| clock.age(at)),
        mark: mark(payload),
    }
}

pub async fn inspect(fleet: &mut Fleet, site: &Site, clock: &Clock) -> Vec<Queue> {
    let mut all = site.all(QueueSystem::Sidekiq, b"");
    let kept = Kept::read(fleet, site, clock, &mut all).await;
    let processes = Processes::read(fleet, site).await;
    let mut asks = Vec::new();
    for name in &site.names {
        let list = site.key(&[b"queue:", &name.bytes]);
        asks.push(ask("LLEN", list.clone()));
        asks.push(ask("LINDEX", list).arg("-1"));
        asks.push(ask("SISMEMBER", site.key(&[b"paused"])).arg(&name.bytes));
    }
    asks.push(ask("GET", site.key(&[b"stat:processed"])));
    let mut answers = answers(fleet, asks).await;
    let mut rows = Vec::new();
    for name in &site.names {
        let of = text(&name.bytes);
        let mut row = site.row(QueueSystem::Sidekiq, b"", name);
        row.depth = answers.uint();
        row.head = answers.bytes().map(|payload| head(&payload, clock));
        row.oldest_age_ms = row.head.as_ref().and_then(|head| head.age_ms);
        row.paused = answers.yes();
        row.refused = answers.refusal().map(|refused| refused.text().to_owned());
        row.scheduled = kept.schedule.count(&of);
        row.retry = kept.retry.count(&of);
        let (schedule, retry) = (&kept.schedule, &kept.retry);
        row.overdue = sum(schedule.passed(&of), retry.passed(&of));
        row.long_overdue = sum(schedule.long_passed(&of), retry.long_passed(&of));
        row.dead = kept.dead.count(&of);
        row.oldest_dead_ms = kept.dead.oldest(&of, clock);
        processes.tell(&of, &mut row, clock);
        rows.push(row);
    }
    if let [only] = rows.as_mut_slice() {
        // It counts the runs of all queues together.
        only.counters.taken = answers.uint();
    }
    let known = |queue: &str| site.names.iter().any(|name| text(&name.bytes) == queue);
    let shares = [&kept.schedule, &kept.retry, &kept.dead];
    let strangers = note_strangers(&mut all, &shares, known);
    // What is shared out stands with its queues.
    let [schedule, retry, dead] = shares.map(|share| share.rest(known));
    let some = |count: u64| Some(count).filter(|count| *count > 0);
    if let Some(rest) = schedule {
        all.scheduled = some(rest.count);
    }
    if let Some(rest) = retry {
        all.retry = some(rest.count);
    }
    if let Some(rest) = dead {
        all.dead = some(rest.count);
        all.oldest_dead_ms = rest.oldest.map(|at| clock.age(at));
    }
    if let Some((schedule, retry)) = schedule.zip(retry) {
        all.overdue = some(schedule.passed + retry.passed);
        all.long_overdue = some(schedule.long_passed + retry.long_passed);
    }
    if strangers || shares.iter().any(|share| !share.is_shared()) {
        rows.push(all);
    }
    rows
}

/// What is kept for all queues together.
struct Kept {
    schedule: Share,
    retry: Share,
    dead: Share,
}

impl Kept {
    async fn read(fleet: &mut Fleet, site: &Site, clock: &Clock, all: &mut Queue) -> Self {
        let keys = ["schedule", "retry", "dead"].map(|set| site.key(&[set.as_bytes()]));
        let mut asks: Vec<Ask> = keys.iter().map(|set| ask("ZCARD", set.clone())).collect();
        for ago in [0, LONG_MS] {
            let until = format!("({}", clock.seconds_ago(ago));
            for set in &keys[..2] {
                asks.push(ask("ZCOUNT", set.clone()).arg("-inf").arg(&until));
            }
        }
        let mut counts = answers(fleet, asks).await;
        let totals = [counts.uint(), counts.uint(), counts.uint()];
        [all.scheduled, all.retry, all.dead] = totals;
        all.overdue = sum(counts.uint(), counts.uint());
        all.long_overdue = sum(counts.uint(), counts.uint());
        if all.dead.is_some_and(|dead| dead >= DEAD_FULL) {
            all.note("the dead set is full (9,999): older ones are dropped");
        }
        let mut asks = Vec::new();
        for (set, total) in keys.iter().zip(totals) {
            let last = match total {
                Some(total) if total <= SMALL => SMALL - 1,
                _ => 0,
            };
            let range = ask("ZRANGE", set.clone()).arg("0").arg(last.to_string());
            asks.push(range.arg("WITHSCORES"));
        }
        let mut ranges = answers(fleet, asks).await;
        let mut shares = Vec::new();
        for (n, total) in totals.into_iter().enumerate() {
            let members = ranges.scored();
            if n == 2 {
                let oldest = members.as_deref().and_then(<[_]>::first);
                let at = oldest.and_then(|(_, score)| moment::of_number(*score));
                all.oldest_dead_ms = at.map(|at| clock.age(at));
            }
            shares.push(match (members, total) {
                (Some(members), Some(total)) if total <= SMALL => {
                    Share::of(members.iter().map(entry).collect(), clock)
                }
                _ => Share::unread(total),
            });
        }
        let refused = counts.refusal().or_else(|| ranges.refusal());
        all.refused = refused.map(|refused| refused.text().to_owned());
        let mut shares = shares.into_iter();
        let mut next = || shares.next().unwrap_or_default();
        Self {
            schedule: next(),
            retry: next(),
            dead: next(),
        }
    }
}

/// The score is the due time, or that of its death.
fn entry((member, score): &(Vec<u8>, f64)) -> Entry {
    Entry {
        queue: Job::read(member).and_then(|job| Some(job.queue.as_str()?.to_owned())),
        at: moment::of_number(*score),
    }
}

#[derive(Default)]
struct OfQueue {
    workers: u64,
    /// Of these: those that finish what they run and take nothing new.
    quiet: u64,
    /// Since when the process that has been silent for longest is silent.
    beat: Option<i64>,
    in_flight: u64,
    oldest: Option<i64>,
}

/// The live processes by queue. One whose hash has expired is dead, though the set still has it.
#[derive(Default)]
struct Processes {
    by_queue: BTreeMap<String, OfQueue>,
    ghosts: usize,
    known: bool,
    /// Jobs in flight of all processes could be read.
    works_known: bool,
    note: Option<String>,
}

impl Processes {
    async fn read(fleet: &mut Fleet, site: &Site) -> Self {
        let (names, whole) = match members(fleet, &site.key(&[b"processes"]), WORKERS).await {
            Ok(found) => found,
            Err(refused) => {
                return Self {
                    note: Some(format!("its processes: {}", refused.text())),
                    ..Self::default()
                };
            }
        };
        let mut read = Self {
            known: whole,
            works_known: whole,
            note: (!whole).then(|| format!("more than {WORKERS} processes: not counted")),
            ..Self::default()
        };
        if !whole {
            return read;
        }
        let mut asks = Vec::new();
        for name in &names {
            let hash = site.key(&[name]);
            asks.push(ask("HMGET", hash).arg("info").arg("beat").arg("quiet"));
            asks.push(ask("HLEN", site.key(&[name, b":work"])));
            asks.push(ask("HLEN", site.key(&[name, b":workers"])));
        }
        let mut told = answers(fleet, asks).await;
        let mut busy = Vec::new();
        for name in &names {
            let mut fields = told.fields().into_iter();
            let mut field = || fields.next().flatten();
            let (info, beat, quiet) = (field(), field(), field());
            for suffix in [":work", ":workers"] {
                match told.uint() {
                    Some(0) => {}
                    Some(jobs) if jobs <= SMALL => {
                        let hash = site.key(&[name, suffix.as_bytes()]);
                        busy.push(whole_hash(hash));
                    }
                    _ => read.works_known = false,
                }
            }
            if let Some(refused) = told.refusal() {
                read.known = false;
                read.note = Some(format!("its processes: {}", refused.text()));
                continue;
            }
            let info = info.and_then(|info| serde_json::from_str::<Info>(&info).ok());
            let Some(info) = info else {
                read.ghosts += 1;
                continue;
            };
            let beat = beat.and_then(|beat| moment::of_text(&beat));
            for queue in info.queues {
                let of = read.by_queue.entry(queue).or_default();
                of.workers += 1;
                of.quiet += u64::from(quiet.as_deref() == Some("true"));
                of.beat = earlier(of.beat, beat);
            }
        }
        let count = busy.len();
        let mut works = answers(fleet, busy).await;
        for _ in 0..count {
            let Some(page) = works.hash() else {
                read.works_known = false;
                continue;
            };
            for (_, work) in page {
                let work = value::bytes(work);
                let work = work.and_then(|work| serde_json::from_slice::<Work>(&work).ok());
                if let Some(work) = work {
                    let of = read.by_queue.entry(work.queue).or_default();
                    of.in_flight += 1;
                    of.oldest = earlier(of.oldest, moment::of_json(&work.run_at));
                }
            }
        }
        read.works_known &= works.refusal().is_none();
        read
    }

    fn tell(&self, queue: &str, row: &mut Queue, clock: &Clock) {
        let of = self.by_queue.get(queue);
        let age = |at: Option<i64>| at.map(|at| clock.age(at));
        if self.known {
            row.workers = Some(of.map_or(0, |of| of.workers));
            row.oldest_heartbeat_ms = age(of.and_then(|of| of.beat));
            if let Some(of) = of.filter(|of| of.quiet > 0) {
                row.note(format!(
                    "processes that take no new jobs: {} of {}",
                    of.quiet, of.workers
                ));
            }
        }
        if self.works_known {
            row.in_flight = Some(of.map_or(0, |of| of.in_flight));
            row.oldest_in_flight_ms = age(of.and_then(|of| of.oldest));
        }
        if self.ghosts > 0 {
            row.note(format!(
                "gone without a word, though in the set of processes still: {}",
                self.ghosts
            ));
        }
        row.notes.extend(self.note.clone());
    }
}

fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    Some(a? + b?)
}

pub(super) fn earlier(a: Option<i64>, b: Option<i64>) -> Option<i64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Timestamp;

    fn clock() -> Clock {
        let at = chrono::DateTime::from_timestamp(1_796_035_700, 0).expect("a time");
        Clock::new(Timestamp::new(at))
    }

    #[test]
    fn the_time_in_the_queue_in_the_format_of_each_version() {
        for (job, seconds) in [
            (
                r#"{"enqueued_at":1796035660.5514135,"created_at":1796030000.1}"#,
                Some(39),
            ),
            (
                r#"{"enqueued_at":1796035660551,"created_at":1796030000000}"#,
                Some(39),
            ),
            (r#"{"enqueued_at":"1796035660.5514"}"#, Some(39)),
            (r#"{"enqueued_at":"2026-11-30T10:47:40.5Z"}"#, Some(39)),
            (r#"{"created_at":1796035600.0}"#, Some(100)),
            (r#"{"enqueued_at":1796039999.0}"#, Some(0)),
            (r#"{"enqueued_at":null}"#, None),
            ("{}", None),
            ("no JSON", None),
        ] {
            let age = head(job.as_bytes(), &clock()).age_ms;
            assert_eq!(age.map(|age| age.0 / 1000), seconds, "{job}");
        }
    }

    #[test]
    fn the_class_that_is_wrapped() {
        let of = |job: &str| head(job.as_bytes(), &clock());
        let wrapped = of(
            r#"{"class":"Sidekiq::ActiveJob::Wrapper","wrapped":"InvoiceMailJob","jid":"a","args":[7]}"#,
        );
        assert_eq!(wrapped.class.as_deref(), Some("InvoiceMailJob"));
        assert_eq!(wrapped.id.as_deref(), Some("a"));
        assert_eq!(
            of(r#"{"class":"LongJob"}"#).class.as_deref(),
            Some("LongJob")
        );
        assert_eq!(of(r#"{"class":["odd"],"jid":5}"#).class, None);
    }
}
