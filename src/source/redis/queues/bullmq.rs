//! BullMQ: `<prefix>:<queue>:wait` (and `paused` before 6) of ids that are pushed at the left and taken from the right,
//! `prioritized` after it, sorted sets for the rest, and a hash for each job.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use redis::Value;
use serde::Deserialize;
use serde_json::Value as Json;

use super::ask::{AHEAD, Ask, RUNNING, answers, ask};
use super::moment::{self, Clock};
use super::share::LONG_MS;
use super::sidekiq::earlier;
use super::site::{label, mark, text};
use crate::model::{Queue, QueueHead, QueueSystem};
use crate::source::redis::fleet::Fleet;
use crate::source::redis::value;

const USUAL: &[u8] = b"bull:";
/// More connections than that aren't listed for the workers among them.
const CONNECTIONS: u64 = 2000;
/// A delayed job's score is its due time in milliseconds times this, and a counter.
const PER_MS: i64 = 4096;

/// The due time in a score of `delayed`.
fn due(score: f64) -> Option<i64> {
    (score > 0.0 && score < 9e15).then_some(score as i64 / PER_MS)
}

/// Old versions put a marker into the list that is no job.
fn is_marker(id: &[u8]) -> bool {
    id.starts_with(b"0:")
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Options {
    delay: Json,
}

/// Since when a job waits: since it was added, or since it was due; of one that was promoted before it was due nothing
/// tells it.
fn waiting_since(timestamp: Option<&str>, options: Option<&str>, now: i64) -> Option<i64> {
    let added = moment::of_text(timestamp?)?;
    let options: Options = serde_json::from_str(options?).unwrap_or_default();
    match options.delay.as_i64().filter(|delay| *delay > 0) {
        Some(delay) => added.checked_add(delay).filter(|due| *due <= now),
        None => Some(added),
    }
}

/// One queue by the beginning of its keys, such as `bull:mail`.
fn name(base: &[u8]) -> String {
    match base.iter().rposition(|byte| *byte == b':') {
        Some(colon) => label(&base[..=colon], USUAL, &base[colon + 1..]),
        None => text(base),
    }
}

pub async fn inspect(fleet: &mut Fleet, bases: &[Vec<u8>], clock: &Clock) -> Vec<Queue> {
    let connections = connection_names(fleet, !bases.is_empty()).await;
    let mut rows = Vec::new();
    for base in bases {
        rows.push(one(fleet, base, clock, connections.as_deref()).await);
    }
    rows
}

async fn one(
    fleet: &mut Fleet,
    base: &[u8],
    clock: &Clock,
    connections: Option<&[String]>,
) -> Queue {
    let mut row = Queue::new(QueueSystem::Bullmq, name(base));
    let key = |of: &str| [base, b":", of.as_bytes()].concat();
    let before = |ms: i64| format!("({}", ms.saturating_mul(PER_MS));
    let ahead = (AHEAD - 1).to_string();
    let mut asks: Vec<Ask> = ["wait", "paused", "active"]
        .iter()
        .map(|list| ask("LLEN", key(list)))
        .collect();
    for set in [
        "prioritized",
        "delayed",
        "failed",
        "waiting-children",
        "completed",
    ] {
        asks.push(ask("ZCARD", key(set)));
    }
    for until in [clock.ms(), clock.ms() - LONG_MS] {
        asks.push(ask("ZCOUNT", key("delayed")).arg("-inf").arg(before(until)));
    }
    let failed = ask("ZRANGE", key("failed")).arg("0").arg("0");
    asks.push(failed.arg("WITHSCORES"));
    let first_due = ask("ZRANGE", key("delayed")).arg("0").arg("0");
    asks.push(first_due.arg("WITHSCORES"));
    asks.push(ask("HMGET", key("meta")).arg("paused"));
    asks.push(ask("GET", key("id")));
    asks.push(ask("ZRANGE", key("prioritized")).arg("0").arg(&ahead));
    for list in ["wait", "paused"] {
        asks.push(ask("LINDEX", key(list)).arg("0"));
        for n in 1..=AHEAD {
            asks.push(ask("LINDEX", key(list)).arg(format!("-{n}")));
        }
    }
    let mut told = answers(fleet, asks).await;
    let (wait, paused, active) = (told.uint(), told.uint(), told.uint());
    let [prioritized, delayed, dead, children, done] = [(); 5].map(|()| told.uint());
    row.overdue = told.uint();
    row.long_overdue = told.uint();
    let first_failed = told.scored().and_then(|scored| Some(scored.first()?.1));
    let oldest_dead = first_failed.and_then(moment::of_number);
    let first_due = told.scored().and_then(|scored| due(scored.first()?.1));
    row.paused = told
        .list()
        .map(|fields| fields.first().and_then(value::text).as_deref() == Some("1"));
    row.counters.added = told.uint();
    let by_priority: Vec<Vec<u8>> = ids(told.list().unwrap_or_default());
    let mut markers = 0;
    let mut next: Vec<Vec<u8>> = Vec::new();
    for length in [wait, paused] {
        let mut there = vec![told.bytes()];
        there.extend((1..=AHEAD).map(|_| told.bytes()));
        let marked = there.iter().flatten().any(|id| is_marker(id));
        markers += u64::from(marked && length.is_some());
        let from_the_right = there.into_iter().skip(1).flatten();
        next.extend(from_the_right.filter(|id| !is_marker(id)));
    }
    row.refused = told.refusal().map(|refused| refused.text().to_owned());
    let listed = wait
        .zip(paused)
        .map(|(wait, paused)| (wait + paused).saturating_sub(markers));
    row.depth = listed.zip(prioritized).map(|(listed, by)| listed + by);
    row.counters.kept = [row.depth, active, delayed, dead, children, done]
        .into_iter()
        .sum();
    row.in_flight = active;
    row.scheduled = delayed;
    row.dead = dead;
    row.oldest_dead_ms = oldest_dead.map(|at| clock.age(at));
    if let (Some(1..), Some(due)) = (row.overdue, first_due) {
        row.note(format!(
            "the first delayed one was due {} ago",
            clock.age(due)
        ));
    }
    if let Some(by) = prioritized.filter(|by| *by > 0) {
        row.note(format!(
            "waiting by priority, after those without one: {by}"
        ));
    }
    if let Some(children) = children.filter(|children| *children > 0) {
        row.note(format!("waiting for their children: {children}"));
    }
    next.truncate(AHEAD);
    let by_priority_all = prioritized.is_none_or(|by| by <= by_priority.len() as u64);
    let looked_at_all = row
        .depth
        .is_some_and(|depth| depth <= (next.len() + by_priority.len()) as u64);
    next.extend(by_priority);
    waiting(fleet, base, &next, looked_at_all, &mut row, clock).await;
    if !by_priority_all && row.oldest_age_ms.is_some() && !row.oldest_age_at_least {
        row.oldest_age_at_least = true;
        row.note("an older one may wait behind those of a higher priority: only the first were looked at");
    }
    let locked = in_flight(fleet, base, &mut row, clock).await;
    retries(fleet, base, &mut row).await;
    workers(base, connections, &mut row);
    if row.workers == Some(0) && locked > 0 {
        row.workers = None;
        row.note("jobs in flight have locks, but no connection has a worker's name: workers can't be counted");
    }
    row
}

fn ids(values: Vec<Value>) -> Vec<Vec<u8>> {
    values.into_iter().filter_map(value::bytes).collect()
}

/// The head, and the oldest of the next to run: a last-in job, or one of a higher priority, runs before older ones.
async fn waiting(
    fleet: &mut Fleet,
    base: &[u8],
    next: &[Vec<u8>],
    all: bool,
    row: &mut Queue,
    clock: &Clock,
) {
    let asks = next
        .iter()
        .map(|id| {
            let job = ask("HMGET", [base, b":", id].concat());
            job.arg("name")
                .arg("timestamp")
                .arg("opts")
                .arg("processedOn")
        })
        .collect();
    let mut jobs = answers(fleet, asks).await;
    let mut oldest: Option<i64> = None;
    let (mut in_order, mut unknown) = (true, 0);
    for (n, id) in next.iter().enumerate() {
        let mut fields = jobs.fields().into_iter();
        let mut field = || fields.next().flatten();
        let (class, timestamp, options) = (field(), field(), field());
        // One that was tried already waits again since then, at the earliest.
        let tried = field().as_deref().and_then(moment::of_text);
        let since = waiting_since(timestamp.as_deref(), options.as_deref(), clock.ms()).max(tried);
        if n == 0 {
            row.head = Some(QueueHead {
                class,
                id: Some(text(id)),
                age_ms: since.map(|at| clock.age(at)),
                mark: mark(id),
            });
        } else if since.is_some() && since < oldest {
            in_order = false;
        }
        unknown += usize::from(since.is_none());
        oldest = earlier(oldest, since);
    }
    row.oldest_age_ms = oldest.map(|at| clock.age(at));
    let behind = !all && !in_order;
    row.oldest_age_at_least = (behind || unknown > 0) && oldest.is_some();
    if unknown > 0 && unknown < next.len() {
        row.note(format!(
            "since when they wait isn't known of {unknown} of the next {}",
            next.len()
        ));
    }
    if behind && oldest.is_some() {
        row.note(
            "the next to run isn't the oldest: of the next ones only the first were looked at",
        );
    }
    if let Some(refused) = jobs.refusal() {
        row.refused.get_or_insert(refused.text().to_owned());
    }
}

/// When they began, and whether their worker still holds them: gives the number of those that are held.
async fn in_flight(fleet: &mut Fleet, base: &[u8], row: &mut Queue, clock: &Clock) -> u64 {
    let Some(active) = row.in_flight.filter(|active| *active > 0) else {
        return 0;
    };
    let list = [base, b":active"].concat();
    // The oldest are at the right. Counting from there takes a walk along the list before Redis 7.
    let asks = if active <= RUNNING {
        let last = (RUNNING - 1).to_string();
        vec![ask("LRANGE", list).arg("0").arg(last)]
    } else {
        let last = |n| ask("LINDEX", list.clone()).arg(format!("-{n}"));
        (1..=10).map(last).collect()
    };
    let count = asks.len();
    let mut told = answers(fleet, asks).await;
    let jobs: Vec<Vec<u8>> = if active <= RUNNING {
        ids(told.list().unwrap_or_default())
    } else {
        (0..count).filter_map(|_| told.bytes()).collect()
    };
    let mut asks = Vec::new();
    for id in &jobs {
        let job = [base, b":", id].concat();
        asks.push(ask("HGET", job.clone()).arg("processedOn"));
        asks.push(ask("EXISTS", [&job, &b":lock"[..]].concat()));
    }
    let mut told = answers(fleet, asks).await;
    let (mut oldest, mut locked, mut unlocked) = (None, 0, 0);
    for _ in &jobs {
        let begun = told.bytes().and_then(|at| moment::of_text(&text(&at)));
        oldest = earlier(oldest, begun);
        let lock = told.yes();
        locked += u64::from(lock == Some(true));
        unlocked += u64::from(lock == Some(false));
    }
    row.oldest_in_flight_ms = oldest.map(|at| clock.age(at));
    if unlocked > 0 {
        let of = match active <= RUNNING {
            true => format!("{active} in flight"),
            false => format!("the {} longest in flight", jobs.len()),
        };
        row.note(format!(
            "{unlocked} of {of} without a lock: the worker is gone"
        ));
    }
    if let Some(refused) = told.refusal() {
        row.refused.get_or_insert(refused.text().to_owned());
    }
    locked
}

/// Delayed jobs that were tried before.
async fn retries(fleet: &mut Fleet, base: &[u8], row: &mut Queue) {
    match row.scheduled {
        Some(0) => row.retry = Some(0),
        Some(delayed) if delayed <= RUNNING => {
            let set = ask("ZRANGE", [base, b":delayed"].concat());
            let set = set.arg("0").arg((RUNNING - 1).to_string());
            let mut told = answers(fleet, vec![set]).await;
            let jobs = ids(told.list().unwrap_or_default());
            let asks = jobs
                .iter()
                .map(|id| {
                    let job = ask("HMGET", [base, b":", id].concat());
                    job.arg("atm").arg("attemptsMade")
                })
                .collect();
            let mut told = answers(fleet, asks).await;
            let mut tried = 0;
            for _ in &jobs {
                let made = told.fields().into_iter().flatten();
                tried += u64::from(made.into_iter().any(|made| made != "0"));
            }
            row.retry = told.refusal().is_none().then_some(tried);
        }
        _ => {}
    }
}

/// Names of all connections; `None`: this login may not ask, or there are too many.
async fn connection_names(fleet: &mut Fleet, wanted: bool) -> Option<Vec<String>> {
    let clients = fleet
        .facts
        .as_ref()
        .and_then(|facts| facts.number("connected_clients"));
    if !wanted || clients.is_none_or(|clients| clients > CONNECTIONS) {
        return None;
    }
    let mut names = Vec::new();
    for node in &mut fleet.nodes {
        let list = value::text(&node.say("CLIENT LIST").await.ok()?)?;
        let all = list.split_whitespace();
        names.extend(all.filter_map(|word| Some(word.strip_prefix("name=")?.to_owned())));
    }
    Some(names)
}

/// BullMQ counts the connections that its workers have given the queue's name to, and so do we.
fn workers(base: &[u8], connections: Option<&[String]>, row: &mut Queue) {
    let (Some(connections), Some(colon)) =
        (connections, base.iter().rposition(|byte| *byte == b':'))
    else {
        return;
    };
    let prefix = text(&base[..colon]);
    let own = format!("{prefix}:{}", STANDARD.encode(&base[colon + 1..]));
    let named = format!("{own}:w:");
    let count = connections
        .iter()
        .filter(|name| **name == own || name.starts_with(&named))
        .count();
    row.workers = Some(count as u64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delayed_score_is_its_time_and_a_counter() {
        assert_eq!(due(7_356_576_978_161_664.0), Some(1_796_039_301_309));
        assert_eq!(due(7_356_547_739_660_288.0), Some(1_796_032_163_003));
        assert_eq!(due(f64::INFINITY), None);
    }

    #[test]
    fn a_job_that_was_delayed_waits_since_it_was_due() {
        let since =
            |options| waiting_since(Some("1796035702999"), Some(options), 1_796_039_303_000);
        assert_eq!(since(r#"{"attempts":0}"#), Some(1_796_035_702_999));
        assert_eq!(since(r#"{"delay":3600000}"#), Some(1_796_039_302_999));
        // It was promoted before it was due.
        assert_eq!(since(r#"{"delay":3600002}"#), None);
        assert_eq!(since(r#"{"delay":9223372036854775807}"#), None);
        assert_eq!(since("odd"), Some(1_796_035_702_999));
        assert_eq!(waiting_since(None, Some("{}"), 0), None);
    }

    #[test]
    fn names_split_at_the_last_colon() {
        assert_eq!(name(b"bull:mail"), "mail");
        assert_eq!(name(b"{bull}:mail"), "{bull}:mail");
        assert_eq!(name(b"app:q:mail"), "app:q:mail");
        let mut row = Queue::new(QueueSystem::Bullmq, String::new());
        let all = ["bull:YmlsbGluZw==:w:live", "bull:YmlsbGluZw==:qe", "x"].map(str::to_owned);
        workers(b"bull:billing", Some(&all), &mut row);
        assert_eq!(row.workers, Some(1));
        workers(b"bull:mail", Some(&all), &mut row);
        assert_eq!(row.workers, Some(0));
    }
}
