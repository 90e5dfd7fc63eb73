//! A log as bytes: a file or standard input, plain or compressed.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::rc::Rc;

use flate2::read::MultiGzDecoder;

use crate::model::LogPacking;

/// Why a log can't be read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("{name}: {error}")]
    Io { name: String, error: io::Error },
    #[error(
        "{name}: compressed with {with}, which isn't read here: unpack it, and give `-` for standard input"
    )]
    Compressed { name: String, with: &'static str },
    #[error(
        "{name}: nothing in it looks like a log of PostgreSQL's (stderr, csvlog or jsonlog){hint}"
    )]
    NotALog { name: String, hint: &'static str },
}

/// An open log.
pub struct Opened {
    /// As it was given; `-` is standard input.
    pub name: String,
    pub packing: LogPacking,
    /// In bytes as they lie on disk.
    pub size: Option<u64>,
    /// How many of them were read.
    pub position: Rc<Cell<u64>>,
    pub reader: Box<dyn Read>,
}

/// Counts what passes.
struct Counted<R> {
    inner: R,
    count: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.count.set(self.count.get() + read as u64);
        Ok(read)
    }
}

/// Opens a file, or standard input for `-`; the compression is told by its first bytes.
///
/// # Errors
/// When it can't be opened, or is packed in a way that isn't read here.
pub fn open(path: &Path) -> Result<Opened, LogError> {
    let name = path.to_string_lossy().into_owned();
    let fault = |error: io::Error| LogError::Io {
        name: name.clone(),
        error,
    };
    let (raw, size): (Box<dyn Read>, _) = if name == "-" {
        (Box::new(io::stdin()), None)
    } else {
        let file = File::open(path).map_err(fault)?;
        let meta = file.metadata().map_err(fault)?;
        if meta.is_dir() {
            return Err(fault(io::Error::from(io::ErrorKind::IsADirectory)));
        }
        (Box::new(file), meta.is_file().then_some(meta.len()))
    };
    let position = Rc::new(Cell::new(0));
    let mut counted = Counted {
        inner: raw,
        count: Rc::clone(&position),
    };
    let mut magic = [0; 6];
    let mut known = 0;
    while known < magic.len() {
        match counted.read(&mut magic[known..]) {
            Ok(0) => break,
            Ok(read) => known += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(fault(error)),
        }
    }
    let first = magic[..known].to_vec();
    let whole = io::Cursor::new(first.clone()).chain(counted);
    let (packing, reader): (_, Box<dyn Read>) = match first.as_slice() {
        [0x1f, 0x8b, ..] => (
            LogPacking::Gzip,
            Box::new(MultiGzDecoder::new(BufReader::with_capacity(
                1 << 16,
                whole,
            ))),
        ),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => (
            LogPacking::Zstd,
            Box::new(zstd::stream::read::Decoder::new(whole).map_err(fault)?),
        ),
        [0x42, 0x5a, 0x68, ..] => {
            return Err(LogError::Compressed {
                name,
                with: "bzip2",
            });
        }
        [0xfd, 0x37, 0x7a, 0x58, 0x5a, ..] => {
            return Err(LogError::Compressed { name, with: "xz" });
        }
        [0x50, 0x4b, 0x03, 0x04, ..] => return Err(LogError::Compressed { name, with: "zip" }),
        [0x04, 0x22, 0x4d, 0x18, ..] => return Err(LogError::Compressed { name, with: "lz4" }),
        _ => (LogPacking::None, Box::new(whole)),
    };
    Ok(Opened {
        name,
        packing,
        size,
        position,
        reader,
    })
}
