//! One pass over a log: a search for what matters, and parsing only around what it finds.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use memchr::memmem;
use regex::bytes::Regex;

use super::events;
use super::format;
use super::open::{LogError, Opened};
use super::prefix::Prefix;
use super::record::Record;
use super::stderr::{Around, Lines, last_of, line_end, line_start};
use super::time::{self, Zone};
use super::window::Window;
use super::{csvlog, jsonlog, words, wrapped};
use crate::model::{
    LogBefore, LogEvent, LogFormat, LogRead, LogStart, LogWaitStage, LogWhat, Timestamp,
};

/// All modes that anybody waits in end so, in every language; and what ends a wait.
const LOCKS: &str = "eLock|57014|55P03|57P0|canceling statement due|terminating connection due\
    |ステートメントをキャンセル|接続を終了";
/// What else a timeline has, by SQLSTATE and by words.
const ALL: &str = "eLock|53300|57014|55P03|57P0|25P03|25P04|too many c|connection slots are|canceling statement due\
    |terminating connection|database system |starting PostgreSQL|shutdown request|terminated by signal\
    |FATAL:|PANIC:|致命的エラー|パニック:|接続スロットは|接続が多すぎ\
    |deadlock detected|デッドロックを検出し|クライアント数が|ステートメントをキャンセル|接続を終了|データベースシステム|を起動しています|シャットダウン|シグナル";
/// How much of what came before is kept, for who a process is and what it did.
const BEHIND: usize = 1 << 20;
/// How far a message may go on behind the place where it was found.
const AHEAD: usize = 4 << 20;
/// By so much of its beginning the format is told.
const SAMPLE: usize = 1 << 20;
/// So far behind its beginning the end of a wait is looked for.
const WAIT_WITHIN: u64 = 16 << 20;
/// Where very much was looked at already: so much of it.
const NEAR: usize = 64 << 10;
/// Looking back may cost so much of what was read, and this much in any case.
const LOOK_BACK_SHARE: u64 = 4;
const LOOK_BACK_FREE: u64 = 64 << 20;

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Deadlocks and lock waits.
    Locks,
    /// Also what else a timeline shows.
    All,
}

/// How a log is read.
#[derive(Clone, Debug)]
pub struct ScanOptions {
    pub wanted: Wanted,
    /// `None`: told by its content.
    pub format: Option<LogFormat>,
    /// `None`: told by its lines.
    pub prefix: Option<Prefix>,
    pub zone: Zone,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
}

/// A search for one word is much quicker than for several: what ends a wait is looked for only where one is open.
struct Finder {
    one: memmem::Finder<'static>,
    /// The Japanese error whose DETAIL may be left out, where the beginning isn't ASCII alone: a search over everything of its own.
    bare: Option<memmem::Finder<'static>>,
    several: Option<Regex>,
    always: bool,
}

impl Finder {
    fn new(wanted: Wanted, sample: &[u8]) -> Self {
        let words = match wanted {
            Wanted::Locks => LOCKS,
            Wanted::All => ALL,
        };
        Self {
            one: memmem::Finder::new(b"ock"),
            bare: (!sample.is_ascii()).then(|| memmem::Finder::new(events::DEADLOCK[1])),
            several: Regex::new(words).ok(),
            always: wanted == Wanted::All,
        }
    }

    /// `bare`: errors without their DETAIL are looked for too.
    fn find(&self, bytes: &[u8], waiting: bool, bare: bool) -> Option<usize> {
        let found = match &self.several {
            Some(words) if waiting || self.always => {
                let found = words.find(bytes).map(|found| found.start());
                let before = &bytes[..found.unwrap_or(bytes.len())];
                let english = bare.then(|| memmem::find(before, events::DEADLOCK[0].as_bytes()));
                english.flatten().or(found)
            }
            _ => self.lock(bytes, bare),
        };
        if !bare {
            return found;
        }
        // Only what lies before, so that nothing is searched twice.
        let before = &bytes[..found.unwrap_or(bytes.len())];
        let japanese = self.bare.as_ref().and_then(|words| words.find(before));
        japanese.or(found)
    }

    /// The mode of a lock (`eLock`), and with `bare` the English error too: by the letters that both have, in one search.
    fn lock(&self, bytes: &[u8], bare: bool) -> Option<usize> {
        let (start, end) = events::DEADLOCK[0].as_bytes().split_at(5);
        self.one.find_iter(bytes).find_map(|at| {
            let before = &bytes[..at];
            if before.ends_with(b"eL") {
                Some(at - 2)
            } else if bare && before.ends_with(start) && bytes[at..].starts_with(end) {
                Some(at - start.len())
            } else {
                None
            }
        })
    }
}

