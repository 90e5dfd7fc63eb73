//! Celery over kombu: a list per queue and priority, pushed at the left and taken from the right, without a time in the
//! messages; `unacked` for all queues together. A queue is there only while a list of it is: its bindings tell its name.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value as Json;

use super::ask::{SMALL, answers, ask, whole_hash};
use super::moment::{self, Clock};
use super::sidekiq::earlier;
use super::site::{label, mark, text};
use crate::model::{Queue, QueueHead, QueueSystem};
use crate::source::redis::fleet::Fleet;
use crate::source::redis::value;

/// Between a queue's name and the step of its priority, and between the parts of a binding.
pub const SEPARATOR: &[u8] = b"\x06\x16";
/// The usual steps are 0, 3, 6 and 9; others can be set. Step 0 has no suffix and runs first.
const LAST_STEP: u8 = 9;
/// Unless it is set: what was taken that long ago is given to another worker as well.
const VISIBILITY_MS: i64 = 3_600_000;

/// The queues of one broker.
#[derive(Clone, Debug, Default)]
pub struct Broker {
    /// `global_keyprefix`.
    pub prefix: Vec<u8>,
    /// Each queue with what stands before its steps, as its bindings show it: `sep` of broker_transport_options. Who changes
    /// that leaves lists of both kinds, so there may be several; none: the usual one.
    pub names: BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>,
    /// Exchange and routing key to the queue.
    pub routes: BTreeMap<(String, String), String>,
}

/// What is read of a message; its body and the text of its arguments aren't.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Message {
    headers: Headers,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Headers {
    task: Json,
    id: Json,
    eta: Json,
}

fn head(payload: &[u8]) -> QueueHead {
    let message: Message = serde_json::from_slice(payload).unwrap_or_default();
    let word = |json: &Json| json.as_str().map(str::to_owned);
    QueueHead {
        class: word(&message.headers.task),
        id: word(&message.headers.id),
        age_ms: None,
        mark: mark(payload),
    }
}

/// A message that was taken and not acknowledged.
#[derive(Debug, PartialEq, Eq)]
struct Taken {
    exchange: String,
    routing_key: String,
    eta: Option<i64>,
}

fn taken(entry: &[u8]) -> Option<Taken> {
    let (message, exchange, routing_key): (Message, Json, Json) =
        serde_json::from_slice(entry).ok()?;
    Some(Taken {
        exchange: exchange.as_str().unwrap_or_default().to_owned(),
        routing_key: routing_key.as_str()?.to_owned(),
        eta: moment::of_json(&message.headers.eta),
    })
}

/// The lists of a queue with their steps, in the order in which they are taken from.
fn lists(prefix: &[u8], name: &[u8], separators: &BTreeSet<Vec<u8>>) -> Vec<Vec<u8>> {
    let base = [prefix, name].concat();
    let usual = BTreeSet::from([SEPARATOR.to_vec()]);
    let separators = if separators.is_empty() {
        &usual
    } else {
        separators
    };
    let stepped = (1..=LAST_STEP).flat_map(|step| {
        let base = &base;
        let of = move |separator: &Vec<u8>| {
            [base, separator.as_slice(), step.to_string().as_bytes()].concat()
        };
        separators.iter().map(of)
    });
    std::iter::once(base.clone()).chain(stepped).collect()
}

pub async fn inspect(fleet: &mut Fleet, broker: &Broker, clock: &Clock) -> Vec<Queue> {
    let mut all = Queue::new(QueueSystem::Celery, label(&broker.prefix, b"", b"*"));
    let unacked = Unacked::read(fleet, broker, clock, &mut all).await;
    let mut asks = Vec::new();
    for (name, separators) in &broker.names {
        let lists = lists(&broker.prefix, name, separators);
        asks.extend(lists.into_iter().map(|list| ask("LLEN", list)));
    }
    let mut lengths = answers(fleet, asks).await;
    let mut rows = Vec::new();
    let mut heads = Vec::new();
    for (name, separators) in &broker.names {
        let mut row = Queue::new(QueueSystem::Celery, label(&broker.prefix, b"", name));
        let mut lists = lists(&broker.prefix, name, separators);
        let steps: Vec<Option<u64>> = lists.iter().map(|_| lengths.uint()).collect();
        row.depth = steps.iter().copied().sum();
        row.refused = lengths.refusal().map(|refused| refused.text().to_owned());
        let first = steps
            .iter()
            .position(|length| length.is_some_and(|n| n > 0));
        let first = lists.swap_remove(first.unwrap_or(0));
        heads.push(ask("LINDEX", first).arg("-1"));
        if let Some(unacked) = &unacked {
            unacked.tell(&text(name), &mut row, clock);
        }
        row.note("a running task without acks_late is in no key");
        rows.push(row);
    }
    let mut heads = answers(fleet, heads).await;
    for row in &mut rows {
        row.head = heads.bytes().map(|payload| head(&payload));
        if let Some(refused) = heads.refusal() {
            row.refused.get_or_insert(refused.text().to_owned());
        }
    }
    if unacked.is_none() {
        rows.push(all);
    }
    rows
}

#[derive(Default)]
struct OfQueue {
    in_flight: u64,
    /// Held by a worker until they are due.
    held: u64,
    since: Option<i64>,
    expired: u64,
    late: u64,
}

#[derive(Default)]
struct Unacked(BTreeMap<String, OfQueue>);

