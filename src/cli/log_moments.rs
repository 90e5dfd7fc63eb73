//! What a server's log tells of a span of time, for a bundle and for a postmortem: moments by structure, never its text.

use std::path::Path;

use chrono::TimeDelta;

use super::fault::Fault;
use crate::logs::{self, ScanOptions, Wanted, Zone};
use crate::model::{LogEvent, LogMoment, Timestamp};
use crate::sql;

/// Events are made moments so many at a time: a log may have any number.
const AT_ONCE: usize = 10_000;
/// More would be no timeline.
const MOST: usize = 20_000;
/// What led to it stands before it.
const BEFORE: TimeDelta = TimeDelta::hours(1);

/// The moments of a log from an hour before `from` until `until`; what looks secret in names is taken out.
///
/// # Errors
/// When it can't be read, or is no log of PostgreSQL.
pub fn of(
    path: &Path,
    from: Option<Timestamp>,
    until: Option<Timestamp>,
) -> Result<Vec<LogMoment>, Fault> {
    let options = ScanOptions {
        wanted: Wanted::All,
        format: None,
        prefix: None,
        zone: Zone::given(None),
        since: from.map(|at| Timestamp::new(at.utc() - BEFORE)),
        until,
    };
    let mut moments: Vec<LogMoment> = Vec::new();
    let mut events: Vec<LogEvent> = Vec::new();
    let mut take = |event: LogEvent| {
        events.push(event);
        if events.len() >= AT_ONCE && moments.len() < MOST {
            moments.extend(logs::moments(&std::mem::take(&mut events)));
        }
        events.truncate(AT_ONCE);
    };
    logs::scan(logs::open(path)?, &options, &mut take, &mut |_, _| true)?;
    moments.extend(logs::moments(&events));
    moments.truncate(MOST);
    for moment in &mut moments {
        moment.what = sql::redacted(&moment.what).into_owned();
    }
    Ok(moments)
}
