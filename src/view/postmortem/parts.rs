//! The generated parts as Markdown. Each begins with its heading and is empty where there is nothing to say.

use std::fmt::Write as _;

use chrono::NaiveDate;

use super::charts::{blocks, charts as pictures, per_block, told};
use super::escape::{cell, code, fenced, table, text};
use crate::model::{Millis, Severity, Timestamp, count};
use crate::postmortem::{Bounds, Came, Entry, Frame, Match, Postmortem, Run, Supply};
use crate::view::console::Style;
use crate::view::reports::Table as _;
use crate::view::sanitize::{clean, cut, width};

const LEFT: bool = false;
const RIGHT: bool = true;

/// Rows of captures that a table shows.
const MOST_ROWS: usize = 16;

/// A time; with its day where that is another than the one before.
struct Clock(Option<NaiveDate>);

impl Clock {
    fn tell(&mut self, at: Timestamp) -> String {
        let day = at.utc().date_naive();
        match self.0.replace(day) == Some(day) {
            true => at.utc().format("%H:%M:%S").to_string(),
            false => at.utc().format("%Y-%m-%d %H:%M:%S").to_string(),
        }
    }

    fn maybe(&mut self, at: Option<Timestamp>, none: &str) -> String {
        at.map_or_else(|| none.to_owned(), |at| self.tell(at))
    }
}

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
            &format!("**Partial**: {partial}. What isn't in it isn't known, and isn't nothing."),
        );
    }
    if !of.gaps.is_empty() {
        let line = format!(
            "**{}** in the captures: see the timeline.",
            count(of.gaps.len(), "gap")
        );
        alert(&mut out, "NOTE", &line);
    }
    // Parts that weren't read for the same reason are told together.
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
            "{} couldn't be read in {captures} of {}: {}.",
            parts.join(", "),
            count(of.course.frames.len(), "capture"),
            text(why)
        );
        alert(&mut out, "NOTE", &line);
    }
    match out.trim_end() {
        "" => String::new(),
        text => format!("{text}\n"),
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

/// As a sentence begins.
fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        format!("{}{}", first.to_uppercase(), chars.as_str())
    })
}

/// From when to when each finding was seen.
pub fn found(of: &Postmortem) -> String {
    if of.course.seen.is_empty() {
        return String::new();
    }
    let total = of.course.frames.len();
    let mut out = String::from(
        "## Bounds of the impact\n\nWhat lies between two captures isn't known: each finding began after the second column, was seen \
         from the third to the fourth, and was over by the fifth. Times are UTC, by the server's clock.\n\n",
    );
    let mut clock = Clock(None);
    let rows: Vec<Vec<String>> = of
        .course
        .seen
        .iter()
        .map(|seen| {
            let Bounds {
                not_before,
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
                clock.maybe(not_before, "not known"),
                clock.tell(first),
                clock.tell(last),
                clock.maybe(not_after, "not over at the last capture"),
                format!("{} of {total}{breaks}", seen.captures),
                cell(&seen.title),
            ]
        })
        .collect();
    let head = [
        ("finding", LEFT),
        ("began after", LEFT),
        ("first seen", LEFT),
        ("last seen", LEFT),
        ("over by", LEFT),
        ("captures", LEFT),
        ("at its worst", LEFT),
    ];
    out.push_str(&table(&head, &rows));
    out
}

pub fn timeline(of: &Postmortem) -> String {
    if of.timeline.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "## Timeline\n\nTimes are UTC: captures and the log by the server's clock, the journal by the clock of the machine that acted. \
         _Reconstructed_: nobody saw it at that moment, the server told of it later.\n\n",
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
    let from = clock.tell(entry.at);
    let until = entry
        .until
        .map_or(String::new(), |until| format!(" – {}", clock.tell(until)));
    let what = cell(&entry.what);
    vec![
        format!("{from}{until}"),
        entry.source.word().to_owned(),
        entry.known.word().to_owned(),
        if entry.is_loud {
            format!("**{what}**")
        } else {
            what
        },
    ]
}

