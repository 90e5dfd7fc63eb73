//! `pg deadlocks LOG…`: each kind of deadlock with its circle and lock order, then the longest waits.

use super::cells::{NONE, or_none, pids, sentence, statement, wrap};
use super::{Table, deadlock_sheets};
use crate::analysis::deadlocks::{
    Basis, Deadlock, Deadlocks, Group, LogHead, Member, OrderConflict, WaitEnd, WaitRow,
};
use crate::model::{Timestamp, count, counted, thousands};
use crate::view::console::Style;
use crate::view::layout::{Column, table};
use crate::view::sanitize::clean;
use crate::view::sheet::Sheet;

/// Groups that a screen shows whole; the others are in the lists.
const MOST_GROUPS: usize = 12;
/// Waits on a screen.
const MOST_WAITS: usize = 10;

impl Table<LogHead> for Deadlocks {
    fn table(&self, head: &LogHead, style: Style) -> String {
        let most = style.width.unwrap_or(usize::MAX);
        let mut out = String::new();
        for line in self.sentences(head) {
            out.push_str(&sentence(&clean(&line), style));
        }
        for group in self.groups.iter().take(MOST_GROUPS) {
            out.push('\n');
            out.push_str(&self.group(group, style));
        }
        if self.groups.len() > MOST_GROUPS {
            out.push_str(&format!(
                "\nand {} more (--json, -o csv --list groups)\n",
                count(self.groups.len() - MOST_GROUPS, "kind")
            ));
        }
        if !self.lock_waits.longest.is_empty() {
            out.push_str("\nlongest lock waits:\n");
            out.push_str(&waits(&self.lock_waits.longest, style));
        }
        if !self.groups.is_empty() {
            out.push('\n');
            out.push_str(&wrap(
                "whatever the cause: retry a transaction that ended with SQLSTATE 40P01, a few times, with growing pauses",
                most,
                0,
            ));
        }
        let deduced = |group: &Group| {
            group
                .order_conflict
                .as_ref()
                .is_some_and(|order| order.basis == Basis::Deduced)
        };
        if self.groups.iter().take(MOST_GROUPS).any(deduced) {
            out.push_str(&wrap(
                "deduced: who is waited for holds what is asked for; log_statement = mod would show it",
                most,
                0,
            ));
        }
        for line in &head.coverage.advice {
            out.push_str(
                &style
                    .faint(wrap(&format!("would tell more: {}", clean(line)), most, 0).trim_end()),
            );
            out.push('\n');
        }
        out
    }

    fn sentences(&self, head: &LogHead) -> Vec<String> {
        vec![self.summary(head), self.waited()]
            .into_iter()
            .filter(|line| !line.is_empty())
            .collect()
    }

    fn sheets(&self) -> Vec<Sheet> {
        deadlock_sheets::sheets(self)
    }
}

impl Deadlocks {
    /// `3 deadlocks of 2 kinds, from 2026-12-01 02:35:34 to 02:40:01 UTC`
    fn summary(&self, head: &LogHead) -> String {
        let coverage = &head.coverage;
        let bare = self.deadlocks_without_circle;
        if self.deadlocks_total == 0 && bare > 0 {
            return format!("{} without a circle in the log", counted(bare, "deadlock"));
        }
        if self.deadlocks_total == 0 {
            let all = if coverage.complete {
                ""
            } else {
                " in what could be read"
            };
            return format!("no deadlock{all}");
        }
        let times = self.deadlocks.iter().filter_map(|deadlock| deadlock.at);
        let first = self
            .groups
            .iter()
            .filter_map(|group| group.first)
            .chain(times.clone())
            .min();
        let last = self
            .groups
            .iter()
            .filter_map(|group| group.last)
            .chain(times)
            .max();
        let more = if bare > 0 {
            format!("; {} more without a circle in the log", thousands(bare))
        } else {
            String::new()
        };
        format!(
            "{} of {}{}{more}",
            counted(self.deadlocks_total, "deadlock"),
            count(self.groups.len(), "kind"),
            match (first, last) {
                (Some(first), Some(last)) => format!(", {}", span(first, last)),
                _ => String::new(),
            }
        )
    }

