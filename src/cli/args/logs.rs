//! `pg deadlocks` and its options.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, ValueEnum, ValueHint};

use super::{AtArgs, ConnectArgs, limit};
use crate::model::LogFormat;

#[derive(Debug, ClapArgs)]
pub struct DeadlockArgs {
    /// Logs of the server, plain or packed (gzip, zstd), `-` for standard input. Without one: the counters and settings of
    /// a server, by two looks
    #[arg(id = "log", value_name = "LOG", value_hint = ValueHint::FilePath)]
    pub logs: Vec<PathBuf>,
    #[command(flatten)]
    pub lines: LineArgs,
    /// Only from then on: 2026-12-01T02:30:00Z, 2026-12-01 02:30 (UTC), or 2h for the last two hours
    #[arg(long, value_name = "TIME", requires = "log", help_heading = "Log")]
    pub since: Option<String>,
    /// Only up to then
    #[arg(long, value_name = "TIME", requires = "log", help_heading = "Log")]
    pub until: Option<String>,
    /// Show texts in statements and keys
    #[arg(long, requires = "log", help_heading = "Log")]
    pub unredacted: bool,
    /// Exit code 1 where there are deadlocks
    #[arg(long, help_heading = "Output")]
    pub check: bool,
    /// Without a log: how far apart the two looks are
    #[arg(long = "for", value_name = "TIME", value_parser = limit, default_value = "10s", conflicts_with = "log")]
    pub window: Duration,
    /// Without a log: write both looks, as a bundle
    #[arg(long, value_name = "FILE", conflicts_with_all = ["log", "from"], help_heading = "Snapshots")]
    pub save: Option<PathBuf>,
    /// The counters and settings of a bundle instead, from its first frame to the last (or --at); nothing is connected to
    #[arg(long, value_name = "FILE", conflicts_with_all = ["log", "host", "port", "username", "dbname"], help_heading = "Snapshots")]
    pub from: Option<PathBuf>,
    #[command(flatten)]
    pub at: AtArgs,
    #[command(flatten)]
    pub connect: ConnectArgs,
}

/// How the lines of a `--log` or LOG are read, where they don't tell it.
#[derive(Debug, ClapArgs)]
pub struct LineArgs {
    /// The server's log_line_prefix, where it isn't told by the lines
    #[arg(long, value_name = "TEXT", requires = "log", help_heading = "Log")]
    pub prefix: Option<String>,
    /// The format, where it isn't told by the content
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        requires = "log",
        help_heading = "Log"
    )]
    pub log_format: Option<LogFormatArg>,
    /// Time zone of the log's times, such as +09:00, where its word is ambiguous or missing
    #[arg(
        long,
        value_name = "OFFSET",
        requires = "log",
        allow_hyphen_values = true,
        help_heading = "Log"
    )]
    pub log_timezone: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum LogFormatArg {
    Stderr,
    #[value(alias = "csvlog")]
    Csv,
    #[value(alias = "jsonlog")]
    Json,
}

impl From<LogFormatArg> for LogFormat {
    fn from(format: LogFormatArg) -> Self {
        match format {
            LogFormatArg::Stderr => Self::Stderr,
            LogFormatArg::Csv => Self::Csv,
            LogFormatArg::Json => Self::Json,
        }
    }
}
