//! WORLD → Snapshot: a live server or a saved file. The only reader of PostgreSQL and Redis.

pub mod postgres;
pub mod redis;
pub mod saved;
