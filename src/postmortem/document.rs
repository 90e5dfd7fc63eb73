//! Everything that the postmortem holds, put together of its sources.

use std::collections::BTreeSet;

use super::actions::{self, ActionItem};
use super::book::{Departure, departures};
use super::causes::{Suggestion, suggest};
use super::course::{Course, Followed};
use super::done::Run;
use super::drift::{self, Drift};
use super::logged::Deadlocks;
use super::people::Answers;
use super::runs::{Operators, followed};
use super::summary::{Told, summary};
use super::timeline::{Entry, Sources, timeline};
use crate::budget::{Budget, Report};
use crate::journal::Record;
use crate::model::{LogMoment, Pid, Timestamp};

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

/// What it is made of.
#[derive(Debug)]
pub struct Material {
    pub supplies: Vec<Supply>,
    pub course: Course,
    /// When there is no capture, what it was to be, and why.
    pub gaps: Vec<(Timestamp, String, String)>,
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
    pub course: Course,
    /// Each with what it answers.
    pub summary: Vec<(&'static str, String)>,
    pub timeline: Vec<Entry>,
    /// Log moments that the timeline leaves out.
    pub log_left_out: usize,
    pub logs: Vec<(String, usize)>,
    pub gaps: Vec<(Timestamp, String, String)>,
    pub causes: Vec<Suggestion>,
    pub drift: Drift,
    pub runs: Vec<Run>,
    pub departures: Vec<Departure>,
    /// Of each book, the steps that no way led to.
    pub unreached: Vec<(String, Vec<String>)>,
    pub actions: Vec<ActionItem>,
    /// What was written down during the runs.
    pub answers: Answers,
    pub roles_only: bool,
}

/// Puts it together.
pub fn make(material: Material) -> Postmortem {
    let Material {
        supplies,
        course,
        gaps,
        records,
        log,
        logs,
        design,
        roles_only,
    } = material;
    let operators = Operators::new(&records, roles_only);
    let runs: Vec<Run> = records
        .iter()
        .filter_map(|records| Run::of(records, &course, &operators))
        .collect();
    let drift = drift::drift(
        &course,
        design.as_ref().map(|(budget, report)| (budget, report)),
    );
    let deadlocks = Deadlocks::of(&log);
    let causes = suggest(&course, &drift, &records, deadlocks.as_ref());
    let (timeline, log_left_out) = timeline(&Sources {
        course: &course,
        records: &records,
        runs: &runs,
        log: &log,
        gaps: &gaps,
        operators: &operators,
    });
    let (departures, unreached) = departures(&records);
    Postmortem {
        title: title(&course, &runs, deadlocks.is_some()),
        summary: summary(&Told {
            course: &course,
            causes: &causes,
            runs: &runs,
            deadlocks: deadlocks.as_ref(),
            gaps: &gaps,
        }),
        actions: actions::of_records(&records),
        answers: Answers::of(&records),
        supplies,
        course,
        timeline,
        log_left_out,
        logs,
        gaps,
        causes,
        drift,
        runs,
        departures,
        unreached,
        roles_only,
    }
}

/// What people may call it otherwise.
fn title(course: &Course, runs: &[Run], deadlocks: bool) -> String {
    let worst = course
        .seen
        .iter()
        .max_by_key(|seen| (seen.severity, std::cmp::Reverse(seen.id)));
    let unseen = if deadlocks { "Deadlocks" } else { "Incident" };
    let what = worst.map_or(unseen.to_owned(), |seen| {
        let mut text = seen.title.clone();
        if let Some(first) = text.get(..1) {
            let upper = first.to_uppercase();
            text.replace_range(..1, &upper);
        }
        text
    });
    let of = course
        .target
        .as_ref()
        .map(|target| target.name.clone().unwrap_or_else(|| target.label()))
        .or_else(|| runs.first().map(|run| run.target.clone()));
    let of = of.map_or(String::new(), |of| format!(" ({of})"));
    let day = course
        .span()
        .map(|(first, _)| first)
        .or_else(|| runs.first().map(|run| run.began));
    let day = day.map_or(String::new(), |at| {
        format!(", {}", at.utc().format("%Y-%m-%d"))
    });
    format!("{what}{of}{day}")
}
