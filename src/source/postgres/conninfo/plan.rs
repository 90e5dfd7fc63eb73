//! What a person gave, and the places that it leads to.

use std::time::Duration;

use super::keyvalue::quoted;
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
    /// Where none is given; the environment's isn't meant then.
    pub default_database: Option<&'static str>,
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

    /// `-d` for the next command, where host, port, user and database aren't the whole way to this place: a service, TLS
    /// files, an address beside the name. It leads to this one place, also where several were given. What plain variables
    /// of the environment gave, they give again; `DATABASE_URL` isn't looked at once an option names a place.
    pub fn conninfo(&self, spec: &ConnSpec) -> Option<String> {
        const PLACE: [&str; 5] = ["host", "hostaddr", "port", "user", "dbname"];
        // Of one place of several there is nothing left to choose.
        const CHOICE: [&str; 2] = ["load_balance_hosts", "target_session_attrs"];
        let several = self.places.len() > 1;
        let own: Vec<&Parameter> = self
            .parameters
            .iter()
            .filter(|p| p.origin.is_of_options() && !p.is_secret())
            .filter(|p| !(several && CHOICE.contains(&p.name.as_str())))
            .collect();
        if spec.name.is_some() && !several {
            return None;
        }
        let service = own.iter().find(|p| p.name == "service");
        let odd_name = spec.database.contains('=') || spec.database.contains("://");
        let plain = own.iter().all(|p| PLACE.contains(&p.name.as_str()));
        if plain && spec.hostaddr.is_none() && !odd_name {
            return None;
        }
        let mut words = Vec::new();
        let mut word = |name: &str, value: &str| words.push(format!("{name}={}", quoted(value)));
        if let Some(service) = service {
            word("service", &service.value);
        }
        if service.is_none() || several {
            if !spec.unnamed {
                word("host", &spec.host);
            }
            if let Some(address) = &spec.hostaddr {
                word("hostaddr", address);
            }
            word("port", &spec.port.to_string());
        }
        if service.is_none() {
            word("user", &spec.user);
            word("dbname", &spec.database);
        }
        for parameter in &own {
            let name = parameter.name.as_str();
            let placed = PLACE.contains(&name) && (service.is_none() || several);
            let of_place = placed && name != "user" && name != "dbname" || name == "service";
            let told = service.is_none() && (name == "user" || name == "dbname");
            if !of_place && !told {
                word(name, &parameter.value);
            }
        }
        Some(words.join(" "))
    }

    /// The place that is tried first: what a person calls this server.
    pub fn first(&self) -> &ConnSpec {
        &self.places[0]
    }
}
