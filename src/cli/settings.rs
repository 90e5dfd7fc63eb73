//! Arguments, `stanch.yaml` and environment → what a command needs.

use std::path::PathBuf;
use std::time::Duration;

use super::args::ConnectArgs;
use super::fault::Fault;
use crate::config::{self, Config, Protect, RedisConfig};
use crate::model::{Origin, RedactionLevel, Secret, Thresholds};
use crate::source::postgres::{
    ConnInput, ConnSpec, Environment, KnockOptions, Plan, RoundOptions, conninfo,
};
use crate::source::redis::RedisAddress;
use crate::sql;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Where and how to connect.
pub struct ConnectSettings {
    pub plan: Plan,
    pub rescue: Option<Plan>,
    /// The console of the pooler in front, where the target names it.
    pub pooler: Option<Plan>,
    /// A password may be asked for, at a terminal.
    pub may_ask: bool,
    pub knock: KnockOptions,
    pub round: RoundOptions,
    /// Words to say before connecting.
    pub warnings: Vec<String>,
}

/// What acting needs beside the way there.
pub struct ActSettings {
    /// A host (or service) that stands in the target of `stanch.yaml` or on the command line: not only in the environment.
    pub named_in_full: bool,
    pub operator: String,
    /// Where journals and locks are kept.
    pub state: PathBuf,
    pub protected_users: Vec<String>,
    pub protected_applications: Vec<String>,
}

impl ActSettings {
    /// Who acts, where it is kept, and whom they leave alone, before it is known on what.
    ///
    /// # Errors
    /// When there is no place for the journal, or a file can't be read.
    pub fn of(env: &Environment) -> Result<Self, Fault> {
        let state = env
            .get("XDG_STATE_HOME")
            .filter(|folder| folder.starts_with('/'))
            .map(PathBuf::from)
            .or_else(|| Some(env.home()?.join(".local/state")))
            .ok_or_else(|| {
                Fault::Usage("no place for the journal: set HOME or XDG_STATE_HOME".into())
            })?;
        let protect = protected(env)?;
        Ok(Self {
            named_in_full: false,
            operator: env
                .account
                .as_ref()
                .map_or_else(|| "unknown".into(), |(name, _)| name.clone()),
            state: state.join("stanch"),
            protected_users: protect.users,
            protected_applications: protect.applications,
        })
    }

    /// Where journals are kept.
    pub fn runs(&self) -> PathBuf {
        self.state.join("runs")
    }

    /// What the person types: the name in `stanch.yaml` where there is one, else the place that was really reached.
    pub fn name_of(&self, spec: &ConnSpec) -> String {
        let address = spec
            .hostaddr
            .as_ref()
            .filter(|address| **address != spec.host)
            .map_or(String::new(), |address| format!("[{address}]"));
        spec.name
            .clone()
            .unwrap_or_else(|| format!("{}@{}{address}:{}", spec.database, spec.host, spec.port))
    }
}

/// The Redis in front of a server: as it was given, of the target in `stanch.yaml`, or of the environment.
///
/// # Errors
/// When what was given is no address.
pub fn redis(
    given: Option<&str>,
    target: Option<&str>,
    env: &Environment,
) -> Result<Option<RedisAddress>, Fault> {
    let of_target = || -> Result<Option<String>, Fault> {
        let Some(name) = target else { return Ok(None) };
        let (config, _) = config(env)?;
        Ok(config.redis_of(name))
    };
    let url = match given {
        Some(url) => Some(url.to_owned()),
        None => of_target()?.or_else(|| env.get("REDIS_URL").cloned()),
    };
    let url = url.filter(|url| !url.is_empty());
    let address = url.map(|url| RedisAddress::parse(&url)).transpose()?;
    // As redis-cli takes it.
    let password = env.get("REDISCLI_AUTH").filter(|text| !text.is_empty());
    Ok(match (address, password) {
        (Some(address), Some(password)) => Some(address.or_password(password)),
        // A user without a password is that user all the same, and never the default one.
        (Some(address), None) if address.user().is_some() => Some(address.or_password("")),
        (address, _) => address,
    })
}

