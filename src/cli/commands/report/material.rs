//! What a postmortem is made of: captures, journals and the design, read and put together.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use chrono::TimeDelta;

use super::captures;
use crate::analysis::deadlocks::Once;
use crate::budget;
use crate::cli::args::budget::BudgetInput;
use crate::cli::args::report::ReportArgs;
use crate::cli::commands::{Context, budget as budget_files, runbook};
use crate::cli::fault::Fault;
use crate::cli::log_lines;
use crate::cli::log_moments;
use crate::cli::rounds;
use crate::cli::settings::{self, ActSettings};
use crate::journal::{self, Event, Record};
use crate::logs::Wanted;
use crate::model::{Pid, Target, Timestamp};
use crate::postmortem::{self, Course, Gap, Material, Postmortem};
use crate::view;

/// Everything is read and put together.
///
/// With it comes whether all of the given logs could be read.
pub fn made(ctx: &mut Context<'_>, args: &ReportArgs) -> Result<(Postmortem, bool), Fault> {
    let thresholds = settings::thresholds(ctx.env, &args.threshold)?;
    let mut journals: Vec<(PathBuf, Vec<Record>)> = Vec::new();
    for run in &args.journal {
        let path = match Path::new(run).is_file() {
            true => PathBuf::from(run),
            false => runbook::journal_of(&ActSettings::of(ctx.env)?, run)?,
        };
        let records = journal::read(&path).map_err(|error| Fault::Book(error.to_string()))?;
        journals.push((path, records));
    }
    journals.sort_by_key(|(_, records)| records.first().map(|record| record.at));
    let design = design(&args.budget)?;
    let paths = captures::paths(&args.bundles, &journals);
    let ordered = captures::ordered(&paths)?;
    let beside = captures::beside(&paths, &ordered)?;
    let records: Vec<Vec<Record>> = journals.into_iter().map(|(_, records)| records).collect();
    let course = |name: Option<&str>, own: &BTreeSet<Pid>| {
        let followed = Material::followed(&records, design.as_ref(), name, own.clone());
        Course::new(thresholds.clone(), followed)
    };
    let servers = ordered.servers();
    let mut courses: Vec<Course> = servers
        .iter()
        .map(|server| course(server.target.name.as_deref(), &server.own))
        .collect();
    if courses.is_empty() {
        courses.push(course(None, &BTreeSet::new()));
    }
    let places: Vec<_> = servers.iter().map(|s| captures::place(&s.target)).collect();
    let supplies = ordered.each(&mut |snapshot| {
        let place = captures::place(&snapshot.target);
        if let Some(n) = places.iter().position(|known| *known == place) {
            courses[n].add(snapshot);
        }
    })?;
    // Of a server that was never reached it is known which one was meant.
    for (course, server) in courses.iter_mut().zip(servers) {
        course.target.get_or_insert_with(|| server.target.clone());
    }
    let (mut told, mut gaps) = (beside.logs, beside.gaps);
    let read = of_logs(args, &courses, &records)?;
    let whole = read.iter().all(|(_, read)| read.gaps.is_empty());
    // Of what couldn't be read it is said that it is missing.
    let begin = courses
        .iter()
        .filter_map(Course::span)
        .map(|(first, _)| first)
        .chain(records.iter().flatten().map(|record| record.at))
        .min();
    let mut given = Vec::new();
    for (log, read) in read {
        for zone in &read.zones {
            ctx.console.warn(&view::clean(zone));
        }
        let first = read.moments.first().map(|moment| moment.at);
        gaps.extend(read.gaps.into_iter().map(|why| Gap {
            at: first.or(begin).unwrap_or_else(rounds::local_now),
            server: None,
            what: "log".into(),
            why,
        }));
        told.push((log, read.moments.clone()));
        given.extend(read.moments);
    }
    gaps.sort_by_key(|gap| gap.at);
    let logs = told.iter().map(|(log, all)| (log.clone(), all.len()));
    let logs: Vec<(String, usize)> = logs.collect();
    // Of those that are given each event is there once.
    let kept = told.into_iter().take(logs.len() - args.log.len());
    let kept = kept.map(|(_, moments)| moments);
    let log = postmortem::once(kept.chain([given]).collect());
    let targets: Vec<&Target> = courses.iter().filter_map(|c| c.target.as_ref()).collect();
    for other in strangers(&records, &targets) {
        let known: Vec<String> = targets.iter().map(|target| target.label()).collect();
        ctx.console.warn(&format!(
            "a journal is of {}, the captures are of {}",
            view::clean(other),
            view::clean(&known.join(" and "))
        ));
    }
    let course = courses.remove(0);
    let made = postmortem::make(Material {
        supplies,
        course,
        others: courses,
        gaps,
        records,
        log,
        logs,
        design,
        roles_only: args.roles_only,
    });
    Ok((made, whole))
}

/// What the given logs tell of the time around the captures and runs.
fn of_logs(
    args: &ReportArgs,
    courses: &[Course],
    records: &[Vec<Record>],
) -> Result<Vec<(String, log_moments::Told)>, Fault> {
    const AFTER: TimeDelta = TimeDelta::hours(1);
    let captured = courses
        .iter()
        .filter_map(Course::span)
        .flat_map(|(first, last)| [first, last]);
    let done = records.iter().flatten().map(|record| record.at);
    let times: Vec<Timestamp> = captured.chain(done).collect();
    let first = times.iter().min().copied();
    let last = times
        .iter()
        .max()
        .map(|at| Timestamp::new(at.utc() + AFTER));
    let mut all = Vec::new();
    let options = log_lines::options(&args.lines, Wanted::All)?;
    let mut once = Once::default();
    for log in &args.log {
        let told = log_moments::of(log, &options, (first, last), &mut once, &mut |_, _| true)?;
        all.push((captures::name(log), told));
    }
    Ok(all)
}

/// Journals of another server than these, by how they call it.
fn strangers<'r>(records: &'r [Vec<Record>], targets: &[&Target]) -> Vec<&'r str> {
    let is_of = |called: &str, target: &Target| {
        let place = format!("{}@{}", target.database, target.host);
        let by_place = called.starts_with(&place) && called.ends_with(&format!(":{}", target.port));
        by_place || called == target.label() || Some(called) == target.name.as_deref()
    };
    let called = records
        .iter()
        .flatten()
        .filter_map(|record| match &record.event {
            Event::RunStart { target, .. } => Some(target.as_str()),
            _ => None,
        });
    called
        .filter(|called| !targets.is_empty() && !targets.iter().any(|one| is_of(called, one)))
        .collect()
}

fn design(paths: &[PathBuf]) -> Result<Option<(budget::Budget, budget::Report)>, Fault> {
    if paths.is_empty() {
        return Ok(None);
    }
    let input = BudgetInput {
        paths: paths.to_vec(),
        exclude: Vec::new(),
        max_connections: None,
        nodes: None,
        set: Vec::new(),
        fail_on: Vec::new(),
    };
    let budget = budget_files::of_paths(paths, &input)?;
    let report = budget::judge(&budget, &[]);
    Ok(Some((budget, report)))
}
