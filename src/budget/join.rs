//! What the files say, put together: who scales what, who connects where, and which numbers win.

mod loads;
mod opens;
mod poolers;
mod targets;

use std::collections::BTreeMap;

use super::count::{At, Count, Source};
use super::sources::{
    Conf, ConfigMap, Fault, Found, Manifest, PgBouncer, Scaler, ServerSpec, SpecFile, Surge, Task,
    beside, rails,
};
use super::spec::{Budget, Server, Unknown};
use crate::yaml::Place;

/// What the command line says beside the files.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub max_connections: Option<u64>,
    pub nodes: Option<u64>,
    /// What if: `web.pods=40`.
    pub set: Vec<(String, String, u64)>,
    pub today: Option<chrono::NaiveDate>,
}

impl Options {
    fn set(&self, name: &str, field: &str) -> Option<u64> {
        let of = |(n, f, _): &&(String, String, u64)| n == name && f == field;
        self.set.iter().rev().find(of).map(|(_, _, value)| *value)
    }
}

/// # Errors
/// What doesn't fit together, or that there is nothing.
pub fn join(found: Vec<Found>, options: &Options) -> Result<Budget, Fault> {
    let mut all = All::default();
    for one in found {
        all.sort(one);
    }
    if all.is_empty() && options.max_connections.is_none() {
        let top = Place { line: 1, column: 1 };
        let what = "no object found: budget.yaml, Kubernetes manifests, docker-compose, ECS, pgbouncer.ini, postgresql.conf";
        return Err(Fault::new("the input", top, what));
    }
    all.no_doubles()?;
    all.templates();
    let mut budget = Budget::default();
    let mut join = Join {
        all: &all,
        options,
        budget: &mut budget,
    };
    join.servers();
    let scaled = join.scaled();
    join.poolers(&scaled)?;
    join.workloads(&scaled)?;
    join.check_sets()?;
    if budget.servers.is_empty() && budget.workloads.is_empty() && budget.poolers.is_empty() {
        let top = Place { line: 1, column: 1 };
        return Err(Fault::new(
            "the input",
            top,
            "no object found that connects to a database, as far as the files say",
        ));
    }
    if budget.servers.is_empty() {
        implicit_server(&mut budget);
    }
    targets::find(&mut budget, &all)?;
    let suppressions = all.specs.iter().flat_map(|spec| &spec.suppressions);
    budget.suppressions = suppressions.cloned().collect();
    budget.today = options.today;
    super::rules::check(&mut budget, &all.specs, &all.bouncers);
    Ok(budget)
}

/// What was found, by its kind.
#[derive(Default)]
struct All {
    specs: Vec<SpecFile>,
    manifests: Vec<Manifest>,
    scalers: Vec<Scaler>,
    maps: Vec<ConfigMap>,
    tasks: Vec<Task>,
    bouncers: Vec<PgBouncer>,
    confs: Vec<Conf>,
    parts: Vec<Conf>,
    sidekiqs: Vec<rails::Sidekiq>,
    databases: Vec<rails::Database>,
}

impl All {
    fn sort(&mut self, found: Found) {
        match found {
            Found::Spec(spec) => self.specs.push(spec),
            Found::Manifest(manifest) => self.manifests.push(*manifest),
            Found::Scaler(scaler) => self.scalers.push(scaler),
            Found::ConfigMap(map) => self.maps.push(map),
            Found::Task(task) => self.tasks.push(task),
            Found::Part(conf) => self.parts.push(conf),
            Found::PgBouncer(bouncer) => self.bouncers.push(bouncer),
            Found::Conf(conf) => self.confs.push(conf),
            Found::Sidekiq(sidekiq) => self.sidekiqs.push(sidekiq),
            Found::Database(database) => self.databases.push(database),
        }
    }

