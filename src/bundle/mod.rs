//! Snapshot ↔ disk: one versioned JSON file, mode 0600, redacted before it is shown or written.

mod format;
mod redact;

pub use format::{ReadError, read, write};
pub use redact::{no_redaction, redact};
