//! What `stanch.yaml` may hold, and how it is read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::thresholds;
use crate::model::{Millis, QueueBounds, QueueLimits, Thresholds};

/// What a file may hold. Keys for later reports are accepted, so that one file serves all versions of a team.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    #[serde(default)]
    targets: Option<BTreeMap<String, TargetConfig>>,
    #[serde(default)]
    thresholds: Option<BTreeMap<String, Scalar>>,
    /// Where it was read, for messages.
    #[serde(skip)]
    path: PathBuf,
    #[serde(default)]
    redis: Option<RedisConfig>,
}

impl Config {
    /// A target by its name, if its `db` passes `check`; others may be what they like.
    ///
    /// # Errors
    /// What is wrong with its `db`.
    pub fn target(
        &self,
        name: &str,
        check: fn(&str) -> Result<(), String>,
    ) -> Result<Option<&TargetConfig>, ConfigError> {
        let Some(target) = self.targets.as_ref().and_then(|targets| targets.get(name)) else {
            return Ok(None);
        };
        // A rescue login that can't be used is told when it is needed: it must not end a login that works.
        check(&target.db).map_err(|what| ConfigError::Target {
            path: self.path.clone(),
            target: name.into(),
            what,
        })?;
        Ok(Some(target))
    }

    /// The Redis in front of a target.
    pub fn redis_of(&self, name: &str) -> Option<String> {
        self.targets.as_ref()?.get(name)?.redis.clone()
    }

    /// What it says of Redis itself.
    pub fn redis(&self) -> RedisConfig {
        self.redis.clone().unwrap_or_default()
    }

    /// The protect lists of all targets of this file together.
    pub fn protected(&self) -> Protect {
        let mut all = Protect::default();
        for target in self.targets.iter().flatten().map(|(_, target)| target) {
            all.users.extend(target.protect.users.iter().cloned());
            all.applications
                .extend(target.protect.applications.iter().cloned());
        }
        all
    }

    pub fn target_names(&self) -> Vec<&str> {
        self.targets
            .iter()
            .flatten()
            .map(|(name, _)| name.as_str())
            .collect()
    }
}

/// One server by name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetConfig {
    /// A URL, without a password.
    pub db: String,
    /// A login that is tried only when every slot is taken.
    pub rescue: Option<String>,
    /// The Redis in front of it, as a URL.
    pub redis: Option<String>,
    /// The admin console of the pooler in front of it, as a URL.
    pub pgbouncer: Option<String>,
    /// Whom nobody may signal there.
    #[serde(default)]
    pub protect: Protect,
}

/// What is known of the keys and queues of a team's Redis.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedisConfig {
    /// Patterns of keys that belong together; the first that matches counts, before what is learned.
    #[serde(default)]
    pub groups: Vec<String>,
    /// What is expected of queues, by `name` or `system/name`; `default` is for the others.
    #[serde(default)]
    queues: Option<BTreeMap<String, QueueConfig>>,
}

impl RedisConfig {
    /// What is expected of queues.
    pub fn queues(&self) -> QueueBounds {
        let mut bounds = QueueBounds::default();
        for (name, limits) in self.queues.iter().flatten() {
            let limits = QueueLimits {
                bound: limits.bound,
                oldest: limits.oldest,
                dead: limits.dead,
            };
            if name == "default" {
                bounds.default = limits;
            } else {
                bounds.named.insert(name.clone(), limits);
            }
        }
        bounds
    }
}

/// What is expected of one queue.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct QueueConfig {
    bound: Option<u64>,
    #[serde(default, deserialize_with = "time")]
    oldest: Option<Millis>,
    dead: Option<u64>,
}

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Millis>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else {
        return Ok(None);
    };
    let time = humantime::parse_duration(&text);
    let fault = |_| D::Error::custom("oldest: not a time such as 5m");
    time.map(|time| Some(time.into())).map_err(fault)
}

/// Logins and applications that are never signalled.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Protect {
    #[serde(default)]
    pub users: Vec<String>,
    #[serde(default)]
    pub applications: Vec<String>,
}

/// `10`, `85%`, `30s`
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Scalar {
    Number(u64),
    Text(String),
}

/// Why a file can't be used. Never repeats a value: it may hold a password.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("{path}: {error}")]
    Io {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error("{path}: line {line}, column {column}: {what}")]
    Yaml {
        path: PathBuf,
        line: u64,
        column: u64,
        what: String,
    },
    #[error("{path}: target {target}: {what}")]
    Target {
        path: PathBuf,
        target: String,
        what: String,
    },
    #[error("{path}: thresholds: {what}")]
    Threshold { path: PathBuf, what: String },
}

/// The first of these files that exists; none is no fault.
///
/// # Errors
/// When the file can't be read or isn't what it should be.
pub fn load(places: &[PathBuf]) -> Result<(Config, Thresholds), ConfigError> {
    for path in places {
        match std::fs::read_to_string(path) {
            Ok(text) => return parse(path, &text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(ConfigError::Io {
                    path: path.clone(),
                    error,
                });
            }
        }
    }
    Ok((Config::default(), Thresholds::default()))
}