/// The names of the targets that have a Redis.
///
/// # Errors
/// When the file can't be read.
pub fn redis_targets(env: &Environment) -> Result<Vec<String>, Fault> {
    let (config, _) = config(env)?;
    let names = config.target_names();
    let with_redis = names.iter().filter(|name| config.redis_of(name).is_some());
    Ok(with_redis.map(ToString::to_string).collect())
}

/// What `stanch.yaml` says of Redis itself.
///
/// # Errors
/// When the file can't be read.
pub fn redis_config(env: &Environment) -> Result<RedisConfig, Fault> {
    Ok(config(env)?.0.redis())
}

/// The files that may be there: of the working directory, and of the user's configuration folder.
fn config_files(env: &Environment) -> Vec<PathBuf> {
    let mut places = vec![PathBuf::from("stanch.yaml")];
    places.extend(config_folder(env).map(|folder| folder.join("stanch/stanch.yaml")));
    places
}

/// `$XDG_CONFIG_HOME`, else `~/.config`.
pub fn config_folder(env: &Environment) -> Option<PathBuf> {
    env.get("XDG_CONFIG_HOME")
        .filter(|folder| !folder.is_empty())
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(env.get("HOME")?).join(".config")))
}

/// Reads `stanch.yaml`: the first that is there.
fn config(env: &Environment) -> Result<(Config, Thresholds), Fault> {
    Ok(config::load(&config_files(env))?)
}

/// Whom no file allows to be signalled: the lists of all files that there are are united.
fn protected(env: &Environment) -> Result<Protect, Fault> {
    let mut all = Protect::default();
    for file in config_files(env) {
        let (config, _) = config::load(&[file])?;
        let Protect {
            users,
            applications,
        } = config.protected();
        // Sessions are compared as they are shown: without what looks like a secret in a name.
        all.users.extend(
            users
                .iter()
                .map(|name| sql::name_redacted(name).into_owned()),
        );
        all.applications.extend(
            applications
                .iter()
                .map(|name| sql::redacted(name).into_owned()),
        );
        all.users.extend(users);
        all.applications.extend(applications);
    }
    Ok(all)
}

/// The limits of `stanch.yaml`, and over them those of the command line.
pub fn thresholds(env: &Environment, flags: &[String]) -> Result<Thresholds, Fault> {
    let (_, mut thresholds) = config(env)?;
    for flag in flags {
        let (name, value) = flag.split_once('=').ok_or_else(|| {
            Fault::Usage(format!(
                "--threshold {flag}: NAME=VALUE, such as transaction_age=5s"
            ))
        })?;
        config::set_threshold(&mut thresholds, name, value)
            .map_err(|what| Fault::Usage(format!("--threshold: {what}")))?;
    }
    Ok(thresholds)
}

/// The names of the targets, for completion: a file that can't be read has none.
pub fn target_names(env: &Environment) -> Vec<String> {
    let names = |config: Config| {
        config
            .target_names()
            .iter()
            .map(ToString::to_string)
            .collect()
    };
    config(env).map_or_else(|_| Vec::new(), |(config, _)| names(config))
}

impl ConnectSettings {
    /// The way there for a command that changes something: a place that is only guessed at is refused.
    pub fn to_act(args: &ConnectArgs, env: &Environment) -> Result<(Self, ActSettings), Fault> {
        let settings = Self::resolve(args, env)?;
        let place = settings.plan.first();
        let word = args
            .dbname
            .as_deref()
            .filter(|text| !conninfo::names_a_place(text));
        if let (Some(word), None, None) = (word, &args.host, &place.name) {
            return Err(Fault::Usage(format!(
                "{word} is no target of stanch.yaml: to act, say where (-h, a URL, or a target)"
            )));
        }
        let host_given = settings.plan.parameters.iter().any(|p| {
            let places = ["host", "hostaddr", "service"].contains(&p.name.as_str());
            let written = matches!(
                p.origin,
                Origin::Flag { .. } | Origin::Url | Origin::Conninfo | Origin::Target { .. }
            );
            places && written
        });
        let acting = ActSettings {
            named_in_full: host_given,
            ..ActSettings::of(env)?
        };
        Ok((settings, acting))
    }

