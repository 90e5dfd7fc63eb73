//! The captures of all files, in the order of time, one at a time.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::bundle::{Bundle, BundleError};
use crate::cli::fault::Fault;
use crate::journal::{Event, Record};
use crate::model::{LogMoment, RedactionLevel, Snapshot, Target, Timestamp};
use crate::postmortem::Supply;

/// The captures of one file or bundle, in the order of time.
fn frames(path: &Path) -> Result<impl Iterator<Item = Result<Snapshot, Fault>> + use<>, Fault> {
    let frames = Bundle::open(path)?.into_frames()?;
    Ok(frames.map(|frame| frame.map_err(Fault::from)))
}

/// What the bundles couldn't have, and what they have of logs.
#[derive(Default)]
pub struct Beside {
    /// When, what, and why.
    pub gaps: Vec<(Timestamp, String, String)>,
    pub log: Vec<LogMoment>,
}

/// All that is in the bundles beside their frames.
///
/// # Errors
/// Where one can't be read.
pub fn beside(paths: &[PathBuf]) -> Result<Beside, Fault> {
    let mut beside = Beside::default();
    for path in paths {
        let bundle = Bundle::open(path)?;
        let gaps = bundle.gaps().iter();
        beside
            .gaps
            .extend(gaps.map(|gap| (gap.at, gap.what.clone(), gap.why.clone())));
        for bytes in bundle.logs()? {
            let moments: Vec<LogMoment> =
                serde_json::from_slice(&bytes).map_err(|error| BundleError::Damaged {
                    path: path.clone(),
                    what: error.to_string(),
                })?;
            beside.log.extend(moments);
        }
    }
    beside.gaps.sort_by_key(|(at, ..)| *at);
    beside.log.sort_by_key(|moment| moment.at);
    Ok(beside)
}

/// Those that were given, and those that the runs kept: each once.
pub fn paths(given: &[PathBuf], journals: &[(PathBuf, Vec<Record>)]) -> Vec<PathBuf> {
    let mut all = given.to_vec();
    for (journal, records) in journals {
        let beside = journal.parent().unwrap_or(Path::new("."));
        for record in records {
            let file = match &record.event {
                Event::Captured { file, .. } => file,
                Event::RunStart { evidence, .. } if !evidence.is_empty() => evidence,
                _ => continue,
            };
            // A journal that was copied has its captures beside it.
            let named = Path::new(file);
            let copied = named.file_name().map(|name| beside.join(name));
            let found = copied
                .into_iter()
                .chain([named.to_path_buf()])
                .find(|path| path.is_file());
            all.extend(found);
        }
    }
    let mut seen = BTreeSet::new();
    all.retain(|path| seen.insert(std::fs::canonicalize(path).unwrap_or_else(|_| path.clone())));
    all
}

/// Files by the time of their first capture.
pub struct Ordered {
    files: Vec<(Timestamp, PathBuf)>,
    target: Option<Target>,
}

/// Looks at the beginning of each.
///
/// # Errors
/// Where one can't be read, or they are of several servers.
pub fn ordered(paths: &[PathBuf]) -> Result<Ordered, Fault> {
    let mut files = Vec::new();
    let mut target: Option<(Target, &Path)> = None;
    for path in paths {
        let Some(first) = frames(path)?.next().transpose()? else {
            continue;
        };
        if let Some((known, at)) = &target
            && (&known.host, known.port) != (&first.target.host, first.target.port)
        {
            return Err(Fault::Book(format!(
                "captures of two servers, and a postmortem is of one: {} is of {}, {} of {}",
                at.display(),
                known.label(),
                path.display(),
                first.target.label()
            )));
        }
        files.push((first.taken_at, path.clone()));
        target.get_or_insert((first.target, path));
    }
    files.sort();
    Ok(Ordered {
        files,
        target: target.map(|(target, _)| target),
    })
}

/// A file that is being read, with its next capture.
struct Open {
    next: Snapshot,
    rest: Box<dyn Iterator<Item = Result<Snapshot, Fault>>>,
    supply: usize,
}

impl Ordered {
    pub fn target(&self) -> Option<&Target> {
        self.target.as_ref()
    }

    /// Every capture once, in the order of time; only files whose times overlap are open together.
    ///
    /// # Errors
    /// Where one can't be read.
    pub fn each(&self, take: &mut dyn FnMut(&Snapshot)) -> Result<Vec<Supply>, Fault> {
        let mut supplies: Vec<Supply> = Vec::new();
        let mut open: Vec<Open> = Vec::new();
        let mut waiting = self.files.iter().peekable();
        let mut last: Option<Timestamp> = None;
        loop {
            let earliest = open.iter().map(|file| file.next.taken_at).min();
            if let Some((_, path)) =
                waiting.next_if(|(at, _)| earliest.is_none_or(|now| *at <= now))
            {
                let mut rest = frames(path)?;
                let next = rest.next().transpose()?;
                supplies.push(supply(path)?);
                if let Some(next) = next {
                    open.push(Open {
                        next,
                        rest: Box::new(rest),
                        supply: supplies.len() - 1,
                    });
                }
                continue;
            }
            let Some(n) = (0..open.len()).min_by_key(|n| open[*n].next.taken_at) else {
                return Ok(supplies);
            };
            let file = &mut open[n];
            // The same round may have been kept twice.
            if last != Some(file.next.taken_at) {
                last = Some(file.next.taken_at);
                take(&file.next);
                supplies[file.supply].captures += 1;
            }
            match file.rest.next().transpose()? {
                Some(next) => file.next = next,
                None => {
                    open.swap_remove(n);
                }
            }
        }
    }
}

/// What is to be said of a file as a whole.
fn supply(path: &Path) -> Result<Supply, Fault> {
    let bundle = Bundle::open(path)?;
    Ok(Supply {
        name: path
            .file_name()
            .unwrap_or(path.as_os_str())
            .to_string_lossy()
            .into_owned(),
        captures: 0,
        is_whole: bundle.why_partial().is_none(),
        is_redacted: bundle.head().redaction == RedactionLevel::Redacted,
    })
}
