//! The captures of all files, in the order of time, one at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::bundle::{Bundle, BundleError};
use crate::cli::fault::Fault;
use crate::journal::{Event, Record};
use crate::model::{LogMoment, Millis, Pid, RedactionLevel, Section, Snapshot, Target, Timestamp};
use crate::postmortem::{Gap, Supply};

/// A look at Redis that is further off says nothing of a capture.
const BESIDE: Millis = Millis::from_secs(60);

type Look = (Timestamp, Section<serde_json::Value>);

/// The captures of one file or bundle, in the order of time, each with the look at Redis that is nearest to it.
fn frames(path: &Path) -> Result<impl Iterator<Item = Result<Snapshot, Fault>> + use<>, Fault> {
    let bundle = Bundle::open(path)?;
    let looks = looks(&bundle)?;
    let frames = bundle.into_frames()?;
    Ok(frames.filter_map(move |(_, frame)| {
        let mut frame = match frame {
            Ok(frame) => frame,
            // Told as a gap.
            Err(error) if error.damage().is_some() => return None,
            Err(error) => return Some(Err(error.into())),
        };
        if frame.redis.is_none() {
            let far = |at: Timestamp| at.age_at(frame.taken_at).max(frame.taken_at.age_at(at));
            let nearest = looks.iter().min_by_key(|(at, _)| far(*at));
            let nearest = nearest.filter(|(at, _)| far(*at) <= BESIDE);
            frame.redis = nearest.map(|(_, look)| look.clone());
        }
        Some(Ok(frame))
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
    pub gaps: Vec<Gap>,
    /// Of each log: where it is from, and its moments.
    pub logs: Vec<(String, Vec<LogMoment>)>,
}

/// All that is in the bundles beside their frames.
///
/// # Errors
/// Where one can't be read.
pub fn beside(paths: &[PathBuf], ordered: &Ordered) -> Result<Beside, Fault> {
    let mut beside = Beside::default();
    for path in paths {
        let bundle = Bundle::open(path)?;
        let server = ordered.server_of(path);
        for gap in bundle.gaps() {
            // Of several in a row the first and the last time are known.
            const MOST: usize = 100_000;
            let last = gap.until.unwrap_or(gap.at);
            let rest = std::iter::repeat_n(last, gap.times.clamp(1, MOST) - 1);
            beside
                .gaps
                .extend(std::iter::once(gap.at).chain(rest).map(|at| Gap {
                    at,
                    server: server.clone(),
                    what: gap.what.clone(),
                    why: gap.why.clone(),
                }));
        }
        beside.gaps.extend(ordered.damaged(path).map(|one| Gap {
            at: one.at,
            server: server.clone(),
            what: format!("frame {}", one.number),
            why: one.why.clone(),
        }));
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
    beside.gaps.sort_by_key(|gap| gap.at);
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

/// A server as it is reached: after a failover the same name is another place.
type Place = (String, u16);

pub fn place(target: &Target) -> Place {
    (target.host.clone(), target.port)
}

/// A server that there are captures of, or were to be.
pub struct Captured {
    pub target: Target,
    first: Option<Timestamp>,
    /// Pids of the sessions that its captures were read with.
    pub own: BTreeSet<Pid>,
}

/// Files by the time of their first capture.
pub struct Ordered {
    files: Vec<(Timestamp, PathBuf)>,
    /// In the order of their first captures.
    servers: Vec<Captured>,
    /// What each file is of.
    places: Vec<(PathBuf, BTreeSet<Place>)>,
    /// Files in which no capture is.
    empty: Vec<PathBuf>,
    damaged: Vec<Damaged>,
}

/// A frame that can't be read as it was written.
struct Damaged {
    file: PathBuf,
    at: Timestamp,
    number: usize,
    why: String,
}

/// Looks through each: which servers it is of, and whose sessions are our own.
///
/// # Errors
/// Where one can't be read.
pub fn ordered(paths: &[PathBuf]) -> Result<Ordered, Fault> {
    let mut files = Vec::new();
    let mut servers: Vec<Captured> = Vec::new();
    let (mut empty, mut places, mut damaged) = (Vec::new(), Vec::new(), Vec::new());
    for path in paths {
        let bundle = Bundle::open(path)?;
        let meant = bundle.head().target.clone();
        let mut of = BTreeSet::new();
        let mut began = None;
        for (at, frame) in bundle.into_frames()? {
            let frame = match frame {
                Ok(frame) => frame,
                Err(error) => {
                    let why = error.damage().ok_or(error)?;
                    damaged.push(Damaged {
                        file: path.clone(),
                        at: at.at,
                        number: at.number,
                        why,
                    });
                    continue;
                }
            };
            began.get_or_insert(frame.taken_at);
            of.insert(place(&frame.target));
            let server = server(&mut servers, &frame.target);
            server.first = Some(
                server
                    .first
                    .map_or(frame.taken_at, |at| at.min(frame.taken_at)),
            );
            server
                .own
                .extend(frame.server.get().map(|server| server.own_pid));
        }
        match began {
            Some(at) => files.push((at, path.clone())),
            None => {
                // Of a server that was never reached it is known which one was meant.
                of.insert(place(&meant));
                server(&mut servers, &meant);
                empty.push(path.clone());
            }
        }
        places.push((path.clone(), of));
    }
    files.sort();
    servers.sort_by_key(|server| (server.first.is_none(), server.first));
    Ok(Ordered {
        files,
        servers,
        places,
        empty,
        damaged,
    })
}

fn server<'s>(all: &'s mut Vec<Captured>, target: &Target) -> &'s mut Captured {
    let known = all
        .iter()
        .position(|one| place(&one.target) == place(target));
    let n = known.unwrap_or_else(|| {
        all.push(Captured {
            target: target.clone(),
            first: None,
            own: BTreeSet::new(),
        });
        all.len() - 1
    });
    &mut all[n]
}

/// A file that is being read, with its next capture.
struct Open {
    next: Snapshot,
    rest: Box<dyn Iterator<Item = Result<Snapshot, Fault>>>,
    supply: usize,
}

impl Ordered {
    pub fn servers(&self) -> &[Captured] {
        &self.servers
    }

    fn damaged<'o>(&'o self, file: &'o Path) -> impl Iterator<Item = &'o Damaged> {
        self.damaged.iter().filter(move |one| one.file == file)
    }

    /// What is to be said of a file as a whole.
    fn supply(&self, path: &Path) -> Result<Supply, Fault> {
        let bundle = Bundle::open(path)?;
        Ok(Supply {
            name: name(path),
            gaps: bundle.missing() + self.damaged(path).count(),
            captures: 0,
            is_whole: bundle.why_partial().is_none(),
            is_redacted: bundle.head().redaction == RedactionLevel::Redacted,
        })
    }

    /// The one server that a file is of, where there are several.
    fn server_of(&self, path: &Path) -> Option<String> {
        let (_, places) = self.places.iter().find(|(known, _)| known == path)?;
        let one = places.iter().next().filter(|_| places.len() == 1)?;
        (self.servers.len() > 1).then(|| format!("{}:{}", one.0, one.1))
    }

    /// Every capture once, in the order of time; only files whose times overlap are open together.
    ///
    /// # Errors
    /// Where one can't be read.
    pub fn each(&self, take: &mut dyn FnMut(&Snapshot)) -> Result<Vec<Supply>, Fault> {
        let mut supplies: Vec<Supply> = Vec::new();
        let mut open: Vec<Open> = Vec::new();
        let mut waiting = self.files.iter().peekable();
        let mut last: Option<(Timestamp, Place)> = None;
        loop {
            let earliest = open.iter().map(|file| file.next.taken_at).min();
            if let Some((_, path)) =
                waiting.next_if(|(at, _)| earliest.is_none_or(|now| *at <= now))
            {
                let mut rest = frames(path)?;
                let next = rest.next().transpose()?;
                supplies.push(self.supply(path)?);
                if let Some(next) = next {
                    open.push(Open {
                        next,
                        rest: Box::new(rest),
                        supply: supplies.len() - 1,
                    });
                }
                continue;
            }
            let key = |snapshot: &Snapshot| (snapshot.taken_at, place(&snapshot.target));
            let Some(n) = (0..open.len()).min_by_key(|n| key(&open[*n].next)) else {
                for path in &self.empty {
                    supplies.push(self.supply(path)?);
                }
                return Ok(supplies);
            };
            let file = &mut open[n];
            // The same round may have been kept twice.
            let now = Some(key(&file.next));
            if last != now {
                last = now;
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
