//! What this process was given that must stand nowhere: passwords of its targets, and values of its environment that are
//! called secret.

use std::path::PathBuf;

use super::args::ConnectArgs;
use super::fault::Fault;
use super::settings::{self, ActSettings, ConnectSettings};
use crate::bundle::{Head, KnownSecrets};
use crate::cli::commands::Context;
use crate::model::{Secret, Timestamp};
use crate::source::postgres::Environment;
use crate::source::redis::RedisAddress;

/// How names of variables end that hold secrets, part by part: not COMPASS_HOST.
const CALLED: [&str; 8] = [
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "TOKEN",
    "SECRET",
    "APIKEY",
    "PASS",
    "CREDENTIALS",
];

fn is_called_secret(name: &str) -> bool {
    let upper = name.to_uppercase();
    upper
        .split('_')
        .any(|part| CALLED.contains(&part) || CALLED[..6].iter().any(|word| part.ends_with(word)))
}

/// Of the environment alone.
pub fn of_environment(env: &Environment) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (name, value) in env.all() {
        // A path is no secret: SSH_ASKPASS, PASSWORD_STORE_DIR.
        if is_called_secret(name) && !value.starts_with('/') {
            found.push((name.clone(), value.clone()));
        }
        if let Some(password) = of_url(value) {
            found.push((name.clone(), password));
        }
    }
    found
}

/// With what the way to a server and to its Redis needs.
pub fn known(
    env: &Environment,
    settings: Option<&ConnectSettings>,
    redis: Option<&RedisAddress>,
) -> KnownSecrets {
    let mut found = of_environment(env);
    for plan in settings
        .into_iter()
        .flat_map(|s| s.rescue.iter().chain(&s.pooler).chain([&s.plan]))
    {
        let passwords = plan
            .places
            .iter()
            .filter_map(|place| place.password.as_ref());
        found.extend(passwords.map(|secret: &Secret| {
            (
                "password of the connection".to_owned(),
                secret.expose().to_owned(),
            )
        }));
    }
    // A password that is the login's or the database's own name can't be kept out.
    let plans = settings
        .into_iter()
        .flat_map(|s| s.rescue.iter().chain([&s.plan]));
    let names: Vec<&str> = plans
        .flat_map(|plan| &plan.places)
        .flat_map(|place| {
            [
                place.user.as_str(),
                place.database.as_str(),
                place.host.as_str(),
            ]
        })
        .collect();
    found.retain(|(_, value)| !names.contains(&value.as_str()));
    let of_redis = redis.and_then(RedisAddress::password);
    found.extend(of_redis.map(|text| ("password of Redis".to_owned(), text.to_owned())));
    KnownSecrets::new(found)
}

/// What the way to the server of a bundle needs, and to its Redis, as far as it is still known here: `stanch.yaml`, `~/.pgpass`. What
/// couldn't be looked for is said.
pub fn of_bundle(ctx: &mut Context<'_>, head: &Head) -> KnownSecrets {
    let target = &head.target;
    let mut missing = Vec::new();
    if head.tokens {
        missing.push("names of this bundle are tokens".to_owned());
    }
    let way = match ConnectSettings::resolve(&ConnectArgs::to(target), ctx.env) {
        Ok(way) => {
            missing.extend(way.warnings.iter().cloned());
            Some(way)
        }
        Err(fault) => {
            missing.push(fault.to_string());
            None
        }
    };
    let redis = settings::redis(None, target.name.as_deref(), ctx.env);
    let redis = redis.unwrap_or_else(|fault| {
        missing.push(fault.to_string());
        None
    });
    for why in missing {
        ctx.console.warn(&format!(
            "passwords of the way to {} may not have been looked for: {why}",
            target.label()
        ));
    }
    known(ctx.env, way.as_ref(), redis.as_ref())
}

/// Where the key of a capture's tokens is kept: with the journals, by when it was begun.
///
/// # Errors
/// When there is no place for journals.
pub fn key_of(env: &Environment, begun: Timestamp) -> Result<PathBuf, Fault> {
    let at = begun.utc().format("%Y%m%dT%H%M%S%.6fZ");
    let folder = ActSettings::of(env)?.state.join("keys");
    Ok(folder.join(format!("{at}.key")))
}

/// The password in a URL, as it is and as it was meant.
fn of_url(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("://")?;
    let (login, _) = rest.split(['/', '?']).next()?.rsplit_once('@')?;
    let (_, password) = login.split_once(':')?;
    let decoded = percent_encoding::percent_decode_str(password).decode_utf8_lossy();
    Some(decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_called_secret_and_what_a_url_holds() {
        let env: Environment = [
            ("PGPASSWORD", "hunter22"),
            ("SSH_ASKPASS", "/usr/bin/askpass"),
            ("DATABASE_URL", "postgres://u:p%40ssword@h/d"),
            ("HOME", "/root"),
            ("COMPASS_HOST", "127.0.0.1"),
            ("APP_JWT_SECRET", "onlyletters"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into_iter()
        .collect();
        let found = of_environment(&env);
        let expected = [
            ("APP_JWT_SECRET", "onlyletters"),
            ("DATABASE_URL", "p@ssword"),
            ("PGPASSWORD", "hunter22"),
        ];
        assert_eq!(found, expected.map(|(n, v)| (n.to_owned(), v.to_owned())));
    }
}
