//! A folder sealed to one `.tar.zst`: entries in order, nobody's names, times from the content: the same folder gives the same
//! bytes. Before that every file is looked through for secrets.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::error::BundleError;
use super::folder::{Folder, is_written, pretty};
use super::format::write_bytes;
use super::gate::{self, Hit};
use super::known::KnownSecrets;
use super::layout::{Allowance, BUNDLE_FORMAT, End, Head, MANIFEST, Manifest, Sealed, time_of};
use super::open::{Bundle, Each};
use super::shipment::Shipment;
use crate::model::{RedactionLevel, Snapshot, Timestamp};

/// The level beyond which it takes much longer and becomes little smaller.
const LEVEL: i32 = 9;

/// A sealed bundle.
#[derive(Clone, Debug)]
pub struct SealedFile {
    pub path: PathBuf,
    pub bytes: u64,
    pub sha256: String,
    pub manifest: Manifest,
    /// Frames that are damaged, each with where: they are gaps in it.
    pub left_out: Vec<String>,
}

/// Why there is no sealed bundle; the folder is still there.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    #[error(transparent)]
    Read(#[from] BundleError),
    #[error("{path}: not sealed: {error}")]
    Write { path: PathBuf, error: io::Error },
    #[error("not sealed: {}", told(.0))]
    Secrets(Vec<Hit>),
    /// What was to be sealed is still there.
    #[error("{error}\nthe folder is kept: {folder}")]
    Kept {
        folder: PathBuf,
        error: Box<SealError>,
    },
}

/// How many of them are told one by one.
const TOLD: usize = 20;

fn told(hits: &[Hit]) -> String {
    let mut lines = vec![format!(
        "{} that may not be sealed",
        crate::model::count(hits.len(), "place")
    )];
    lines.extend(hits.iter().take(TOLD).map(ToString::to_string));
    if hits.len() > TOLD {
        lines.push(format!("and {} more", hits.len() - TOLD));
    }
    lines.join("\n  ")
}

/// Seals a folder into a file of this name. Nothing is there until it is whole.
///
/// # Errors
/// When the folder isn't a bundle, something secret stands in it, or the file can't be written.
pub fn seal(
    folder: &Path,
    to: &Path,
    known: &KnownSecrets,
    allowed: &[(String, String)],
) -> Result<SealedFile, SealError> {
    let bundle = Bundle::open(folder)?;
    if bundle.is_sealed() || bundle.is_single() {
        return Err(BundleError::Refused {
            path: folder.to_path_buf(),
            what: "it is no folder of a capture: there is nothing to seal".into(),
        }
        .into());
    }
    if is_written(folder) {
        return Err(BundleError::Refused {
            path: folder.to_path_buf(),
            what: "it is still being captured".into(),
        }
        .into());
    }
    let shipment = Shipment::of(&bundle)?;
    let mut manifest = manifest_of(&shipment)?;
    let level = bundle.head().redaction;
    let mut found = looked_through(known, level, &mut |look| shipment.each(look))?;
    for (rule, reason) in allowed {
        let before = found.len();
        // Whatever the reason: a password of ours isn't sealed.
        found.retain(|hit| hit.rule != *rule || hit.is_own());
        // What found nothing was let through by nobody.
        if found.len() < before {
            manifest.allowed.push(Allowance {
                rule: rule.clone(),
                reason: reason.clone(),
                places: before - found.len(),
            });
        }
    }
    if !found.is_empty() {
        return Err(SealError::Secrets(found));
    }
    let write = |error: io::Error| SealError::Write {
        path: to.to_path_buf(),
        error,
    };
    let place = to
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    // Mode 0600 from the start.
    let mut part = tempfile::Builder::new()
        .prefix(".stanch-")
        .tempfile_in(place)
        .map_err(write)?;
    let (sha256, bytes) = {
        let mut hashed = Hashed {
            inner: BufWriter::new(part.as_file_mut()),
            digest: Sha256::new(),
            bytes: 0,
        };
        pack(&shipment, &manifest, &mut hashed)?.map_err(write)?;
        hashed.inner.flush().map_err(write)?;
        (hex(&hashed.digest.finalize()), hashed.bytes)
    };
    part.as_file().sync_all().map_err(write)?;
    part.persist(to).map_err(|error| write(error.error))?;
    File::open(place)
        .and_then(|place| place.sync_all())
        .map_err(write)?;
    Ok(SealedFile {
        path: to.to_path_buf(),
        bytes,
        sha256,
        manifest,
        left_out: shipment.left_out(),
    })
}

