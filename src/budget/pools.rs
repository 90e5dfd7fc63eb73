//! What a container opens: the well-known environment variables and command lines of the popular pools, with their defaults,
//! which are always said to be assumed.

use std::collections::BTreeMap;

use super::count::{At, Count, Source};
use super::libraries::{self, ADDRESSES, LIBRARIES, Library, Most};
use super::sources::rails::{Sidekiq, Value};
use super::sources::{Container, Role, WholeMap};
use super::spec::Unknown;

/// The environment as it is known: a value, or that it is hidden.
pub type Known = BTreeMap<String, (Option<String>, At)>;

/// Processes of a container, and connections that each may open.
#[derive(Clone, Debug)]
pub struct Pool {
    pub processes: Count,
    pub connections: Count,
    pub from: Vec<Source>,
    pub unknown: Option<Unknown>,
    /// Threads that can use the pool, and its size by its own setting: for the rules.
    pub threads: Option<u64>,
    pub size: Option<(u64, Option<At>)>,
    pub is_sidekiq: bool,
}

/// Ruby's files, where the workload names them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ruby<'r> {
    pub sidekiq: Option<&'r Sidekiq>,
    /// Of `database.yml`: one for each database of the application.
    pub pools: &'r [Value],
}

/// Names that say the size of a pool by themselves.
const GENERIC: [&str; 6] = [
    "DB_POOL_SIZE",
    "DATABASE_POOL_SIZE",
    "POOL_SIZE",
    "DB_POOL_MAX",
    "PGPOOLSIZE",
    "DB_MAX_OPEN_CONNS",
];
/// What is known of a variable.
enum Var {
    Missing,
    Number(i64, At),
    /// It is there, and no number that can be seen.
    Hidden(At),
}

struct Reading<'p> {
    env: &'p Known,
    container: &'p Container,
    ruby: Ruby<'p>,
    from: Vec<Source>,
    unknown: Option<Unknown>,
}

/// The pool of a container; `None` where nothing shows that it has one.
pub fn of(
    container: &Container,
    env: &Known,
    ruby: Ruby<'_>,
    library: Option<&(String, At)>,
) -> Option<Pool> {
    let reading = Reading {
        env,
        container,
        ruby,
        from: Vec::new(),
        unknown: None,
    };
    if reading.runs("sidekiq") || ruby.sidekiq.is_some() {
        return Some(reading.sidekiq());
    }
    if reading.has(&["SQLALCHEMY_POOL_SIZE", "SQLALCHEMY_MAX_OVERFLOW"]) {
        return Some(reading.sqlalchemy());
    }
    if let Some((library, name)) = reading.of_variable() {
        return Some(reading.of_library(library, name));
    }
    if reading.has(&["SPRING_DATASOURCE_URL"]) && library.is_none() {
        return libraries::by_name("hikaricp").map(|library| reading.default(library, None));
    }
    if let Some((size, what, at)) = reading.of_url().or_else(|| reading.of_npgsql()) {
        return Some(reading.sized(size, what, at));
    }
    if reading.runs("good_job") {
        return Some(reading.good_job());
    }
    if reading.runs("celery") && reading.runs("worker") {
        return Some(reading.celery());
    }
    let rails = reading.runs("puma") || !ruby.pools.is_empty();
    if rails || reading.has(&["RAILS_MAX_THREADS", "DB_POOL"]) {
        return Some(reading.rails());
    }
    if let Some(name) = GENERIC.iter().find(|name| env.contains_key(**name)) {
        return Some(reading.generic(name));
    }
    if let Some((name, at)) = library {
        let library = libraries::by_name(name)?;
        return Some(reading.default(library, Some(at)));
    }
    if let Some((name, at)) = reading.client() {
        return Some(reading.one(name, at));
    }
    if let Some(library) = LIBRARIES
        .iter()
        .find(|library| library.shown_by.is_some_and(|name| env.contains_key(name)))
    {
        return Some(reading.default(library, None));
    }
    let (name, at) = reading.address()?;
    Some(match container.role {
        Role::Init => reading.migrates(at),
        _ => reading.connects(&name, at),
    })
}

