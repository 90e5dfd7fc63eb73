//! The results of `capture` and `bundle …`, as text and as JSON of the same values.

use std::fmt::Write as _;

use serde::Serialize;

use crate::analysis::compare::{Change, Comparison};
use crate::analysis::glance::Glance;
use crate::model::{Millis, RedactionLevel, Target, Timestamp, count};
use crate::view::console::Style;
use crate::view::header::identity;
use crate::view::layout::{Column, table};
use crate::view::reports::wrap;
use crate::view::sanitize::{clean, width};

/// What couldn't be had.
#[derive(Clone, Debug, Serialize)]
pub struct Missing {
    pub at: Timestamp,
    /// The last time, where one entry is several times in a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    #[serde(skip_serializing_if = "is_once")]
    pub times: usize,
    pub what: String,
    pub why: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_once(times: &usize) -> bool {
    *times == 1
}

/// What a capture came to.
#[derive(Clone, Debug, Serialize)]
pub struct Captured {
    pub schema: &'static str,
    /// Where it is.
    pub path: String,
    pub sealed: bool,
    pub sha256: Option<String>,
    /// On disk.
    pub bytes: u64,
    pub target: Target,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    pub redaction: RedactionLevel,
    pub frames: usize,
    /// The frame with the most waiting and taken; `null` where there is none.
    pub worst: Option<Glance>,
    /// `null`: all that was asked for is there.
    pub why_partial: Option<String>,
    pub gaps: Vec<Missing>,
    pub next: Vec<String>,
}

/// A frame by its number, which `--at` takes.
#[derive(Clone, Debug, Serialize)]
pub struct ShownFrame {
    pub number: usize,
    #[serde(flatten)]
    pub seen: Glance,
}

/// A report of Redis that is in it.
#[derive(Clone, Debug, Serialize)]
pub struct ShownReport {
    pub report: String,
    pub at: Timestamp,
}

/// A rule of the gate that was passed over, why, and how many places it had found.
#[derive(Clone, Debug, Serialize)]
pub struct ShownAllowance {
    pub rule: String,
    pub reason: String,
    pub places: usize,
}

/// What is in a bundle.
#[derive(Clone, Debug, Serialize)]
pub struct Shown {
    pub schema: &'static str,
    pub path: String,
    pub sealed: bool,
    pub stanch: String,
    pub target: Target,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub redaction: RedactionLevel,
    pub why_partial: Option<String>,
    pub frames: Vec<ShownFrame>,
    pub redis: Vec<ShownReport>,
    pub logs: usize,
    pub gaps: Vec<Missing>,
    pub allowed: Vec<ShownAllowance>,
    /// Addresses, logins, databases and applications are tokens.
    pub tokens: bool,
    pub next: Vec<String>,
}

/// What `verify` found.
#[derive(Clone, Debug, Serialize)]
pub struct Verified {
    pub schema: &'static str,
    pub path: String,
    pub sha256: Option<String>,
    pub files: usize,
    pub bytes: u64,
    pub sealed: bool,
    pub redaction: RedactionLevel,
    pub whole: bool,
    pub faults: Vec<String>,
    pub secrets: Vec<String>,
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KiB", bytes.div_ceil(1 << 10)),
        _ => format!("{} MiB", bytes.div_ceil(1 << 20)),
    }
}

