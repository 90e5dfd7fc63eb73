//! How a walk of a book came out, for a person and for scripts. A walk in which nothing is done never says of an incident that it
//! is over.

use std::path::Path;

use serde_json::{Value as Json, json};

use crate::cli::commands::Context;
use crate::cli::fault::Fault;
use crate::model::{ExitCode, Timestamp};
use crate::operate::Walked;
use crate::runbook::walk::Ended;
use crate::runbook::{Book, End, Kind};
use crate::view;

/// What it was walked on.
pub enum On<'w> {
    /// A server, with the run's journal and the connection as it is given on a command line.
    Server { journal: &'w Path, place: &'w str },
    /// A server, and only reads were real.
    DryRun { journal: &'w Path },
    /// What was kept of one.
    Saved(Timestamp),
    /// It ended before its first step.
    Nothing,
}

impl On<'_> {
    fn journal(&self) -> Option<&Path> {
        match self {
            Self::Server { journal, .. } | Self::DryRun { journal } => Some(journal),
            Self::Saved(_) | Self::Nothing => None,
        }
    }

    /// Where nothing is done, whatever the book says.
    fn is_rehearsal(&self) -> bool {
        matches!(self, Self::DryRun { .. } | Self::Saved(_))
    }
}

pub fn code(ended: &Ended) -> ExitCode {
    match ended {
        Ended::At(End::Resolved | End::FalseAlarm) => ExitCode::Ok,
        Ended::At(End::Escalated) => ExitCode::Escalated,
        Ended::At(End::Failed) | Ended::Failed(_) => ExitCode::Critical,
        Ended::Unknown(_) => ExitCode::Unknown,
        Ended::NeedsHuman(_) => ExitCode::NeedsHuman,
        Ended::Stopped => ExitCode::Stopped,
    }
}

pub fn told(
    ctx: &mut Context<'_>,
    book: &Book,
    walked: &Walked,
    on: &On<'_>,
) -> Result<ExitCode, Fault> {
    let code = code(&walked.ended);
    if ctx.console.format == view::Format::Json {
        view::show_json(ctx.console, &result(book, walked, on, code))?;
        return Ok(code);
    }
    let width = ctx.console.style.width.unwrap_or(usize::MAX);
    let wrapped = |text: String| view::wrap(&text, width, 0);
    let mut out = wrapped(format!(
        "{}{}",
        head(book, on),
        view::clean(&how(walked, on))
    ));
    if !walked.path.is_empty() {
        out.push_str(&wrapped(format!("way: {}", walked.path.join(" > "))));
    }
    if on.is_rehearsal() {
        let parts = Parts::of(book, walked);
        for (word, steps) in [
            ("only read", parts.read),
            ("asked of a person", parts.asked),
        ] {
            if !steps.is_empty() {
                out.push_str(&wrapped(format!("{word}: {}", steps.join(", "))));
            }
        }
        let would: Vec<String> = walked
            .would
            .iter()
            .map(|(step, what)| format!("{step} ({})", view::clean(what)))
            .collect();
        let would = match would.is_empty() {
            true => "nothing".to_owned(),
            false => would.join(", "),
        };
        out.push_str(&wrapped(format!("would have been done: {would}")));
    }
    if let Some(journal) = on.journal() {
        out.push_str(&format!("journal: {}\n", journal.display()));
    }
    if let (On::Server { place, .. }, false) = (on, matches!(walked.ended, Ended::At(_))) {
        out.push_str(&format!("go on with it: stanch runbook resume {place}\n"));
    }
    ctx.console.result(&out)?;
    Ok(code)
}

fn head(book: &Book, on: &On<'_>) -> String {
    let id = &book.id.text;
    match on {
        On::Saved(at) => format!(
            "{id} on what was saved at {}: ",
            at.utc().format("%Y-%m-%d %H:%M:%S UTC")
        ),
        On::DryRun { .. } => format!("{id}, dry run: "),
        On::Server { .. } | On::Nothing => format!("{id}: "),
    }
}

/// How it ended. Where nothing was done an end of the book is only how far it leads.
fn how(walked: &Walked, on: &On<'_>) -> String {
    let how = walked.ended.told();
    match (on.is_rehearsal(), &walked.ended) {
        (false, _) => how,
        (true, Ended::At(_)) => format!("it leads to the end {how}; nothing was done"),
        (true, _) => format!("{how}; nothing was done"),
    }
}

fn result(book: &Book, walked: &Walked, on: &On<'_>, code: ExitCode) -> Json {
    let rehearsal = on.is_rehearsal().then(|| {
        let parts = Parts::of(book, walked);
        let would: Vec<Json> = walked
            .would
            .iter()
            .map(|(step, what)| json!({ "step": step, "what": what }))
            .collect();
        json!({
            "taken_at": match on {
                On::Saved(at) => Some(at),
                _ => None,
            },
            "leads_to": match walked.ended {
                Ended::At(end) => Some(end.word()),
                _ => None,
            },
            "read": parts.read,
            "asked": parts.asked,
            "would": would,
        })
    });
    json!({
        "schema": "stanch.runbook_run/1",
        "runbook": book.id.text,
        "ended": how(walked, on),
        "path": walked.path,
        "journal": on.journal().map(|path| path.display().to_string()),
        "exit_code": code.code(),
        "replayed": matches!(on, On::Saved(_)),
        "dry_run": matches!(on, On::DryRun { .. }),
        "rehearsal": rehearsal,
    })
}

/// The steps on the way, by what they are. Each once, however often it was come by.
#[derive(Default)]
struct Parts<'b> {
    read: Vec<&'b str>,
    asked: Vec<&'b str>,
}

impl<'b> Parts<'b> {
    fn of(book: &'b Book, walked: &Walked) -> Self {
        let mut parts = Self::default();
        for id in &walked.path {
            let Some(step) = book.step(id).map(|n| &book.steps[n]) else {
                continue;
            };
            let of = match &step.kind {
                Kind::Query(_) | Kind::Sql(_) | Kind::Check(_) | Kind::Redis(_) | Kind::Poll(_) => {
                    &mut parts.read
                }
                Kind::Command(command) if !command.writes => &mut parts.read,
                Kind::Ask(_) => &mut parts.asked,
                Kind::Note(note) if !note.ask.is_empty() => &mut parts.asked,
                _ => continue,
            };
            let id = step.id.text.as_str();
            if !of.contains(&id) {
                of.push(id);
            }
        }
        parts
    }
}
