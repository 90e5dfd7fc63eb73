//! The command line as clap reads it: raw values, no side effects.

pub mod budget;
pub mod bundle;
pub mod effect;
pub mod logs;
pub mod redis;
pub mod report;
pub mod snapshot;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args as ClapArgs, CommandFactory as _, Parser, Subcommand, ValueEnum};

use self::budget::BudgetCommand;
use self::bundle::{BundleCommand, CaptureArgs};
use self::effect::{ActArgs, RollbackArgs, RunbookCommand};
use self::logs::DeadlockArgs;
use self::redis::{RedisArgs, RedisCommand};
use self::report::ReportArgs;
pub use self::snapshot::{AtArgs, ConnectArgs, FrameArgs, RepeatArgs, SnapshotArgs, when};
use super::complete;
use crate::drill::{CacheIncident, Incident};
use crate::model::{ExitCode, SessionState};
use crate::source::postgres::catalog;
use crate::view::Format;

const AFTER_HELP: &str = "\
Exit codes: 0 ok, 1 warning, 2 critical, 3 could not tell, 4 needs a human, 5 stopped by you, 6 escalated, 64 wrong usage, 65 wrong
input file.
Targets and thresholds: stanch.yaml in the working directory, else in ~/.config/stanch/.";

/// For the person on call when PostgreSQL fails in production.
#[derive(Debug, Parser)]
#[command(
    name = "stanch",
    version,
    about,
    max_term_width = 100,
    disable_help_flag = true,
    after_help = AFTER_HELP
)]
pub struct Args {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Debug, ClapArgs)]
pub struct OutputArgs {
    /// How results are written
    #[arg(
        short = 'o',
        long,
        global = true,
        value_enum,
        default_value = "table",
        value_name = "FORMAT",
        help_heading = "Output"
    )]
    pub format: FormatArg,
    /// Short for --format json
    #[arg(
        long,
        global = true,
        conflicts_with = "format",
        help_heading = "Output"
    )]
    pub json: bool,
    /// With -o csv or md: which list of a report that has several (csv gives the first, md all)
    #[arg(long, global = true, value_name = "NAME", help_heading = "Output")]
    pub list: Option<String>,
    /// Colour: only ever beside the words
    #[arg(
        long,
        global = true,
        value_enum,
        default_value = "auto",
        value_name = "WHEN",
        help_heading = "Output"
    )]
    pub color: ColorChoice,
    /// Say nothing but results and errors
    #[arg(short, long, global = true, help_heading = "Output")]
    pub quiet: bool,
    /// Say more
    #[arg(short, long, global = true, help_heading = "Output")]
    pub verbose: bool,
    /// Show help (a last -h, or one followed by an option, does too)
    #[arg(short = '?', long = "help", global = true, action = ArgAction::Help, help_heading = "Output")]
    help: Option<bool>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum FormatArg {
    Table,
    Json,
    /// One list as CSV (RFC 4180)
    Csv,
    /// Markdown
    Md,
    /// Numbers for the node exporter's textfile collector
    Prometheus,
    /// SARIF 2.1.0, of the budget
    Sarif,
    /// JUnit, of the budget
    Junit,
    /// Annotations of GitHub, of the budget
    Github,
}

impl From<FormatArg> for Format {
    fn from(format: FormatArg) -> Self {
        match format {
            FormatArg::Table => Self::Table,
            FormatArg::Json => Self::Json,
            FormatArg::Csv => Self::Csv,
            FormatArg::Md => Self::Markdown,
            FormatArg::Prometheus => Self::Prometheus,
            FormatArg::Sarif => Self::Sarif,
            FormatArg::Junit => Self::Junit,
            FormatArg::Github => Self::Github,
        }
    }
}

/// The shells whose completions ask the program.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
    Powershell,
    Elvish,
}

