//! What breaks a rule: the sum, and what makes a sum that fits fail all the same.

use std::time::Duration;

use super::count::At;
use super::math::{ServerReport, Verdict};
use super::pools::Pool;
use super::sources::{PgBouncer, SpecFile, WorkloadSpec};
use super::spec::Budget;

/// How bad it is; the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Error,
    Warning,
    Note,
}

impl Level {
    /// As SARIF and the annotations of a code forge call it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// One breach, by the id of its rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    pub rule: &'static str,
    pub level: Level,
    pub message: String,
    pub at: Option<At>,
    /// The server, workload or pooler that it is about.
    pub of: Option<String>,
}

/// Every rule, with what it is about.
pub const RULES: &[(&str, &str)] = &[
    (
        "budget.over",
        "what can connect at its peak is more than the server lets in",
    ),
    (
        "budget.tight",
        "application pools in sum take more of max_connections than they should in normal operation",
    ),
    (
        "limit.over",
        "what logs in as a role, or to a database, is more than its CONNECTION LIMIT",
    ),
    ("budget.unknown", "a number of the budget isn't known"),
    (
        "pooler.client_limit",
        "more clients than the pooler lets in",
    ),
    (
        "pooler.transaction_mode",
        "session features under pool_mode = transaction",
    ),
    (
        "pooler.reset_query",
        "no server_reset_query in session mode",
    ),
    (
        "pooler.query_wait",
        "clients wait without an end, or for longer than anybody does",
    ),
    (
        "pooler.reserve",
        "a reserve that is never used, or is larger than the pool",
    ),
    (
        "pooler.auth",
        "auth_type md5 doesn't work with a server's SCRAM passwords",
    ),
    (
        "pooler.idle_timeout",
        "server connections are kept for longer than they should be",
    ),
    (
        "pool.smaller_than_threads",
        "threads wait for each other's connections",
    ),
    (
        "pool.larger_than_threads",
        "connections that no thread can use",
    ),
    (
        "pool.lifetime",
        "the pool keeps connections for longer than the database or a balancer does",
    ),
    (
        "pool.acquire_timeout",
        "waiting for a connection takes longer than a request may",
    ),
    (
        "server.timeouts",
        "nothing ends a statement or a forgotten transaction",
    ),
    (
        "retries.unbounded",
        "retries without an end, a pause or a bit of chance",
    ),
    (
        "probe.opens_connections",
        "a readiness probe opens a connection in every pod at once",
    ),
    ("drift", "the running server is otherwise than designed"),
    ("suppression.expired", "a suppression is over its day"),
    ("suppression.unused", "a suppression of what isn't there"),
];

impl Breach {
    pub fn new(rule: &'static str, level: Level, message: String, at: Option<At>) -> Self {
        Self {
            rule,
            level,
            message,
            at,
            of: None,
        }
    }

    pub fn of(self, name: &str) -> Self {
        Self {
            of: Some(name.to_owned()),
            ..self
        }
    }

    /// What the sum of a server breaks.
    pub fn of_server(server: &ServerReport, fail_on: &[&str]) -> Vec<Self> {
        let mut breaches = Vec::new();
        for scenario in server
            .scenarios
            .iter()
            .filter(|s| s.verdict == Verdict::Over)
        {
            let decides = fail_on.contains(&scenario.name);
            let of = scenario
                .of
                .as_ref()
                .map_or(String::new(), |of| format!(" ({of})"));
            let message = format!(
                "{}: {} of {} usable slots in {}{of}",
                server.name,
                scenario.peak.words(),
                server.usable.at_least,
                scenario.name
            );
            let level = if decides {
                Level::Error
            } else {
                Level::Warning
            };
            let at = place_of(server, scenario.of.as_deref());
            breaches.push(Self::new("budget.over", level, message, at).of(&server.name));
        }
        let share = server.applications.percent_of(server.max_connections);
        if server
            .scenarios
            .first()
            .is_some_and(|s| s.verdict == Verdict::Tight)
        {
            let message = format!(
                "{}: application pools take {} of max_connections {} ({share} %) in normal operation",
                server.name,
                server.applications.words(),
                server.max_connections.at_least
            );
            let at = place_of(server, None);
            breaches.push(Self::new("budget.tight", Level::Warning, message, at).of(&server.name));
        }
        breaches
    }
}

/// Where the number stands that makes the most of it: of the one that is rolled out, else of the largest.
fn place_of(server: &ServerReport, name: Option<&str>) -> Option<At> {
    let named = server
        .workloads
        .iter()
        .find(|row| Some(row.name.as_str()) == name);
    let largest = server
        .workloads
        .iter()
        .max_by_key(|row| row.steady().at_least);
    let of_row = named
        .or(largest)
        .and_then(|row| row.from.iter().find_map(|source| source.at.clone()));
    of_row.or_else(|| server.from.iter().find_map(|source| source.at.clone()))
}

