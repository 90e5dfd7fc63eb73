//! One view a report.

pub mod actions;
mod activity;
mod blockers;
mod cells;
mod connections;
mod deadlock_counters;
mod deadlock_sheets;
mod deadlocks;
mod doctor;
pub mod explain;
mod horizon;
mod locks;
mod log_head;
pub mod query;
mod redis;
mod settings;
mod transactions;
mod triage;

use crate::analysis::Head;

use super::console::Style;
use super::prometheus::Metric;
use super::sheet::Sheet;

pub(super) use cells::names;
pub use cells::wrap;

/// A report as text for people, below its header: of PostgreSQL, or of what else has a head of its own.
pub trait Table<H = Head> {
    fn table(&self, head: &H, style: Style) -> String;

    /// What it comes to, in a sentence or two.
    fn sentences(&self, head: &H) -> Vec<String>;

    /// Its lists; the first is the one that CSV gives.
    fn sheets(&self) -> Vec<Sheet>;

    /// Its numbers, for Prometheus; the command line lets only those through that have some.
    fn metrics(&self, _: &H) -> Vec<Metric> {
        Vec::new()
    }
}
