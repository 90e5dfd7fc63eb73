//! The file: mode 0600, synced after each line, each line chained to the one before.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use sha2::{Digest as _, Sha256};

use super::event::{Event, Record};
use crate::model::Timestamp;

/// Why there is no journal: nothing is done without one.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("{path}: {error}")]
    Io { path: PathBuf, error: io::Error },
    #[error("{path}: somebody writes it now: the run still goes on")]
    Busy { path: PathBuf },
    #[error("{path}: line {line}: {what}")]
    Damaged {
        path: PathBuf,
        line: usize,
        what: String,
    },
}

/// A journal that is being written.
pub struct Journal {
    path: PathBuf,
    file: File,
    seq: u64,
    prev: String,
    /// Bytes that are whole lines.
    whole: u64,
    clock: fn() -> Timestamp,
}

impl Journal {
    /// A new file under a name that nobody has, in the folder of runs.
    ///
    /// # Errors
    /// When it can't be made.
    pub fn create(
        folder: &Path,
        name: &str,
        clock: fn() -> Timestamp,
    ) -> Result<Self, JournalError> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(at(folder))?;
        for n in 0..1000 {
            let suffix = if n == 0 {
                String::new()
            } else {
                format!("-{n:03}")
            };
            let path = folder.join(format!("{name}{suffix}.jsonl"));
            let mut open = File::options();
            match open.append(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => {
                    hold(&file, &path)?;
                    // The name itself must be on disk too.
                    let synced = File::open(folder).and_then(|folder| folder.sync_all());
                    synced.map_err(at(folder))?;
                    return Ok(Self {
                        path,
                        file,
                        seq: 0,
                        prev: String::new(),
                        whole: 0,
                        clock,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(at(&path)(error)),
            }
        }
        Err(at(folder)(io::ErrorKind::AlreadyExists.into()))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the evidence of this run lies.
    pub fn evidence(&self) -> PathBuf {
        self.path.with_extension("snapshot.json")
    }

    /// A name beside this file for the snapshot of a step, which no earlier one has.
    pub fn kept(&self, step: &str) -> PathBuf {
        let name = |n: usize| match n {
            0 => self.path.with_extension(format!("{step}.snapshot.json")),
            n => self
                .path
                .with_extension(format!("{step}-{n}.snapshot.json")),
        };
        (0..1000)
            .map(name)
            .find(|path| !path.exists())
            .unwrap_or_else(|| name(0))
    }

    /// Goes on with a journal that ends in the middle. A last line that a crash has cut is taken off: it was never a record.
    ///
    /// # Errors
    /// When it can't be read, isn't as it was written, or somebody still writes it.
    pub fn reopen(
        path: &Path,
        clock: fn() -> Timestamp,
    ) -> Result<(Self, Vec<Record>), JournalError> {
        let mut open = File::options();
        let file = open.read(true).append(true).open(path).map_err(at(path))?;
        hold(&file, path)?;
        let records = read(path)?;
        let mut whole = 0;
        let mut prev = String::new();
        let mut reader = BufReader::new(&file);
        let mut line: Vec<u8> = Vec::new();
        while reader.read_until(b'\n', &mut line).map_err(at(path))? > 0 {
            let Some(text) = line.strip_suffix(b"\n") else {
                break;
            };
            whole += line.len() as u64;
            prev = hash(&String::from_utf8_lossy(text));
            line.clear();
        }
        file.set_len(whole).map_err(at(path))?;
        let journal = Self {
            path: path.to_path_buf(),
            file,
            seq: records.len() as u64,
            prev,
            whole,
            clock,
        };
        Ok((journal, records))
    }

    /// Writes one event, without what is secret in it; it is on disk when this returns.
    ///
    /// # Errors
    /// When it isn't.
    pub fn write(&mut self, event: Event) -> Result<(), JournalError> {
        let record = Record {
            seq: self.seq,
            at: (self.clock)(),
            prev: self.prev.clone(),
            event: event.shown(),
        };
        let mut line =
            serde_json::to_string(&record).map_err(|error| at(&self.path)(error.into()))?;
        let hash = hash(&line);
        line.push('\n');
        let written = self
            .file
            .write_all(line.as_bytes())
            .and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // Half a line would be taken for damage by whoever reads it: what isn't whole is taken off again.
            let _ = self.file.set_len(self.whole);
            return Err(at(&self.path)(error));
        }
        self.prev = hash;
        self.seq += 1;
        self.whole += line.len() as u64;
        Ok(())
    }
}

/// For as long as it is written: whoever looks on sees by it that the run still goes on.
fn hold(file: &File, path: &Path) -> Result<(), JournalError> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(errno) if errno == rustix::io::Errno::WOULDBLOCK => Err(JournalError::Busy {
            path: path.to_path_buf(),
        }),
        // A file system without locks: nobody is kept out by that.
        _ => Ok(()),
    }
}

/// The journals of a folder, oldest first: their names begin with the time.
pub fn all(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = folder
        .read_dir()
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .collect();
    // Without the ending: of two of one second the second has a number before it.
    all.sort_by_key(|path| path.file_stem().map(std::ffi::OsStr::to_owned));
    all
}

