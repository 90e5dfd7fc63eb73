//! A live PostgreSQL: how to get in, what to ask, and the snapshot that comes of it.

pub mod catalog;
pub mod collect;
pub mod connect;
pub mod conninfo;
pub mod query;
pub mod rows;
mod sniff;
mod waiters;

pub use collect::{Parts, RoundError, RoundOptions, round};
pub use connect::{ConnectError, ConnectFault, Connected, Knock, KnockOptions, get_in};
pub use conninfo::{ConnInput, ConnSpec, Environment};
