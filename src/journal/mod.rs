//! What was done, one JSON line an event, on disk before and after each effect. Append-only; a crash loses nothing that
//! was written, and an intent without a result says that its outcome isn't known.

mod event;
mod file;
mod lock;
mod redact;

pub use event::{Effect, Event, Left, Record};
pub use file::{Journal, JournalError, all, hash, is_written, read};
pub use lock::{Holder, TargetLock};
pub use redact::{is_hidden, shown, shown_value};
