//! Snapshots ↔ disk: single files and bundles of many, mode 0600, redacted before anything is shown or written, sealed only
//! when nothing secret is found in them.

mod columns;
mod error;
mod folder;
mod format;
mod gate;
mod known;
mod layout;
mod open;
mod redact;
mod seal;
mod shipment;
mod tokens;
mod unpack;
mod verify;

pub use columns::{Class, class, shown};
pub use error::BundleError;
pub use folder::{Folder, Kept};
pub use format::{ReadError, read, write, write_bytes};
pub use gate::{Hit, rules};
pub use known::KnownSecrets;
pub use layout::{
    Allowance, BUNDLE_FORMAT, End, FrameRef, Gap, Head, Manifest, RedisRef, Sealed, stamp,
};
pub use open::{Bundle, Read};
pub use redact::{leave_out_known, no_redaction, redact, redact_pooler, redact_value};
pub use seal::{SealError, SealedFile, hits, manifest, seal, seal_frames, sealed_name};
pub use tokens::Tokens;
pub use verify::{Checked, verify};