/// Lines of blocks, and a few captures as numbers.
pub fn charts(of: &Postmortem) -> String {
    let frames = &of.course.frames;
    if frames.is_empty() {
        return String::new();
    }
    let mut out = String::from("## Course\n\n");
    let all = pictures(of);
    if frames.len() > 1 && !all.is_empty() {
        let lines: Vec<(String, String, String)> = all
            .iter()
            .flat_map(|chart| {
                let most = chart.series.iter().filter_map(|s| Some(s.peak()?.1));
                let top = chart
                    .limit
                    .iter()
                    .filter_map(|s| Some(s.peak()?.1))
                    .chain(most)
                    .fold(0.0, f64::max);
                let series = chart.series.iter().map(move |series| {
                    let name = cut(&clean(&series.name), 30);
                    (
                        name,
                        blocks(&series.values, top),
                        told(series, &chart.times, chart.unit),
                    )
                });
                let of = chart
                    .limit
                    .as_ref()
                    .and_then(|limit| limit.peak())
                    .map_or(String::new(), |(_, slots)| {
                        format!(" (full height: {slots:.0} usable slots)")
                    });
                std::iter::once((format!("{}{of}", chart.title), String::new(), String::new()))
                    .chain(series)
            })
            .collect();
        let names = lines
            .iter()
            .filter(|(_, blocks, _)| !blocks.is_empty())
            .map(|(name, ..)| width(name))
            .max()
            .unwrap_or(0);
        let mut drawn = String::new();
        for (name, blocks, told) in &lines {
            if blocks.is_empty() {
                let _ = writeln!(drawn, "{}{name}", if drawn.is_empty() { "" } else { "\n" });
            } else {
                let pad = " ".repeat(names.saturating_sub(width(name)));
                let _ = writeln!(drawn, "  {name}{pad}  │{blocks}│ {told}");
            }
        }
        let (first, last) = (frames[0].at, frames[frames.len() - 1].at);
        let each = match per_block(all[0].times.len()) {
            1 if all[0].times.len() == frames.len() => "one column a capture".to_owned(),
            _ => "several captures a column, at their most".to_owned(),
        };
        let mut clock = Clock(None);
        let _ = write!(
            out,
            "{} to {} UTC, {each}.\n\n{}\n",
            clock.tell(first),
            clock.tell(last),
            fenced(&drawn)
        );
    }
    out.push_str(&numbers(frames));
    out
}

/// The first, the last, the fullest, and some in between.
fn numbers(frames: &[Frame]) -> String {
    let peak = frames
        .iter()
        .enumerate()
        .max_by_key(|(n, frame)| (frame.slots.map(|s| s.used), std::cmp::Reverse(*n)));
    let peak = peak.map_or(0, |(n, _)| n);
    let last = frames.len() - 1;
    let mut shown: Vec<usize> = match frames.len() <= MOST_ROWS {
        true => (0..frames.len()).collect(),
        false => (0..MOST_ROWS)
            .map(|n| n * last / (MOST_ROWS - 1))
            .chain([peak])
            .collect(),
    };
    shown.sort_unstable();
    shown.dedup();
    let mut clock = Clock(None);
    let number = |n: Option<usize>| n.map_or_else(|| "?".into(), |n| n.to_string());
    let rows: Vec<Vec<String>> = shown
        .iter()
        .map(|n| {
            let frame = &frames[*n];
            let states = frame.states;
            let used = frame.slots.map_or_else(
                || "?".into(),
                |slots| {
                    format!(
                        "{}{} of {}",
                        if slots.at_most { "≤ " } else { "" },
                        slots.used,
                        slots.usable
                    )
                },
            );
            vec![
                clock.tell(frame.at),
                used,
                number(states.map(|s| s.active)),
                number(states.map(|s| s.idle_in_transaction + s.aborted)),
                number(states.map(|s| s.idle)),
                age(frame.oldest_transaction, frame.states.is_some()),
                number(frame.blocked),
                age(frame.longest_wait, frame.blocked.is_some()),
            ]
        })
        .collect();
    let head = [
        ("time (UTC)", LEFT),
        ("slots taken", RIGHT),
        ("active", RIGHT),
        ("idle in transaction", RIGHT),
        ("idle", RIGHT),
        ("oldest transaction", RIGHT),
        ("blocked", RIGHT),
        ("longest wait", RIGHT),
    ];
    table(&head, &rows)
}

/// `-` is none, `?` is not read.
fn age(age: Option<Millis>, read: bool) -> String {
    match (age, read) {
        (Some(age), _) => age.to_string(),
        (None, true) => "-".into(),
        (None, false) => "?".into(),
    }
}

