//! `pg deadlocks`: events of a log → circles with their lock order, alike ones counted, and the longest waits.

mod aim;
mod collect;
mod grown;
mod linked;
mod masked;
mod names;
mod once;
mod order;
mod report;
mod target;
mod waits;

pub use collect::Collector;
pub use grown::{Counted, Deadlocking, Growing, Growth, PARTS, counted, finding, report as live};
pub use linked::Waiting;
pub use masked::masked;
pub use once::{Known, Once};
pub use order::relations;
pub use report::{
    Basis, Deadlock, Deadlocks, Group, Hour, LogCoverage, LogHead, LogReport, Member, Order,
    OrderConflict, Shape, WaitsFor, report,
};
pub use waits::{LockWaits, WaitEnd, WaitRow};
