//! `pg transactions` as two tables: sessions, prepared transactions.

use super::Table;
use super::cells::{NONE, age, or_none, sentence, short_state, statement};
use crate::analysis::Head;
use crate::analysis::transactions::{Prepared, Transaction, Transactions};
use crate::model::{Millis, SessionState, count};
use crate::view::console::Style;
use crate::view::layout::{Column, table};
use crate::view::prometheus::{Metric, gauge, number};
use crate::view::sheet::{Col, Sheet, col, more};

impl Table for Transactions {
    fn table(&self, head: &Head, style: Style) -> String {
        let mut out = sentence(&self.summary(head), style);
        if !self.transactions.is_empty() {
            let columns = [
                Column::number("pid"),
                Column::text("user").shrink(6),
                Column::text("database").shrink(6).drop(2),
                Column::text("application").shrink(8).drop(1),
                Column::number("age"),
                Column::text("state").shrink(12),
                Column::number("for"),
                Column::number("xid"),
                Column::number("xmin held"),
                Column::text("query").flex_from(36, 20),
            ];
            let rows = self.transactions.iter().map(row).collect();
            out.push_str(&table(&columns, rows, style.width));
        }
        if !self.prepared.is_empty() {
            let columns = [
                Column::text("prepared transaction").flex(20),
                Column::text("owner").shrink(6),
                Column::text("database").shrink(6),
                Column::number("age"),
                Column::number("xid"),
            ];
            let rows = self.prepared.iter().map(prepared_row).collect();
            out.push('\n');
            out.push_str(&table(&columns, rows, style.width));
        }
        out
    }

    fn sentences(&self, head: &Head) -> Vec<String> {
        vec![self.summary(head)]
    }

    fn sheets(&self) -> Vec<Sheet> {
        const COLUMNS: [Col; 17] = [
            col("pid", "pid"),
            more("backend_start"),
            more("xact_start"),
            col("user", "user"),
            col("database", "database"),
            col("application_name", "application"),
            col("age_ms", "age"),
            col("state", "state"),
            col("state_age_ms", "for"),
            more("hidden"),
            more("xid_assigned"),
            col("xid", "xid"),
            more("holds_xmin"),
            more("xmin"),
            col("xmin_age", "xmin held, behind"),
            more("query_truncated"),
            col("query", "query"),
        ];
        const PREPARED: [Col; 6] = [
            col("gid", "gid"),
            more("prepared"),
            col("age_ms", "age"),
            col("owner", "owner"),
            col("database", "database"),
            col("xid", "xid"),
        ];
        vec![
            Sheet::of("transactions", &COLUMNS, &self.transactions),
            Sheet::of("prepared", &PREPARED, &self.prepared),
        ]
    }

    fn metrics(&self, head: &Head) -> Vec<Metric> {
        let oldest = |ages: &mut dyn Iterator<Item = Millis>| ages.max().map(Millis::seconds);
        // With hidden sessions every one of these would be a lower bound, and read as the truth.
        let sees_all =
            head.coverage.has_read("activity") && head.coverage.sessions_hidden == Some(0);
        let read = sees_all.then_some(());
        let idle = |t: &&Transaction| {
            t.state
                .as_ref()
                .is_some_and(SessionState::is_idle_in_transaction)
        };
        vec![
            gauge(
                "stanch_transactions",
                "Open transactions; absent where sessions are hidden.",
                read.map(|()| number(self.transactions.len())),
            ),
            gauge(
                "stanch_transactions_idle",
                "Of these, with nothing running.",
                read.map(|()| number(self.transactions.iter().filter(idle).count())),
            ),
            gauge(
                "stanch_transactions_with_xid",
                "Of these, that may have written.",
                read.map(|()| number(self.transactions.iter().filter(|t| t.xid_assigned).count())),
            ),
            gauge(
                "stanch_transaction_oldest_seconds",
                "Age of the oldest open transaction.",
                read.and_then(|()| oldest(&mut self.transactions.iter().filter_map(|t| t.age_ms))),
            ),
            gauge(
                "stanch_xmin_oldest_transactions",
                "How many transactions the oldest xmin of a session lies behind.",
                self.transactions.iter().filter_map(|t| t.xmin_age).max(),
            ),
            gauge(
                "stanch_prepared_transactions",
                "Prepared transactions.",
                head.coverage
                    .has_read("prepared")
                    .then(|| number(self.prepared.len())),
            ),
            gauge(
                "stanch_prepared_oldest_seconds",
                "Age of the oldest prepared transaction.",
                oldest(&mut self.prepared.iter().map(|p| p.age_ms)),
            ),
        ]
    }
}

impl Transactions {
    fn summary(&self, head: &Head) -> String {
        let hidden = head.coverage.sessions_hidden.unwrap_or(0);
        let unseen = match (hidden, head.coverage.is_complete()) {
            (0, true) => String::new(),
            (0, false) => " that could be seen".into(),
            (hidden, _) => format!(
                " to be seen; {} may be in one",
                count(hidden, "hidden session")
            ),
        };
        match (self.transactions.len() + self.prepared.len(), self.younger) {
            (0, 0) => format!("no open transaction{unseen}"),
            (0, younger) => format!("no open transaction that old, {younger} younger{unseen}"),
            _ => format!(
                "{} open{unseen}",
                count(self.transactions.len(), "transaction")
            ),
        }
    }
}

fn row(t: &Transaction) -> Vec<String> {
    let xmin = match (t.xmin_age, t.holds_xmin) {
        (Some(age), true) => format!("{age} behind"),
        (None, true) => "yes".into(),
        (_, false) => NONE.into(),
    };
    let state = match (&t.state, t.hidden) {
        (Some(state), _) => short_state(state),
        (None, true) => "hidden",
        (None, false) => NONE,
    };
    vec![
        t.pid.to_string(),
        or_none(t.user.as_deref()),
        or_none(t.database.as_deref()),
        or_none(t.application_name.as_deref()),
        age(t.age_ms),
        state.to_owned(),
        age(t.state_age_ms),
        t.xid.map_or_else(|| NONE.into(), |xid| xid.to_string()),
        xmin,
        statement(t.query.as_deref(), t.query_truncated),
    ]
}

fn prepared_row(p: &Prepared) -> Vec<String> {
    vec![
        p.gid.clone(),
        or_none(p.owner.as_deref()),
        or_none(p.database.as_deref()),
        p.age_ms.to_string(),
        p.xid.to_string(),
    ]
}
