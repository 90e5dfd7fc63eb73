//! The captures of all files, in the order of time, one at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::bundle::{Bundle, BundleError};
use crate::cli::fault::Fault;
use crate::journal::{Event, Record};
use crate::model::{LogMoment, Millis, Pid, RedactionLevel, Section, Snapshot, Target, Timestamp};
use crate::postmortem::Supply;

/// A look at Redis that is further off says nothing of a capture.
const BESIDE: Millis = Millis::from_secs(60);

type Look = (Timestamp, Section<serde_json::Value>);

/// The captures of one file or bundle, in the order of time, each with the look at Redis that is nearest to it.
fn frames(path: &Path) -> Result<impl Iterator<Item = Result<Snapshot, Fault>> + use<>, Fault> {
    let bundle = Bundle::open(path)?;
    let looks = looks(&bundle)?;
    let frames = bundle.into_frames()?;
    Ok(frames.map(move |frame| {
        let mut frame = frame?;
        if frame.redis.is_none() {
            let far = |at: Timestamp| at.age_at(frame.taken_at).max(frame.taken_at.age_at(at));
            let nearest = looks.iter().min_by_key(|(at, _)| far(*at));
            let nearest = nearest.filter(|(at, _)| far(*at) <= BESIDE);
            frame.redis = nearest.map(|(_, look)| look.clone());
        }
        Ok(frame)
    }))
}

/// The looks at Redis that a bundle has, read in one go.
fn looks(bundle: &Bundle) -> Result<Vec<Look>, Fault> {
    let mut wanted: BTreeMap<&str, Timestamp> = BTreeMap::new();
    for found in bundle.redis().iter().filter(|found| found.report == "look") {
        wanted.insert(&found.path, found.at);
    }
    let mut looks = Vec::new();
    if wanted.is_empty() {
        return Ok(looks);
    }
    bundle.each(&mut |name, bytes| {
        if let Some(at) = wanted.get(name) {
            let look = serde_json::from_slice(bytes).map_err(|error| BundleError::Damaged {
                path: bundle.place(name),
                what: error.to_string(),
            })?;
            looks.push((*at, look));
        }
        Ok(())
    })?;
    Ok(looks)
}

/// What the bundles couldn't have, and what they have of logs.
#[derive(Default)]
pub struct Beside {
    /// When, what, and why.
    pub gaps: Vec<(Timestamp, String, String)>,
    /// Of each log: where it is from, and its moments.
    pub logs: Vec<(String, Vec<LogMoment>)>,
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
            beside
                .logs
                .push((format!("log in {}", name(path)), moments));
        }
    }
    beside.gaps.sort_by_key(|(at, ..)| *at);
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
    own: BTreeSet<Pid>,
    /// Files in which no capture is.
    empty: Vec<PathBuf>,
}

/// Looks through each: what it is of, and whose sessions are our own.
///
/// # Errors
/// Where one can't be read, or they are of several servers.
pub fn ordered(paths: &[PathBuf]) -> Result<Ordered, Fault> {
    let mut files = Vec::new();
    let (mut own, mut empty, mut unread) = (BTreeSet::new(), Vec::new(), None);
    let mut target: Option<(Target, &Path)> = None;
    for path in paths {
        let bundle = Bundle::open(path)?;
        let meant = bundle.head().target.clone();
        let mut rest = bundle.into_frames()?;
        let Some(first) = rest.next().transpose()? else {
            empty.push(path.clone());
            unread.get_or_insert(meant);
            continue;
        };
        own.extend(first.server.get().map(|server| server.own_pid));
        for frame in rest {
            own.extend(frame?.server.get().map(|server| server.own_pid));
        }
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
        target: target.map(|(target, _)| target).or(unread),
        own,
        empty,
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

    /// Pids of the sessions that the captures were read with.
    pub fn own(&self) -> &BTreeSet<Pid> {
        &self.own
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
                for path in &self.empty {
                    supplies.push(supply(path)?);
                }
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

/// A file as it is called here.
pub fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

/// What is to be said of a file as a whole.
fn supply(path: &Path) -> Result<Supply, Fault> {
    let bundle = Bundle::open(path)?;
    Ok(Supply {
        name: name(path),
        gaps: bundle.gaps().len(),
        captures: 0,
        is_whole: bundle.why_partial().is_none(),
        is_redacted: bundle.head().redaction == RedactionLevel::Redacted,
    })
}
