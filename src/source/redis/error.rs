//! Why a Redis couldn't be asked, and what a single command was refused for.

use redis::{ServerError, Value};

/// Why nothing can be told of a Redis.
#[derive(Debug, thiserror::Error)]
pub enum RedisError {
    #[error("{0:?} is no address of a Redis, such as redis://host:6379/0")]
    Address(String),
    #[error("Redis at {0}: certificates are for rediss:// addresses")]
    NoTls(String),
    #[error("Redis at {place}: {what}")]
    Failed {
        place: String,
        what: String,
        why: Why,
    },
}

/// What to do about it turns on this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Not reached, or lost.
    Unreachable,
    /// The login is wrong, or there is none.
    Login,
    /// The server reads its data and answers nothing yet.
    Loading,
    /// This login may not do what every report needs.
    NotPermitted,
    Other,
}

impl RedisError {
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Address(_) => Some("--redis redis://host:6379/0, or REDIS_URL".into()),
            Self::NoTls(_) => Some("an address that begins with rediss://".into()),
            Self::Failed { why, what, .. } => match why {
                Why::Unreachable => Some(unreachable_hint(what).to_owned()),
                Why::Login => Some(login_hint(what)),
                Why::Loading => Some("the same command again, when it has read its data".into()),
                Why::NotPermitted => Some(grant(what)),
                Why::Other => other_hint(what).map(str::to_owned),
            },
        }
    }
}

fn login_hint(what: &str) -> String {
    if what.contains("without any password configured") {
        return "the server asks for no password: an address without one".into();
    }
    "redis://user:password@host in REDIS_URL, or the password in REDISCLI_AUTH".into()
}

/// What is behind an error of the network or of TLS, mostly.
fn unreachable_hint(what: &str) -> &'static str {
    let has = |text: &str| what.contains(text);
    if has(CLOSED) {
        "it is gone, or was restarted: the same command again when it is up; its log tells why"
    } else if has(OWN_CA) {
        "--cacert with the certificate of an authority that has signed the server's, made without CA:TRUE; or --insecure"
    } else if has("CertificateRequired") {
        "the server wants a certificate of ours: --cert FILE --key FILE"
    } else if has("certificate") || has("UnknownIssuer") {
        "--cacert FILE with the certificate of who has signed the server's, or --insecure"
    } else if has("handshake eof") {
        "does the port speak TLS (else redis://)? A server that is at its maxclients ends a TLS connection like this too"
    } else if has("reset by peer") || has("closed") || has("broken pipe") {
        "a port that speaks TLS is rediss://, and one that doesn't is redis://"
    } else if has("no answer in time") {
        "is it stopped, blocked by a long command, or a port that speaks TLS (rediss://) or doesn't?"
    } else if has("arse error") || has("nexpected") {
        "what answers there isn't a Redis: another port?"
    } else {
        "is the server up and listening there, and is the way open? (--redis, REDIS_URL)"
    }
}

/// Of a connection over which something was answered already: it spoke our language.
const CLOSED: &str = "the server closed the connection";
/// What the TLS library calls `CaUsedAsEndEntity`.
const OWN_CA: &str =
    "the certificate is a CA's and the server's own at once, which isn't accepted here";

/// A sentinel's answer to a name that it doesn't know, in our words.
pub const NO_SUCH_PRIMARY: &str = "the sentinels know of no primary";
/// What a server is told to lack that can't count hot keys by itself.
pub const NO_HOTKEYS: &str = "doesn't count hot keys";

/// What a server says that lets nobody in, or doesn't have what was asked for.
fn other_hint(what: &str) -> Option<&'static str> {
    if what.contains("max number of clients") {
        Some(
            "end clients that nobody needs, or raise it over a connection that is open: CONFIG SET maxclients NUMBER",
        )
    } else if what.starts_with("BUSY") {
        Some(
            "the same command again when the script has ended; SCRIPT KILL ends one that has written nothing",
        )
    } else if what.starts_with("CLUSTERDOWN") {
        Some(
            "start the primary that is lost, or have a replica of it take over: CLUSTER FAILOVER TAKEOVER, asked of the replica",
        )
    } else if what.starts_with("MASTERDOWN") {
        Some(
            "its primary itself; or let it tell what it has: CONFIG SET replica-serve-stale-data yes",
        )
    } else if what.contains("protected mode") {
        Some("from the host itself, or with a password: ACL SETUSER default '>PASSWORD'")
    } else if what.contains("DB index is out of range") {
        Some(
            "a lower number in --redis-db or the URL: redis-cli CONFIG GET databases tells how many there are",
        )
    } else if what.contains("SELECT is not allowed in cluster mode") {
        Some("a cluster has database 0 alone: without --redis-db, and without a number in the URL")
    } else if what.starts_with(NO_SUCH_PRIMARY) {
        Some("the name of one that they watch: redis-cli -p 26379 SENTINEL MASTERS lists them")
    } else if what.contains(NO_HOTKEYS) {
        Some("stanch redis hotkeys --monitor")
    } else {
        None
    }
}