    /// A Rollout that runs a Deployment's template is that Deployment: by its own number, with the other's containers.
    fn templates(&mut self) {
        let mut taken = Vec::new();
        for at in 0..self.manifests.len() {
            let rollout = &self.manifests[at];
            let Some(name) = &rollout.template_of else {
                continue;
            };
            let of = |one: &Manifest| {
                one.kind == "Deployment" && one.name == *name && one.namespace == rollout.namespace
            };
            let Some(found) = self.manifests.iter().position(of) else {
                continue;
            };
            let deployment = self.manifests[found].clone();
            let rollout = &mut self.manifests[at];
            rollout.template_of = None;
            rollout.containers = deployment.containers;
            rollout.target = rollout.target.take().or(deployment.target);
            rollout.library = rollout.library.take().or(deployment.library);
            rollout.connections = rollout.connections.take().or(deployment.connections);
            rollout.processes = rollout.processes.take().or(deployment.processes);
            taken.push(found);
        }
        let mut at = 0;
        self.manifests.retain(|_| {
            at += 1;
            !taken.contains(&(at - 1))
        });
    }

    /// The containers of an ECS service: of its revision, else of the newest.
    fn task(&self, (family, revision): &(String, Option<u64>)) -> Option<&Task> {
        let all = self.tasks.iter().filter(|task| task.family == *family);
        match revision {
            Some(_) => {
                let same = |task: &&Task| task.revision.is_none() || task.revision == *revision;
                let mut fitting: Vec<&Task> = all.filter(same).collect();
                fitting.sort_by_key(|task| task.revision);
                fitting.pop()
            }
            None => all.max_by_key(|task| task.revision),
        }
    }

    /// What stands there twice would count twice: two environments are two budgets.
    fn no_doubles(&self) -> Result<(), Fault> {
        let mut seen: BTreeMap<(&str, &str, &str), &At> = BTreeMap::new();
        let manifests = self.manifests.iter().map(|m| {
            (
                (m.kind.as_str(), m.namespace.as_str(), m.name.as_str()),
                &m.at,
            )
        });
        let servers = self
            .specs
            .iter()
            .flat_map(|spec| &spec.servers)
            .map(|server| (("server", "", server.name.as_str()), &server.at));
        for (key, at) in manifests.chain(servers) {
            if let Some(first) = seen.insert(key, at) {
                let what = format!(
                    "{} {} stands in {} as well: check one environment at a time, or leave one out with --exclude",
                    key.0,
                    key.2,
                    first.words()
                );
                return Err(Fault::new(&at.file, at.place, what));
            }
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.specs.is_empty()
            && self.manifests.is_empty()
            && self.bouncers.is_empty()
            && self.confs.is_empty()
            && self.scalers.is_empty()
    }
}

struct Join<'j> {
    all: &'j All,
    options: &'j Options,
    budget: &'j mut Budget,
}

impl<'j> Join<'j> {
    fn servers(&mut self) {
        let specs = self.all.specs.iter().flat_map(|spec| &spec.servers);
        for spec in specs {
            let path = spec.conf.as_ref().map(|(conf, at)| beside(&at.file, conf));
            let confs = || self.all.confs.iter().chain(&self.all.parts);
            let conf = path.and_then(|path| confs().find(|conf| conf.file == path));
            let conf = conf.map(|conf| conf.with(&self.all.parts));
            let server = self.server(&spec.name, Some(spec), conf.as_ref());
            self.budget.servers.push(server);
        }
        if self.budget.servers.is_empty() {
            for conf in &self.all.confs {
                let name = conf
                    .file
                    .rsplit('/')
                    .next()
                    .unwrap_or(&conf.file)
                    .to_owned();
                let conf = conf.with(&self.all.parts);
                let server = self.server(&name, None, Some(&conf));
                self.budget.servers.push(server);
            }
        }
        if self.budget.servers.is_empty() && self.options.max_connections.is_some() {
            let server = self.server("main", None, None);
            self.budget.servers.push(server);
        }
    }

