//! Everything that the postmortem holds, put together of its sources.

use std::collections::BTreeSet;

use super::actions::{self, ActionItem};
use super::book::{Departure, Walked, departures};
use super::causes::{Suggestion, suggest};
use super::course::{Course, Followed};
use super::done::Run;
use super::drift::{self, Drift};
use super::logged::Logged;
use super::people::Answers;
use super::runs::{Operators, followed};
use super::summary::{Told, summary};
use super::timeline::{Entry, Sources, timeline};
use crate::budget::{Budget, Report};
use crate::journal::Record;
use crate::model::{LOG_UNREAD, LogMoment, Pid, Thresholds, Timestamp};

/// A bundle or a saved snapshot that captures came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Supply {
    pub name: String,
    pub captures: usize,
    /// What it couldn't have.
    pub gaps: usize,
    /// All that it was to hold is in it.
    pub is_whole: bool,
    /// Texts were reduced before it was written.
    pub is_redacted: bool,
}

/// Something that isn't there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    pub at: Timestamp,
    /// Of which server, as `Course::place` calls it; `None`: not known, or there is only one.
    pub server: Option<String>,
    /// What it was to be.
    pub what: String,
    pub why: String,
}

impl Gap {
    /// A capture that couldn't be taken.
    pub fn is_capture(&self) -> bool {
        self.what == "frame"
    }

    /// A log that a capture was to read and never did.
    pub fn is_unread_log(&self) -> bool {
        self.what == "log" && self.why.ends_with(LOG_UNREAD)
    }

    /// Why, in a line.
    pub fn reason(&self) -> &str {
        self.why.lines().next().unwrap_or_default().trim()
    }
}

/// What it is made of.
#[derive(Debug)]
pub struct Material {
    pub supplies: Vec<Supply>,
    /// Of the server that was captured first.
    pub course: Course,
    /// Of the others, where there are captures of several: after a failover the same data is on another one.
    pub others: Vec<Course>,
    pub gaps: Vec<Gap>,
    /// A journal each.
    pub records: Vec<Vec<Record>>,
    pub log: Vec<LogMoment>,
    /// The logs that these are of, each with its moments.
    pub logs: Vec<(String, usize)>,
    pub design: Option<(Budget, Report)>,
    /// People are called by what they do, not by their names.
    pub roles_only: bool,
}

impl Material {
    /// What has to be looked for in every capture.
    pub fn followed(
        records: &[Vec<Record>],
        design: Option<&(Budget, Report)>,
        target: Option<&str>,
        own: BTreeSet<Pid>,
    ) -> Followed {
        let workloads = design.and_then(|(budget, report)| {
            let server = drift::server_of(report, target).ok()?;
            Some(drift::names(budget, server))
        });
        Followed {
            workloads: workloads.unwrap_or_default(),
            sessions: followed(records),
            own,
        }
    }
}

/// The document, as data.
#[derive(Debug)]
pub struct Postmortem {
    pub title: String,
    pub supplies: Vec<Supply>,
    /// Of the server that was captured first.
    pub course: Course,
    pub others: Vec<Other>,
    /// Each with what it answers.
    pub summary: Vec<(&'static str, String)>,
    pub timeline: Vec<Entry>,
    /// Log moments that the timeline leaves out.
    pub log_left_out: usize,
    pub logs: Vec<(String, usize)>,
    pub gaps: Vec<Gap>,
    pub causes: Vec<Suggestion>,
    /// What journals and logs speak for, which are of no one server where there are several.
    pub said: Vec<Suggestion>,
    pub drift: Drift,
    pub runs: Vec<Run>,
    pub departures: Vec<Departure>,
    /// The books that were walked.
    pub walked: Vec<Walked>,
    pub actions: Vec<ActionItem>,
    /// What was written down during the runs.
    pub answers: Answers,
    pub roles_only: bool,
}

/// Another server, with what its captures speak for.
#[derive(Debug)]
pub struct Other {
    pub course: Course,
    pub causes: Vec<Suggestion>,
    pub drift: Drift,
}

/// One of the servers that the captures are of.
#[derive(Clone, Copy, Debug)]
pub struct Of<'p> {
    pub course: &'p Course,
    pub causes: &'p [Suggestion],
    pub drift: &'p Drift,
    /// There are others: what is told is of this one alone.
    pub is_one_of_several: bool,
}

impl Of<'_> {
    /// As it is called where there are several.
    pub fn name(&self) -> Option<String> {
        self.is_one_of_several.then(|| self.course.place())
    }
}

