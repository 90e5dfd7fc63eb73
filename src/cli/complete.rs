//! Completion: the shell asks the program itself, so that names of targets are those of now.

use std::ffi::OsString;

use clap_complete::env::CompleteEnv;
use clap_complete::{ArgValueCandidates, CompletionCandidate};

use super::{args, settings, terminal};
use crate::model::FindingId;

/// Answers the shell, if it is the shell that asks (`COMPLETE` is set): then there is nothing else to do.
pub fn answered(argv: &[OsString]) -> bool {
    let folder = std::env::current_dir().ok();
    CompleteEnv::with_factory(args::command)
        .try_complete(argv.iter().cloned(), folder.as_deref())
        .unwrap_or(false)
}

/// The targets of `stanch.yaml`.
pub fn targets() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let names = settings::target_names(&terminal::environment());
        // The scripts insert a name as it is: one with a blank would become two words.
        let one_word = names
            .into_iter()
            .filter(|name| !name.contains(char::is_whitespace));
        one_word.map(CompletionCandidate::new).collect()
    })
}

/// The built-in runbooks.
pub fn runbooks() -> ArgValueCandidates {
    words(|| {
        crate::runbook::builtin::BOOKS
            .iter()
            .map(|book| book.id.to_owned())
            .collect()
    })
}

/// The ids of findings.
pub fn findings() -> ArgValueCandidates {
    words(|| {
        FindingId::ALL
            .iter()
            .map(|id| id.name().to_owned())
            .collect()
    })
}

/// Limits by name, `=` and all.
pub fn thresholds() -> ArgValueCandidates {
    words(|| {
        crate::config::THRESHOLDS
            .iter()
            .map(|name| format!("{name}="))
            .collect()
    })
}

/// The states that sessions are asked for by.
pub fn states() -> ArgValueCandidates {
    words(|| {
        let states = [
            "active",
            "idle",
            "idle-in-transaction",
            "idle-in-transaction-aborted",
            "fastpath-function-call",
            "disabled",
            "starting",
        ];
        states.map(str::to_owned).to_vec()
    })
}

fn words(all: fn() -> Vec<String>) -> ArgValueCandidates {
    ArgValueCandidates::new(move || all().into_iter().map(CompletionCandidate::new).collect())
}
