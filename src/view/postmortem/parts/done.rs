//! What was done, where the runbook was left, and what all of it was made from.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::super::escape::{cell, code, table, text};
use super::opening::seen;
use super::{Clock, LEFT};
use crate::model::{RedactionLevel, count};
use crate::postmortem::{Came, Postmortem, Run, Supply};

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
            "### {}{dry}\n\nBy {} on {}, as {}, {} UTC",
            text(&run.what),
            text(&run.operator),
            code(&run.target, false),
            code(&run.login, false),
            clock.stretch(run.began, run.last, "–")
        );
        let inputs: Vec<String> = run
            .inputs
            .iter()
            .map(|(name, value)| code(&format!("{name} = {value}"), false))
            .collect();
        if !inputs.is_empty() {
            let _ = write!(out, ", with {}", inputs.join(", "));
        }
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
        if let Some(helped) = &run.helped {
            let _ = write!(out, "Did it help? {}.\n\n", text(helped));
        }
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
            let came = cell(&act.words());
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
        ("who it was before", LEFT),
        ("what came of it", LEFT),
    ];
    let _ = writeln!(out, "{}", table(&head, &rows));
}

/// Where a walk left the book's straight way.
pub fn departures(of: &Postmortem) -> String {
    let mut out = String::from("## The runbook\n\n");
    if of.departures.is_empty() && of.walked.is_empty() {
        out.push_str("No runbook was walked, or its journal wasn't given.\n");
        return out;
    }
    for walked in &of.walked {
        if let Some((step, how)) = &walked.cut {
            let _ = write!(
                out,
                "{} was left at {}, at none of its ends: {}.\n\n",
                code(&walked.book, false),
                code(step, false),
                text(how)
            );
        }
    }
    let is_whole = of.walked.iter().all(|walked| walked.cut.is_none());
    if of.departures.is_empty() && is_whole {
        out.push_str("Nothing was left out, failed, or ran out of time.\n");
    }
    if !of.departures.is_empty() {
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
    format!("{}\n", out.trim_end())
}

/// What all of it was made from.
pub fn sources(of: &Postmortem) -> String {
    let mut out = String::from("## Sources\n\n");
    let servers = of.servers();
    for server in &servers {
        let Some(target) = &server.course.target else {
            continue;
        };
        let _ = writeln!(
            out,
            "- server: {}, looked at as {}{}",
            code(&target.label(), false),
            code(&target.user, false),
            match servers.len() {
                0 | 1 => String::new(),
                _ => format!(": {}", seen(server)),
            }
        );
    }
    let alike = |a: &Supply, b: &Supply| {
        let of = |s: &Supply| (s.is_whole, s.is_redacted, s.captures == 0);
        of(a) == of(b)
    };
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
        let gaps = match group.iter().map(|supply| supply.gaps).sum() {
            0 => String::new(),
            n => format!(", {n} missing"),
        };
        let names = match group {
            [one] => code(&one.name, false),
            [first, second] => format!(
                "{} and {}",
                code(&first.name, false),
                code(&second.name, false)
            ),
            [first, .., last] => format!(
                "{}, the first {}, the last {}",
                count(group.len(), "file"),
                code(&first.name, false),
                code(&last.name, false)
            ),
            [] => continue,
        };
        let _ = writeln!(
            out,
            "- {names}: {}{gaps}{whole}{redacted}",
            count(captures, "capture")
        );
    }
    for (log, moments) in &of.logs {
        let _ = writeln!(
            out,
            "- server log: {}, {}",
            code(log, false),
            count(*moments, "moment")
        );
    }
    for gap in of.gaps.iter().filter(|gap| gap.is_unread_log()) {
        let _ = writeln!(out, "- server log: {}", code(&gap.why, false));
    }
    let courses = || servers.iter().map(|server| server.course);
    let mut looks: BTreeMap<&str, usize> = BTreeMap::new();
    for (redis, captures) in courses().flat_map(|course| &course.redis) {
        *looks.entry(redis).or_default() += captures;
    }
    for (redis, captures) in looks {
        let _ = writeln!(
            out,
            "- Redis: {}, beside {}",
            code(redis, false),
            count(captures, "capture")
        );
    }
    let own_left_out = courses()
        .map(|course| course.own_left_out)
        .max()
        .unwrap_or(0);
    if own_left_out > 0 {
        let _ = writeln!(
            out,
            "- left out of every number: stanch's own sessions, those of these captures and runs, up to {} in one capture",
            own_left_out
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
    let has = |level| courses().any(|course| course.redactions.contains(&level));
    if has(RedactionLevel::Redacted) {
        out.push_str("- texts: redacted: values in statements are `?`, and of a statement that may hold a secret only its command is left\n");
    }
    if has(RedactionLevel::None) {
        out.push_str("- texts: **not redacted**: only statements with passwords are reduced to their command\n");
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
