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
        if self.action != "rollback_prepared" && (self.dry_run || self.outcomes.is_empty()) {
            out.push_str(&candidates(&self.candidates, style));
        }
        for note in &self.notes {
            out.push_str(&sentence(note, style));
        }
        if !self.outcomes.is_empty() {
            let columns = [
                Column::number("session").shrink(8),
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
            let open = self.candidates.len().saturating_sub(self.outcomes.len());
            lines.push(match self.action {
                "rollback_prepared" => {
                    "dry run: nothing was done; at a terminal it asks, --yes does it".into()
                }
                verb => format!(
                    "dry run: {} to {verb}, nothing was signalled; at a terminal it asks, --yes does it",
                    count(open, "session")
                ),
            });
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
        const OUTCOMES: [Col; 7] = [
            col("pid", "pid"),
            more("backend_start"),
            col("gid", "gid"),
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

/// From so many columns on there is room for what is lost in the table.
const WIDE: usize = 140;
/// Its column.
const LOST: usize = 7;

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
    // By this the person decides: where it doesn't fit it stands below, whole.
    let narrow = style.width.is_some_and(|width| width < WIDE);
    let columns: Vec<Column<'_>> = columns
        .into_iter()
        .enumerate()
        .filter(|(n, _)| !(narrow && *n == LOST))
        .map(|(_, column)| column)
        .collect();
    let rows_total = all.len();
    let rows = all
        .iter()
        .map(|one| {
            let mut row = candidate(one);
            if narrow {
                row.remove(LOST);
            }
            row
        })
        .collect();
    let mut out = table(&columns, rows, style.width);
    // Whoever loses the same stands together: the ages are in the table.
    let mut lost: Vec<(String, Vec<String>)> = Vec::new();
    for one in all.iter().filter(|_| narrow) {
        let what = match one.xact_age_ms {
            Some(age) => one.lost.replacen(&format!(" of {age}"), "", 1),
            None => one.lost.clone(),
        };
        let pid = one.pid.to_string();
        match lost.iter_mut().find(|(known, _)| *known == what) {
            Some((_, pids)) => pids.push(pid),
            None => lost.push((what, vec![pid])),
        }
    }
    for (what, pids) in lost {
        let who = match pids.as_slice() {
            [one] => one.clone(),
            all if all.len() == rows_total && all.len() > 3 => format!("each of the {}", all.len()),
            all => all.join(", "),
        };
        out.push_str(&sentence(&format!("lost with {who}: {what}"), style));
    }
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
        o.pid
            .map_or_else(|| or_none(o.gid.as_deref()), |pid| pid.to_string()),
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