/// `NOPERM User ro has no permissions to run the 'config|get' command` → what grants it. Redis 6 doesn't name the user. After
/// `: &` stands the pattern of channels that was to be listened to.
fn grant(what: &str) -> String {
    let (said, channels) = match what.split_once(": &") {
        Some((said, pattern)) => (said, Some(format!("'&{pattern}'"))),
        None => (what, None),
    };
    let command = said.split('\'').nth(1).map(|word| format!("'+{word}'"));
    let command = command.or_else(|| channels.is_none().then(|| "'+@read'".into()));
    let user = said
        .split_once("User ")
        .and_then(|(_, rest)| rest.split(' ').next());
    let rules: Vec<String> = command.into_iter().chain(channels).collect();
    format!(
        "as an administrator: ACL SETUSER {} {}",
        user.unwrap_or("NAME"),
        rules.join(" ")
    )
}

/// Why one command wasn't carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    NotPermitted(String),
    /// Renamed, or of another version: the server doesn't have it.
    Unknown(String),
    /// The key belongs to another node, or is on its way there.
    Moved,
    Loading(String),
    Login(String),
    /// The connection is gone.
    Lost(String),
    Other(String),
}

impl Refused {
    pub fn of(error: &ServerError) -> Self {
        let text = words(error.code(), error.details());
        match error.code() {
            "NOPERM" => Self::NotPermitted(text),
            "MOVED" | "ASK" | "TRYAGAIN" => Self::Moved,
            "LOADING" => Self::Loading(text),
            "NOAUTH" | "WRONGPASS" => Self::Login(text),
            _ if text.to_lowercase().contains("unknown command")
                || text.to_lowercase().contains("unknown subcommand") =>
            {
                Self::Unknown(text)
            }
            _ => Self::Other(text),
        }
    }

    /// With the name of who is refused, where the server doesn't say it (Redis 6, channels).
    #[must_use]
    pub fn of_user(self, user: &str) -> Self {
        match self {
            Self::NotPermitted(what) => Self::NotPermitted(
                what.replacen(
                    "NOPERM this user has no",
                    &format!("NOPERM User {user} has no"),
                    1,
                )
                .replacen(
                    "NOPERM No permissions",
                    &format!("NOPERM User {user} has no permissions"),
                    1,
                ),
            ),
            other => other,
        }
    }

    /// What grants the command that was refused; `None`: it isn't a command that is.
    pub fn rule(&self) -> Option<String> {
        let Self::NotPermitted(what) = self else {
            return None;
        };
        let (command, _) = what.split_once(" to run the '")?.1.split_once('\'')?;
        Some(match command {
            // Redis 6 names the first word.
            "memory" => "+memory|usage".into(),
            "object" => "+object|freq".into(),
            command => format!("+{command}"),
        })
    }

    /// The same of a connection over which something was answered before.
    #[must_use]
    pub fn in_mid_run(self) -> Self {
        let is_silent = |what: &str| {
            ["no answer in time", "arse error", "nexpected"]
                .iter()
                .any(|other| what.contains(other))
        };
        match self {
            Self::Lost(what) if !is_silent(&what) && !what.starts_with(CLOSED) => {
                Self::Lost(format!("{CLOSED} ({what})"))
            }
            other => other,
        }
    }

    pub fn of_call(error: &redis::RedisError) -> Self {
        if let Some(code) = error.code() {
            let detail = error.detail();
            let text = words(code, detail);
            return match code {
                "NOPERM" => Self::NotPermitted(text),
                "LOADING" => Self::Loading(text),
                "NOAUTH" | "WRONGPASS" => Self::Login(text),
                _ => Self::Other(text),
            };
        }
        if error.kind() == redis::ErrorKind::AuthenticationFailed {
            return Self::Login("WRONGPASS: this user or password isn't accepted".into());
        }
        Self::Lost(plain(error))
    }

