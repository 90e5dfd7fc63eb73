//! `stanch capture`: round after round into a folder, then one sealed file. What can't be had is a gap with its reason, and no
//! reason to stop.

mod begin;
mod console;
mod finish;
mod run;
mod take;
mod tape;

pub use run::run;