/// Somebody writes this journal now.
pub fn is_written(path: &Path) -> bool {
    let Ok(file) = File::open(path) else {
        return false;
    };
    flock(&file, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK)
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> JournalError + use<> {
    let path = path.to_path_buf();
    move |error| JournalError::Io { path, error }
}

/// SHA-256 in hexadecimal.
pub fn hash(line: &str) -> String {
    Sha256::digest(line.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Reads a journal back. A last line that was cut by a crash is left out; anything else that isn't as it was written is a
/// fault.
///
/// # Errors
/// When the file can't be read, or a line isn't what follows the one before.
pub fn read(path: &Path) -> Result<Vec<Record>, JournalError> {
    let mut records: Vec<Record> = Vec::new();
    let mut prev = String::new();
    let mut reader = BufReader::new(File::open(path).map_err(at(path))?);
    let mut line: Vec<u8> = Vec::new();
    let damaged = |line: usize, what: &str| JournalError::Damaged {
        path: path.to_path_buf(),
        line,
        what: what.into(),
    };
    // Bytes: a crash may have cut a character in two.
    while reader.read_until(b'\n', &mut line).map_err(at(path))? > 0 {
        let number = records.len() + 1;
        let Some(whole) = line.strip_suffix(b"\n") else {
            break;
        };
        let whole = std::str::from_utf8(whole).map_err(|_| damaged(number, "it isn't UTF-8"))?;
        let record: Record =
            serde_json::from_str(whole).map_err(|error| damaged(number, &error.to_string()))?;
        if record.seq + 1 != number as u64 || record.prev != prev {
            return Err(damaged(number, "it doesn't follow the line before it"));
        }
        prev = hash(whole);
        // Older versions wrote more than is shown.
        let event = record.event.shown();
        records.push(Record { event, ..record });
        line.clear();
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        Timestamp::new(chrono::DateTime::UNIX_EPOCH)
    }

    fn stopped(why: &str) -> Event {
        Event::Stopped { why: why.into() }
    }

    #[test]
    fn no_secret_is_written_and_none_that_was_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut journal = Journal::create(folder.path(), "run", now).expect("a journal");
        let secret = "got postgres://u:hunter60x@h/d";
        for event in [
            stopped(secret),
            Event::BookEnd { end: secret.into() },
            Event::Note {
                step: "x".into(),
                question: secret.into(),
                text: "password=hunter60x, says alice@example.com".into(),
            },
            Event::Expectation {
                step: "x".into(),
                that: "false".into(),
                held: false,
                say: Some(secret.into()),
            },
            Event::Book {
                id: "x".into(),
                sha256: String::new(),
                inputs: [("pw".to_owned(), "hunter60x".to_owned())].into(),
                texts: Vec::new(),
                file: None,
            },
            Event::Computed {
                step: "x".into(),
                vars: serde_json::Map::from_iter([("url".to_owned(), secret.into())]),
            },
        ] {
            journal.write(event).expect("written");
        }
        let text = fs::read_to_string(journal.path()).expect("text");
        assert!(!text.contains("hunter60x"), "{text}");
        assert!(text.contains("alice@example.com"), "{text}");
        // As an older version wrote it.
        let old = Record {
            seq: 0,
            at: now(),
            prev: String::new(),
            event: stopped(secret),
        };
        let old = serde_json::to_string(&old).expect("JSON");
        fs::write(journal.path(), format!("{old}\n")).expect("written");
        let records = read(journal.path()).expect("records");
        assert!(!format!("{records:?}").contains("hunter60x"), "{records:?}");
    }

    #[test]
    fn what_is_written_is_read_and_what_was_changed_is_noticed() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut journal = Journal::create(folder.path(), "run", now).expect("a journal");
        for why in ["one", "two", "three"] {
            journal.write(stopped(why)).expect("written");
        }
        let other = Journal::create(folder.path(), "run", now).expect("a second of the name");
        assert_ne!(other.path(), journal.path());
        let records = read(journal.path()).expect("records");
        assert_eq!(records.len(), 3);
        assert_eq!(records[2].event, stopped("three"));
        let busy = Journal::reopen(journal.path(), now).err();
        assert!(matches!(busy, Some(JournalError::Busy { .. })), "{busy:?}");
        assert!(is_written(journal.path()));
        let text = fs::read_to_string(journal.path()).expect("text");
        // A crash in the middle of a line.
        fs::write(journal.path(), &text[..text.len() - 5]).expect("written");
        assert_eq!(read(journal.path()).expect("records").len(), 2);
        let path = journal.path().to_path_buf();
        drop(journal);
        assert!(!is_written(&path));
        let (mut journal, records) = Journal::reopen(&path, now).expect("it is free by now");
        assert_eq!(records.len(), 2);
        journal.write(stopped("four")).expect("written");
        let records = read(&path).expect("a whole chain");
        assert_eq!(records.last().map(|r| &r.event), Some(&stopped("four")));
        for forged in [
            text.replacen("two", "owt", 1),
            text.lines()
                .skip(1)
                .map(|line| format!("{line}\n"))
                .collect(),
            text.replacen("{", "", 1),
        ] {
            fs::write(journal.path(), forged).expect("written");
            assert!(read(journal.path()).is_err());
        }
    }
}