impl Shell {
    pub fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Zsh => "zsh",
            Self::Fish => "fish",
            Self::Powershell => "powershell",
            Self::Elvish => "elvish",
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ColorChoice {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Everything at once: findings ranked by severity, evidence, the next command to type
    Triage(TriageArgs),
    /// One view of the server: activity, blockers, locks, transactions, connections, settings, horizon
    #[command(subcommand)]
    Pg(PgCommand),
    /// The Redis in front: hot and big keys, expiry cliffs, stampedes, queues
    #[command(subcommand)]
    Redis(RedisCommand),
    /// What a finding id means, its causes and remedies; without an id, all of them
    Explain {
        /// Such as conn.exhausted
        #[arg(add = complete::findings())]
        id: Option<String>,
    },
    /// The built-in diagnostic SQL
    #[command(subcommand)]
    Query(QueryCommand),
    /// Can I connect, what may I see and do, what is missing and the GRANT that gives it
    Doctor(SnapshotArgs),
    /// Runbooks, walked step by step
    #[command(subcommand)]
    Runbook(RunbookCommand),
    /// Does everything that can connect fit into what the server has?
    #[command(subcommand)]
    Budget(BudgetCommand),
    /// The evidence, kept: snapshots into one file, redacted
    Capture(CaptureArgs),
    /// What a capture left: verify, show, diff, seal
    #[command(subcommand)]
    Bundle(BundleCommand),
    /// The postmortem of what was captured and done: Markdown, and one HTML file; what people write in it is kept
    Report(ReportArgs),
    /// A throwaway server with a real incident on it, to practise on
    Drill(DrillArgs),
    /// What a shell reads to complete commands, options, and names of queries and targets
    Completions {
        /// The shell that is to complete
        shell: Shell,
    },
    /// A manual page (of stanch, or of the command that is named), or all of them into a folder
    Man {
        /// Such as: pg blockers
        command: Vec<String>,
        /// Write every page into this folder
        #[arg(long, value_name = "FOLDER", conflicts_with = "command")]
        dir: Option<PathBuf>,
    },
}

impl Command {
    /// It is a report of one list or several.
    pub fn has_lists(&self) -> bool {
        matches!(
            self,
            Self::Triage(_) | Self::Pg(_) | Self::Redis(_) | Self::Doctor(_)
        )
    }

