//! The captures as series of numbers: drawn in HTML, as lines of blocks in Markdown.

use crate::model::{Millis, Timestamp};
use crate::postmortem::{Frame, Gap, Postmortem, States};

/// More points than a chart has columns say nothing more.
const MOST_POINTS: usize = 300;
/// Columns of a line of blocks.
const MOST_BLOCKS: usize = 48;
/// Applications with a series of their own.
const MOST_APPLICATIONS: usize = 6;

/// What the numbers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Connections,
    Sessions,
    Millis,
}

impl Unit {
    pub fn words(self, value: f64) -> String {
        match self {
            Self::Millis if value <= 0.0 => "0".into(),
            Self::Connections | Self::Sessions => format!("{value:.0}"),
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "ages are small and not below 0"
            )]
            Self::Millis => Millis(value.max(0.0).round() as u64).to_string(),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Sessions => "sessions",
            Self::Millis => "age",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Series {
    pub name: String,
    /// Its colour and texture: a state has the same in every picture.
    pub look: usize,
    /// One for each time; `None`: not read.
    pub values: Vec<Option<f64>>,
}

/// One picture.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Of the place in the page, unlike all others.
    pub id: String,
    pub title: &'static str,
    pub unit: Unit,
    pub times: Vec<Timestamp>,
    /// Places in `times` before which nobody looked for long, or captures failed: nothing is drawn across. The place after
    /// the last where they failed from then on.
    pub holes: Vec<usize>,
    pub series: Vec<Series>,
    /// The series are parts of one whole, one above the other.
    pub is_stacked: bool,
    /// The slots that there are, which stand above everything.
    pub limit: Option<Series>,
}

impl Series {
    /// The largest, and its place.
    pub fn peak(&self) -> Option<(usize, f64)> {
        let known = self
            .values
            .iter()
            .enumerate()
            .filter_map(|(n, value)| Some((n, (*value)?)));
        known.fold(None, |most, now| match most {
            Some((_, value)) if value >= now.1 => most,
            _ => Some(now),
        })
    }

    fn least(&self) -> Option<f64> {
        self.values.iter().flatten().copied().reduce(f64::min)
    }
}

/// The pictures of which there is anything to see, of one server: the numbers of two are never in one line.
pub fn charts(postmortem: &Postmortem, server: usize) -> Vec<Chart> {
    let servers = postmortem.servers();
    let Some(of) = servers.get(server) else {
        return Vec::new();
    };
    let frames = thinned(&of.course.frames);
    let times: Vec<Timestamp> = frames.iter().map(|frame| frame.at).collect();
    let name = of.name();
    let is_here = |gap: &&Gap| gap.is_capture() && (name.is_none() || gap.server == name);
    let failed = postmortem.gaps.iter().filter(is_here);
    let failed: Vec<Timestamp> = failed.map(|gap| gap.at).collect();
    let holes = holes(&times, &failed);
    let of = |name: &str, value: &dyn Fn(&Frame) -> Option<f64>| Series {
        name: name.to_owned(),
        look: 0,
        values: frames.iter().map(|frame| value(frame)).collect(),
    };
    let states: Vec<Series> = States::NAMES
        .iter()
        .enumerate()
        .map(|(n, name)| Series {
            look: n,
            ..of(name, &|frame| Some(frame.states?.counts()[n] as f64))
        })
        .collect();
    let chart = |id: &str, title, unit, series: Vec<Series>, is_stacked| Chart {
        id: match server {
            0 => id.to_owned(),
            n => format!("{id}-{}", n + 1),
        },
        title,
        unit,
        times: times.clone(),
        holes: holes.clone(),
        series: series
            .into_iter()
            .filter(|s| s.peak().is_some_and(|(_, most)| most > 0.0))
            .collect(),
        is_stacked,
        limit: is_stacked.then(|| {
            of("usable slots", &|frame| {
                Some(f64::from(frame.slots?.usable))
            })
        }),
    };
    let all = vec![
        chart(
            "states",
            "Connections by state",
            Unit::Connections,
            states,
            true,
        ),
        chart(
            "applications",
            "Connections by application",
            Unit::Connections,
            applications(&frames),
            true,
        ),
        chart(
            "oldest",
            "Oldest transaction",
            Unit::Millis,
            vec![of("oldest transaction", &|frame| {
                // Nobody in a transaction is an age of none, where the sessions were read.
                let none = frame.states.map(|_| 0.0);
                frame.oldest_transaction.map(|age| age.0 as f64).or(none)
            })],
            false,
        ),
        chart(
            "blocked",
            "Sessions that wait for a lock",
            Unit::Sessions,
            vec![of("blocked sessions", &|frame| {
                frame.blocked.map(|n| n as f64)
            })],
            false,
        ),
    ];
    all.into_iter()
        .filter(|chart| !chart.series.is_empty())
        .collect()
}

/// Of neighbours the one with most slots taken; the same captures for all pictures.
fn thinned(frames: &[Frame]) -> Vec<&Frame> {
    let size = frames.len().div_ceil(MOST_POINTS).max(1);
    frames
        .chunks(size)
        .filter_map(|group| {
            group.iter().max_by_key(|frame| {
                (
                    frame.slots.map(|s| s.used),
                    frame.blocked,
                    frame.oldest_transaction,
                )
            })
        })
        .collect()
}

