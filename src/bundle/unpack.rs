//! An archive from a stranger, file by file: only plain files within one folder, of sizes that a bundle has.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Component, Path};

use super::error::BundleError;
use super::open::Each;

/// The largest file, in bytes.
pub(super) const FILE: u64 = 256 << 20;
/// All of them together.
const ALL: u64 = 4 << 30;
/// So many files.
const FILES: usize = 200_000;
/// Packed tighter than this, and large, it is meant to do harm.
const RATIO: u64 = 1_000;
const LARGE: u64 = 256 << 20;
/// Memory for the window of a stream: 128 MiB at most.
const WINDOW_LOG: u32 = 27;

/// Zstandard or gzip, by how it begins.
pub(super) fn is_packed(magic: &[u8]) -> bool {
    magic.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) || magic.starts_with(&[0x1f, 0x8b])
}

/// Hands on every file of an archive; gives the name of the folder that they are in.
///
/// # Errors
/// When it can't be read, or holds anything but plain files in one folder.
pub(super) fn each(path: &Path, each: &mut Each<'_>) -> Result<String, BundleError> {
    let io_error = |error: io::Error| BundleError::Io {
        path: path.to_path_buf(),
        error,
    };
    let refused = |what: String| BundleError::Refused {
        path: path.to_path_buf(),
        what,
    };
    let damaged = |error: io::Error| {
        // Our own limit speaks through the reader.
        let what = error.to_string();
        if what.starts_with(BOMB) {
            return refused(what);
        }
        BundleError::Damaged {
            path: path.to_path_buf(),
            what,
        }
    };
    let mut file = File::open(path).map_err(io_error)?;
    let packed = file.metadata().map_err(io_error)?.len();
    let mut magic = [0; 4];
    file.read_exact(&mut magic).map_err(damaged)?;
    let whole = io::Cursor::new(magic).chain(file);
    let unpacked: Box<dyn Read> = if magic[0] == 0x1f {
        Box::new(flate2::read::MultiGzDecoder::new(BufReader::new(whole)))
    } else {
        let mut decoder = zstd::Decoder::new(whole).map_err(damaged)?;
        decoder.window_log_max(WINDOW_LOG).map_err(damaged)?;
        Box::new(decoder)
    };
    let mut archive = tar::Archive::new(Bounded {
        inner: unpacked,
        packed,
        read: 0,
    });
    let mut top: Option<String> = None;
    let mut seen: BTreeSet<String> = BTreeSet::new();
    // Raw: long names and other extensions are files of a kind that no bundle has.
    for entry in archive.entries().map_err(damaged)?.raw(true) {
        let mut entry = entry.map_err(damaged)?;
        let written = entry.path().map_err(damaged)?.into_owned();
        let shown = written.display().to_string();
        if entry.header().entry_type() != tar::EntryType::Regular {
            return Err(refused(format!("{shown} is no plain file")));
        }
        let (folder, name) =
            inside(&written).ok_or_else(|| refused(format!("{shown} leads out of its folder")))?;
        match &top {
            None => top = Some(folder),
            Some(top) if *top == folder => {}
            Some(_) => return Err(refused(format!("{shown} is in a second folder"))),
        }
        let size = entry.header().size().map_err(damaged)?;
        if size > FILE {
            return Err(refused(format!("{shown} is larger than any of ours")));
        }
        if seen.len() >= FILES {
            return Err(refused(format!("more than {FILES} files")));
        }
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(damaged)?;
        if bytes.len() as u64 != size {
            return Err(damaged(io::ErrorKind::UnexpectedEof.into()));
        }
        if !seen.insert(name.clone()) {
            return Err(refused(format!("{shown} is in it twice")));
        }
        each(&name, &bytes)?;
    }
    // Padding is all that may follow.
    let mut rest = archive.into_inner();
    let mut buffer = [0; 8192];
    loop {
        match rest.read(&mut buffer).map_err(damaged)? {
            0 => break,
            read if buffer[..read].iter().all(|byte| *byte == 0) => {}
            _ => return Err(refused("something follows behind its end".into())),
        }
    }
    top.ok_or_else(|| BundleError::NotABundle(path.to_path_buf()))
}

/// The folder at the top and the rest, where it is a plain way down.
fn inside(path: &Path) -> Option<(String, String)> {
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(part) => parts.push(part.to_str()?.to_owned()),
            _ => return None,
        }
    }
    let plain = |part: &String| {
        part.chars()
            .all(|c| !c.is_control() && c != '\\' && c != '\u{fffd}')
    };
    // One folder, and at most one in it.
    if !(2..=3).contains(&parts.len()) || !parts.iter().all(plain) {
        return None;
    }
    let folder = parts.remove(0);
    Some((folder, parts.join("/")))
}

const BOMB: &str = "it unpacks to";

/// Stops where it becomes larger than a bundle is.
struct Bounded<R> {
    inner: R,
    packed: u64,
    read: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(into)?;
        self.read += read as u64;
        if self.read > ALL || self.read > LARGE && self.read / RATIO > self.packed {
            return Err(io::Error::other(format!(
                "{BOMB} more than {} MiB",
                self.read >> 20
            )));
        }
        Ok(read)
    }
}
