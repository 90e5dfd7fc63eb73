//! Where a snapshot comes from: a connection, again and again, or a file.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;

use super::{duration, limit, ports, wait};
use crate::cli::complete;
use crate::model::Target;
use crate::source::saved::When;

#[derive(Debug, ClapArgs)]
pub struct RepeatArgs {
    /// Repeat over the same connection until interrupted
    #[arg(long, value_name = "TIME", value_parser = wait, conflicts_with_all = ["from", "check"])]
    pub every: Option<Duration>,
    #[command(flatten)]
    pub snapshot: SnapshotArgs,
}

#[derive(Debug, ClapArgs)]
pub struct SnapshotArgs {
    /// Judge it for monitoring: exit code 0, 1, 2 or 3 as Nagios has them, and one line instead of the table
    #[arg(long, help_heading = "Output")]
    pub check: bool,
    #[command(flatten)]
    pub frame: FrameArgs,
}

/// One round of reads: where it comes from, and where it is kept.
#[derive(Debug, ClapArgs)]
pub struct FrameArgs {
    /// Write the full snapshot of this round
    #[arg(long, value_name = "FILE", help_heading = "Snapshots")]
    pub save: Option<PathBuf>,
    /// Replay a saved snapshot, or a frame of a bundle; nothing is connected to
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Snapshots",
        conflicts_with_all = [
            "save", "host", "port", "username", "dbname", "connect_timeout", "wait_slot", "timeout", "deadline"
        ]
    )]
    pub from: Option<PathBuf>,
    #[command(flatten)]
    pub at: AtArgs,
    /// Show and save values in statements and names as they are: nothing but passwords is taken out
    #[arg(long, help_heading = "Snapshots", conflicts_with = "from")]
    pub unredacted: bool,
    #[command(flatten)]
    pub connect: ConnectArgs,
}

/// Which frame of a bundle.
#[derive(Clone, Debug, ClapArgs)]
pub struct AtArgs {
    /// The frame of a bundle that was taken by this time, such as 03:12:40 (UTC) or 2026-11-30T03:12:40Z; or first, last, worst, or its
    /// number [default: last]
    #[arg(long, value_name = "TIME", value_parser = when, requires = "from", help_heading = "Snapshots")]
    pub at: Option<When>,
}

#[derive(Debug, ClapArgs)]
pub struct ConnectArgs {
    /// Host name, address, or directory of the socket; several with commas [env: PGHOST]
    #[arg(short = 'h', long, value_name = "HOST", help_heading = "Connection")]
    pub host: Option<String>,
    /// Port, one for all hosts or one for each [env: PGPORT]
    #[arg(short = 'p', long, value_name = "PORT", value_parser = ports, help_heading = "Connection")]
    pub port: Option<String>,
    /// Login [env: PGUSER]
    #[arg(short = 'U', long, value_name = "NAME", help_heading = "Connection")]
    pub username: Option<String>,
    /// A URL, a string such as "service=prod sslmode=require", a target of stanch.yaml, or a database name [env:
    /// PGSERVICE, PGDATABASE, DATABASE_URL]
    #[arg(
        short = 'd',
        long,
        visible_alias = "db",
        value_name = "DB",
        add = complete::targets(),
        help_heading = "Connection"
    )]
    pub dbname: Option<String>,
    /// Never ask for a password, also at a terminal
    #[arg(short = 'w', long, help_heading = "Connection")]
    pub no_password: bool,
    /// Deadline of each host, over name lookup, connection, TLS, login and first answer [default: 10s] [env:
    /// PGCONNECT_TIMEOUT]
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Connection")]
    pub connect_timeout: Option<Duration>,
    /// When every slot is taken: how long to keep knocking
    #[arg(long, value_name = "TIME", value_parser = wait, default_value = "10s", help_heading = "Connection")]
    pub wait_slot: Duration,
    /// statement_timeout of each read
    #[arg(long, value_name = "TIME", value_parser = limit, default_value = "5s", help_heading = "Connection")]
    pub timeout: Duration,
    /// Deadline of a whole round of reads
    #[arg(long, value_name = "TIME", value_parser = limit, default_value = "15s", help_heading = "Connection")]
    pub deadline: Duration,
}

impl ConnectArgs {
    /// As a person would give a target again.
    pub fn to(target: &Target) -> Self {
        let place = target.name.is_none();
        Self {
            host: place.then(|| target.host.clone()),
            port: place.then(|| target.port.to_string()),
            username: place.then(|| target.user.clone()),
            dbname: target
                .name
                .clone()
                .or_else(|| Some(target.database.clone())),
            no_password: true,
            connect_timeout: None,
            wait_slot: Duration::ZERO,
            timeout: Duration::from_secs(5),
            deadline: Duration::from_secs(15),
        }
    }
}

/// `--at`
///
/// # Errors
/// What would be understood.
pub fn when(text: &str) -> Result<When, String> {
    match text {
        "last" => return Ok(When::Last),
        "first" => return Ok(When::First),
        "worst" => return Ok(When::Worst),
        _ => {}
    }
    if let Ok(number) = text.parse() {
        return Ok(When::Number(number));
    }
    // What is said in whole seconds (or minutes) means all of that second: so it was shown.
    let until_end = |seconds: i64| match text.contains('.') {
        true => chrono::TimeDelta::zero(),
        false => chrono::TimeDelta::seconds(seconds) - chrono::TimeDelta::microseconds(1),
    };
    if let Ok(at) = chrono::DateTime::parse_from_rfc3339(text) {
        return Ok(When::At(at.to_utc() + until_end(1)));
    }
    let bare = text.trim_end_matches(" UTC");
    for format in ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f"] {
        if let Ok(at) = chrono::NaiveDateTime::parse_from_str(bare, format) {
            return Ok(When::At(at.and_utc() + until_end(1)));
        }
    }
    for (format, seconds) in [("%H:%M:%S%.f", 1), ("%H:%M", 60)] {
        if let Ok(time) = chrono::NaiveTime::parse_from_str(bare, format) {
            return Ok(When::Clock(time + until_end(seconds)));
        }
    }
    Err(
        "a time such as 03:12:40 or 2026-11-30T03:12:40Z (UTC), first, last, worst, or a number"
            .into(),
    )
}
