//! The incident in a few sentences, for somebody who wasn't there.

use chrono::NaiveDate;

use super::causes::Suggestion;
use super::course::Course;
use super::document::{Gap, Of};
use super::done::Run;
use super::frame::Frame;
use super::how_bad::{how_bad_each, share};
use super::logged::Deadlocks;
use super::server::role;
use super::when::when;
use crate::analysis::catalog::in_words;
use crate::model::{Millis, Timestamp, count};

/// What is summed up.
pub(super) struct Told<'t> {
    pub servers: &'t [Of<'t>],
    /// What journals and logs speak for, where there are several servers.
    pub said: &'t [Suggestion],
    pub runs: &'t [Run],
    pub deadlocks: Option<&'t Deadlocks>,
    pub gaps: &'t [Gap],
}

/// Each with what it answers.
pub(super) fn summary(of: &Told<'_>) -> Vec<(&'static str, String)> {
    let each = |told: &dyn Fn(&Of<'_>) -> String| of_each(of.servers, told);
    let logged = of.deadlocks.map_or(String::new(), |deadlocks| {
        format!("; {}", deadlocks.words())
    });
    let what = match of.servers {
        [one] => what(one.course, of.runs, &logged),
        several => format!(
            "captures of {}{logged}. {}",
            count(several.len(), "server"),
            each(&|server| format!(
                "{}{}",
                captured(server.course),
                what(server.course, &[], "")
            ))
        ),
    };
    let mut cause = each(&|server| cause(server.course, server.causes));
    let is_suggested = of.servers.iter().any(|server| !server.causes.is_empty());
    if !of.said.is_empty() {
        let said: Vec<String> = of.said.iter().map(words_of).collect();
        cause.push_str(&format!(
            ". Journals and logs, of whichever server, speak for {}",
            said.join("; ")
        ));
    }
    if is_suggested || !of.said.is_empty() {
        cause.push_str(". It is a suggestion: people decide");
    }
    let mut all = vec![
        ("What", what),
        ("When", each(&|server| when(server, of.runs))),
        ("How bad", how_bad_each(of)),
        ("Probable cause", cause),
        ("What was done", done(of.runs)),
        ("At the last capture", each(&|server| last(server.course))),
    ];
    let left = of.servers.iter().filter_map(|server| {
        let told = left_changed(server.course)?;
        Some(match server.name() {
            None => told,
            Some(name) => format!("On {name}: {told}"),
        })
    });
    let left: Vec<String> = left.collect();
    if !left.is_empty() {
        all.push(("Still changed at the last capture", left.join(". ")));
    }
    let since = of.servers.iter().filter_map(|server| {
        let name = server.name();
        let told = unreached(server.course, of.gaps, name.as_deref())?;
        Some(match name {
            None => told,
            Some(name) => format!("On {name}: {told}"),
        })
    });
    let since: Vec<String> = since.collect();
    if !since.is_empty() {
        all.push(("After it", since.join(". ")));
    }
    all
}

/// Of one server as it is; of several each with its name, and nothing of one with another's.
pub(super) fn of_each(servers: &[Of<'_>], told: &dyn Fn(&Of<'_>) -> String) -> String {
    let all = servers.iter().map(|server| match server.name() {
        None => told(server),
        Some(name) => {
            let told = told(server);
            format!("On {name}: {}", told.trim_end_matches('.'))
        }
    });
    all.collect::<Vec<_>>().join(". ")
}

/// From when to when a server was seen.
fn captured(course: &Course) -> String {
    let mut day = None;
    course.span().map_or(String::new(), |(first, last)| {
        format!(
            "seen {} UTC in {}; ",
            lasted(first, last, &mut day),
            count(course.frames.len(), "capture")
        )
    })
}

fn what(course: &Course, runs: &[Run], logged: &str) -> String {
    let Some(target) = &course.target else {
        let mut named: Vec<&str> = runs.iter().map(|run| run.target.as_str()).collect();
        named.dedup();
        named.retain(|name| !name.is_empty());
        let named = match named.is_empty() {
            true => "a server".to_owned(),
            false => named.join(", "),
        };
        return format!(
            "no capture of {named} was given; what follows is from journals and logs alone{logged}"
        );
    };
    let version = target
        .server_version
        .as_deref()
        .and_then(|v| v.split(' ').next());
    let version = version.map_or("PostgreSQL".into(), |v| format!("PostgreSQL {v}"));
    let role = target
        .role
        .map_or(String::new(), |is| format!(" ({})", role(is)));
    let found: Vec<String> = course
        .seen
        .iter()
        .map(|seen| format!("{} ({}, {})", seen.title, seen.id, seen.severity.word()))
        .collect();
    let found = match found.is_empty() {
        true if course.frames.is_empty() => "no capture of it could be taken".into(),
        true => "nothing was found at warning or above".into(),
        false => format!("found, at its worst: {}", found.join("; ")),
    };
    format!("{version}{role}, {}; {found}{logged}", target.label())
}

/// As a sentence begins.
pub(super) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        format!("{}{}", first.to_uppercase(), chars.as_str())
    })
}

