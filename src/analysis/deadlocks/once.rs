//! Several logs of one server tell of one event once each: how often it happened is the most that any of them tells.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher as _};

use crate::model::{LogEvent, LogStart, LogWhat, Timestamp};

/// Of so many events it is known which logs told them.
const TOLD: usize = 500_000;
/// So far apart are the times of one event in two formats, in ms: `%t` cuts a time off, and is read before the others'.
const APART: i64 = 1000;

/// What is known of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    New,
    /// Told by another log.
    Again,
    /// Told by another log, or by the one before that this one goes on with, without its circle.
    Bare,
}

/// What it is, its time in ms, and a number of its own.
type Place = (u64, i64, u32);

/// Takes the events of one log after the other.
#[derive(Debug, Default)]
pub struct Once {
    files: Vec<File>,
    told: BTreeMap<Place, Telling>,
    next: u32,
    /// By format: the last event, where it was an error without a circle; and that of the log before, until the first event of this
    /// one.
    open: [Option<Place>; 3],
    torn: Option<Place>,
}

#[derive(Debug)]
struct File {
    start: LogStart,
    last: Option<Timestamp>,
}

#[derive(Debug)]
struct Telling {
    circle: Option<u64>,
    /// By format: the last log that told it, and its time there.
    by: [Option<(usize, i64)>; 3],
}

impl Once {
    pub fn begin(&mut self, start: LogStart) {
        self.torn = self.open[start.format as usize].take();
        self.files.push(File { start, last: None });
    }

    /// `last`: the time of the log's last line.
    pub fn end(&mut self, last: Option<Timestamp>) {
        if let Some(file) = self.files.last_mut() {
            file.last = last;
        }
    }

    /// Whether another log told it already. Within one log nothing is told twice.
    pub fn meet(&mut self, event: &LogEvent) -> Known {
        let torn = self.torn.take();
        let (Some(file), Some(at), Some((key, circle))) = (
            self.files.len().checked_sub(1),
            event.at.map(|at| at.utc().timestamp_millis()),
            key(event),
        ) else {
            return Known::New;
        };
        let format = self.files[file].start.format as usize;
        self.open[format] = None;
        let found = torn
            .filter(|(of, then, _)| circle.is_some() && *of == key && (at - then).abs() <= APART)
            .or_else(|| self.find(file, (key, at), circle));
        if let Some(telling) = found.and_then(|found| self.told.get_mut(&found)) {
            telling.by[format] = Some((file, at));
            if telling.circle.is_none() && circle.is_some() {
                telling.circle = circle;
                return Known::Bare;
            }
            return Known::Again;
        }
        if self.told.len() < TOLD {
            let place = (key, at, self.next);
            self.next = self.next.wrapping_add(1);
            let mut by = [None; 3];
            by[format] = Some((file, at));
            self.told.insert(place, Telling { circle, by });
            self.open[format] = (event.what == LogWhat::BareDeadlock).then_some(place);
        }
        Known::New
    }

    /// The oldest telling of another log that may be of the same event.
    fn find(&self, file: usize, (key, at): (u64, i64), circle: Option<u64>) -> Option<Place> {
        if file == 0 {
            return None;
        }
        let format = self.files[file].start.format as usize;
        self.told
            .range((key, at - APART, 0)..=(key, at + APART, u32::MAX))
            .find(|(_, telling)| {
                let here = match telling.by[format] {
                    Some((other, then)) => {
                        other != file && then == at && self.are_copies(file, other, at)
                    }
                    None => true,
                };
                here && (telling.circle == circle || telling.circle.is_none() || circle.is_none())
            })
            .map(|(place, _)| *place)
    }

    /// Two logs in one format are a copy and its original, unless one goes on where the other ends.
    fn are_copies(&self, file: usize, other: usize, at: i64) -> bool {
        let (this, other) = (&self.files[file], &self.files[other]);
        if this.start.line == other.start.line {
            return true;
        }
        let follows = this.start.first >= other.last;
        let leads = this.start.first < other.start.first
            && other
                .start
                .first
                .is_some_and(|first| at <= first.utc().timestamp_millis());
        !(follows || leads)
    }
}

