//! Where a Redis is: `redis://`, `rediss://`, `unix://`, several seeds of a cluster, the sentinels of a primary.

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _};

use super::error::RedisError;

/// Certificates and keys, PEM, as `redis-cli --cacert --cert --key --insecure` has them.
#[derive(Clone, Default)]
pub struct TlsFiles {
    pub ca: Option<Vec<u8>>,
    pub client: Option<(Vec<u8>, Vec<u8>)>,
    /// Whoever answers is believed.
    pub insecure: bool,
}

impl TlsFiles {
    fn are_given(&self) -> bool {
        self.ca.is_some() || self.client.is_some() || self.insecure
    }
}

/// What stands behind the address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// One server; it may turn out to be a node of a cluster.
    Plain,
    Cluster,
    Sentinel {
        service: String,
    },
}

/// Where a Redis is, and as whom it is asked. It holds a password: it can't be printed but by `shown`.
#[derive(Clone)]
pub struct RedisAddress {
    pub(super) seeds: Vec<ConnectionInfo>,
    pub(super) kind: Kind,
    pub(super) tls: TlsFiles,
    shown: String,
}

/// Schemes of several hosts: what they stand for, and whether by TLS.
const SEVERAL: [(&str, bool, bool); 6] = [
    ("redis-sentinel", true, false),
    ("redis+sentinel", true, false),
    ("rediss-sentinel", true, true),
    ("redis-cluster", false, false),
    ("redis+cluster", false, false),
    ("rediss-cluster", false, true),
];

impl RedisAddress {
    /// # Errors
    /// When it is none.
    pub fn parse(url: &str) -> Result<Self, RedisError> {
        let wrong = || RedisError::Address(shape(url));
        let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
        let several = SEVERAL.iter().find(|(name, ..)| *name == scheme);
        let (kind, seeds) = match several {
            Some((_, sentinel, tls)) => several_hosts(rest, *sentinel, *tls).ok_or_else(wrong)?,
            None => (Kind::Plain, vec![one(url).ok_or_else(wrong)?]),
        };
        let mut address = Self {
            seeds,
            kind,
            tls: TlsFiles::default(),
            shown: String::new(),
        };
        address.name();
        Ok(address)
    }

    /// Another database than the address's.
    #[must_use]
    pub fn in_database(mut self, database: u32) -> Self {
        self.each(|info| {
            let settings = info.redis_settings().clone().set_db(database.into());
            info.set_redis_settings(settings)
        });
        self
    }

    /// The password that stands elsewhere (`REDISCLI_AUTH`), where the address has none.
    #[must_use]
    pub fn or_password(mut self, password: &str) -> Self {
        if !self.has_password() {
            self.each(|info| {
                let settings = info.redis_settings().clone().set_password(password);
                info.set_redis_settings(settings)
            });
        }
        self
    }

    /// With these files; the address must be one of TLS.
    ///
    /// # Errors
    /// When it isn't.
    pub fn with_tls(mut self, tls: TlsFiles) -> Result<Self, RedisError> {
        if tls.are_given() && !self.is_tls() {
            return Err(RedisError::NoTls(self.shown));
        }
        if tls.insecure {
            self.each(|info| match info.addr().clone() {
                ConnectionAddr::TcpTls {
                    host,
                    port,
                    tls_params,
                    ..
                } => info.set_addr(ConnectionAddr::TcpTls {
                    host,
                    port,
                    insecure: true,
                    tls_params,
                }),
                _ => info,
            });
        }
        self.tls = tls;
        Ok(self)
    }

    /// Without login and password.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Whether a password stands in it.
    pub fn has_password(&self) -> bool {
        self.seeds
            .iter()
            .any(|info| info.redis_settings().password().is_some())
    }

    /// The hosts (or sockets) that it names.
    pub fn hosts(&self) -> Vec<String> {
        let host = |info: &ConnectionInfo| match info.addr() {
            ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. } => host.clone(),
            ConnectionAddr::Unix(path) => path.display().to_string(),
            _ => info.addr().to_string(),
        };
        self.seeds.iter().map(host).collect()
    }

    /// For whoever must see to it that it stands nowhere.
    pub fn password(&self) -> Option<&str> {
        let with = |info: &'_ ConnectionInfo| info.redis_settings().password().is_some();
        let seed = self.seeds.iter().find(|info| with(info))?;
        seed.redis_settings().password()
    }

    pub fn is_tls(&self) -> bool {
        self.seeds
            .iter()
            .any(|info| matches!(info.addr(), ConnectionAddr::TcpTls { .. }))
    }

    pub fn user(&self) -> Option<&str> {
        self.seeds.first()?.redis_settings().username()
    }

    pub fn database(&self) -> u32 {
        let db = self
            .seeds
            .first()
            .map_or(0, |info| info.redis_settings().db());
        u32::try_from(db).unwrap_or_default()
    }

    fn each(&mut self, change: impl Fn(ConnectionInfo) -> ConnectionInfo) {
        self.seeds = self.seeds.drain(..).map(change).collect();
        self.name();
    }

    fn name(&mut self) {
        let hosts: Vec<String> = self
            .seeds
            .iter()
            .map(|info| info.addr().to_string())
            .collect();
        let what = match &self.kind {
            Kind::Plain => String::new(),
            Kind::Cluster => "cluster at ".into(),
            Kind::Sentinel { service } => format!("{service}, by the sentinels at "),
        };
        self.shown = format!("{what}{}, database {}", hosts.join(","), self.database());
    }
}