/// Who held the connections when most were taken, and who blocked whom when most waited.
pub fn worst(of: &Postmortem) -> String {
    let mut out = String::new();
    if let Some(peak) = &of.course.peak {
        let _ = write!(
            out,
            "## At its worst\n\n### Who held the connections\n\nAt {} UTC: {}; max_connections {}, less {} for superusers and {} reserved.\n\n",
            Clock(None).tell(peak.at),
            peak.capacity.words(),
            peak.capacity.max_connections,
            peak.capacity.superuser_reserved,
            peak.capacity.reserved
        );
        let name = |name: &Option<String>, none: &str| match name.as_deref().unwrap_or_default() {
            "" => none.to_owned(),
            name => code(name, true),
        };
        let rows: Vec<Vec<String>> = peak
            .groups
            .iter()
            .map(|group| {
                vec![
                    name(&group.user, "(hidden)"),
                    name(&group.database, "-"),
                    name(&group.application_name, "(no name)"),
                    name(&group.client_addr, "socket"),
                    group.total.to_string(),
                    group.active.to_string(),
                    (group.idle_in_transaction + group.idle_in_transaction_aborted).to_string(),
                    group.idle.to_string(),
                    (group.other + group.hidden).to_string(),
                ]
            })
            .collect();
        let head = [
            ("user", LEFT),
            ("database", LEFT),
            ("application", LEFT),
            ("client", LEFT),
            ("connections", RIGHT),
            ("active", RIGHT),
            ("idle in transaction", RIGHT),
            ("idle", RIGHT),
            ("other or hidden", RIGHT),
        ];
        out.push_str(&table(&head, &rows));
        let shown: usize = peak.groups.iter().map(|group| group.total).sum();
        let rest = (peak.capacity.used as usize).saturating_sub(shown);
        if rest > 0 {
            let _ = write!(
                out,
                "\nand {} of smaller groups\n",
                count(rest, "connection")
            );
        }
    }
    if let Some(forest) = &of.course.forest {
        let heading = if out.is_empty() {
            "## At its worst\n\n"
        } else {
            "\n"
        };
        let plain = Style {
            width: None,
            height: None,
            color: false,
            verbose: false,
        };
        let report = &forest.report;
        let tree = report.data.table(&report.head, plain);
        let lines: Vec<String> = tree.lines().filter_map(then).collect();
        let _ = write!(
            out,
            "{heading}### Who blocked whom\n\nAt {} UTC, the session at the root first:\n\n{}",
            Clock(None).tell(report.head.taken_at),
            fenced(&lines.join("\n"))
        );
    }
    out
}

/// A line of the forest as it is told later: what could have been done, without the commands, whose sessions are gone.
fn then(line: &str) -> Option<String> {
    let bare = line.trim_start();
    if bare.starts_with("psql ") || bare.starts_with("or psql ") {
        return None;
    }
    let line = match (line.strip_prefix("   do: "), line.strip_prefix("   lost: ")) {
        (Some(rest), _) => format!("   what would have freed them: {rest}"),
        (_, Some(rest)) => format!("   what would have been lost: {rest}"),
        _ => line.to_owned(),
    };
    Some(cut(&line, 240))
}

pub fn causes(of: &Postmortem) -> String {
    let mut out = String::from("## Probable cause\n\n");
    if of.causes.is_empty() {
        out.push_str("Nothing that was measured speaks for one of the known causes.\n");
        return out;
    }
    out.push_str("What the evidence speaks for, the likeliest first. It is a suggestion and may be wrong: people decide below.\n\n");
    for (n, one) in of.causes.iter().enumerate() {
        let said = if one.measured {
            ""
        } else {
            " (said, not measured)"
        };
        let _ = writeln!(
            out,
            "{}. **{}**{said}",
            n + 1,
            text(&capital(one.cause.words()))
        );
        for line in &one.evidence {
            let _ = writeln!(out, "   - {}", text(line));
        }
    }
    out
}