    /// It has numbers for Prometheus.
    pub fn is_measured(&self) -> bool {
        matches!(
            self,
            Self::Triage(_)
                | Self::Redis(RedisCommand::Info(_) | RedisCommand::Queues(_))
                | Self::Pg(
                    PgCommand::Blockers(_)
                        | PgCommand::Transactions { .. }
                        | PgCommand::Connections(_)
                )
        )
    }
}

#[derive(Debug, Subcommand)]
pub enum PgCommand {
    /// Who is connected and what runs, oldest transaction first
    Activity(ActivityArgs),
    /// Who blocks whom, and what to do about each root
    Blockers(RepeatArgs),
    /// Who holds and awaits what, by object and mode
    Locks {
        /// Only what somebody waits for
        #[arg(long)]
        waiting: bool,
        #[command(flatten)]
        from: SnapshotArgs,
    },
    /// Open transactions, oldest first, with the xid and xmin they hold
    Transactions {
        /// Only those at least so old
        #[arg(long, value_name = "TIME", value_parser = duration)]
        longer_than: Option<Duration>,
        #[command(flatten)]
        from: SnapshotArgs,
    },
    /// Every connection slot accounted for
    Connections(RepeatArgs),
    /// The settings that incidents turn on, with verdict and reason
    Settings(SnapshotArgs),
    /// Everything that holds the xmin horizon, oldest first
    Horizon(SnapshotArgs),
    /// Deadlock circles, their lock order and the longest lock waits, out of the server's logs
    Deadlocks(Box<DeadlockArgs>),
    /// End statements: guarded, asked about, and kept in a journal
    Cancel {
        /// Terminate what is still there after so long
        #[arg(long, value_name = "TIME", value_parser = limit)]
        grace: Option<Duration>,
        #[command(flatten)]
        act: ActArgs,
    },
    /// End sessions: guarded, asked about, and kept in a journal
    Terminate(ActArgs),
    /// Roll back a prepared transaction, in its own database
    RollbackPrepared(RollbackArgs),
}

#[derive(Debug, Subcommand)]
pub enum QueryCommand {
    /// The queries by name
    List,
    /// The text of one, as it can be pasted into psql
    Show {
        /// A name of `query list`
        #[arg(value_parser = query_names())]
        name: String,
        /// For a server of this major version
        #[arg(long, value_name = "MAJOR", default_value_t = 18)]
        server: u32,
    },
    /// Run one and show its rows; with --save those of the whole round, which asks for the relations and waiters that it needs
    Run(Box<QueryArgs>),
}

#[derive(Debug, ClapArgs)]
pub struct QueryArgs {
    /// A name of `query list`
    #[arg(value_parser = query_names())]
    pub name: String,
    #[command(flatten)]
    pub frame: FrameArgs,
}

#[derive(Debug, ClapArgs)]
pub struct TriageArgs {
    /// Judge by another limit than stanch.yaml's or the default, such as transaction_age=5s (may be given several times)
    #[arg(long, value_name = "NAME=VALUE", add = complete::thresholds())]
    pub threshold: Vec<String>,
    #[command(flatten)]
    pub redis: RedisArgs,
    #[command(flatten)]
    pub repeat: RepeatArgs,
}

#[derive(Debug, ClapArgs)]
pub struct ActivityArgs {
    /// Only sessions in this state (may be given several times): active, idle, idle-in-transaction, …
    #[arg(long, value_name = "STATE", value_parser = state, add = complete::states())]
    pub state: Vec<SessionState>,
    /// Only sessions of this user
    #[arg(long, value_name = "NAME")]
    pub user: Vec<String>,
    /// Only sessions of this application_name
    #[arg(long, value_name = "NAME")]
    pub app: Vec<String>,
    /// Only sessions in this database (to connect to one: -d)
    #[arg(long, value_name = "NAME")]
    pub database: Vec<String>,
    /// Only sessions that long in their transaction, or else in their state
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub longer_than: Option<Duration>,
    /// Background processes too
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub repeat: RepeatArgs,
}

#[derive(Debug, ClapArgs)]
pub struct DrillArgs {
    /// The incident; without one, all of them are listed
    pub incident: Option<IncidentArg>,
    /// Hold so long instead of until Ctrl-C
    #[arg(long = "for", value_name = "TIME", value_parser = wait)]
    pub hold: Option<Duration>,
    /// Show the triage and end at once
    #[arg(long, conflicts_with = "hold")]
    pub once: bool,
}

/// An incident by its name.
#[derive(Clone, Copy, Debug)]
pub enum IncidentArg {
    Database(Incident),
    Cache(CacheIncident),
}

impl ValueEnum for IncidentArg {
    fn value_variants<'a>() -> &'a [Self] {
        const DATABASES: usize = Incident::ALL.len();
        const ALL: [IncidentArg; DATABASES + CacheIncident::ALL.len()] = {
            let mut all =
                [IncidentArg::Database(Incident::Exhaustion); DATABASES + CacheIncident::ALL.len()];
            let mut i = 0;
            while i < all.len() {
                all[i] = if i < DATABASES {
                    IncidentArg::Database(Incident::ALL[i])
                } else {
                    IncidentArg::Cache(CacheIncident::ALL[i - DATABASES])
                };
                i += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        let (name, summary) = match self {
            Self::Database(incident) => (incident.name(), incident.summary()),
            Self::Cache(incident) => (incident.name(), incident.summary()),
        };
        Some(clap::builder::PossibleValue::new(name).help(summary))
    }
}

/// The whole command line, for help and completions.
pub fn command() -> clap::Command {
    Args::command()
}

/// clap's own errors and its help.
pub fn usage(error: &clap::Error) -> ExitCode {
    // Help goes to standard output, faults to standard error; nobody is left to tell if that fails.
    let text = error.render().to_string();
    let masked = without_passwords(&text);
    let _ = if masked == text {
        error.print()
    } else {
        // An argument is repeated there, and this one is a URL.
        std::io::stderr().write_all(masked.as_bytes())
    };
    if error.use_stderr() {
        ExitCode::Usage
    } else {
        ExitCode::Ok
    }
}

/// `scheme://user:password@host` without its password.
fn without_passwords(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let end = after
            .find(|c: char| c.is_whitespace() || c == '\'')
            .unwrap_or(after.len());
        let (url, next) = after.split_at(end);
        match url.rsplit_once('@') {
            Some((login, place)) if login.contains(':') => {
                let user = login.split(':').next().unwrap_or_default();
                out.push_str(&format!("{user}:…@{place}"));
            }
            _ => out.push_str(url),
        }
        rest = next;
    }
    out.push_str(rest);
    out
}

/// `-h` is the host, as in psql; one that has no value to take is a wish for help.
pub fn host_or_help(argv: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut argv: Vec<OsString> = argv.collect();
    for i in 1..argv.len() {
        // Before the subcommand there is no host to give.
        let has_value = i > 1
            && argv
                .get(i + 1)
                .is_some_and(|next| !next.to_string_lossy().starts_with('-'));
        if argv[i] == "-h" && !has_value {
            argv[i] = "--help".into();
        }
    }
    argv
}

fn ports(text: &str) -> Result<String, String> {
    let port = |part: &str| part.parse::<u16>().is_ok_and(|port| port > 0);
    if text.split(',').all(|part| part.is_empty() || port(part)) {
        Ok(text.to_owned())
    } else {
        Err("1 to 65535".into())
    }
}

pub(super) fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| "1 or more".into())
}

