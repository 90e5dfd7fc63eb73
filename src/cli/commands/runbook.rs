//! `stanch runbook list | show | lint | run`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Context;
use super::act::{Asking, Person, lock, run_name};
use crate::action::Policy;
use crate::analysis::{
    activity, blocking, connections, horizon, locks, settings, transactions, triage,
};
use crate::cli::args_effect::{RunbookCommand, RunbookRun};
use crate::cli::fault::Fault;
use crate::cli::rounds;
use crate::cli::settings::{self as cli_settings, ActSettings, ConnectSettings};
use crate::journal::{Event, Journal, hash};
use crate::model::{Done, ExitCode, Snapshot, Thresholds};
use crate::operate::{BookRequest, Ended, Operator, Said, Walked, Walker, walk};
use crate::runbook::{self, Book, End, Step, builtin};
use crate::source::postgres::Connected;
use crate::view::{self, Names};

pub async fn run(ctx: &mut Context<'_>, command: RunbookCommand) -> Result<ExitCode, Fault> {
    match command {
        RunbookCommand::List => list(ctx),
        RunbookCommand::Show { name } => {
            let (_, text, _) = find(ctx, Some(&name), None)?;
            ctx.console.result(&text)?;
            Ok(ExitCode::Ok)
        }
        RunbookCommand::Lint { files } => lint(ctx, &files),
        RunbookCommand::Run(args) => run_book(ctx, &args).await,
    }
}

/// Where books are looked for, nearest first.
fn folders(ctx: &Context<'_>) -> Vec<PathBuf> {
    let mut folders = vec![PathBuf::from("runbooks")];
    folders
        .extend(cli_settings::config_folder(ctx.env).map(|folder| folder.join("stanch/runbooks")));
    folders
}

fn books_in(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = folder
        .read_dir()
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            (name.ends_with(".yaml") || name.ends_with(".yml")) && !name.ends_with(".test.yaml")
        })
        .collect();
    all.sort();
    all
}

fn list(ctx: &mut Context<'_>) -> Result<ExitCode, Fault> {
    let mut all: Vec<(String, String)> = Vec::new();
    let files = folders(ctx)
        .iter()
        .flat_map(|folder| books_in(folder))
        .collect::<Vec<_>>();
    for file in files {
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) => {
                all.push((file.display().to_string(), error.to_string()));
                continue;
            }
        };
        match runbook::load(&text) {
            Ok(book) => all.push((book.id.text, book.title)),
            Err(faults) => all.push((
                file.display().to_string(),
                format!(
                    "{} (stanch runbook lint)",
                    crate::model::count(faults.len(), "fault")
                ),
            )),
        }
    }
    for book in builtin::BOOKS {
        // One of the same id that lies nearer is the one that is walked.
        if !all.iter().any(|(id, _)| id == book.id) {
            let title = runbook::load(book.text).map_or_else(|_| String::new(), |book| book.title);
            all.push((book.id.to_owned(), title));
        }
    }
    let names = Names {
        list: "runbooks",
        columns: ["id", "title"],
        titles: ["runbook", "for"],
    };
    let all: Vec<(&str, &str)> = all
        .iter()
        .map(|(id, title)| (id.as_str(), title.as_str()))
        .collect();
    view::show_names(ctx.console, &names, &all)?;
    Ok(ExitCode::Ok)
}

/// Name, text, and whether it came with the program.
fn find(
    ctx: &Context<'_>,
    id: Option<&str>,
    file: Option<&Path>,
) -> Result<(String, String, bool), Fault> {
    let read = |path: &Path| {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Fault::Book(format!("{}: {error}", path.display())))?;
        // A copy of a built-in book is that book.
        let built_in = builtin::BOOKS.iter().any(|book| book.text == text);
        Ok((path.display().to_string(), text, built_in))
    };
    if let Some(file) = file {
        return read(file);
    }
    let id = id.ok_or_else(|| {
        Fault::Usage("which runbook? an id (stanch runbook list), or --file".into())
    })?;
    for folder in folders(ctx) {
        for path in books_in(&folder) {
            // By its id, as `list` shows it; a faulty one by its file's name, so that its faults are told.
            let stem = path.file_stem().is_some_and(|stem| stem == id);
            let book = std::fs::read_to_string(&path).map(|text| runbook::load(&text));
            if book.map_or(stem, |book| book.map_or(stem, |book| book.id.text == id)) {
                return read(&path);
            }
        }
    }
    builtin::named(id)
        .map(|book| (book.id.to_owned(), book.text.to_owned(), true))
        .ok_or_else(|| {
            let known: Vec<&str> = builtin::BOOKS.iter().map(|book| book.id).collect();
            Fault::Usage(format!("no runbook {id:?}; built in: {}", known.join(", ")))
        })
}

