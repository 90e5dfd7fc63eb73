//! *stanch*: for the person on call when PostgreSQL fails in production.
//!
//! Data flows left to right, imports point inward to [`model`]:
//!
//! ```text
//! queries/*.sql ─ source::postgres ─┐                         ┌─ view ─ standard output
//! saved file ──── bundle ───────────┴─ model::Snapshot ─ analysis::Report
//! ```
//!
//! | module | what it is | may import of ours |
//! |---|---|---|
//! | [`model`] | the data: plain structs, no I/O, no clock, no colour | – |
//! | [`sql`] | pure: tokens, fingerprint, secrets, quoting | model |
//! | [`config`] | `stanch.yaml` | model |
//! | [`bundle`] | snapshot ↔ disk, and what is reduced before | model, sql |
//! | [`source`] | a live server or a saved file → snapshot; the only reader of PostgreSQL | model, bundle, sql |
//! | [`analysis`] | pure: snapshot → report | model, sql |
//! | [`view`] | report → bytes | model, analysis |
//! | [`drill`] | throwaway servers with a real incident on them | model, source |
//! | [`cli`] | arguments, environment, local clock; one file a subcommand | everything |
//!
//! `tests/it/layering.rs` holds the code to this table. Nothing in here changes a server, except the drills, and those
//! only touch servers that they have started themselves.

pub mod analysis;
pub mod bundle;
pub mod cli;
pub mod config;
pub mod drill;
pub mod model;
pub mod source;
pub mod sql;
pub mod view;
