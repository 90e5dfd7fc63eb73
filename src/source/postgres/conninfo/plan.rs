//! What a person gave, and the places that it leads to.

use std::time::Duration;

use super::options::{Options, SessionAttrs};
use crate::model::{Parameter, Secret};

/// What a person gave: flags, and a URL, a key=value string or a database name.
#[derive(Clone, Debug, Default)]
pub struct ConnInput {
    pub host: Option<String>,
    /// One port, or one for each host.
    pub port: Option<String>,
    pub user: Option<String>,
    /// A URL, a key=value string, or the bare name of a database.
    pub dbname: Option<String>,
    /// The name in `stanch.yaml` that led here: `dbname` is then what stands there.
    pub target_name: Option<String>,
}

/// One place and one login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnSpec {
    pub name: Option<String>,
    /// A host name, an address, or (with a leading slash) the directory of a unix socket.
    pub host: String,
    /// The address to go to instead of looking the name up.
    pub hostaddr: Option<String>,
    /// Only an address was given: there is no name that a certificate could be made out to.
    pub unnamed: bool,
    pub port: u16,
    pub user: String,
    pub database: String,
    pub password: Option<Secret>,
    pub options: Options,
}

impl ConnSpec {
    /// A place and a login, the rest by default.
    pub fn new(host: &str, port: u16, user: &str, database: &str) -> Self {
        Self {
            name: None,
            host: host.into(),
            hostaddr: None,
            unnamed: false,
            port,
            user: user.into(),
            database: database.into(),
            password: None,
            options: Options::default(),
        }
    }

    /// The file of the unix socket, where the host is a directory (or, with `@`, an abstract name).
    pub fn socket(&self) -> Option<String> {
        (self.hostaddr.is_none() && self.host.starts_with(['/', '@']))
            .then(|| format!("{}/.s.PGSQL.{}", self.host, self.port))
    }
}

/// Everything that one login may lead to.
#[derive(Clone, Debug)]
pub struct Plan {
    /// In the order to try; at least one.
    pub places: Vec<ConnSpec>,
    pub session: SessionAttrs,
    /// Hosts and addresses in random order.
    pub balanced: bool,
    /// Of one host, where a parameter gives it.
    pub connect_timeout: Option<Duration>,
    /// What was given and what stands by default.
    pub parameters: Vec<Parameter>,
    /// `-d` for the next command, where host, port, user and database aren't the whole way.
    pub conninfo: Option<String>,
    /// Words to say before connecting.
    pub warnings: Vec<String>,
}

impl From<ConnSpec> for Plan {
    /// One place, by nothing but itself.
    fn from(spec: ConnSpec) -> Self {
        Self {
            places: vec![spec],
            session: SessionAttrs::Any,
            balanced: false,
            connect_timeout: None,
            parameters: Vec::new(),
            conninfo: None,
            warnings: Vec::new(),
        }
    }
}

impl Plan {
    /// A password for every place that has none.
    pub fn give_password(&mut self, password: &Secret) {
        for place in &mut self.places {
            place.password.get_or_insert_with(|| password.clone());
        }
    }

    /// The place that is tried first: what a person calls this server.
    pub fn first(&self) -> &ConnSpec {
        &self.places[0]
    }
}