fn loaded(name: &str, text: &str) -> Result<Book, Fault> {
    runbook::load(text).map_err(|faults| {
        let shown: Vec<String> = faults.iter().map(|fault| fault.show(name, text)).collect();
        let count = crate::model::count(faults.len(), "fault");
        Fault::Book(format!("{name}: {count}\n{}", shown.join("\n")))
    })
}

/// Every fault of every file; without one, of the built-in books.
fn lint(ctx: &mut Context<'_>, paths: &[PathBuf]) -> Result<ExitCode, Fault> {
    let mut books: Vec<(String, String)> = Vec::new();
    for path in paths {
        let files = if path.is_dir() {
            books_in(path)
        } else {
            vec![path.clone()]
        };
        if files.is_empty() {
            return Err(Fault::Book(format!("{}: no runbook in it", path.display())));
        }
        for file in files {
            let (name, text, _) = find(ctx, None, Some(&file))?;
            books.push((name, text));
        }
    }
    if paths.is_empty() {
        books.extend(
            builtin::BOOKS
                .iter()
                .map(|b| (b.id.to_owned(), b.text.to_owned())),
        );
    }
    let mut wrong = 0;
    let mut out = String::new();
    for (name, text) in &books {
        match runbook::load(text) {
            Ok(book) => out.push_str(&format!(
                "{name}: {} steps, nothing wrong\n",
                book.steps.len()
            )),
            Err(faults) => {
                wrong += faults.len();
                for fault in &faults {
                    out.push_str(&fault.show(name, text));
                    out.push('\n');
                }
            }
        }
    }
    if wrong > 0 {
        out.push_str(&format!(
            "{} in {}\n",
            crate::model::count(wrong, "fault"),
            crate::model::count(books.len(), "book")
        ));
    }
    ctx.console.result(&out)?;
    Ok(if wrong > 0 {
        ExitCode::Input
    } else {
        ExitCode::Ok
    })
}

async fn run_book(ctx: &mut Context<'_>, args: &RunbookRun) -> Result<ExitCode, Fault> {
    let (name, text, built_in) = find(ctx, args.name.as_deref(), args.file.as_deref())?;
    let book = loaded(&name, &text)?;
    let inputs = inputs(&book, &args.set)?;
    let thresholds = cli_settings::thresholds(ctx.env, &[])?;
    let (settings, acting) = ConnectSettings::to_act(&args.connect, ctx.env)?;
    let person = Person::new(ctx, args.yes, &acting);
    if !built_in && book.acts() {
        ctx.console
            .warn(&format!("{name} is no built-in book, and it ends sessions"));
    }
    let connected = rounds::connect(ctx, &settings).await?;
    let target_name = acting.name_of(&connected.spec);
    let request = BookRequest {
        inputs,
        dry_run: args.dry_run,
        policy: Policy {
            protected_users: acting.protected_users.clone(),
            protected_applications: acting.protected_applications.clone(),
            allow_superuser: args.allow.allow_superuser,
            allow_syncrep: args.allow.allow_syncrep,
            all_databases: args.allow.all_databases,
            ..Policy::default()
        },
        target_name: target_name.clone(),
        operator_name: acting.operator.clone(),
        wait: args.wait,
        round: settings.round,
        thresholds: thresholds.clone(),
        runs: acting.state.join("runs"),
        clock: rounds::local_now,
    };
    let walked = start(
        ctx, &connected, &book, &text, &request, &acting, person, thresholds,
    )
    .await;
    connected.close().await;
    let (walked, journal) = walked?;
    told(ctx, &book, &walked, &journal)
}

