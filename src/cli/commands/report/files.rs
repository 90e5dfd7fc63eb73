//! The files of a postmortem: read back before they are written, and written whole.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::cli::fault::Fault;
use crate::postmortem::Postmortem;

/// The server and the day: the same for every rendering of one incident.
pub fn name_of(postmortem: &Postmortem) -> String {
    let target = postmortem.course.target.as_ref();
    let of = target
        .map(|target| {
            target
                .name
                .clone()
                .unwrap_or_else(|| format!("{}-{}-{}", target.database, target.host, target.port))
        })
        .or_else(|| postmortem.runs.first().map(|run| run.target.clone()));
    let captured = postmortem.course.span().map(|(first, _)| first);
    let day = captured.or_else(|| postmortem.runs.first().map(|run| run.began));
    let day = day.map_or(String::new(), |at| at.utc().format("-%Y-%m-%d").to_string());
    let mut name = String::new();
    for c in of.unwrap_or_else(|| "incident".into()).chars() {
        match c {
            c if c.is_ascii_alphanumeric() || c == '.' => name.push(c),
            _ if name.ends_with('-') || name.is_empty() => {}
            _ => name.push('-'),
        }
    }
    format!("{}{day}", name.trim_matches(['-', '.']))
}

/// What stands there; nothing is written over what can't be read.
///
/// # Errors
/// Where it isn't text, or can't be read.
pub fn earlier(path: &Path) -> Result<Option<String>, Fault> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Fault::Book(format!(
            "{}: {error}; nothing is written",
            path.display()
        ))),
    }
}

/// Where a link leads to though nothing is there yet.
fn led_to(path: &Path) -> PathBuf {
    let mut place = path.to_path_buf();
    // More would be a circle.
    for _ in 0..40 {
        let Ok(next) = fs::read_link(&place) else {
            break;
        };
        place = place.parent().unwrap_or(Path::new(".")).join(next);
    }
    place
}

/// Beside its place and then moved there, for its owner only; one that is there already keeps its mode.
///
/// # Errors
/// Where it can't be written.
pub fn write(path: &Path, text: &str) -> Result<(), Fault> {
    let failed = |error: io::Error| Fault::Save(format!("{}: {error}", path.display()));
    // A link stays a link: what it leads to is replaced.
    let place = path.canonicalize().unwrap_or_else(|_| led_to(path));
    let folder = place
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(failed)?;
    let mut part = tempfile::Builder::new()
        .prefix(".stanch-")
        .tempfile_in(folder)
        .map_err(failed)?;
    if let Ok(meta) = fs::metadata(&place) {
        part.as_file()
            .set_permissions(meta.permissions())
            .map_err(failed)?;
    }
    part.write_all(text.as_bytes()).map_err(failed)?;
    part.as_file().sync_all().map_err(failed)?;
    part.persist(&place).map_err(|error| failed(error.error))?;
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(failed)
}
