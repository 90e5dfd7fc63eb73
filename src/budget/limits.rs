//! Limits of single roles and databases (`CONNECTION LIMIT`): each workload and pooler counts against those it logs in with.

use super::count::Count;
use super::rules::{Breach, Level};
use super::spec::{Budget, Pooler, Server, Workload};

/// What is over a limit of its own, in the first scenario in which it is.
pub fn over(budget: &Budget, fail_on: &[&str]) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for server in &budget.servers {
        for (kind, limits) in [("role", &server.roles), ("database", &server.databases)] {
            for (name, limit, at) in limits {
                let loads = loads(budget, server, kind, name);
                let Some((scenario, peak)) = first_over(&loads, *limit) else {
                    continue;
                };
                let level = match fail_on.contains(&scenario) {
                    true => Level::Error,
                    false => Level::Warning,
                };
                let message = format!(
                    "{}: {kind} {name} can have {} connections in {scenario}, and its limit is {limit}",
                    server.name,
                    peak.words()
                );
                breaches.push(Breach::new("limit.over", level, message, Some(at.clone())));
            }
        }
    }
    breaches
}

/// At rest, and how many more while it is rolled out.
struct Load {
    steady: Count,
    more: Count,
}

fn loads(budget: &Budget, server: &Server, kind: &str, name: &str) -> Vec<Load> {
    let here = |target: &Option<String>| target.as_deref() == Some(server.name.as_str());
    let of_workload = |workload: &Workload| {
        let own = match kind {
            "role" => &workload.role,
            _ => &workload.database,
        };
        (own.as_deref() == Some(name)).then(|| Load {
            steady: workload.pods.times(workload.per_pod),
            more: workload.surge.times(workload.per_pod),
        })
    };
    let of_pooler = |pooler: &Pooler| {
        let shares = match kind {
            "role" => &pooler.by_role,
            _ => &pooler.by_database,
        };
        let (_, most) = shares.iter().find(|(known, _)| known == name)?;
        let most = Count {
            at_least: *most,
            exact: pooler.cap.exact,
        };
        Some(Load {
            steady: pooler.pods.times(most),
            more: pooler.surge.times(most),
        })
    };
    let workloads = budget.workloads.iter().filter(|w| here(&w.target));
    let poolers = budget.poolers.iter().filter(|p| here(&p.target));
    workloads
        .filter_map(of_workload)
        .chain(poolers.filter_map(of_pooler))
        .collect()
}

fn first_over(loads: &[Load], limit: u64) -> Option<(&'static str, Count)> {
    let steady: Count = loads.iter().map(|load| load.steady).sum();
    let worst = loads
        .iter()
        .map(|load| load.more)
        .max_by_key(|more| more.at_least);
    let all: Count = loads.iter().map(|load| load.more).sum();
    let scenarios = [
        ("steady", steady),
        (
            "rollout-worst-one",
            steady.plus(worst.unwrap_or(Count::ZERO)),
        ),
        ("rollout-all", steady.plus(all)),
    ];
    scenarios
        .into_iter()
        .find(|(_, peak)| peak.at_least > limit)
}
