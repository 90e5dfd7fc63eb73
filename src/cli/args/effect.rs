//! The arguments of the commands that may change a server: guarded actions and runbooks.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};

use super::{AtArgs, ConnectArgs, at_least_one, duration, limit, wait};
use crate::cli::complete;
use crate::operate::Until;

#[derive(Debug, ClapArgs)]
pub struct ActArgs {
    /// Sessions by pid, as stanch pg activity shows them now
    #[arg(value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pub pids: Vec<i32>,
    /// Sessions that are idle in transaction (needs --longer-than)
    #[arg(long)]
    pub idle_in_transaction: bool,
    /// The roots of the blocking forest
    #[arg(long)]
    pub roots: bool,
    /// Of these, only those in their state for so long
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub longer_than: Option<Duration>,
    /// Of these, only sessions of this user
    #[arg(long, value_name = "NAME")]
    pub user: Vec<String>,
    /// Of these, only sessions of this application_name
    #[arg(long, value_name = "NAME")]
    pub app: Vec<String>,
    /// More sessions than this are refused as a whole
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub max: usize,
    /// So many at a time
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = at_least_one)]
    pub batch: usize,
    /// Between two batches
    #[arg(long, value_name = "TIME", value_parser = wait, default_value = "2s")]
    pub pause: Duration,
    /// Stop after a batch once this holds, such as 'used_pct < 70'
    #[arg(long, value_name = "CONDITION", value_parser = Until::parse)]
    pub until: Option<Until>,
    /// How long the end of each is awaited
    #[arg(long, value_name = "TIME", value_parser = limit, default_value = "5s")]
    pub wait: Duration,
    #[command(flatten)]
    pub allow: AllowArgs,
    /// Although a run holds this server: it is your own, and waits at a question
    #[arg(long)]
    pub beside_run: bool,
    /// Don't ask (needs a target of stanch.yaml or an explicit host); without a terminal and without this nothing is done
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub connect: ConnectArgs,
}

/// What is left alone unless it is named.
#[derive(Debug, ClapArgs)]
pub struct AllowArgs {
    /// Superusers' sessions too
    #[arg(long)]
    pub allow_superuser: bool,
    /// Also sessions that wait for a synchronous standby: their commit stands, unreplicated
    #[arg(long)]
    pub allow_syncrep: bool,
    /// Sessions in other databases of the server too
    #[arg(long)]
    pub all_databases: bool,
}

#[derive(Debug, ClapArgs)]
pub struct RollbackArgs {
    /// As stanch pg transactions shows it
    pub gid: String,
    /// A superuser's too
    #[arg(long)]
    pub allow_superuser: bool,
    /// Although a run holds this server: it is your own, and waits at a question
    #[arg(long)]
    pub beside_run: bool,
    /// Don't ask (needs a target of stanch.yaml or an explicit host)
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub connect: ConnectArgs,
}

#[derive(Debug, Subcommand)]
pub enum RunbookCommand {
    /// The runbooks that there are: ./runbooks, ~/.config/stanch/runbooks, built in
    List,
    /// The text of one
    Show {
        /// An id of `runbook list`
        #[arg(add = complete::runbooks())]
        name: String,
    },
    /// Prove that books end, know every name, and do nothing without a yes and evidence; without files, the built-in ones
    Lint {
        /// Files or folders
        files: Vec<PathBuf>,
    },
    /// Walk books on the cases written beside them (BOOK.test.yaml), and list the ways that no case takes
    Test {
        /// Files or folders; without any, the built-in books
        files: Vec<PathBuf>,
        /// A way that no case takes is a fault too
        #[arg(long)]
        strict: bool,
    },
    /// One as Markdown, with a table of decisions and a flow chart, for the wiki
    Render {
        /// An id of `runbook list`
        #[arg(add = complete::runbooks(), required_unless_present = "file", conflicts_with = "file")]
        name: Option<String>,
        /// A book from this file
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Walk one: look, decide, act, look again
    Run(Box<RunbookRun>),
    /// Go on with a run that was interrupted: what was done isn't done again, what isn't known is asked about
    Resume(Box<RunbookResume>),
    /// The runs that there were, and how each stands
    Runs,
    /// Look on while somebody else walks one, or at how it was: changes nothing
    Follow {
        /// A name of `runbook runs`, or its file; without it the one that goes on now, else the last
        run: Option<String>,
    },
}

/// What a walk is given, whether it begins or goes on.
#[derive(Debug, ClapArgs)]
pub struct WalkArgs {
    /// Answers confirmations, never a question (needs a target of stanch.yaml or an explicit host)
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub allow: AllowArgs,
    /// How long the end of each session is awaited
    #[arg(long, value_name = "TIME", value_parser = limit, default_value = "5s")]
    pub wait: Duration,
    /// The Redis that the book looks at [env: REDIS_URL; or the target's in stanch.yaml]
    #[arg(long, value_name = "URL", help_heading = "Connection")]
    pub redis: Option<String>,
    #[command(flatten)]
    pub connect: ConnectArgs,
}

#[derive(Debug, ClapArgs)]
pub struct RunbookResume {
    /// A name of `runbook runs`, or its file; without it the last that was interrupted
    pub run: Option<String>,
    /// Where the book has changed since: go on with the one that the run began with
    #[arg(long, conflicts_with = "accept_changed")]
    pub as_begun: bool,
    /// Where the book has changed since: go on with the new one, if what was done is the same in it
    #[arg(long)]
    pub accept_changed: bool,
    /// An input that the journal doesn't show, because it looks like a secret: the same as when the run began
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// The book is in this file by now
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub walk: WalkArgs,
}

#[derive(Debug, ClapArgs)]
pub struct RunbookRun {
    /// An id of `runbook list`
    #[arg(add = complete::runbooks(), required_unless_present = "file", conflicts_with = "file")]
    pub name: Option<String>,
    /// A book from this file
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// An input of the book
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Every read is real, effects are shown and not done
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
    /// Walk it on a saved snapshot or a frame of a bundle: nothing is asked of a server, nothing is done
    #[arg(long, value_name = "FILE", conflicts_with_all = ["yes", "dry_run"])]
    pub from: Option<PathBuf>,
    #[command(flatten)]
    pub at: AtArgs,
    #[command(flatten)]
    pub walk: WalkArgs,
}
