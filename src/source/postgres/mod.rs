//! A live PostgreSQL: how to get in, what to ask, and the snapshot that comes of it.

pub mod catalog;
mod classify;
pub mod collect;
pub mod connect;
pub mod conninfo;
mod dial;
pub mod encoding;
mod knock;
pub mod query;
mod reader;
mod refused;
pub mod rows;
mod sniff;
mod tls;
mod waiters;

pub use classify::chain;
pub use collect::{Parts, RoundError, RoundOptions, round};
pub use connect::{Connected, console};
pub use conninfo::{ConnInput, ConnSpec, Environment, Plan};
pub use knock::{Knock, KnockOptions, get_in};
pub use refused::{ConnectError, ConnectFault};
