//! *stanch*: for the person on call when PostgreSQL fails in production.
//!
//! Data flows left to right, imports point inward to [`model`]:
//!
//! ```text
//! queries/*.sql ─ source::postgres ─┐                         ┌─ view ─ standard output
//! saved file, or
//! frame of a bundle ── bundle ──────┴─ model::Snapshot ─ analysis::Report
//! ```
//!
//! | module | what it is | may import of ours |
//! |---|---|---|
//! | [`model`] | the data: plain structs, no I/O, no clock, no colour | – |
//! | [`sql`] | pure: tokens, fingerprint, secrets, quoting | model |
//! | [`yaml`] | pure: YAML as a tree with places | – |
//! | [`budget`] | pure: what can connect at its peak, against what the server has; and the readers of what says so | model, sql, yaml |
//! | [`keys`] | pure: groups of keys learned from their names, the top N, when they expire | model |
//! | [`config`] | `stanch.yaml` | model |
//! | [`bundle`] | snapshots ↔ disk: what is reduced before, sealed bundles, the gate that lets nothing secret through | model, sql |
//! | [`logs`] | PostgreSQL's server logs → events, in one pass and constant memory | model, sql |
//! | [`source`] | a live server or a saved file → snapshot; the only reader of PostgreSQL, PgBouncer and Redis | model, bundle, sql, keys |
//! | [`analysis`] | pure: snapshot → report | model, sql, keys |
//! | [`postmortem`] | pure: journal, captures and log moments → one document; what people write in it is kept | model, analysis, budget, runbook, journal |
//! | [`view`] | report → bytes | model, analysis, budget, postmortem |
//! | [`journal`] | what was done, one line an event, on disk before and after each effect | model, sql |
//! | [`action`] | the only module that changes a server: the guard, and the signal that is checked once more | model, sql, journal, source |
//! | [`runbook`] | pure: YAML books read and checked with every fault at its place, and where one goes on | model, sql, yaml |
//! | [`operate`] | carries decisions out: choose, ask, act batch by batch, measure again; walks a book | model, source, bundle, analysis, action, journal, config, runbook |
//! | [`drill`] | throwaway servers with a real incident on them | model, source |
//! | [`cli`] | arguments, environment, local clock; one file a subcommand | everything |
//!
//! `tests/it/layering.rs` holds the code to this table. Nothing in here changes a server but [`action`], with an
//! `Approved` that only its guard can make; the drills touch only servers that they have started themselves.

pub mod action;
pub mod analysis;
pub mod budget;
pub mod bundle;
pub mod cli;
pub mod config;
pub mod drill;
pub mod journal;
pub mod keys;
pub mod logs;
pub mod model;
pub mod operate;
pub mod postmortem;
pub mod runbook;
pub mod source;
pub mod sql;
pub mod view;
pub mod yaml;
