//! Where to connect and as whom: flags, a URL, `PG*` and `DATABASE_URL`, in that order of precedence.

use std::collections::BTreeMap;
use std::path::Path;

use percent_encoding::percent_decode_str;

use crate::model::Secret;

/// The environment that was read at the edge and handed down.
pub type Environment = BTreeMap<String, String>;

/// What a person gave: flags, and a URL or a database name.
#[derive(Clone, Debug, Default)]
pub struct ConnInput {
    pub host: Option<String>,
    pub port: Option<u16>,
    pub user: Option<String>,
    /// A URL, or the bare name of a database.
    pub dbname: Option<String>,
    /// The name in `stanch.yaml` that led here.
    pub target_name: Option<String>,
}

/// One place and one login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnSpec {
    pub name: Option<String>,
    /// A host name, an address, or (with a leading slash) the directory of a unix socket.
    pub host: String,
    pub port: u16,
    pub user: String,
    pub database: String,
    pub password: Option<Secret>,
}

/// What is wrong with what a person gave. Never repeats the text itself: it may hold a password.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ConnInputError {
    #[error("not a PostgreSQL URL: {0}")]
    BadUrl(String),
    #[error("{0}: port must be 1 to 65535")]
    BadPort(&'static str),
    #[error(
        "key=value connection strings and services aren't read; give a URL: postgresql://user@host:port/database"
    )]
    KeyValue,
    #[error("DATABASE_URL: {0}")]
    DatabaseUrl(String),
    #[error("{0} is set, which isn't read: give the place with -h, -d URL or PGHOST")]
    Unread(&'static str),
    #[error("sslmode={0} asks for TLS, and this version connects in clear only: not connecting")]
    TlsRequired(String),
}

/// Parts of a URL, each where it was given.
#[derive(Default)]
struct Parts {
    host: Option<String>,
    port: Option<u16>,
    user: Option<String>,
    password: Option<Secret>,
    database: Option<String>,
    sslmode: Option<String>,
    /// It was a whole URL: what it leaves out is the default, not another URL's.
    is_url: bool,
}

impl ConnSpec {
    /// Flag > URL > `PG*` > `DATABASE_URL` > libpq's defaults.
    ///
    /// # Errors
    /// When a value can't be read, or asks for what would not be kept (TLS).
    pub fn resolve(input: &ConnInput, env: &Environment) -> Result<Self, ConnInputError> {
        let flags = Parts {
            host: input.host.clone(),
            port: input.port,
            user: input.user.clone(),
            ..Parts::default()
        };
        let given = match input.dbname.as_deref() {
            Some(text) if is_url(text) => parse_url(text)?,
            Some(text) if text.contains('=') => return Err(ConnInputError::KeyValue),
            Some(name) => Parts {
                database: Some(name.to_owned()),
                ..Parts::default()
            },
            None => Parts::default(),
        };
        let from_env = env_parts(env)?;
        let first = [flags, given, from_env];
        if !first[..2]
            .iter()
            .any(|parts| parts.host.is_some() || parts.is_url)
        {
            refuse_unread(env)?;
        }
        let database_url = database_url(env, &first)?;
        let [flags, given, from_env] = first;
        let layers = [flags, given, from_env, database_url];
        let sslmode = layers.iter().find_map(|p| p.sslmode.clone());
        if let Some(mode) =
            sslmode.filter(|m| matches!(m.as_str(), "require" | "verify-ca" | "verify-full"))
        {
            return Err(ConnInputError::TlsRequired(mode));
        }
        let port = layers.iter().find_map(|p| p.port).unwrap_or(5432);
        let user = layers
            .iter()
            .find_map(|p| p.user.clone())
            .or_else(|| env.get("USER").cloned())
            .or_else(|| env.get("LOGNAME").cloned())
            .unwrap_or_else(|| "postgres".into());
        Ok(Self {
            // With another place or login than the target's, its name would lead the next command astray.
            name: input
                .target_name
                .clone()
                .filter(|_| input.host.is_none() && input.port.is_none() && input.user.is_none()),
            host: layers
                .iter()
                .find_map(|p| p.host.clone())
                .unwrap_or_else(|| default_host(port)),
            port,
            database: layers
                .iter()
                .find_map(|p| p.database.clone())
                .unwrap_or_else(|| user.clone()),
            password: layers.iter().find_map(|p| p.password.clone()),
            user,
        })
    }

