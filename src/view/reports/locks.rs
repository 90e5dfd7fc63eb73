//! `pg locks` as a table.

use super::Table;
use super::cells::{NONE, age, pids, sentence};
use crate::analysis::Head;
use crate::analysis::locks::{LockRow, Locks};
use crate::model::count;
use crate::view::console::Style;
use crate::view::layout::{Column, table};
use crate::view::sheet::{Col, Sheet, col, more};

impl Table for Locks {
    fn table(&self, head: &Head, style: Style) -> String {
        let summary = sentence(&self.summary(head), style);
        if self.locks.is_empty() {
            return summary;
        }
        let columns = [
            Column::text("object").shrink(16),
            Column::text("mode"),
            Column::text(""),
            Column::number("sessions"),
            Column::number("longest wait").drop(1),
            Column::text("pids").flex(12),
        ];
        let rows = self.locks.iter().map(row).collect();
        format!("{summary}{}", table(&columns, rows, style.width))
    }

    fn sentences(&self, head: &Head) -> Vec<String> {
        vec![self.summary(head)]
    }

    fn sheets(&self) -> Vec<Sheet> {
        const COLUMNS: [Col; 12] = [
            col("object", "object"),
            more("locktype"),
            more("relation"),
            more("database"),
            col("mode", "mode"),
            col("granted", "granted"),
            more("contended"),
            col("sessions", "sessions"),
            col("longest_wait_ms", "longest wait"),
            col("pids", "pids"),
            more("prepared"),
            col("gids", "prepared transactions"),
        ];
        vec![Sheet::of("locks", &COLUMNS, &self.locks)]
    }
}

impl Locks {
    fn summary(&self, head: &Head) -> String {
        let read = head
            .coverage
            .failed()
            .all(|(section, _)| section != "locks");
        if self.locks.is_empty() {
            return if read {
                "no locks to show"
            } else {
                "the locks weren't read"
            }
            .into();
        }
        let awaited = self.locks.iter().filter(|l| !l.granted);
        format!(
            "{} awaited",
            count(awaited.map(|l| l.sessions).sum(), "lock")
        )
    }
}

fn row(lock: &LockRow) -> Vec<String> {
    let mut who = pids(&lock.pids);
    if lock.sessions > lock.pids.len() {
        who.push_str(&format!(" +{}", lock.sessions - lock.pids.len()));
    }
    if lock.prepared > 0 {
        let names = if lock.gids.is_empty() {
            "?".into()
        } else {
            lock.gids.join(" ")
        };
        let space = if who.is_empty() { "" } else { " " };
        who.push_str(&format!("{space}prepared {names}"));
    }
    vec![
        lock.object.clone(),
        lock.mode.short().to_owned(),
        if lock.granted { "held" } else { "AWAITED" }.into(),
        (lock.sessions + lock.prepared).to_string(),
        if lock.granted {
            NONE.into()
        } else {
            age(lock.longest_wait_ms)
        },
        who,
    ]
}