    /// All that is asked is refused for it: a script that runs for too long, a cluster or a link to the primary that is
    /// down, no room for another client, protected mode.
    pub fn is_for_all(&self) -> bool {
        let text = self.text();
        let begins = ["BUSY", "DENIED", "CLUSTERDOWN The cluster", "MASTERDOWN"];
        matches!(self, Self::Loading(_))
            || begins.iter().any(|begin| text.starts_with(begin))
            || text.contains("max number of clients")
    }

    pub fn text(&self) -> &str {
        match self {
            Self::Moved => "the key is on another node",
            Self::NotPermitted(text)
            | Self::Unknown(text)
            | Self::Loading(text)
            | Self::Login(text)
            | Self::Lost(text)
            | Self::Other(text) => text,
        }
    }

    pub fn at(&self, place: &str) -> RedisError {
        let why = match self {
            Self::Lost(_) => Why::Unreachable,
            Self::Login(_) => Why::Login,
            Self::Loading(_) => Why::Loading,
            Self::NotPermitted(_) => Why::NotPermitted,
            Self::Unknown(_) | Self::Moved | Self::Other(_) => Why::Other,
        };
        RedisError::Failed {
            place: place.to_owned(),
            what: self.text().to_owned(),
            why,
        }
    }
}

/// The connection's own words, without the library's around them.
fn plain(error: &redis::RedisError) -> String {
    if error.is_timeout() {
        return "no answer in time".into();
    }
    let said = error
        .detail()
        .map_or_else(|| error.to_string(), str::to_owned);
    if said.contains("CaUsedAsEndEntity") {
        return OWN_CA.into();
    }
    said
}

fn words(code: &str, detail: Option<&str>) -> String {
    match detail {
        Some(detail) => format!("{code} {detail}"),
        None => code.to_owned(),
    }
}

/// An answer, or what the server refused it for.
pub fn answer(value: Value) -> Result<Value, Refused> {
    match value {
        Value::ServerError(error) => Err(Refused::of(&error)),
        value => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_try() {
        let lost = |what: &str| Refused::Lost(what.into());
        let said = |what: &str| Refused::Other(what.into());
        for (refused, tried) in [
            (lost("Connection refused (os error 111)"), "listening there"),
            (lost("broken pipe"), "rediss://"),
            (lost("broken pipe").in_mid_run(), "was restarted"),
            (lost("no answer in time").in_mid_run(), "is it stopped"),
            (lost(OWN_CA), "CA:TRUE"),
            (said("ERR DB index is out of range"), "CONFIG GET databases"),
            (
                said("ERR SELECT is not allowed in cluster mode"),
                "without --redis-db",
            ),
            (
                said(&format!("{NO_SUCH_PRIMARY} \"cache\"")),
                "SENTINEL MASTERS",
            ),
            (
                said(&format!("this server {NO_HOTKEYS} (Redis 8.6 does)")),
                "--monitor",
            ),
        ] {
            let hint = refused.at("cache").hint().expect("a hint");
            assert!(hint.contains(tried), "{hint}");
        }
    }

    #[test]
    fn who_is_refused_and_what_grants_it() {
        let refused = |what: &str| Refused::NotPermitted(what.into()).of_user("ro");
        for (what, rule, grants) in [
            (
                "NOPERM this user has no permissions to run the 'memory' command or its subcommand",
                Some("+memory|usage"),
                "ro '+memory'",
            ),
            (
                "NOPERM User ro has no permissions to run the 'scan' command",
                Some("+scan"),
                "ro '+scan'",
            ),
            (
                "NOPERM No permissions to access a channel: &x",
                None,
                "ro '&x'",
            ),
        ] {
            let refused = refused(what);
            assert_eq!(refused.rule().as_deref(), rule, "{what}");
            let hint = refused.at("cache").hint().expect("a hint");
            assert!(hint.ends_with(&format!("ACL SETUSER {grants}")), "{hint}");
        }
    }

    #[test]
    fn what_grants_a_command_and_a_pattern_of_channels() {
        for (what, grants) in [
            (
                "NOPERM User ro has no permissions to run the 'config|get' command",
                "ro '+config|get'",
            ),
            (
                "NOPERM User ro has no permissions to run the 'psubscribe' command: &__keyevent@0__:*",
                "ro '+psubscribe' '&__keyevent@0__:*'",
            ),
            (
                "NOPERM No permissions to access a channel: &__keyevent@3__:*",
                "NAME '&__keyevent@3__:*'",
            ),
        ] {
            let said = format!("as an administrator: ACL SETUSER {grants}");
            assert_eq!(grant(what), said);
        }
    }
}