/// Begins to read a log.
///
/// # Errors
/// When it can't be read, or nothing in it is a log's.
pub fn begin<'o>(opened: Opened, options: &'o ScanOptions) -> Result<Begun<'o>, LogError> {
    let scan = Scan::new(opened, options)?;
    Ok(Begun { scan, options })
}

/// A log whose beginning was read.
pub struct Begun<'o> {
    scan: Scan,
    options: &'o ScanOptions,
}

impl Begun<'_> {
    pub fn start(&mut self) -> LogStart {
        let (first, line) = self.scan.first_line();
        LogStart {
            format: self.scan.tally.format,
            first,
            line,
        }
    }

    /// Reads it to its end. Each event goes to `sink` as it comes; `watch` is asked after each stretch whether to go on.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn read(
        self,
        sink: &mut dyn FnMut(LogEvent),
        watch: &mut dyn FnMut(u64, Option<u64>) -> bool,
    ) -> Result<LogRead, LogError> {
        read(self.scan, self.options, sink, watch)
    }
}

fn read(
    mut scan: Scan,
    options: &ScanOptions,
    sink: &mut dyn FnMut(LogEvent),
    watch: &mut dyn FnMut(u64, Option<u64>) -> bool,
) -> Result<LogRead, LogError> {
    let finder = Finder::new(options.wanted, scan.window.bytes());
    // What lies before is searched already.
    let mut at = 0;
    loop {
        let waiting = scan.window.base + (at as u64) < scan.waiting_until;
        // In csv and json nothing is left out.
        let bare = scan.tally.format == LogFormat::Stderr;
        let found = finder.find(&scan.window.bytes()[at..], waiting, bare);
        let Some(hit) = found.map(|found| at + found) else {
            if scan.window.ended || scan.tally.stopped.is_some() {
                break;
            }
            // A needle may lie over the edge; the longest is shorter than this.
            at = at.max(scan.window.bytes().len().saturating_sub(64));
            at -= scan.advance(at)?;
            if !watch(scan.position.get(), scan.size) {
                scan.tally.stopped = Some("interrupted".into());
                break;
            }
            continue;
        };
        match scan.around(hit) {
            Found::More => {
                let forgotten = scan.advance(hit)?;
                at = hit - forgotten;
            }
            Found::Nothing(next) => at = next,
            Found::Record(record, next) => {
                at = next.max(hit + 1);
                if let Some(event) = events::event(&record) {
                    scan.tell(event, hit, options, sink);
                } else if options.wanted == Wanted::All && words::is_untold(&record) {
                    scan.tally.untold += u64::from(within(&record, options));
                } else if options.wanted == Wanted::Locks
                    && record.detail.is_some()
                    && record.sqlstate.as_deref() == Some("40P01")
                {
                    scan.tally.unread += 1;
                }
            }
        }
    }
    Ok(scan.end())
}

/// Of the time that is asked for.
fn within(record: &Record, options: &ScanOptions) -> bool {
    let before = options
        .since
        .zip(record.at)
        .is_some_and(|(since, at)| at < since);
    let behind = options
        .until
        .zip(record.at)
        .is_some_and(|(until, at)| at > until);
    !before && !behind
}

struct Scan {
    window: Window<Box<dyn std::io::Read>>,
    lines: Lines,
    tally: LogRead,
    position: std::rc::Rc<std::cell::Cell<u64>>,
    size: Option<u64>,
    looked_back: u64,
    /// Up to here in the stream somebody's wait may end.
    waiting_until: u64,
}

enum Found {
    More,
    Nothing(usize),
    Record(Box<Record>, usize),
}

