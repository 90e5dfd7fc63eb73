//! Web servers and workers, and the libraries of their pools: by flag, by variable, by default.

use super::super::count::{At, Count, Source};
use super::super::libraries::{LIBRARIES, Library, Most};
use super::super::spec::Unknown;
use super::{Pool, Reading, Var, at_least_one};

impl Reading<'_> {
    /// A process for each of its workers, with a connection each while it runs a task.
    pub(super) fn celery(mut self) -> Pool {
        let processes = match self.flagged(&["-c", "--concurrency"], "processes") {
            Some(number) => at_least_one(number),
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
        // Each has an engine of its own, where its size is told.
        let sized = self.has(&["SQLALCHEMY_POOL_SIZE", "SQLALCHEMY_MAX_OVERFLOW"]);
        let each = match sized {
            true => self.engine(),
            false => {
                let at = Some(self.container.at.clone());
                self.from
                    .push(Source::assumed("connections per process", 1, at));
                Count::known(1)
            }
        };
        self.done(processes, each)
    }

    /// Processes of a web server, each with a pool of its own.
    pub(super) fn workers(&mut self) -> Count {
        let server = ["gunicorn", "uvicorn", "hypercorn", "granian"]
            .iter()
            .any(|program| self.runs(program));
        let flag = match server {
            true => self.flagged(&["-w", "--workers"], "processes"),
            false => None,
        };
        match flag {
            Some(number) => at_least_one(number),
            None => self.processes("WEB_CONCURRENCY"),
        }
    }

    pub(super) fn sqlalchemy(mut self) -> Pool {
        let processes = self.workers();
        let each = self.engine();
        self.done(processes, each)
    }

    pub(super) fn engine(&mut self) -> Count {
        let size = self.number("SQLALCHEMY_POOL_SIZE", "pool_size", 5);
        let overflow = match self.var("SQLALCHEMY_MAX_OVERFLOW") {
            Var::Number(number, at) if number < 0 => self.unlimited("SQLALCHEMY_MAX_OVERFLOW", at),
            _ => self.number("SQLALCHEMY_MAX_OVERFLOW", "max_overflow", 10),
        };
        let size = match (self.var("SQLALCHEMY_POOL_SIZE"), size) {
            (Var::Number(0, at), _) => self.unlimited("SQLALCHEMY_POOL_SIZE", at),
            (_, size) => size,
        };
        size.plus(overflow)
    }

    pub(super) fn unlimited(&mut self, name: &str, at: At) -> Count {
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
    pub(super) fn of_variable(&self) -> Option<(&'static Library, &'static str)> {
        LIBRARIES.iter().find_map(|library| {
            let set = |name: &&&str| self.env.contains_key(**name);
            Some((library, *library.variables.iter().find(set)?))
        })
    }

    pub(super) fn of_library(mut self, library: &Library, name: &str) -> Pool {
        let what = format!("connections per process of {}", library.name);
        let size = self.number(name, &what, 0);
        let processes = self.workers();
        self.done(processes, size)
    }

    /// What a library does where nothing says a number.
    pub(super) fn default(mut self, library: &Library, said: Option<&At>) -> Pool {
        let processes = self.workers();
        let at = Some(said.unwrap_or(&self.container.at).clone());
        let what = format!("connections per process (the default of {})", library.name);
        let size = match library.most {
            Most::Number(number) => {
                self.from.push(Source::assumed(&what, number, at));
                Count::known(number)
            }
            Most::OfThreads => match self.flagged(&["--threads"], "threads") {
                Some(threads) => at_least_one(threads),
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
    pub(super) fn of_npgsql(&self) -> Option<(Option<u64>, &'static str, At)> {
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
                Some(size),
                "connections per process (Maximum Pool Size)",
                at.clone(),
            ))
        })
    }

    /// A program of PostgreSQL's own, which opens one connection (pg_dump and pg_restore with -j: one more than jobs).
    pub(super) fn client(&self) -> Option<(&'static str, At)> {
        let at = self.container.command.first()?.1.clone();
        let program = ["psql", "pg_dump", "pg_restore", "pg_dumpall"]
            .into_iter()
            .find(|program| self.runs(program))?;
        Some((program, at))
    }

    pub(super) fn one(mut self, program: &str, at: At) -> Pool {
        let jobs = match self.flag(&["-j", "--jobs"]) {
            Var::Number(jobs, _) if program != "psql" => u64::try_from(jobs).unwrap_or(0),
            _ => 0,
        };
        let size = 1 + jobs;
        self.from
            .push(Source::said(&format!("connections ({program})"), size, at));
        self.done(Count::known(1), Count::known(size))
    }

    /// `?connection_limit=5` (Prisma), `?pool_max_conns=5` (pgx), of each URL of a PostgreSQL: a container may have several.
    pub(super) fn of_urls(&self) -> Vec<(Option<u64>, &'static str, At)> {
        let urls = self.env.values().filter_map(|(text, at)| {
            let (scheme, rest) = text.as_ref()?.split_once("://")?;
            let (_, query) = rest.split_once('?')?;
            scheme.contains("postgres").then_some((query, at))
        });
        urls.filter_map(|(query, at)| {
            let limit = query.split('&').find_map(|pair| {
                let (name, value) = pair.split_once('=')?;
                matches!(name, "connection_limit" | "pool_max_conns").then_some(value)
            })?;
            let size = self.filled(limit).parse().ok();
            Some((size, "connections (of the URL)", at.clone()))
        })
        .collect()
    }

    pub(super) fn sized(mut self, all: Vec<(Option<u64>, &str, At)>) -> Pool {
        let processes = self.workers();
        let mut sum = Count::ZERO;
        for (size, what, at) in all {
            let count = match size {
                Some(size) => {
                    self.from.push(Source::said(what, size, at));
                    Count::known(size)
                }
                None => self.hidden("the limit in a URL", at),
            };
            sum = sum.plus(count);
        }
        self.done(processes, sum)
    }

    pub(super) fn generic(mut self, name: &str) -> Pool {
        let processes = self.workers();
        let size = match self.var(name) {
            // 0 is without a limit for those that take it at all.
            Var::Number(0, at) => self.unlimited(name, at),
            _ => self.number(name, "connections per process", 0),
        };
        self.done(processes, size)
    }
}