pub fn drift(of: &Postmortem) -> String {
    let drift = &of.drift;
    let mut out = String::from("## Settings against the design\n\n");
    let mut clock = Clock(None);
    if let Some(at) = drift.at {
        let _ = write!(out, "As they were live at {} UTC. ", clock.tell(at));
    }
    match (&drift.design, &drift.no_design) {
        (Some(server), _) => {
            let off = drift
                .rows
                .iter()
                .filter(|row| row.verdict == Match::Differs)
                .count();
            let off = off
                + drift
                    .workloads
                    .iter()
                    .filter(|row| row.verdict == Match::Differs)
                    .count();
            let _ = write!(
                out,
                "The design is that of {} in the budget: {}.\n\n",
                code(server, false),
                match off {
                    0 => "nothing is known to differ".to_owned(),
                    n => format!("**{n} differ**"),
                }
            );
        }
        (None, Some(why)) => {
            let _ = write!(
                out,
                "There is no design to compare with: {}.\n\n",
                text(why)
            );
        }
        (None, None) => {}
    }
    let verdict = |verdict: Match| match verdict {
        Match::Differs => "**differs**".to_owned(),
        other => other.word().to_owned(),
    };
    if !drift.rows.is_empty() {
        let rows: Vec<Vec<String>> = drift
            .rows
            .iter()
            .map(|row| {
                let was = row
                    .was
                    .as_ref()
                    .map_or(String::new(), |was| format!(" (at first {})", cell(was)));
                vec![
                    code(&row.what, true),
                    cell(row.declared_words()),
                    row.from
                        .as_ref()
                        .map_or(String::new(), |from| code(from, true)),
                    format!("{}{was}", cell(row.live_words())),
                    verdict(row.verdict),
                ]
            })
            .collect();
        let head = [
            ("setting", LEFT),
            ("designed", LEFT),
            ("declared in", LEFT),
            ("live", LEFT),
            ("verdict", LEFT),
        ];
        let _ = writeln!(out, "{}", table(&head, &rows));
    }
    if !drift.workloads.is_empty() {
        let rows: Vec<Vec<String>> = drift
            .workloads
            .iter()
            .map(|row| {
                vec![
                    code(&row.name, true),
                    row.designed
                        .map_or_else(|| "not known".into(), |n| n.to_string()),
                    row.most
                        .map_or_else(|| "not seen".into(), |n| n.to_string()),
                    clock.maybe(row.at, "-"),
                    verdict(row.verdict),
                ]
            })
            .collect();
        let head = [
            ("workload", LEFT),
            ("designed at most", RIGHT),
            ("most seen", RIGHT),
            ("at (UTC)", LEFT),
            ("verdict", LEFT),
        ];
        let _ = writeln!(out, "{}", table(&head, &rows));
    }
    if !drift.advice.is_empty() {
        out.push_str("What is advised whatever the design says:\n\n");
        let rows: Vec<Vec<String>> = drift
            .advice
            .iter()
            .map(|one| {
                vec![
                    code(&one.name, true),
                    cell(&one.words()),
                    cell(one.recommended.as_deref().unwrap_or("-")),
                    cell(&one.why),
                ]
            })
            .collect();
        out.push_str(&table(
            &[
                ("setting", LEFT),
                ("live", LEFT),
                ("advised", LEFT),
                ("why", LEFT),
            ],
            &rows,
        ));
    } else if drift.at.is_none() {
        out.push_str("No capture has the settings.\n");
    }
    format!("{}\n", out.trim_end())
}

pub fn done(of: &Postmortem) -> String {
    let mut out = String::from("## What was done\n\n");
    if of.runs.is_empty() {
        out.push_str("No journal was given (--journal), so what was done isn't known here.\n");
        return out;
    }
    let mut clock = Clock(None);
    for run in &of.runs {
        let dry = if run.dry_run {
            " (a dry run: nothing was really done)"
        } else {
            ""
        };
        let _ = write!(
            out,
            "### {}{dry}\n\nBy {} on {}, as {}, {} – {} UTC",
            text(&run.what),
            text(&run.operator),
            code(&run.target, false),
            code(&run.login, false),
            clock.tell(run.began),
            clock.tell(run.last)
        );
        if run.resumed > 0 {
            let _ = write!(out, ", resumed {}", count(run.resumed, "time"));
        }
        match &run.end {
            Some(end) => {
                let _ = write!(out, ". It ended: {}.", text(end));
            }
            None => {
                out.push_str(". **The journal has no end**: it was interrupted, or still goes on.")
            }
        }
        let _ = write!(out, " In sum: {}.\n\n", text(&run.sum()));
        acts(&mut out, run, &mut clock);
        if !run.left.is_empty() {
            let left: Vec<String> = run
                .left
                .iter()
                .map(|(pid, why)| format!("pid {pid} ({})", text(why)))
                .collect();
            let _ = write!(out, "Left alone by the guard: {}.\n\n", left.join(", "));
        }
        for why in &run.not_confirmed {
            let _ = write!(out, "Not confirmed, so not done: {}.\n\n", text(why));
        }
    }
    format!("{}\n", out.trim_end())
}

