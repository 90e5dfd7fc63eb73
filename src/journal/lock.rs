//! One operator at a time for each target, on this machine: the second is told who, and since when.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

/// Held while somebody acts on a target; it goes with the process, also on kill -9.
#[derive(Debug)]
pub struct TargetLock {
    _file: File,
}

/// Who acts on it now.
#[derive(Debug)]
pub struct Holder(pub String);

impl TargetLock {
    /// `who` is what a second operator reads.
    ///
    /// # Errors
    /// Who holds it; or that the file can't be had, in words.
    pub fn take(folder: &Path, target: &str, who: &str) -> Result<Self, Holder> {
        let told = |error: std::io::Error| Holder(format!("its lock can't be had: {error}"));
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(told)?;
        let name: String = target
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(folder.join(format!("{name}.lock")))
            .map_err(told)?;
        if let Err(errno) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
            if errno != rustix::io::Errno::WOULDBLOCK {
                return Err(told(errno.into()));
            }
            let mut holder = String::new();
            let _ = file.read_to_string(&mut holder);
            return Err(Holder(format!(
                "somebody acts there already: {holder} (stanch runbook follow looks on; where it is your own and waits at a question: --beside-run; a lock of this folder only: {})",
                folder.display()
            )));
        }
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(who.as_bytes()))
            .map_err(told)?;
        Ok(Self { _file: file })
    }
}
