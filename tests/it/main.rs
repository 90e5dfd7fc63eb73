//! Without a server: made-up snapshots, saved ones, the tree itself.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    reason = "a test ends where something is not as it should be"
)]

mod budget;
mod budget_output;
mod build;
mod bundle;
mod bundle_damage;
mod captures;
mod connections;
mod corpus;
mod deadlock_encodings;
mod deadlock_lines;
mod deadlock_names;
mod deadlock_once;
mod deadlocks;
mod forest;
mod formats;
mod guard;
mod language;
mod layering;
mod log_japanese;
mod postmortem;
mod postmortem_again;
mod postmortem_found;
mod postmortem_told;
mod redaction;
mod reference;
mod rehearsed;
mod runbook;
mod schemas;
mod triage;
