//! `triage` as a list of findings; three lines where there is none.

use super::Table;
use super::cells::wrap;
use super::connections::capacity_metrics;
use crate::analysis::Head;
use crate::analysis::stanch_command;
use crate::analysis::triage::{Finding, Summary, Triage};
use crate::model::{Millis, Severity, Target};
use crate::view::console::Style;
use crate::view::prometheus::{Metric, gauge, gauges, number};
use crate::view::sanitize::{clean, width};
use crate::view::sheet::{Col, Sheet, col, more};

impl Table for Triage {
    fn table(&self, head: &Head, style: Style) -> String {
        // A stock server's settings are for later; whatever else there is to tell is told.
        let (notes, findings): (Vec<&Finding>, Vec<&Finding>) = self
            .findings
            .iter()
            .partition(|f| f.id.name().starts_with("settings."));
        let mut out = String::new();
        let most = style.width.unwrap_or(usize::MAX);
        out.push_str(&wrap(&self.sentence(head), most, 0));
        if let Some(why) = &self.summary.pooler_failed {
            let line = format!("the pooler couldn't be looked at: {why}");
            out.push_str(&wrap(&clean(&line), most, 0));
        }
        if let Some(redis) = &self.redis {
            out.push_str(&wrap(&clean(&redis.summary), most, 0));
        }
        for finding in &findings {
            out.push('\n');
            describe(&mut out, finding, style);
        }
        if style.verbose {
            for finding in &notes {
                out.push('\n');
                describe(&mut out, finding, style);
            }
            for unknown in &self.unknown {
                out.push_str(&format!("\nnot judged: {}\n", clean(unknown)));
            }
        } else if !notes.is_empty() {
            if !findings.is_empty() {
                out.push('\n');
            }
            let command = stanch_command("pg settings", &head.target);
            let settings = crate::model::count(notes.len(), "setting");
            out.push_str(&format!(
                "for later: {settings} to change: {}\n",
                clean(&command)
            ));
        }
        out
    }

    fn sentences(&self, head: &Head) -> Vec<String> {
        let mut sentences = vec![self.sentence(head)];
        sentences.extend(self.redis.iter().map(|redis| redis.summary.clone()));
        sentences.extend(
            self.unknown
                .iter()
                .map(|what| format!("not judged: {what}")),
        );
        sentences
    }

    fn sheets(&self) -> Vec<Sheet> {
        const COLUMNS: [Col; 9] = [
            col("severity", "severity"),
            col("id", "finding"),
            col("pattern", "pattern"),
            col("title", "what"),
            col("evidence", "evidence"),
            col("notes", "notes"),
            col("caused_by", "because of"),
            col("next", "next"),
            more("runbook"),
        ];
        vec![Sheet::of("findings", &COLUMNS, &self.findings)]
    }

    fn metrics(&self, _: &Head) -> Vec<Metric> {
        let s = &self.summary;
        let mut metrics = s.capacity.as_ref().map_or_else(Vec::new, capacity_metrics);
        metrics.push(gauge(
            "stanch_sessions_active",
            "Sessions that run a statement.",
            s.active.map(number),
        ));
        metrics.push(gauge(
            "stanch_sessions_in_transaction",
            "Sessions in a transaction.",
            s.in_transaction.map(number),
        ));
        metrics.push(gauge(
            "stanch_blocked_sessions",
            "Sessions that wait for a lock.",
            s.blocked.map(number),
        ));
        metrics.push(gauge(
            "stanch_transaction_oldest_seconds",
            "Age of the oldest open transaction.",
            s.oldest_transaction_ms
                .filter(|_| s.in_transaction.is_some())
                .map(Millis::seconds),
        ));
        let finding = |f: &Finding| {
            let labels = vec![
                ("id", f.id.name().to_owned()),
                ("severity", f.severity.word().to_owned()),
            ];
            (labels, 1.0)
        };
        metrics.push(gauges(
            "stanch_finding",
            "What triage finds, by id and severity.",
            self.findings.iter().map(finding).collect(),
        ));
        metrics
    }
}

impl Triage {
    fn sentence(&self, head: &Head) -> String {
        let summary = summary(&self.summary, &head.target);
        let of_note =
            |f: &Finding| f.severity != Severity::Info && !f.id.name().starts_with("settings.");
        let sees_all = head.coverage.sees_all() && self.summary.pooler_failed.is_none();
        match (self.findings.iter().any(of_note), sees_all) {
            (true, _) => summary,
            (false, true) => format!("nothing found: {summary}"),
            (false, false) => format!("nothing found in what could be seen: {summary}"),
        }
    }
}

/// `12 of 97 slots taken (12 %), 3 active, oldest transaction 0.2 s, nobody blocked`
fn summary(s: &Summary, target: &Target) -> String {
    let mut parts = Vec::new();
    match &s.capacity {
        Some(c) => {
            parts.push(c.words());
            parts.push(match s.active {
                Some(active) => format!("{active} active"),
                None => "what they do is hidden".into(),
            });
            parts.extend(match (s.oldest_transaction_ms, s.in_transaction) {
                (Some(age), Some(_)) => Some(format!("oldest transaction {age}")),
                (Some(age), None) => Some(format!("oldest transaction seen {age}")),
                (None, Some(0)) => Some("no open transaction".into()),
                (None, Some(open)) => Some(format!("{open} in a transaction")),
                (None, None) => None,
            });
        }
        None => parts.push("slots and sessions unknown".into()),
    }
    parts.push(match s.blocked {
        Some(0) => "nobody blocked".into(),
        Some(blocked) => format!("{blocked} blocked"),
        None => "locks unknown".into(),
    });
    if let Some(waiting) = s.pooler_waiting {
        let wait = if waiting == 1 { "waits" } else { "wait" };
        parts.push(match waiting {
            0 => "nobody waits at the pooler".into(),
            n => format!("{n} {wait} at the pooler"),
        });
    } else if target.via_pooler == Some(true) || s.pooler_failed.is_some() {
        parts.push("the pooler's own queue isn't seen (SHOW POOLS)".into());
    }
    parts.join(", ")
}

fn describe(out: &mut String, f: &Finding, style: Style) {
    let pattern = f
        .pattern
        .map_or(String::new(), |p| format!("  [pattern {}]", p.meaning()));
    let most = style.width.unwrap_or(usize::MAX);
    let plain = format!("{}  {}: ", f.severity.word(), f.id.name());
    let title = wrap(
        &format!("{}{pattern}", clean(&f.title)),
        most,
        width(&plain).min(most / 2),
    );
    let head = format!(
        "{}  {}:",
        style.severity(f.severity),
        style.strong(f.id.name())
    );
    // Where the name alone fills the line, the title stands below it.
    out.push_str(&if width(&plain) <= most / 2 || most == usize::MAX {
        format!("{head} {}", title.trim_start())
    } else {
        format!(
            "{head}\n{}",
            wrap(&format!("{}{pattern}", clean(&f.title)), most, 2)
        )
    });
    for line in f.evidence.iter().chain(&f.notes) {
        out.push_str(&wrap(&clean(line), most, 2));
    }
    if !f.caused_by.is_empty() {
        let causes: Vec<&str> = f.caused_by.iter().map(|id| id.name()).collect();
        out.push_str(&format!("  because of: {}\n", causes.join(", ")));
    }
    for next in &f.next {
        out.push_str(&format!("  {} {}\n", style.faint("next:"), clean(next)));
    }
}
