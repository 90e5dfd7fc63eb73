//! The only module that changes a server. It takes nothing but an `Approved`, which only the guard can make.

pub mod guard;
mod prepared;
mod session;
mod setting;
mod signal;

pub use guard::{Approved, ApprovedSignal, Candidate, Choice, Consent, Facts, Guarded, Policy};
pub use prepared::{ApprovedRollback, PreparedTarget, roll_back};
pub use session::{ApprovedSession, end_session, start_session};
pub use setting::{ApprovedSetting, OptIn, SettingChange, set};
pub use signal::send;