/// The journal begins, and the book is walked.
async fn start(
    ctx: &mut Context<'_>,
    connected: &Connected,
    book: &Book,
    text: &str,
    request: &BookRequest,
    acting: &ActSettings,
    person: Person,
    thresholds: Thresholds,
) -> Result<(Walked, PathBuf), Fault> {
    let _lock = match request.dry_run || !book.acts() || !person.may_act() {
        true => None,
        false => Some(lock(acting, connected).await?),
    };
    let run_name = run_name(&format!("runbook-{}", book.id.text), &request.target_name);
    let no_journal = |error: crate::journal::JournalError| Fault::Save(error.to_string());
    let mut journal =
        Journal::create(&request.runs, &run_name, rounds::local_now).map_err(no_journal)?;
    for event in [
        Event::RunStart {
            what: format!(
                "runbook {}{}",
                book.id.text,
                if request.dry_run { " (dry run)" } else { "" }
            ),
            target: request.target_name.clone(),
            login: connected.spec.user.clone(),
            operator: acting.operator.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
            evidence: String::new(),
        },
        Event::Book {
            id: book.id.text.clone(),
            sha256: hash(text),
            inputs: request.inputs.clone(),
        },
    ] {
        journal.write(event).map_err(no_journal)?;
    }
    person.stops().watch()?;
    let mut walker = AtTerminal {
        asking: Asking {
            console: ctx.console,
            person,
        },
        thresholds,
    };
    let walked = walk(connected, book, request, &mut walker, &mut journal).await?;
    let code = code(&walked.ended);
    journal
        .write(Event::RunEnd { code: code.code() })
        .map_err(no_journal)?;
    Ok((walked, journal.path().to_path_buf()))
}

/// `--set name=value`, each of its input's type.
fn inputs(book: &Book, set: &[String]) -> Result<BTreeMap<String, String>, Fault> {
    let mut inputs = BTreeMap::new();
    for text in set {
        let (name, value) = text
            .split_once('=')
            .ok_or_else(|| Fault::Usage(format!("--set {text}: NAME=VALUE")))?;
        let input = book.inputs.iter().find(|input| input.name.text == name);
        let Some(input) = input else {
            let known: Vec<&str> = book.inputs.iter().map(|i| i.name.text.as_str()).collect();
            return Err(Fault::Usage(format!(
                "--set: the book has no input {name:?}; there are: {}",
                known.join(", ")
            )));
        };
        input
            .kind
            .check(value)
            .map_err(|what| Fault::Usage(format!("--set {name}: {what}")))?;
        inputs.insert(name.to_owned(), value.to_owned());
    }
    for input in &book.inputs {
        if input.default.is_none() && !inputs.contains_key(&input.name.text) {
            return Err(Fault::Usage(format!(
                "--set {}=VALUE is needed",
                input.name.text
            )));
        }
    }
    Ok(inputs)
}

fn code(ended: &Ended) -> ExitCode {
    match ended {
        Ended::At(End::Resolved | End::FalseAlarm) => ExitCode::Ok,
        Ended::At(End::Escalated) => ExitCode::Escalated,
        Ended::At(End::Failed) | Ended::Failed(_) => ExitCode::Critical,
        Ended::NeedsHuman(_) => ExitCode::NeedsHuman,
        Ended::Stopped => ExitCode::Stopped,
    }
}

fn told(
    ctx: &mut Context<'_>,
    book: &Book,
    walked: &Walked,
    journal: &Path,
) -> Result<ExitCode, Fault> {
    let how = match &walked.ended {
        Ended::At(end) => end.word().to_owned(),
        Ended::NeedsHuman(question) => format!("needs a human: {question}"),
        Ended::Stopped => "stopped by the operator".into(),
        Ended::Failed(why) => format!("failed: {why}"),
    };
    let code = code(&walked.ended);
    if ctx.console.format == view::Format::Json {
        let result = serde_json::json!({
            "schema": "stanch.runbook_run/1",
            "runbook": book.id.text,
            "ended": how,
            "path": walked.path,
            "journal": journal.display().to_string(),
            "exit_code": code.code(),
        });
        view::show_json(ctx.console, &result)?;
    } else {
        ctx.console.result(&format!(
            "{}: {}\nway: {}\njournal: {}\n",
            book.id.text,
            view::clean(&how),
            walked.path.join(" > "),
            journal.display()
        ))?;
    }
    Ok(code)
}

