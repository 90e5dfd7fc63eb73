//! `runbook follow`: a second operator looks on, from the journal, and changes nothing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::resume;
use crate::cli::commands::Context;
use crate::cli::fault::Fault;
use crate::cli::settings::ActSettings;
use crate::cli::stop::Stop;
use crate::journal::{self, Effect, Event, Record};
use crate::model::ExitCode;
use crate::view::{self, Format};

/// Between two looks.
const LOOK: Duration = Duration::from_millis(200);

pub async fn run(ctx: &mut Context<'_>, run: Option<&str>) -> Result<ExitCode, Fault> {
    let acting = ActSettings::of(ctx.env)?;
    let path = match run {
        Some(run) => resume::journal_of(&acting, run)?,
        None => newest(&acting.runs()).ok_or_else(|| {
            Fault::Usage(format!(
                "nothing was ever run from here: {}",
                acting.runs().display()
            ))
        })?,
    };
    ctx.console.note(&format!("following {}", path.display()));
    let mut stop = Stop::new()?;
    tokio::select! {
        () = stop.asked() => Ok(ExitCode::Ok),
        done = follow(ctx, &path) => done,
    }
}

/// The one that is written now, else the last.
fn newest(runs: &Path) -> Option<PathBuf> {
    let all = journal::all(runs);
    let now = all.iter().rev().find(|path| journal::is_written(path));
    now.or_else(|| all.last()).cloned()
}

async fn follow(ctx: &mut Context<'_>, path: &Path) -> Result<ExitCode, Fault> {
    let mut seen = 0;
    loop {
        // Asked first: what is written after it is read below.
        let goes_on = journal::is_written(path);
        let records = journal::read(path).map_err(|error| Fault::Save(error.to_string()))?;
        for record in &records[seen.min(records.len())..] {
            let line = match ctx.console.format {
                Format::Json => serde_json::to_string(record).unwrap_or_default(),
                _ => told(record),
            };
            ctx.console.result(&format!("{line}\n"))?;
        }
        seen = records.len();
        let over = matches!(records.last().map(|r| &r.event), Some(Event::RunEnd { .. }));
        if over || !goes_on {
            if !over {
                ctx.console.note(
                    "the run has ended without an end: stanch runbook resume goes on with it",
                );
            }
            return Ok(ExitCode::Ok);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// One event in a line.
fn told(record: &Record) -> String {
    let text = match &record.event {
        Event::RunStart {
            what,
            target,
            login,
            operator,
            ..
        } => format!("{operator} began {what} on {target} as {login}"),
        Event::Book { id, sha256, .. } => {
            format!("book {id} ({})", sha256.get(..12).unwrap_or(sha256))
        }
        Event::Resumed { operator, .. } => format!("{operator} goes on with it"),
        Event::StepStart { step } => format!("step {step}"),
        Event::StepEnd { step, came, next } => match next {
            Some(next) => format!("step {step} came out {came}, on with {next}"),
            None => format!("step {step} came out {came}"),
        },
        Event::Skipped { step, reason } => format!("step {step} was left out: {reason}"),
        Event::Answer {
            step,
            answer,
            attended,
        } => {
            let who = if *attended { "" } else { " (nobody was there)" };
            format!("{step}: {answer}{who}")
        }
        Event::Computed { step, vars } => {
            let all: Vec<String> = vars
                .iter()
                .map(|(name, value)| format!("{name} = {value}"))
                .collect();
            format!("{step}: {}", all.join(", "))
        }
        Event::Expectation {
            that, held, say, ..
        } => match (held, say) {
            (true, _) => format!("as expected: {that}"),
            (false, Some(say)) => format!("not as expected: {say} ({that})"),
            (false, None) => format!("not as expected: {that}"),
        },
        Event::Captured { file, .. } => format!("kept {file}"),
        Event::Note { question, text, .. } => format!("{question} {text}"),
        Event::BookEnd { end } => format!("ended: {end}"),
        Event::Candidates { signals, refused } => format!(
            "candidates: {}, left alone: {}",
            signals.len(),
            refused.len()
        ),
        Event::Confirmed { how } => format!("confirmed: {how}"),
        Event::NotConfirmed { why } => format!("not confirmed: {why}"),
        Event::EffectIntent { n, effect } => match effect {
            Effect::Signal(signal) => {
                format!("effect {n}: {} {}", signal.verb.word(), signal.id.pid)
            }
            Effect::RollbackPrepared { gid, .. } => format!("effect {n}: roll back {gid}"),
            Effect::RedisSession { node, .. } => format!("effect {n}: a HOTKEYS session on {node}"),
            Effect::RedisSetting {
                node, name, after, ..
            } => {
                format!("effect {n}: set {name} to {after:?} on {node}")
            }
            Effect::Command { argv } => format!("effect {n}: run {}", argv.join(" ")),
        },
        Event::EffectResult { n, outcome, .. } => match outcome.reason() {
            Some(why) => format!("effect {n}: {}: {why}", outcome.word()),
            None => format!("effect {n}: {}", outcome.word()),
        },
        Event::CommandResult { n, why, .. } => format!("effect {n}: {why}"),
        Event::EffectSeen { n, seen, answer } => format!("effect {n}: {seen}: {answer}"),
        Event::BatchEnd { measured } => format!("measured: {measured}"),
        Event::Stopped { why } => format!("stopped: {why}"),
        Event::RunEnd { code } => format!("exit code {code}"),
    };
    format!(
        "{} {}",
        record.at.utc().format("%H:%M:%S"),
        view::clean(&text)
    )
}
