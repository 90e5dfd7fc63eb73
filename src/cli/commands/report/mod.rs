//! `stanch report`: the postmortem, as files that people go on writing in.

mod captures;
mod files;

use std::path::{Path, PathBuf};

use super::{Context, budget as budget_files, runbook};
use crate::budget;
use crate::cli::args::budget::BudgetInput;
use crate::cli::args::report::ReportArgs;
use crate::cli::fault::Fault;
use crate::cli::rounds;
use crate::cli::settings::{self, ActSettings};
use crate::journal::{self, Event, Record};
use crate::model::{ExitCode, Target, count};
use crate::postmortem::{self, Course, Material, Postmortem, merge};
use crate::view::{self, Format};

pub fn run(ctx: &mut Context<'_>, args: &ReportArgs) -> Result<ExitCode, Fault> {
    if !matches!(ctx.console.format, Format::Table | Format::Markdown) {
        return Err(Fault::Usage(
            "a postmortem is Markdown and HTML: into files, or with -o md the Markdown to standard output".into(),
        ));
    }
    if let Some(file) = &args.lint {
        return lint(ctx, file);
    }
    let postmortem = made(ctx, args)?;
    let blocks = view::postmortem::blocks(&postmortem);
    if ctx.console.format == Format::Markdown {
        // A new rendering has no markers that could be damaged.
        let fresh = merge(&blocks, None).map_err(|damage| Fault::Save(damage.to_string()))?;
        ctx.console.result(&fresh.text)?;
        return Ok(ExitCode::Ok);
    }
    let name = args
        .name
        .clone()
        .unwrap_or_else(|| files::name_of(&postmortem));
    let markdown = args.out.join(format!("postmortem-{name}.md"));
    let earlier = files::earlier(&markdown)?;
    let merged = merge(&blocks, earlier.as_deref()).map_err(|damage| {
        Fault::Book(format!(
            "{}: {damage}; nothing is written: mend the markers, or give another --name",
            markdown.display()
        ))
    })?;
    for warning in &merged.warnings {
        ctx.console
            .warn(&format!("{}: {warning}", markdown.display()));
    }
    let html = view::postmortem::html(&postmortem, &merged.text)
        .map_err(|damage| Fault::Save(format!("{}: {damage}", markdown.display())))?;
    let page = markdown.with_extension("html");
    files::write(&markdown, &merged.text)?;
    files::write(&page, &html)?;
    ctx.console
        .result(&format!("{}\n{}\n", markdown.display(), page.display()))?;
    let today = rounds::local_now().utc().date_naive();
    let open = postmortem::lint(&merged.text, today).len();
    if open > 0 {
        ctx.console.note(&format!(
            "{} for people to write: stanch report --lint {}",
            count(open, "thing"),
            crate::analysis::shell_word(&markdown.display().to_string())
        ));
    }
    Ok(ExitCode::Ok)
}

fn lint(ctx: &mut Context<'_>, file: &Path) -> Result<ExitCode, Fault> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Fault::Book(format!("{}: {error}", file.display())))?;
    let today = rounds::local_now().utc().date_naive();
    let all = postmortem::lint(&text, today);
    let mut out = String::new();
    for one in &all {
        out.push_str(&view::clean(&format!(
            "{}:{}: {}",
            file.display(),
            one.line,
            one.what
        )));
        out.push('\n');
    }
    if all.is_empty() {
        ctx.console.note("nothing is missing");
        return Ok(ExitCode::Ok);
    }
    ctx.console.result(&out)?;
    Ok(ExitCode::Input)
}

/// Everything is read and put together.
fn made(ctx: &mut Context<'_>, args: &ReportArgs) -> Result<Postmortem, Fault> {
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
    let records: Vec<Vec<Record>> = journals.into_iter().map(|(_, records)| records).collect();
    let followed = Material::followed(
        &records,
        design.as_ref(),
        ordered.target().and_then(|target| target.name.as_deref()),
    );
    let mut course = Course::new(thresholds, followed);
    let supplies = ordered.each(&mut |snapshot| course.add(snapshot))?;
    if let Some(target) = &course.target {
        for other in strangers(&records, target) {
            ctx.console.warn(&format!(
                "a journal is of {}, the captures are of {}",
                view::clean(other),
                view::clean(&target.label())
            ));
        }
    }
    Ok(postmortem::make(Material {
        supplies,
        course,
        gaps: Vec::new(),
        records,
        log: Vec::new(),
        design,
        roles_only: args.roles_only,
    }))
}

/// Journals of another server, by how they call it.
fn strangers<'r>(records: &'r [Vec<Record>], target: &Target) -> impl Iterator<Item = &'r str> {
    let place = format!("{}@{}", target.database, target.host);
    let port = format!(":{}", target.port);
    let names = [target.label(), target.name.clone().unwrap_or_default()];
    let called = records
        .iter()
        .flatten()
        .filter_map(|record| match &record.event {
            Event::RunStart { target, .. } => Some(target.as_str()),
            _ => None,
        });
    called.filter(move |called| {
        let by_place = called.starts_with(&place) && called.ends_with(&port);
        !by_place && !names.iter().any(|name| name == called)
    })
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
