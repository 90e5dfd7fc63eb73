//! How to connect: TLS, authentication and keepalives, each parameter with libpq's values and defaults.

use std::path::PathBuf;
use std::time::Duration;

use super::layer::Layer;
use super::{ConnInputError, Environment};
use crate::model::Secret;

/// Declares the closed set of words of a parameter.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $($variant),+ }

        impl $name {
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl Word for $name {
            const ONE_OF: &'static str = concat!("one of", $(" ", $word),+);

            fn parse(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

/// A value out of a closed set of words.
trait Word: Sized {
    /// All of them, for the person who wrote another.
    const ONE_OF: &'static str;

    fn parse(word: &str) -> Option<Self>;

    fn of(layer: &Layer, name: &'static str) -> Result<Option<Self>, ConnInputError> {
        let parse = |text| {
            Self::parse(text).ok_or(ConnInputError::BadValue {
                name,
                what: Self::ONE_OF,
            })
        };
        layer.text(name).map(parse).transpose()
    }
}

words! {
    /// `sslmode`, the weakest first.
    SslMode {
        Disable = "disable", Allow = "allow", Prefer = "prefer", Require = "require",
        VerifyCa = "verify-ca", VerifyFull = "verify-full",
    }
}
words! { Negotiation { Postgres = "postgres", Direct = "direct" } }
words! { ChannelBinding { Disable = "disable", Prefer = "prefer", Require = "require" } }
words! { CertMode { Disable = "disable", Allow = "allow", Require = "require" } }
words! {
    /// `target_session_attrs` (all six since PostgreSQL 14).
    SessionAttrs {
        Any = "any", ReadWrite = "read-write", ReadOnly = "read-only", Primary = "primary",
        Standby = "standby", PreferStandby = "prefer-standby",
    }
}
words! { Balance { Disable = "disable", Random = "random" } }
words! { GssMode { Disable = "disable", Prefer = "prefer", Require = "require" } }
words! {
    TlsVersion { V1_0 = "TLSv1", V1_1 = "TLSv1.1", V1_2 = "TLSv1.2", V1_3 = "TLSv1.3" }
}

/// Where the roots are that a server's certificate is checked against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Roots {
    /// Used where it exists; a mode that verifies needs it.
    File(PathBuf),
    System,
    /// No file was named and there is no home to look in.
    Nowhere,
}

/// The ways of authentication that `require_auth` allows (PostgreSQL 16's libpq).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthRule {
    methods: Vec<AuthMethod>,
    /// All but these, instead of only these.
    negated: bool,
}

words! {
    AuthMethod {
        Password = "password", Md5 = "md5", Gss = "gss", Sspi = "sspi", Scram = "scram-sha-256",
        Oauth = "oauth", None = "none",
    }
}

impl AuthRule {
    fn parse(text: &str) -> Result<Self, ConnInputError> {
        let words: Vec<&str> = text.split(',').collect();
        let negated = words.iter().filter(|word| word.starts_with('!')).count();
        if negated != 0 && negated != words.len() {
            return Err(ConnInputError::BadValue {
                name: "require_auth",
                what: "methods with ! and without can't be mixed",
            });
        }
        let mut methods = Vec::new();
        for word in words {
            let method = AuthMethod::parse(word.strip_prefix('!').unwrap_or(word)).ok_or(
                ConnInputError::BadValue {
                    name: "require_auth",
                    what: AuthMethod::ONE_OF,
                },
            )?;
            if methods.contains(&method) {
                return Err(ConnInputError::BadValue {
                    name: "require_auth",
                    what: "a method is named twice",
                });
            }
            methods.push(method);
        }
        Ok(Self {
            methods,
            negated: negated != 0,
        })
    }

    pub fn allows(&self, method: AuthMethod) -> bool {
        self.methods.contains(&method) != self.negated
    }
}

/// Keepalive probes of a TCP connection; `None`: the system's own times.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Keepalive {
    pub off: bool,
    pub idle: Option<Duration>,
    pub interval: Option<Duration>,
    pub count: Option<u32>,
    pub user_timeout: Option<Duration>,
}

/// How to connect, wherever it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub sslmode: SslMode,
    pub negotiation: Negotiation,
    pub channel_binding: ChannelBinding,
    pub roots: Roots,
    pub crl: Option<PathBuf>,
    pub crl_dir: Option<PathBuf>,
    /// Sent where it exists and the server asks for it.
    pub cert: Option<PathBuf>,
    pub key: Option<PathBuf>,
    pub cert_mode: CertMode,
    pub key_password: Option<Secret>,
    pub sni: bool,
    pub tls_min: TlsVersion,
    pub tls_max: Option<TlsVersion>,
    /// The operating system's user that must run the server behind a unix socket.
    pub require_peer: Option<String>,
    pub require_auth: Option<AuthRule>,
    pub keepalive: Keepalive,
}

impl Default for Options {
    /// libpq's, without a home to find certificates in.
    fn default() -> Self {
        Self {
            sslmode: SslMode::Prefer,
            negotiation: Negotiation::Postgres,
            channel_binding: ChannelBinding::Prefer,
            roots: Roots::Nowhere,
            crl: None,
            crl_dir: None,
            cert: None,
            key: None,
            cert_mode: CertMode::Allow,
            key_password: None,
            sni: true,
            tls_min: TlsVersion::V1_2,
            tls_max: None,
            require_peer: None,
            require_auth: None,
            keepalive: Keepalive::default(),
        }
    }
}