impl Reading<'_> {
    fn has(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.env.contains_key(*name))
    }

    fn runs(&self, program: &str) -> bool {
        runs(self.container, program)
    }

    fn var(&self, name: &str) -> Var {
        match self.env.get(name) {
            None => Var::Missing,
            Some((Some(text), at)) => match text.trim().parse() {
                Ok(number) => Var::Number(number, at.clone()),
                Err(_) => Var::Hidden(at.clone()),
            },
            Some((None, at)) => Var::Hidden(at.clone()),
        }
    }

    /// A number of the environment, else the default of whoever reads it.
    fn number(&mut self, name: &str, what: &str, default: u64) -> Count {
        match self.var(name) {
            Var::Number(number, at) if number >= 0 => {
                let number = u64::try_from(number).unwrap_or(0);
                self.from
                    .push(Source::said(&format!("{what} ({name})"), number, at));
                Count::known(number)
            }
            Var::Missing => {
                let at = Some(self.container.at.clone());
                self.from.push(Source::assumed(what, default, at));
                Count::known(default)
            }
            Var::Number(_, at) | Var::Hidden(at) => self.hidden(name, at),
        }
    }

    fn hidden(&mut self, name: &str, at: At) -> Count {
        self.unknown = Some(Unknown {
            what: format!("{name} of container {}", self.container.name),
            settle:
                "its value in the manifest, an annotation stanch.dev/connections, or budget.yaml"
                    .into(),
            at: Some(at),
        });
        Count::at_least(0)
    }

    /// `-c 5`, `--concurrency 5`, `--concurrency=5`, `-c5`.
    fn flag(&self, short: &str, long: &str) -> Option<(u64, At)> {
        let words: Vec<(&str, &At)> = self
            .container
            .command
            .iter()
            .flat_map(|(word, at)| word.split_whitespace().map(move |word| (word, at)))
            .collect();
        words.iter().enumerate().find_map(|(n, (word, at))| {
            let inside = word
                .strip_prefix(long)
                .and_then(|rest| rest.strip_prefix('='))
                .or_else(|| word.strip_prefix(short).filter(|rest| !rest.is_empty()));
            let (text, at) = match inside {
                Some(text) => (text, *at),
                None if *word == short || *word == long => {
                    let (text, at) = words.get(n + 1)?;
                    (*text, *at)
                }
                None => return None,
            };
            Some((text.parse().ok()?, at.clone()))
        })
    }

    fn done(self, processes: Count, connections: Count) -> Pool {
        Pool {
            processes,
            connections,
            from: self.from,
            unknown: self.unknown,
            threads: None,
            size: None,
            is_sidekiq: false,
        }
    }

    fn env_values(&self) -> BTreeMap<String, Option<String>> {
        let all = self.env.iter();
        all.map(|(name, (value, _))| (name.clone(), value.clone()))
            .collect()
    }

    /// A value of a Ruby file, with this environment.
    fn of_ruby(&mut self, value: &Value, what: &str) -> Count {
        let at = value.at().clone();
        match value.with(&self.env_values()) {
            Some(number) => {
                let source = match value {
                    Value::Env { name, .. } if self.env.contains_key(name) => {
                        Source::said(&format!("{what}, by {name}"), number, at)
                    }
                    Value::Env { .. } | Value::Default(..) => {
                        Source::assumed(what, number, Some(at))
                    }
                    _ => Source::said(what, number, at),
                };
                self.from.push(source);
                Count::known(number)
            }
            None => {
                self.unknown = Some(Unknown {
                    what: format!("{what} (Ruby that can't be read here)"),
                    settle: "a plain number, or connections in budget.yaml".into(),
                    at: Some(at),
                });
                Count::at_least(0)
            }
        }
    }

    /// What ActiveRecord opens: its own variable, `database.yml`, else as many as there are threads; a thread uses one at a time.
    fn active_record(&mut self, threads: Count) -> (Count, Option<(u64, Option<At>)>) {
        if self.has(&["DB_POOL"]) {
            let size = self.number("DB_POOL", "pool", 5);
            let at = self.env.get("DB_POOL").map(|(_, at)| at.clone());
            let known = size.exact.then_some((size.at_least, at));
            return (least(size, threads), known);
        }
        let pools = self.ruby.pools;
        if pools.is_empty() {
            return (threads, None);
        }
        let mut sum = Count::ZERO;
        let mut size = None;
        for value in pools {
            let pool = self.of_ruby(value, "pool (database.yml)");
            if size.is_none() && pool.exact {
                size = Some((pool.at_least, Some(value.at().clone())));
            }
            sum = sum.plus(least(pool, threads));
        }
        (sum, size)
    }

    fn sidekiq(mut self) -> Pool {
        let file = self.ruby.sidekiq;
        let main = match (
            self.flag("-c", "--concurrency"),
            file.and_then(|f| f.concurrency.as_ref()),
        ) {
            (Some((number, at)), _) => {
                self.from.push(Source::said("concurrency (-c)", number, at));
                Count::known(number)
            }
            (None, Some(value)) => self.of_ruby(value, "concurrency (sidekiq.yml)"),
            (None, None) => match self.word_after(&["-C", "--config"]) {
                // It says how many, and nobody showed it.
                Some((path, at)) => {
                    self.unknown = Some(Unknown {
                        what: format!("the concurrency of {path}, which isn't in the input"),
                        settle: format!("{path} beside it, or -c in the command"),
                        at: Some(at),
                    });
                    Count::at_least(0)
                }
                None => self.number("RAILS_MAX_THREADS", "concurrency", 5),
            },
        };
        let capsules = file
            .map(|file| file.capsules.as_slice())
            .unwrap_or_default();
        let mut concurrency = main;
        for value in capsules {
            concurrency = concurrency.plus(self.of_ruby(value, "concurrency of a capsule"));
        }
        let (pool, size) = self.active_record(concurrency);
        let threads = concurrency.exact.then_some(concurrency.at_least);
        Pool {
            threads,
            size,
            is_sidekiq: true,
            ..self.done(Count::known(1), pool)
        }
    }

    /// A process for each of its workers, with a connection each while it runs a task.
    fn celery(mut self) -> Pool {
        let processes = match self.flag("-c", "--concurrency") {
            Some((number, at)) => {
                self.from
                    .push(Source::said("processes (--concurrency)", number, at));
                Count::known(number)
            }
            None => {
                self.unknown = Some(Unknown {
                    what: format!(
                        "how many processes container {} has: as many as its node has processors",
                        self.container.name
                    ),
                    settle: "--concurrency in its command, or processes in budget.yaml".into(),
                    at: Some(self.container.at.clone()),
                });
                Count::at_least(1)
            }
        };
        let at = Some(self.container.at.clone());
        self.from
            .push(Source::assumed("connections per process", 1, at));
        self.done(processes, Count::known(1))
    }

    /// `-t 1:5`: the larger one.
    fn puma_threads(&self) -> Option<(u64, At)> {
        let (word, at) = self.word_after(&["-t", "--threads"])?;
        let most = word.rsplit(':').next()?;
        self.runs("puma").then_some(())?;
        Some((most.parse().ok()?, at))
    }

    fn word_after(&self, names: &[&str]) -> Option<(String, At)> {
        let words: Vec<(&str, &At)> = self
            .container
            .command
            .iter()
            .flat_map(|(word, at)| word.split_whitespace().map(move |word| (word, at)))
            .collect();
        let at = words.iter().position(|(word, _)| names.contains(word))?;
        let (word, at) = words.get(at + 1)?;
        Some(((*word).to_owned(), (*at).clone()))
    }

    fn rails(mut self) -> Pool {
        let threads = match self.puma_threads() {
            Some((threads, at)) => {
                self.from
                    .push(Source::said("threads (--threads)", threads, at));
                Count::known(threads)
            }
            None => self.number("RAILS_MAX_THREADS", "threads", 5),
        };
        let workers = self.flag("-w", "--workers").filter(|_| self.runs("puma"));
        let processes = match workers {
            Some((number, at)) => {
                self.from
                    .push(Source::said("processes (--workers)", number, at));
                Count::known(number)
            }
            None => self.number("WEB_CONCURRENCY", "processes", 1),
        };
        // Without workers Puma is one process.
        let processes = match processes {
            Count {
                at_least: 0,
                exact: true,
            } => Count::known(1),
            some => some,
        };
        let (pool, size) = self.active_record(threads);
        let known = threads.exact.then_some(threads.at_least);
        Pool {
            threads: known,
            size,
            ..self.done(processes, pool)
        }
    }

    fn workers(&mut self) -> Count {
        if self.runs("gunicorn")
            && let Some((number, at)) = self.flag("-w", "--workers")
        {
            self.from
                .push(Source::said("processes (--workers)", number, at));
            return Count::known(number);
        }
        self.number("WEB_CONCURRENCY", "processes", 1)
    }

    fn sqlalchemy(mut self) -> Pool {
        let processes = self.workers();
        let size = self.number("SQLALCHEMY_POOL_SIZE", "pool_size", 5);
        let overflow = match self.var("SQLALCHEMY_MAX_OVERFLOW") {
            Var::Number(number, at) if number < 0 => self.unlimited("SQLALCHEMY_MAX_OVERFLOW", at),
            _ => self.number("SQLALCHEMY_MAX_OVERFLOW", "max_overflow", 10),
        };
        let size = match (self.var("SQLALCHEMY_POOL_SIZE"), size) {
            (Var::Number(0, at), _) => self.unlimited("SQLALCHEMY_POOL_SIZE", at),
            (_, size) => size,
        };
        self.done(processes, size.plus(overflow))
    }

    fn unlimited(&mut self, name: &str, at: At) -> Count {
        self.unknown = Some(Unknown {
            what: format!(
                "{name} of container {}: without a limit",
                self.container.name
            ),
            settle: "a limit".into(),
            at: Some(at),
        });
        Count::at_least(0)
    }

    /// The library whose own variable is set.
    fn of_variable(&self) -> Option<(&'static Library, &'static str)> {
        LIBRARIES.iter().find_map(|library| {
            let set = |name: &&&str| self.env.contains_key(**name);
            Some((library, *library.variables.iter().find(set)?))
        })
    }

    fn of_library(mut self, library: &Library, name: &str) -> Pool {
        let what = format!("connections per process of {}", library.name);
        let size = self.number(name, &what, 0);
        let processes = self.workers();
        self.done(processes, size)
    }

    /// What a library does where nothing says a number.
    fn default(mut self, library: &Library, said: Option<&At>) -> Pool {
        let processes = self.workers();
        let at = Some(said.unwrap_or(&self.container.at).clone());
        let what = format!("connections per process (the default of {})", library.name);
        let size = match library.most {
            Most::Number(number) => {
                self.from.push(Source::assumed(&what, number, at));
                Count::known(number)
            }
            Most::OfThreads => match self.flag("--threads", "--threads") {
                Some((threads, at)) => {
                    self.from
                        .push(Source::said("threads (--threads)", threads, at));
                    Count::known(threads)
                }
                None => {
                    self.from.push(Source::assumed("threads", 1, at));
                    Count::known(1)
                }
            },
            Most::OfCores(_) | Most::Unlimited => {
                let (why, least) = match library.most {
                    Most::OfCores(least) => ("follows the processors of its node", least),
                    _ => ("is without a limit", 0),
                };
                self.unknown = Some(Unknown {
                    what: format!("the pool of {}, which {why}", library.name),
                    settle: "its size in the environment, an annotation stanch.dev/connections, or connections in budget.yaml".into(),
                    at,
                });
                Count::at_least(least)
            }
        };
        self.done(processes, size)
    }

    /// `Maximum Pool Size=50` in a connection string of .NET.
    fn of_npgsql(&self) -> Option<(u64, &'static str, At)> {
        self.env.iter().find_map(|(name, (text, at))| {
            let text = text
                .as_ref()
                .filter(|_| name.starts_with("ConnectionStrings__"))?;
            let size = text.split(';').find_map(|pair| {
                let (key, value) = pair.split_once('=')?;
                let key = key.to_lowercase().replace(' ', "");
                let known = matches!(key.as_str(), "maximumpoolsize" | "maxpoolsize");
                known.then(|| value.trim().parse().ok()).flatten()
            })?;
            Some((
                size,
                "connections per process (Maximum Pool Size)",
                at.clone(),
            ))
        })
    }

    /// A program of PostgreSQL's own, which opens one connection (pg_dump and pg_restore with -j: one more than jobs).
    fn client(&self) -> Option<(&'static str, At)> {
        let at = self.container.command.first()?.1.clone();
        let program = ["psql", "pg_dump", "pg_restore", "pg_dumpall"]
            .into_iter()
            .find(|program| self.runs(program))?;
        Some((program, at))
    }

    fn one(mut self, program: &str, at: At) -> Pool {
        let jobs = self.flag("-j", "--jobs").map_or(0, |(jobs, _)| jobs);
        let size = 1 + if program == "psql" { 0 } else { jobs };
        self.from
            .push(Source::said(&format!("connections ({program})"), size, at));
        self.done(Count::known(1), Count::known(size))
    }

    /// A variable that says where the database is, unless it is of another kind.
    fn address(&self) -> Option<(String, At)> {
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
    fn migrates(mut self, at: At) -> Pool {
        self.from.push(Source::assumed(
            "connections (runs before the others)",
            1,
            Some(at),
        ));
        self.done(Count::known(1), Count::known(1))
    }

    fn connects(mut self, name: &str, at: At) -> Pool {
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

    /// GoodJob's threads, and two of its own.
    fn good_job(mut self) -> Pool {
        let threads = match self.flag("--max-threads", "--max-threads") {
            Some((threads, at)) => {
                self.from
                    .push(Source::said("threads (--max-threads)", threads, at));
                Count::known(threads)
            }
            None => self.number("GOOD_JOB_MAX_THREADS", "threads", 5),
        };
        let at = Some(self.container.at.clone());
        self.from.push(Source::assumed("GoodJob's own", 2, at));
        self.done(Count::known(1), threads.plus(Count::known(2)))
    }

    /// `?connection_limit=5` (Prisma), `?pool_max_conns=5` (pgx).
    fn of_url(&self) -> Option<(u64, &'static str, At)> {
        let (Some(url), at) = self.env.get("DATABASE_URL")? else {
            return None;
        };
        let (_, query) = url.split_once('?')?;
        query.split('&').find_map(|pair| {
            let (name, value) = pair.split_once('=')?;
            let known = matches!(name, "connection_limit" | "pool_max_conns");
            known
                .then(|| value.parse().ok())
                .flatten()
                .map(|size| (size, "connections (of the URL)", at.clone()))
        })
    }

    fn sized(mut self, size: u64, what: &str, at: At) -> Pool {
        let processes = self.workers();
        self.from.push(Source::said(what, size, at));
        self.done(processes, Count::known(size))
    }

    fn generic(mut self, name: &str) -> Pool {
        let processes = self.workers();
        let size = match self.var(name) {
            // 0 is without a limit for database/sql.
            Var::Number(0, at) if name == "DB_MAX_OPEN_CONNS" => self.unlimited(name, at),
            _ => self.number(name, "connections per process", 0),
        };
        self.done(processes, size)
    }
}

/// The smaller of two: what a thread doesn't use isn't opened.
fn least(a: Count, b: Count) -> Count {
    match (a.exact, b.exact) {
        (true, true) => Count::known(a.at_least.min(b.at_least)),
        _ => Count::at_least(a.at_least.min(b.at_least)),
    }
}

/// The program is among a container's command, by its name.
pub fn runs(container: &Container, program: &str) -> bool {
    let words = container
        .command
        .iter()
        .flat_map(|(word, _)| word.split_whitespace());
    words
        .map(|word| word.rsplit('/').next().unwrap_or(word))
        .any(|word| word == program)
}

/// It runs Rails or one of its job runners.
pub fn is_ruby(container: &Container) -> bool {
    let programs = ["sidekiq", "puma", "rails", "bundle", "good_job"];
    let variables = ["RAILS_MAX_THREADS", "RAILS_ENV"];
    programs.iter().any(|program| runs(container, program))
        || variables
            .iter()
            .any(|name| container.env.values.contains_key(*name))
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
