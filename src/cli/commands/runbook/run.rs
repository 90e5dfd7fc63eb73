//! `runbook run`: a book walked on a live server, or on a saved snapshot.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::person::AtTerminal;
use super::shelf;
use super::told::{On, code, told};
use crate::action::Policy;
use crate::analysis::glance;
use crate::cli::args::effect::{AllowArgs, RunbookRun};
use crate::cli::commands::Context;
use crate::cli::commands::act::{Asking, lock, run_name};
use crate::cli::fault::Fault;
use crate::cli::person::Person;
use crate::cli::redis::saved as redis_saved;
use crate::cli::rounds;
use crate::cli::settings::{self as cli_settings, ActSettings, ConnectSettings};
use crate::config::RedisConfig;
use crate::journal::{Event, Journal, JournalError, TargetLock, hash};
use crate::model::{ExitCode, RedactionLevel, Snapshot, Thresholds};
use crate::operate::{BookRequest, Past, Said, Walked, Walker as _, World, walk};
use crate::runbook::walk::Ended;
use crate::runbook::{Book, Kind, Step};
use crate::source::postgres::{Connected, RoundOptions};
use crate::source::redis::RedisAddress;
use crate::source::saved;
use crate::sql;

/// A book that is about to be walked, or walked on.
#[derive(Clone, Copy)]
pub struct Begun<'b> {
    pub book: &'b Book,
    pub request: &'b BookRequest,
    pub past: Option<&'b Past>,
}

pub async fn run(ctx: &mut Context<'_>, args: &RunbookRun) -> Result<ExitCode, Fault> {
    let found = shelf::find(ctx, args.name.as_deref(), args.file.as_deref())?;
    let book = shelf::sound(ctx, &found)?;
    let inputs = inputs(&book, &args.set)?;
    let thresholds = cli_settings::thresholds(ctx.env, &[])?;
    if let Some(file) = &args.from {
        let loaded = saved::load(file, args.at.at.unwrap_or_default(), glance::weight)?;
        rounds::tell_of(ctx, file, &loaded);
        let reports = redis_saved::reports(file, args.at.at.unwrap_or_default())?;
        let world = World::Saved(&loaded.snapshot, &reports);
        return replay(
            ctx,
            world,
            &loaded.snapshot,
            &book,
            inputs,
            &args.walk.allow,
            thresholds,
        )
        .await;
    }
    let (settings, acting) = ConnectSettings::to_act(&args.walk.connect, ctx.env)?;
    let mut person = Person::new(ctx, args.walk.yes, &acting);
    if !found.built_in
        && let Some(ended) = strange(ctx, &found.name, &book, &mut person, &thresholds)?
    {
        let walked = Walked::before_the_first_step(ended);
        return told(ctx, &book, &walked, &On::Nothing);
    }
    let connected = rounds::connect(ctx, &settings).await?;
    let target_name = acting.name_of(&connected.spec);
    let redis = redis(ctx, args.walk.redis.as_deref(), &connected)?;
    let request = BookRequest {
        inputs,
        dry_run: args.dry_run,
        wait: args.walk.wait,
        round: settings.round,
        redis,
        pooler: settings.pooler.clone(),
        redis_config: cli_settings::redis_config(ctx.env)?,
        ..request(&args.walk.allow, &acting, target_name, thresholds)
    };
    let begun = Begun {
        book: &book,
        request: &request,
        past: None,
    };
    let file = (!found.built_in).then_some(found.name.as_str());
    let walked = start(ctx, &connected, begun, &acting, person, file).await;
    let on = place(&connected);
    connected.close().await;
    let (walked, journal) = walked?;
    let on = match args.dry_run {
        true => On::DryRun { journal: &journal },
        false => On::Server {
            journal: &journal,
            place: &on,
        },
    };
    told(ctx, &book, &walked, &on)
}

/// As the connection is given on a command line.
pub fn place(connected: &Connected) -> String {
    let spec = &connected.spec;
    match &spec.name {
        Some(name) => format!("-d {name}"),
        None => format!(
            "-h {} -p {} -U {} -d {}",
            spec.host, spec.port, spec.user, spec.database
        ),
    }
}

/// The Redis of `redis` steps. A password on the command line is everybody's to read.
pub fn redis(
    ctx: &mut Context<'_>,
    given: Option<&str>,
    connected: &Connected,
) -> Result<Option<RedisAddress>, Fault> {
    let address = cli_settings::redis(given, connected.spec.name.as_deref(), ctx.env)?;
    if given.is_some() && address.as_ref().is_some_and(RedisAddress::has_password) {
        ctx.console.warn(
            "a password on the command line can be read by others on this machine: REDIS_URL can't",
        );
    }
    Ok(address)
}

/// What every run is given; on its own it reads nothing and does nothing.
pub fn request(
    allow: &AllowArgs,
    acting: &ActSettings,
    target_name: String,
    thresholds: Thresholds,
) -> BookRequest {
    BookRequest {
        inputs: BTreeMap::new(),
        dry_run: true,
        policy: Policy {
            protected_users: acting.protected_users.clone(),
            protected_applications: acting.protected_applications.clone(),
            allow_superuser: allow.allow_superuser,
            allow_syncrep: allow.allow_syncrep,
            all_databases: allow.all_databases,
            ..Policy::default()
        },
        target_name,
        operator_name: acting.operator.clone(),
        wait: Duration::ZERO,
        round: RoundOptions {
            statement_timeout: Duration::ZERO,
            deadline: Duration::ZERO,
            redaction: RedactionLevel::Redacted,
        },
        redis: None,
        pooler: None,
        redis_config: RedisConfig::default(),
        thresholds,
        runs: acting.runs(),
        clock: rounds::local_now,
    }
}

