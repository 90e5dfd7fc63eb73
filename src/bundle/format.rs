//! The saved file: a snapshot as JSON, its format and version first.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
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
    #[error("{path}: format {found} is newer than this version reads ({SNAPSHOT_FORMAT})")]
    Newer { path: PathBuf, found: String },
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
    let damaged = |e: &serde_json::Error| ReadError::Damaged {
        path: path.into(),
        line: e.line(),
        column: e.column(),
        what: cause(e),
    };
    let header: Header = serde_json::from_slice(&text).map_err(|e| {
        // A file that was cut has the right beginning; a file of something else hasn't.
        if text.starts_with(b"{\n  \"format\": \"stanch.snapshot/") {
            damaged(&e)
        } else {
            ReadError::NotASnapshot(path.into())
        }
    })?;
    if header.format != SNAPSHOT_FORMAT {
        return Err(match header.format.strip_prefix("stanch.snapshot/") {
            Some(_) => ReadError::Newer {
                path: path.into(),
                found: header.format,
            },
            None => ReadError::NotASnapshot(path.into()),
        });
    }
    serde_json::from_slice(&text).map_err(|e| damaged(&e))
}

/// serde_json puts the position into its text as well.
fn cause(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ")
        .map_or(text.clone(), |(what, _)| what.to_owned())
}

/// Writes the whole file beside its place and then moves it there, so that a file is never half written.
///
/// # Errors
/// When the folder can't be written to.
pub fn write(path: &Path, snapshot: &Snapshot) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let written = write_new(&part, snapshot).and_then(|()| std::fs::rename(&part, path));
    if written.is_err() {
        // The first error is the one to tell.
        let _ = std::fs::remove_file(&part);
    }
    written
}

fn write_new(path: &Path, snapshot: &Snapshot) -> io::Result<()> {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    // Also where an older umask or file had it wider.
    file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    let mut out = BufWriter::new(file);
    serde_json::to_writer_pretty(&mut out, snapshot)?;
    out.write_all(b"\n")?;
    out.into_inner()
        .map_err(io::IntoInnerError::into_error)?
        .sync_all()
}
