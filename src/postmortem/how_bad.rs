//! How bad it was: what was measured, the worst first, and what couldn't be.

use chrono::NaiveDate;

use super::course::Course;
use super::document::Gap;
use super::frame::Slots;
use super::hurt::Hurt;
use super::summary::{Told, moment, of_each, stretch};
use crate::model::{FindingId, Percent, Severity, Timestamp, count};

pub(super) fn how_bad_each(of: &Told<'_>) -> String {
    let [_, _, ..] = of.servers else {
        let gaps: Vec<&Gap> = of.gaps.iter().collect();
        return of_each(of.servers, &|server| how_bad(server.course, &gaps));
    };
    let of_server = |name: Option<&str>| -> Vec<&Gap> {
        let fits = |gap: &&Gap| gap.server.as_deref() == name;
        of.gaps.iter().filter(fits).collect()
    };
    let mut told = of_each(of.servers, &|server| {
        how_bad(server.course, &of_server(server.name().as_deref()))
    });
    let unknown = failed(&of_server(None), &mut None);
    if !unknown.is_empty() {
        told.push_str(&format!(". Of whichever server: {}", unknown.join("; ")));
    }
    told
}

/// Captures that failed, by why: `9 captures failed, 19:06:02 to 19:06:20 UTC: Connection refused`.
fn failed(gaps: &[&Gap], day: &mut Option<NaiveDate>) -> Vec<String> {
    let mut all: Vec<(&str, Vec<Timestamp>)> = Vec::new();
    for gap in gaps.iter().filter(|gap| gap.is_capture()) {
        let why = gap.reason();
        match all.iter_mut().find(|(known, _)| *known == why) {
            Some((_, times)) => times.push(gap.at),
            None => all.push((why, vec![gap.at])),
        }
    }
    let told = all.iter().map(|(why, times)| {
        let (first, last) = (times[0], times[times.len() - 1]);
        let when = match times.len() {
            1 => format!("at {}", moment(first, day)),
            _ => stretch(first, last, day),
        };
        format!(
            "{} failed, {when} UTC: {why}",
            count(times.len(), "capture")
        )
    });
    told.collect()
}

/// What was measured, the worst first; then what wasn't.
fn how_bad(course: &Course, gaps: &[&Gap]) -> String {
    let mut day = course.span().map(|(first, _)| first.utc().date_naive());
    let mut measured = vec![
        (is_of(course, "conn."), slots(course, &mut day)),
        (is_of(course, "lock."), waits(course, &mut day)),
        (is_of(course, "tx."), oldest(course, &mut day)),
    ];
    measured.sort_by_key(|(worst, _)| std::cmp::Reverse(*worst));
    let mut parts: Vec<String> = measured.into_iter().flat_map(|(_, told)| told).collect();
    if course.most_hidden > 0 {
        parts.push(format!(
            "what up to {} did was hidden from the login that looked",
            count(course.most_hidden, "session")
        ));
    }
    // What failed after the last capture is told as that.
    let last = course.span().map(|(_, last)| last);
    let within: Vec<&Gap> = (gaps.iter().copied())
        .filter(|gap| last.is_none_or(|last| gap.at <= last))
        .collect();
    let failed = failed(&within, &mut day);
    if course.frames.is_empty() && !failed.is_empty() {
        parts.push("what went on in the server isn't known".into());
    }
    parts.extend(failed);
    match parts.is_empty() {
        true => "not known: no capture could read it".into(),
        false => parts.join("; "),
    }
}

/// The worst that was found of an area.
fn is_of(course: &Course, area: &str) -> Option<Severity> {
    let is_in = |id: FindingId| id.name().starts_with(area);
    let seen = course.seen.iter().filter(|seen| is_in(seen.id));
    seen.map(|seen| seen.severity).max()
}

fn slots(course: &Course, day: &mut Option<NaiveDate>) -> Vec<String> {
    let mut parts = Vec::new();
    if let Some(peak) = &course.peak {
        parts.push(format!(
            "{}{}, at {}",
            Slots::of(&peak.capacity).words(),
            share(peak.capacity.used, peak.capacity.usable),
            moment(peak.at, day)
        ));
    }
    match course.refused() {
        0 => {}
        n => parts.push(format!(
            "a login was refused for want of a slot at {} of {}",
            n,
            count(course.frames.len(), "capture")
        )),
    }
    parts
}

/// How many waited, and whose sessions these were.
fn waits(course: &Course, day: &mut Option<NaiveDate>) -> Vec<String> {
    let Some(forest) = &course.forest else {
        let is_read = course.frames.iter().any(|frame| frame.blocked.is_some());
        return Vec::from_iter(is_read.then(|| "no session waited for a lock".to_owned()));
    };
    let data = &forest.report.data;
    let longest = data
        .longest_wait_ms
        .map_or(String::new(), |wait| format!(", the longest for {wait}"));
    let mut parts = vec![format!(
        "{} blocked{longest}, at {}",
        count(data.blocked, "session"),
        moment(forest.report.head.taken_at, day)
    )];
    parts.extend(forest.hurt.iter().take(3).map(Hurt::words));
    parts
}

fn oldest(course: &Course, day: &mut Option<NaiveDate>) -> Vec<String> {
    let told = course.oldest.as_ref().map(|oldest| {
        format!(
            "the oldest transaction was {} old at {} ({})",
            oldest.age,
            moment(oldest.at, day),
            oldest.who
        )
    });
    Vec::from_iter(told)
}

/// ` (90 %)` of the usable slots, never more than all.
pub(super) fn share(used: u32, usable: u32) -> String {
    Percent::of(used.min(usable).into(), usable.into())
        .map_or(String::new(), |share| format!(" ({share})"))
}
