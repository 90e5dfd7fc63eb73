//! What a container opens: the well-known environment variables and command lines of the popular pools, with their defaults,
//! which are always said to be assumed.

mod address;
mod programs;
mod ruby;

use std::collections::BTreeMap;

use super::count::{At, Count, Source};
use super::libraries::{self, LIBRARIES};
use super::sources::rails::{Sidekiq, Value};
use super::sources::{Container, Role};
use super::spec::Unknown;

pub use address::{address, with_missing};

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
    if reading.runs("sidekiq") || reading.runs("sidekiqswarm") || ruby.sidekiq.is_some() {
        return Some(reading.sidekiq());
    }
    if reading.runs("celery") && reading.runs("worker") {
        return Some(reading.celery());
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
    let mut told = reading.of_urls();
    told.extend(reading.of_npgsql());
    if !told.is_empty() {
        return Some(reading.sized(told));
    }
    if reading.runs("good_job") {
        return Some(reading.good_job());
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

    /// The command's words, with the variables of its environment in their places; GUNICORN_CMD_ARGS are flags as well.
    fn words(&self) -> Vec<(String, At)> {
        let command = self.container.command.iter();
        let more = self.env.get("GUNICORN_CMD_ARGS");
        let more = more.and_then(|(text, at)| Some((text.as_ref()?, at)));
        let all: Vec<(String, At)> = command
            .map(|(word, at)| (word, at))
            .chain(more)
            .flat_map(|(word, at)| {
                let parts = word.split_whitespace();
                parts.map(move |part| (self.filled(part), at.clone()))
            })
            .collect();
        // A shell's own flags aren't the program's.
        let shell = all.first().is_some_and(|(word, _)| {
            matches!(
                word.rsplit('/').next(),
                Some("sh" | "bash" | "ash" | "dash")
            )
        });
        let script = all
            .iter()
            .position(|(word, _)| shell && word.starts_with('-') && word.ends_with('c'));
        match script {
            Some(at) => all.into_iter().skip(at + 1).collect(),
            None => all,
        }
    }

    /// `$(N)`, `${N}` and `$N` by the environment.
    fn filled(&self, word: &str) -> String {
        let inside = |open: &str, close: &str| {
            let start = word.find(open)?;
            let rest = &word[start + open.len()..];
            let end = if close.is_empty() {
                rest.len()
            } else {
                rest.find(close)?
            };
            let (Some(value), _) = self.env.get(&rest[..end])? else {
                return None;
            };
            Some(format!(
                "{}{value}{}",
                &word[..start],
                &rest[end + close.len()..]
            ))
        };
        let found = inside("$(", ")").or_else(|| inside("${", "}"));
        found
            .or_else(|| inside("$", ""))
            .unwrap_or_else(|| word.to_owned())
    }

    /// `-c 5`, `--concurrency 5`, `--concurrency=5`, `-c5`.
    fn flag(&self, names: &[&str]) -> Var {
        let words = self.words();
        for (n, (word, at)) in words.iter().enumerate() {
            let inside = names.iter().find_map(|name| {
                let rest = word.strip_prefix(name)?;
                match (rest.strip_prefix('='), name.starts_with("--")) {
                    (Some(value), _) => Some(value),
                    (None, false) => Some(rest)
                        .filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || c == '$')),
                    (None, true) => None,
                }
            });
            let (text, at) = match inside {
                Some(text) => (text, at),
                None if names.contains(&word.as_str()) => match words.get(n + 1) {
                    Some((text, at)) => (text.as_str(), at),
                    None => return Var::Hidden(at.clone()),
                },
                None => continue,
            };
            return match text.parse() {
                Ok(number) => Var::Number(number, at.clone()),
                Err(_) => Var::Hidden(at.clone()),
            };
        }
        Var::Missing
    }

    /// What a flag says; one that can't be read isn't one that isn't there.
    fn flagged(&mut self, names: &[&str], what: &str) -> Option<Count> {
        let name = names.last().copied().unwrap_or_default();
        match self.flag(names) {
            Var::Missing => None,
            Var::Number(number, at) if number >= 0 => {
                let number = u64::try_from(number).unwrap_or(0);
                self.from
                    .push(Source::said(&format!("{what} ({name})"), number, at));
                Some(Count::known(number))
            }
            Var::Number(_, at) | Var::Hidden(at) => {
                let _ = self.hidden(name, at);
                Some(Count::at_least(1))
            }
        }
    }

    /// Processes by a variable: one at least, whatever it says.
    fn processes(&mut self, name: &str) -> Count {
        at_least_one(self.number(name, "processes", 1))
    }

    fn word_after(&self, names: &[&str]) -> Option<(String, At)> {
        let words = self.words();
        let at = words
            .iter()
            .position(|(word, _)| names.contains(&word.as_str()))?;
        words.get(at + 1).cloned()
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
}

/// 0 is a single process for whoever takes it, and one whose number is hidden runs all the same.
fn at_least_one(count: Count) -> Count {
    Count {
        at_least: count.at_least.max(1),
        ..count
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