impl Scan {
    fn new(opened: Opened, options: &ScanOptions) -> Result<Self, LogError> {
        let mut scan = Self {
            window: Window::new(opened.reader),
            lines: Lines::new(options.prefix.clone(), options.zone.clone()),
            tally: LogRead {
                name: opened.name,
                format: LogFormat::Stderr,
                packing: opened.packing,
                bytes: 0,
                lines: 0,
                log_line_prefix: None,
                first: None,
                last: None,
                unread: 0,
                untold: 0,
                cut: 0,
                timeless: 0,
                zones: Vec::new(),
                hasty: false,
                stopped: None,
                ends: None,
                wrapped: None,
            },
            position: opened.position,
            size: opened.size,
            looked_back: 0,
            waiting_until: 0,
        };
        while scan.window.bytes().len() < SAMPLE && !scan.window.ended {
            scan.advance(0)?;
        }
        let sample = scan.window.bytes();
        let fits = format::detect(sample, &mut scan.lines);
        scan.tally.wrapped = wrapped::by(sample);
        scan.tally.format = match options.format.or(fits) {
            Some(format) => format,
            // An empty log tells of nothing, and is no fault.
            None if sample.iter().all(u8::is_ascii_whitespace) => LogFormat::Stderr,
            None => {
                return Err(LogError::NotALog {
                    name: scan.tally.name,
                    hint: if options.prefix.is_some() {
                        " by this --prefix"
                    } else {
                        ""
                    },
                });
            }
        };
        Ok(scan)
    }

    /// Reads on, with what is needed before `at`; how much was forgotten.
    fn advance(&mut self, at: usize) -> Result<usize, LogError> {
        let keep = at.saturating_sub(BEHIND);
        match self.window.advance(keep) {
            Ok((forgotten, read)) => {
                let bytes = self.window.bytes();
                let new = &bytes[bytes.len() - read..];
                self.tally.bytes += read as u64;
                self.tally.lines += memchr::memchr_iter(b'\n', new).count() as u64;
                Ok(forgotten)
            }
            // What was read until then is told all the same.
            Err(error) if self.tally.bytes > 0 => {
                self.tally.stopped = Some(error.to_string());
                self.window.ended = true;
                Ok(0)
            }
            Err(error) => Err(LogError::Io {
                name: self.tally.name.clone(),
                error,
            }),
        }
    }

    fn around(&mut self, hit: usize) -> Found {
        let bytes = self.window.bytes();
        let complete = self.window.ended || bytes.len() - hit > AHEAD;
        match self.tally.format {
            LogFormat::Stderr => match self.lines.around(bytes, hit, self.window.base, complete) {
                Around::More => Found::More,
                Around::Nothing => Found::Nothing(line_end(bytes, hit)),
                Around::Found(record, end) => Found::Record(record, end),
            },
            LogFormat::Csv => match csvlog::around(bytes, hit, &mut self.lines.zone, complete) {
                csvlog::Read::More => Found::More,
                csvlog::Read::Nothing => Found::Nothing(line_end(bytes, hit)),
                csvlog::Read::Found(record, end) => Found::Record(record, end),
            },
            LogFormat::Json => {
                let (start, end) = (line_start(bytes, hit), line_end(bytes, hit));
                if bytes[..end].last() != Some(&b'\n') && !complete {
                    return Found::More;
                }
                match jsonlog::record(&bytes[start..end], &mut self.lines.zone) {
                    Some(record) => Found::Record(Box::new(record), end),
                    None => {
                        self.tally.unread += 1;
                        Found::Nothing(end)
                    }
                }
            }
        }
    }

    fn tell(
        &mut self,
        mut event: LogEvent,
        hit: usize,
        options: &ScanOptions,
        sink: &mut dyn FnMut(LogEvent),
    ) {
        let outside = event.at.is_some_and(|at| {
            options.since.is_some_and(|since| at < since)
                || options.until.is_some_and(|until| at > until)
        });
        if outside {
            return;
        }
        let of_locks = matches!(
            event.what,
            LogWhat::Deadlock(_) | LogWhat::BareDeadlock | LogWhat::LockWait(_)
        );
        match event.at {
            // What ends a wait isn't looked for itself.
            _ if options.wanted == Wanted::Locks && !of_locks => {}
            Some(at) => {
                self.tally.first = Some(self.tally.first.map_or(at, |first| first.min(at)));
                self.tally.last = Some(self.tally.last.map_or(at, |last| last.max(at)));
            }
            None => self.tally.timeless += 1,
        }
        if let LogWhat::Deadlock(deadlock) = &mut event.what {
            let pids: Vec<_> = deadlock.edges.iter().map(|edge| edge.pid).collect();
            for pid in pids {
                let spent = LOOK_BACK_FREE + self.tally.bytes / LOOK_BACK_SHARE;
                let far = if self.looked_back < spent {
                    BEHIND
                } else {
                    NEAR
                };
                self.tally.hasty |= far == NEAR;
                self.looked_back += hit.min(far) as u64;
                let before = self.before(hit, far, pid);
                if before.session.is_known() || !before.statements.is_empty() {
                    deadlock.before.push(before);
                }
            }
        }
        if let LogWhat::LockWait(wait) = &event.what
            && wait.stage == LogWaitStage::StillWaiting
        {
            self.waiting_until = self.window.base + hit as u64 + WAIT_WITHIN;
        }
        sink(event);
    }

