//! Streams: a row for each consumer group. The length of a stream is history; what a group hasn't been given yet is its lag.

use redis::Value;

use super::ask::{answers, ask};
use super::moment::Clock;
use super::site::text;
use crate::model::{Queue, QueueSystem};
use crate::source::redis::fleet::Fleet;
use crate::source::redis::value::{self, field, fields};

/// Entries that are counted where the server doesn't know a group's lag, and how many of them at once.
const COUNTED: u64 = 10_000;
const PAGE: u64 = 100;
/// No more bytes than that are read for it.
const COUNTED_BYTES: usize = 1 << 20;
/// Pending entries that are looked at, and of those how many are looked for in the stream.
const PENDING: u64 = 100;
/// Of more than that the longest in flight isn't looked for: the server walks along all of them for it.
const WALKED: u64 = 100_000;
/// How often those are asked for that have been in flight for longer, and by how many milliseconds.
const STEPS: usize = 5;
const STEP_MS: u64 = 100;
const LOOKED_FOR: usize = 10;
/// Consumers that are asked for.
const CONSUMERS: u64 = 100;

/// The id of an entry: milliseconds and a number, unless whoever adds chooses otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Id(u64, u64);

impl Id {
    fn parse(text: &str) -> Option<Self> {
        let (ms, n) = text.split_once('-')?;
        Some(Self(ms.parse().ok()?, n.parse().ok()?))
    }

    /// The first one that can come after it; `(` in ranges is of 6.2.
    fn next(self) -> Self {
        match self.1.checked_add(1) {
            Some(n) => Self(self.0, n),
            None => Self(self.0.saturating_add(1), 0),
        }
    }

    /// Its time, if it can be one: after 2001, and not a day ahead.
    fn time(self, now: i64) -> Option<i64> {
        let ms = i64::try_from(self.0).ok()?;
        (1_000_000_000_000..now.saturating_add(86_400_000))
            .contains(&ms)
            .then_some(ms)
    }
}

impl std::fmt::Display for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.0, self.1)
    }
}

/// Whether a stream that no group reads is meant to be worked on, by its name.
fn looks_like_a_queue(key: &str) -> bool {
    let mut words = key.split(|c: char| !c.is_alphanumeric());
    words.any(|word| {
        let word = word.to_lowercase();
        ["queue", "queues", "job", "jobs", "task", "tasks", "work"].contains(&word.as_str())
    })
}

struct Stream {
    first: Option<Id>,
    last: Option<Id>,
    length: Option<u64>,
    added: Option<u64>,
}

impl Stream {
    /// What was given out last is before all that is there.
    fn is_past(&self, delivered: Id) -> bool {
        self.first.is_some_and(|first| delivered < first)
    }

    /// Entries that were trimmed or deleted.
    fn removed(&self) -> Option<u64> {
        Some(self.added?.saturating_sub(self.length?))
    }
}

struct Group {
    name: Vec<u8>,
    consumers: Option<u64>,
    pending: Option<u64>,
    delivered: Option<Id>,
    read: Option<u64>,
    lag: Option<u64>,
}

impl Group {
    fn of(group: Value) -> Option<Self> {
        let group = fields(group);
        let number = |name| field(&group, name).and_then(value::uint);
        Some(Self {
            name: value::bytes(field(&group, "name")?.clone())?,
            consumers: number("consumers"),
            pending: number("pending"),
            delivered: field(&group, "last-delivered-id")
                .and_then(value::text)
                .and_then(|id| Id::parse(&id)),
            read: number("entries-read"),
            lag: number("lag"),
        })
    }
}

/// How many of a stream's entries a group hasn't been given, as far as its ends and the server tell; `None`: to be counted.
///
/// Before Redis 8 and Valkey 8.1 (measured on 7.0.15; redis#13337) a group's entries-read, and with it the lag, is wrong once
/// entries were removed that it hadn't read: `sound` are the versions where it is right.
fn not_given(stream: &Stream, group: &Group, sound: bool) -> Option<u64> {
    let length = stream.length?;
    let delivered = group.delivered?;
    if length == 0 || stream.last.is_some_and(|last| last <= delivered) {
        return Some(0);
    }
    if stream.is_past(delivered) {
        return Some(length);
    }
    let lag = group.lag.filter(|lag| *lag <= length)?;
    (sound || stream.added == Some(length)).then_some(lag)
}