fn time(text: &str) -> Option<Duration> {
    humantime::parse_duration(text.trim()).ok()
}

/// A number of seconds, or a time with its unit, as PostgreSQL's settings and PgBouncer's are written; 0: never.
fn is_never(text: &str) -> bool {
    let digits: String = text
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == '.')
        .collect();
    digits.parse::<f64>().is_ok_and(|number| number == 0.0)
}

/// What the design says of a workload's pool.
pub fn of_pool(spec: &WorkloadSpec, breaches: &mut Vec<Breach>) {
    let field = |name: &str| {
        let found = spec.pool.iter().find(|(known, ..)| known == name)?;
        Some((found.1.as_str(), found.2.clone()))
    };
    let number =
        |name: &str| field(name).and_then(|(text, at)| Some((text.parse::<u64>().ok()?, at)));
    let timed = |name: &str| field(name).and_then(|(text, at)| Some((time(text)?, at)));
    let name = &spec.name;
    let threads = number("threads").or_else(|| number("concurrency"));
    if let (Some((threads, _)), Some((size, at))) = (threads, &spec.connections) {
        sizes(
            name,
            *size,
            threads,
            number("concurrency").is_some(),
            Some(at.clone()),
            breaches,
        );
    }
    if let Some((lifetime, at)) = timed("max_lifetime").or_else(|| timed("idle_timeout"))
        && let Some((balancer, _)) = timed("balancer_idle_timeout")
        && lifetime >= balancer
    {
        let message = format!(
            "{name}: its pool keeps a connection for {}, and what is in between drops silent ones after {}",
            humantime::format_duration(lifetime),
            humantime::format_duration(balancer)
        );
        breaches.push(Breach::new(
            "pool.lifetime",
            Level::Warning,
            message,
            Some(at),
        ));
    }
    if let Some((acquire, at)) = timed("acquire_timeout") {
        let request = timed("request_timeout").map(|(request, _)| request);
        if request.is_some_and(|request| acquire >= request) || acquire > Duration::from_secs(10) {
            let message = format!(
                "{name}: a connection is waited for as long as {}, {}",
                humantime::format_duration(acquire),
                match request {
                    Some(request) =>
                        format!("and a request has {}", humantime::format_duration(request)),
                    None => "and few seconds are enough".into(),
                }
            );
            breaches.push(Breach::new(
                "pool.acquire_timeout",
                Level::Warning,
                message,
                Some(at),
            ));
        }
    }
    if let Some((retries, at)) = field("retries") {
        let bounded = retries.parse::<u64>().is_ok_and(|retries| retries <= 5);
        let backoff = field("retry_backoff")
            .map(|(text, _)| text.to_lowercase())
            .unwrap_or_default();
        let jitter = backoff.contains("jitter")
            && !["no jitter", "without jitter", "none"]
                .iter()
                .any(|no| backoff.contains(no));
        if !bounded || !jitter {
            let message = format!(
                "{name}: retries want a bound (3), a growing pause and jitter: retries {retries}, retry_backoff {}",
                if backoff.is_empty() {
                    "not said"
                } else {
                    &backoff
                }
            );
            breaches.push(Breach::new(
                "retries.unbounded",
                Level::Warning,
                message,
                Some(at),
            ));
        }
    }
}

/// What a container's own settings say of its pool.
pub fn of_threads(name: &str, pool: &Pool, breaches: &mut Vec<Breach>) {
    if let (Some((size, at)), Some(threads)) = (&pool.size, pool.threads) {
        sizes(name, *size, threads, pool.is_sidekiq, at.clone(), breaches);
    }
}

fn sizes(
    name: &str,
    size: u64,
    threads: u64,
    sidekiq: bool,
    at: Option<At>,
    breaches: &mut Vec<Breach>,
) {
    let (rule, level, message) = if size < threads {
        (
            "pool.smaller_than_threads",
            Level::Warning,
            format!("{name}: {threads} threads share {size} connections: they wait for each other"),
        )
    } else if sidekiq && size < threads + 2 {
        (
            "pool.smaller_than_threads",
            Level::Note,
            format!(
                "{name}: a pool of {size} for a concurrency of {threads}: {} are recommended",
                threads + 2
            ),
        )
    } else if !sidekiq && size > threads || size > threads + 2 {
        (
            "pool.larger_than_threads",
            Level::Note,
            format!("{name}: {size} connections for {threads} threads: the rest is never used"),
        )
    } else {
        return;
    };
    breaches.push(Breach::new(rule, level, message, at));
}