fn one(url: &str) -> Option<ConnectionInfo> {
    let info = url.into_connection_info().ok()?;
    // Nothing is told to the server that isn't asked for.
    let settings = info.redis_settings().clone().set_skip_set_lib_name();
    Some(info.set_redis_settings(settings))
}

/// `login@host:port,host:port/path#fragment`: each host as a URL of its own.
///
/// The primary's name is the fragment (`#mymaster`), a word of the path (`/mymaster/0`), or a parameter
/// (`?sentinelMasterId=mymaster`), as other clients spell it; without one `mymaster`, the default of the sentinels.
fn several_hosts(rest: &str, sentinel: bool, tls: bool) -> Option<(Kind, Vec<ConnectionInfo>)> {
    let (rest, fragment) = rest
        .split_once('#')
        .map_or((rest, None), |(a, b)| (a, Some(b)));
    let (rest, query) = rest.split_once('?').map_or((rest, ""), |(a, b)| (a, b));
    let (login, rest) = rest.rsplit_once('@').map_or(("", rest), |(a, b)| (a, b));
    let (hosts, path) = rest.split_once('/').map_or((rest, ""), |(a, b)| (a, b));
    let words = || path.split('/').filter(|word| !word.is_empty());
    let database = words()
        .find_map(|word| word.parse::<u32>().ok())
        .unwrap_or(0);
    let parameter = query.split('&').find_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        ["sentinelMasterId", "master", "service_name"]
            .contains(&name)
            .then_some(value)
    });
    let service = fragment
        .filter(|text| *text != "insecure")
        .or(parameter)
        .or_else(|| words().find(|word| word.parse::<u32>().is_err()))
        .unwrap_or("mymaster");
    let scheme = if tls { "rediss" } else { "redis" };
    let at = if login.is_empty() { "" } else { "@" };
    let port = if sentinel { 26379 } else { 6379 };
    let seeds: Option<Vec<ConnectionInfo>> = hosts
        .split(',')
        .map(|host| {
            let has_port = host.rsplit_once(':').is_some_and(|(_, port)| {
                !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit())
            });
            let host = if has_port {
                host.to_owned()
            } else {
                format!("{host}:{port}")
            };
            one(&format!("{scheme}://{login}{at}{host}/{database}"))
        })
        .collect();
    let kind = if sentinel {
        Kind::Sentinel {
            service: service.to_owned(),
        }
    } else {
        Kind::Cluster
    };
    Some((kind, seeds?))
}

/// For a message: the scheme. A password may stand anywhere after it, or be all that there is.
fn shape(url: &str) -> String {
    let is_scheme = |c: char| c.is_ascii_lowercase() || c == '+' || c == '-';
    match url.split_once("://") {
        Some((scheme, _)) if scheme.chars().all(is_scheme) => format!("{scheme}://…"),
        _ => "…".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> RedisAddress {
        RedisAddress::parse(url).unwrap_or_else(|e| panic!("{url}: {e}"))
    }

    #[test]
    fn an_address_is_shown_without_its_password() {
        let address = parsed("redis://u:hunter2@cache:6380/3");
        assert_eq!(address.shown(), "cache:6380, database 3");
        assert!(address.has_password());
        let bad = RedisAddress::parse("redis://u:hunter2@[")
            .map(|_| ())
            .expect_err("none");
        assert!(!bad.to_string().contains("hunter2"), "{bad}");
        for (none, shown) in [
            ("cache", "\"…\""),
            ("hunter2@cache", "\"…\""),
            ("http://cache", "\"http://…\""),
            ("redis://:hunter2/0", "\"redis://…\""),
            ("redis://u:hunter2", "\"redis://…\""),
            ("unix:///x?db=a&pass=hunter2", "\"unix://…\""),
            ("redis-sentinel://u:hunter2@h:x:y", "\"redis-sentinel://…\""),
            ("redis-cluster://u:hunter2", "\"redis-cluster://…\""),
        ] {
            let error = RedisAddress::parse(none).map(|_| ()).expect_err(none);
            let begins = format!("{shown} is no address");
            assert!(error.to_string().starts_with(&begins), "{error}");
        }
    }

    #[test]
    fn every_way_of_spelling_sentinels_and_clusters() {
        for (url, shown) in [
            (
                "redis-sentinel://:pw@a:1,b/2#main",
                "main, by the sentinels at a:1,b:26379, database 2",
            ),
            (
                "redis+sentinel://a/main/1",
                "main, by the sentinels at a:26379, database 1",
            ),
            (
                "redis-sentinel://a?sentinelMasterId=main",
                "main, by the sentinels at a:26379, database 0",
            ),
            (
                "rediss-sentinel://a",
                "mymaster, by the sentinels at a:26379, database 0",
            ),
            (
                "redis-cluster://u:pw@a:7000,b:7001",
                "cluster at a:7000,b:7001, database 0",
            ),
            ("unix:///run/redis.sock?db=4", "/run/redis.sock, database 4"),
            ("rediss://cache", "cache:6379, database 0"),
        ] {
            assert_eq!(parsed(url).shown(), shown, "{url}");
        }
        assert!(parsed("rediss-cluster://a").is_tls() && parsed("valkeys://a").is_tls());
    }

    #[test]
    fn a_database_a_password_and_files_of_another_place() {
        let address = parsed("redis://cache").in_database(7).or_password("pw");
        assert_eq!((address.database(), address.has_password()), (7, true));
        let tls = TlsFiles {
            insecure: true,
            ..TlsFiles::default()
        };
        assert!(parsed("redis://cache").with_tls(tls.clone()).is_err());
        assert!(parsed("rediss://cache").with_tls(tls).is_ok());
    }
}
