//! How many runs of a cron job can be at work at once: its policy, its schedule, its deadline.

use super::super::count::{At, Count, Source};
use super::super::spec::Unknown;
use super::{Fault, Pods, Surge, number};
use crate::yaml::Node;

/// Runs of a cron job may overlap.
pub(super) fn overlap(
    file: &str,
    spec: &Node,
    job: Option<&Node>,
    each: u64,
    top: &At,
    pods: &mut Pods,
) -> Result<(), Fault> {
    let policy = spec
        .get("concurrencyPolicy")
        .and_then(Node::text)
        .unwrap_or("Allow");
    match policy {
        "Forbid" => return Ok(()),
        "Replace" => {
            pods.surge = Surge::Number(each);
            let at = spec
                .get("concurrencyPolicy")
                .map_or(top.clone(), |node| At::new(file, node.place));
            pods.surge_from = Some(Source::said("surge", format!("{each} (Replace)"), at));
            return Ok(());
        }
        _ => {}
    }
    let unknown = |what: &str, settle: &str, at: &At| Unknown {
        what: what.into(),
        settle: settle.into(),
        at: Some(at.clone()),
    };
    let Some(longest) = job.and_then(|job| job.get("activeDeadlineSeconds")) else {
        pods.count = Count::at_least(each);
        pods.unknown = Some(unknown(
            "how many runs of a cron job pile up",
            "concurrencyPolicy: Forbid, or activeDeadlineSeconds",
            top,
        ));
        return Ok(());
    };
    let longest_at = At::new(file, longest.place);
    let longest = number(file, longest, "activeDeadlineSeconds")?;
    let schedule = spec
        .get("schedule")
        .and_then(Node::text)
        .unwrap_or_default();
    match period(schedule) {
        Some(period) => {
            let overlap = longest.div_ceil(period).max(1);
            pods.count = Count::known(each.saturating_mul(overlap));
            pods.from.push(Source::said(
                &format!("runs at once ({longest} s each, every {period} s)"),
                overlap,
                longest_at,
            ));
        }
        None => {
            pods.count = Count::at_least(each);
            let what = format!("how often {schedule:?} runs");
            pods.unknown = Some(unknown(&what, "concurrencyPolicy: Forbid", &longest_at));
        }
    }
    Ok(())
}

/// Seconds between two runs, of the schedules that say it at once.
fn period(schedule: &str) -> Option<u64> {
    let number = |text: &str| text.parse::<u64>().ok();
    match schedule.trim() {
        "@hourly" => return Some(3600),
        "@daily" | "@midnight" => return Some(86_400),
        "@weekly" => return Some(7 * 86_400),
        // The shortest month, the shortest year.
        "@monthly" => return Some(28 * 86_400),
        "@yearly" | "@annually" => return Some(365 * 86_400),
        _ => {}
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    let [minute, hour, day, "*", weekday] = fields.as_slice() else {
        return None;
    };
    match (*day, *weekday) {
        ("*", "*") => {}
        (day, "*") => {
            let once = number(minute).and(number(hour)).and(number(day));
            return once.map(|_| 28 * 86_400);
        }
        ("*", weekday) => {
            let once = number(minute).and(number(hour)).and(number(weekday));
            return once.map(|_| 7 * 86_400);
        }
        _ => return None,
    }
    match (*minute, *hour) {
        ("*", "*") => Some(60),
        (minute, "*") => match minute.strip_prefix("*/") {
            // What doesn't divide the hour has a shorter gap at its end; the shortest counts.
            Some(every) => {
                let every = number(every).filter(|every| (1..60).contains(every))?;
                let rest = 60 % every;
                Some(60 * if rest == 0 { every } else { rest.min(every) })
            }
            None => number(minute).map(|_| 3600),
        },
        (minute, hour) => {
            number(minute)?;
            match hour.strip_prefix("*/") {
                Some(every) => {
                    let every = number(every).filter(|every| (1..24).contains(every))?;
                    let rest = 24 % every;
                    Some(3600 * if rest == 0 { every } else { rest.min(every) })
                }
                None => number(hour).map(|_| 86_400),
            }
        }
    }
}
