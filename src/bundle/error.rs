//! Why a bundle can't be read.

use std::io;
use std::path::PathBuf;

use super::format::ReadError;

/// What is wrong with it.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    #[error("{path}: {error}")]
    Io { path: PathBuf, error: io::Error },
    /// A single saved snapshot, or a frame.
    #[error(transparent)]
    Snapshot(#[from] ReadError),
    #[error("{0}: neither a bundle (it has no capture.json) nor a saved snapshot")]
    NotABundle(PathBuf),
    #[error(
        "{path}: format {found} is another than this version reads ({})",
        super::layout::BUNDLE_FORMAT
    )]
    OtherVersion { path: PathBuf, found: String },
    /// Something that no bundle of ours has: an escape from its folder, a link, a bomb.
    #[error("{path}: refused: {what}")]
    Refused { path: PathBuf, what: String },
    #[error("{path}: damaged: {what}")]
    Damaged { path: PathBuf, what: String },
    #[error("{path}: {what}")]
    NoSuchFrame { path: PathBuf, what: String },
}

impl BundleError {
    /// A frame can't be read as it was written, which costs that frame alone: where it is damaged, and never what stands there.
    pub fn damage(&self) -> Option<String> {
        match self {
            Self::Snapshot(ReadError::Damaged { line, column, .. }) => {
                Some(format!("damaged at line {line}, column {column}"))
            }
            Self::Snapshot(ReadError::NotASnapshot(_)) => {
                Some("damaged: it is no saved snapshot any more".into())
            }
            _ => None,
        }
    }
}
