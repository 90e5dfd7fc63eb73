//! WORLD → Snapshot: a live server or a saved file. The only reader of PostgreSQL, PgBouncer and Redis.

pub mod pgbouncer;
pub mod postgres;
pub mod redis;
pub mod saved;