fn acts(out: &mut String, run: &Run, clock: &mut Clock) {
    if run.acts.is_empty() {
        return;
    }
    let rows: Vec<Vec<String>> = run
        .acts
        .iter()
        .map(|act| {
            let came = cell(&act.came.words());
            let is_fault = !act.came.is_well() && !matches!(act.came, Came::SeenLater { .. });
            vec![
                clock.tell(act.at),
                act.step
                    .as_ref()
                    .map_or(String::new(), |step| code(step, true)),
                cell(&act.what),
                act.who.as_ref().map_or(String::new(), |who| cell(who)),
                if is_fault {
                    format!("**{came}**")
                } else {
                    came
                },
            ]
        })
        .collect();
    let head = [
        ("time (UTC)", LEFT),
        ("step", LEFT),
        ("effect", LEFT),
        ("who it was", LEFT),
        ("what came of it", LEFT),
    ];
    let _ = writeln!(out, "{}", table(&head, &rows));
}

/// Where a walk left the book's straight way.
pub fn departures(of: &Postmortem) -> String {
    let mut out = String::from("## The runbook\n\n");
    if of.departures.is_empty() && of.unreached.is_empty() {
        out.push_str("No runbook was walked, or its journal wasn't given.\n");
        return out;
    }
    if of.departures.is_empty() {
        out.push_str("Nothing was left out, failed, or ran out of time.\n\n");
    } else {
        let rows: Vec<Vec<String>> = of
            .departures
            .iter()
            .map(|one| {
                vec![
                    code(&one.book, true),
                    code(&one.step, true),
                    cell(&one.title),
                    cell(&one.what),
                ]
            })
            .collect();
        let head = [
            ("runbook", LEFT),
            ("step", LEFT),
            ("title", LEFT),
            ("what happened there", LEFT),
        ];
        let _ = writeln!(out, "{}", table(&head, &rows));
    }
    for (book, steps) in of.unreached.iter().filter(|(_, steps)| !steps.is_empty()) {
        let steps: Vec<String> = steps.iter().map(|step| code(step, false)).collect();
        let _ = write!(
            out,
            "Steps of {} that no way led to: {}.\n\n",
            code(book, false),
            steps.join(", ")
        );
    }
    format!("{}\n", out.trim_end())
}

/// What all of it was made from.
pub fn sources(of: &Postmortem) -> String {
    let mut out = String::from("## Sources\n\n");
    if let Some(target) = &of.course.target {
        let _ = writeln!(
            out,
            "- server: {}, looked at as {}",
            code(&target.label(), false),
            code(&target.user, false)
        );
    }
    let alike = |a: &Supply, b: &Supply| (a.is_whole, a.is_redacted) == (b.is_whole, b.is_redacted);
    for group in of.supplies.chunk_by(alike) {
        let whole = if group[0].is_whole {
            ""
        } else {
            ", **partial**"
        };
        let redacted = if group[0].is_redacted {
            ", redacted"
        } else {
            ", **not redacted**"
        };
        let captures = group.iter().map(|supply| supply.captures).sum();
        let names = match group {
            [one] => code(&one.name, false),
            [first, .., last] => format!(
                "{} from {} to {}",
                count(group.len(), "file"),
                code(&first.name, false),
                code(&last.name, false)
            ),
            [] => continue,
        };
        let _ = writeln!(
            out,
            "- {names}: {}{whole}{redacted}",
            count(captures, "capture")
        );
    }
    for run in &of.runs {
        let _ = writeln!(
            out,
            "- journal: {}, begun {} UTC",
            text(&run.what),
            Clock(None).tell(run.began)
        );
    }
    for redaction in &of.course.redactions {
        let _ = writeln!(out, "- texts: {}", text(&redaction.rule));
    }
    if of.roles_only {
        out.push_str("- people are called by what they did; names in what they wrote are theirs to take out\n");
    }
    out.push_str(
        "\n_Written by `stanch report`. What stands between the `people` markers of the Markdown is people's: rendering it once more keeps \
         it. Everything else is made anew._\n",
    );
    out
}