/// Any time that a clock can be moved by.
pub(super) fn wait(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    if time.is_zero() {
        Ok(time)
    } else {
        limit(text)
    }
}

fn query_names() -> clap::builder::PossibleValuesParser {
    catalog::all().map(|topic| topic.name).into()
}

/// `500ms`, `30s`, `5m`; a bare number is seconds, as in libpq.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse() {
        return Ok(Duration::from_secs(seconds));
    }
    humantime::parse_duration(text).map_err(|_| "a time such as 500ms, 30s, 5m or 1h".into())
}

/// A limit that the server or the clock keeps in whole milliseconds, of which 0 would mean none.
pub(super) fn limit(text: &str) -> Result<Duration, String> {
    const MOST: Duration = Duration::from_millis(i32::MAX as u64);
    let time = duration(text)?;
    if (Duration::from_millis(1)..=MOST).contains(&time) {
        Ok(time)
    } else {
        Err("between 1ms and 24 days".into())
    }
}

fn state(text: &str) -> Result<SessionState, String> {
    let words = text.replace(['-', '_'], " ");
    match SessionState::parse(&words) {
        SessionState::Other(_) if words == "idle in transaction aborted" => {
            Ok(SessionState::IdleInTransactionAborted)
        }
        SessionState::Other(_) => Err(
            "one of active, idle, idle-in-transaction, idle-in-transaction-aborted, \
             fastpath-function-call, disabled, starting"
                .into(),
        ),
        state => Ok(state),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(line: &str) -> String {
        let argv = host_or_help(line.split(' ').map(OsString::from));
        argv.iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn a_host_or_a_wish_for_help() {
        assert_eq!(
            rewritten("stanch triage -h db1 -p 5432"),
            "stanch triage -h db1 -p 5432"
        );
        assert_eq!(rewritten("stanch triage -h"), "stanch triage --help");
        assert_eq!(
            rewritten("stanch pg activity -h --json"),
            "stanch pg activity --help --json"
        );
        assert_eq!(rewritten("stanch -h"), "stanch --help");
        assert_eq!(rewritten("stanch -h triage"), "stanch --help triage");
    }

    #[test]
    fn the_definition_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn a_repeated_url_has_no_password() {
        assert_eq!(
            without_passwords("unexpected 'postgresql://u:hunter2@h/d' and x://y"),
            "unexpected 'postgresql://u:…@h/d' and x://y"
        );
    }

    #[test]
    fn states_with_blanks_or_hyphens() {
        assert_eq!(
            state("idle-in-transaction"),
            Ok(SessionState::IdleInTransaction)
        );
        assert_eq!(
            state("idle in transaction (aborted)"),
            Ok(SessionState::IdleInTransactionAborted)
        );
        assert_eq!(
            state("idle_in_transaction"),
            Ok(SessionState::IdleInTransaction)
        );
        assert!(state("sleeping").is_err());
    }
}
