//! `pg transactions` as two tables: sessions, prepared transactions.

use super::Table;
use super::cells::{NONE, age, or_none, short_state, statement};
use crate::analysis::Head;
use crate::analysis::transactions::{Prepared, Transaction, Transactions};
use crate::model::count;
use crate::view::console::Style;
use crate::view::layout::{Column, table};

impl Table for Transactions {
    fn table(&self, head: &Head, style: Style) -> String {
        let hidden = head.coverage.sessions_hidden.unwrap_or(0);
        let unseen = match (hidden, head.coverage.is_complete()) {
            (0, true) => String::new(),
            (0, false) => " that could be seen".into(),
            (hidden, _) => format!(
                " to be seen; {} may be in one",
                count(hidden, "hidden session")
            ),
        };
        if self.transactions.is_empty() && self.prepared.is_empty() {
            return match self.younger {
                0 => format!("no open transaction{unseen}\n"),
                younger => format!("no open transaction that old, {younger} younger{unseen}\n"),
            };
        }
        let mut out = format!(
            "{} open{unseen}\n",
            count(self.transactions.len(), "transaction")
        );
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
