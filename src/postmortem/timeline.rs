//! What happened when, from all sources, in plain words. What is alike and follows itself is one line.

use super::book::NOT_ANSWERED;
use super::course::Course;
use super::document::{Gap, Of};
use super::done::{Act, Came, Run, end_words};
use super::frame::{Frame, Slots};
use super::reconstructed::reconstructed;
use super::runs::{Operators, Words, book, is_end, not_expected};
use crate::journal::{Event, Record};
use crate::model::{FindingId, LogMoment, Severity, Timestamp, count};

/// More log moments than this hide the rest.
const MOST_LOG: usize = 200;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub at: Timestamp,
    /// Of what went on for a while.
    pub until: Option<Timestamp>,
    pub source: Source,
    pub known: Known,
    pub what: String,
    /// It must not be passed over.
    pub is_loud: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// What a run wrote when it did it, by the clock of the machine that acted.
    Journal,
    /// What was read of the server, by the server's clock.
    Capture,
    /// By the machine that tried to connect: nobody else's clock was to be had.
    NoConnection,
    Log,
    /// Why there is no capture.
    Gap,
}

impl Source {
    pub fn word(self) -> &'static str {
        match self {
            Self::Journal => "journal",
            Self::Capture => "capture",
            Self::NoConnection => "no connection",
            Self::Log => "server log",
            Self::Gap => "missing",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Somebody looked at that moment.
    Observed,
    /// Computed of what was seen later.
    Reconstructed,
    /// By people, during the run.
    Said,
}

impl Known {
    pub fn word(self) -> &'static str {
        match self {
            Self::Observed => "observed",
            Self::Reconstructed => "reconstructed",
            Self::Said => "said",
        }
    }
}

/// What the timeline is made of.
pub(super) struct Sources<'s> {
    pub servers: &'s [Of<'s>],
    pub records: &'s [Vec<Record>],
    pub runs: &'s [Run],
    pub log: &'s [LogMoment],
    pub gaps: &'s [Gap],
    pub operators: &'s Operators,
}

/// All entries in the order of time; and how many log moments are left out.
pub(super) fn timeline(of: &Sources<'_>) -> (Vec<Entry>, usize) {
    let mut all = Vec::new();
    for records in of.records {
        journal(records, of.operators, &mut all);
    }
    for run in of.runs {
        acts(run, &mut all);
    }
    for server in of.servers {
        let mut own = Vec::new();
        captures(server.course, &mut own);
        reconstructed(server.course, &mut own);
        if let Some(name) = server.name() {
            for line in &mut own {
                line.what = format!("{name}: {}", line.what);
            }
        }
        all.extend(own);
    }
    for gap in of.gaps {
        let server = gap.server.iter().map(|server| format!("{server}: "));
        let (what, why) = match gap.is_capture() {
            true => ("no capture", gap.reason()),
            false => (gap.what.as_str(), gap.why.as_str()),
        };
        let what = format!("{}{what}: {why}", server.collect::<String>());
        all.push(entry(gap.at, Source::Gap, what));
    }
    let left_out = log(of.log, &mut all);
    all.sort_by_key(|entry| entry.at);
    (merged(all), left_out)
}

pub(super) fn entry(at: Timestamp, source: Source, what: String) -> Entry {
    Entry {
        at,
        until: None,
        source,
        known: Known::Observed,
        what,
        is_loud: false,
    }
}

/// The moments that most is behind, where there are too many.
fn log(moments: &[LogMoment], all: &mut Vec<Entry>) -> usize {
    let mut kept: Vec<&LogMoment> = moments.iter().collect();
    kept.sort_by_key(|moment| (std::cmp::Reverse(moment.count), moment.at));
    kept.truncate(MOST_LOG);
    for moment in &kept {
        let times = match moment.count {
            0 | 1 => String::new(),
            n => format!(" ({n} times)"),
        };
        let state = moment
            .sqlstate
            .as_ref()
            .map_or(String::new(), |code| format!(" [{code}]"));
        let mut line = entry(
            moment.at,
            Source::Log,
            format!("{}{state}{times}", moment.what),
        );
        line.until = (moment.until > moment.at).then_some(moment.until);
        all.push(line);
    }
    moments.len() - kept.len()
}

/// Lines that are the same but for their time, one after the other.
fn merged(all: Vec<Entry>) -> Vec<Entry> {
    let mut out: Vec<(Entry, usize)> = Vec::new();
    for entry in all {
        match out.last_mut() {
            Some((last, times))
                if last.what == entry.what
                    && last.source == entry.source
                    && last.known == entry.known =>
            {
                last.until = Some(entry.until.unwrap_or(entry.at));
                last.is_loud |= entry.is_loud;
                *times += 1;
            }
            _ => out.push((entry, 1)),
        }
    }
    out.into_iter()
        .map(|(mut entry, times)| {
            if times > 1 {
                entry.what.push_str(&format!(" ({times} times)"));
            }
            entry
        })
        .collect()
}