    fn before(&mut self, hit: usize, far: usize, pid: crate::model::Pid) -> LogBefore {
        let bytes = self.window.bytes();
        let from = hit.saturating_sub(far);
        let near = &bytes[from..];
        let mut before = match self.tally.format {
            LogFormat::Stderr => self.lines.before(near, hit - from, pid),
            LogFormat::Csv | LogFormat::Json => records_before(
                near,
                hit - from,
                pid,
                self.tally.format,
                &mut self.lines.zone,
            ),
        };
        before.statements = before
            .statements
            .iter()
            .filter_map(|text| events::statement(text))
            .collect();
        before
    }

    fn end(mut self) -> LogRead {
        self.tally.ends = self.last_time();
        self.tally.cut = self.lines.cut;
        self.tally.zones = self.lines.zone.assumed.iter().cloned().collect();
        if self.tally.format == LogFormat::Stderr {
            self.tally.log_line_prefix = self.lines.prefix().map(|prefix| prefix.text.clone());
        }
        self.tally
    }
}

/// Lines at its ends that are looked at for a log's first and last time.
const AT_ENDS: usize = 500;

impl Scan {
    /// The first line with a time: its time and its hash.
    fn first_line(&mut self) -> (Option<Timestamp>, u64) {
        let hash = |line: &[u8]| {
            let mut hasher = DefaultHasher::new();
            line.hash(&mut hasher);
            hasher.finish()
        };
        let lines = self.window.bytes().split(|b| *b == b'\n').take(AT_ENDS);
        let (lines_of, format) = (&mut self.lines, self.tally.format);
        for line in lines {
            if let Some(at) = time_of(lines_of, format, line) {
                return (Some(at), hash(line));
            }
        }
        (None, 0)
    }

    fn last_time(&mut self) -> Option<Timestamp> {
        let (lines_of, format) = (&mut self.lines, self.tally.format);
        let mut lines = self.window.bytes().rsplit(|b| *b == b'\n').take(AT_ENDS);
        lines.find_map(|line| time_of(lines_of, format, line))
    }
}

/// What is taken for granted for it isn't told: it may be no event's.
fn time_of(lines: &mut Lines, format: LogFormat, line: &[u8]) -> Option<Timestamp> {
    let line = String::from_utf8_lossy(&line[..line.len().min(4096)]);
    let assumed = lines.zone.assumed.clone();
    let at = match format {
        LogFormat::Stderr => lines.time_of(&line),
        LogFormat::Csv => time::leading(&line, &mut lines.zone).map(|(at, _)| at),
        LogFormat::Json => line
            .split_once("\"timestamp\":\"")
            .and_then(|(_, rest)| time::leading(rest, &mut lines.zone))
            .map(|(at, _)| at),
    };
    lines.zone.assumed = assumed;
    at
}

/// What records before a place tell of a process.
fn records_before(
    buffer: &[u8],
    at: usize,
    pid: crate::model::Pid,
    format: LogFormat,
    zone: &mut Zone,
) -> LogBefore {
    let needle = if format == LogFormat::Csv {
        format!(",{pid},")
    } else {
        format!("\"pid\":{pid},")
    };
    let mut before = LogBefore {
        pid,
        session: Default::default(),
        statements: Vec::new(),
    };
    for found in last_of(buffer, at, needle.as_bytes()) {
        let start = line_start(buffer, found);
        let record = if format == LogFormat::Json {
            jsonlog::record(&buffer[start..line_end(buffer, start)], zone)
        } else {
            match csvlog::around(buffer, found, zone, true) {
                csvlog::Read::Found(record, _) => Some(*record),
                _ => None,
            }
        };
        let Some(record) = record.filter(|record| record.pid == Some(pid)) else {
            continue;
        };
        before.session = std::mem::take(&mut before.session)
            .or(&record.session)
            .or(&super::logins::authorized(&record.message));
        if let Some(statement) = super::stderr::logged_statement(&record.message) {
            if super::stderr::ends_transaction(statement) || before.statements.len() >= 20 {
                break;
            }
            before.statements.push(statement.to_owned());
        }
    }
    before.statements.reverse();
    before
}
