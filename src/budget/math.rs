//! The scenarios and the verdict.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::model::ExitCode;

use super::count::{Count, Source};
use super::rules::{Breach, Level};
use super::sources::Suppression;
use super::spec::{Budget, Pooler, Server, Unknown, Workload};

/// What can happen, by the names that reports and `--fail-on` use.
pub const SCENARIOS: [&str; 5] = [
    "steady",
    "rollout-worst-one",
    "rollout-all",
    "rollout-drain",
    "failover",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Fits,
    /// It fits, with less room than it should have.
    Tight,
    Over,
    /// As far as it is known it fits.
    Unknown,
}

impl Verdict {
    pub fn word(self) -> &'static str {
        match self {
            Self::Fits => "fits",
            Self::Tight => "tight",
            Self::Over => "over",
            Self::Unknown => "unknown",
        }
    }

    /// How bad, for a sum over several.
    fn rank(self) -> u8 {
        match self {
            Self::Fits => 0,
            Self::Unknown => 1,
            Self::Tight => 2,
            Self::Over => 3,
        }
    }
}

/// The budget, judged.
#[derive(Clone, Debug)]
pub struct Report {
    pub servers: Vec<ServerReport>,
    pub verdict: Verdict,
    pub unknowns: Vec<Unknown>,
    /// What breaks a rule, the sum included.
    pub breaches: Vec<Breach>,
    /// What is accepted, with why and until when.
    pub accepted: Vec<(Breach, Suppression)>,
}

impl Report {
    /// 2 over, 1 with less room than there should be or a rule broken; what isn't known fails only where that is asked for, and
    /// 3 where there is no limit that it could fit into.
    pub fn exit_code(&self, strict: bool) -> ExitCode {
        match self.verdict {
            Verdict::Over => ExitCode::Critical,
            _ if strict && !self.unknowns.is_empty() => ExitCode::Critical,
            Verdict::Tight => ExitCode::Warning,
            Verdict::Unknown if self.servers.iter().any(|s| !s.max_connections.exact) => {
                ExitCode::Unknown
            }
            Verdict::Fits | Verdict::Unknown => ExitCode::Ok,
        }
    }

    /// The verdict for people: a sum that fits beside a broken rule isn't tight.
    pub fn words(&self, strict: bool) -> String {
        let tight = self
            .servers
            .iter()
            .any(|server| server.verdict == Verdict::Tight);
        let warned = self
            .breaches
            .iter()
            .any(|breach| breach.level == Level::Warning);
        let words = match self.verdict {
            Verdict::Tight if !tight && warned && !self.unknowns.is_empty() => {
                "fits as far as it is known, with warnings"
            }
            Verdict::Tight if !tight && warned => "fits, with warnings",
            verdict => verdict.word(),
        };
        match strict && self.verdict != Verdict::Over && !self.unknowns.is_empty() {
            true => format!("{words}; --strict: what isn't known fails"),
            false => words.to_owned(),
        }
    }
}

#[derive(Clone, Debug)]
pub struct ServerReport {
    pub name: String,
    pub max_connections: Count,
    pub usable: Count,
    pub headroom: Vec<(String, u64)>,
    /// Application connections in normal operation, without headroom.
    pub applications: Count,
    pub scenarios: Vec<Scenario>,
    pub workloads: Vec<WorkloadRow>,
    pub verdict: Verdict,
    pub from: Vec<Source>,
}

#[derive(Clone, Debug)]
pub struct Scenario {
    pub name: &'static str,
    pub peak: Count,
    pub verdict: Verdict,
    /// Whose rollout it is, where it is one's.
    pub of: Option<String>,
}

/// One workload or pooler of a server.
#[derive(Clone, Debug)]
pub struct WorkloadRow {
    pub name: String,
    pub kind: String,
    pub pods: Count,
    pub surge: Count,
    pub drain: Count,
    pub processes: Count,
    pub connections: Count,
    pub per_pod: Count,
    pub from: Vec<Source>,
}

impl WorkloadRow {
    fn of(workload: &Workload) -> Self {
        Self {
            name: workload.name.clone(),
            kind: workload.kind.clone(),
            pods: workload.pods,
            surge: workload.surge,
            drain: workload.drain,
            processes: workload.processes,
            connections: workload.connections,
            per_pod: workload.per_pod,
            from: workload.from.clone(),
        }
    }

    fn of_pooler(pooler: &Pooler) -> Self {
        Self {
            name: pooler.name.clone(),
            kind: "pgbouncer".into(),
            pods: pooler.pods,
            surge: pooler.surge,
            drain: pooler.drain,
            processes: Count::known(1),
            connections: pooler.cap,
            per_pod: pooler.cap,
            from: pooler.from.clone(),
        }
    }