    fn server(&mut self, name: &str, spec: Option<&ServerSpec>, conf: Option<&Conf>) -> Server {
        let mut from = Vec::new();
        let what_if = self
            .options
            .set(name, "max_connections")
            .or(self.options.max_connections);
        let pick = |key: &str, of_spec: Option<&Option<(u64, At)>>, from: &mut Vec<Source>| {
            let said = of_spec.and_then(Option::as_ref).cloned();
            let said = said.or_else(|| conf.and_then(|conf| conf.number(key)));
            said.map(|(number, at)| {
                from.push(Source::said(key, number, at));
                number
            })
        };
        let max = pick(
            "max_connections",
            spec.map(|s| &s.max_connections),
            &mut from,
        );
        let max = match what_if {
            Some(number) => {
                from.retain(|source| source.what != "max_connections");
                from.push(Source::asked("max_connections (--max-connections)", number));
                Some(number)
            }
            None => max,
        };
        if max.is_none() {
            let at = spec.map(|spec| spec.at.clone());
            self.budget.unknowns.push(Unknown {
                what: format!("max_connections of {name}"),
                settle: "max_connections in budget.yaml, a postgresql.conf, or --max-connections"
                    .into(),
                at,
            });
        }
        let mut keep = |key: &str, of_spec: Option<&Option<(u64, At)>>, default: u64| {
            pick(key, of_spec, &mut from).unwrap_or_else(|| {
                if default > 0 {
                    from.push(Source::assumed(key, default, None));
                }
                default
            })
        };
        let superuser_reserved = keep(
            "superuser_reserved_connections",
            spec.map(|s| &s.superuser_reserved),
            3,
        );
        let reserved = keep("reserved_connections", spec.map(|s| &s.reserved), 0);
        let provider_reserve = keep("provider_reserve", spec.map(|s| &s.provider_reserve), 0);
        let headroom = spec
            .map(|spec| spec.headroom.as_slice())
            .unwrap_or_default();
        for (what, number, at) in headroom {
            from.push(Source::said(
                &format!("headroom: {what}"),
                number,
                at.clone(),
            ));
        }
        Server {
            name: name.to_owned(),
            max_connections: max.map_or(Count::at_least(0), Count::known),
            superuser_reserved,
            reserved,
            provider_reserve,
            headroom: headroom
                .iter()
                .map(|(what, number, _)| (what.clone(), *number))
                .collect(),
            roles: spec.map(|spec| spec.roles.clone()).unwrap_or_default(),
            databases: spec.map(|spec| spec.databases.clone()).unwrap_or_default(),
            warn_at: spec.and_then(|spec| spec.warn_at).unwrap_or(80.0),
            settings: settings(spec, conf),
            is_designed: spec.is_some_and(|spec| !spec.settings.is_empty()),
            replica_of: spec
                .and_then(|s| s.replica_of.clone())
                .map(|(name, _)| name),
            from,
        }
    }