/// A time; with its day where that isn't the one that is being told of.
pub(super) fn moment(at: Timestamp, day: &mut Option<NaiveDate>) -> String {
    let date = at.utc().date_naive();
    if day.replace(date) == Some(date) {
        at.utc().format("%H:%M:%S").to_string()
    } else {
        at.utc().format("%Y-%m-%d %H:%M:%S").to_string()
    }
}

/// `18:52:12 to 18:53:20`; the same second once.
pub(super) fn stretch(first: Timestamp, last: Timestamp, day: &mut Option<NaiveDate>) -> String {
    let first = moment(first, day);
    let last = moment(last, day);
    match first.ends_with(&last) {
        true => first,
        false => format!("{first} to {last}"),
    }
}

/// `from 18:52:12 to 18:53:20`, or `at 18:52:12`.
pub(super) fn lasted(first: Timestamp, last: Timestamp, day: &mut Option<NaiveDate>) -> String {
    let told = stretch(first, last, day);
    match told.contains(" to ") {
        true => format!("from {told}"),
        false => format!("at {told}"),
    }
}

fn cause(course: &Course, causes: &[Suggestion]) -> String {
    let Some(first) = causes.first() else {
        return match course.trouble {
            _ if course.frames.is_empty() => "not known: there is no capture".into(),
            Some(_) => "nothing that was measured speaks for one of the known causes".into(),
            None => "nothing was found, so nothing is suggested".into(),
        };
    };
    let first_words = match first.measured {
        true => format!("the evidence speaks for {}", first.cause.words()),
        false => format!("said, not measured: {}", first.cause.words()),
    };
    let said = |one: &Suggestion| match first.measured {
        true => words_of(one),
        false => one.cause.words().to_owned(),
    };
    let others: Vec<String> = causes[1..].iter().map(said).collect();
    let others = match others.is_empty() {
        true => String::new(),
        false => format!("; also possible: {}", others.join("; ")),
    };
    format!("{first_words}{others}")
}

fn words_of(one: &Suggestion) -> String {
    match one.measured {
        true => one.cause.words().to_owned(),
        false => format!("{}, which was said, not measured", one.cause.words()),
    }
}

fn done(runs: &[Run]) -> String {
    if runs.is_empty() {
        return "no journal was given, so what was done isn't known here".into();
    }
    let mut day = None;
    let told = runs.iter().map(|run| {
        let dry = if run.dry_run { ", as a dry run" } else { "" };
        let span = format!("{} UTC", stretch(run.began, run.last, &mut day));
        let end = run.end.as_deref().map_or(
            "the journal has no end: it was interrupted, or still goes on".to_owned(),
            |end| format!("it ended as “{end}”"),
        );
        let answers: Vec<String> = run
            .answers
            .iter()
            .map(|(asked, answer)| format!("; asked “{asked}”, they said: {answer}"))
            .collect();
        let answers = answers.concat();
        let held = run.held.as_ref().map_or(String::new(), |(at, about)| {
            format!("; {about}, at {}", moment(*at, &mut day))
        });
        let helped = run.helped.as_ref();
        let helped = helped.map_or(String::new(), |told| format!("; before and after: {told}"));
        let unknown = match run.unknown() {
            0 => String::new(),
            n => format!(" THE OUTCOME OF {n} IS NOT KNOWN."),
        };
        // A command is called as it was typed.
        let what = match run.what.starts_with("pg ") {
            true => format!("With stanch {}", run.what),
            false => capital(&run.what),
        };
        format!(
            "{what}{dry}, by {}, {span}: {}{helped}{answers}{held}; {end}.{unknown}",
            run.operator,
            run.sum()
        )
    });
    told.collect::<Vec<_>>()
        .join(" ")
        .trim_end_matches('.')
        .to_owned()
}

