//! PostgreSQL's server logs → events: stderr, csvlog and jsonlog, plain or compressed, in any language of messages,
//! read in one pass and constant memory.
//!
//! Whatever waits for a lock names its mode, and no translation touches that word. So a search for the tail of it finds
//! every line that matters in any language, at the pace of the search, and only around what it finds is anything parsed.
//!
//! ```text
//! open ─ window ─ scan ─┬─ stderr (prefix, labels) ─┐
//!                       ├─ csvlog                   ├─ Record ─ events (locktext) ─ LogEvent
//!                       └─ jsonlog                  ┘
//! ```

mod csvlog;
mod encoding;
mod events;
mod format;
mod generic;
mod jsonlog;
mod labels;
mod locktext;
mod logins;
mod moments;
mod odd;
mod open;
mod prefix;
mod record;
mod scan;
mod stderr;
mod time;
mod window;
mod words;
mod wrapped;

pub use moments::moments;
pub use open::{LogError, Opened, open};
pub use prefix::{Prefix, PrefixError};
pub use scan::{Begun, ScanOptions, Wanted, begin};
pub use time::{AS_UTC, Zone};