impl Postmortem {
    /// All servers, in the order in which they were captured first.
    pub fn servers(&self) -> Vec<Of<'_>> {
        servers(&self.course, &self.causes, &self.drift, &self.others)
    }
}

fn servers<'p>(
    course: &'p Course,
    causes: &'p [Suggestion],
    drift: &'p Drift,
    others: &'p [Other],
) -> Vec<Of<'p>> {
    let is_one_of_several = !others.is_empty();
    let first = Of {
        course,
        causes,
        drift,
        is_one_of_several,
    };
    let others = others.iter().map(|other| Of {
        course: &other.course,
        causes: &other.causes,
        drift: &other.drift,
        is_one_of_several,
    });
    std::iter::once(first).chain(others).collect()
}

/// Puts it together.
pub fn make(material: Material) -> Postmortem {
    let Material {
        supplies,
        course,
        others,
        gaps,
        records,
        log,
        logs,
        design,
        roles_only,
    } = material;
    let operators = Operators::new(&records, roles_only);
    let courses: Vec<&Course> = std::iter::once(&course).chain(&others).collect();
    let runs: Vec<Run> = records
        .iter()
        .filter_map(|records| Run::of(records, &courses, &operators))
        .collect();
    let logged = Logged::of(&log);
    let unlogged = Logged::default();
    let design = design.as_ref().map(|(budget, report)| (budget, report));
    let drift = drift::drift(&course, design);
    // What was said, and what a log tells, speaks of no one server where there are several.
    let is_one = others.is_empty();
    let (causes, said) = match is_one {
        true => {
            let causes = suggest(&course, &drift, &records, &logged);
            (causes, Vec::new())
        }
        false => {
            let nothing = Course::new(Thresholds::default(), Followed::default());
            let said = suggest(&nothing, &Drift::default(), &records, &logged);
            (suggest(&course, &drift, &[], &unlogged), said)
        }
    };
    let others: Vec<Other> = others
        .into_iter()
        .map(|course| {
            let drift = drift::drift(&course, design);
            Other {
                causes: suggest(&course, &drift, &[], &unlogged),
                drift,
                course,
            }
        })
        .collect();
    let servers = servers(&course, &causes, &drift, &others);
    let (timeline, log_left_out) = timeline(&Sources {
        servers: &servers,
        records: &records,
        runs: &runs,
        log: &log,
        gaps: &gaps,
        operators: &operators,
    });
    let (departures, walked) = departures(&records);
    Postmortem {
        title: title(&servers, &runs, logged.deadlocks.is_some()),
        summary: summary(&Told {
            servers: &servers,
            said: &said,
            runs: &runs,
            deadlocks: logged.deadlocks.as_ref(),
            gaps: &gaps,
        }),
        actions: actions::of_records(&records),
        answers: Answers::of(&records),
        supplies,
        course,
        others,
        timeline,
        log_left_out,
        logs,
        gaps,
        causes,
        said,
        drift,
        runs,
        departures,
        walked,
        roles_only,
    }
}

/// What people may call it otherwise.
fn title(servers: &[Of<'_>], runs: &[Run], deadlocks: bool) -> String {
    let seen = servers.iter().flat_map(|server| &server.course.seen);
    let worst = seen.max_by_key(|seen| (seen.severity, std::cmp::Reverse(seen.id)));
    let unseen = if deadlocks { "Deadlocks" } else { "Incident" };
    let what = worst.map_or(unseen.to_owned(), |seen| {
        // For how long it went on stands in the summary.
        let (what, _) = seen
            .title
            .split_once(", the longest for ")
            .unwrap_or((&seen.title, ""));
        let mut text = what.to_owned();
        if let Some(first) = text.get(..1) {
            let upper = first.to_uppercase();
            text.replace_range(..1, &upper);
        }
        text
    });
    // A target of several servers has one name.
    let mut names: Vec<String> = servers
        .iter()
        .filter_map(|server| server.course.target.as_ref())
        .map(|target| target.name.clone().unwrap_or_else(|| target.label()))
        .collect();
    names.dedup();
    let of = Some(names.join(", "))
        .filter(|names| !names.is_empty())
        .or_else(|| runs.first().map(|run| run.target.clone()));
    let of = of.map_or(String::new(), |of| format!(" ({of})"));
    let day = servers
        .iter()
        .find_map(|server| server.course.span())
        .map(|(first, _)| first)
        .or_else(|| runs.first().map(|run| run.began));
    let day = day.map_or(String::new(), |at| {
        format!(", {}", at.utc().format("%Y-%m-%d"))
    });
    format!("{what}{of}{day}")
}
