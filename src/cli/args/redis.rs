//! `redis` and its options.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};

use super::{AtArgs, ConnectArgs, at_least_one, limit};
use crate::cli::complete;

#[derive(Debug, Subcommand)]
pub enum RedisCommand {
    /// The server in numbers, its hit ratio over a clean interval, and what this login may do
    Info(RedisInfoArgs),
    /// Which keys are hot, by the best way that this server and login allow
    Hotkeys(HotkeysArgs),
    /// How each hot group is guarded against everybody rebuilding it at once, and what PostgreSQL makes of it
    Stampede(Box<StampedeArgs>),
    /// Queues of Sidekiq, Resque, Celery, BullMQ, RQ and streams, found by themselves, in one table
    Queues(QueuesArgs),
    /// Put back what --enable-keymiss had changed when it was killed
    Restore(RedisOnly),
    /// The largest keys by bytes and by elements, without making them hotter
    Bigkeys(BigkeysArgs),
    /// When the keys of each group expire: cliffs, their forecast, and the jitter that would flatten them
    Expiry(ExpiryArgs),
}

/// Which Redis, and how to get in.
#[derive(Clone, Debug, ClapArgs)]
pub struct RedisArgs {
    /// redis://, rediss://, unix://, redis-cluster:// or redis-sentinel:// URL; without one, the target's in stanch.yaml, else that of
    /// the environment [env: REDIS_URL, REDISCLI_AUTH]
    #[arg(
        long,
        value_name = "URL",
        num_args = 0..=1,
        default_missing_value = "",
        help_heading = "Redis"
    )]
    pub redis: Option<String>,
    /// Another database than the URL's
    #[arg(long, value_name = "N", help_heading = "Redis")]
    pub redis_db: Option<u32>,
    /// Certificates that are trusted, PEM
    #[arg(long, value_name = "FILE", help_heading = "Redis")]
    pub cacert: Option<PathBuf>,
    /// Our certificate, PEM
    #[arg(long, value_name = "FILE", requires = "key", help_heading = "Redis")]
    pub cert: Option<PathBuf>,
    /// Our private key, PEM
    #[arg(long, value_name = "FILE", requires = "cert", help_heading = "Redis")]
    pub key: Option<PathBuf>,
    /// Don't check the server's certificate
    #[arg(long, help_heading = "Redis")]
    pub insecure: bool,
}

impl RedisArgs {
    /// A command that can do without is to look at it.
    pub fn is_asked(&self) -> bool {
        self.redis.is_some() || self.redis_db.is_some() || self.cacert.is_some() || self.insecure
    }
}

/// The Redis of a command that looks at nothing else.
#[derive(Clone, Debug, ClapArgs)]
pub struct RedisOnly {
    /// A target of stanch.yaml: its Redis
    #[arg(
        short = 'd',
        long,
        visible_alias = "db",
        value_name = "TARGET",
        add = complete::targets(),
        help_heading = "Redis"
    )]
    pub dbname: Option<String>,
    #[command(flatten)]
    pub redis: RedisArgs,
    /// Deadline of the way in, over name lookup, connection, TLS and login
    #[arg(long, value_name = "TIME", value_parser = limit, default_value = "10s", help_heading = "Redis")]
    pub connect_timeout: Duration,
    /// Deadline of each answer
    #[arg(long, value_name = "TIME", value_parser = limit, default_value = "10s", help_heading = "Redis")]
    pub timeout: Duration,
}

/// As it was instead of as it is, and kept for then.
#[derive(Clone, Debug, ClapArgs)]
pub struct KeepArgs {
    /// Write the report, to be shown again
    #[arg(long, value_name = "FILE", help_heading = "Snapshots")]
    pub save: Option<PathBuf>,
    /// Show a saved report, or that of a bundle; nothing is connected to
    #[arg(long, value_name = "FILE", help_heading = "Snapshots", conflicts_with_all = ["save", "redis", "redis_db", "dbname"])]
    pub from: Option<PathBuf>,
    #[command(flatten)]
    pub at: AtArgs,
    /// Show and save names of keys and jobs as they are, also those that look secret
    #[arg(long, help_heading = "Snapshots", conflicts_with = "from")]
    pub unredacted: bool,
}

/// A walk over all keys.
#[derive(Clone, Debug, ClapArgs)]
pub struct WalkArgs {
    /// Only keys that this pattern matches, as SCAN's MATCH has it
    #[arg(
        long = "match",
        value_name = "PATTERN",
        conflicts_with = "from",
        help_heading = "Walk"
    )]
    pub pattern: Option<OsString>,
    /// Stop after so long; takes at most a quarter of the server's time, and ends when its PING slows down
    #[arg(long, value_name = "TIME", value_parser = limit, default_value = "60s", conflicts_with = "from", help_heading = "Walk")]
    pub budget: Duration,
    /// To the end and as fast as it goes
    #[arg(long, conflicts_with_all = ["budget", "from"], help_heading = "Walk")]
    pub full: bool,
}

#[derive(Debug, ClapArgs)]
pub struct RedisInfoArgs {
    /// Between the two looks that rates are of
    #[arg(long, value_name = "TIME", value_parser = limit, default_value = "2s")]
    pub sample: Duration,
    #[command(flatten)]
    pub keep: KeepArgs,
    #[command(flatten)]
    pub place: RedisOnly,
}

