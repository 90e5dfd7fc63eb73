//! Readers: texts in, what they say about connections out. One file a format; each number with its place.

mod compose;
mod cron;
mod ecs;
mod found;
mod kubernetes;
mod nodes;
pub mod pgbouncer;
mod postgres_conf;
pub mod rails;
mod read;
mod spec_file;

pub use found::*;
pub use nodes::beside;
pub use pgbouncer::PgBouncer;
pub use postgres_conf::Conf;
pub use read::read;
pub use spec_file::{POOL, ServerSpec, SpecFile, Suppression, WorkloadSpec};

use nodes::{known, number, plain, surge, text};