/// A person who walks the book at a terminal, or nobody.
struct AtTerminal<'a> {
    asking: Asking<'a>,
    thresholds: Thresholds,
}

impl AtTerminal<'_> {
    fn line(&mut self) -> std::io::Result<Said> {
        if !self.asking.person.is_there() {
            return Ok(Said::Nobody);
        }
        let text = self.asking.person.line()?;
        Ok(match text.as_deref().map(str::trim) {
            None | Some("stop") => Said::Stop,
            Some(text) => Said::Text(text.to_owned()),
        })
    }
}

impl Operator for AtTerminal<'_> {
    fn confirm(&mut self, plan: &crate::operate::Plan<'_>) -> std::io::Result<crate::operate::Ask> {
        self.asking.confirm(plan)
    }

    fn done(&mut self, done: &Done) {
        self.asking.done(done);
    }

    fn note(&mut self, text: &str) {
        self.asking.note(text);
    }

    fn stops(&self) -> usize {
        self.asking.stops()
    }
}

impl Walker for AtTerminal<'_> {
    fn step(&mut self, number: usize, of: usize, step: &Step) {
        let title = step.title.as_deref().unwrap_or(&step.id.text);
        self.asking.note(&format!(
            "\n[{number}/{of}] {}: {}",
            step.kind_word(),
            view::clean(title)
        ));
        if let Some(why) = &step.why {
            self.asking.note(&format!("  {}", why));
        }
    }

    fn found(&mut self, report: &str, snapshot: &Snapshot) -> std::io::Result<()> {
        let style = self.asking.console.style;
        let text = match report {
            "activity" => view::text(
                &activity::report(snapshot, &activity::Filter::default()),
                style,
            ),
            "blockers" => view::text(&blocking::report(snapshot), style),
            "locks" => view::text(&locks::report(snapshot, false), style),
            "transactions" => view::text(&transactions::report(snapshot, None), style),
            "connections" => view::text(&connections::report(snapshot), style),
            "settings" => view::text(&settings::report(snapshot), style),
            "horizon" => view::text(&horizon::report(snapshot), style),
            _ => view::text(&triage::report(snapshot, &self.thresholds), style),
        };
        self.asking.note(text.trim_end());
        Ok(())
    }

    fn choose(&mut self, question: &str, choices: &[(&str, &str)]) -> std::io::Result<Said> {
        if !self.asking.person.is_there() {
            return Ok(Said::Nobody);
        }
        loop {
            self.asking.console.warn(question);
            for (n, (key, label)) in choices.iter().enumerate() {
                self.asking
                    .console
                    .warn(&format!("  {} {key}: {label}", n + 1));
            }
            self.asking
                .console
                .warn("number or name (stop ends the run here):");
            let text = match self.line()? {
                Said::Text(text) => text,
                other => return Ok(other),
            };
            let by_number = text
                .parse::<usize>()
                .ok()
                .and_then(|n| choices.get(n.wrapping_sub(1)));
            let chosen = by_number.or_else(|| choices.iter().find(|(key, _)| *key == text));
            if let Some((key, _)) = chosen {
                return Ok(Said::Text((*key).to_owned()));
            }
            self.asking.console.warn("that is none of the answers");
        }
    }

    fn write(&mut self, question: &str) -> std::io::Result<Said> {
        if !self.asking.person.is_there() {
            return Ok(Said::Nobody);
        }
        self.asking.console.warn(question);
        loop {
            match self.line()? {
                Said::Text(text) if text.is_empty() => {
                    self.asking
                        .console
                        .warn("a line, please (stop ends the run here):");
                }
                other => return Ok(other),
            }
        }
    }
}
