//! `runbook resume`: on from where a run was interrupted, from its journal.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::run::{self, Begun};
use super::shelf;
use super::told::{On, told};
use crate::cli::args::effect::RunbookResume;
use crate::cli::commands::Context;
use crate::cli::fault::Fault;
use crate::cli::person::Person;
use crate::cli::rounds;
use crate::cli::settings::{ActSettings, ConnectSettings};
use crate::journal::{self, Event, Journal};
use crate::model::{ExitCode, Timestamp};
use crate::operate::{BookRequest, Past, Walked};
use crate::runbook::{self, Book};
use crate::source::postgres::Connected;
use crate::view::{self, Format, Sheet, col};

fn name_of(path: &Path) -> String {
    path.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// A run by its name, or by its file.
pub fn journal_of(acting: &ActSettings, run: &str) -> Result<PathBuf, Fault> {
    let path = PathBuf::from(run);
    if path.is_file() {
        return Ok(path);
    }
    // The beginning of its name will do, where it is the only one.
    let begins = |path: &PathBuf| name_of(path).starts_with(run);
    let mut named = journal::all(&acting.runs()).into_iter().filter(begins);
    if let (Some(one), None) = (named.next(), named.next()) {
        return Ok(one);
    }
    Err(Fault::Usage(format!(
        "no run, or several, {run:?} in {} (stanch runbook runs)",
        acting.runs().display()
    )))
}

fn past_of(path: &Path) -> Result<Past, Fault> {
    let records = journal::read(path).map_err(|error| Fault::Book(error.to_string()))?;
    Past::of(&records).map_err(|why| Fault::Book(format!("{}: {why}", path.display())))
}

/// Whether there is something to go on with.
fn is_open(path: &Path, past: &Past) -> bool {
    !past.is_over() && !past.dry_run && !journal::is_written(path)
}

/// Older than this a run is gone on with only by its name.
const RECENT: chrono::TimeDelta = chrono::TimeDelta::hours(12);

/// The last run on this target that was interrupted, of the last hours: of an older one the evidence is of another night.
fn newest(here: &ActSettings, target: &str) -> Result<PathBuf, Fault> {
    let now = rounds::local_now().utc();
    let all = journal::all(&here.runs());
    let open: Vec<(PathBuf, Past)> = all
        .into_iter()
        .rev()
        .filter_map(|path| past_of(&path).ok().map(|past| (path, past)))
        .filter(|(path, past)| is_open(path, past))
        .collect();
    let fits = |past: &Past| past.target == target && now - past.last.utc() < RECENT;
    if let Some((path, _)) = open.iter().find(|(_, past)| fits(past)) {
        return Ok(path.clone());
    }
    let mut what = format!("no run on {target} to go on with");
    for (path, past) in open.iter().take(5) {
        what.push_str(&format!(
            "\n  {}: {} on {}, last written {}",
            name_of(path),
            past.book,
            past.target,
            past.last
        ));
    }
    if !open.is_empty() {
        what.push_str("\n  name one to go on with it: stanch runbook resume NAME");
    }
    Err(Fault::Usage(what))
}

pub async fn run(ctx: &mut Context<'_>, args: &RunbookResume) -> Result<ExitCode, Fault> {
    let (settings, acting) = ConnectSettings::to_act(&args.walk.connect, ctx.env)?;
    let named = match &args.run {
        Some(run) => Some(opened(&journal_of(&acting, run)?)?),
        None => None,
    };
    let connected = rounds::connect(ctx, &settings).await?;
    let done = on_server(ctx, args, &settings, &acting, &connected, named).await;
    let on = run::place(&connected);
    connected.close().await;
    let (book, walked, journal) = done?;
    let on = On::Server {
        journal: &journal,
        place: &on,
    };
    told(ctx, &book, &walked, &on)
}

/// A journal that is held from now on, and what it says.
fn opened(path: &Path) -> Result<(Journal, Past), Fault> {
    let (journal, records) =
        Journal::reopen(path, rounds::local_now).map_err(|error| match error {
            busy @ journal::JournalError::Busy { .. } => {
                Fault::Busy(format!("{busy} (stanch runbook follow looks on)"))
            }
            other => Fault::Save(other.to_string()),
        })?;
    let past =
        Past::of(&records).map_err(|why| Fault::Book(format!("{}: {why}", path.display())))?;
    if past.is_over() {
        let end = past.end.as_deref().unwrap_or_default();
        return Err(Fault::Usage(format!("{} has ended: {end}", path.display())));
    }
    if past.dry_run {
        return Err(Fault::Usage(format!(
            "{} was a dry run: nothing was done that could be gone on with",
            path.display()
        )));
    }
    Ok((journal, past))
}

async fn on_server(
    ctx: &mut Context<'_>,
    args: &RunbookResume,
    settings: &ConnectSettings,
    acting: &ActSettings,
    connected: &Connected,
    named: Option<(Journal, Past)>,
) -> Result<(Book, Walked, PathBuf), Fault> {
    let target_name = acting.name_of(&connected.spec);
    let (journal, past) = match named {
        Some(named) => named,
        None => opened(&newest(acting, &target_name)?)?,
    };
    if target_name != past.target {
        return Err(Fault::Usage(format!(
            "the run was on {}, and this is {target_name}",
            past.target
        )));
    }
    let inputs = inputs(&past.inputs, &args.set)?;
    let (book, changed) = book(ctx, &past, args)?;
    tell(ctx, journal.path(), &past);
    let mut person = Person::new(ctx, args.walk.yes, acting);
    let thresholds = crate::cli::settings::thresholds(ctx.env, &[])?;
    let built_in = runbook::builtin::BOOKS
        .iter()
        .any(|known| book.texts.first().is_some_and(|text| text == known.text));
    if !built_in
        && let Some(ended) = run::strange(ctx, &past.book, &book, &mut person, &thresholds)?
    {
        let path = journal.path().to_path_buf();
        let walked = Walked::before_the_first_step(ended);
        return Ok((book, walked, path));
    }
    let redis = run::redis(ctx, args.walk.redis.as_deref(), connected)?;
    let request = BookRequest {
        inputs,
        dry_run: false,
        wait: args.walk.wait,
        round: settings.round,
        redis,
        pooler: settings.pooler.clone(),
        redis_config: crate::cli::settings::redis_config(ctx.env)?,
        ..run::request(&args.walk.allow, acting, target_name, thresholds)
    };
    let begun = Begun {
        book: &book,
        request: &request,
        past: Some(&past),
    };
    let (walked, path) = go_on(ctx, connected, begun, acting, person, journal, changed).await?;
    Ok((book, walked, path))
}

/// The inputs that the run was begun with. What the journal doesn't show of them is given again, and nothing else is.
fn inputs(
    begun: &BTreeMap<String, String>,
    set: &[String],
) -> Result<BTreeMap<String, String>, Fault> {
    let mut inputs = begun.clone();
    for text in set {
        let (name, value) = text
            .split_once('=')
            .ok_or_else(|| Fault::Usage(format!("--set {}: NAME=VALUE", journal::shown(text))))?;
        match begun.get(name).filter(|value| journal::is_hidden(value)) {
            None => {
                return Err(Fault::Usage(format!(
                    "--set {name}: a run goes on with the inputs that it was begun with; only one that its journal doesn't show is given again"
                )));
            }
            Some(known) if *known != journal::shown_value(name, value) => {
                return Err(Fault::Usage(format!(
                    "--set {name}: the run was begun with {known}, and this is another"
                )));
            }
            Some(_) => inputs.insert(name.to_owned(), value.to_owned()),
        };
    }
    let hidden: Vec<String> = inputs
        .iter()
        .filter(|(name, value)| {
            journal::is_hidden(value) && begun.get(*name).is_some_and(|known| known == *value)
        })
        .map(|(name, _)| format!("--set {name}=VALUE"))
        .collect();
    match hidden.is_empty() {
        true => Ok(inputs),
        false => Err(Fault::Usage(format!(
            "what looks like a secret isn't in the journal: {} gives it again, the same as when the run began",
            hidden.join(" ")
        ))),
    }
}

async fn go_on(
    ctx: &mut Context<'_>,
    connected: &Connected,
    begun: Begun<'_>,
    acting: &ActSettings,
    person: Person,
    mut journal: Journal,
    changed: bool,
) -> Result<(Walked, PathBuf), Fault> {
    let _lock = run::held(begun, connected, acting, &person).await?;
    let texts = &begun.book.texts;
    let resumed = Event::Resumed {
        operator: acting.operator.clone(),
        version: env!("CARGO_PKG_VERSION").into(),
        sha256: run::digest(texts),
        changed,
        texts: if changed { texts.clone() } else { Vec::new() },
    };
    journal
        .write(resumed)
        .map_err(|error| Fault::Save(error.to_string()))?;
    run::walked(ctx, connected, begun, person, journal).await
}

/// The book that the run goes on with, and whether it is another than it was walked by.
fn book(ctx: &Context<'_>, past: &Past, args: &RunbookResume) -> Result<(Book, bool), Fault> {
    let walked_by = walked_by(past)?;
    if args.as_begun {
        return Ok((walked_by, false));
    }
    let file = args
        .file
        .clone()
        .or_else(|| past.file.clone().map(PathBuf::from));
    let is_now = shelf::find(ctx, Some(&past.book), file.as_deref())
        .and_then(|found| shelf::sound(ctx, &found));
    let is_now = is_now.map_err(|fault| {
        Fault::Book(format!(
            "{fault}\n--as-begun goes on with the book as the journal has it"
        ))
    })?;
    if is_now.texts == past.texts {
        return Ok((walked_by, false));
    }
    if !args.accept_changed {
        return Err(Fault::Book(format!(
            "the book {} isn't the one that the run was walked by: --as-begun goes on with that, --accept-changed with this",
            past.book
        )));
    }
    // What counts as done is what was done: not a step that has become another.
    let others: Vec<&str> = past
        .steps
        .iter()
        .filter(|step| step.came.is_some() || !step.effects.is_empty())
        .filter(|step| walked_by.source(&step.id) != is_now.source(&step.id))
        .map(|step| step.id.as_str())
        .collect();
    if !others.is_empty() {
        return Err(Fault::Book(format!(
            "steps that were done are others by now: {} (--as-begun goes on with the book of then)",
            others.join(", ")
        )));
    }
    Ok((is_now, true))
}

/// The book as the journal has it.
fn walked_by(past: &Past) -> Result<Book, Fault> {
    let Some((text, others)) = past.texts.split_first() else {
        return Err(Fault::Book(
            "the journal is of an older version: it doesn't hold the book".into(),
        ));
    };
    let shelf = |id: &str| {
        others
            .iter()
            .find(|text| runbook::is_named(text, id))
            .cloned()
    };
    runbook::load(text, &shelf).map_err(|faults| {
        let first = faults.first().map(|fault| fault.what.clone());
        Fault::Book(format!(
            "the book in the journal can't be read by this version: {}",
            first.unwrap_or_default()
        ))
    })
}

fn tell(ctx: &mut Context<'_>, path: &Path, past: &Past) {
    let way: Vec<&str> = past.steps.iter().map(|step| step.id.as_str()).collect();
    ctx.console.note(&format!(
        "run {}\n  {} by {} on {} as {}, begun {}, last written {}\n  way so far: {}",
        name_of(path),
        past.book,
        past.operator,
        past.target,
        past.login,
        past.began,
        past.last,
        way.join(" > ")
    ));
}

/// One run, for a table and for programs.
#[derive(Serialize)]
struct RunRow {
    run: String,
    runbook: String,
    state: String,
    step: Option<String>,
    target: String,
    operator: String,
    began: Timestamp,
    last: Timestamp,
    dry_run: bool,
}

/// Runs of books, the last first, with how each stands.
pub fn list(ctx: &mut Context<'_>) -> Result<ExitCode, Fault> {
    let acting = ActSettings::of(ctx.env)?;
    let everything = journal::all(&acting.runs());
    let row = |path: &PathBuf| {
        let past = past_of(path).ok()?;
        let state = match past.end {
            _ if journal::is_written(path) => "goes on now".to_owned(),
            Some(end) => end,
            None => "interrupted".to_owned(),
        };
        let name = name_of(path);
        let time = name.split('-').next().unwrap_or_default();
        let same = |path: &&PathBuf| name_of(path).starts_with(time);
        let alone = everything.iter().filter(same).count() == 1;
        Some(RunRow {
            run: if alone { time.to_owned() } else { name.clone() },
            runbook: past.book,
            state,
            step: past.steps.last().map(|step| step.id.clone()),
            target: past.target,
            operator: past.operator,
            began: past.began,
            last: past.last,
            dry_run: past.dry_run,
        })
    };
    let all: Vec<RunRow> = everything.iter().rev().filter_map(row).collect();
    if ctx.console.format != Format::Table {
        let columns = [
            col("run", "run"),
            col("runbook", "runbook"),
            col("state", "state"),
            col("step", "at"),
            col("target", "target"),
            col("operator", "by"),
            col("began", "began"),
            col("last", "last written"),
            col("dry_run", "dry run"),
        ];
        match ctx.console.format {
            Format::Json => {
                let result = serde_json::json!({ "schema": "stanch.runs/1", "runs": all });
                view::show_json(ctx.console, &result)?;
            }
            _ => view::show_sheet(ctx.console, &Sheet::of("runs", &columns, &all))?,
        }
        return Ok(ExitCode::Ok);
    }
    let width = ctx.console.style.width.unwrap_or(usize::MAX);
    let mut out = String::new();
    for run in &all {
        let dry = if run.dry_run { " (dry run)" } else { "" };
        let at = run
            .step
            .as_deref()
            .map_or(String::new(), |step| format!(", at {step}"));
        out.push_str(&format!("{}\n", run.run));
        let text = format!(
            "{}{dry}: {}{at}; by {} on {}",
            run.runbook, run.state, run.operator, run.target
        );
        out.push_str(&view::wrap(&view::clean(&text), width, 2));
    }
    if all.is_empty() {
        out.push_str("no run of a book yet\n");
    }
    ctx.console.result(&out)?;
    Ok(ExitCode::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_that_the_journal_hides_is_given_again() {
        let value = "postgres://u:hunter60x@h/d";
        let begun = BTreeMap::from([
            ("limit".to_owned(), "4".to_owned()),
            ("to".to_owned(), journal::shown_value("to", value)),
        ]);
        let said = |set: &[&str]| {
            let set: Vec<String> = set.iter().map(|text| (*text).to_owned()).collect();
            inputs(&begun, &set).map_err(|fault| fault.to_string())
        };
        let again = format!("to={value}");
        let inputs = said(&[&again]).expect("the same");
        assert_eq!(
            (inputs["limit"].as_str(), inputs["to"].as_str()),
            ("4", value)
        );
        for (set, why) in [
            (&[][..], "--set to=VALUE gives it again"),
            (&["to=postgres://other:x1@h/d"], "this is another"),
            (
                &[again.as_str(), "limit=5"],
                "only one that its journal doesn't show",
            ),
        ] {
            let error = said(set).expect_err("refused");
            assert!(error.contains(why), "{error}");
        }
    }
}
