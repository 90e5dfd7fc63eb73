//! Against real servers, started by the drills' own code and gone when the test is over.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    reason = "a test reads its own environment, and ends where something is not as it should be"
)]

mod acting;
mod budget;
mod capture;
mod columns;
mod connecting;
#[expect(dead_code, reason = "what is innocent is for the other suite")]
#[path = "../it/corpus.rs"]
mod corpus;
mod deadlock_lines;
mod deadlocks;
mod drills;
mod failures;
mod forest;
mod getting_in;
mod harness;
mod impostor;
mod kinds;
mod matrix;
mod monitoring;
mod pki;
mod pooler;
mod queues;
mod queues_counts;
mod queues_libraries;
mod readme;
mod redis;
mod redis_down;
mod redis_fake;
mod redis_grants;
mod redis_keys;
mod redis_moments;
mod redis_places;
mod redis_refusals;
mod redis_server;
mod redis_sizes;
mod redis_stampede;
mod replay;
mod reports;
mod resuming;
mod rights;
mod rules;
mod text;
mod walking;
