//! What `stanch.yaml` may hold, and how it is read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::model::{Millis, Percent, Thresholds};

/// What a file may hold. Keys for later reports are accepted, so that one file serves all versions of a team.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    #[serde(default)]
    pub targets: BTreeMap<String, TargetConfig>,
    #[serde(default)]
    thresholds: ThresholdsConfig,
    /// Read by the Redis reports.
    #[serde(default, rename = "redis")]
    _redis: Option<serde::de::IgnoredAny>,
}

/// One server by name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetConfig {
    /// A URL, without a password.
    pub db: String,
    /// A login that is tried only when every slot is taken.
    pub rescue: Option<String>,
    #[serde(default, rename = "redis")]
    _redis: Option<String>,
    #[serde(default, rename = "pgbouncer")]
    _pgbouncer: Option<String>,
    #[serde(default, rename = "protect")]
    _protect: Option<serde::de::IgnoredAny>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ThresholdsConfig {
    connections_warning: Option<String>,
    connections_critical: Option<String>,
    pools: Option<String>,
    idle_in_transaction: Option<usize>,
    idle_in_transaction_age: Option<String>,
    transaction_age: Option<String>,
    lock_wait: Option<String>,
    lock_wait_critical: Option<String>,
    blocked_critical: Option<usize>,
    storm_sessions: Option<usize>,
    horizon_warning: Option<u32>,
    horizon_critical: Option<u32>,
}

/// Why a file can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("{path}: {error}")]
    Io {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error("{path}: {what}")]
    Yaml { path: PathBuf, what: String },
    #[error("{path}: target {target}: a password doesn't belong in this file; use PGPASSWORD")]
    Password { path: PathBuf, target: String },
    #[error("{path}: thresholds: {name}: {what}")]
    Threshold {
        path: PathBuf,
        name: &'static str,
        what: String,
    },
}

/// The first of these files that exists; none is no fault.
///
/// # Errors
/// When the file can't be read or isn't what it should be.
pub fn load(
    places: &[PathBuf],
    has_password: fn(&str) -> bool,
) -> Result<(Config, Thresholds), ConfigError> {
    for path in places {
        match std::fs::read_to_string(path) {
            Ok(text) => return parse(path, &text, has_password),
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

fn parse(
    path: &Path,
    text: &str,
    has_password: fn(&str) -> bool,
) -> Result<(Config, Thresholds), ConfigError> {
    let config: Config = if text.trim().is_empty() {
        Config::default()
    } else {
        serde_yaml::from_str(text).map_err(|e| ConfigError::Yaml {
            path: path.into(),
            what: e.to_string(),
        })?
    };
    for (name, target) in &config.targets {
        if has_password(&target.db) || target.rescue.as_deref().is_some_and(has_password) {
            return Err(ConfigError::Password {
                path: path.into(),
                target: name.clone(),
            });
        }
    }
    let thresholds = config.thresholds.resolve(path)?;
    Ok((config, thresholds))
}

impl ThresholdsConfig {
    fn resolve(&self, path: &Path) -> Result<Thresholds, ConfigError> {
        let mut t = Thresholds::default();
        let percents = [
            (
                "connections_warning",
                &self.connections_warning,
                &mut t.connections_warning,
            ),
            (
                "connections_critical",
                &self.connections_critical,
                &mut t.connections_critical,
            ),
            ("pools", &self.pools, &mut t.pools),
        ];
        let fault = |name, what: &str| ConfigError::Threshold {
            path: path.into(),
            name,
            what: what.into(),
        };
        for (name, text, place) in percents {
            if let Some(text) = text {
                *place = parse_percent(text)
                    .ok_or_else(|| fault(name, "not a percentage such as 85%"))?;
            }
        }
        let times = [
            (
                "idle_in_transaction_age",
                &self.idle_in_transaction_age,
                &mut t.idle_in_transaction_age,
            ),
            (
                "transaction_age",
                &self.transaction_age,
                &mut t.transaction_age,
            ),
            (
                "lock_wait_critical",
                &self.lock_wait_critical,
                &mut t.lock_wait_critical,
            ),
        ];
        for (name, text, place) in times {
            if let Some(text) = text {
                *place = parse_millis(text).ok_or_else(|| fault(name, "not a time such as 30s"))?;
            }
        }
        if let Some(text) = &self.lock_wait {
            t.lock_wait = Some(
                parse_millis(text).ok_or_else(|| fault("lock_wait", "not a time such as 1s"))?,
            );
        }
        t.idle_in_transaction = self.idle_in_transaction.unwrap_or(t.idle_in_transaction);
        t.blocked_critical = self.blocked_critical.unwrap_or(t.blocked_critical);
        t.storm_sessions = self.storm_sessions.unwrap_or(t.storm_sessions);
        t.horizon_warning = self.horizon_warning.unwrap_or(t.horizon_warning);
        t.horizon_critical = self.horizon_critical.unwrap_or(t.horizon_critical);
        Ok(t)
    }
}

fn parse_percent(text: &str) -> Option<Percent> {
    let number: f64 = text
        .trim()
        .strip_suffix('%')
        .unwrap_or(text.trim())
        .trim()
        .parse()
        .ok()?;
    (0.0..=1000.0).contains(&number).then_some(Percent(number))
}

fn parse_millis(text: &str) -> Option<Millis> {
    humantime::parse_duration(text.trim())
        .ok()
        .map(Millis::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Config, Thresholds), ConfigError> {
        parse(Path::new("stanch.yaml"), text, |url| url.contains(":pw@"))
    }

    #[test]
    fn targets_and_thresholds() {
        let (config, thresholds) = read(
            "targets:\n  prod:\n    db: postgresql://app@db/app\n    rescue: postgresql://admin@db/app\n    \
             redis: redis://x\n    protect: { users: [replicator] }\n\
             thresholds: { idle_in_transaction: 5, transaction_age: 45s, connections_warning: 70% }\n",
        )
        .expect("a config");
        assert_eq!(
            config.targets["prod"].rescue.as_deref(),
            Some("postgresql://admin@db/app")
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
    fn faults_name_the_file_and_the_key() {
        for (text, want) in [
            ("targets: { a: { db: x, dbb: y } }", "dbb"),
            ("thresholds: { transaction_age: soon }", "transaction_age"),
            ("thresholds: { pools: lots }", "pools"),
            (
                "targets: { a: { db: \"postgresql://u:pw@h/d\" } }",
                "password",
            ),
        ] {
            let error = read(text).expect_err(text).to_string();
            assert!(
                error.starts_with("stanch.yaml: ") && error.contains(want),
                "{error}"
            );
            assert!(!error.contains("pw@"), "{error}");
        }
    }

    #[test]
    fn an_empty_file_is_no_fault() {
        assert!(read("").expect("a config").0.targets.is_empty());
    }
}
