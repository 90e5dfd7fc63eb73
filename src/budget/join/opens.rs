//! What one pod opens: what is said of it, else what its containers show.

use super::super::count::{At, Count, Source};
use super::super::pools::Pool;
use super::super::sources::{Manifest, Role, WorkloadSpec};
use super::super::spec::Unknown;
use super::Join;

/// What one pod opens.
pub(super) struct Opens {
    pub processes: Count,
    pub connections: Count,
    pub per_pod: Count,
    pub from: Vec<Source>,
    pub unknowns: Vec<Unknown>,
    pub pools: Vec<Pool>,
    /// Where its environment says that the database is.
    pub address: Option<(String, Option<u16>)>,
}

impl Default for Opens {
    fn default() -> Self {
        Self {
            processes: Count::known(1),
            connections: Count::ZERO,
            per_pod: Count::ZERO,
            from: Vec::new(),
            unknowns: Vec::new(),
            pools: Vec::new(),
            address: None,
        }
    }
}

fn no_connections(name: &str, at: Option<At>) -> Unknown {
    Unknown {
        what: format!("how many connections a process of {name} opens"),
        settle: "connections in budget.yaml, or the annotation stanch.dev/connections".into(),
        at,
    }
}

impl Join<'_> {
    /// What one pod opens.
    pub(super) fn opens(
        &mut self,
        name: &str,
        spec: Option<&WorkloadSpec>,
        manifest: Option<&Manifest>,
        pools: &[(Role, Pool)],
    ) -> Opens {
        let set = |field: &str| {
            let value = self.options.set(name, field)?;
            Some((value, Source::asked(&format!("{field} (--set)"), value)))
        };
        let said = |field: &str, of_spec: Option<&(u64, At)>, of_manifest: Option<&(u64, At)>| {
            set(field).or_else(|| {
                let (value, at) = of_spec.or(of_manifest)?;
                Some((*value, Source::said(field, value, at.clone())))
            })
        };
        let connections = said(
            "connections",
            spec.and_then(|s| s.connections.as_ref()),
            manifest.and_then(|m| m.connections.as_ref()),
        );
        let processes = said(
            "processes",
            spec.and_then(|s| s.processes.as_ref()),
            manifest.and_then(|m| m.processes.as_ref()),
        );
        let apps: Vec<&Pool> = pools
            .iter()
            .filter(|(role, _)| *role == Role::App)
            .map(|(_, p)| p)
            .collect();
        if connections.is_none() && (pools.len() != 1 || apps.is_empty()) {
            return self.of_containers(name, spec, manifest, pools, processes);
        }
        // One number for each process, said or seen.
        let seen = apps.first();
        let mut opens = Opens::default();
        opens.processes = match processes {
            Some((number, source)) => {
                opens.from.push(source);
                Count::known(number)
            }
            None => {
                // Its connections may be said, and yet not how many processes open them.
                if let Some(pool) = seen.filter(|pool| !pool.processes.exact) {
                    opens.unknowns.extend(pool.unknown.clone());
                }
                seen.map_or(Count::known(1), |pool| pool.processes)
            }
        };
        match connections {
            Some((number, source)) => {
                opens.from.push(source);
                opens.connections = Count::known(number);
                if let Some(pool) =
                    seen.filter(|_| opens.from.iter().all(|s| !s.what.starts_with("processes")))
                {
                    let own = pool.from.iter().filter(|s| s.what.starts_with("processes"));
                    opens.from.extend(own.cloned());
                }
            }
            None => match seen {
                Some(pool) => {
                    opens.connections = pool.connections;
                    let said = opens.from.iter().any(|s| s.what.starts_with("processes"));
                    let own = pool
                        .from
                        .iter()
                        .filter(|s| !(said && s.what.starts_with("processes")));
                    opens.from.extend(own.cloned());
                    // How many processes there are was hidden, and is said.
                    if !(said && pool.connections.exact) {
                        opens.unknowns.extend(pool.unknown.clone());
                        opens.unknowns.dedup();
                    }
                }
                None => {
                    let at = spec
                        .map(|s| s.at.clone())
                        .or_else(|| manifest.map(|m| m.at.clone()));
                    opens.connections = Count::at_least(0);
                    opens.unknowns.push(no_connections(name, at));
                }
            },
        }
        opens.per_pod = opens.processes.times(opens.connections);
        // Its sidecars open what they open, whatever is said of the application.
        let beside = pools.iter().filter(|(role, _)| *role == Role::Sidecar);
        for (_, pool) in beside {
            opens.per_pod = opens.per_pod.plus(pool.processes.times(pool.connections));
            opens.from.extend(pool.from.clone());
            opens.unknowns.extend(pool.unknown.clone());
        }
        opens.pools = pools.iter().map(|(_, pool)| pool.clone()).collect();
        opens
    }

    /// Containers add up; those that run before don't run beside.
    fn of_containers(
        &mut self,
        name: &str,
        spec: Option<&WorkloadSpec>,
        manifest: Option<&Manifest>,
        pools: &[(Role, Pool)],
        processes: Option<(u64, Source)>,
    ) -> Opens {
        let mut opens = Opens {
            processes: Count::known(1),
            ..Opens::default()
        };
        // What is said of processes is said of the application, not of what runs before or beside it.
        let said = processes.map(|(number, source)| {
            opens.from.push(source);
            Count::known(number)
        });
        let of_pool = |role: Role, pool: &Pool| {
            let processes = said.filter(|_| role == Role::App);
            processes.unwrap_or(pool.processes).times(pool.connections)
        };
        if pools.is_empty() {
            let at = spec
                .map(|s| s.at.clone())
                .or_else(|| manifest.map(|m| m.at.clone()));
            opens.connections = Count::at_least(0);
            opens.per_pod = Count::at_least(0);
            opens.unknowns.push(no_connections(name, at));
            return opens;
        }
        let sum = |role: Role| -> Count {
            let of = pools.iter().filter(|(r, _)| *r == role);
            of.map(|(role, pool)| of_pool(*role, pool)).sum()
        };
        let init = pools
            .iter()
            .filter(|(role, _)| *role == Role::Init)
            .map(|(_, pool)| pool.processes.times(pool.connections))
            .fold(Count::ZERO, Count::largest);
        opens.per_pod = sum(Role::App).largest(init).plus(sum(Role::Sidecar));
        opens.connections = opens.per_pod;
        for (_, pool) in pools {
            opens.from.extend(pool.from.clone());
            opens.unknowns.extend(pool.unknown.clone());
            opens.pools.push(pool.clone());
        }
        opens
    }
}