    fn waited(&self) -> String {
        let waits = &self.lock_waits;
        let Some(longest) = waits.longest.first() else {
            return String::new();
        };
        let ends: Vec<String> = [
            (waits.acquired, "got the lock"),
            (waits.deadlocked, "ended in a deadlock"),
            (waits.failed, "gave up"),
            (waits.open, "ended untold"),
        ]
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| format!("{} {what}", thousands(number)))
        .collect();
        let who = longest
            .application_name
            .clone()
            .unwrap_or_else(|| format!("pid {}", longest.pid));
        let least = if longest.ended == WaitEnd::Unknown {
            "at least "
        } else {
            ""
        };
        format!(
            "{} ({}), the longest {least}{}: {who} for {}",
            counted(waits.waits, "lock wait"),
            ends.join(", "),
            longest.waited_ms,
            longest.on
        )
    }

    fn group(&self, group: &Group, style: Style) -> String {
        let most = style.width.unwrap_or(usize::MAX);
        let sample = self
            .deadlocks
            .iter()
            .find(|deadlock| deadlock.group == Some(group.group));
        let members = sample.map_or(0, |one| one.members.len());
        let among = match (group.applications.as_slice(), members) {
            ([], members) => count(members, "session"),
            (names, members) if names.len() < members => format!(
                "{} and {}",
                names.join(", "),
                count(members - names.len(), "other session")
            ),
            (names, _) => names.join(", "),
        };
        let on = match group.relations.as_slice() {
            [] => String::new(),
            names => format!(" on {}", names.join(", ")),
        };
        let when = match (group.first, group.last) {
            (Some(first), Some(last)) => format!(", {}", span(first, last)),
            _ => String::new(),
        };
        let title = format!(
            "{}. {}: {among}{on}{when}",
            group.group,
            counted(group.count, "deadlock")
        );
        let title = wrap(&clean(&title), most, 0);
        let mut out = format!("{}\n", style.strong(title.trim_end()));
        let order = match &group.order_conflict {
            Some(order) if group.varies => format!(
                "{}{}, as in the first; others are about other rows or keys",
                order.text,
                basis(order)
            ),
            Some(order) => format!("{}{}", order.text, basis(order)),
            None => format!(
                "{}; which one first can't be told from the log",
                group.shape.words()
            ),
        };
        out.push_str(&wrap(&format!("order: {}", clean(&order)), most, 2));
        out.push_str(&wrap(&format!("do: {}", group.advice), most, 2));
        if group.per_hour.len() > 1 {
            out.push_str(&wrap(&format!("by hour: {}", hours(group)), most, 2));
        }
        if let Some(sample) = sample {
            out.push_str(&circle(sample, style));
        }
        out
    }
}

fn basis(order: &OrderConflict) -> &'static str {
    match order.basis {
        Basis::Seen => " (their earlier statements are in the log)",
        Basis::Deduced => " (deduced)",
    }
}

/// `12-01 02h 3, 12-01 03h 1`, the busiest first where there are many.
fn hours(group: &Group) -> String {
    const MOST: usize = 8;
    let mut all: Vec<_> = group.per_hour.iter().collect();
    if all.len() > MOST {
        all.sort_by_key(|hour| (std::cmp::Reverse(hour.count), hour.hour));
    }
    let shown: Vec<String> = all
        .iter()
        .take(MOST)
        .map(|hour| {
            format!(
                "{} {}",
                hour.hour.utc().format("%m-%d %H:00"),
                thousands(hour.count)
            )
        })
        .collect();
    let rest = all.len().saturating_sub(MOST);
    let more = if rest > 0 {
        format!(", and {}", count(rest, "quieter hour"))
    } else {
        String::new()
    };
    format!("{}{more}", shown.join(", "))
}

