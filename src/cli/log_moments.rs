//! What a server's log tells of a span of time, for a bundle and for a postmortem: moments by structure, never its text.

use std::collections::VecDeque;
use std::path::Path;

use chrono::TimeDelta;

use super::fault::Fault;
use crate::analysis::deadlocks::{Waiting, relations};
use crate::logs::{self, ScanOptions, Wanted, Zone};
use crate::model::{LogEvent, LogMoment, Timestamp};
use crate::sql;

/// Events are made moments so many at a time: a log may have any number.
const AT_ONCE: usize = 10_000;
/// More would be no timeline.
const MOST: usize = 20_000;
/// What led to it stands before it.
const BEFORE: TimeDelta = TimeDelta::hours(1);

/// What a log tells of a span.
pub struct Told {
    /// Oldest first.
    pub moments: Vec<LogMoment>,
    /// Older ones, more than a timeline has.
    pub left_out: u64,
}

/// The moments of a log from an hour before `from` until `until`; what looks secret in names is taken out. `watch` is told of the
/// bytes that are read, and of how many; it ends the reading by `false`.
///
/// # Errors
/// When it can't be read, or is no log of PostgreSQL.
pub fn of(
    path: &Path,
    from: Option<Timestamp>,
    until: Option<Timestamp>,
    watch: &mut dyn FnMut(u64, Option<u64>) -> bool,
) -> Result<Told, Fault> {
    let options = ScanOptions {
        wanted: Wanted::All,
        format: None,
        prefix: None,
        zone: Zone::given(None),
        since: from.map(|at| Timestamp::new(at.utc() - BEFORE)),
        until,
    };
    let mut newest = Newest::default();
    let mut events: Vec<LogEvent> = Vec::new();
    let mut waiting = Waiting::default();
    let mut take = |mut event: LogEvent| {
        waiting.meet(&mut event);
        events.push(event);
        if events.len() >= AT_ONCE {
            newest.add(logs::moments(&std::mem::take(&mut events), &relations));
        }
    };
    logs::scan(logs::open(path)?, &options, &mut take, watch)?;
    newest.add(logs::moments(&events, &relations));
    let mut moments = Vec::from(newest.moments);
    for moment in &mut moments {
        moment.what = sql::redacted(&moment.what).into_owned();
    }
    Ok(Told {
        moments,
        left_out: newest.left_out,
    })
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