fn journal(records: &[Record], operators: &Operators, all: &mut Vec<Entry>) {
    let book = book(records);
    let words = Words(book.as_ref());
    let mut push = |at, what, is_loud, known| {
        let mut line = entry(at, Source::Journal, what);
        line.is_loud = is_loud;
        line.known = known;
        all.push(line);
    };
    let broke_off = |before: Option<&Record>| {
        let at = before.filter(|record| !is_end(&record.event))?.at;
        Some((at, "the journal breaks off here".to_owned()))
    };
    let mut before = None;
    for record in records {
        if let (Event::Resumed { .. }, Some((at, what))) = (&record.event, broke_off(before)) {
            push(at, what, true, Known::Observed);
        }
        if let Some((what, is_loud)) = told(&record.event, &words, operators) {
            push(record.at, what, is_loud, known(&record.event));
        }
        before = Some(record);
    }
    if let Some((at, what)) = broke_off(before) {
        let what = format!("{what}: the run was interrupted, or still goes on");
        push(at, what, true, Known::Observed);
    }
}

fn known(event: &Event) -> Known {
    match event {
        Event::Note { .. } | Event::Answer { attended: true, .. } => Known::Said,
        _ => Known::Observed,
    }
}

/// An event in plain words, and whether it is loud; effects are told with what came of them.
fn told(event: &Event, words: &Words<'_>, operators: &Operators) -> Option<(String, bool)> {
    let text = match event {
        Event::RunStart {
            what,
            target,
            login,
            operator,
            ..
        } => format!(
            "{} began {what} on {target}, as {login}",
            operators.call(operator)
        ),
        Event::Resumed {
            operator, changed, ..
        } => {
            let changed = if *changed {
                ", with a book that has changed since"
            } else {
                ""
            };
            format!(
                "{} went on with the run that was interrupted{changed}",
                operators.call(operator)
            )
        }
        Event::StepStart { step } if !words.is_silent(step) => {
            format!("step {step}: {}", words.title(step))
                .replace(&format!("step {step}: {step}"), &format!("step {step}"))
        }
        Event::StepEnd { step, came, next } if came != "well" && came != "skipped" => {
            let next = next
                .as_ref()
                .map_or(String::new(), |next| format!("; on with {next}"));
            let came = match came.as_str() {
                "error" => "came to nothing",
                other => other,
            };
            return Some((format!("step {step} {came}{next}"), true));
        }
        Event::StepEnd { step, .. } if words.waits(step) => words.came_about(step),
        Event::Answer {
            step,
            answer,
            attended,
        } => {
            let who = if *attended {
                ""
            } else {
                ", by the book: nobody was there"
            };
            format!(
                "asked: {} answered: {}{who}",
                words.question(step),
                words.answer(step, answer)
            )
        }
        Event::Expectation {
            that,
            held: false,
            say,
            ..
        } => not_expected(that, say.as_deref()),
        Event::Captured { .. } => "kept a capture as evidence".into(),
        Event::Note { question, text, .. } if question == "reason" => {
            format!("the reason given: \"{text}\"")
        }
        Event::Note { question, text, .. } if question != "to do" && text != NOT_ANSWERED => {
            format!("noted: {question} \"{text}\"")
        }
        Event::Skipped { step, reason } => {
            format!("what was left of step {step} was left out: {reason}")
        }
        Event::EffectSeen { seen, answer, .. } => {
            let answer = match answer.as_str() {
                "done" => "it counts as done",
                "again" => "it may be done again",
                other => other,
            };
            format!("looked at an effect whose outcome wasn't known: {seen}; {answer}")
        }
        Event::Candidates { signals, refused } => format!(
            "chose {}, left {} alone",
            count(signals.len(), "session"),
            refused.len()
        ),
        Event::Confirmed { how } => format!("confirmed: {how}"),
        Event::NotConfirmed { why } => format!("not confirmed, nothing was done: {why}"),
        Event::BatchEnd { measured } => format!("measured between two batches: {measured}"),
        Event::Stopped { why } => return Some((format!("stopped: {why}"), true)),
        Event::BookEnd { end } => format!("the runbook ended: {end}"),
        Event::RunEnd { code } if words.0.is_none() => {
            format!("the run ended: {}", end_words(false, *code))
        }
        _ => return None,
    };
    Some((text, false))
}

/// Effects, those of the same kind and outcome that follow each other as one.
fn acts(run: &Run, all: &mut Vec<Entry>) {
    let alike = |a: &Act, b: &Act| {
        a.pid.is_some()
            && b.pid.is_some()
            && a.kind() == b.kind()
            && a.step == b.step
            && a.word() == b.word()
            && a.came.is_well()
    };
    let dry = if run.dry_run { "(dry run) " } else { "" };
    for group in run.acts.chunk_by(alike) {
        let (first, last) = (&group[0], &group[group.len() - 1]);
        let what = match group {
            [one] => {
                let who = one
                    .who
                    .as_ref()
                    .map_or(String::new(), |who| format!(" ({who})"));
                format!("{dry}{}{who}: {}", one.what, one.words())
            }
            several => {
                let pids: Vec<String> = several
                    .iter()
                    .filter_map(|act| act.pid.map(|pid| pid.to_string()))
                    .collect();
                let verb = first.kind();
                format!(
                    "{dry}{verb} {} (pids {}): {}",
                    count(several.len(), "session"),
                    pids.join(", "),
                    first.word()
                )
            }
        };
        let mut line = entry(first.at, Source::Journal, what);
        line.until = (last.at > first.at).then_some(last.at);
        line.is_loud = !first.came.is_well() && !matches!(first.came, Came::SeenLater { .. });
        all.push(line);
    }
}

