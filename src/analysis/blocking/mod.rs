//! `pg blockers`: who blocks whom, as a forest with the session to act on at each root.
//!
//! The server's own word (`pg_blocking_pids`) comes first; what it can't tell is derived from the locks: prepared
//! transactions by name, a standby's startup process, long queues for which not everyone is asked.

mod build;
mod cycles;
mod forest;
mod graph;
mod queue;
mod remedy;
mod report;
mod signal;
mod tree;
mod walk;

pub use remedy::{Action, Remedy};
pub use report::{Blockers, Edge, EdgeLock, PARTS, Root, RootKind, Source, behind, report};
pub use signal::lost;
pub use tree::{Tree, TreeLine, TreeWaiter};
