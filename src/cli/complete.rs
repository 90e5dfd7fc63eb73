//! Completion: the shell asks the program itself, so that names of targets are those of now.

use std::ffi::OsString;

use clap_complete::env::CompleteEnv;
use clap_complete::{ArgValueCandidates, CompletionCandidate};

use super::{args, settings, terminal};

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
        names.into_iter().map(CompletionCandidate::new).collect()
    })
}
