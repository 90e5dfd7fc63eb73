//! `pg cancel`, `pg terminate`: the candidates before the question, the outcomes after it.

use super::Table;
use super::cells::{NONE, age, or_none, sentence, short_state};
use crate::analysis::Head;
use crate::analysis::actions::{Actions, After, CandidateRow, OutcomeRow};
use crate::model::count;
use crate::view::console::Style;
use crate::view::layout::{Column, table};
use crate::view::sheet::{Col, Sheet, col, more};

impl Table for Actions {
    fn table(&self, head: &Head, style: Style) -> String {
        let mut out = String::new();
        if self.dry_run || self.outcomes.is_empty() {
            out.push_str(&candidates(&self.candidates, style));
        }
        for note in &self.notes {
            out.push_str(&sentence(note, style));
        }
        if !self.outcomes.is_empty() {
            let columns = [
                Column::number("pid"),
                Column::text("outcome"),
                Column::number("waited"),
                Column::text("why").flex(20),
            ];
            let rows = self.outcomes.iter().map(outcome).collect();
            out.push_str(&table(&columns, rows, style.width));
        }
        for line in self.sentences(head) {
            out.push_str(&sentence(&line, style));
        }
        out
    }

    fn sentences(&self, _: &Head) -> Vec<String> {
        let mut lines = Vec::new();
        if self.dry_run {
            lines.push(format!(
                "dry run: {} to {}, nothing was signalled; at a terminal it asks, --yes does it",
                count(
                    self.candidates.len() - self.outcomes.len().min(self.candidates.len()),
                    "session"
                ),
                self.action.word()
            ));
        }
        lines.extend(self.stopped.clone());
        if let Some(after) = &self.after {
            lines.push(format!("before: {}", words(&self.before)));
            lines.push(format!("after:  {}", words(after)));
        }
        lines.extend(self.journal.as_ref().map(|path| format!("journal: {path}")));
        lines
    }

    fn sheets(&self) -> Vec<Sheet> {
        const CANDIDATES: [Col; 14] = [
            col("pid", "pid"),
            more("backend_start"),
            col("user", "user"),
            col("database", "database"),
            col("application_name", "application"),
            col("state", "state"),
            col("state_age_ms", "for"),
            more("xact_start"),
            col("xact_age_ms", "xact age"),
            more("xid_assigned"),
            col("blocks", "blocks"),
            col("lost", "lost"),
            more("instead"),
            col("query", "query"),
        ];
        const OUTCOMES: [Col; 6] = [
            col("pid", "pid"),
            more("backend_start"),
            col("action", "action"),
            col("outcome", "outcome"),
            col("reason", "why"),
            col("waited_ms", "waited"),
        ];
        vec![
            Sheet::of("outcomes", &OUTCOMES, &self.outcomes),
            Sheet::of("candidates", &CANDIDATES, &self.candidates),
        ]
    }
}

/// The table that comes before every question.
pub fn candidates(all: &[CandidateRow], style: Style) -> String {
    if all.is_empty() {
        return "no session to signal\n".into();
    }
    let columns = [
        Column::number("pid"),
        Column::text("user").shrink(6),
        Column::text("application").shrink(8).drop(1),
        Column::text("state").shrink(12),
        Column::number("for"),
        Column::number("xact age"),
        Column::number("blocks"),
        Column::text("what is lost").flex_from(40, 20),
        Column::text("query").shrink(36).drop(2),
    ];
    let rows = all.iter().map(candidate).collect();
    let mut out = table(&columns, rows, style.width);
    for one in all.iter().filter(|one| one.instead.is_some()) {
        let instead = one.instead.as_deref().unwrap_or_default();
        out.push_str(&sentence(&format!("{}: {instead}", one.pid), style));
    }
    out
}

fn candidate(c: &CandidateRow) -> Vec<String> {
    vec![
        c.pid.to_string(),
        or_none(c.user.as_deref()),
        or_none(c.application_name.as_deref()),
        c.state.as_ref().map_or(NONE, short_state).to_owned(),
        age(c.state_age_ms),
        age(c.xact_age_ms),
        c.blocks.to_string(),
        c.lost.clone(),
        super::cells::statement(c.query.as_deref(), false),
    ]
}

fn outcome(o: &OutcomeRow) -> Vec<String> {
    vec![
        o.pid.to_string(),
        o.outcome.to_owned(),
        age(Some(o.waited_ms).filter(|ms| ms.0 > 0)),
        or_none(o.reason.as_deref()),
    ]
}

fn words(after: &After) -> String {
    let slots = after
        .capacity
        .as_ref()
        .map_or_else(|| "slots unknown".into(), |c| c.words());
    match after.blocked_total {
        Some(blocked) => format!("{slots}, {blocked} blocked"),
        None => format!("{slots}, locks unknown"),
    }
}
