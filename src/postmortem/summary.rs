//! The incident in a few sentences, for somebody who wasn't there.

use chrono::NaiveDate;

use super::causes::Suggestion;
use super::course::Course;
use super::document::{Gap, Of};
use super::done::Run;
use super::found::Bounds;
use super::frame::{Frame, Slots};
use super::logged::Deadlocks;
use super::timeline::role;
use crate::model::{Millis, Percent, Timestamp, count};

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
        [one] => what(one.course, &logged),
        several => format!(
            "captures of {}{logged}. {}",
            count(several.len(), "server"),
            each(&|server| format!("{}{}", captured(server.course), what(server.course, "")))
        ),
    };
    let mut cause = each(&|server| cause(server.course, server.causes));
    if !of.said.is_empty() {
        let said: Vec<&str> = of.said.iter().map(|one| one.cause.words()).collect();
        cause.push_str(&format!(
            ". Journals and logs, of whichever server, speak for {}",
            said.join("; ")
        ));
    }
    vec![
        ("What", what),
        ("When", each(&|server| when(server.course))),
        ("How bad", how_bad_each(of)),
        ("Probable cause", cause),
        ("What was done", done(of.runs)),
        ("At the last capture", each(&|server| last(server.course))),
    ]
}

/// Of one server as it is; of several each with its name, and nothing of one with another's.
fn of_each(servers: &[Of<'_>], told: &dyn Fn(&Of<'_>) -> String) -> String {
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

fn how_bad_each(of: &Told<'_>) -> String {
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

fn what(course: &Course, logged: &str) -> String {
    let Some(target) = &course.target else {
        return format!(
            "no capture of a server was given; what follows is from journals and logs alone{logged}"
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
        .map(|seen| format!("{} ({})", seen.id, seen.severity.word()))
        .collect();
    let found = match found.is_empty() {
        true if course.frames.is_empty() => "no capture of it could be taken".into(),
        true => "nothing was found at warning or above".into(),
        false => format!("found: {}", found.join(", ")),
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
fn lasted(first: Timestamp, last: Timestamp, day: &mut Option<NaiveDate>) -> String {
    let told = stretch(first, last, day);
    match told.contains(" to ") {
        true => format!("from {told}"),
        false => format!("at {told}"),
    }
}

fn when(course: &Course) -> String {
    let Some((first, last)) = course.span() else {
        return "not known: there is no capture".into();
    };
    let mut day = None;
    let told = course.trouble.map_or_else(
        || "nothing at warning or above was found".to_owned(),
        |trouble| bounds(&trouble, &mut day),
    );
    let captures = match course.frames.len() {
        1 => format!("There is one capture, of {} UTC", moment(first, &mut day)),
        n => format!(
            "Looked at {n} times, {} UTC ({})",
            stretch(first, last, &mut day),
            first.age_at(last)
        ),
    };
    format!("{told}. {captures}")
}

/// `at least from A to B (1m 49s). It began …. It was over …`
pub(super) fn bounds(of: &Bounds, day: &mut Option<NaiveDate>) -> String {
    let span = match of.first == of.last {
        true => format!("seen once, at {} UTC", moment(of.first, day)),
        false => format!(
            "at least {} UTC ({}){}",
            lasted(of.first, of.last, day),
            of.first.age_at(of.last),
            if of.with_breaks { ", with breaks" } else { "" }
        ),
    };
    let began = match of.not_before {
        Some(before) => format!("It began after {}", moment(before, day)),
        None => "When it began isn't known: the first capture already has it".into(),
    };
    let ended = match of.not_after {
        Some(after) => format!("It was over by {}", moment(after, day)),
        None => "It wasn't over at the last capture".into(),
    };
    format!("{span}. {began}. {ended}")
}

/// Rounds that failed, by why: `9 rounds failed, 19:06:02 to 19:06:20 UTC: Connection refused`.
fn failed(gaps: &[&Gap], day: &mut Option<NaiveDate>) -> Vec<String> {
    let mut all: Vec<(&str, Vec<Timestamp>)> = Vec::new();
    for gap in gaps.iter().filter(|gap| gap.what == "frame") {
        let why = gap.why.lines().next().unwrap_or_default().trim();
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
        format!("{} failed, {when} UTC: {why}", count(times.len(), "round"))
    });
    told.collect()
}

fn how_bad(course: &Course, gaps: &[&Gap]) -> String {
    let mut day = course.span().map(|(first, _)| first.utc().date_naive());
    let mut parts = failed(gaps, &mut day);
    if course.frames.is_empty() && !parts.is_empty() {
        parts.push("what went on in the server isn't known".into());
    }
    if let Some(peak) = &course.peak {
        parts.push(format!(
            "{}{}, at {}",
            Slots::of(&peak.capacity).words(),
            share(peak.capacity.used, peak.capacity.usable),
            moment(peak.at, &mut day)
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
    if let Some(forest) = &course.forest {
        let data = &forest.report.data;
        let longest = data
            .longest_wait_ms
            .map_or(String::new(), |wait| format!(", the longest for {wait}"));
        parts.push(format!(
            "{} blocked{longest}, at {}",
            count(data.blocked, "session"),
            moment(forest.report.head.taken_at, &mut day)
        ));
    } else if course.frames.iter().any(|frame| frame.blocked.is_some()) {
        parts.push("nobody was blocked".into());
    }
    if let Some(oldest) = &course.oldest {
        parts.push(format!(
            "the oldest transaction was {} old ({})",
            oldest.age, oldest.who
        ));
    }
    if course.most_hidden > 0 {
        parts.push(format!(
            "what up to {} did was hidden from the login that looked",
            count(course.most_hidden, "session")
        ));
    }
    match parts.is_empty() {
        true => "not known: no capture could read it".into(),
        false => parts.join("; "),
    }
}

fn cause(course: &Course, causes: &[Suggestion]) -> String {
    let Some(first) = causes.first() else {
        return match course.trouble {
            Some(_) => "nothing that was measured speaks for one of the known causes".into(),
            None => "nothing was found, so nothing is suggested".into(),
        };
    };
    let first_words = match first.measured {
        true => format!("the evidence speaks for {}", first.cause.words()),
        false => format!("said, not measured: {}", first.cause.words()),
    };
    let others: Vec<&str> = causes[1..].iter().map(|one| one.cause.words()).collect();
    let others = match others.is_empty() {
        true => String::new(),
        false => format!("; also possible: {}", others.join("; ")),
    };
    format!("{first_words}{others}. It is a suggestion: people decide")
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
            |end| format!("it ended: {end}"),
        );
        let answers: Vec<String> = run
            .answers
            .iter()
            .map(|(step, answer)| format!("{step}: {answer}"))
            .collect();
        let answers = match answers.is_empty() {
            true => String::new(),
            false => format!("; answered {}", answers.join(", ")),
        };
        let held = run.held.as_ref().map_or(String::new(), |(at, awaited)| {
            format!("; at {} it was so: {awaited}", moment(*at, &mut day))
        });
        let unknown = match run.unknown() {
            0 => String::new(),
            n => format!(" THE OUTCOME OF {n} IS NOT KNOWN."),
        };
        // A command is called as it was typed.
        let what = match run.what.starts_with("pg ") {
            true => format!("stanch {}", run.what),
            false => capital(&run.what),
        };
        format!(
            "{what}{dry}, by {}, {span}: {}{answers}{held}; {end}.{unknown}",
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
    format!(
        "{} UTC: {}",
        moment(frame.at, &mut day),
        state(frame, !course.redis.is_empty())
    )
}

/// ` (90 %)` of the usable slots, never more than all.
fn share(used: u32, usable: u32) -> String {
    Percent::of(used.min(usable).into(), usable.into())
        .map_or(String::new(), |share| format!(" ({share})"))
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
        Some(0) => parts.push("nobody blocked".into()),
        Some(n) => parts.push(format!("{} blocked", count(n, "session"))),
        None => parts.push("who was blocked couldn't be read".into()),
    }
    if let Some(age) = frame.oldest_transaction.filter(|age| *age > Millis(0)) {
        parts.push(format!("oldest transaction {age}"));
    }
    let found: Vec<String> = frame
        .troubles()
        .iter()
        .map(|(id, severity)| format!("{id} ({})", severity.word()))
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
