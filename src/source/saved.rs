//! A saved snapshot in place of a server: every report runs on it offline.

use std::path::Path;

use crate::bundle::{self, ReadError};
use crate::model::Snapshot;

/// Reads what `--save` wrote; the format is told by the content.
///
/// # Errors
/// When the file can't be read, isn't a snapshot, is damaged, or is of a newer format.
pub fn load(path: &Path) -> Result<Snapshot, ReadError> {
    bundle::read(path)
}
