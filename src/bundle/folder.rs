//! A bundle while it is written: a plain folder in which every file is whole as soon as it has its name, so that a crash
//! loses at most what was being written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::layout::{self, END, End, GAPS, Gap, HEAD, Head};
use crate::model::{Snapshot, Timestamp};

/// Kept free for the last words on a disk that is full.
const RESERVE: &str = ".reserve";
const RESERVED: usize = 64 * 1024;
/// Copies are kept so small: they are only for when the folder is taken away.
const COPY_LEVEL: i32 = 1;
/// Taking a folder away takes time, and what is written again meanwhile goes with it: so often it is tried, so far apart.
const TRIES: usize = 50;
const PAUSE: Duration = Duration::from_millis(10);

/// What became of something that was to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    Written,
    /// The bundle would become larger than it may: nothing was written.
    TooLarge,
}

/// The folder, and what was written into it.
pub struct Folder {
    root: PathBuf,
    written: u64,
    most: u64,
    frames: usize,
    reports: usize,
    logs: usize,
    gaps: Vec<Gap>,
    /// What couldn't be written when it was tried last, with how often again since it was told.
    lost: Vec<Gap>,
    /// So many of the gaps are on disk.
    told: usize,
    copies: Vec<(String, Vec<u8>)>,
    /// The time of the last thing that was written.
    last: Timestamp,
    /// Held as long as it is written.
    hold: Option<File>,
}

/// Somebody writes into this folder now.
pub(super) fn is_written(root: &Path) -> bool {
    let held = File::open(root.join(RESERVE)).map(|file| file.try_lock_shared());
    matches!(held, Ok(Err(fs::TryLockError::WouldBlock)))
}

impl Folder {
    /// Makes a new folder, mode 0700, and says in it what was asked for. `most`: so many bytes it may hold.
    ///
    /// # Errors
    /// When it can't be made, or a folder of that name is there already.
    pub fn create(root: PathBuf, head: &Head, most: u64) -> io::Result<Self> {
        let mut folder = Self {
            root,
            written: 0,
            most,
            frames: 0,
            reports: 0,
            logs: 0,
            gaps: Vec::new(),
            lost: Vec::new(),
            told: 0,
            copies: Vec::new(),
            last: head.started_at,
            hold: None,
        };
        if let Some(parent) = folder.root.parent().filter(|p| !p.as_os_str().is_empty()) {
            fs::create_dir_all(parent)?;
        }
        fs::DirBuilder::new().mode(0o700).create(&folder.root)?;
        let begun = folder
            .reserve()
            .and_then(|()| folder.file(HEAD, &pretty(head)?));
        if let Err(error) = begun {
            // Nothing of it is of use, and the disk may be full.
            let _ = fs::remove_dir_all(&folder.root);
            return Err(error);
        }
        Ok(folder)
    }

    pub fn path(&self) -> &Path {
        &self.root
    }

    pub fn frames(&self) -> usize {
        self.frames
    }

    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    pub fn bytes(&self) -> u64 {
        self.written
    }

    /// One round of reads, as it is redacted already.
    ///
    /// # Errors
    /// When it can't be written; what was written before stays.
    pub fn frame(&mut self, snapshot: &Snapshot) -> io::Result<Kept> {
        self.last = snapshot.taken_at;
        let path = layout::frame_path(self.frames + 1, snapshot.taken_at);
        let kept = self.keep(&path, &pretty(snapshot)?)?;
        self.frames += usize::from(kept == Kept::Written);
        self.regained("frame", kept);
        Ok(kept)
    }

