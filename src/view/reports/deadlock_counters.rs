//! `pg deadlocks` without a log: the counters, and the settings that decide what a log would tell.

use super::Table;
use super::cells::{NONE, sentence, wrap};
use crate::analysis::Head;
use crate::analysis::deadlocks::{Counted, Deadlocking};
use crate::analysis::settings::{Judged, Verdict};
use crate::view::console::Style;
use crate::view::layout::{Column, table};
use crate::view::sanitize::clean;
use crate::view::sheet::{Col, Sheet, col, more};

impl Table for Deadlocking {
    fn table(&self, head: &Head, style: Style) -> String {
        let most = style.width.unwrap_or(usize::MAX);
        let mut out = sentence(&self.summary(head), style);
        let counted: Vec<&Counted> = self
            .databases
            .iter()
            .filter(|c| c.deadlocks.is_some())
            .collect();
        if !counted.is_empty() {
            let columns = [
                Column::text("database").shrink(8),
                Column::number("deadlocks"),
                Column::number("now"),
                Column::text("since").shrink(10),
            ];
            let row = |c: &&Counted| {
                vec![
                    c.database.clone(),
                    c.deadlocks.map_or_else(|| NONE.into(), |n| n.to_string()),
                    c.grown.map_or_else(|| NONE.into(), |n| format!("+{n}")),
                    c.stats_reset.map_or_else(
                        || "its statistics began".into(),
                        |at| at.utc().format("%Y-%m-%d %H:%M UTC").to_string(),
                    ),
                ]
            };
            out.push('\n');
            out.push_str(&table(
                &columns,
                counted.iter().map(row).collect(),
                style.width,
            ));
        }
        if !self.settings.is_empty() {
            out.push_str("\nwhat the log tells of a deadlock:\n");
            let columns = [
                Column::text("verdict"),
                Column::text("setting"),
                Column::text("value").shrink(10),
                Column::text("recommended").shrink(8),
                Column::text("why").flex(20),
            ];
            let row = |s: &Judged| {
                let bad = s.verdict != Verdict::Ok;
                vec![
                    verdict(s.verdict).to_owned(),
                    s.name.clone(),
                    s.words(),
                    s.recommended.clone().filter(|_| bad).unwrap_or_default(),
                    if bad { s.why.clone() } else { String::new() },
                ]
            };
            out.push_str(&table(
                &columns,
                self.settings.iter().map(row).collect(),
                style.width,
            ));
            for fix in self.fixes() {
                out.push_str(&wrap(&clean(&fix), most, 2));
            }
        }
        out.push('\n');
        out.push_str(&wrap(
            "a counter has neither statements nor order: stanch pg deadlocks LOG reads them out of the server's log \
             (SELECT pg_current_logfile() says where it is, to whoever may call it)",
            most,
            0,
        ));
        out
    }

    fn sentences(&self, head: &Head) -> Vec<String> {
        vec![self.summary(head)]
    }

    fn sheets(&self) -> Vec<Sheet> {
        const DATABASES: [Col; 4] = [
            col("database", "database"),
            col("deadlocks", "deadlocks"),
            col("grown", "now"),
            col("stats_reset", "since"),
        ];
        const SETTINGS: [Col; 6] = [
            col("verdict", "verdict"),
            col("name", "setting"),
            col("value", "value"),
            more("unit"),
            col("recommended", "recommended"),
            col("why", "why"),
        ];
        vec![
            Sheet::of("databases", &DATABASES, &self.databases),
            Sheet::of("settings", &SETTINGS, &self.settings),
        ]
    }
}

impl Deadlocking {
    fn summary(&self, head: &Head) -> String {
        if !head.coverage.has_read("databases") {
            return "the counters couldn't be read".into();
        }
        let looked = self.window_ms.map(|window| format!(" in {window}"));
        match &self.finding {
            Some(finding) => format!(
                "{}: {}: {}",
                finding.severity.word(),
                finding.id,
                finding.title
            ),
            None if self.databases.iter().any(|c| c.deadlocks.is_some()) => {
                format!(
                    "no deadlock{} and none since the statistics were reset",
                    looked.unwrap_or_default()
                )
            }
            None => "the counters weren't read".into(),
        }
    }

    /// `ALTER SYSTEM …` for what is to change.
    fn fixes(&self) -> Vec<String> {
        let bad = |name: &str| {
            self.settings
                .iter()
                .any(|s| s.name == name && s.verdict == Verdict::Change)
        };
        let mut fixes: Vec<String> = [
            ("log_lock_waits", "on"),
            ("deadlock_timeout", "'1s'"),
            ("log_error_verbosity", "default"),
            ("log_min_error_statement", "error"),
            ("log_min_messages", "warning"),
            ("log_line_prefix", "'%m [%p] %q%u@%d/%a '"),
        ]
        .into_iter()
        .filter(|(name, _)| bad(name))
        .map(|(name, value)| format!("ALTER SYSTEM SET {name} = {value};"))
        .collect();
        if !fixes.is_empty() {
            fixes.push("SELECT pg_reload_conf();".into());
        }
        fixes
    }
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Change => "change",
        Verdict::Consider => "consider",
        Verdict::Unknown => "unknown",
        Verdict::Ok => "ok",
    }
}