    /// The file of the unix socket, where the host is a directory.
    pub fn socket(&self) -> Option<String> {
        self.host
            .starts_with('/')
            .then(|| format!("{}/.s.PGSQL.{}", self.host, self.port))
    }

    /// The text is a URL with a password in it: on a command line others can read it.
    pub fn url_has_password(text: &str) -> bool {
        is_url(text) && parse_url(text).is_ok_and(|parts| parts.password.is_some())
    }

    /// `DATABASE_URL` would be looked at for the place, and is a URL of something else.
    pub fn passes_over_database_url(input: &ConnInput, env: &Environment) -> bool {
        let placed = input.host.is_some()
            || input.dbname.as_deref().is_some_and(is_url)
            || env.get("PGHOST").is_some_and(|host| !host.is_empty());
        !placed
            && env
                .get("DATABASE_URL")
                .is_some_and(|url| !url.is_empty() && postgres_url(url).is_none())
    }

    /// What is wrong with the `db` of a target: it is a URL or a database name, without a password.
    ///
    /// # Errors
    /// The fault in words.
    pub fn check_target(text: &str) -> Result<(), String> {
        if !is_url(text) {
            let name = !text.contains('=');
            return if name {
                Ok(())
            } else {
                Err(ConnInputError::KeyValue.to_string())
            };
        }
        match parse_url(text) {
            Ok(parts) if parts.password.is_some() => {
                Err("a password doesn't belong in this file; use PGPASSWORD".into())
            }
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

fn is_url(text: &str) -> bool {
    text.contains("://")
}

fn non_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// Variables that name a place in a way that isn't read here: without a word another server would be looked at.
fn refuse_unread(env: &Environment) -> Result<(), ConnInputError> {
    ["PGSERVICE", "PGHOSTADDR"]
        .into_iter()
        .find(|name| env.get(*name).is_some_and(|value| !value.is_empty()))
        .map_or(Ok(()), |name| Err(ConnInputError::Unread(name)))
}

/// `DATABASE_URL`, where nothing else says which server is meant: its login and password have no business elsewhere.
/// Many applications keep URLs of other kinds there, and parameters of their drivers.
fn database_url(env: &Environment, first: &[Parts]) -> Result<Parts, ConnInputError> {
    let Some(url) = env.get("DATABASE_URL").filter(|_| !first[1].is_url) else {
        return Ok(Parts::default());
    };
    let Some(url) = postgres_url(url) else {
        return Ok(Parts::default());
    };
    if first.iter().any(|parts| parts.host.is_some()) {
        return Ok(Parts::default());
    }
    let known = |pair: &&str| {
        pair.split('=')
            .next()
            .is_some_and(|key| OWN_PARAMETERS.contains(&key))
    };
    let (place, query) = url.split_once('?').unwrap_or((&url, ""));
    let query: Vec<&str> = query.split('&').filter(known).collect();
    let parts = parse_url(&format!("{place}?{}", query.join("&")))
        .map_err(|error| ConnInputError::DatabaseUrl(error.to_string()))?;
    let given = |part: fn(&Parts) -> Option<String>| first.iter().find_map(part);
    let differs = |part: fn(&Parts) -> Option<String>| {
        given(part).is_some_and(|value| Some(value) != part(&parts))
    };
    // Its password is for its own login at its own port.
    let other = differs(|parts| parts.user.clone())
        || differs(|parts| parts.port.map(|port| port.to_string()));
    Ok(if other {
        Parts {
            password: None,
            ..parts
        }
    } else {
        parts
    })
}

/// `postgresql+driver://…` is how some applications spell it.
fn postgres_url(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = scheme.split('+').next()?;
    matches!(scheme, "postgresql" | "postgres").then(|| format!("postgresql://{rest}"))
}

/// Parameters of a URL that change where it leads, or how.
const OWN_PARAMETERS: [&str; 6] = ["host", "port", "user", "password", "dbname", "sslmode"];

fn env_parts(env: &Environment) -> Result<Parts, ConnInputError> {
    let get = |key: &str| env.get(key).and_then(|value| non_empty(value));
    Ok(Parts {
        host: get("PGHOST"),
        port: get("PGPORT")
            .map(|p| parse_port(&p, "PGPORT"))
            .transpose()?,
        user: get("PGUSER"),
        password: get("PGPASSWORD").map(Secret::new),
        database: get("PGDATABASE"),
        is_url: false,
        sslmode: get("PGSSLMODE").map(check_sslmode).transpose()?,
    })
}

fn parse_port(text: &str, place: &'static str) -> Result<u16, ConnInputError> {
    text.parse()
        .ok()
        .filter(|port| *port > 0)
        .ok_or(ConnInputError::BadPort(place))
}

/// The first usual socket directory that has a server's socket, else `localhost`.
fn default_host(port: u16) -> String {
    ["/var/run/postgresql", "/tmp"]
        .into_iter()
        .find(|dir| Path::new(dir).join(format!(".s.PGSQL.{port}")).exists())
        .unwrap_or("localhost")
        .to_owned()
}

fn bad(what: &str) -> ConnInputError {
    ConnInputError::BadUrl(what.to_owned())
}

fn decode(text: &str) -> Result<String, ConnInputError> {
    let decoded = percent_decode_str(text)
        .decode_utf8()
        .map_err(|_| bad("a %-escape is not UTF-8"))?;
    if decoded.contains('\0') {
        return Err(bad("it contains a zero byte"));
    }
    Ok(decoded.into_owned())
}

/// `postgresql://[user[:password]@][host][:port][/database][?key=value&…]`
fn parse_url(url: &str) -> Result<Parts, ConnInputError> {
    let rest = url
        .strip_prefix("postgresql://")
        .or_else(|| url.strip_prefix("postgres://"))
        .ok_or_else(|| bad("it must begin with postgresql:// or postgres://"))?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    if rest.matches('@').count() > 1 {
        return Err(bad(
            "a second '@': write '@', '/' and ':' in a user or password as %40, %2F and %3A",
        ));
    }
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    let mut parts = Parts {
        is_url: true,
        database: non_empty(&decode(database)?),
        ..Parts::default()
    };
    let place = match authority.split_once('@') {
        Some((login, place)) => {
            let (user, password) = login
                .split_once(':')
                .map_or((login, None), |(u, p)| (u, Some(p)));
            parts.user = non_empty(&decode(user)?);
            parts.password = password
                .map(decode)
                .transpose()?
                .filter(|p| !p.is_empty())
                .map(Secret::new);
            place
        }
        None => authority,
    };
    if place.contains(',') {
        return Err(bad("several hosts in one URL"));
    }
    let (host, port) = split_host_port(place)?;
    parts.host = non_empty(&decode(host)?);
    parts.port = port
        .filter(|p| !p.is_empty())
        .map(|p| parse_port(p, "URL"))
        .transpose()?;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair
            .split_once('=')
            .ok_or_else(|| bad("a parameter without '='"))?;
        let value = decode(value)?;
        match decode(key)?.as_str() {
            "host" => parts.host = non_empty(&value),
            "port" => parts.port = Some(parse_port(&value, "URL")?),
            "user" => parts.user = non_empty(&value),
            "password" => parts.password = non_empty(&value).map(Secret::new),
            "dbname" => parts.database = non_empty(&value),
            "sslmode" => parts.sslmode = Some(check_sslmode(value)?),
            // Ours are given by flags, and nothing else of libpq's changes where a URL leads.
            "application_name"
            | "fallback_application_name"
            | "connect_timeout"
            | "client_encoding" => {}
            other => {
                // What isn't a name of libpq's may be the rest of a password with an unescaped `&`.
                let named = LIBPQ_PARAMETERS.contains(&other);
                return Err(bad(&if named {
                    format!("parameter {other} isn't read here")
                } else {
                    "an unknown parameter (write a '&' in a password as %26)".to_owned()
                }));
            }
        }
    }
    Ok(parts)
}

const LIBPQ_PARAMETERS: [&str; 16] = [
    "hostaddr",
    "passfile",
    "options",
    "keepalives",
    "tcp_user_timeout",
    "replication",
    "gssencmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "sslnegotiation",
    "channel_binding",
    "require_auth",
    "service",
    "target_session_attrs",
    "load_balance_hosts",
];

fn check_sslmode(mode: String) -> Result<String, ConnInputError> {
    match mode.as_str() {
        "disable" | "allow" | "prefer" | "require" | "verify-ca" | "verify-full" => Ok(mode),
        _ => Err(bad(
            "sslmode is one of disable, allow, prefer, require, verify-ca, verify-full",
        )),
    }
}

/// `host:port`, `[::1]:port`, `host`.
fn split_host_port(place: &str) -> Result<(&str, Option<&str>), ConnInputError> {
    if let Some(inside) = place.strip_prefix('[') {
        let (host, after) = inside
            .split_once(']')
            .ok_or_else(|| bad("'[' without ']'"))?;
        return match after.strip_prefix(':') {
            Some(port) => Ok((host, Some(port))),
            None if after.is_empty() => Ok((host, None)),
            None => Err(bad("text between ']' and the port")),
        };
    }
    Ok(place
        .split_once(':')
        .map_or((place, None), |(host, port)| (host, Some(port))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(dbname: &str, env: &[(&str, &str)]) -> Result<ConnSpec, ConnInputError> {
        let env = env
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        let dbname = non_empty(dbname);
        ConnSpec::resolve(
            &ConnInput {
                dbname,
                ..ConnInput::default()
            },
            &env,
        )
    }

    fn shown(spec: &ConnSpec) -> String {
        let password = spec.password.as_ref().map_or("-", Secret::expose);
        format!(
            "{}:{password}@{}:{}/{}",
            spec.user, spec.host, spec.port, spec.database
        )
    }

    #[test]
    fn urls_in_all_their_forms() {
        let cases = [
            ("postgresql://u:p@h:1/d", "u:p@h:1/d"),
            ("postgres://u@h", "u:-@h:5432/u"),
            ("postgresql://u:p%40%3A@[::1]:7/d%20b", "u:p@:@::1:7/d b"),
            ("postgresql://u@%2Ftmp%2Fx/d", "u:-@/tmp/x:5432/d"),
            (
                "postgresql:///d?host=/tmp/x&port=9&user=u&password=p",
                "u:p@/tmp/x:9/d",
            ),
            (
                "postgresql://u@h:/d?sslmode=prefer&connect_timeout=3",
                "u:-@h:5432/d",
            ),
        ];
        for (url, want) in cases {
            let spec = resolve(url, &[]).unwrap_or_else(|e| panic!("{url}: {e}"));
            assert_eq!(shown(&spec), want, "{url}");
        }
    }

    #[test]
    fn bad_urls_say_what_is_wrong_and_never_the_password() {
        for url in [
            "mysql://u:hunter2@h/d",
            "postgresql://u:hunter2@ss@h/d",
            "postgresql://u:hunter2@s/w@h/d",
            "postgresql://u@h/d?password=ab&hunter2=x",
            "postgresql://u:hunter2@h:0/d",
            "postgresql://u:hunter2@h:x/d",
            "postgresql://u:hunter2@h/d?nonsense=1",
            "postgresql://u:hunter2@h/d?sslmode=maybe",
            "postgresql://u:hunter2@h,i/d",
            "postgresql://u:hunter2%ff@h/d",
            "postgresql://u:hunter2@[::1/d",
        ] {
            let error = resolve(url, &[]).expect_err(url).to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
        assert_eq!(
            resolve("host=x dbname=y", &[]),
            Err(ConnInputError::KeyValue)
        );
    }

    #[test]
    fn precedence_is_flag_url_env_database_url() {
        let env: Environment = [
            ("PGHOST", "envhost"),
            ("PGUSER", "envuser"),
            ("PGPASSWORD", "envpass"),
            ("DATABASE_URL", "postgresql://du:dp@dh:99/dd"),
        ]
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .into();
        let input = ConnInput {
            host: Some("flaghost".into()),
            dbname: Some("postgresql://urluser@urlhost/urldb".into()),
            ..ConnInput::default()
        };
        assert_eq!(
            shown(&ConnSpec::resolve(&input, &env).expect("a spec")),
            "urluser:envpass@flaghost:5432/urldb"
        );
        let none = ConnSpec::resolve(&ConnInput::default(), &env).expect("a spec");
        assert_eq!(shown(&none), "envuser:envpass@envhost:5432/envuser");
        let only: Environment = [("DATABASE_URL", "postgresql://du:dp@dh:99/dd")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into();
        let none = ConnSpec::resolve(&ConnInput::default(), &only).expect("a spec");
        assert_eq!(shown(&none), "du:dp@dh:99/dd");
        // Its password goes to no other host and to no other login.
        let input = ConnInput {
            host: Some("other".into()),
            ..ConnInput::default()
        };
        let other = ConnSpec::resolve(&input, &only).expect("a spec");
        assert_eq!((other.password, other.port), (None, 5432));
        let input = ConnInput {
            user: Some("du".into()),
            ..ConnInput::default()
        };
        let same = ConnSpec::resolve(&input, &only).expect("a spec");
        assert_eq!(
            same.password.as_ref().map(Secret::expose),
            Some("dp"),
            "it is its own login"
        );
        let input = ConnInput {
            dbname: Some("postgresql:///shop".into()),
            ..ConnInput::default()
        };
        let local = ConnSpec::resolve(&input, &only).expect("a spec");
        assert_eq!(
            (local.port, local.password, local.database.as_str()),
            (5432, None, "shop")
        );
        let input = ConnInput {
            user: Some("other".into()),
            ..ConnInput::default()
        };
        let other = ConnSpec::resolve(&input, &only).expect("a spec");
        assert_eq!((other.password, other.host.as_str()), (None, "dh"));
    }

    #[test]
    fn what_applications_keep_in_database_url_is_no_fault() {
        let user =
            |url: &str| resolve("", &[("DATABASE_URL", url), ("USER", "me")]).map(|spec| spec.user);
        assert_eq!(user("mysql://u@h/d"), Ok("me".into()));
        assert_eq!(user("postgresql+asyncpg://u@h/d"), Ok("u".into()));
        assert_eq!(
            user("postgresql://u@h/d?schema=public&pool=5"),
            Ok("u".into())
        );
        assert!(
            resolve(
                "postgresql://u@h/d",
                &[("DATABASE_URL", "postgresql://u@h:x/d")]
            )
            .is_ok()
        );
    }

    #[test]
    fn a_place_that_is_not_read_is_not_passed_over() {
        assert_eq!(
            resolve("d", &[("PGSERVICE", "prod")]),
            Err(ConnInputError::Unread("PGSERVICE"))
        );
        assert_eq!(
            resolve("", &[("PGHOSTADDR", "::1")]),
            Err(ConnInputError::Unread("PGHOSTADDR"))
        );
        assert!(resolve("postgresql://u@h/d", &[("PGSERVICE", "prod")]).is_ok());
    }

    #[test]
    fn tls_is_never_quietly_left_out() {
        let want = Err(ConnInputError::TlsRequired("require".into()));
        assert_eq!(resolve("postgresql://u@h/d?sslmode=require", &[]), want);
        assert_eq!(resolve("d", &[("PGSSLMODE", "require")]), want);
        assert!(
            resolve(
                "postgresql://u@h/d?sslmode=disable",
                &[("PGSSLMODE", "require")]
            )
            .is_ok()
        );
    }
}
