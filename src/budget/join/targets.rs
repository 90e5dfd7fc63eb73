//! What connects where: by its own word, by the host of its address, else to the only server that there is.

use super::super::count::At;
use super::super::sources::Fault;
use super::super::spec::{Budget, Unknown};
use super::All;
use crate::yaml::Place;

/// Everything has a target that is there; without one it is the only server's.
pub(super) fn find(budget: &mut Budget, all: &All) -> Result<(), Fault> {
    let servers: Vec<String> = budget
        .servers
        .iter()
        .map(|server| server.name.clone())
        .collect();
    let poolers: Vec<String> = budget
        .poolers
        .iter()
        .map(|pooler| pooler.name.clone())
        .collect();
    for spec in all.specs.iter().flat_map(|spec| &spec.servers) {
        if let Some((name, at)) = &spec.replica_of
            && !servers.contains(name)
        {
            return Err(Fault::new(
                &at.file,
                at.place,
                format!("there is no server {name:?}"),
            ));
        }
    }
    let only = match servers.as_slice() {
        [one] => Some(one.clone()),
        _ => None,
    };
    let missing = |name: &str, at: &Option<At>| {
        let top = At::new("the input", Place { line: 1, column: 1 });
        let at = at.clone().unwrap_or(top);
        let known: Vec<&str> = servers.iter().chain(&poolers).map(String::as_str).collect();
        let what = format!(
            "there is no server or pooler {name:?}; there are: {}",
            known.join(", ")
        );
        Err(Fault::new(&at.file, at.place, what))
    };
    let mut unknowns = Vec::new();
    let lost = |name: &str, at: Option<At>| Unknown {
        what: format!("which server {name} connects to"),
        settle: "target in budget.yaml, or the annotation stanch.dev/target".into(),
        at,
    };
    for pooler in &mut budget.poolers {
        match &pooler.target {
            Some(name) if !servers.contains(name) => return missing(name, &pooler.target_at),
            Some(_) => {}
            None => {
                pooler.target.clone_from(&only);
                if pooler.target.is_none() {
                    unknowns.push(lost(&pooler.name, None));
                }
            }
        }
    }
    for workload in &mut budget.workloads {
        match &workload.target {
            Some(name) if !servers.contains(name) && !poolers.contains(name) => {
                return missing(name, &workload.target_at);
            }
            Some(_) => {}
            None => {
                let by_address = workload.address.as_ref();
                workload.target = by_address
                    .and_then(|address| by_host(address, &servers, &poolers))
                    .or_else(|| only.clone());
                if workload.target.is_none() {
                    unknowns.push(lost(&workload.name, Some(workload.at.clone())));
                }
            }
        }
    }
    budget.unknowns.extend(unknowns);
    Ok(())
}

/// The pooler or server that a host's first label names; PgBouncer's own port is the only pooler's.
fn by_host(
    (host, port): &(String, Option<u16>),
    servers: &[String],
    poolers: &[String],
) -> Option<String> {
    let label = host.split('.').next().unwrap_or(host);
    let named = |name: &&String| name.trim_end_matches(".ini") == label;
    let found = poolers.iter().find(named);
    let found = found.or_else(|| servers.iter().find(named));
    let only = match (poolers, port) {
        ([only], Some(6432)) => Some(only),
        _ => None,
    };
    found.or(only).cloned()
}