/// Captures of which nothing is found anew and nothing is found no more are one line.
fn captures(course: &Course, all: &mut Vec<Entry>) {
    let same = |a: &Frame, b: &Frame| {
        a.troubles() == b.troubles()
            && a.by_server == b.by_server
            && a.is_judged() == b.is_judged()
            && a.is_redis_judged() == b.is_redis_judged()
    };
    let mut before: Vec<(FindingId, Severity)> = Vec::new();
    for (n, group) in course.frames.chunk_by(same).enumerate() {
        let (first, last) = (&group[0], &group[group.len() - 1]);
        let mut now = first.troubles();
        if !first.is_redis_judged() {
            // Where Redis wasn't looked at, what was found there may still be so.
            let kept = before
                .iter()
                .filter(|(id, _)| id.is_of_redis() && !now.iter().any(|(is, _)| is == id));
            let kept: Vec<_> = kept.copied().collect();
            now.extend(kept);
            now.sort_by_key(|(id, _)| *id);
        }
        let source = if first.by_server {
            Source::Capture
        } else {
            Source::NoConnection
        };
        let mut parts = Vec::new();
        if first.is_judged() {
            parts.extend(changes(&before, &now, n == 0));
            before = now;
        } else {
            // What it didn't see isn't gone.
            let fresh: Vec<_> = now
                .into_iter()
                .filter(|(id, _)| !before.iter().any(|(was, _)| was == id))
                .collect();
            if !fresh.is_empty() {
                parts.extend(changes(&[], &fresh, n == 0));
                before.extend(fresh);
                before.sort_by_key(|(id, _)| *id);
            }
            parts.push("not enough could be read to judge it".to_owned());
        }
        parts.extend(numbers(group));
        let taken = count(group.len(), "capture");
        let mut line = entry(first.at, source, format!("{taken}: {}", parts.join("; ")));
        line.until = (last.at > first.at).then_some(last.at);
        all.push(line);
    }
}

fn changes(
    before: &[(FindingId, Severity)],
    now: &[(FindingId, Severity)],
    first: bool,
) -> Vec<String> {
    let mut parts = Vec::new();
    let named = |(id, severity): &(FindingId, Severity)| format!("{id} ({})", severity.word());
    let fresh: Vec<String> = now
        .iter()
        .filter(|(id, _)| !before.iter().any(|(was, _)| was == id))
        .map(named)
        .collect();
    if !fresh.is_empty() {
        let word = if first { "found" } else { "newly found" };
        parts.push(format!("{word} {}", fresh.join(", ")));
    }
    let changed: Vec<String> = now
        .iter()
        .filter(|one| before.iter().any(|was| was.0 == one.0 && was.1 != one.1))
        .map(named)
        .collect();
    if !changed.is_empty() {
        parts.push(format!("now {}", changed.join(", ")));
    }
    let gone: Vec<String> = before
        .iter()
        .filter(|(id, _)| !now.iter().any(|(is, _)| is == id))
        // Slots that are gone were nearly gone before: that it got worse is no end.
        .filter(|(id, _)| {
            *id != FindingId::ConnNearLimit
                || !now.iter().any(|(is, _)| *is == FindingId::ConnExhausted)
        })
        .map(|(id, _)| id.to_string())
        .collect();
    if !gone.is_empty() {
        parts.push(format!("found no more: {}", gone.join(", ")));
    }
    if now.is_empty() {
        parts.push("nothing found at warning or above".into());
    }
    parts
}

/// `20 of 20 slots taken`, `14 to 20 of 20`
fn numbers(group: &[Frame]) -> Vec<String> {
    let mut parts = Vec::new();
    let slots: Vec<_> = group.iter().filter_map(|frame| frame.slots).collect();
    if let (Some(least), Some(most)) = (
        slots.iter().min_by_key(|s| s.used),
        slots.iter().max_by_key(|s| s.used),
    ) {
        parts.push(Slots::range(*least, *most));
    }
    let blocked = group.iter().filter_map(|frame| frame.blocked).max();
    if let Some(blocked) = blocked.filter(|blocked| *blocked > 0) {
        let up_to = if group.len() > 1 { "up to " } else { "" };
        parts.push(format!("{up_to}{} blocked", count(blocked, "session")));
    }
    let refused = group
        .iter()
        .filter(|frame| !frame.refusals.is_empty())
        .count();
    if refused > 0 {
        parts.push("a login was refused for want of a slot".into());
    }
    parts
}
