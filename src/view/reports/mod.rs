//! One view a report.

mod activity;
mod blockers;
mod connections;
mod doctor;
pub mod explain;
mod horizon;
mod locks;
pub mod query;
mod settings;
mod transactions;
mod triage;

use crate::analysis::Head;
use crate::model::{Millis, Pid};

use super::console::Style;
use super::layout::{Column, table};
use super::sanitize::clean;

/// A report as text for people, below its header.
pub trait Table {
    fn table(&self, head: &Head, style: Style) -> String;
}

/// What isn't known or isn't there.
const NONE: &str = "-";

fn or_none(text: Option<&str>) -> String {
    text.map_or_else(|| NONE.into(), str::to_owned)
}

fn age(ms: Option<Millis>) -> String {
    ms.map_or_else(|| NONE.into(), |ms| ms.to_string())
}

fn pids(pids: &[Pid]) -> String {
    pids.iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(" ")
}

/// A statement for one line; the server's own cut shows as `…`.
fn statement(query: Option<&str>, truncated: bool) -> String {
    let Some(query) = query else {
        return String::new();
    };
    let mut text = clean(&crate::view::sanitize::one_line(query));
    if truncated {
        text.push('…');
    }
    text
}

/// `1 session`, `3 sessions`
fn count(number: usize, noun: &str) -> String {
    if number == 1 {
        format!("1 {noun}")
    } else {
        format!("{number} {noun}s")
    }
}

/// Names with a line about each.
fn names(titles: [&str; 2], all: &[(&str, &str)], style: Style) -> String {
    let columns = [Column::text(titles[0]), Column::text(titles[1]).flex(20)];
    let rows = all
        .iter()
        .map(|(name, what)| vec![(*name).to_owned(), (*what).to_owned()])
        .collect();
    table(&columns, rows, style.width)
}

/// The incidents that can be practised on.
pub fn drill_list(incidents: &[(&str, &str)], style: Style) -> String {
    names(["drill", "what happens"], incidents, style)
}
