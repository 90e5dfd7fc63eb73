//! Throwaway PostgreSQL servers with a real incident on them: the demo, the exercise, and the harness of the live tests
//! are this same code.
//!
//! A drill only ever touches servers that it has started itself. They live in a folder of mode 0700, listen on a socket
//! in it, die with the drill (also on kill -9), and leave nothing behind.

mod balancer;
mod cache;
mod cache_scenes;
mod error;
mod find;
mod folder;
mod incident;
mod process;
mod scenes;
mod server;
mod standby;

pub use cache::{Cache, CacheOptions};
pub use cache_scenes::{CacheIncident, CacheScene};
pub use error::DrillError;
pub use find::{bin_dirs, find_tool};
pub use folder::sweep;
pub use incident::Incident;
pub use scenes::{Scene, batch, connect, leave, leave_running, until};
pub use server::{Server, ServerOptions, free_port};