fn time(at: Timestamp) -> String {
    at.utc().format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

fn clock(at: Timestamp) -> String {
    at.utc().format("%H:%M:%S").to_string()
}

/// With its day, where that is another than the one beside it.
fn clock_beside(at: Timestamp, other: Timestamp) -> String {
    match at.utc().date_naive() == other.utc().date_naive() {
        true => clock(at),
        false => day_and_clock(at),
    }
}

/// As `--at` takes it.
fn day_and_clock(at: Timestamp) -> String {
    at.utc().format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// `label` padded, so that what is said of each stands in one column.
fn line(out: &mut String, label: &str, text: &str, style: Style) {
    const LABEL: usize = 10;
    let text = clean(text);
    // A command and a digest are for pasting: they are never broken.
    let fits = style.width.is_none_or(|most| width(&text) + LABEL <= most);
    if fits || matches!(label, "next" | "" | "sha256") {
        let _ = writeln!(out, "{label:<9} {text}");
        return;
    }
    let wrapped = wrap(&text, style.width.unwrap_or(usize::MAX), LABEL);
    let _ = write!(out, "{label:<9} {}", wrapped.trim_start());
}

fn redaction(level: RedactionLevel) -> &'static str {
    match level {
        RedactionLevel::Redacted => "values in statements and what looks secret were taken out",
        RedactionLevel::None => "NOT REDACTED: values in statements and names are as they were",
    }
}

fn missing(out: &mut String, gaps: &[Missing], style: Style) {
    /// More are in the JSON.
    const TOLD: usize = 10;
    if gaps.is_empty() {
        return;
    }
    // What was missing round after round is one.
    let mut alike: Vec<(&Missing, Timestamp, usize)> = Vec::new();
    for gap in gaps {
        match alike.last_mut() {
            Some((first, last, times)) if (&first.what, &first.why) == (&gap.what, &gap.why) => {
                (*last, *times) = (gap.until.unwrap_or(gap.at), *times + gap.times);
            }
            _ => alike.push((gap, gap.until.unwrap_or(gap.at), gap.times)),
        }
    }
    // Times of several days have their days.
    let first = gaps[0].at;
    let over_days = gaps
        .iter()
        .any(|gap| gap.at.utc().date_naive() != first.utc().date_naive());
    let clock = if over_days { day_and_clock } else { clock };
    let columns = [
        Column::text("at"),
        Column::text("missing"),
        Column::text("why").flex(20),
    ];
    let rows = alike
        .iter()
        .take(TOLD)
        .map(|(gap, last, times)| {
            let (at, what) = match times {
                1 => (clock(gap.at), clean(&gap.what)),
                n => (
                    format!("{} to {}", clock(gap.at), clock(*last)),
                    format!("{} ({n} times)", clean(&gap.what)),
                ),
            };
            vec![at, what, clean(&gap.why)]
        })
        .collect();
    let _ = write!(out, "\n{}", table(&columns, rows, style.width));
    if alike.len() > TOLD {
        let _ = writeln!(out, "and {} more (--json has all)", alike.len() - TOLD);
    }
}

fn next(out: &mut String, commands: &[String], style: Style) {
    for (n, command) in commands.iter().enumerate() {
        line(out, if n == 0 { "next" } else { "" }, command, style);
    }
}

/// `91 of 97 slots taken, 41 waiting for locks, oldest transaction 4m 05s`
fn words(glance: &Glance) -> String {
    let mut parts = Vec::new();
    if let Some(used) = glance.used {
        let of = glance
            .usable
            .map_or(String::new(), |of| format!(" of {of}"));
        let most = if glance.used_is_at_most {
            "at most "
        } else {
            ""
        };
        parts.push(format!("{most}{used}{of} slots taken"));
    }
    if let Some(waiting) = glance.waiting.filter(|waiting| *waiting > 0) {
        parts.push(format!("{waiting} waiting for locks"));
    }
    if let Some(age) = glance.oldest_transaction_ms {
        parts.push(format!("oldest transaction {age}"));
    }
    if parts.is_empty() {
        return "nothing could be read".into();
    }
    parts.join(", ")
}

/// What a capture came to, for a person.
pub fn captured(result: &Captured, style: Style) -> String {
    let mut out = format!("{}\n", style.strong(&identity(&result.target)));
    let how = if result.sealed { "" } else { ", a folder" };
    line(
        &mut out,
        "bundle",
        &format!("{} ({}{how})", result.path, size(result.bytes)),
        style,
    );
    if let Some(sha256) = &result.sha256 {
        line(&mut out, "sha256", sha256, style);
    }
    let frames = count(result.frames, "frame");
    let span = format!(
        "{frames}, {} to {}",
        time(result.started_at),
        clock_beside(result.ended_at, result.started_at)
    );
    line(&mut out, "frames", &span, style);
    if let Some(worst) = &result.worst {
        line(
            &mut out,
            "worst",
            &format!(
                "{}: {}",
                clock_beside(worst.at, result.started_at),
                words(worst)
            ),
            style,
        );
    }
    if let Some(why) = &result.why_partial {
        line(&mut out, "partial", why, style);
    }
    line(&mut out, "redaction", redaction(result.redaction), style);
    missing(&mut out, &result.gaps, style);
    if !result.gaps.is_empty() {
        out.push('\n');
    }
    next(&mut out, &result.next, style);
    out
}

/// What is in a bundle, for a person.
pub fn shown(result: &Shown, style: Style) -> String {
    let mut out = format!("{}\n", style.strong(&identity(&result.target)));
    let what = match (result.sealed, result.stanch.as_str()) {
        // A file of its own doesn't say by what.
        (_, "") => "one saved snapshot".to_owned(),
        (true, by) => format!("sealed, by stanch {by}"),
        (false, by) => format!("a folder, by stanch {by}"),
    };
    let text = format!("{} ({what})", result.path);
    line(&mut out, "bundle", &text, style);
    let ended = result.ended_at;
    let ended = ended.map_or("?".into(), |at| clock_beside(at, result.started_at));
    line(
        &mut out,
        "time",
        &format!("{} to {ended}", time(result.started_at)),
        style,
    );
    if let Some(why) = &result.why_partial {
        line(&mut out, "partial", why, style);
    }
    line(&mut out, "redaction", redaction(result.redaction), style);
    for ShownAllowance { rule, reason, .. } in &result.allowed {
        line(&mut out, "allowed", &format!("{rule}: {reason}"), style);
    }
    if result.tokens {
        line(
            &mut out,
            "tokens",
            "addresses, logins, databases and applications are tokens",
            style,
        );
    }
    if !result.redis.is_empty() {
        let reports: Vec<String> = result
            .redis
            .iter()
            .map(|report| {
                let at = clock_beside(report.at, result.started_at);
                format!("{} {at}", report.report)
            })
            .collect();
        line(&mut out, "redis", &reports.join(", "), style);
    }
    if result.logs > 0 {
        line(&mut out, "logs", &count(result.logs, "log"), style);
    }
    missing(&mut out, &result.gaps, style);
    frames(&mut out, &result.frames, style);
    next(&mut out, &result.next, style);
    out
}

fn frames(out: &mut String, frames: &[ShownFrame], style: Style) {
    if frames.is_empty() {
        return;
    }
    let columns = [
        Column::number("#"),
        Column::text("time (UTC)"),
        Column::number("used"),
        Column::number("usable"),
        Column::number("active"),
        Column::number("idle in xact"),
        Column::number("idle").drop(1),
        Column::number("other").drop(2),
        Column::number("waiting"),
        Column::number("oldest tx"),
        Column::text("not read").flex(8),
    ];
    let day = |frame: &ShownFrame| frame.seen.at.utc().date_naive();
    let over_days = frames.iter().any(|frame| day(frame) != day(&frames[0]));
    let clock = if over_days { day_and_clock } else { clock };
    let number = |value: Option<usize>| value.map_or("?".into(), |value| value.to_string());
    let age = |age: Option<Millis>| age.map_or("-".into(), |age| age.to_string());
    let rows = frames
        .iter()
        .map(
            |ShownFrame {
                 number: n,
                 seen: frame,
             }| {
                vec![
                    n.to_string(),
                    clock(frame.at),
                    number(frame.used),
                    number(frame.usable),
                    number(frame.active),
                    number(frame.idle_in_transaction),
                    number(frame.idle),
                    number(frame.other),
                    number(frame.waiting),
                    age(frame.oldest_transaction_ms),
                    frame.failed.join(" "),
                ]
            },
        )
        .collect();
    let _ = writeln!(out, "\n{}", table(&columns, rows, style.width));
}

/// What `verify` found, for a person.
pub fn verified(result: &Verified, style: Style) -> String {
    let sound = result.faults.is_empty() && result.secrets.is_empty();
    let verdict = match (sound, result.redaction, result.sealed) {
        (true, RedactionLevel::Redacted, true) => {
            "as it was sealed, and nothing secret was found in it"
        }
        (true, RedactionLevel::Redacted, false) => {
            "readable, and nothing secret was found in it; it was never sealed"
        }
        (true, RedactionLevel::None, true) => "as it was sealed, and NOT REDACTED",
        (true, RedactionLevel::None, false) => "readable, NOT REDACTED, and never sealed",
        (false, ..) => "NOT as it should be",
    };
    let mut out = format!("{}: {}\n", clean(&result.path), style.strong(verdict));
    if let Some(sha256) = &result.sha256 {
        line(&mut out, "sha256", sha256, style);
    }
    let files = format!("{}, {}", count(result.files, "file"), size(result.bytes));
    line(&mut out, "files", &files, style);
    for fault in &result.faults {
        line(&mut out, "fault", fault, style);
    }
    for secret in &result.secrets {
        line(&mut out, "secret", secret, style);
    }
    out
}

/// What is otherwise, for a person.
pub fn compared(result: &Comparison, style: Style) -> String {
    let mut out = String::new();
    line(
        &mut out,
        "before",
        &format!("{}: {}", time(result.before.at), words(&result.before)),
        style,
    );
    line(
        &mut out,
        "after",
        &format!("{}: {}", time(result.after.at), words(&result.after)),
        style,
    );
    changes(&mut out, "finding", &result.findings, style);
    changes(&mut out, "setting", &result.changes, style);
    if !result.sessions.is_empty() {
        let columns = [
            Column::text("user").shrink(6),
            Column::text("database").shrink(6),
            Column::text("application").flex(8),
            Column::number("before"),
            Column::number("after"),
            Column::number("new"),
            Column::number("gone"),
        ];
        let text = |text: &Option<String>| text.as_deref().map_or("-".into(), clean);
        let rows = result
            .sessions
            .iter()
            .map(|row| {
                vec![
                    text(&row.user),
                    text(&row.database),
                    text(&row.application_name),
                    row.before.to_string(),
                    row.after.to_string(),
                    row.new.to_string(),
                    row.gone.to_string(),
                ]
            })
            .collect();
        let _ = write!(out, "\n{}", table(&columns, rows, style.width));
    }
    if !result.deadlocks.is_empty() {
        let columns = [
            Column::text("deadlocks in").flex(10),
            Column::number("before"),
            Column::number("after"),
            Column::number("new"),
        ];
        let rows = result.deadlocks.iter().map(|one| {
            let (after, new) = (one.deadlocks.unwrap_or(0), one.grown.unwrap_or(0));
            let numbers = [after - new, after, new].map(|n| n.to_string());
            std::iter::once(clean(&one.database))
                .chain(numbers)
                .collect()
        });
        let _ = write!(out, "\n{}", table(&columns, rows.collect(), style.width));
    }
    let same = result.findings.is_empty()
        && result.changes.is_empty()
        && result.sessions.is_empty()
        && result.deadlocks.is_empty();
    if same {
        let _ = writeln!(out, "\nno other difference");
    }
    if !result.still_in_transaction.is_empty() {
        let pids: Vec<String> = result
            .still_in_transaction
            .iter()
            .map(ToString::to_string)
            .collect();
        let _ = writeln!(out, "\nin the same transaction in both: {}", pids.join(" "));
    }
    out
}

fn changes(out: &mut String, what: &str, changes: &[Change], style: Style) {
    if changes.is_empty() {
        return;
    }
    let columns = [
        Column::text(what),
        Column::text("before").flex(10),
        Column::text("after").flex(10),
    ];
    let text = |text: &Option<String>| text.as_deref().map_or("-".into(), clean);
    let rows = changes
        .iter()
        .map(|change| {
            vec![
                clean(&change.what),
                text(&change.before),
                text(&change.after),
            ]
        })
        .collect();
    let _ = write!(out, "\n{}", table(&columns, rows, style.width));
}