/// A hole is where captures failed, or five times as long as from one capture to the next otherwise, and a minute at least:
/// captures of several files have nothing between them.
fn holes(times: &[Timestamp], failed: &[Timestamp]) -> Vec<usize> {
    const LONGER: u64 = 5;
    const AT_LEAST: Millis = Millis(60_000);
    let mut apart: Vec<Millis> = times.windows(2).map(|two| two[0].age_at(two[1])).collect();
    let between = apart.clone();
    apart.sort_unstable();
    let usual = apart.get(apart.len() / 2).map_or(0, |usual| usual.0);
    let long = Millis(usual.saturating_mul(LONGER)).max(AT_LEAST);
    let is_hole = |n: &usize| {
        let (before, after) = (times[n - 1], times[*n]);
        between[n - 1] >= long || failed.iter().any(|at| before < *at && *at < after)
    };
    let mut all: Vec<usize> = (1..times.len()).filter(is_hole).collect();
    if times
        .last()
        .is_some_and(|last| failed.iter().any(|at| at > last))
    {
        all.push(times.len());
    }
    all
}

/// Those that had most at any time; the rest in sum.
fn applications(frames: &[&Frame]) -> Vec<Series> {
    let mut most: Vec<(&str, usize)> = Vec::new();
    for (name, count) in frames.iter().flat_map(|frame| &frame.applications) {
        match most.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = (*known).max(*count),
            None => most.push((name, *count)),
        }
    }
    most.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    most.truncate(MOST_APPLICATIONS);
    let count = |frame: &Frame, name: &str| {
        frame
            .applications
            .iter()
            .find(|(known, _)| known == name)
            .map_or(0, |(_, count)| *count)
    };
    let read = |frame: &&&Frame, value: usize| frame.states.map(|_| value as f64);
    let mut all: Vec<Series> = most
        .iter()
        .enumerate()
        .map(|(look, (name, _))| Series {
            look,
            name: if name.is_empty() {
                "(no name)".into()
            } else {
                (*name).to_owned()
            },
            values: frames
                .iter()
                .map(|frame| read(&frame, count(frame, name)))
                .collect(),
        })
        .collect();
    let rest = |frame: &Frame| {
        let listed: usize = frame.applications.iter().map(|(_, count)| count).sum();
        let shown: usize = most.iter().map(|(name, _)| count(frame, name)).sum();
        listed + frame.other_applications - shown
    };
    all.push(Series {
        name: "all others".into(),
        look: MOST_APPLICATIONS,
        values: frames
            .iter()
            .map(|frame| read(&frame, rest(frame)))
            .collect(),
    });
    all
}

/// How many captures one column of the blocks stands for.
pub fn per_block(points: usize) -> usize {
    points.div_ceil(MOST_BLOCKS).max(1)
}

/// `▁▂▃`: each column the most of its captures, `·` where nothing was read; `┊` stands in a hole.
pub fn blocks(values: &[Option<f64>], top: f64, holes: &[usize]) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let size = per_block(values.len());
    values
        .chunks(size)
        .enumerate()
        .flat_map(|(n, group)| {
            let begin = n * size;
            let is_new = holes
                .iter()
                .any(|at| (begin..begin + group.len()).contains(at));
            let block = match group.iter().flatten().copied().reduce(f64::max) {
                None => '·',
                Some(value) if value <= 0.0 || top <= 0.0 => ' ',
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "0 to 7"
                )]
                Some(value) => BLOCKS[((value / top * 8.0).ceil() as usize).clamp(1, 8) - 1],
            };
            is_new.then_some('┊').into_iter().chain([block])
        })
        .chain(holes.contains(&values.len()).then_some('┊'))
        .collect()
}

/// `20 to 10, most 20 at 17:36:01`
pub fn told(series: &Series, times: &[Timestamp], unit: Unit) -> String {
    let (Some((at, most)), Some(least)) = (series.peak(), series.least()) else {
        return "not read".into();
    };
    if (most - least).abs() < f64::EPSILON {
        return format!("{} throughout", unit.words(most));
    }
    let at = times.get(at).map_or(String::new(), |at| {
        format!(" at {}", at.utc().format("%H:%M:%S"))
    });
    format!("{} to {}, most{at}", unit.words(least), unit.words(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_is_seen() {
        let at = |seconds: i64| {
            let time = chrono::DateTime::from_timestamp(1_800_000_000 + seconds, 0);
            Timestamp::new(time.expect("a time"))
        };
        let times = |seconds: &[i64]| seconds.iter().map(|s| at(*s)).collect::<Vec<_>>();
        let night = times(&[0, 2, 4, 6, 300, 302, 304]);
        assert_eq!(holes(&night, &[]), [4]);
        assert_eq!(holes(&night, &[at(3)]), [2, 4]);
        // Evidence of two moments is all there is: one line says how it went from one to the other.
        assert!(holes(&times(&[0, 300]), &[]).is_empty());
        assert!(
            holes(&times(&[0, 40, 42, 44]), &[]).is_empty(),
            "under a minute"
        );
        assert_eq!(holes(&times(&[0, 2]), &[at(4)]), [2]);
        assert!(holes(&[], &[]).is_empty());
        let values = vec![Some(1.0); 7];
        assert_eq!(blocks(&values, 1.0, &holes(&night, &[])), "████┊███");
        assert_eq!(blocks(&values, 1.0, &[7]), "███████┊");
        // Several captures a column: at the column that has it.
        let long = vec![Some(1.0); 96];
        assert_eq!(
            blocks(&long, 1.0, &[4]).chars().position(|c| c == '┊'),
            Some(2)
        );
    }
}
