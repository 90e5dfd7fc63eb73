//! What is read first: notices, the summary, the bounds and the timeline.

use std::fmt::Write as _;

use super::super::escape::{cell, code, table, text};
use super::course::heading;
use super::{Clock, LEFT, capital};
use crate::model::{Severity, count};
use crate::postmortem::{Bounds, Entry, Gap, Of, Postmortem, Run, Supply};

fn alert(out: &mut String, kind: &str, line: &str) {
    let _ = write!(out, "> [!{kind}]\n> {line}\n\n");
}

/// What has to be known before anything else.
pub fn notices(of: &Postmortem) -> String {
    let mut out = String::new();
    let named = |wanted: &dyn Fn(&Supply) -> bool| {
        let all: Vec<String> = of
            .supplies
            .iter()
            .filter(|s| wanted(s))
            .map(|s| code(&s.name, false))
            .collect();
        match all.len() {
            0..=3 => all.join(", "),
            n => format!("{n} files, {} to {}", all[0], all[n - 1]),
        }
    };
    let unknown: usize = of.runs.iter().map(Run::unknown).sum();
    if unknown > 0 {
        let line = format!(
            "**The outcome of {} isn't known**: the journal ends before the result. See \"What was done\".",
            count(unknown, "effect")
        );
        alert(&mut out, "CAUTION", &line);
    }
    let bare = named(&|supply| !supply.is_redacted);
    if !bare.is_empty() {
        let line = format!(
            "**Not redacted**: {bare}. Statements may hold data of customers; read it through before it is handed on."
        );
        alert(&mut out, "WARNING", &line);
    }
    let partial = named(&|supply| !supply.is_whole);
    if !partial.is_empty() {
        alert(
            &mut out,
            "WARNING",
            &format!(
                "**Partial**: {partial}. It ends early or isn't sealed; what it lacks is not known."
            ),
        );
    }
    if !of.gaps.is_empty() {
        let line = format!("**{}**: see the timeline.", missing(&of.gaps));
        alert(&mut out, "NOTE", &line);
    }
    let servers = of.servers();
    if servers.len() > 1 {
        let told: Vec<String> = servers.iter().map(seen).collect();
        let line = format!(
            "**{}**: {}. What is told of one is of that one alone, by its own clock.{}",
            count(servers.len(), "server"),
            told.join(", then "),
            match of.logs.is_empty() {
                true => "",
                false => " The timeline doesn't say of which one a line of a log is.",
            }
        );
        alert(&mut out, "NOTE", &line);
    }
    for server in &servers {
        unread(server, &mut out);
    }
    match out.trim_end() {
        "" => String::new(),
        text => format!("{text}\n"),
    }
}

/// `8 captures failed, and 1 other part is missing`
fn missing(gaps: &[Gap]) -> String {
    let failed = gaps.iter().filter(|gap| gap.is_capture()).count();
    let others = match gaps.len() - failed {
        0 => None,
        1 => Some("1 other part is missing".to_owned()),
        n => Some(format!("{n} other parts are missing")),
    };
    let failed = (failed > 0).then(|| format!("{} failed", count(failed, "capture")));
    let all: Vec<String> = failed.into_iter().chain(others).collect();
    all.join(", and ")
}

/// A server, and from when to when there are captures of it.
pub(super) fn seen(server: &Of<'_>) -> String {
    let name = code(&server.course.place(), false);
    let captures = count(server.course.frames.len(), "capture");
    match server.course.span() {
        None => format!("{name} (no capture)"),
        Some((first, last)) => {
            let when = Clock(None).stretch(first, last, "to");
            format!("{name} ({when} UTC, {captures})")
        }
    }
}