/// The server's lag can be believed where entries were removed.
fn lag_is_sound(fleet: &Fleet) -> bool {
    let version = fleet.target.server_version.as_deref().unwrap_or_default();
    let mut numbers = version.split('.').map(|n| n.parse().unwrap_or(0));
    let number: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    match fleet.target.product.as_deref() {
        Some("valkey") => number >= (8, 1),
        _ => number >= (8, 0),
    }
}

pub async fn inspect(fleet: &mut Fleet, keys: &[Vec<u8>], clock: &Clock) -> Vec<Queue> {
    let mut asks = Vec::new();
    for key in keys {
        asks.push(ask("XINFO STREAM", key.clone()));
        asks.push(ask("XINFO GROUPS", key.clone()));
    }
    let mut told = answers(fleet, asks).await;
    let mut rows = Vec::new();
    for key in keys {
        let (stream, groups) = (told.value().map(stream), told.list());
        let refused = told.refusal().map(|refused| refused.text().to_owned());
        let shown = text(key);
        let (Some(stream), Some(groups)) = (stream, groups) else {
            // Gone since it was found, or not to be read.
            if let Some(refused) = refused.filter(|refused| !refused.contains("no such key")) {
                let mut row = Queue::new(QueueSystem::Stream, shown);
                row.refused = Some(refused);
                rows.push(row);
            }
            continue;
        };
        if groups.is_empty() && looks_like_a_queue(&shown) {
            let mut row = Queue::new(QueueSystem::Stream, shown.clone());
            row.counters.added = stream.added;
            row.note("no group reads it: its length is history, not what waits");
            rows.push(row);
        }
        for group in groups.into_iter().filter_map(Group::of) {
            rows.push(one(fleet, key, &stream, group, clock).await);
        }
    }
    rows
}

fn stream(info: Value) -> Stream {
    let info = fields(info);
    let id = |value: &Value| value::text(value).and_then(|id| Id::parse(&id));
    let entry = |name| match field(&info, name) {
        Some(Value::Array(parts)) => parts.first().and_then(id),
        _ => None,
    };
    Stream {
        first: entry("first-entry"),
        last: field(&info, "last-generated-id").and_then(id),
        length: field(&info, "length").and_then(value::uint),
        added: field(&info, "entries-added").and_then(value::uint),
    }
}

async fn one(fleet: &mut Fleet, key: &[u8], stream: &Stream, group: Group, clock: &Clock) -> Queue {
    let name = format!("{}/{}", text(key), text(&group.name));
    let mut row = Queue::new(QueueSystem::Stream, name);
    row.in_flight = group.pending;
    row.depth = not_given(stream, &group, lag_is_sound(fleet));
    row.counters.added = stream.added;
    row.counters.kept = stream.length;
    row.counters.given = group.delivered.map(|Id(ms, n)| (ms, n));
    let past = group.delivered.is_some_and(|id| stream.is_past(id));
    match (group.delivered, stream.removed()) {
        (Some(Id(0, 0)), Some(lost @ 1..)) => {
            row.note(format!("trimmed before they were given out: {lost}"));
        }
        (_, Some(removed @ 1..)) if past && row.depth != Some(0) => {
            let lag = group.lag.zip(stream.length);
            let lost = lag.map_or(removed, |(lag, length)| lag.saturating_sub(length));
            if lost > 0 {
                row.note(format!("trimmed before they were given out: up to {lost}"));
            }
        }
        // The next that it reads makes the server count what was trimmed as read.
        _ => row.counters.taken = group.read,
    }
    if group.consumers == Some(0) {
        row.workers = Some(0);
    }
    if let Some(delivered) = group.delivered
        && row.depth != Some(0)
    {
        let lag = group.lag;
        undelivered(fleet, key, (delivered, lag), &mut row, clock).await;
    }
    if group.pending.is_some_and(|pending| pending > 0) {
        pending(fleet, key, &group, stream, &mut row).await;
    }
    consumers(fleet, key, &group, &mut row).await;
    row
}