    pub fn steady(&self) -> Count {
        self.pods.times(self.per_pod)
    }

    fn more(&self) -> Count {
        self.surge.times(self.per_pod)
    }

    fn draining(&self) -> Count {
        self.surge.plus(self.drain).times(self.per_pod)
    }
}

/// Judges a budget; `fail_on` are the scenarios that decide, the others warn.
pub fn judge(budget: &Budget, fail_on: &[&str]) -> Report {
    let rows: BTreeMap<&str, Vec<WorkloadRow>> = budget
        .servers
        .iter()
        .map(|server| (server.name.as_str(), rows_of(budget, &server.name)))
        .collect();
    let steady = |name: &str| -> Count {
        let rows = rows.get(name).into_iter().flatten();
        rows.map(WorkloadRow::steady).sum()
    };
    let mut servers: Vec<ServerReport> = budget
        .servers
        .iter()
        .map(|server| {
            let taken_over = budget
                .servers
                .iter()
                .filter(|other| other.replica_of.as_deref() == Some(server.name.as_str()));
            let failover: Count = taken_over.map(|other| steady(&other.name)).sum();
            let rows = rows.get(server.name.as_str()).cloned().unwrap_or_default();
            judge_server(server, rows, failover, fail_on)
        })
        .collect();
    // What isn't known of the input is of its only server, whatever it is.
    if let ([server], false) = (servers.as_mut_slice(), budget.unknowns.is_empty())
        && server.verdict != Verdict::Over
    {
        server.verdict = Verdict::Unknown;
    }
    let mut breaches = budget.breaches.clone();
    for server in &servers {
        breaches.extend(Breach::of_server(server, fail_on));
    }
    breaches.extend(super::limits::over(budget, fail_on));
    breaches.extend(
        budget
            .poolers
            .iter()
            .filter_map(|pooler| clients(budget, pooler)),
    );
    let accepted = suppress(budget, &mut breaches);
    // Each sum that is over or tight is a breach: what is accepted decides nothing, and the numbers stand all the same.
    let by_rules = breaches.iter().map(|breach| match breach.level {
        Level::Error => Verdict::Over,
        Level::Warning => Verdict::Tight,
        Level::Note => Verdict::Fits,
    });
    // Without a limit nothing can be told, whatever else is amiss.
    let untold = servers.iter().any(|server| !server.max_connections.exact);
    let is_unknown = !budget.unknowns.is_empty()
        || servers
            .iter()
            .any(|server| server.verdict == Verdict::Unknown);
    let verdict = by_rules
        .chain(is_unknown.then_some(Verdict::Unknown))
        .max_by_key(|v| v.rank());
    breaches.sort_by(|a, b| (a.level, &a.at, &a.message).cmp(&(b.level, &b.at, &b.message)));
    breaches.dedup();
    Report {
        servers,
        verdict: match verdict.unwrap_or(Verdict::Fits) {
            Verdict::Tight if untold => Verdict::Unknown,
            verdict => verdict,
        },
        unknowns: budget.unknowns.clone(),
        breaches,
        accepted,
    }
}

/// What is accepted, for a reason and up to a day, is taken out; what is over its day, or of nothing, is told.
fn suppress(budget: &Budget, breaches: &mut Vec<Breach>) -> Vec<(Breach, Suppression)> {
    let is_over = |until: chrono::NaiveDate| budget.today.is_some_and(|today| today > until);
    let (mut accepted, mut told) = (Vec::new(), Vec::new());
    for one in &budget.suppressions {
        let say = |rule, level, message| Breach::new(rule, level, message, Some(one.at.clone()));
        if is_over(one.until) {
            let message = format!(
                "the suppression of {} ended on {}: {}",
                one.rule, one.until, one.reason
            );
            told.push(say("suppression.expired", Level::Warning, message));
            continue;
        }
        let (taken, left): (Vec<Breach>, Vec<Breach>) = std::mem::take(breaches)
            .into_iter()
            .partition(|breach| is_about(breach, one));
        if taken.is_empty() {
            let message = format!("nothing breaks {} as this accepts it", one.rule);
            told.push(say("suppression.unused", Level::Note, message));
        }
        accepted.extend(taken.into_iter().map(|breach| (breach, one.clone())));
        *breaches = left;
    }
    breaches.extend(told);
    accepted
}

/// By its rule, and by the whole name of what it is about or a word of its message.
fn is_about(breach: &Breach, one: &Suppression) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || "-_./".contains(c);
    let says = || {
        breach
            .message
            .split(|c: char| !is_word(c))
            .any(|word| word == one.about)
    };
    breach.rule == one.rule
        && (one.about.is_empty() || breach.of.as_deref() == Some(one.about.as_str()) || says())
}