/// What an event is told apart by besides its time, and a deadlock's circle.
fn key(event: &LogEvent) -> Option<(u64, Option<u64>)> {
    fn of(what: impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        what.hash(&mut hasher);
        hasher.finish()
    }
    let pid = event.pid;
    let of_process = |kind: u8, why: u8| pid.map(|pid| (of((kind, why, pid)), None));
    match &event.what {
        LogWhat::Deadlock(deadlock) => {
            let circle: Vec<_> = deadlock
                .edges
                .iter()
                .map(|edge| (edge.pid, edge.blocked_by, &edge.on))
                .collect();
            Some((of((0_u8, 0_u8, pid)), Some(of(circle))))
        }
        LogWhat::BareDeadlock => Some((of((0_u8, 0_u8, pid)), None)),
        LogWhat::LockWait(wait) => {
            let line = (wait.pid, &wait.on, wait.stage as u8, wait.waited_ms);
            Some((of((1_u8, line)), None))
        }
        LogWhat::TooManyConnections => of_process(2, 0),
        LogWhat::Canceled { why } => of_process(3, *why as u8),
        LogWhat::Terminated { why } => of_process(4, *why as u8),
        LogWhat::Server(what) => of_process(5, *what as u8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LockMode, LogDeadlock, LogEdge, LogFormat, LogObject, LogSession, Pid};

    fn time(ms: i64) -> Option<Timestamp> {
        chrono::DateTime::from_timestamp_millis(1_780_000_000_000 + ms).map(Timestamp::new)
    }

    /// The same two sessions over advisory locks, again and again.
    fn deadlock(ms: i64) -> LogEvent {
        let edge = |pid, by| LogEdge {
            pid: Pid(pid),
            mode: LockMode::Exclusive,
            on: LogObject::Advisory {
                database: 5,
                key: [0, 1, 1],
            },
            blocked_by: Pid(by),
            statement: None,
            place: None,
            inner: None,
        };
        LogEvent {
            at: time(ms),
            pid: Some(Pid(7)),
            session: LogSession::default(),
            sqlstate: None,
            what: LogWhat::Deadlock(LogDeadlock {
                edges: vec![edge(7, 8), edge(8, 7)],
                before: Vec::new(),
            }),
        }
    }

    fn bare(ms: i64) -> LogEvent {
        LogEvent {
            what: LogWhat::BareDeadlock,
            ..deadlock(ms)
        }
    }

    /// Each log: its format, its first line, and when its events were; it spans them.
    fn count(logs: &[(LogFormat, u64, &[i64])]) -> usize {
        let mut once = Once::default();
        let mut new = 0;
        for (format, line, times) in logs {
            once.begin(LogStart {
                format: *format,
                first: times.first().and_then(|ms| time(*ms)),
                line: *line,
            });
            for ms in *times {
                new += usize::from(once.meet(&deadlock(*ms)) == Known::New);
            }
            once.end(times.last().and_then(|ms| time(*ms)));
        }
        new
    }

    use LogFormat::{Csv, Json, Stderr};

    #[test]
    fn one_log_tells_nothing_twice() {
        assert_eq!(count(&[(Stderr, 1, &[0, 0, 0, 0, 1000, 1000])]), 6);
    }

    #[test]
    fn another_format_tells_each_once_more() {
        let cut: &[i64] = &[0, 0, 0, 1000, 1000];
        let exact: &[i64] = &[120, 480, 990, 1001, 1700];
        for logs in [
            &[(Stderr, 1, cut), (Csv, 2, exact)][..],
            &[(Csv, 2, exact), (Stderr, 1, cut)],
            &[(Csv, 2, exact), (Json, 3, exact), (Stderr, 1, cut)],
        ] {
            assert_eq!(count(logs), 5);
        }
        // One of them has more.
        assert_eq!(count(&[(Stderr, 1, cut), (Csv, 2, &exact[1..3])]), 5);
        assert_eq!(count(&[(Csv, 2, &exact[1..3]), (Stderr, 1, cut)]), 5);
    }

    #[test]
    fn parts_of_a_series_and_copies() {
        let parts: [(LogFormat, u64, &[i64]); 2] =
            [(Stderr, 1, &[0, 0, 0]), (Stderr, 2, &[0, 0, 1000])];
        assert_eq!(count(&parts), 6);
        assert_eq!(
            count(&[(Stderr, 2, &[0, 1000]), (Stderr, 1, &[-1000, 0])]),
            4
        );
        let csv: [(LogFormat, u64, &[i64]); 2] =
            [(Csv, 3, &[10, 20, 30, 40]), (Csv, 4, &[50, 1060])];
        let mixed = [parts[0], csv[0], parts[1], csv[1]];
        assert_eq!(count(&mixed), 6);
        let twice = [parts[0], parts[1], parts[0], parts[1]];
        assert_eq!(count(&twice), 6);
        // The end of a log, taken out of it.
        assert_eq!(count(&[(Csv, 1, &[0, 10, 20]), (Csv, 2, &[10, 20])]), 3);
    }

    #[test]
    fn a_circle_for_an_error_without_one() {
        let mut once = Once::default();
        let start = |format, line| LogStart {
            format,
            first: time(0),
            line,
        };
        once.begin(start(Stderr, 1));
        assert_eq!(once.meet(&bare(0)), Known::New);
        once.begin(start(Csv, 2));
        assert_eq!(once.meet(&deadlock(10)), Known::Bare);
        once.begin(start(Json, 3));
        assert_eq!(once.meet(&deadlock(10)), Known::Again);
        // A record that is cut between two files.
        let mut once = Once::default();
        once.begin(start(Stderr, 1));
        assert_eq!(once.meet(&bare(0)), Known::New);
        once.begin(start(Stderr, 2));
        assert_eq!(once.meet(&deadlock(0)), Known::Bare);
        assert_eq!(once.meet(&deadlock(0)), Known::New);
    }
}