/// Frames sealed into a file of this name, without a folder that anybody sees.
///
/// # Errors
/// When something secret stands in one, or the file can't be written. Where the gate refuses it, the folder is kept beside it.
pub fn seal_frames(
    to: &Path,
    head: &Head,
    frames: &[&Snapshot],
    known: &KnownSecrets,
) -> Result<(), SealError> {
    let write = |error: io::Error| SealError::Write {
        path: to.to_path_buf(),
        error,
    };
    let beside = to.parent().filter(|place| !place.starts_with("/dev"));
    let beside = match beside {
        Some(place) if place.as_os_str().is_empty() => Path::new(".").to_path_buf(),
        Some(place) => place.to_path_buf(),
        None => std::env::temp_dir(),
    };
    let place = tempfile::Builder::new()
        .prefix(".stanch-")
        .tempdir_in(beside)
        .map_err(write)?;
    let root = place.path().join("frames");
    let mut folder = Folder::create(root.clone(), head, u64::MAX).map_err(write)?;
    let mut at = head.started_at;
    for frame in frames {
        folder.frame(frame).map_err(write)?;
        at = frame.taken_at;
    }
    let end = End {
        at,
        whole: true,
        why: crate::model::count(frames.len(), "frame"),
    };
    folder.end(&end).map_err(write)?;
    let sealed = place.path().join("sealed");
    if let Err(error) = seal(&root, &sealed, known, &[]) {
        if matches!(error, SealError::Secrets(_)) {
            let kept = to.with_extension("unsealed");
            return match std::fs::rename(&root, &kept) {
                Ok(()) => Err(SealError::Kept {
                    folder: kept,
                    error: Box::new(error),
                }),
                Err(_) => Err(error),
            };
        }
        return Err(error);
    }
    let bytes = std::fs::read(&sealed).map_err(write)?;
    write_bytes(to, &bytes).map_err(write)
}

/// What may be secret in it, file by file.
pub fn hits(bundle: &Bundle, known: &KnownSecrets) -> Result<Vec<Hit>, BundleError> {
    let level = bundle.head().redaction;
    looked_through(known, level, &mut |look| bundle.each(look))
}

fn looked_through(
    known: &KnownSecrets,
    level: RedactionLevel,
    files: &mut dyn FnMut(&mut Each<'_>) -> Result<(), BundleError>,
) -> Result<Vec<Hit>, BundleError> {
    let mut hits = Vec::new();
    files(&mut |path, bytes| {
        hits.extend(gate::look(path, bytes, known, level));
        Ok(())
    })?;
    Ok(hits)
}

/// What a sealed bundle says of itself, from the folder alone.
///
/// # Errors
/// When the folder can't be read.
pub fn manifest(bundle: &Bundle) -> Result<Manifest, BundleError> {
    manifest_of(&Shipment::of(bundle)?)
}

fn manifest_of(shipment: &Shipment<'_>) -> Result<Manifest, BundleError> {
    let bundle = shipment.bundle;
    let mut files = Vec::new();
    let mut last = bundle.head().started_at;
    shipment.each(&mut |path, bytes| {
        last = last.max(time_of(path).unwrap_or(last));
        files.push(Sealed {
            path: path.to_owned(),
            bytes: bytes.len() as u64,
            sha256: hex(&Sha256::digest(bytes)),
        });
        Ok(())
    })?;
    let head = bundle.head();
    Ok(Manifest {
        format: BUNDLE_FORMAT.into(),
        stanch: head.stanch.clone(),
        started_at: head.started_at,
        ended_at: bundle.end().map_or(last, |end| end.at),
        why_partial: bundle.why_partial(),
        redaction: head.redaction,
        frames: shipment.frames(),
        gaps: shipment.gaps(),
        allowed: Vec::new(),
        files,
    })
}

type Packed = Result<io::Result<()>, BundleError>;

fn pack(shipment: &Shipment<'_>, manifest: &Manifest, out: &mut impl Write) -> Packed {
    let bundle = shipment.bundle;
    let encoder = match zstd::Encoder::new(out, LEVEL) {
        Ok(encoder) => encoder,
        Err(error) => return Ok(Err(error)),
    };
    let mut tar = tar::Builder::new(encoder);
    let top = bundle.name();
    let mut failed = None;
    let own = pretty(manifest).map_err(|error| bundle.io(error))?;
    // Entries stand in the order of their names, the manifest among them.
    let mut own = Some(own);
    shipment.each(&mut |path, bytes| {
        if failed.is_none()
            && path > MANIFEST
            && let Some(own) = own.take()
        {
            failed = add(&mut tar, &top, MANIFEST, &own, manifest.started_at).err();
        }
        if failed.is_none() {
            let at = time_of(path).unwrap_or(manifest.started_at);
            failed = add(&mut tar, &top, path, bytes, at).err();
        }
        Ok(())
    })?;
    if let Some(own) = own.filter(|_| failed.is_none()) {
        failed = add(&mut tar, &top, MANIFEST, &own, manifest.started_at).err();
    }
    if let Some(error) = failed {
        return Ok(Err(error));
    }
    let done = tar.into_inner().and_then(zstd::Encoder::finish);
    Ok(done.map(drop))
}

fn add(
    tar: &mut tar::Builder<impl Write>,
    top: &str,
    path: &str,
    bytes: &[u8],
    at: Timestamp,
) -> io::Result<()> {
    let mut header = tar::Header::new_ustar();
    header.set_path(format!("{top}/{path}"))?;
    header.set_size(bytes.len() as u64);
    header.set_mode(0o600);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(u64::try_from(at.utc().timestamp()).unwrap_or(0));
    header.set_entry_type(tar::EntryType::Regular);
    header.set_cksum();
    tar.append(&header, bytes)
}

/// SHA-256 in hexadecimal.
pub(super) fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Counts and hashes what goes through.
struct Hashed<W> {
    inner: W,
    digest: Sha256,
    bytes: u64,
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.digest.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// The name of a sealed bundle: that it isn't redacted stands in it.
pub fn sealed_name(folder: &str, level: RedactionLevel) -> String {
    match level {
        RedactionLevel::None if !folder.contains("UNREDACTED") => {
            format!("{folder}-UNREDACTED.tar.zst")
        }
        _ => format!("{folder}.tar.zst"),
    }
}
