//! What a server's log tells of a span of time, for a bundle and for a postmortem: moments by structure, never its text.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use chrono::TimeDelta;

use super::fault::Fault;
use crate::analysis::deadlocks::{Known, Once, Waiting, relations};
use crate::logs::{self, AS_UTC, ScanOptions};
use crate::model::{LogEvent, LogMoment, LogRead, LogWaitStage, LogWhat, Pid, Timestamp, counted};
use crate::sql;

/// Events are made moments so many at a time: a log may have any number.
const AT_ONCE: usize = 10_000;
/// More would be no timeline.
const MOST: usize = 20_000;
/// SQLSTATE of a deadlock's victim.
const DEADLOCK: &str = "40P01";
/// What led to it stands before it.
const BEFORE: TimeDelta = TimeDelta::hours(1);

/// What a log tells of a span.
pub struct Told {
    /// Oldest first.
    pub moments: Vec<LogMoment>,
    /// Of what in it nothing is known, each with the log's name.
    pub gaps: Vec<String>,
    /// What words of time zones were taken for, where they have several meanings.
    pub zones: Vec<String>,
}

/// The moments of a log from an hour before `from` until `until`; what looks secret in names is taken out. What the logs before told
/// isn't told again. `watch` is told of the bytes that are read, and of how many; it ends the reading by `false`.
///
/// # Errors
/// When it can't be read, or is no log of PostgreSQL.
pub fn of(
    path: &Path,
    options: &ScanOptions,
    (from, until): (Option<Timestamp>, Option<Timestamp>),
    once: &mut Once,
    watch: &mut dyn FnMut(u64, Option<u64>) -> bool,
) -> Result<Told, Fault> {
    let options = ScanOptions {
        since: from.map(|at| Timestamp::new(at.utc() - BEFORE)),
        until,
        ..options.clone()
    };
    let mut newest = Newest::default();
    let mut events: Vec<LogEvent> = Vec::new();
    let mut waiting = Waiting::default();
    let mut found = Found::default();
    let mut log = logs::begin(logs::open(path)?, &options)?;
    once.begin(log.start());
    let mut take = |mut event: LogEvent| {
        waiting.meet(&mut event);
        let caught = found.meet(&event);
        let fresh = caught.into_iter().chain([event]);
        events.extend(fresh.filter(|event| once.meet(event) == Known::New));
        if events.len() >= AT_ONCE {
            newest.add(logs::moments(&std::mem::take(&mut events), &relations));
        }
    };
    let read = log.read(&mut take, watch)?;
    events.extend(found.rest().filter(|event| once.meet(event) == Known::New));
    once.end(read.ends);
    newest.add(logs::moments(&events, &relations));
    let mut moments = Vec::from(newest.moments);
    for moment in &mut moments {
        moment.what = sql::redacted(&moment.what).into_owned();
    }
    let mut gaps = gaps(&read);
    if newest.left_out > 0 {
        let older = counted(newest.left_out, "older moment");
        gaps.push(format!("{}: {older} left out", read.name));
    }
    let of_zone =
        |zone: &String| format!("{}: time zone {zone}; --log-timezone says it", read.name);
    let (unknown, ambiguous): (Vec<&String>, _) =
        read.zones.iter().partition(|zone| zone.ends_with(AS_UTC));
    gaps.extend(unknown.into_iter().map(of_zone));
    Ok(Told {
        moments,
        gaps,
        zones: ambiguous.into_iter().map(of_zone).collect(),
    })
}

/// What of a log couldn't be read.
fn gaps(read: &LogRead) -> Vec<String> {
    let stopped = read
        .stopped
        .iter()
        .map(|why| format!("{}: not read to its end: {why}", read.name));
    let amiss = read
        .amiss()
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| format!("{}: {}: {what}", read.name, counted(number, "line")));
    stopped.chain(amiss).collect()
}

/// Deadlocks that the server has found, and whose error isn't there (yet): a function caught it, so the log has no circle.
#[derive(Default)]
struct Found {
    open: BTreeMap<Pid, LogEvent>,
}

impl Found {
    /// The error follows at once.
    const SOON: TimeDelta = TimeDelta::seconds(10);

    /// Those whose error doesn't come any more.
    fn meet(&mut self, event: &LogEvent) -> Vec<LogEvent> {
        let mut over = Vec::new();
        match (&event.what, event.pid) {
            (LogWhat::LockWait(wait), Some(pid)) if wait.stage == LogWaitStage::Deadlock => {
                let bare = LogEvent {
                    what: LogWhat::BareDeadlock,
                    sqlstate: Some(DEADLOCK.into()),
                    ..event.clone()
                };
                over.extend(self.open.insert(pid, bare));
            }
            (LogWhat::Deadlock(_) | LogWhat::BareDeadlock, Some(pid)) => {
                self.open.remove(&pid);
            }
            _ => {}
        }
        if let Some(now) = event.at {
            let is_old = |_: &Pid, open: &mut LogEvent| {
                open.at.is_some_and(|at| now.utc() - at.utc() > Self::SOON)
            };
            over.extend(self.open.extract_if(.., is_old).map(|(_, event)| event));
        }
        over
    }

    fn rest(self) -> impl Iterator<Item = LogEvent> {
        self.open.into_values()
    }
}

/// The newest are what a timeline needs.
#[derive(Default)]
struct Newest {
    moments: VecDeque<LogMoment>,
    left_out: u64,
}

impl Newest {
    fn add(&mut self, moments: Vec<LogMoment>) {
        self.moments.extend(moments);
        let over = self.moments.len().saturating_sub(MOST);
        self.moments.drain(..over);
        self.left_out += over as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_and_the_others_counted() {
        let moment = |second: i64| {
            let at = Timestamp::new(chrono::DateTime::from_timestamp(second, 0).expect("a time"));
            LogMoment {
                at,
                until: at,
                count: 1,
                sqlstate: None,
                what: "x".into(),
            }
        };
        let mut newest = Newest::default();
        newest.add((0..15_000).map(moment).collect());
        assert_eq!((newest.moments.len(), newest.left_out), (15_000, 0));
        newest.add((15_000..30_000).map(moment).collect());
        assert_eq!((newest.moments.len(), newest.left_out), (MOST, 10_000));
        assert_eq!(newest.moments.front(), Some(&moment(10_000)));
        assert_eq!(newest.moments.back(), Some(&moment(29_999)));
    }
}