/// Parts that weren't read for the same reason are told together.
fn unread(of: &Of<'_>, out: &mut String) {
    let mut unread: Vec<(&str, usize, Vec<&str>)> = Vec::new();
    for ((part, why), captures) in &of.course.unread {
        match unread
            .iter_mut()
            .find(|(known, n, _)| known == why && n == captures)
        {
            Some((.., parts)) => parts.push(part),
            None => unread.push((why, *captures, vec![part])),
        }
    }
    for (why, captures, parts) in unread.iter().take(6) {
        let line = format!(
            "{}{} couldn't be read in {captures} of {}: {}.",
            of.name()
                .map_or(String::new(), |name| format!("{}: ", code(&name, false))),
            parts.join(", "),
            count(of.course.frames.len(), "capture"),
            text(why)
        );
        alert(out, "NOTE", &line);
    }
}

pub fn summary(of: &Postmortem) -> String {
    let mut out = String::from("## Summary\n\n");
    for (label, sentence) in &of.summary {
        let _ = writeln!(
            out,
            "- **{label}:** {}.",
            text(&capital(sentence.trim_end_matches('.')))
        );
    }
    out
}

/// From when to when each finding was seen.
pub fn found(of: &Postmortem) -> String {
    let servers = of.servers();
    let servers = servers
        .iter()
        .filter(|server| !server.course.seen.is_empty());
    let tables: Vec<String> = servers
        .map(|server| format!("{}{}", heading(server), found_on(server)))
        .collect();
    if tables.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "## What was found, and when\n\nTimes are UTC, by the server's clock. Between two captures nobody looked: it began after \
         the last one without it, or when its age says, and was over by the next one without it. _captures_: in how many of them it is.\n\n",
    );
    out.push_str(&tables.join("\n"));
    out
}

fn found_on(of: &Of<'_>) -> String {
    let total = of.course.frames.len();
    let mut clock = Clock(None);
    let rows: Vec<Vec<String>> = of
        .course
        .seen
        .iter()
        .map(|seen| {
            let Bounds {
                not_before,
                since,
                first,
                last,
                not_after,
                with_breaks,
            } = seen.bounds;
            let breaks = if with_breaks { ", with breaks" } else { "" };
            let severity = match seen.severity {
                Severity::Critical => "**critical**",
                other => other.word(),
            };
            vec![
                format!("{} ({severity})", code(seen.id.name(), true)),
                match (since, not_before) {
                    (Some(since), _) => format!("{}, by its age", clock.tell(since)),
                    (None, Some(before)) => format!("after {}", clock.tell(before)),
                    (None, None) => "not known".into(),
                },
                clock.tell(first),
                clock.tell(last),
                clock.maybe(not_after, "still there"),
                format!("{} of {total}{breaks}", seen.captures),
                cell(&seen.title),
            ]
        })
        .collect();
    let head = [
        ("finding", LEFT),
        ("began", LEFT),
        ("first seen", LEFT),
        ("last seen", LEFT),
        ("over by", LEFT),
        ("captures", LEFT),
        ("at its worst", LEFT),
    ];
    table(&head, &rows)
}

pub fn timeline(of: &Postmortem) -> String {
    if of.timeline.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "## Timeline\n\nTimes are UTC: captures and the log by the server's clock, the journal by the clock of the machine that acted. \
         _Reconstructed_: nobody saw it at that moment; the server told of it later, or two captures differ in it. \
         _Said_: by people during the run.\n\n",
    );
    let mut clock = Clock(None);
    let rows: Vec<Vec<String>> = of
        .timeline
        .iter()
        .map(|entry| row(entry, &mut clock))
        .collect();
    let head = [
        ("time (UTC)", LEFT),
        ("source", LEFT),
        ("known", LEFT),
        ("what", LEFT),
    ];
    out.push_str(&table(&head, &rows));
    if of.log_left_out > 0 {
        let _ = write!(
            out,
            "\n{} of the log with fewer repeats are left out.\n",
            count(of.log_left_out, "moment")
        );
    }
    out
}

fn row(entry: &Entry, clock: &mut Clock) -> Vec<String> {
    let when = clock.stretch(entry.at, entry.until.unwrap_or(entry.at), "–");
    let what = cell(&entry.what);
    vec![
        when,
        entry.source.word().to_owned(),
        entry.known.word().to_owned(),
        if entry.is_loud {
            format!("**{what}**")
        } else {
            what
        },
    ]
}