fn parse(path: &Path, text: &str) -> Result<(Config, Thresholds), ConfigError> {
    let mut config: Config = if text.trim().is_empty() {
        Config::default()
    } else {
        serde_yaml::from_str(text).map_err(|e| yaml_error(path, &e))?
    };
    config.path = path.into();
    let mut limits = Thresholds::default();
    for (name, value) in config.thresholds.iter().flatten() {
        let text = match value {
            Scalar::Number(number) => number.to_string(),
            Scalar::Text(text) => text.clone(),
        };
        thresholds::set(&mut limits, name, &text).map_err(|what| ConfigError::Threshold {
            path: path.into(),
            what,
        })?;
    }
    Ok((config, limits))
}

/// The place and the fault, without the text around it.
fn yaml_error(path: &Path, error: &serde_yaml::Error) -> ConfigError {
    let bare = error.without_snippet().to_string();
    // The parser's own words may quote a value.
    let quotes = bare.contains("://") || bare.to_lowercase().contains("password");
    let what = bare.split(" at line ").next().unwrap_or(&bare).to_owned();
    let (line, column) = error
        .location()
        .map_or((0, 0), |at| (at.line(), at.column()));
    ConfigError::Yaml {
        path: path.into(),
        line,
        column,
        what: if quotes {
            "not what is expected here".into()
        } else {
            what
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Percent;

    fn check(url: &str) -> Result<(), String> {
        match url.contains(":pw@") {
            true => Err("a password doesn't belong in this file".to_owned()),
            false => Ok(()),
        }
    }

    fn read(text: &str) -> Result<(Config, Thresholds), ConfigError> {
        let (config, thresholds) = parse(Path::new("stanch.yaml"), text)?;
        config.target("a", check)?;
        Ok((config, thresholds))
    }

    #[test]
    fn targets_and_thresholds() {
        let (config, thresholds) = read(
            "targets:\n  prod:\n    db: postgresql://app@db/app\n    rescue: service=prod-admin\n    \
             redis: redis://x\n    protect: { users: [replicator] }\n\
             thresholds: { idle_in_transaction: 5, transaction_age: 45s, connections_warning: 70% }\n",
        )
        .expect("a config");
        assert_eq!(
            config
                .target("prod", check)
                .expect("sound")
                .expect("there")
                .rescue
                .as_deref(),
            Some("service=prod-admin")
        );
        assert_eq!(thresholds.idle_in_transaction, 5);
        assert_eq!(thresholds.transaction_age, Millis(45_000));
        assert_eq!(thresholds.connections_warning, Percent(70.0));
        assert_eq!(
            thresholds.connections_critical,
            Thresholds::default().connections_critical
        );
    }

    #[test]
    fn faults_name_the_file_and_the_key_and_never_a_password() {
        for (text, want) in [
            (
                "targets:\n  a:\n    db: postgresql://u:hunter2@h/d\n    dbb: y\n",
                "dbb",
            ),
            ("targets: { a: postgresql://u:hunter2@h/d }", "line 1"),
            ("targets: [postgresql://u:hunter2@h/d]", "line 1"),
            (
                "targets:\n  a:\n    db: \"postgresql://u:hunter2@h/d\n",
                "line",
            ),
            ("thresholds: { transaction_age: soon }", "transaction_age"),
            ("thresholds: { pools: lots }", "pools"),
            ("thresholds: { nonsense: 1 }", "connections_warning"),
            (
                "targets: { a: { db: \"postgresql://u:pw@h/d\" } }",
                "target a: a password",
            ),
            ("redis: { queues: { mail: { bond: 5 } } }", "bond"),
            (
                "redis: { queues: { mail: { oldest: soon } } }",
                "oldest: not a time such as 5m",
            ),
            ("redis: { queues: { mail: { bound: -1 } } }", "line 1"),
        ] {
            let error = read(text).expect_err(text).to_string();
            assert!(
                error.starts_with("stanch.yaml: ") && error.contains(want),
                "{error}"
            );
            assert!(
                !error.contains("pw@") && !error.contains("hunter2"),
                "{error}"
            );
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }

    #[test]
    fn what_is_expected_of_queues() {
        let text = "redis:\n  queues:\n    default: { bound: 10000, oldest: 5m, dead: 10 }\n    \
                    celery/images: { bound: 50 }\n";
        let bounds = read(text).expect("a config").0.redis().queues();
        assert_eq!(bounds.default.bound, Some(10_000));
        assert_eq!(bounds.default.oldest, Some(Millis(300_000)));
        assert_eq!(bounds.default.dead, Some(10));
        assert_eq!(bounds.named["celery/images"].bound, Some(50));
        assert_eq!(bounds.named["celery/images"].oldest, None);
        let none = read("redis: { queues: }").expect("a config").0;
        assert_eq!(none.redis().queues(), QueueBounds::default());
    }

    #[test]
    fn an_empty_file_is_no_fault() {
        for text in ["", "targets:\n", "targets:\nthresholds:\n"] {
            assert!(
                read(text).expect("a config").0.target_names().is_empty(),
                "{text}"
            );
        }
        let one_bad =
            "targets: { bad: { db: \"postgresql://u:pw@h/d\" }, a: { db: postgresql://h/d } }";
        assert_eq!(
            read(one_bad).expect("the other is sound").0.target_names(),
            ["a", "bad"]
        );
    }
}
