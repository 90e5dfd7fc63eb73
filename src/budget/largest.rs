//! What still fits: the largest value of one factor of a workload, the others as they are; and the smallest max_connections.

use super::count::Count;
use super::math::{Scenario, ServerReport};
use super::spec::{Budget, Server, Workload};

/// How far one number can be raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Most {
    UpTo(u64),
    /// It doesn't fit without any of it either.
    Never,
    /// It counts for nothing here.
    Any,
}

/// Of each factor of one workload.
#[derive(Clone, Debug)]
pub struct Largest {
    pub workload: String,
    pub server: String,
    pub pods: Most,
    /// Not where containers with pools of their own add up.
    pub processes: Option<Most>,
    pub connections: Option<Most>,
}

/// More than anybody has.
const MOST: u64 = 1 << 24;

/// What one of them adds, at rest, while it is rolled out, and with its old ones still there.
#[derive(Clone, Copy)]
struct Load {
    steady: u64,
    more: u64,
    drain: u64,
}

impl Load {
    fn of(pods: Count, surge: Count, drain: Count, per_pod: u64) -> Self {
        Self {
            steady: pods.at_least.saturating_mul(per_pod),
            more: surge.at_least.saturating_mul(per_pod),
            drain: surge.plus(drain).at_least.saturating_mul(per_pod),
        }
    }
}

/// Everything of one server, so that one of them can be left out at once.
struct Sums<'b> {
    server: &'b Server,
    headroom: u64,
    failover: u64,
    steady: u64,
    more: u64,
    /// The two largest of each, by whose they are.
    worst: [(u64, usize); 2],
    drains: [(u64, usize); 2],
}

fn two_largest(all: impl Iterator<Item = (u64, usize)>) -> [(u64, usize); 2] {
    let mut two = [(0, usize::MAX); 2];
    for one in all {
        if one.0 > two[0].0 {
            two = [one, two[0]];
        } else if one.0 > two[1].0 {
            two[1] = one;
        }
    }
    two
}

impl<'b> Sums<'b> {
    fn of(budget: &Budget, server: &'b Server, loads: &[(Option<&str>, Load)]) -> Self {
        let on = |name: &str| {
            let name = name.to_owned();
            loads
                .iter()
                .enumerate()
                .filter(move |(_, (target, _))| *target == Some(name.as_str()))
        };
        let taken_over = budget
            .servers
            .iter()
            .filter(|other| other.replica_of.as_deref() == Some(server.name.as_str()));
        let sum = |of: fn(&Load) -> u64, name: &str| {
            on(name).fold(0_u64, |sum, (_, (_, load))| sum.saturating_add(of(load)))
        };
        Self {
            server,
            headroom: server.headroom(),
            failover: taken_over.fold(0, |all, other| all + sum(|load| load.steady, &other.name)),
            steady: sum(|load| load.steady, &server.name),
            more: sum(|load| load.more, &server.name),
            worst: two_largest(on(&server.name).map(|(n, (_, load))| (load.more, n))),
            drains: two_largest(on(&server.name).map(|(n, (_, load))| (load.drain, n))),
        }
    }

    /// Every scenario that decides, with the load `n` replaced.
    fn fits(&self, n: usize, old: Load, new: Load, fail_on: &[&str]) -> bool {
        let without = |two: &[(u64, usize); 2]| match two[0].1 == n {
            true => two[1].0,
            false => two[0].0,
        };
        let steady = self
            .steady
            .saturating_sub(old.steady)
            .saturating_add(new.steady);
        let steady = steady.saturating_add(self.headroom);
        let all = self.more.saturating_sub(old.more).saturating_add(new.more);
        let usable = self.server.usable().at_least;
        let more = |scenario: &str| match scenario {
            "rollout-worst-one" => without(&self.worst).max(new.more),
            "rollout-all" => all,
            "rollout-drain" => without(&self.drains).max(new.drain),
            "failover" => self.failover,
            _ => 0,
        };
        fail_on
            .iter()
            .all(|scenario| steady.saturating_add(more(scenario)) <= usable)
    }
}

/// For each workload that connects to a server whose limit is known.
pub fn largest(budget: &Budget, fail_on: &[&str]) -> Vec<Largest> {
    let load = |w: &Workload| Load::of(w.pods, w.surge, w.drain, w.per_pod.at_least);
    let of_workloads = budget
        .workloads
        .iter()
        .map(|w| (w.target.as_deref(), load(w)));
    let of_poolers = budget.poolers.iter().map(|p| {
        let load = Load::of(p.pods, p.surge, p.drain, p.cap.at_least);
        (p.target.as_deref(), load)
    });
    let loads: Vec<(Option<&str>, Load)> = of_workloads.chain(of_poolers).collect();
    let mut all = Vec::new();
    for server in budget.servers.iter().filter(|s| s.max_connections.exact) {
        let one = Sums::of(budget, server, &loads);
        let here = budget.workloads.iter().enumerate();
        for (n, workload) in here.filter(|(_, w)| w.target.as_ref() == Some(&server.name)) {
            let fits = |new: Load| one.fits(n, loads[n].1, new, fail_on);
            all.push(of_workload(workload, &server.name, &fits));
        }
    }
    all
}

fn of_workload(workload: &Workload, server: &str, fits: &dyn Fn(Load) -> bool) -> Largest {
    let with_pods = |number: u64| {
        let pods = Count::known(number);
        let drain = if workload.drains {
            pods
        } else {
            workload.drain
        };
        let surge = workload.surge_rule.of(pods);
        fits(Load::of(pods, surge, drain, workload.per_pod.at_least))
    };
    let with_each = |each: u64| {
        fits(Load::of(
            workload.pods,
            workload.surge,
            workload.drain,
            each,
        ))
    };
    let (processes, connections) = (workload.processes.at_least, workload.connections.at_least);
    // What opens connections beside the application.
    let beside = processes
        .checked_mul(connections)
        .and_then(|product| workload.per_pod.at_least.checked_sub(product))
        .filter(|_| processes > 0 && connections > 0);
    Largest {
        workload: workload.name.clone(),
        server: server.to_owned(),
        pods: most(&with_pods),
        processes: beside
            .map(|beside| most(&|n| with_each(n.saturating_mul(connections) + beside))),
        connections: beside
            .map(|beside| most(&|n| with_each(n.saturating_mul(processes) + beside))),
    }
}

/// By halves: what fits with more fits with less.
fn most(fits: &dyn Fn(u64) -> bool) -> Most {
    if !fits(0) {
        return Most::Never;
    }
    if fits(MOST) {
        return Most::Any;
    }
    let (mut low, mut high) = (0, MOST);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match fits(middle) {
            true => low = middle,
            false => high = middle,
        }
    }
    Most::UpTo(low)
}

/// The smallest max_connections with which every scenario that decides fits.
pub fn smallest_max_connections(server: &ServerReport, fail_on: &[&str]) -> u64 {
    let decides = |scenario: &&Scenario| fail_on.contains(&scenario.name);
    let peaks = server.scenarios.iter().filter(decides);
    let most = peaks.map(|scenario| scenario.peak.at_least).max();
    let kept = server.max_connections.at_least
        - server.usable.at_least.min(server.max_connections.at_least);
    most.unwrap_or(0).saturating_add(kept)
}
