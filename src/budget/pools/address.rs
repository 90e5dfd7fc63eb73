//! Whoever knows where the database is connects: how many isn't known where nothing says it, and it is never nothing.

use super::super::count::{At, Count, Source};
use super::super::libraries::ADDRESSES;
use super::super::sources::{Container, Role, WholeMap};
use super::super::spec::Unknown;
use super::{Known, Pool, Reading};

impl Reading<'_> {
    /// A variable that says where the database is, unless it is of another kind.
    pub(super) fn address(&self) -> Option<(String, At)> {
        let other = |text: &str| {
            let scheme = text.split_once("://").map(|(scheme, _)| scheme);
            scheme.is_some_and(|scheme| !scheme.to_lowercase().contains("postgres"))
        };
        let named = ADDRESSES
            .iter()
            .filter_map(|name| self.env.get_key_value(*name));
        let strings = self
            .env
            .iter()
            .filter(|(name, _)| name.starts_with("ConnectionStrings__"));
        let mut all = named.chain(strings);
        let (name, (_, at)) = all.find(|(_, (text, _))| !text.as_deref().is_some_and(other))?;
        Some((name.clone(), at.clone()))
    }

    /// What runs before the application connects once, and is gone when that begins.
    pub(super) fn migrates(mut self, at: At) -> Pool {
        self.from.push(Source::assumed(
            "connections (runs before the others)",
            1,
            Some(at),
        ));
        self.done(Count::known(1), Count::known(1))
    }

    pub(super) fn connects(mut self, name: &str, at: At) -> Pool {
        let processes = self.workers();
        self.unknown = Some(Unknown {
            what: format!(
                "how many connections a process of container {} opens: it has {name}",
                self.container.name
            ),
            settle: "an annotation stanch.dev/connections or stanch.dev/pool (the library: node-pg, …), or budget.yaml".into(),
            at: Some(at),
        });
        self.done(processes, Count::at_least(0))
    }
}

/// Where the environment says that the database is.
pub fn address(env: &Known) -> Option<(String, Option<u16>)> {
    let text = |name: &str| env.get(name).and_then(|(text, _)| text.as_deref());
    let of_url = ADDRESSES
        .iter()
        .chain(&["SPRING_DATASOURCE_URL"])
        .find_map(|name| {
            let (_, rest) = text(name)?.split_once("://")?;
            let authority = rest.split(['/', '?']).next()?;
            Some(authority.rsplit('@').next().unwrap_or(authority).to_owned())
        });
    let of_hosts = [
        "PGHOST",
        "DB_HOST",
        "DATABASE_HOST",
        "POSTGRES_HOST",
        "POSTGRESQL_HOST",
    ];
    let authority = of_url.or_else(|| {
        of_hosts
            .iter()
            .find_map(|name| text(name))
            .map(str::to_owned)
    })?;
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host.to_owned(), port.parse().ok()),
        None => (authority, None),
    };
    let of_ports = [
        "PGPORT",
        "DB_PORT",
        "DATABASE_PORT",
        "POSTGRES_PORT",
        "POSTGRESQL_PORT",
    ];
    let port = port.or_else(|| of_ports.iter().find_map(|name| text(name)?.parse().ok()));
    Some((host, port))
}

/// A pool beside maps that nobody showed: a ConfigMap may hold what was assumed; and where there is no pool to be seen, a Secret
/// may hold the address.
pub fn with_missing(
    pool: Option<Pool>,
    container: &Container,
    missing: Vec<&WholeMap>,
    said: bool,
) -> Option<Pool> {
    let assumes = |pool: &Pool| pool.from.iter().any(|source| source.assumed);
    let whole = match &pool {
        _ if said || container.role == Role::Init => None,
        Some(pool) if pool.unknown.is_some() || !assumes(pool) => None,
        Some(_) => missing.into_iter().find(|whole| whole.name.is_some()),
        None => missing.into_iter().next(),
    };
    let Some(whole) = whole else {
        return pool;
    };
    let name = match &whole.name {
        Some(name) => format!("ConfigMap {name}, which isn't in the input"),
        None => "a Secret or a file".to_owned(),
    };
    let unknown = Some(Unknown {
        what: format!("what container {} takes from {name}", container.name),
        settle: "an annotation stanch.dev/connections (0 where it doesn't connect), or budget.yaml"
            .into(),
        at: Some(whole.at.clone()),
    });
    Some(match pool {
        Some(pool) => Pool {
            processes: Count::at_least(pool.processes.at_least),
            connections: Count::at_least(pool.connections.at_least),
            unknown,
            ..pool
        },
        None => Pool {
            processes: Count::known(1),
            connections: Count::at_least(0),
            from: Vec::new(),
            unknown,
            threads: None,
            size: None,
            is_sidekiq: false,
        },
    })
}
