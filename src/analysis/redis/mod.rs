//! PURE: what was read of a Redis → reports.

pub mod bigkeys;
pub mod expiry;
mod head;
pub mod hotkeys;
pub mod info;
mod look;
pub mod queues;
pub mod stampede;

pub use head::{RedisHead, RedisReport};
pub use look::{Look, RedisPart};