/// Rules on the servers' settings and on the poolers.
pub fn check(budget: &mut Budget, specs: &[SpecFile], bouncers: &[PgBouncer]) {
    let mut timeouts = Vec::new();
    for server in &budget.servers {
        if server.settings.is_empty() {
            continue;
        }
        for name in ["statement_timeout", "idle_in_transaction_session_timeout"] {
            let said = server.settings.get(name);
            if said.is_some_and(|(value, _)| !is_never(value)) {
                continue;
            }
            // A design that leaves it out is a slip; a file may leave it to the roles.
            let level = match said.is_some() || server.is_designed {
                true => Level::Warning,
                false => Level::Note,
            };
            let at = said.or_else(|| server.settings.values().next());
            let message = format!(
                "{}: {name} isn't set: nothing ends what holds a connection",
                server.name
            );
            let at = at.map(|(_, at)| at.clone());
            timeouts.push(Breach::new("server.timeouts", level, message, at).of(&server.name));
        }
    }
    budget.breaches.extend(timeouts);
    let scram = budget.servers.iter().any(|server| {
        let kept = server.settings.get("password_encryption");
        kept.is_some_and(|(value, _)| value.starts_with("scram"))
    });
    for bouncer in bouncers {
        let features = specs
            .iter()
            .flat_map(|spec| &spec.poolers)
            .filter(|pooler| {
                let path = pooler.pgbouncer.as_ref();
                path.is_some_and(|(path, at)| {
                    super::sources::beside(&at.file, path) == bouncer.file
                })
            })
            .any(|pooler| pooler.session_features.is_some());
        of_pooler(bouncer, features, scram, &mut budget.breaches);
    }
}

fn of_pooler(bouncer: &PgBouncer, features: bool, scram: bool, breaches: &mut Vec<Breach>) {
    let mode = bouncer.loosest_mode();
    let file = &bouncer.file;
    let top = At::new(file, crate::yaml::Place { line: 1, column: 1 });
    let mut say = |rule: &'static str, level: Level, setting: &str, message: String| {
        let at = bouncer.at(setting).unwrap_or_else(|| top.clone());
        breaches.push(Breach::new(
            rule,
            level,
            format!("{file}: {message}"),
            Some(at),
        ));
    };
    let transaction = mode != "session";
    let whole = bouncer.word("pool_mode").unwrap_or("session");
    if transaction && features {
        say(
            "pooler.transaction_mode",
            Level::Error,
            "pool_mode",
            format!(
                "pool_mode = {mode}, and what connects uses session features (SET, advisory locks, LISTEN, temporary tables)"
            ),
        );
    }
    let reset = bouncer.word("server_reset_query").unwrap_or("DISCARD ALL");
    if whole == "session" && reset.is_empty() {
        say(
            "pooler.reset_query",
            Level::Warning,
            "server_reset_query",
            "server_reset_query is empty in session mode: one client's settings are the next one's"
                .into(),
        );
    }
    if let Some(wait) = bouncer.word("query_wait_timeout")
        && (is_never(wait) || wait.parse::<f64>().is_ok_and(|seconds| seconds > 120.0))
    {
        say(
            "pooler.query_wait",
            Level::Warning,
            "query_wait_timeout",
            format!(
                "query_wait_timeout = {wait}: clients wait for a connection longer than anybody does"
            ),
        );
    }
    let number = |name: &str, default: u64| bouncer.number(name, default).unwrap_or(default);
    let reserve = number("reserve_pool_size", 0);
    if reserve > 0 && bouncer.word("reserve_pool_timeout").is_some_and(is_never) {
        let message =
            format!("reserve_pool_size = {reserve} is never used: reserve_pool_timeout = 0");
        say(
            "pooler.reserve",
            Level::Warning,
            "reserve_pool_timeout",
            message,
        );
    } else if reserve > number("default_pool_size", 20) {
        let message = format!(
            "reserve_pool_size = {reserve} is more than the pool itself: it is a second pool, not a reserve"
        );
        say("pooler.reserve", Level::Note, "reserve_pool_size", message);
    }
    if let Some(idle) = bouncer.word("server_idle_timeout")
        && is_never(idle)
    {
        say(
            "pooler.idle_timeout",
            Level::Note,
            "server_idle_timeout",
            "server_idle_timeout = 0: a pool that was large once stays large".into(),
        );
    }
    if bouncer.word("auth_type") == Some("md5") {
        let (level, why) = match scram {
            true => (Level::Warning, "the server keeps SCRAM passwords"),
            false => (
                Level::Note,
                "it doesn't work with SCRAM passwords, the default since PostgreSQL 14",
            ),
        };
        say(
            "pooler.auth",
            level,
            "auth_type",
            format!("auth_type = md5: {why}"),
        );
    }
}
