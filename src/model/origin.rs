//! Where a connection parameter was given: told by `doctor`, so that nobody has to guess which file or variable won.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The place that gave a value, nearest to the person first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Origin {
    /// An option of the command line.
    Flag {
        option: String,
    },
    /// The URL of `-d`.
    Url,
    /// The key=value string, or the database name, of `-d`.
    Conninfo,
    /// A target of `stanch.yaml`.
    Target {
        name: String,
    },
    /// A service of `pg_service.conf`.
    Service {
        name: String,
        file: String,
    },
    Environment {
        variable: String,
    },
    Passfile {
        file: String,
    },
    /// The name of the operating system's user.
    System,
    Default,
}

impl Origin {
    pub fn flag(option: &str) -> Self {
        Self::Flag {
            option: option.into(),
        }
    }

    pub fn environment(variable: &str) -> Self {
        Self::Environment {
            variable: variable.into(),
        }
    }

    pub fn service(name: &str, file: &Path) -> Self {
        Self::Service {
            name: name.into(),
            file: file.display().to_string(),
        }
    }

    /// It isn't found again in files or the environment by a command without the same options.
    pub fn is_of_options(&self) -> bool {
        matches!(
            self,
            Self::Flag { .. } | Self::Url | Self::Conninfo | Self::Target { .. }
        ) || *self == Self::environment("DATABASE_URL")
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag { option } => f.write_str(option),
            Self::Url => f.write_str("URL"),
            Self::Conninfo => f.write_str("-d"),
            Self::Target { name } => write!(f, "target {name} of stanch.yaml"),
            Self::Service { name, file } => write!(f, "service {name} in {file}"),
            Self::Environment { variable } => f.write_str(variable),
            Self::Passfile { file } => f.write_str(file),
            Self::System => f.write_str("name of the operating system's user"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// One parameter as it was used. A secret's value is never in here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameter {
    pub name: String,
    pub value: String,
    pub origin: Origin,
}

impl Parameter {
    /// What stands for a value that is never shown.
    pub const SECRET: &str = "(not shown)";

    pub fn is_secret(&self) -> bool {
        self.value == Self::SECRET
    }
}

/// What protects the connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tls {
    /// `TLSv1.3`, as PostgreSQL writes it.
    pub version: String,
    pub cipher: String,
    /// How far the server's certificate was checked.
    pub verified: Verified,
    /// A client certificate was sent.
    pub client_certificate: bool,
}

/// How far the server's certificate was checked, by libpq's modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verified {
    /// Not at all (`sslmode=require` without a root certificate, `prefer`, `allow`).
    No,
    /// Signed by a trusted root (`verify-ca`).
    Authority,
    /// And made out to this host (`verify-full`).
    Host,
}

/// How the connection was had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    pub parameters: Vec<Parameter>,
    /// `None`: in clear, or over a unix socket.
    pub tls: Option<Tls>,
}
