//! A bundle, or a single saved snapshot, opened for reading: the folder of a capture (also of one that was cut off), or what it
//! was sealed to.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::error::BundleError;
use super::folder::is_written;
use super::format;
use super::layout::{
    BUNDLE_FAMILY, BUNDLE_FORMAT, END, End, FRAMES, FrameRef, GAPS, Gap, HEAD, Head, LOGS,
    MANIFEST, Manifest, REDIS, RedisRef, frame_of, redis_of,
};
use super::seal::hex;
use super::unpack;
use crate::model::{LOG_UNREAD, Snapshot};

/// Where its files are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Single,
    Folder,
    Sealed,
}

/// A frame, or why it can't be had.
pub type Read = (FrameRef, Result<Snapshot, BundleError>);

/// What is handed every file, in the order of the names.
pub(super) type Each<'e> = dyn FnMut(&str, &[u8]) -> Result<(), BundleError> + 'e;

/// An opened bundle: its head is read, its frames are known by name.
#[derive(Debug)]
pub struct Bundle {
    path: PathBuf,
    kind: Kind,
    /// The folder in an archive.
    top: String,
    head: Head,
    end: Option<End>,
    gaps: Vec<Gap>,
    manifest: Option<Manifest>,
    frames: Vec<FrameRef>,
    redis: Vec<RedisRef>,
    logs: Vec<String>,
}