    pub fn resolve(args: &ConnectArgs, env: &Environment) -> Result<Self, Fault> {
        let (config, _) = config(env)?;
        let mut warnings = Vec::new();
        if args.dbname.as_deref().is_some_and(conninfo::has_password) {
            warnings.push(
                "warning: others can read a password on the command line; ~/.pgpass or PGPASSWORD keeps it out of sight"
                    .into(),
            );
        }
        // A word is a target if there is one of that name, else a database; beside -h it is a database, as for psql.
        let target = match &args.dbname {
            Some(name) if args.host.is_none() => config
                .target(name, conninfo::check_target)?
                .map(|target| (name, target)),
            _ => None,
        };
        let input = ConnInput {
            host: args.host.clone(),
            port: args.port.clone(),
            user: args.username.clone(),
            dbname: target.map_or_else(
                || args.dbname.clone(),
                |(_, target)| Some(target.db.clone()),
            ),
            target_name: target.map(|(name, _)| name.clone()),
            default_database: None,
        };
        if let (Some(word), None) = (&args.dbname, target)
            && args.host.is_none()
            && !config.target_names().is_empty()
            && !conninfo::names_a_place(word)
        {
            warnings.push(format!(
                "{word} is no target of stanch.yaml ({}): taken for a database's name",
                config.target_names().join(", ")
            ));
        }
        if conninfo::passes_over_database_url(&input, env) {
            warnings.push("DATABASE_URL isn't a postgresql:// URL: not read".into());
        }
        // With another place than the target's its rescue login would lead to the target again.
        let elsewhere = args.port.is_some();
        let rescue = target
            .filter(|_| !elsewhere)
            .and_then(|(name, target)| Some(rescue(name, target.rescue.as_ref()?, env)));
        let rescue = rescue.and_then(|plan| {
            plan.map_err(|why| {
                warnings.push(format!("the target's rescue login can't be used: {why}"))
            })
            .ok()
        });
        let pooler = target
            .filter(|_| !elsewhere)
            .and_then(|(name, target)| Some((name, target.pgbouncer.as_ref()?)));
        let pooler = pooler.and_then(|(name, db)| {
            named_plan(name, db, Some(CONSOLE), env)
                .map_err(|why| {
                    warnings.push(format!("the target's pgbouncer can't be used: {why}"))
                })
                .ok()
        });
        let plan = conninfo::resolve(&input, env)?;
        warnings.extend(plan.warnings.iter().cloned());
        let connect_timeout = args
            .connect_timeout
            .filter(|time| !time.is_zero())
            .or(plan.connect_timeout)
            .unwrap_or(CONNECT_TIMEOUT);
        Ok(Self {
            plan,
            rescue,
            pooler,
            may_ask: !args.no_password,
            knock: KnockOptions {
                connect_timeout,
                wait_slot: args.wait_slot,
            },
            round: RoundOptions {
                statement_timeout: args.timeout,
                deadline: args.deadline,
                redaction: RedactionLevel::Redacted,
            },
            warnings,
        })
    }
}

/// Another way that a target names.
/// Its database, which is none of the server's.
const CONSOLE: &str = "pgbouncer";

fn named_plan(
    name: &str,
    db: &str,
    default_database: Option<&'static str>,
    env: &Environment,
) -> Result<Plan, String> {
    conninfo::check_target(db)?;
    let input = ConnInput {
        dbname: Some(db.to_owned()),
        target_name: Some(name.to_owned()),
        default_database,
        ..ConnInput::default()
    };
    conninfo::resolve(&input, env).map_err(|e| e.to_string())
}

/// The rescue login of a target; its password is that of `STANCH_RESCUE_PASSWORD`, else what libpq would find.
fn rescue(name: &str, db: &str, env: &Environment) -> Result<Plan, String> {
    let mut plan = named_plan(name, db, None, env)?;
    if let Some(password) = env.get("STANCH_RESCUE_PASSWORD").filter(|p| !p.is_empty()) {
        for place in &mut plan.places {
            place.password = Some(Secret::new(password.as_str()));
        }
    }
    Ok(plan)
}