impl Options {
    /// # Errors
    /// A value that isn't one of its parameter's, or two that exclude each other.
    pub fn of(layer: &Layer, env: &Environment) -> Result<Self, ConnInputError> {
        let in_home = |name: &str| env.home().map(|home| home.join(".postgresql").join(name));
        let file = |name: &str| layer.text(name).map(PathBuf::from);
        let (roots, system) = match layer.text("sslrootcert") {
            Some("system") => (Roots::System, true),
            Some(path) => (Roots::File(path.into()), false),
            None => (
                in_home("root.crt").map_or(Roots::Nowhere, Roots::File),
                false,
            ),
        };
        let options = Self {
            sslmode: sslmode(layer, system)?,
            negotiation: Negotiation::of(layer, "sslnegotiation")?.unwrap_or(Negotiation::Postgres),
            channel_binding: ChannelBinding::of(layer, "channel_binding")?
                .unwrap_or(ChannelBinding::Prefer),
            roots,
            crl: file("sslcrl").or_else(|| {
                let both = layer.text("sslcrldir").is_none();
                both.then(|| in_home("root.crl")).flatten()
            }),
            crl_dir: file("sslcrldir"),
            cert: file("sslcert").or_else(|| in_home("postgresql.crt")),
            key: file("sslkey").or_else(|| in_home("postgresql.key")),
            cert_mode: CertMode::of(layer, "sslcertmode")?.unwrap_or(CertMode::Allow),
            key_password: layer.text("sslpassword").map(Secret::new),
            sni: switch(layer, "sslsni")?,
            tls_min: TlsVersion::of(layer, "ssl_min_protocol_version")?.unwrap_or(TlsVersion::V1_2),
            tls_max: TlsVersion::of(layer, "ssl_max_protocol_version")?,
            require_peer: layer.text("requirepeer").map(str::to_owned),
            require_auth: layer
                .text("require_auth")
                .map(AuthRule::parse)
                .transpose()?,
            keepalive: keepalive(layer)?,
        };
        options.check(layer, system)?;
        Ok(options)
    }

    /// What excludes each other.
    fn check(&self, layer: &Layer, system: bool) -> Result<(), ConnInputError> {
        if system && self.sslmode != SslMode::VerifyFull {
            return Err(ConnInputError::BadValue {
                name: "sslmode",
                what: "with sslrootcert=system only verify-full is safe",
            });
        }
        if self.negotiation == Negotiation::Direct && self.sslmode < SslMode::Require {
            return Err(ConnInputError::BadValue {
                name: "sslmode",
                what: "sslnegotiation=direct needs require, verify-ca or verify-full",
            });
        }
        if self.tls_max.is_some_and(|max| max < self.tls_min) {
            return Err(ConnInputError::BadValue {
                name: "ssl_max_protocol_version",
                what: "it is below ssl_min_protocol_version",
            });
        }
        if GssMode::of(layer, "gssencmode")? == Some(GssMode::Require) {
            return Err(ConnInputError::BadValue {
                name: "gssencmode",
                what: "encryption by GSSAPI isn't spoken here; TLS is (sslmode)",
            });
        }
        if layer
            .text("replication")
            .is_some_and(|word| !["false", "off", "no", "0"].contains(&word))
        {
            return Err(ConnInputError::BadValue {
                name: "replication",
                what: "connections for replication aren't made here",
            });
        }
        Ok(())
    }
}

fn sslmode(layer: &Layer, system: bool) -> Result<SslMode, ConnInputError> {
    let default = if system {
        SslMode::VerifyFull
    } else if layer
        .text("requiressl")
        .is_some_and(|word| word.starts_with('1'))
    {
        // The old spelling, which libpq still reads.
        SslMode::Require
    } else {
        SslMode::Prefer
    };
    Ok(SslMode::of(layer, "sslmode")?.unwrap_or(default))
}

/// `0` or `1`; on where nothing is given.
fn switch(layer: &Layer, name: &'static str) -> Result<bool, ConnInputError> {
    match layer.text(name) {
        None | Some("1") => Ok(true),
        Some("0") => Ok(false),
        Some(_) => Err(ConnInputError::BadValue {
            name,
            what: "0 or 1",
        }),
    }
}

/// A whole number, as libpq reads it.
pub fn number(layer: &Layer, name: &'static str) -> Result<Option<i32>, ConnInputError> {
    layer
        .text(name)
        .map(|text| text.trim().parse())
        .transpose()
        .map_err(|_| ConnInputError::BadValue {
            name,
            what: "a whole number",
        })
}

fn keepalive(layer: &Layer) -> Result<Keepalive, ConnInputError> {
    // 0 or less is the system's own.
    let positive = |name| {
        Ok(number(layer, name)?
            .and_then(|n| u32::try_from(n).ok())
            .filter(|n| *n > 0))
    };
    let seconds = |name| Ok(positive(name)?.map(|n| Duration::from_secs(n.into())));
    Ok(Keepalive {
        off: number(layer, "keepalives")? == Some(0),
        idle: seconds("keepalives_idle")?,
        interval: seconds("keepalives_interval")?,
        count: positive("keepalives_count")?,
        user_timeout: positive("tcp_user_timeout")?.map(|ms| Duration::from_millis(ms.into())),
    })
}

/// `target_session_attrs`.
pub fn session_attrs(layer: &Layer) -> Result<SessionAttrs, ConnInputError> {
    Ok(SessionAttrs::of(layer, "target_session_attrs")?.unwrap_or(SessionAttrs::Any))
}

/// `load_balance_hosts`: hosts and addresses in random order.
pub fn balanced(layer: &Layer) -> Result<bool, ConnInputError> {
    Ok(Balance::of(layer, "load_balance_hosts")? == Some(Balance::Random))
}
