//! `report` and its options.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::logs::LineArgs;
use crate::cli::complete;

#[derive(Debug, ClapArgs)]
pub struct ReportArgs {
    /// What was captured: bundles, or files that --save wrote, of one server or, after a failover, of several, in any order
    #[arg(value_name = "BUNDLE")]
    pub bundles: Vec<PathBuf>,
    /// What was done: a name of `runbook runs`, or its file; captures that lie beside it are taken too (may be given several
    /// times)
    #[arg(long, value_name = "RUN")]
    pub journal: Vec<String>,
    /// The server's log, for the timeline, from an hour before the first capture to an hour after the last (may be given several
    /// times)
    #[arg(long, value_name = "FILE")]
    pub log: Vec<PathBuf>,
    #[command(flatten)]
    pub lines: LineArgs,
    /// The design that settings and workloads are compared with: budget.yaml and what it is made of (may be given several times)
    #[arg(long, value_name = "PATH")]
    pub budget: Vec<PathBuf>,
    /// Judge by another limit than stanch.yaml's or the default, such as transaction_age=5s (may be given several times)
    #[arg(long, value_name = "NAME=VALUE", add = complete::thresholds())]
    pub threshold: Vec<String>,
    /// Where the files are written
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub out: PathBuf,
    /// Of the files: postmortem-NAME.md and .html [default: the server and the day]
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub name: Option<String>,
    /// Call people by what they did, not by their names
    #[arg(long)]
    pub roles_only: bool,
    /// What people still owe a postmortem: open questions, action items without owner or date; 65 if there is any (for CI:
    /// --json, or -o github)
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["bundles", "journal", "budget", "threshold", "out", "name", "roles_only"]
    )]
    pub lint: Option<PathBuf>,
}

/// A part of a file's name.
fn name(text: &str) -> Result<String, String> {
    let is_sound = !text.is_empty()
        && text.len() <= 120
        && !text.contains('/')
        && !text.chars().any(char::is_control);
    match is_sound {
        true => Ok(text.to_owned()),
        false => Err("a name without a slash".into()),
    }
}
