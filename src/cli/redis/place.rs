//! Which Redis: options, `stanch.yaml` and environment → an open way in.

use std::path::PathBuf;

use crate::cli::args::redis::{RedisArgs, RedisOnly, WalkArgs};
use crate::cli::commands::Context;
use crate::cli::fault::Fault;
use crate::cli::settings;
use crate::cli::stop::Stops;
use crate::keys::Pattern;
use crate::source::postgres::Environment;
use crate::source::redis::{self, Budget, Fleet, Limits, RedisAddress, TlsFiles, Watch};
use crate::view::Progress;

/// The Redis in front of a server: as it was given, of the target in `stanch.yaml`, or of the environment.
///
/// # Errors
/// When what was given is no address, or a file can't be read.
pub fn address(
    args: &RedisArgs,
    target: Option<&str>,
    env: &Environment,
) -> Result<Option<RedisAddress>, Fault> {
    let given = args.redis.as_deref().filter(|url| !url.is_empty());
    let Some(mut address) = settings::redis(given, target, env)? else {
        return Ok(None);
    };
    if let Some(database) = args.redis_db {
        address = address.in_database(database);
    }
    let read = |file: &Option<PathBuf>| -> Result<Option<Vec<u8>>, Fault> {
        let Some(path) = file else { return Ok(None) };
        let bytes = std::fs::read(path);
        Ok(Some(bytes.map_err(|error| {
            Fault::Usage(format!("{}: {error}", path.display()))
        })?))
    };
    let tls = TlsFiles {
        ca: read(&args.cacert)?,
        client: read(&args.cert)?.zip(read(&args.key)?),
        insecure: args.insecure,
    };
    Ok(Some(address.with_tls(tls)?))
}

/// Deadline of the way in, where none is given.
pub const CONNECT: std::time::Duration = std::time::Duration::from_secs(10);

/// That none is named.
pub fn which() -> Fault {
    Fault::Usage(
        "which Redis? --redis redis://host:6379/0, REDIS_URL, or -d with a target of stanch.yaml that names one".into(),
    )
}

/// The Redis of a command that can do without one, where it is asked for.
///
/// # Errors
/// When it is asked for and none is named, or what is named is no address.
pub fn asked(
    args: &RedisArgs,
    target: Option<&str>,
    env: &Environment,
) -> Result<Option<RedisAddress>, Fault> {
    if !args.is_asked() {
        return Ok(None);
    }
    address(args, target, env)?.ok_or_else(which).map(Some)
}

/// Opens the Redis of a command that looks at nothing else.
///
/// # Errors
/// When there is none, or it can't be reached.
pub async fn open(ctx: &mut Context<'_>, args: &RedisOnly) -> Result<Fleet, Fault> {
    let target = target(args, ctx.env)?;
    warn_of_password(ctx, &args.redis);
    let address = address(&args.redis, target, ctx.env)?.ok_or_else(which)?;
    let limits = Limits {
        connect: args.connect_timeout,
        answer: args.timeout,
    };
    Ok(redis::open(&address, target, limits).await?)
}

/// `-d` must be a target here: there is no database of that name to fall back to.
fn target<'a>(args: &'a RedisOnly, env: &Environment) -> Result<Option<&'a str>, Fault> {
    let Some(name) = &args.dbname else {
        return Ok(None);
    };
    let known = settings::redis_targets(env)?;
    if known.contains(name) {
        return Ok(Some(name));
    }
    let known = if known.is_empty() {
        "there are none".into()
    } else {
        known.join(", ")
    };
    Err(Fault::Usage(format!(
        "-d {name}: no target of stanch.yaml with a `redis` ({known}); --redis takes a URL"
    )))
}

/// On the command line it is everybody's to read.
pub fn warn_of_password(ctx: &mut Context<'_>, args: &RedisArgs) {
    let given = args.redis.as_deref().map(RedisAddress::parse);
    if given.is_some_and(|address| address.is_ok_and(|address| address.has_password())) {
        ctx.console.warn(
            "a password on the command line can be read by others on this machine: REDIS_URL or REDISCLI_AUTH can't",
        );
    }
}

/// How the walk goes.
pub fn budget(args: &WalkArgs) -> Budget {
    if args.full {
        Budget::FULL
    } else {
        Budget::gentle(args.budget)
    }
}

/// The groups of `stanch.yaml`.
///
/// # Errors
/// When the file can't be read.
pub fn patterns(env: &Environment) -> Result<Vec<Pattern>, Fault> {
    let groups = settings::redis_config(env)?.groups;
    Ok(groups.iter().map(|text| Pattern::new(text)).collect())
}

/// A bar on a terminal, and Ctrl-C, which ends the walk and shows what there is.
pub struct Looker {
    bar: Progress,
    stops: Stops,
}

impl Looker {
    /// # Errors
    /// When signals can't be had.
    pub fn new(ctx: &Context<'_>, what: &str, of: &str) -> Result<Self, Fault> {
        let stops = Stops::default();
        stops.watch()?;
        Ok(Self {
            bar: Progress::new(what, of, ctx.stderr_is_terminal && !ctx.console.quiet),
            stops,
        })
    }
}

impl Drop for Looker {
    fn drop(&mut self) {
        self.stops.leave();
    }
}

impl Watch for Looker {
    fn progress(&self, seen: u64, total: Option<u64>) {
        self.bar.at(seen, total);
    }

    fn is_stopped(&self) -> bool {
        self.stops.count() > 0
    }
}
