//! A live Redis or Valkey: how to get in, and what it says of itself. It is only read, by commands that take no time.

mod connect;
mod info;

pub use connect::{RedisAddress, RedisError};
pub use info::info;
