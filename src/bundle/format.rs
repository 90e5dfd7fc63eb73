//! The saved file: a snapshot as JSON, its format and version first.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::model::{SNAPSHOT_FORMAT, Snapshot};

/// Why a saved file can't be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("{path}: {error}")]
    Io { path: PathBuf, error: io::Error },
    #[error("{0}: not a saved snapshot (it has no \"format\": \"stanch.snapshot/…\")")]
    NotASnapshot(PathBuf),
    #[error("{path}: format {found} is another than this version reads ({SNAPSHOT_FORMAT})")]
    OtherVersion { path: PathBuf, found: String },
    #[error("{path}: damaged at line {line}, column {column}: {what}")]
    Damaged {
        path: PathBuf,
        line: usize,
        column: usize,
        what: String,
    },
}

#[derive(Deserialize)]
struct Header {
    format: String,
}

/// # Errors
/// When the file can't be read, isn't a snapshot, is of a newer format, or is damaged.
pub fn read(path: &Path) -> Result<Snapshot, ReadError> {
    let io_error = |error| ReadError::Io {
        path: path.into(),
        error,
    };
    let mut text = Vec::new();
    BufReader::new(File::open(path).map_err(io_error)?)
        .read_to_end(&mut text)
        .map_err(io_error)?;
    parse(path, &text)
}

/// A snapshot from its bytes; `path` is where they are from.
///
/// # Errors
/// When they aren't a snapshot, are of a newer format, or are damaged.
pub(super) fn parse(path: &Path, text: &[u8]) -> Result<Snapshot, ReadError> {
    let damaged = |e: &serde_json::Error| ReadError::Damaged {
        path: path.into(),
        line: e.line(),
        column: e.column(),
        what: cause(e),
    };
    let header: Header = serde_json::from_slice(text).map_err(|e| {
        // A file that was cut has the right beginning; a file of something else hasn't.
        if starts_as_snapshot(text) {
            damaged(&e)
        } else {
            ReadError::NotASnapshot(path.into())
        }
    })?;
    if header.format != SNAPSHOT_FORMAT {
        return Err(match header.format.strip_prefix("stanch.snapshot/") {
            Some(_) => ReadError::OtherVersion {
                path: path.into(),
                found: header.format,
            },
            None => ReadError::NotASnapshot(path.into()),
        });
    }
    serde_json::from_slice(text).map_err(|e| damaged(&e))
}

/// The beginning that every saved snapshot has, however it is spaced.
fn starts_as_snapshot(text: &[u8]) -> bool {
    let head = String::from_utf8_lossy(&text[..text.len().min(80)]);
    let bare: String = head.split_whitespace().collect();
    bare.starts_with("{\"format\":\"stanch.snapshot/")
}

/// serde_json puts the position into its text as well.
fn cause(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ")
        .map_or(text.clone(), |(what, _)| what.to_owned())
}

/// Writes the whole file beside its place and then moves it there, so that a file is never half written. What isn't a
/// regular file (a pipe, a terminal) is written through.
///
/// # Errors
/// When the place can't be written to.
pub fn write(path: &Path, snapshot: &Snapshot) -> io::Result<()> {
    let mut bytes = serde_json::to_vec_pretty(snapshot)?;
    bytes.push(b'\n');
    write_bytes(path, &bytes)
}

/// The same for any bytes.
///
/// # Errors
/// When the place can't be written to.
pub fn write_bytes(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let through = path.starts_with("/dev")
        || path
            .metadata()
            .map_or(path.is_symlink(), |meta| !meta.is_file());
    if through {
        let mut open = OpenOptions::new();
        let mut file = open.append(true).create(true).mode(0o600).open(path)?;
        file.write_all(bytes)?;
        return file.flush();
    }
    // A link stays a link: what it leads to is replaced.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    // Mode 0600 from the start, under a name that nobody else has.
    let mut part = tempfile::Builder::new()
        .prefix(".stanch-")
        .tempfile_in(folder)?;
    part.write_all(bytes)?;
    part.as_file().sync_all()?;
    part.persist(&path).map_err(|error| error.error)?;
    // The name is on disk too.
    File::open(folder)?.sync_all()
}
