//! A saved snapshot, or a frame of a bundle, in place of a server: every report runs on it offline.

use std::path::{Path, PathBuf};

use chrono::{DateTime, NaiveTime, TimeDelta, Utc};

use crate::bundle::{Bundle, BundleError, FrameRef, RedisRef};
use crate::model::{Snapshot, Timestamp};

/// Which frame of a bundle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    #[default]
    Last,
    First,
    /// The one that weighs most, the first of those alike.
    Worst,
    /// From 1.
    Number(usize),
    /// The last one taken by then.
    At(DateTime<Utc>),
    /// The same, at a time of the day: of the one day on which the capture has it.
    Clock(NaiveTime),
}

/// A frame, and how it stands among the others.
pub struct Loaded {
    pub snapshot: Snapshot,
    pub number: usize,
    pub of: usize,
    /// Why the bundle isn't whole.
    pub why_partial: Option<String>,
    /// Frames that would have been meant and can't be read, each with where.
    pub damaged: Vec<String>,
}

/// What triage shows of Redis, among the reports of a bundle.
const LOOK: &str = "look";

/// Reads what `--save` or `stanch capture` wrote; the format is told by the content.
///
/// # Errors
/// When it can't be read, isn't ours, is damaged, is of another format, or has no such frame.
pub fn load<W: Ord>(
    path: &Path,
    when: When,
    weigh: fn(&Snapshot) -> W,
) -> Result<Loaded, BundleError> {
    let bundle = Bundle::open(path)?;
    let chosen = choose(&bundle, when, weigh)?;
    let (frame, mut snapshot, damaged) = readable(&bundle, when, chosen)?;
    if snapshot.redis.is_none()
        && let Some(look) = nearest(&bundle, LOOK, frame.at)
    {
        let bytes = bundle.read(&look.path)?;
        let section = serde_json::from_slice(&bytes);
        snapshot.redis = Some(section.map_err(|error| BundleError::Damaged {
            path: bundle.place(&look.path),
            what: error.to_string(),
        })?);
    }
    Ok(Loaded {
        snapshot,
        number: frame.number,
        of: bundle.frames().len(),
        why_partial: bundle.why_partial(),
        damaged,
    })
}

/// The frame that is meant; instead of a first or last one that is damaged, the next to it that can be read. With it, those that
/// can't, each with where.
fn readable(
    bundle: &Bundle,
    when: When,
    chosen: FrameRef,
) -> Result<(FrameRef, Snapshot, Vec<String>), BundleError> {
    let frames = bundle.frames();
    let mut others: Box<dyn Iterator<Item = &FrameRef>> = match when {
        When::First => Box::new(frames.iter().skip(1)),
        When::Last => Box::new(frames.iter().rev().skip(1)),
        _ => Box::new(std::iter::empty()),
    };
    let mut damaged = Vec::new();
    let mut frame = chosen;
    loop {
        let error = match bundle.frame(&frame) {
            Ok(snapshot) => return Ok((frame, snapshot, damaged)),
            Err(error) => error,
        };
        let (Some(damage), Some(next)) = (error.damage(), others.next()) else {
            return Err(error);
        };
        damaged.push(format!("frame {}: {damage}", frame.number));
        frame = next.clone();
    }
}

