//! How it went in numbers, and what it was like at its worst.

use std::fmt::Write as _;

use super::super::charts::{blocks, charts as pictures, per_block, told};
use super::super::escape::{code, fenced, table};
use super::{Clock, LEFT, RIGHT};
use crate::analysis::blocking::Root;
use crate::model::{Millis, Pid, count};
use crate::postmortem::{Act, Frame, Of, Postmortem, Run, Slots};
use crate::view::console::Style;
use crate::view::reports::Table as _;
use crate::view::sanitize::{clean, cut, width};

/// Lines of blocks, and a few captures as numbers.
pub fn charts(of: &Postmortem) -> String {
    let servers = of.servers();
    if servers.iter().all(|server| server.course.frames.is_empty()) {
        return String::new();
    }
    let told = servers.iter().enumerate().map(|(n, server)| {
        let drawn = match server.course.frames.is_empty() {
            true => "No capture of it could be taken.\n".to_owned(),
            false => drawn(of, n, &server.course.frames),
        };
        format!("{}{drawn}", heading(server))
    });
    format!("## In numbers\n\n{}", told.collect::<Vec<_>>().join("\n"))
}

/// Where there are several: which server it is.
pub(super) fn heading(of: &Of<'_>) -> String {
    of.name().map_or(String::new(), |name| {
        format!("### {}\n\n", code(&name, false))
    })
}

fn drawn(of: &Postmortem, server: usize, frames: &[Frame]) -> String {
    let mut out = String::new();
    let all = pictures(of, server);
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
                        blocks(&series.values, top, &chart.holes),
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
        let holes = match all[0].holes.is_empty() {
            true => "",
            false => "; ┊: nobody looked for a while, or captures failed",
        };
        let mut clock = Clock(None);
        let _ = write!(
            out,
            "{} UTC, {each}{holes}.\n\n{}\n",
            clock.stretch(first, last, "to"),
            fenced(&drawn)
        );
    }
    out.push_str(&numbers(frames));
    out
}

/// The captures at which something changes, and the peaks.
fn numbers(frames: &[Frame]) -> String {
    let shown = shown(frames);
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
                    let most = if slots.at_most { "≤ " } else { "" };
                    let reserved = match slots.used.saturating_sub(slots.usable) {
                        0 => String::new(),
                        n => format!(" + {n} kept"),
                    };
                    let used = slots.used.min(slots.usable);
                    format!("{most}{used} of {}{reserved}", slots.usable)
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
    let table = table(&head, &rows);
    match shown.len() < frames.len() {
        true => format!(
            "{table}\n{} of {}: where a number of sessions changes, and the peaks.\n",
            shown.len(),
            count(frames.len(), "capture")
        ),
        false => table,
    }
}

/// `-` is none, `?` is not read.
fn age(age: Option<Millis>, read: bool) -> String {
    match (age, read) {
        (Some(age), _) => age.to_string(),
        (None, true) => "-".into(),
        (None, false) => "?".into(),
    }
}

/// Rows of captures that a table shows.
const MOST_ROWS: usize = 16;

/// Of captures that are alike in all but ages the first and the last; where these are too many, some of the first ones. The peaks
/// are always among them.
fn shown(frames: &[Frame]) -> Vec<usize> {
    let alike = |a: &Frame, b: &Frame| {
        let of = |f: &Frame| (f.slots, f.states, f.blocked, f.refusals.is_empty());
        of(a) == of(b)
    };
    let last = frames.len() - 1;
    let changes = |n: usize| n == 0 || !alike(&frames[n - 1], &frames[n]);
    // Of several that are as high the first.
    let fullest = (0..=last)
        .rev()
        .max_by_key(|n| frames[*n].slots.map(|slots| slots.used));
    let waiting = (0..=last)
        .rev()
        .max_by_key(|n| (frames[*n].blocked, frames[*n].longest_wait));
    let runs: Vec<usize> = (0..=last)
        .filter(|n| changes(*n) || *n == last || changes(n + 1))
        .collect();
    let mut shown = runs;
    if shown.len() > MOST_ROWS {
        shown.retain(|n| changes(*n));
    }
    if shown.len() > MOST_ROWS {
        let most = shown.len() - 1;
        shown = (0..MOST_ROWS)
            .map(|n| shown[n * most / (MOST_ROWS - 1)])
            .collect();
    }
    shown.extend(fullest.into_iter().chain(waiting));
    shown.extend([0, last]);
    shown.sort_unstable();
    shown.dedup();
    shown
}

