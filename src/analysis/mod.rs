//! PURE: Snapshot → reports. No clock of its own, no I/O: the same snapshot gives the same report for ever.

pub mod actions;
pub mod activity;
pub mod blocking;
pub mod catalog;
mod command;
pub mod compare;
pub mod connections;
mod coverage;
pub mod deadlocks;
pub mod doctor;
pub mod glance;
pub mod horizon;
pub mod locks;
mod lookup;
pub mod redis;
mod report;
pub mod settings;
pub mod transactions;
pub mod triage;

pub use command::{
    psql_command, psql_commands, redis_command, redis_url, shell_word, stanch_command,
};
pub use coverage::Coverage;
pub use lookup::Lookup;
pub use report::{Head, Report};