/// The frames before one, in their order.
///
/// # Errors
/// When one can't be read.
pub fn before(
    path: &Path,
    number: usize,
    take: &mut dyn FnMut(&Snapshot),
) -> Result<(), BundleError> {
    let bundle = Bundle::open(path)?;
    for frame in bundle.frames().iter().filter(|frame| frame.number < number) {
        match bundle.frame(frame) {
            Ok(frame) => take(&frame),
            // It costs itself alone.
            Err(error) if error.damage().is_some() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The frame that is meant.
///
/// # Errors
/// When there is none.
pub fn choose<W: Ord>(
    bundle: &Bundle,
    when: When,
    weigh: fn(&Snapshot) -> W,
) -> Result<FrameRef, BundleError> {
    let frames = bundle.frames();
    let none = |what: String| BundleError::NoSuchFrame {
        path: bundle.path().to_path_buf(),
        what,
    };
    let (Some(first), Some(last)) = (frames.first(), frames.last()) else {
        return Err(none("no frame in it: the server was never read".into()));
    };
    let by = |then: Timestamp| {
        let found = frames.iter().rev().find(|frame| frame.at <= then);
        found.cloned().ok_or_else(|| {
            none(format!(
                "no frame by then: the first is of {}, the last of {}",
                shown(first.at),
                shown(last.at)
            ))
        })
    };
    match when {
        When::Last => Ok(last.clone()),
        When::First => Ok(first.clone()),
        When::Number(number) => {
            let found = frames.iter().find(|frame| frame.number == number);
            found
                .cloned()
                .ok_or_else(|| none(format!("no frame {number}: there are {}", frames.len())))
        }
        When::At(then) => by(Timestamp::new(then)),
        When::Clock(time) => {
            let all = days_of(first.at.utc(), last.at.utc(), time);
            let mut meant = Vec::new();
            for then in &all {
                meant.push(by(Timestamp::new(*then))?);
            }
            meant.dedup_by_key(|frame| frame.number);
            match (&meant[..], &all[..]) {
                ([frame], _) => Ok(frame.clone()),
                (_, [one, .., other]) => Err(none(format!(
                    "{} is there on several days: --at {} to --at {}",
                    time.format("%H:%M:%S"),
                    one.format("%Y-%m-%dT%H:%M:%SZ"),
                    other.format("%Y-%m-%dT%H:%M:%SZ")
                ))),
                // Before it or after it: of the day on which it began.
                _ => by(Timestamp::new(
                    first.at.utc().date_naive().and_time(time).and_utc(),
                )),
            }
        }
        When::Worst => {
            let mut worst: Option<(W, FrameRef)> = None;
            bundle.each_frame(&mut |frame, snapshot| {
                // One that is damaged isn't the worst of those that can be shown.
                let Ok(snapshot) = snapshot else { return };
                let weight = weigh(&snapshot);
                if worst.as_ref().is_none_or(|(most, _)| weight > *most) {
                    worst = Some((weight, frame.clone()));
                }
            })?;
            Ok(worst.map_or_else(|| last.clone(), |(_, frame)| frame))
        }
    }
}

/// When it was this time of the day between two times; a minute that has begun may be meant to its end.
fn days_of(from: DateTime<Utc>, to: DateTime<Utc>, time: NaiveTime) -> Vec<DateTime<Utc>> {
    // Longer than any capture, and a bundle may say what it likes.
    const MOST: usize = 400;
    let minute = TimeDelta::minutes(1);
    let to = to.checked_add_signed(minute).unwrap_or(to);
    let first = from.date_naive().and_time(time).and_utc();
    std::iter::successors(Some(first), |then| {
        then.checked_add_signed(TimeDelta::days(1))
    })
    .take(MOST)
    .filter(|then| (from..=to).contains(then))
    .collect()
}

/// A report of Redis out of a file or a bundle, and where it was found. Of a bundle the one nearest to the frame that is meant.
///
/// # Errors
/// When it can't be read, or a bundle has no such report.
pub fn redis<W: Ord>(
    path: &Path,
    report: &str,
    when: When,
    weigh: fn(&Snapshot) -> W,
) -> Result<(Vec<u8>, PathBuf), BundleError> {
    if !Bundle::is_bundle(path)? {
        let bytes = std::fs::read(path).map_err(|error| BundleError::Io {
            path: path.to_path_buf(),
            error,
        })?;
        return Ok((bytes, path.to_path_buf()));
    }
    let bundle = Bundle::open(path)?;
    let at = match (when, bundle.frames()) {
        // Of a server that was never read there may be a Redis that was.
        (When::Last, []) => bundle.redis().last().map(|report| report.at),
        _ => Some(choose(&bundle, when, weigh)?.at),
    };
    let found = at.and_then(|at| nearest(&bundle, report, at));
    let found = found.ok_or_else(|| {
        let mut gaps = bundle.gaps().iter();
        let gap = gaps.find(|gap| gap.what.strip_prefix("redis ") == Some(report));
        let why = gap.map_or("stanch capture --redis URL keeps them", |gap| &gap.why);
        BundleError::NoSuchFrame {
            path: path.to_path_buf(),
            what: format!("no report {report:?} of Redis in it: {why}"),
        }
    })?;
    Ok((bundle.read(&found.path)?, bundle.place(&found.path)))
}

/// The report of this name that is nearest to a time.
pub fn nearest(bundle: &Bundle, report: &str, at: Timestamp) -> Option<RedisRef> {
    let of_name = bundle.redis().iter().filter(|found| found.report == report);
    let far = |found: &&RedisRef| found.at.age_at(at).max(at.age_at(found.at));
    of_name.min_by_key(far).cloned()
}

fn shown(at: Timestamp) -> String {
    at.utc().format("%Y-%m-%d %H:%M:%S UTC").to_string()
}