/// Who held the connections when most were taken, and who blocked whom when most waited.
pub fn worst(of: &Postmortem) -> String {
    let servers = of.servers();
    let told: Vec<String> = servers
        .iter()
        .map(|server| {
            let on = server
                .name()
                .map_or(String::new(), |name| format!(" on {}", code(&name, false)));
            worst_of(server, &of.runs, &on)
        })
        .filter(|told| !told.is_empty())
        .collect();
    match told.is_empty() {
        true => String::new(),
        false => format!("## At its worst\n\n{}", told.join("\n")),
    }
}

fn worst_of(of: &Of<'_>, runs: &[Run], on: &str) -> String {
    let mut out = String::new();
    if let Some(peak) = &of.course.peak {
        let slots = Slots::of(&peak.capacity);
        let _ = write!(
            out,
            "### Who held the connections{on}\n\nAt {} UTC: {}; max_connections {}, less {}.\n\n",
            Clock(None).tell(peak.at),
            slots.words(),
            slots.max_connections,
            slots.kept()
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
        let gap = if out.is_empty() { "" } else { "\n" };
        let plain = Style {
            width: None,
            height: None,
            color: false,
            verbose: false,
        };
        let report = &forest.report;
        let tree = report.data.table(&report.head, plain);
        let since = report.head.taken_at;
        let acts = || {
            let runs = runs.iter().filter(|run| !run.dry_run && run.is_on(of));
            runs.flat_map(|run| &run.acts)
        };
        let done = |pid: Pid| {
            let of = |act: &&Act| act.pid == Some(pid.0) && act.at >= since && act.came.is_well();
            acts().find(of).map(|act| Clock::time(act.at))
        };
        let lines = then(tree.lines(), &report.data.roots, &done);
        let _ = write!(
            out,
            "{gap}### Who blocked whom{on}\n\nAt {} UTC, the session at the root first:\n\n{}",
            Clock(None).tell(report.head.taken_at),
            fenced(&lines.join("\n"))
        );
    }
    out
}

/// Lines of the forest as they are told later: what was done or could have been, without the commands, whose sessions are gone.
fn then<'l>(
    lines: impl Iterator<Item = &'l str>,
    roots: &[Root],
    done: &dyn Fn(Pid) -> Option<String>,
) -> Vec<String> {
    let mut roots = roots.iter();
    let (mut pid, mut did) = (None, None);
    let mut out = Vec::new();
    for line in lines {
        let bare = line.trim_start();
        if bare.starts_with("psql ") || bare.starts_with("or psql ") {
            continue;
        }
        let line = match (line.strip_prefix("   do: "), line.strip_prefix("   lost: ")) {
            (Some(rest), _) => {
                pid = roots.next().and_then(|root| root.remedy.pid);
                did = pid.and_then(done);
                match &did {
                    Some(at) => format!("   done at {at}: {rest}"),
                    None => format!("   what could have been done: {rest}"),
                }
            }
            (_, Some(rest)) => {
                let of = pid.map_or(String::new(), |pid| format!(" with pid {pid}"));
                match did {
                    Some(_) => format!("   lost{of}: {rest}"),
                    None => format!("   what would have been lost{of}: {rest}"),
                }
            }
            _ => line.to_owned(),
        };
        out.push(cut(&line, 240));
    }
    out
}
