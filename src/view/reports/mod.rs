//! One view a report.

mod activity;
mod blockers;
mod cells;
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

use super::console::Style;

pub use cells::drill_list;

/// A report as text for people, below its header.
pub trait Table {
    fn table(&self, head: &Head, style: Style) -> String;
}