fn rows_of(budget: &Budget, server: &str) -> Vec<WorkloadRow> {
    let direct = budget
        .workloads
        .iter()
        .filter(|workload| workload.target.as_deref() == Some(server))
        .map(WorkloadRow::of);
    let poolers = budget
        .poolers
        .iter()
        .filter(|pooler| pooler.target.as_deref() == Some(server))
        .map(WorkloadRow::of_pooler);
    direct.chain(poolers).collect()
}

fn judge_server(
    server: &Server,
    rows: Vec<WorkloadRow>,
    failover: Count,
    fail_on: &[&str],
) -> ServerReport {
    let applications: Count = rows.iter().map(WorkloadRow::steady).sum();
    let headroom = Count::known(server.headroom());
    let steady = applications.plus(headroom);
    let worst = |of: &dyn Fn(&WorkloadRow) -> Count| {
        let unknown = rows.iter().any(|row| !of(row).exact);
        let most = rows
            .iter()
            .map(|row| (of(row).at_least, &row.name))
            .filter(|(more, _)| *more > 0)
            .max_by_key(|(more, _)| *more);
        let more = Count {
            at_least: most.map_or(0, |(more, _)| more),
            exact: !unknown,
        };
        (more, most.map(|(_, name)| name.clone()))
    };
    let (one, one_of) = worst(&WorkloadRow::more);
    let (drain, drain_of) = worst(&WorkloadRow::draining);
    let all: Count = rows.iter().map(WorkloadRow::more).sum();
    let usable = server.usable();
    let scenario = |name: &'static str, more: Count, of: Option<String>| {
        let peak = steady.plus(more);
        let verdict = match (peak.at_least > usable.at_least, peak.exact, usable.exact) {
            (_, _, false) => Verdict::Unknown,
            (true, ..) => Verdict::Over,
            (false, false, _) => Verdict::Unknown,
            (false, true, true) => Verdict::Fits,
        };
        Scenario {
            name,
            peak,
            verdict,
            of,
        }
    };
    let mut scenarios = vec![
        scenario(SCENARIOS[0], Count::ZERO, None),
        scenario(SCENARIOS[1], one, one_of),
        scenario(SCENARIOS[2], all, None),
        scenario(SCENARIOS[3], drain, drain_of),
        scenario(SCENARIOS[4], failover, None),
    ];
    let share = applications.at_least as f64 * 100.0;
    let room = server.warn_at * server.max_connections.at_least as f64;
    if scenarios[0].verdict == Verdict::Fits && share > room {
        scenarios[0].verdict = Verdict::Tight;
    }
    let decides = |s: &&Scenario| fail_on.contains(&s.name);
    let over = scenarios
        .iter()
        .filter(decides)
        .any(|s| s.verdict == Verdict::Over);
    let unknown = scenarios.iter().any(|s| s.verdict == Verdict::Unknown);
    let tight = share > room || scenarios.iter().any(|s| s.verdict == Verdict::Over);
    let verdict = match (over, unknown, tight && server.max_connections.exact) {
        (true, ..) => Verdict::Over,
        (_, true, _) => Verdict::Unknown,
        (.., true) => Verdict::Tight,
        _ => Verdict::Fits,
    };
    ServerReport {
        name: server.name.clone(),
        max_connections: server.max_connections,
        usable,
        headroom: server.headroom.clone(),
        applications,
        scenarios,
        workloads: rows,
        verdict,
        from: server.from.clone(),
    }
}

/// Clients of a pooler against what its instances let in.
fn clients(budget: &Budget, pooler: &Pooler) -> Option<Breach> {
    let rows: Vec<WorkloadRow> = budget
        .workloads
        .iter()
        .filter(|workload| workload.target.as_deref() == Some(pooler.name.as_str()))
        .map(WorkloadRow::of)
        .collect();
    let steady: Count = rows.iter().map(WorkloadRow::steady).sum();
    let rolled = steady.plus(rows.iter().map(WorkloadRow::more).sum());
    let max_clients = pooler.max_clients?;
    let limit = pooler.pods.times(Count::known(max_clients));
    let (peak, level) = match (
        steady.at_least > limit.at_least,
        rolled.at_least > limit.at_least,
    ) {
        (true, _) => (steady, Level::Error),
        (_, true) => (rolled, Level::Warning),
        _ => return None,
    };
    let message = format!(
        "pooler {}: {} clients at their peak, and {} instances let in {} ({} each, max_client_conn)",
        pooler.name,
        peak.words(),
        pooler.pods.words(),
        limit.at_least,
        max_clients
    );
    let at = pooler.from.iter().find_map(|source| source.at.clone());
    Some(Breach::new("pooler.client_limit", level, message, at).of(&pooler.name))
}
