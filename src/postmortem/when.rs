//! From when to when it went on, by severity: that a warning stands isn't that the incident does.

use chrono::NaiveDate;

use super::course::Course;
use super::document::Of;
use super::done::Run;
use super::found::{Bounds, Seen};
use super::summary::{lasted, moment, stretch};
use crate::analysis::catalog::in_words;
use crate::model::{Severity, Timestamp, count};

pub(super) fn when(of: &Of<'_>, runs: &[Run]) -> String {
    let course = of.course;
    let Some((first, last)) = course.span() else {
        return "not known: there is no capture".into();
    };
    let mut day = None;
    let mut parts = Vec::new();
    let (level, worst) = match (course.critical, course.trouble) {
        (Some(critical), _) => (Severity::Critical, Some(critical)),
        (None, trouble) => (Severity::Warning, trouble),
    };
    match worst {
        None => parts.push("Nothing at warning or above was found".to_owned()),
        Some(bounds) if course.frames.len() == 1 => parts.extend(once(level, &bounds, &mut day)),
        Some(bounds) => {
            match before(course, &bounds, &mut day) {
                Some(told) if level == Severity::Critical => parts.push(told),
                _ => parts.push(began("It", &bounds, &mut day)),
            }
            parts.extend(connected(course, &bounds, &mut day));
            parts.push(span(level, &bounds, &acts(of, &bounds, runs), &mut day));
            if level == Severity::Critical {
                parts.extend(since(course, &bounds, &mut day));
            }
        }
    }
    parts.push(match course.frames.len() {
        1 => format!("There is one capture, of {} UTC", moment(first, &mut day)),
        n => format!(
            "{}, {} UTC ({})",
            count(n, "capture"),
            stretch(first, last, &mut day),
            first.age_at(last)
        ),
    });
    parts.join(". ")
}

/// Of one capture alone.
fn once(level: Severity, bounds: &Bounds, day: &mut Option<NaiveDate>) -> Vec<String> {
    let seen = format!(
        "{}: seen once, at {} UTC",
        title(level),
        moment(bounds.first, day)
    );
    match bounds.since {
        Some(_) => vec![
            seen,
            began("It", bounds, day),
            "One capture can't tell when it ended".into(),
        ],
        None => vec![seen, "One capture can't tell when it began or ended".into()],
    }
}

/// `Critical: at least from 01:08:03 to 01:08:33 UTC (30 s), over by 01:08:35 (cancel at 01:08:35)`
fn span(level: Severity, of: &Bounds, acts: &str, day: &mut Option<NaiveDate>) -> String {
    let seen = match of.first == of.last {
        true => format!("seen once, at {} UTC", moment(of.first, day)),
        false => {
            let told = lasted(of.first, of.last, day);
            // Within one second there is no from and to.
            let seen = if told.starts_with("at ") {
                "seen"
            } else {
                "at least"
            };
            let breaks = if of.with_breaks { ", with breaks" } else { "" };
            let long = of.first.age_at(of.last);
            format!("{seen} {told} UTC ({long}){breaks}")
        }
    };
    let ended = match of.not_after {
        Some(after) => format!("over by {}{acts}", moment(after, day)),
        None => "still there at the last capture".into(),
    };
    format!("{}: {seen}, {ended}", title(level))
}

fn title(level: Severity) -> &'static str {
    match level {
        Severity::Critical => "Critical",
        _ => "Warning",
    }
}

fn began(what: &str, of: &Bounds, day: &mut Option<NaiveDate>) -> String {
    match (of.since, of.not_before) {
        (Some(since), _) => format!(
            "{what} began at {}, by its age when it was first seen",
            moment(since, day)
        ),
        (None, Some(before)) => format!("{what} began after {}", moment(before, day)),
        (None, None) => "When it began isn't known: the first capture already has it".into(),
    }
}

/// Where the first capture already has it: since when the sessions that held the slots were all there.
fn connected(course: &Course, of: &Bounds, day: &mut Option<NaiveDate>) -> Option<String> {
    let peak = course.peak.as_ref().filter(|peak| peak.at == of.first)?;
    let is_of_slots =
        |seen: &Seen| seen.id.name().starts_with("conn.") && seen.bounds.first == of.first;
    if of.since.is_some() || of.not_before.is_some() || !course.seen.iter().any(is_of_slots) {
        return None;
    }
    let told = moment(peak.youngest?, day);
    Some(format!(
        "The last of the sessions that held the slots then had connected at {told}"
    ))
}

/// What came about between the last capture that has it and the first that hasn't: ` (cancel at 01:08:35)`.
fn acts(server: &Of<'_>, of: &Bounds, runs: &[Run]) -> String {
    let Some(until) = of.not_after else {
        return String::new();
    };
    let runs = runs.iter().filter(|run| !run.dry_run && run.is_on(server));
    let mut told: Vec<(String, Timestamp)> = Vec::new();
    for act in runs.flat_map(|run| &run.acts) {
        let kind = act.kind();
        let is_within = of.last <= act.at && act.at <= until && act.came.is_well();
        if is_within && !told.iter().any(|(known, _)| *known == kind) {
            told.push((kind, act.at));
        }
    }
    let told: Vec<String> = told
        .iter()
        .map(|(kind, at)| format!("{kind} at {}", at.utc().format("%H:%M:%S")))
        .collect();
    match told.is_empty() {
        true => String::new(),
        false => format!(" ({})", told.join(", ")),
    }
}

/// `a long transaction (tx.long, warning), leaked connections (conn.leak, warning)`
fn warnings(seen: &[&Seen]) -> String {
    let names: Vec<String> = (seen.iter())
        .map(|seen| format!("{} ({}, warning)", in_words(seen.id), seen.id))
        .collect();
    names.join(", ")
}

/// What was only a warning, before it became critical.
fn before(course: &Course, critical: &Bounds, day: &mut Option<NaiveDate>) -> Option<String> {
    let trouble = course.trouble.filter(|all| all.first < critical.first)?;
    let before: Vec<&Seen> = (course.seen.iter())
        .filter(|seen| seen.bounds.first < critical.first)
        .collect();
    let began = began("It", &trouble, day);
    let from = moment(trouble.first, day);
    let told = format!("Seen from {from} on, at first only {}", warnings(&before));
    Some(format!("{began}. {told}"))
}

/// What was only a warning, once it wasn't critical any more.
fn since(course: &Course, critical: &Bounds, day: &mut Option<NaiveDate>) -> Vec<String> {
    let mut all = Vec::new();
    if critical.not_after.is_none() {
        return all;
    }
    let later = (course.seen.iter()).filter(|seen| seen.bounds.last > critical.last);
    let (gone, there): (Vec<&Seen>, Vec<&Seen>) =
        later.partition(|seen| seen.bounds.not_after.is_some());
    if !there.is_empty() {
        all.push(format!(
            "Since then only {}, still there at the last capture",
            warnings(&there)
        ));
    }
    if let Some(until) = gone.iter().filter_map(|seen| seen.bounds.not_after).max() {
        let word = match there.is_empty() {
            true => "Since then only",
            false => "For a while also",
        };
        let until = moment(until, day);
        all.push(format!("{word} {}, over by {until}", warnings(&gone)));
    }
    all
}