    /// For each manifest its scaler; one without its object is told.
    fn scaled(&mut self) -> Vec<Option<&'j Scaler>> {
        let all = self.all;
        let fits = |scaler: &Scaler, manifest: &Manifest| {
            scaler.target == manifest.name
                && scaler.namespace == manifest.namespace
                && (scaler.target_kind.is_empty() || scaler.target_kind == manifest.kind)
        };
        for scaler in &all.scalers {
            if !all.manifests.iter().any(|manifest| fits(scaler, manifest)) {
                self.budget.unknowns.push(Unknown {
                    what: format!(
                        "{} {} scales {} {}, which isn't in the input",
                        scaler.kind, scaler.name, scaler.target_kind, scaler.target
                    ),
                    settle: "its manifest, beside it".into(),
                    at: Some(scaler.at.clone()),
                });
            }
        }
        let of = |manifest: &Manifest| {
            let fitting: Vec<&Scaler> = all.scalers.iter().filter(|s| fits(s, manifest)).collect();
            // A ScaledObject makes an autoscaler of its own: the two are one.
            let keda = fitting.iter().find(|scaler| scaler.kind == "ScaledObject");
            keda.or(fitting.first()).copied()
        };
        all.manifests.iter().map(of).collect()
    }

    /// Pods, with what scales them and what the command line says.
    fn pods(&mut self, name: &str, at: usize, scaled: &[Option<&Scaler>]) -> Made {
        let manifest = &self.all.manifests[at];
        let pods = &manifest.pods;
        let mut made = Made {
            pods: pods.count,
            from: pods.from.clone(),
            surge: pods.surge,
            surge_from: pods.surge_from.clone(),
            drains: pods.drains,
            unknown: pods.unknown.clone(),
        };
        if let Some(scaler) = scaled.get(at).copied().flatten() {
            let most = match scaler.fixed {
                true => scaler.most,
                false => scaler.most.max(pods.count.at_least),
            };
            if scaler.fixed || scaler.most >= pods.count.at_least {
                made.from = vec![scaler.source.clone()];
            }
            made.pods = Count::known(most);
        }
        if let (Some(nodes), "DaemonSet") = (self.options.nodes, manifest.kind.as_str()) {
            made.pods = Count::known(nodes);
            made.from = vec![Source::asked("pods (--nodes)", nodes)];
            made.unknown = None;
        }
        if let Some(pods) = self.options.set(name, "pods") {
            made.pods = Count::known(pods);
            made.from = vec![Source::asked("pods (--set)", pods)];
            made.unknown = None;
        }
        made
    }

    /// What if of something that isn't there was a slip.
    fn check_sets(&self) -> Result<(), Fault> {
        for (name, field, _) in &self.options.set {
            let top = Place { line: 1, column: 1 };
            let server = self
                .budget
                .servers
                .iter()
                .any(|server| server.name == *name);
            let load = self.budget.workloads.iter().any(|w| w.name == *name);
            let pooler = self.budget.poolers.iter().any(|p| p.name == *name);
            let known = match field.as_str() {
                "max_connections" => server,
                "pods" | "surge" => load || pooler,
                "processes" | "connections" => load,
                _ => false,
            };
            if !known {
                let what = format!(
                    "{name}.{field}: no such number; NAME.pods, .processes, .connections, .surge of a workload, or SERVER.max_connections"
                );
                return Err(Fault::new("--set", top, what));
            }
        }
        Ok(())
    }
}

/// The design's settings over those of the file.
fn settings(spec: Option<&ServerSpec>, conf: Option<&Conf>) -> BTreeMap<String, (String, At)> {
    let of_conf = conf.into_iter().flat_map(|conf| conf.settings.clone());
    let of_spec = spec.into_iter().flat_map(|spec| {
        let all = spec.settings.iter();
        all.map(|(name, value, at)| (name.clone(), (value.clone(), at.clone())))
    });
    of_conf.chain(of_spec).collect()
}

/// Pods as they are made.
struct Made {
    pods: Count,
    from: Vec<Source>,
    surge: Surge,
    surge_from: Option<Source>,
    drains: bool,
    unknown: Option<Unknown>,
}

/// Where nothing says what server it is, there is one all the same.
fn implicit_server(budget: &mut Budget) {
    budget.unknowns.push(Unknown {
        what: "max_connections of the server".into(),
        settle: "servers in budget.yaml, a postgresql.conf, or --max-connections".into(),
        at: None,
    });
    budget.servers.push(Server {
        name: "main".into(),
        max_connections: Count::at_least(0),
        superuser_reserved: 3,
        reserved: 0,
        provider_reserve: 0,
        headroom: Vec::new(),
        roles: Vec::new(),
        databases: Vec::new(),
        warn_at: 80.0,
        replica_of: None,
        settings: BTreeMap::new(),
        is_designed: false,
        from: Vec::new(),
    });
}
