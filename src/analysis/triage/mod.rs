//! `triage`: everything in one round, as findings ranked by severity, each with its evidence and the next command.

mod growth;
mod judge;
mod locks;
mod pooler;
mod sessions;
mod settings;
mod slots;

pub use judge::{Finding, PARTS, Summary, Triage, code, report};
pub use sessions::running_together;
