//! WORLD → Snapshot: a live server or a saved file. The only reader of PostgreSQL.

pub mod postgres;
pub mod saved;