    /// One report of Redis, as its JSON has it.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn redis(
        &mut self,
        report: &str,
        at: Timestamp,
        value: &impl Serialize,
    ) -> io::Result<Kept> {
        let path = layout::redis_path(self.reports + 1, report, at);
        let kept = self.keep(&path, &pretty(value)?)?;
        self.reports += usize::from(kept == Kept::Written);
        self.regained(&format!("redis {report}"), kept);
        Ok(kept)
    }

    /// What a log told.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn log(&mut self, events: &impl Serialize) -> io::Result<Kept> {
        let path = layout::log_path(self.logs + 1);
        let kept = self.keep(&path, &pretty(events)?)?;
        self.logs += usize::from(kept == Kept::Written);
        Ok(kept)
    }

    /// What couldn't be had. It is told with the next one where it can't be written now.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn gap(&mut self, gap: Gap) -> io::Result<()> {
        self.last = gap.at;
        self.gaps.push(gap);
        self.tell()
    }

    /// Something couldn't be written: told at once the first time, and how often again once there is room, or at the end, so that a
    /// full disk fills no memory. `true`: it is the first time.
    pub fn lost(&mut self, gap: Gap) -> (bool, io::Result<()>) {
        let alike = |known: &&mut Gap| known.what == gap.what && known.why == gap.why;
        if let Some(again) = self.lost.iter_mut().find(alike) {
            if again.times == 0 {
                again.at = gap.at;
            } else {
                again.until = Some(gap.at);
            }
            again.times += 1;
            self.last = gap.at;
            return (false, Ok(()));
        }
        self.lost.push(Gap {
            times: 0,
            ..gap.clone()
        });
        (true, self.gap(gap))
    }

    /// It is written again: how often it wasn't.
    fn regained(&mut self, what: &str, kept: Kept) {
        let (now, still) = std::mem::take(&mut self.lost)
            .into_iter()
            .partition(|lost| kept == Kept::Written && lost.what == what);
        self.lost = still;
        self.told_again(now);
        // What can't be told now is told later.
        let _ = self.tell();
    }

    fn told_again(&mut self, lost: Vec<Gap>) {
        self.gaps
            .extend(lost.into_iter().filter(|lost| lost.times > 0));
    }

    fn tell(&mut self) -> io::Result<()> {
        let mut lines = Vec::new();
        for gap in &self.gaps[self.told..] {
            serde_json::to_writer(&mut lines, gap)?;
            lines.push(b'\n');
        }
        if lines.is_empty() {
            return Ok(());
        }
        let path = self.root.join(GAPS);
        let mut open = OpenOptions::new();
        open.append(true).create(true).mode(0o600);
        let written = open.open(&path).and_then(|mut file| {
            let before = file.metadata()?.len();
            let done = file.write_all(&lines).and_then(|()| file.sync_data());
            if done.is_err() {
                // Half a line would be taken for damage.
                let _ = file.set_len(before);
            }
            done
        });
        match written {
            Err(error) if is_gone(&error) => self.restore(),
            Err(error) => Err(error),
            Ok(()) => {
                self.told = self.gaps.len();
                self.written += lines.len() as u64;
                Ok(())
            }
        }
    }

    /// How it ended. On a full disk what was kept free for this is used.
    ///
    /// # Errors
    /// When it can't be written even so: then it stays a bundle that was cut off, which is true.
    pub fn end(&mut self, end: &End) -> io::Result<()> {
        self.hold = None;
        let _ = fs::remove_file(self.root.join(RESERVE));
        let again = std::mem::take(&mut self.lost);
        self.told_again(again);
        let lost = self
            .copies
            .iter()
            .any(|(path, _)| !self.root.join(path).exists());
        let told = if lost { self.restore() } else { self.tell() };
        self.file(END, &pretty(end)?)?;
        told
    }

    fn keep(&mut self, path: &str, bytes: &[u8]) -> io::Result<Kept> {
        if self.written + bytes.len() as u64 > self.most {
            return Ok(Kept::TooLarge);
        }
        self.file(path, bytes)?;
        Ok(Kept::Written)
    }

    fn file(&mut self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let mut tries = 0;
        while let Err(error) = write_whole(&self.root, path, bytes) {
            if !is_gone(&error) || tries == TRIES {
                return Err(error);
            }
            tries += 1;
            self.restore()?;
        }
        self.written += bytes.len() as u64;
        self.copies
            .push((path.to_owned(), zstd::encode_all(bytes, COPY_LEVEL)?));
        Ok(())
    }

    /// Somebody took the folder away: all that was in it is written again, and that is told.
    fn restore(&mut self) -> io::Result<()> {
        let mut lost = 0;
        let mut tries = 0;
        while let Err(error) = self.write_again(&mut lost) {
            if !is_gone(&error) || tries == TRIES {
                return Err(error);
            }
            tries += 1;
            std::thread::sleep(PAUSE);
        }
        if !self.root.join(GAPS).exists() {
            self.told = 0;
        }
        self.gaps.push(Gap::new(
            self.last,
            "folder".into(),
            format!(
                "somebody removed {} of it: they were written again",
                crate::model::count(lost, "file")
            ),
        ));
        self.tell()
    }

    /// What isn't there of what was written; `lost` counts it.
    fn write_again(&mut self, lost: &mut usize) -> io::Result<()> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.root)?;
        *lost = 0;
        for (path, copy) in &self.copies {
            if !self.root.join(path).exists() {
                write_whole(&self.root, path, &zstd::decode_all(copy.as_slice())?)?;
                *lost += 1;
            }
        }
        if !self.root.join(RESERVE).exists() && self.hold.is_some() {
            self.reserve()?;
        }
        Ok(())
    }

    fn reserve(&mut self) -> io::Result<()> {
        let mut open = OpenOptions::new();
        let mut file = open
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(self.root.join(RESERVE))?;
        // Not zeros: a file system may leave those out.
        file.write_all(&[b'.'; RESERVED])?;
        file.sync_all()?;
        // Whoever reads it meanwhile sees by this that it is still written; not every file system has locks.
        let _ = file.try_lock();
        self.hold = Some(file);
        Ok(())
    }
}

/// A folder on the way to it isn't there any more.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

/// As every file of a bundle is written.
pub(super) fn pretty(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(value)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Under another name first, mode 0600: a name means a whole file. The folder must be there.
fn write_whole(root: &Path, path: &str, bytes: &[u8]) -> io::Result<()> {
    let target = root.join(path);
    let folder = target.parent().unwrap_or(root);
    if folder != root && !folder.exists() {
        fs::DirBuilder::new().mode(0o700).create(folder)?;
    }
    let mut part = tempfile::Builder::new()
        .prefix(".part-")
        .tempfile_in(folder)?;
    part.write_all(bytes)?;
    part.as_file().sync_all()?;
    part.persist(&target).map_err(|error| error.error)?;
    // The name is on disk too.
    File::open(folder)?.sync_all()
}