#[derive(Debug, ClapArgs)]
pub struct QueuesArgs {
    /// Look twice, so far apart: what comes, what goes, and when it is empty
    #[arg(long, value_name = "TIME", value_parser = limit)]
    pub sample: Option<Duration>,
    /// Only the usual places of the libraries: no walk over the keys, no streams
    #[arg(long, conflicts_with = "from")]
    pub quick: bool,
    /// Look also at servers before CLIENT NO-TOUCH (Redis 7.2) that evict by LFU or LRU, where it makes the queues' keys hotter
    #[arg(long)]
    pub touch: bool,
    /// Judge it for monitoring: exit code 1 or 2 by the worst queue
    #[arg(long, help_heading = "Output")]
    pub check: bool,
    /// Stop looking for queues after so long; takes at most a quarter of the server's time
    #[arg(long, value_name = "TIME", value_parser = limit, default_value = "60s", conflicts_with = "from", help_heading = "Walk")]
    pub budget: Duration,
    /// To the end and as fast as it goes
    #[arg(long, conflicts_with_all = ["budget", "from"], help_heading = "Walk")]
    pub full: bool,
    #[command(flatten)]
    pub keep: KeepArgs,
    #[command(flatten)]
    pub place: RedisOnly,
}

#[derive(Debug, ClapArgs)]
pub struct StampedeArgs {
    /// So many groups, and all that are badly guarded
    #[arg(long, value_name = "N", value_parser = at_least_one, default_value_t = 20)]
    pub top: usize,
    /// How long a rebuild takes: a lock must live longer
    #[arg(long, value_name = "TIME", value_parser = limit)]
    pub rebuild: Option<Duration>,
    /// Read one small value of each hot group: does it carry an expiry of its own, before the key's?
    #[arg(long)]
    pub peek: bool,
    /// A field of such values that holds that expiry, beside the usual names (may be given several times)
    #[arg(long, value_name = "NAME", requires = "peek")]
    pub soft_field: Vec<String>,
    /// Listen to misses of single keys for so long, where the server tells them (keyspace event m)
    #[arg(long, value_name = "TIME", value_parser = limit, default_value = "10s")]
    pub listen: Duration,
    /// Have the server tell them, and writes (how long rebuilds take), to all who listen to keyevents, while we listen (notify-keyspace-events), and put the setting back afterwards
    #[arg(long)]
    pub enable_keymiss: bool,
    /// Judge it for monitoring: exit code 1 or 2 by the worst guard
    #[arg(long, help_heading = "Output")]
    pub check: bool,
    #[command(flatten)]
    pub walk: WalkArgs,
    #[command(flatten)]
    pub keep: KeepArgs,
    #[command(flatten)]
    pub redis: RedisArgs,
    #[command(flatten)]
    pub connect: ConnectArgs,
}

#[derive(Debug, ClapArgs)]
pub struct BigkeysArgs {
    /// So many keys, and so many of each type by elements (the table has the first three of each type, --json all)
    #[arg(long, value_name = "N", value_parser = at_least_one, default_value_t = 20)]
    pub top: usize,
    /// Count elements also on servers before CLIENT NO-TOUCH (Redis 7.2), where that moves LFU counters and idle times
    #[arg(long)]
    pub touch: bool,
    #[command(flatten)]
    pub walk: WalkArgs,
    #[command(flatten)]
    pub keep: KeepArgs,
    #[command(flatten)]
    pub place: RedisOnly,
}

#[derive(Debug, ClapArgs)]
pub struct ExpiryArgs {
    /// Judge it for monitoring: exit code 1 for a cliff, 2 for one of 1,000 keys or more within five minutes
    #[arg(long, help_heading = "Output")]
    pub check: bool,
    #[command(flatten)]
    pub walk: WalkArgs,
    #[command(flatten)]
    pub keep: KeepArgs,
    #[command(flatten)]
    pub place: RedisOnly,
}

#[derive(Debug, ClapArgs)]
pub struct HotkeysArgs {
    /// So many keys
    #[arg(long, value_name = "N", value_parser = at_least_one, default_value_t = 20)]
    pub top: usize,
    /// Read TTL and size of every key, not only of the hottest: sums by group
    #[arg(long)]
    pub attributes: bool,
    /// Have the server count (HOTKEYS: Redis 8.6, Valkey 9.2) for a while, and put everything back
    #[arg(long, conflicts_with = "monitor")]
    pub server_hotkeys: bool,
    /// Have it count for so long
    #[arg(long, value_name = "TIME", requires = "server_hotkeys", value_parser = listening, default_value = "10s")]
    pub server_for: Duration,
    /// Listen to the commands that go by (MONITOR) instead: bounded in lines and time, keys only, values never kept
    #[arg(long)]
    pub monitor: bool,
    /// Listen to so many commands at most
    #[arg(long, value_name = "N", requires = "monitor", value_parser = clap::value_parser!(u32).range(1..=1_000_000), default_value_t = 20_000)]
    pub monitor_lines: u32,
    /// Listen for so long at most
    #[arg(long, value_name = "TIME", requires = "monitor", value_parser = listening, default_value = "10s")]
    pub monitor_for: Duration,
    #[command(flatten)]
    pub walk: WalkArgs,
    #[command(flatten)]
    pub keep: KeepArgs,
    #[command(flatten)]
    pub place: RedisOnly,
}

/// MONITOR costs the server: a minute is the most.
fn listening(text: &str) -> Result<Duration, String> {
    limit(text).and_then(|time| match time <= Duration::from_secs(60) {
        true => Ok(time),
        false => Err("a minute at most".into()),
    })
}