/// Who waits for whom, the victim first as the server wrote it.
fn circle(deadlock: &Deadlock, style: Style) -> String {
    let columns = [
        Column::number("pid"),
        Column::text(""),
        Column::text("application").shrink(8),
        Column::text("waits for").shrink(16),
        Column::number("held by"),
        Column::text("statement").flex_from(36, 20),
    ];
    let row = |member: &Member| {
        vec![
            member.pid.to_string(),
            if member.victim { "victim" } else { "" }.to_owned(),
            or_none(member.application_name.as_deref()),
            awaited(
                member.waits_for.locktype,
                &member.waits_for.mode,
                &member.waits_for.on,
            ),
            member.blocked_by.to_string(),
            member
                .statement
                .as_deref()
                .map_or_else(|| NONE.into(), |text| statement(Some(text), false)),
        ]
    };
    let width = style.width.map(|width| width.saturating_sub(2));
    table(&columns, deadlock.members.iter().map(row).collect(), width)
        .lines()
        .map(|line| format!("  {line}\n"))
        .collect()
}

fn waits(waits: &[WaitRow], style: Style) -> String {
    let columns = [
        Column::number("waited"),
        Column::text("ended"),
        Column::number("pid"),
        Column::text("application").shrink(8),
        Column::text("waits for").shrink(16),
        Column::text("held by").shrink(10),
        Column::text("at (UTC)").drop(1),
        Column::text("statement").flex_from(30, 20),
    ];
    let row = |wait: &WaitRow| {
        let ended = match wait.ended {
            WaitEnd::Acquired => "got it",
            WaitEnd::Deadlock => "deadlock",
            WaitEnd::Failed => "gave up",
            WaitEnd::Unknown => "untold",
        };
        let holders: Vec<String> = wait
            .holders
            .iter()
            .filter(|pid| pid.0 != 0)
            .map(ToString::to_string)
            .chain(
                wait.holders
                    .iter()
                    .any(|pid| pid.0 == 0)
                    .then(|| "prepared transaction".into()),
            )
            .collect();
        let names = wait.holder_applications.join(" ");
        let by = match (holders.is_empty(), names.is_empty()) {
            (true, _) => NONE.into(),
            (false, true) => holders.join(" "),
            (false, false) => format!("{names} ({})", holders.join(" ")),
        };
        vec![
            match wait.ended {
                WaitEnd::Unknown => format!("at least {}", wait.waited_ms),
                _ => wait.waited_ms.to_string(),
            },
            ended.into(),
            pids(&[wait.pid]),
            or_none(wait.application_name.as_deref()),
            awaited(wait.locktype, &wait.mode, &wait.on),
            by,
            wait.at.map_or_else(
                || NONE.into(),
                |at| at.utc().format("%m-%d %H:%M:%S").to_string(),
            ),
            statement(wait.statement.as_deref(), false),
        ]
    };
    table(
        &columns,
        waits.iter().take(MOST_WAITS).map(row).collect(),
        style.width,
    )
}

/// Of a row the mode says nothing: it is the end of a transaction that is waited for.
fn awaited(locktype: Option<&str>, mode: &str, on: &str) -> String {
    match locktype {
        Some("transactionid") => on.to_owned(),
        _ => format!("{} on {on}", mode.strip_suffix("Lock").unwrap_or(mode)),
    }
}

/// `2026-12-01 02:35:34 UTC`, or from … to …, the day once.
fn span(first: Timestamp, last: Timestamp) -> String {
    let full = |at: Timestamp| at.utc().format("%Y-%m-%d %H:%M:%S").to_string();
    if first == last {
        return format!("{} UTC", full(first));
    }
    let end = if first.utc().date_naive() == last.utc().date_naive() {
        last.utc().format("%H:%M:%S").to_string()
    } else {
        full(last)
    };
    format!("{} to {end} UTC", full(first))
}