/// The first one that hasn't been given out, and how many there are where the server doesn't know.
async fn undelivered(
    fleet: &mut Fleet,
    key: &[u8],
    (delivered, lag): (Id, Option<u64>),
    row: &mut Queue,
    clock: &Clock,
) {
    let page = if row.depth.is_some() { 1 } else { PAGE };
    let why = match lag {
        Some(lag) => format!("its lag, {lag} by the server, may be wrong: entries were removed"),
        None => "its lag isn't known to the server".into(),
    };
    let (mut from, mut counted, mut bytes) = (delivered.next(), 0, 0);
    loop {
        let range = ask("XRANGE", key).arg(from.to_string()).arg("+");
        let range = range.arg("COUNT").arg(page.to_string());
        let mut told = answers(fleet, vec![range]).await;
        let Some(entries) = told.list() else {
            row.refused = told.refusal().map(|refused| refused.text().to_owned());
            return;
        };
        if counted == 0
            && let Some(first) = entries.first().and_then(entry_id)
        {
            match first.time(clock.ms()) {
                Some(at) => row.oldest_age_ms = Some(clock.age(at)),
                None => row.note("its ids aren't times: no age is known"),
            }
        }
        if row.depth.is_some() {
            return;
        }
        counted += entries.len() as u64;
        bytes += entries.iter().map(size).sum::<usize>();
        let last = entries.last().and_then(entry_id);
        match last {
            Some(last) if entries.len() as u64 == page => from = last.next(),
            _ => {
                row.depth = Some(counted);
                row.note(format!("{why}: counted by XRANGE"));
                return;
            }
        }
        if counted >= COUNTED || bytes >= COUNTED_BYTES {
            row.depth_at_least = Some(counted);
            row.note(format!("{why}: at least {counted}, counted by XRANGE"));
            return;
        }
    }
}

fn entry_id(entry: &Value) -> Option<Id> {
    match entry {
        Value::Array(parts) => Id::parse(&value::text(parts.first()?)?),
        _ => None,
    }
}

fn size(value: &Value) -> usize {
    match value {
        Value::BulkString(bytes) => bytes.len(),
        Value::Array(values) => values.iter().map(size).sum(),
        _ => 0,
    }
}

/// How long the first pending ones are in flight, how often they were given out, and which are no longer there.
async fn pending(fleet: &mut Fleet, key: &[u8], group: &Group, stream: &Stream, row: &mut Queue) {
    let range = ask("XPENDING", key).arg(&group.name).arg("-").arg("+");
    let mut told = answers(fleet, vec![range.arg(PENDING.to_string())]).await;
    let Some(entries) = told.list() else {
        let refused = told.refusal().map(|refused| refused.text().to_owned());
        row.refused = refused.or(row.refused.take());
        return;
    };
    let (mut idle, mut again) = (None, 0);
    let mut looked_at = Vec::new();
    for entry in entries {
        let parts = value::list(entry);
        let number = |n: usize| parts.get(n).and_then(value::uint);
        idle = idle.max(number(2));
        again += u64::from(number(3).is_some_and(|deliveries| deliveries > 1));
        looked_at.extend(
            parts
                .first()
                .and_then(value::text)
                .and_then(|id| Id::parse(&id)),
        );
    }
    let all = group.pending.is_some_and(|pending| pending <= PENDING);
    let mut exact = all;
    if let Some(idle) = idle.as_mut().filter(|_| !all) {
        exact = longest(fleet, key, group, idle).await;
    }
    row.oldest_in_flight_ms = idle.map(crate::model::Millis);
    row.oldest_in_flight_at_least = idle.is_some() && !exact;
    if row.oldest_in_flight_at_least {
        row.note("longest in flight is a bound: not all that are pending were looked at");
    }
    row.retry = all.then_some(again);
    // Whatever is before the first entry is gone; of the others some are looked for.
    let trimmed =
        |id: &Id| stream.length == Some(0) || stream.first.is_some_and(|first| *id < first);
    let (gone, there): (Vec<Id>, Vec<Id>) = looked_at.iter().copied().partition(trimmed);
    let asks = there
        .iter()
        .take(LOOKED_FOR)
        .map(|id| {
            let range = ask("XRANGE", key).arg(id.to_string()).arg(id.to_string());
            range.arg("COUNT").arg("1")
        })
        .collect();
    let mut told = answers(fleet, asks).await;
    let looked_for = there.len().min(LOOKED_FOR);
    let deleted = (0..looked_for)
        .filter(|_| told.list().is_some_and(|entries| entries.is_empty()))
        .count();
    let gone = gone.len() + deleted;
    if gone > 0 {
        let of = if all && there.len() <= LOOKED_FOR {
            String::new()
        } else {
            format!(
                " of the {} first",
                looked_at.len() - there.len() + looked_for
            )
        };
        row.note(format!("pending but deleted (poison): {gone}{of}"));
    }
}

