//! A live PostgreSQL: how to get in, what to ask, and the snapshot that comes of it.

pub mod catalog;
pub mod collect;
pub mod connect;
pub mod conninfo;
mod knock;
pub mod query;
mod reader;
mod refused;
pub mod rows;
mod sniff;
mod waiters;

pub use collect::{Parts, RoundError, RoundOptions, round};
pub use connect::Connected;
pub use conninfo::{ConnInput, ConnSpec, Environment};
pub use knock::{Knock, KnockOptions, get_in};
pub use refused::{ConnectError, ConnectFault};
