//! `pg horizon` as a table, and how the oldest are let go.

use super::Table;
use super::cells::{NONE, age, or_none, sentence, wrap};
use crate::analysis::Head;
use crate::analysis::horizon::{Held, HolderKind, Horizon};
use crate::model::count;
use crate::view::console::Style;
use crate::view::layout::{Column, table};
use crate::view::sanitize::clean;
use crate::view::sheet::{Col, Sheet, col, more};

/// What a screen takes; the oldest matter.
const MOST: usize = 30;
const MOST_RELEASED: usize = 5;

impl Table for Horizon {
    fn table(&self, head: &Head, style: Style) -> String {
        let mut out = sentence(&self.summary(head), style);
        if self.horizon.is_empty() {
            return out;
        }
        let columns = [
            Column::number("behind"),
            Column::text("held by").shrink(12),
            Column::number("pid"),
            Column::text("name").flex(12),
            Column::text("user").shrink(6).drop(2),
            Column::text("database").shrink(6).drop(1),
            Column::number("age"),
        ];
        let rows = self.horizon.iter().take(MOST).map(row).collect();
        out.push_str(&table(&columns, rows, style.width));
        if self.horizon.len() > MOST {
            out.push_str(&format!("and {} younger ones\n", self.horizon.len() - MOST));
        }
        out.push_str("\nto let go:\n");
        for held in self.horizon.iter().take(MOST_RELEASED) {
            let line = format!("{}: {}", clean(&who(held)), clean(&held.release));
            out.push_str(&wrap(&line, style.width.unwrap_or(usize::MAX), 2));
        }
        out
    }

    fn sentences(&self, head: &Head) -> Vec<String> {
        vec![self.summary(head)]
    }

    fn sheets(&self) -> Vec<Sheet> {
        const COLUMNS: [Col; 10] = [
            col("xmin_age", "behind"),
            more("xmin"),
            col("kind", "held by"),
            col("pid", "pid"),
            more("backend_start"),
            col("name", "name"),
            col("user", "user"),
            col("database", "database"),
            col("age_ms", "age"),
            col("release", "to let go"),
        ];
        vec![Sheet::of("horizon", &COLUMNS, &self.horizon)]
    }
}

impl Horizon {
    fn summary(&self, head: &Head) -> String {
        match self.horizon.first() {
            Some(oldest) => {
                let behind = count(oldest.xmin_age.unsigned_abs() as usize, "transaction");
                format!("the xmin horizon is {behind} behind")
            }
            None if head.coverage.is_complete() => "nothing holds the xmin horizon".into(),
            None => "nothing holds the xmin horizon in what could be seen".into(),
        }
    }
}

/// `session 877`, `replication slot forgotten`
fn who(held: &Held) -> String {
    let name = match (held.kind, held.pid, &held.name) {
        (HolderKind::Session | HolderKind::StandbyFeedback, Some(pid), _) => pid.to_string(),
        (_, _, Some(name)) => name.clone(),
        _ => String::new(),
    };
    format!("{} {name}", held.kind.words())
}

fn row(h: &Held) -> Vec<String> {
    vec![
        h.xmin_age.to_string(),
        h.kind.words().into(),
        h.pid.map_or_else(|| NONE.into(), |pid| pid.to_string()),
        or_none(h.name.as_deref()),
        or_none(h.user.as_deref()),
        or_none(h.database.as_deref()),
        age(h.age_ms),
    ]
}