/// Looks among all that are pending for those in flight for longer; whether none is left.
async fn longest(fleet: &mut Fleet, key: &[u8], group: &Group, idle: &mut u64) -> bool {
    if group.pending.is_none_or(|pending| pending > WALKED) {
        return false;
    }
    for _ in 0..STEPS {
        let longer = idle.saturating_add(STEP_MS).to_string();
        let range = ask("XPENDING", key).arg(&group.name).arg("IDLE");
        let range = range.arg(longer).arg("-").arg("+").arg(PENDING.to_string());
        // Before 6.2 it isn't understood.
        let Some(entries) = answers(fleet, vec![range]).await.list() else {
            return false;
        };
        let whole = (entries.len() as u64) < PENDING;
        let found = entries
            .into_iter()
            .filter_map(|entry| value::uint(value::list(entry).get(2)?));
        *idle = found.fold(*idle, u64::max);
        if whole {
            return true;
        }
    }
    false
}

/// When any of its consumers asked last. One that is gone stays in the group, so their number tells nothing.
async fn consumers(fleet: &mut Fleet, key: &[u8], group: &Group, row: &mut Queue) {
    let Some(count) = group
        .consumers
        .filter(|count| (1..=CONSUMERS).contains(count))
    else {
        return;
    };
    let info = ask("XINFO CONSUMERS", key).arg(&group.name);
    let mut told = answers(fleet, vec![info]).await;
    let consumers = told.list().unwrap_or_default().into_iter();
    let idle = consumers.filter_map(|consumer| value::uint(field(&fields(consumer), "idle")?));
    if let Some(idle) = idle.min() {
        let idle = crate::model::Millis(idle);
        row.note(format!(
            "consumers: {count}; the last of them to ask did so {idle} ago"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lag_is_believed_where_it_must_be_right() {
        let id = |ms| Some(Id(ms, 0));
        // Of ten entries, 11 to 20, the last was given out as `delivered`.
        let of = |added, delivered, lag, sound| {
            let stream = Stream {
                first: id(11),
                last: id(20),
                length: Some(10),
                added: Some(added),
            };
            let group = Group {
                name: Vec::new(),
                consumers: None,
                pending: None,
                delivered: id(delivered),
                read: None,
                lag,
            };
            not_given(&stream, &group, sound)
        };
        assert_eq!(of(10, 15, Some(5), false), Some(5));
        assert_eq!(of(90, 15, Some(9), true), Some(9));
        assert_eq!(of(90, 15, Some(9), false), None);
        assert_eq!(of(90, 15, Some(85), true), None);
        assert_eq!(of(90, 15, None, true), None);
        // Nothing of what is there, and all of it.
        assert_eq!(of(90, 3, Some(80), false), Some(10));
        assert_eq!(of(90, 20, Some(7), false), Some(0));
    }

    #[test]
    fn ids_that_are_times_and_others() {
        let now = 1_796_035_700_000;
        let time = |id: &str| Id::parse(id).and_then(|id| id.time(now));
        assert_eq!(time("1796035701270-1"), Some(1_796_035_701_270));
        assert_eq!(time("1001-0"), None);
        assert_eq!(time("9796035701270-0"), None);
        assert_eq!(Id::parse("1-x"), None);
        assert_eq!(Id(7, u64::MAX).next(), Id(8, 0));
        assert_eq!(Id(7, 1).next().to_string(), "7-2");
    }

    #[test]
    fn a_stream_that_is_worked_on_by_its_name() {
        for key in ["jobs", "mail:queue", "app.tasks.v1", "work-items"] {
            assert!(looks_like_a_queue(key), "{key}");
        }
        for key in ["events", "network", "homework", "sensor:17"] {
            assert!(!looks_like_a_queue(key), "{key}");
        }
    }
}
