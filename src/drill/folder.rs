//! The drill's folder: owned by whoever runs the server, locked while the drill lives, swept by the next one.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags, flock};
use tempfile::TempDir;

use super::error::DrillError;

const PREFIX: &str = "stanch-drill-";
const LOCK: &str = "drill.lock";

/// The user that runs the servers: ourselves, or somebody else where we are root, which PostgreSQL refuses.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunAs {
    pub ids: Option<(u32, u32)>,
}

impl RunAs {
    pub fn find() -> Result<Self, DrillError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self { ids: None });
        }
        let passwd = fs::read_to_string("/etc/passwd").map_err(DrillError::io("/etc/passwd"))?;
        ["postgres", "nobody"]
            .into_iter()
            .find_map(|name| ids_of(&passwd, name))
            .map(|ids| Self { ids: Some(ids) })
            .ok_or(DrillError::NoUser)
    }

    pub fn give(self, path: &Path) -> Result<(), DrillError> {
        match self.ids {
            Some((uid, gid)) => chown(path, Some(uid), Some(gid)).map_err(DrillError::at(path)),
            None => Ok(()),
        }
    }
}

fn ids_of(passwd: &str, name: &str) -> Option<(u32, u32)> {
    let line = passwd
        .lines()
        .find(|line| line.split(':').next() == Some(name))?;
    let mut fields = line.split(':').skip(2);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// A folder that goes when this value goes. While the lock is held, a sweep leaves it alone.
#[derive(Debug)]
pub(super) struct Folder {
    dir: TempDir,
    _lock: File,
}

impl Folder {
    pub fn create(run_as: RunAs) -> Result<Self, DrillError> {
        sweep();
        let dir = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir()
            .map_err(DrillError::io("the drill's folder"))?;
        // It has the lock before it has the name: a sweep never sees it free.
        let (path, unnamed) = (dir.path().join(LOCK), dir.path().join("lock"));
        let lock = File::create_new(&unnamed).map_err(DrillError::at(&unnamed))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|errno| DrillError::Io {
            what: path.display().to_string(),
            error: errno.into(),
        })?;
        fs::rename(&unnamed, &path).map_err(DrillError::at(&path))?;
        run_as.give(dir.path())?;
        Ok(Self { dir, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Removes folders of drills that were killed: our own, with a lock file that is free. Their servers have died with them.
pub fn sweep() {
    let entries = fs::read_dir(std::env::temp_dir())
        .into_iter()
        .flatten()
        .flatten();
    for path in entries
        .map(|entry| entry.path())
        .filter(|path| is_drill(path.as_path()))
    {
        if let Some(lock) = own_lock(&path.join(LOCK))
            && flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            // What can't be removed now is for the next sweep.
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// A lock file that is a plain file of this user's: others may put anything under the same name.
fn own_lock(path: &Path) -> Option<File> {
    use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::options()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .ok()?;
    let meta = file.metadata().ok()?;
    (meta.is_file() && meta.uid() == rustix::process::geteuid().as_raw()).then_some(file)
}

fn is_drill(path: &Path) -> bool {
    path.file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| name.starts_with(PREFIX))
}