impl Bundle {
    /// A folder or an archive, as opposed to a single file of JSON.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn is_bundle(path: &Path) -> Result<bool, BundleError> {
        let meta = fs::metadata(path).map_err(|error| io_error(path, error))?;
        if meta.is_dir() {
            return Ok(true);
        }
        // A pipe is read once only: it is a snapshot.
        if !meta.is_file() {
            return Ok(false);
        }
        let mut magic = [0; 4];
        let read = File::open(path)
            .and_then(|mut file| file.read(&mut magic))
            .map_err(|error| io_error(path, error))?;
        Ok(unpack::is_packed(&magic[..read]))
    }

    /// # Errors
    /// When it can't be read, is no bundle, is of another version, holds what no bundle of ours has, or when what it says of
    /// itself was changed after it was sealed.
    pub fn open(path: &Path) -> Result<Self, BundleError> {
        Self::opened(path, true)
    }

    /// For who compares it with its manifest.
    ///
    /// # Errors
    /// As of `open`; changes after it was sealed are none.
    pub fn open_to_verify(path: &Path) -> Result<Self, BundleError> {
        Self::opened(path, false)
    }

    fn opened(path: &Path, as_sealed: bool) -> Result<Self, BundleError> {
        let meta = fs::metadata(path).map_err(|error| io_error(path, error))?;
        if meta.is_dir() {
            return Self::index(path, Kind::Folder, as_sealed);
        }
        if Self::is_bundle(path)? {
            return Self::index(path, Kind::Sealed, as_sealed);
        }
        let snapshot = format::read(path)?;
        Ok(Self {
            path: path.to_path_buf(),
            kind: Kind::Single,
            top: stem(path),
            frames: vec![FrameRef {
                number: 1,
                at: snapshot.taken_at,
                path: String::new(),
            }],
            head: Head {
                format: BUNDLE_FORMAT.into(),
                stanch: String::new(),
                started_at: snapshot.taken_at,
                target: snapshot.target,
                every_ms: None,
                for_ms: None,
                redaction: snapshot.redaction.level,
                tokens: false,
                logs: Vec::new(),
            },
            end: None,
            gaps: Vec::new(),
            manifest: None,
            redis: Vec::new(),
            logs: Vec::new(),
        })
    }

    fn index(path: &Path, kind: Kind, as_sealed: bool) -> Result<Self, BundleError> {
        let mut names = Vec::new();
        let (mut head, mut end, mut gaps, mut manifest) = (None, None, None, None);
        let mut each = |name: &str, bytes: &[u8]| {
            match name {
                HEAD => head = Some(bytes.to_vec()),
                END => end = Some(bytes.to_vec()),
                GAPS => gaps = Some(bytes.to_vec()),
                MANIFEST => manifest = Some(bytes.to_vec()),
                _ => names.push(name.to_owned()),
            }
            Ok(())
        };
        let top = match kind {
            Kind::Sealed => unpack::each(path, &mut each)?,
            _ => {
                let files = list(path)?;
                for name in &files {
                    let small = !name.contains('/');
                    let bytes = if small {
                        read_file(path, name)?
                    } else {
                        Vec::new()
                    };
                    each(name, &bytes)?;
                }
                stem(path)
            }
        };
        let head_bytes = head.ok_or_else(|| BundleError::NotABundle(path.to_path_buf()))?;
        let head = head_of(path, &head_bytes)?;
        let manifest: Option<Manifest> = manifest
            .map(|bytes| parsed(path, MANIFEST, &bytes))
            .transpose()?;
        if let Some(manifest) = manifest.as_ref().filter(|_| as_sealed) {
            for (name, bytes) in [
                (HEAD, Some(&head_bytes)),
                (END, end.as_ref()),
                (GAPS, gaps.as_ref()),
            ] {
                unchanged(manifest, path, name, bytes.map(Vec::as_slice))?;
            }
        }
        let end = end.map(|bytes| parsed(path, END, &bytes)).transpose()?;
        if kind == Kind::Sealed && manifest.is_none() {
            return Err(BundleError::Damaged {
                path: path.to_path_buf(),
                what: format!("it has no {MANIFEST}, which every sealed bundle has"),
            });
        }
        let mut frames: Vec<FrameRef> = names.iter().filter_map(|name| frame_of(name)).collect();
        frames.sort_by_key(|frame| frame.number);
        let logs: Vec<String> = names
            .iter()
            .filter(|name| name.starts_with(LOGS))
            .cloned()
            .collect();
        let mut gaps = gaps.map_or(Ok(Vec::new()), |bytes| gaps_of(path, &bytes))?;
        // They are read last of all: whoever is still at it will.
        if end.is_none() && !(kind == Kind::Folder && is_written(path)) {
            let at = frames.last().map_or(head.started_at, |frame| frame.at);
            let unread = unread_logs(&head, &gaps, logs.len());
            let gap = |log| Gap::new(at, "log".into(), format!("{log}: {LOG_UNREAD}"));
            gaps.extend(unread.into_iter().map(gap));
        }
        Ok(Self {
            path: path.to_path_buf(),
            kind,
            top,
            head,
            end,
            gaps,
            manifest,
            frames,
            redis: names.iter().filter_map(|name| redis_of(name)).collect(),
            logs,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Without the ending: also the folder's name in an archive.
    pub fn name(&self) -> String {
        self.top.clone()
    }

    pub fn head(&self) -> &Head {
        &self.head
    }

    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// So many things couldn't be had.
    pub fn missing(&self) -> usize {
        self.gaps.iter().map(|gap| gap.times).sum()
    }

    pub fn manifest(&self) -> Option<&Manifest> {
        self.manifest.as_ref()
    }

    pub fn frames(&self) -> &[FrameRef] {
        &self.frames
    }

    pub fn redis(&self) -> &[RedisRef] {
        &self.redis
    }

    /// A single saved snapshot.
    pub fn is_single(&self) -> bool {
        self.kind == Kind::Single
    }

    pub fn is_sealed(&self) -> bool {
        self.kind == Kind::Sealed
    }

    /// Why it isn't all that was asked for; `None`: it is whole.
    pub fn why_partial(&self) -> Option<String> {
        match (&self.end, self.kind) {
            (_, Kind::Single) => None,
            (Some(end), _) => (!end.whole).then(|| end.why.clone()),
            (None, Kind::Folder) if is_written(&self.path) => {
                Some("it is still being captured: what there is by now is here".into())
            }
            (None, _) => {
                Some("the capture was cut off: what was written before that is here".into())
            }
        }
    }

    /// Every file but the manifest, in the order of the names.
    ///
    /// # Errors
    /// When one can't be read, or `each` says so.
    pub fn each(&self, each: &mut Each<'_>) -> Result<(), BundleError> {
        match self.kind {
            Kind::Single => {
                let bytes = fs::read(&self.path).map_err(|error| self.io(error))?;
                each("", &bytes)
            }
            Kind::Folder => {
                for name in list(&self.path)? {
                    if name != MANIFEST {
                        each(&name, &read_file(&self.path, &name)?)?;
                    }
                }
                Ok(())
            }
            Kind::Sealed => {
                let mut but_manifest = |name: &str, bytes: &[u8]| match name {
                    MANIFEST => Ok(()),
                    _ => each(name, bytes),
                };
                unpack::each(&self.path, &mut but_manifest).map(drop)
            }
        }
    }

    /// One file, as it was sealed.
    ///
    /// # Errors
    /// When it isn't there, was changed or added since, or can't be read.
    pub fn read(&self, name: &str) -> Result<Vec<u8>, BundleError> {
        let bytes = match self.kind {
            Kind::Single => fs::read(&self.path).map_err(|error| self.io(error))?,
            Kind::Folder => read_file(&self.path, name)?,
            Kind::Sealed => {
                let mut found = None;
                self.each(&mut |at, bytes| {
                    if at == name {
                        found = Some(bytes.to_vec());
                    }
                    Ok(())
                })?;
                found.ok_or_else(|| BundleError::Damaged {
                    path: self.path.clone(),
                    what: format!("{name} isn't in it"),
                })?
            }
        };
        self.check(name, &bytes)?;
        Ok(bytes)
    }

    /// One frame.
    ///
    /// # Errors
    /// When it can't be read, or is damaged.
    pub fn frame(&self, frame: &FrameRef) -> Result<Snapshot, BundleError> {
        let bytes = self.read(&frame.path)?;
        self.parsed(&frame.path, &bytes)
    }

    /// Every frame, in the order in which they were taken; not all at once. One that is damaged costs itself alone.
    ///
    /// # Errors
    /// When the archive or the folder can't be read.
    pub fn each_frame(
        &self,
        each: &mut dyn FnMut(&FrameRef, Result<Snapshot, BundleError>),
    ) -> Result<(), BundleError> {
        self.each(&mut |name, bytes| {
            let frame = self.frames.iter().find(|frame| frame.path == name);
            if let Some(frame) = frame {
                each(frame, self.parsed(name, bytes));
            }
            Ok(())
        })
    }

    /// A frame, as it was sealed.
    fn parsed(&self, name: &str, bytes: &[u8]) -> Result<Snapshot, BundleError> {
        self.check(name, bytes)?;
        Ok(format::parse(&self.place(name), bytes)?)
    }

    /// It is what the manifest says, where there is one.
    fn check(&self, name: &str, bytes: &[u8]) -> Result<(), BundleError> {
        match &self.manifest {
            Some(manifest) => unchanged(manifest, &self.path, name, Some(bytes)),
            None => Ok(()),
        }
    }

    /// Every frame in the order in which they were taken, read one at a time as they are asked for.
    ///
    /// # Errors
    /// Outside when the archive can't be read, inside when a frame can't or is damaged.
    pub fn into_frames(self) -> Result<impl Iterator<Item = Read> + use<>, BundleError> {
        // An archive is read in one go only: its frames are kept packed meanwhile, each by itself.
        let mut packed: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        if self.kind == Kind::Sealed {
            self.each(&mut |name, bytes| {
                if frame_of(name).is_some() {
                    let small = zstd::encode_all(bytes, 1).map_err(|error| self.io(error))?;
                    packed.insert(name.to_owned(), small);
                }
                Ok(())
            })?;
        }
        let frames = self.frames.clone();
        Ok(frames.into_iter().map(move |frame| {
            let bytes = match packed.remove(&frame.path) {
                Some(small) => zstd::decode_all(small.as_slice()).map_err(|error| self.io(error)),
                None => self.read(&frame.path),
            };
            let read = bytes.and_then(|bytes| self.parsed(&frame.path, &bytes));
            (frame, read)
        }))
    }

    /// Frames that can't be read as they were written, each with where it is damaged.
    ///
    /// # Errors
    /// When the archive or the folder can't be read.
    pub fn damaged(&self) -> Result<Vec<(FrameRef, String)>, BundleError> {
        let mut damaged = Vec::new();
        self.each_frame(&mut |frame, read| {
            let damage = read.err().and_then(|error| error.damage());
            damaged.extend(damage.map(|why| (frame.clone(), why)));
        })?;
        Ok(damaged)
    }

    /// What logs told, one after the other.
    ///
    /// # Errors
    /// When one can't be read.
    pub fn logs(&self) -> Result<Vec<Vec<u8>>, BundleError> {
        self.logs.iter().map(|name| self.read(name)).collect()
    }

    /// A file in it, as a person would name it.
    pub fn place(&self, name: &str) -> PathBuf {
        if name.is_empty() {
            self.path.clone()
        } else {
            self.path.join(name)
        }
    }

    pub(super) fn io(&self, error: std::io::Error) -> BundleError {
        io_error(&self.path, error)
    }
}

fn io_error(path: &Path, error: std::io::Error) -> BundleError {
    BundleError::Io {
        path: path.to_path_buf(),
        error,
    }
}

/// The last part of a path, without the ending that a sealed bundle has.
pub(super) fn stem(path: &Path) -> String {
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let name = whole.file_name().unwrap_or_default().to_string_lossy();
    let endings = [".tar.zst", ".tar.gz", ".tgz", ".json"];
    let bare = endings.iter().find_map(|ending| name.strip_suffix(ending));
    bare.unwrap_or(&name).to_owned()
}

fn parsed<T: serde::de::DeserializeOwned>(
    path: &Path,
    name: &str,
    bytes: &[u8],
) -> Result<T, BundleError> {
    serde_json::from_slice(bytes).map_err(|error| BundleError::Damaged {
        path: path.join(name),
        what: error.to_string(),
    })
}

fn head_of(path: &Path, bytes: &[u8]) -> Result<Head, BundleError> {
    #[derive(serde::Deserialize)]
    struct Version {
        format: String,
    }
    let version: Version = parsed(path, HEAD, bytes)?;
    if version.format == BUNDLE_FORMAT {
        return parsed(path, HEAD, bytes);
    }
    Err(if version.format.starts_with(BUNDLE_FAMILY) {
        BundleError::OtherVersion {
            path: path.to_path_buf(),
            found: version.format,
        }
    } else {
        BundleError::NotABundle(path.to_path_buf())
    })
}

/// A last line that a crash has cut is none.
fn gaps_of(path: &Path, bytes: &[u8]) -> Result<Vec<Gap>, BundleError> {
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
    bytes[..whole]
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| parsed(path, GAPS, line))
        .collect()
}

/// Logs that were asked for, in whose place there is neither a file nor a word on why.
fn unread_logs(head: &Head, gaps: &[Gap], mut files: usize) -> Vec<String> {
    let told = |log: &String| {
        let of = format!("{log}: ");
        let mut gaps = gaps.iter().filter(|gap| gap.what == "log");
        gaps.any(|gap| gap.why.starts_with(&of))
    };
    let mut logs: Vec<String> = head.logs.clone();
    logs.retain(|log| {
        if told(log) {
            return false;
        }
        let read = files > 0;
        files = files.saturating_sub(1);
        !read
    });
    logs
}

/// The files of a folder that are a bundle's, in order. Links are refused: they lead elsewhere.
fn list(root: &Path) -> Result<BTreeSet<String>, BundleError> {
    let mut found = BTreeSet::new();
    for folder in ["", FRAMES, REDIS, LOGS] {
        let place = root.join(folder);
        let meta = match place.symlink_metadata() {
            Ok(meta) => meta,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !folder.is_empty() => {
                continue;
            }
            Err(error) => return Err(io_error(&place, error)),
        };
        if !folder.is_empty() && !meta.is_dir() {
            return Err(refused(root, &format!("{folder} is no folder")));
        }
        for entry in place.read_dir().map_err(|error| io_error(&place, error))? {
            let entry = entry.map_err(|error| io_error(&place, error))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let at = match folder {
                "" => name.clone(),
                folder => format!("{folder}/{name}"),
            };
            let kind = entry.file_type().map_err(|error| io_error(&place, error))?;
            if kind.is_symlink() {
                return Err(refused(root, &format!("{at} is a link")));
            }
            let ours = match folder {
                "" => [HEAD, GAPS, END, MANIFEST].contains(&name.as_str()),
                _ => name.ends_with(".json") && !name.starts_with('.'),
            };
            if ours && kind.is_file() {
                found.insert(at);
            }
        }
    }
    Ok(found)
}

fn refused(path: &Path, what: &str) -> BundleError {
    BundleError::Refused {
        path: path.to_path_buf(),
        what: what.into(),
    }
}

fn read_file(root: &Path, name: &str) -> Result<Vec<u8>, BundleError> {
    let path = root.join(name);
    let file = File::open(&path).map_err(|error| io_error(&path, error))?;
    let mut bytes = Vec::new();
    file.take(unpack::FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| io_error(&path, error))?;
    if bytes.len() as u64 > unpack::FILE {
        return Err(refused(root, &format!("{name} is larger than any of ours")));
    }
    Ok(bytes)
}

/// A file is as the manifest has it; `None`: it isn't there.
fn unchanged(
    manifest: &Manifest,
    bundle: &Path,
    name: &str,
    bytes: Option<&[u8]>,
) -> Result<(), BundleError> {
    let listed = manifest.files.iter().find(|file| file.path == name);
    let what = match (listed, bytes) {
        (None, None) => return Ok(()),
        (Some(file), Some(bytes)) if file.sha256 == hex(&Sha256::digest(bytes)) => return Ok(()),
        (Some(_), Some(_)) => "it was changed after it was sealed",
        (Some(_), None) => "it isn't there any more",
        (None, Some(_)) => "it wasn't there when it was sealed",
    };
    Err(BundleError::Damaged {
        path: bundle.join(name),
        what: what.into(),
    })
}