fn last(course: &Course) -> String {
    let Some(frame) = course.frames.last() else {
        return "there is none".into();
    };
    let mut day = None;
    let absent = absent(course).map_or(String::new(), |told| format!("; {told}"));
    format!(
        "{} UTC: {}{absent}",
        moment(frame.at, &mut day),
        state(frame, !course.redis.is_empty())
    )
}

/// What came after the last capture: nothing could be read any more.
fn unreached(course: &Course, gaps: &[Gap], server: Option<&str>) -> Option<String> {
    let (_, last) = course.span()?;
    let is_later = |gap: &&Gap| {
        gap.is_capture() && gap.at > last && (server.is_none() || gap.server.as_deref() == server)
    };
    let later: Vec<&Gap> = gaps.iter().filter(is_later).collect();
    let (first, end) = (later.first()?, later.last()?);
    let mut day = Some(last.utc().date_naive());
    let since = moment(first.at, &mut day);
    let attempts = match later.len() {
        1 => "1 attempt".to_owned(),
        n => format!("{n} attempts, until {}", moment(end.at, &mut day)),
    };
    let why = end.reason();
    let unknown = match why.starts_with("no connection") {
        true => ". Whether it was stopped or failed, and whether it is back, isn't known here",
        false => "",
    };
    Some(format!(
        "since {since} it couldn't be captured ({attempts}): {why}{unknown}"
    ))
}

/// What was changed meanwhile and stands at the last capture: somebody has to set it back, or to decide that it stays.
fn left_changed(course: &Course) -> Option<String> {
    let standing = course.server.standing();
    (!standing.is_empty()).then(|| standing.join("; "))
}

/// Applications that had sessions at the worst and have none at the last capture: room may be there for want of them.
fn absent(course: &Course) -> Option<String> {
    let peak = course.peak.as_ref()?;
    let worst = course.frames.iter().find(|frame| frame.at == peak.at)?;
    let last = course.frames.last()?;
    if course.trouble.is_none() || last.states.is_none() || last.other_applications > 0 {
        return None;
    }
    let is_there = |name: &str| last.applications.iter().any(|(is, n)| is == name && *n > 0);
    let named = worst
        .applications
        .iter()
        .filter(|(name, _)| !name.is_empty());
    let gone = named.filter(|(name, _)| !is_there(name));
    let gone: Vec<String> = gone
        .map(|(name, n)| format!("{name} (it had {n})"))
        .collect();
    (!gone.is_empty()).then(|| format!("NO SESSION of {}", gone.join(", ")))
}

/// How it stood in one capture.
fn state(frame: &Frame, with_redis: bool) -> String {
    let mut parts = Vec::new();
    match frame.slots {
        Some(slots) => {
            parts.push(format!(
                "{}{}",
                slots.words(),
                share(slots.used, slots.usable)
            ));
        }
        None => parts.push("how many slots were taken couldn't be read".into()),
    }
    match frame.blocked {
        Some(0) => parts.push("no session waits for a lock".into()),
        Some(n) => parts.push(format!("{} blocked", count(n, "session"))),
        None => parts.push("who was blocked couldn't be read".into()),
    }
    if let Some(age) = frame.oldest_transaction.filter(|age| *age > Millis(0)) {
        parts.push(format!("oldest transaction {age}"));
    }
    let found: Vec<String> = frame
        .troubles()
        .iter()
        .map(|(id, severity)| format!("{} ({id}, {})", in_words(*id), severity.word()))
        .collect();
    parts.push(match (found.is_empty(), frame.is_judged()) {
        (true, true) => "nothing found at warning or above".into(),
        (true, false) => "it can't be judged".into(),
        (false, _) => format!("still found: {}", found.join(", ")),
    });
    match &frame.redis {
        None if with_redis => parts.push("Redis wasn't looked at then".into()),
        Some(redis) if !redis.is_whole => parts.push("not all of Redis was seen".into()),
        _ => {}
    }
    parts.join(", ")
}