/// What a book from outside does beside looking is said before its first step; SQL of which that can't be told needs a
/// person's word, which a yes in advance isn't. How the run has ended, where it ends here.
pub fn strange(
    ctx: &mut Context<'_>,
    name: &str,
    book: &Book,
    person: &mut Person,
    thresholds: &Thresholds,
) -> Result<Option<Ended>, Fault> {
    if book.acts() {
        ctx.console
            .warn(&format!("{name} is no built-in book, and it ends sessions"));
    }
    for command in book.commands() {
        ctx.console.warn(&format!(
            "{name} is no built-in book, and it runs: {command}"
        ));
    }
    let mut doubts: Vec<String> = book
        .steps
        .iter()
        .filter_map(|step| match &step.kind {
            Kind::Sql(statement) => Some(sql::doubts(&statement.text.text)),
            _ => None,
        })
        .flatten()
        .collect();
    doubts.sort();
    doubts.dedup();
    if doubts.is_empty() {
        return Ok(None);
    }
    let question = format!(
        "{name} has SQL of which it can't be told that it only reads: {}. Walk it?",
        doubts.join(", ")
    );
    // A person is lent for this one question, before there is a journal.
    let lent = std::mem::replace(person, Person::nobody());
    let mut walker = AtTerminal::new(
        Asking {
            console: ctx.console,
            person: lent,
        },
        thresholds.clone(),
    );
    let choices = [
        ("no".to_owned(), "no, nothing is done".to_owned()),
        ("yes".to_owned(), "yes, I have read it".to_owned()),
    ];
    let said = walker.choose(&question, &choices)?;
    *person = walker.into_person();
    Ok(match said {
        Said::Text(answer) if answer == "yes" => None,
        Said::Nobody => Some(Ended::NeedsHuman(question)),
        _ => Some(Ended::Stopped),
    })
}

/// The journal begins, and the book is walked.
async fn start(
    ctx: &mut Context<'_>,
    connected: &Connected,
    begun: Begun<'_>,
    acting: &ActSettings,
    person: Person,
    file: Option<&str>,
) -> Result<(Walked, PathBuf), Fault> {
    let Begun { book, request, .. } = begun;
    // Before there is a journal: one that isn't begun is nobody's to go on with.
    let _lock = held(begun, connected, acting, &person).await?;
    let run_name = run_name(&format!("runbook-{}", book.id.text), &request.target_name);
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
            sha256: digest(&book.texts),
            inputs: request.inputs.clone(),
            texts: book.texts.clone(),
            // From wherever it is resumed.
            file: file.map(|file| {
                let whole = std::path::absolute(file);
                whole.map_or_else(|_| file.to_owned(), |path| path.display().to_string())
            }),
        },
    ] {
        journal.write(event).map_err(no_journal)?;
    }
    walked(ctx, connected, begun, person, journal).await
}

/// One operator at a time for whatever changes something.
pub async fn held(
    begun: Begun<'_>,
    connected: &Connected,
    acting: &ActSettings,
    person: &Person,
) -> Result<Option<TargetLock>, Fault> {
    let effects = begun.book.steps.iter().any(Step::is_effect);
    if begun.request.dry_run || !effects || !person.may_act() {
        return Ok(None);
    }
    lock(acting, connected).await.map(Some)
}

/// Walks it, with a journal that has its beginning.
pub async fn walked(
    ctx: &mut Context<'_>,
    connected: &Connected,
    begun: Begun<'_>,
    person: Person,
    mut journal: Journal,
) -> Result<(Walked, PathBuf), Fault> {
    let Begun {
        book,
        request,
        past,
    } = begun;
    person.stops().watch()?;
    let mut walker = AtTerminal::new(
        Asking {
            console: ctx.console,
            person,
        },
        request.thresholds.clone(),
    );
    walker.welcome();
    let world = World::Live(connected, request.pooler.as_ref());
    let walked = walk(world, book, request, &mut walker, Some(&mut journal), past).await;
    let code = match &walked {
        Ok(walked) => code(&walked.ended),
        Err(_) => ExitCode::Unknown,
    };
    let ended = journal.write(Event::RunEnd { code: code.code() });
    let walked = walked?;
    ended.map_err(no_journal)?;
    Ok((walked, journal.path().to_path_buf()))
}

/// The same book on what was kept: nothing is asked of a server, nothing is done, and nothing is journaled.
async fn replay(
    ctx: &mut Context<'_>,
    world: World<'_>,
    snapshot: &Snapshot,
    book: &Book,
    inputs: BTreeMap<String, String>,
    allow: &AllowArgs,
    thresholds: Thresholds,
) -> Result<ExitCode, Fault> {
    let acting = ActSettings::of(ctx.env)?;
    let person = Person::new(ctx, false, &acting);
    person.stops().watch()?;
    let request = BookRequest {
        inputs,
        ..request(allow, &acting, snapshot.target.label(), thresholds.clone())
    };
    ctx.console.note(&format!(
        "walked on what was saved: as it was at {}; nothing is done",
        snapshot.taken_at.utc().format("%Y-%m-%d %H:%M:%S UTC")
    ));
    let mut walker = AtTerminal::new(
        Asking {
            console: ctx.console,
            person,
        },
        thresholds,
    );
    walker.welcome();
    let walked = walk(world, book, &request, &mut walker, None, None).await?;
    told(ctx, book, &walked, &On::Saved(snapshot.taken_at))
}

fn no_journal(error: JournalError) -> Fault {
    Fault::Save(error.to_string())
}

/// Of a book with all that it includes.
pub fn digest(texts: &[String]) -> String {
    hash(&texts.concat())
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