impl Unacked {
    /// `None`: there are too many, or they can't be read; the row for all queues says what is known.
    async fn read(
        fleet: &mut Fleet,
        broker: &Broker,
        clock: &Clock,
        all: &mut Queue,
    ) -> Option<Self> {
        let hash = [broker.prefix.as_slice(), b"unacked"].concat();
        let index = [broker.prefix.as_slice(), b"unacked_index"].concat();
        let hour_ago = clock.ms() - VISIBILITY_MS;
        let asks = vec![
            ask("HLEN", hash.clone()),
            ask("ZRANGE", index.clone())
                .arg("0")
                .arg("0")
                .arg("WITHSCORES"),
            ask("ZCOUNT", index.clone())
                .arg("-inf")
                .arg(hour_ago.div_euclid(1000).to_string()),
        ];
        let mut first = answers(fleet, asks).await;
        let count = first.uint();
        let oldest = first
            .scored()
            .and_then(|scored| moment::of_number(scored.first()?.1));
        all.in_flight = count;
        all.oldest_in_flight_ms = oldest.map(|at| clock.age(at));
        all.note("taken and not acknowledged: those that a worker holds until they are due are among them");
        if let Some(expired) = first.uint().filter(|expired| *expired > 0) {
            all.note(twice(expired));
        }
        all.refused = first.refusal().map(|refused| refused.text().to_owned());
        match count {
            Some(0) => return Some(Self::default()),
            Some(count) if count <= SMALL => {}
            _ => return None,
        }
        let asks = vec![
            whole_hash(hash),
            ask("ZRANGE", index)
                .arg("0")
                .arg((SMALL * 2).to_string())
                .arg("WITHSCORES"),
        ];
        let mut read = answers(fleet, asks).await;
        let page = read.hash()?;
        let scores: BTreeMap<Vec<u8>, f64> = read.scored()?.into_iter().collect();
        let mut by_queue: BTreeMap<String, OfQueue> = BTreeMap::new();
        for (tag, entry) in page {
            let Some(taken) = value::bytes(entry).and_then(|entry| taken(&entry)) else {
                continue;
            };
            let since = scores
                .get(tag.as_bytes())
                .and_then(|score| moment::of_number(*score));
            let route = (taken.exchange, taken.routing_key.clone());
            let queue = broker.routes.get(&route).cloned();
            let of = by_queue
                .entry(queue.unwrap_or(taken.routing_key))
                .or_default();
            of.expired += u64::from(since.is_some_and(|since| since <= hour_ago));
            if taken.eta.is_some_and(|eta| eta > clock.ms()) {
                of.held += 1;
                let beyond = taken.eta.zip(since);
                of.late +=
                    u64::from(beyond.is_some_and(|(eta, since)| eta - since > VISIBILITY_MS));
            } else {
                of.in_flight += 1;
                of.since = earlier(of.since, since);
            }
        }
        Some(Self(by_queue))
    }

    fn tell(&self, queue: &str, row: &mut Queue, clock: &Clock) {
        let none = OfQueue::default();
        let of = self.0.get(queue).unwrap_or(&none);
        row.in_flight = Some(of.in_flight);
        row.oldest_in_flight_ms = of.since.map(|at| clock.age(at));
        row.scheduled = Some(of.held);
        if of.expired > 0 {
            row.note(twice(of.expired));
        }
        if of.late > 0 {
            row.note(format!(
                "due more than an hour after it was taken: {}; with the usual visibility_timeout it runs more than once",
                of.late
            ));
        }
    }
}

fn twice(expired: u64) -> String {
    format!(
        "taken more than an hour ago: {expired}; with the usual visibility_timeout it runs twice, or the worker is gone"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_and_one_that_was_taken() {
        let message = r#"{"body":"W1s0XSwge30=","headers":{"task":"billing.charge","id":"9e61","eta":"2026-11-30T11:11:13.443970+00:00","argsrepr":"[4]"},"properties":{"priority":0}}"#;
        let shown = head(message.as_bytes());
        assert_eq!(shown.class.as_deref(), Some("billing.charge"));
        assert_eq!(shown.id.as_deref(), Some("9e61"));
        let entry = format!(r#"[{message}, "", "celery"]"#);
        let read = taken(entry.as_bytes()).expect("an entry");
        assert_eq!(read.routing_key, "celery");
        assert_eq!(read.eta, moment::iso("2026-11-30T11:11:13.443Z"));
        assert_eq!(
            taken(br#"[{"headers":{}}, null, "mail"]"#)
                .expect("one")
                .eta,
            None
        );
        assert_eq!(taken(b"[]"), None);
        assert_eq!(head(b"{").class, None);
    }

    #[test]
    fn priorities_have_lists_of_their_own() {
        let of = |prefix: &[u8], separators: &[&[u8]]| {
            let separators = separators.iter().map(|one| one.to_vec()).collect();
            lists(prefix, b"mail", &separators)
        };
        let usual = of(b"p.", &[]);
        assert_eq!((usual.len(), usual[0].as_slice()), (10, &b"p.mail"[..]));
        assert_eq!(usual[6], b"p.mail\x06\x166");
        assert_eq!(of(b"", &[b":"])[6], b"mail:6");
        // After a change of the separator both are there.
        let both = of(b"", &[SEPARATOR, b":"]);
        assert_eq!(both.len(), 19);
        assert_eq!(
            &both[11..13],
            [b"mail\x06\x166".to_vec(), b"mail:6".to_vec()]
        );
    }
}
