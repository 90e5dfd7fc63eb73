//! Reports of Redis.

mod bigkeys;
mod expiry;
mod head;
mod hotkeys;
mod info;
mod numbers;
mod queues;
mod stampede;
