//! `pg connections`: the sum, then groups and limits as tables.

use super::Table;
use super::cells::{age, or_none, wrap};
use crate::analysis::Head;
use crate::analysis::connections::{Capacity, Connections, Group, Limit};
use crate::view::console::Style;
use crate::view::layout::{Column, table};

impl Table for Connections {
    fn table(&self, _: &Head, style: Style) -> String {
        let mut out = match &self.capacity {
            Some(capacity) => slots(capacity, style.width.unwrap_or(usize::MAX)),
            None => {
                "how full it is can't be told: the limits or the sessions weren't read\n".into()
            }
        };
        if !self.groups.is_empty() {
            out.push('\n');
            let columns = [
                Column::text("user").shrink(6),
                Column::text("database").shrink(6),
                Column::text("application").flex(8),
                Column::text("client").shrink(9).drop(3),
                Column::number("total"),
                Column::number("active"),
                Column::number("idle"),
                Column::number("in xact"),
                Column::number("aborted").drop(2),
                Column::number("other").drop(4),
                Column::number("hidden").drop(5),
                Column::number("oldest idle").drop(6),
                Column::number("new/min").drop(7),
            ];
            let rows = self.groups.iter().map(group).collect();
            out.push_str(&table(&columns, rows, style.width));
        }
        if !self.limits.is_empty() {
            out.push('\n');
            let columns = [
                Column::text("limit of").shrink(8),
                Column::number("limit"),
                Column::number("used"),
                Column::number("free"),
            ];
            let rows = self.limits.iter().map(limit).collect();
            out.push_str(&table(&columns, rows, style.width));
        }
        out
    }
}

fn slots(c: &Capacity, most: usize) -> String {
    let mut sum = format!(
        "max_connections {} - {} for superusers - {} reserved",
        c.max_connections, c.superuser_reserved, c.reserved
    );
    if let Some(provider) = c.provider_reserved {
        sum.push_str(&format!(" - {provider} for the provider"));
    }
    sum.push_str(&format!(
        " = {} usable; this connection isn't counted",
        c.usable
    ));
    let mut sentences = vec![format!("{}, {} free", c.words(), c.free_words()), sum];
    if let Some(unaccounted @ 1..) = c.unaccounted {
        sentences.push(format!(
            "at least {unaccounted} more are held by what the server doesn't show (not yet authenticated, or starting)"
        ));
    }
    sentences
        .iter()
        .map(|sentence| wrap(sentence, most, 0))
        .collect()
}

fn group(g: &Group) -> Vec<String> {
    vec![
        or_none(g.user.as_deref()),
        or_none(g.database.as_deref()),
        or_none(g.application_name.as_deref()),
        match (&g.client_addr, g.hidden) {
            (Some(addr), _) => addr.clone(),
            (None, 0) => "local".into(),
            (None, _) => "-".into(),
        },
        g.total.to_string(),
        g.active.to_string(),
        g.idle.to_string(),
        g.idle_in_transaction.to_string(),
        g.idle_in_transaction_aborted.to_string(),
        g.other.to_string(),
        g.hidden.to_string(),
        age(g.oldest_idle_ms),
        g.opened_last_minute
            .map_or_else(|| "-".into(), |opened| opened.to_string()),
    ]
}

fn limit(l: &Limit) -> Vec<String> {
    vec![
        format!("{} {}", l.kind.word(), l.name),
        l.limit.to_string(),
        l.used.to_string(),
        l.free.to_string(),
    ]
}
