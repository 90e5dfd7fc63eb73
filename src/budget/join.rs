//! What the files say, put together: who scales what, who connects where, and which numbers win.

use std::collections::BTreeMap;

use super::count::{At, Count, Source};
use super::pools::{self, Known, Pool, Ruby};
use super::rules::{Breach, Level};
use super::sources::{
    Conf, ConfigMap, Container, EnvValue, Fault, Found, Manifest, PgBouncer, Role, Scaler,
    ServerSpec, SpecFile, Surge, WorkloadSpec, beside, rails,
};
use super::spec::{Budget, Pooler, Server, Unknown, Workload};
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
    targets(&mut budget, &all)?;
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
    tasks: BTreeMap<String, Vec<Container>>,
    bouncers: Vec<PgBouncer>,
    confs: Vec<Conf>,
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
            Found::Task { family, containers } => {
                self.tasks.insert(family, containers);
            }
            Found::PgBouncer(bouncer) => self.bouncers.push(bouncer),
            Found::Conf(conf) => self.confs.push(conf),
            Found::Sidekiq(sidekiq) => self.sidekiqs.push(sidekiq),
            Found::Database(database) => self.databases.push(database),
        }
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
        let mut claimed = Vec::new();
        for spec in specs {
            let path = spec.conf.as_ref().map(|(conf, at)| beside(&at.file, conf));
            let conf = path.and_then(|path| self.all.confs.iter().find(|conf| conf.file == path));
            claimed.extend(conf.map(|conf| conf.file.clone()));
            let server = self.server(&spec.name, Some(spec), conf);
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
                let server = self.server(&name, None, Some(conf));
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
                from.push(Source {
                    assumed: false,
                    ..Source::assumed("max_connections (--max-connections)", number, None)
                });
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
            warn_at: spec.and_then(|spec| spec.warn_at).unwrap_or(80.0),
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
            made.from = vec![Source::assumed("pods (--nodes)", nodes, None)];
            made.unknown = None;
        }
        if let Some(pods) = self.options.set(name, "pods") {
            made.pods = Count::known(pods);
            made.from = vec![Source::assumed("pods (--set)", pods, None)];
            made.unknown = None;
        }
        made
    }

    fn workloads(&mut self, scaled: &[Option<&Scaler>]) -> Result<(), Fault> {
        let all = self.all;
        let specs: Vec<&WorkloadSpec> = all.specs.iter().flat_map(|spec| &spec.workloads).collect();
        let mut joined = vec![false; specs.len()];
        for at in 0..all.manifests.len() {
            let manifest = &all.manifests[at];
            if self
                .budget
                .poolers
                .iter()
                .any(|pooler| pooler.name == manifest.name)
            {
                continue;
            }
            let names = |spec: &WorkloadSpec| match &spec.manifest {
                Some((name, _)) => *name == manifest.name,
                None => spec.name == manifest.name,
            };
            let spec = specs.iter().position(|spec| names(spec));
            if let Some(n) = spec {
                joined[n] = true;
            }
            let spec = spec.map(|n| specs[n]);
            self.of_manifest(at, spec, scaled)?;
        }
        for (spec, joined) in specs.iter().zip(joined) {
            if joined {
                continue;
            }
            if let Some((name, at)) = &spec.manifest {
                let what = format!("no manifest {name:?} in the input");
                return Err(Fault::new(&at.file, at.place, what));
            }
            self.of_spec(spec)?;
        }
        Ok(())
    }

    fn of_manifest(
        &mut self,
        at: usize,
        spec: Option<&WorkloadSpec>,
        scaled: &[Option<&Scaler>],
    ) -> Result<(), Fault> {
        let manifest = &self.all.manifests[at];
        let name = spec.map_or(&manifest.name, |spec| &spec.name).clone();
        let task = manifest
            .task
            .as_ref()
            .and_then(|task| self.all.tasks.get(task));
        let containers = task.unwrap_or(&manifest.containers);
        let (sidekiq, database) = self.ruby(spec)?;
        let ruby = Ruby {
            sidekiq: sidekiq.as_ref(),
            pool: database.as_ref(),
        };
        let pools: Vec<(Role, Pool)> = containers
            .iter()
            .filter_map(|container| {
                let env = self.env(container, &manifest.namespace);
                let of_app = match container.role {
                    Role::App => ruby,
                    _ => Ruby::default(),
                };
                Some((container.role, pools::of(container, &env, of_app)?))
            })
            .collect();
        let annotated = manifest.target.is_some()
            || manifest.connections.is_some()
            || manifest.processes.is_some();
        if pools.is_empty() && !annotated && spec.is_none() {
            return Ok(());
        }
        let made = self.pods(&name, at, scaled);
        let target = spec
            .and_then(|spec| spec.target.clone())
            .or_else(|| manifest.target.clone());
        for container in containers {
            if let Some(probe) = &container.probe {
                self.budget.breaches.push(Breach::new(
                    "probe.opens_connections",
                    Level::Warning,
                    format!("{name}: its readiness probe opens a connection in every pod, all at once at a restart"),
                    Some(probe.clone()),
                ));
            }
        }
        let opens = self.opens(&name, spec, Some(manifest), &pools);
        self.push(
            name,
            manifest.kind.clone(),
            target,
            spec,
            made,
            opens,
            manifest.at.clone(),
        );
        Ok(())
    }

    fn of_spec(&mut self, spec: &WorkloadSpec) -> Result<(), Fault> {
        let (sidekiq, database) = self.ruby(Some(spec))?;
        let container = Container {
            name: spec.name.clone(),
            role: Role::App,
            env: super::sources::Env::default(),
            command: Vec::new(),
            at: spec.at.clone(),
            probe: None,
        };
        let ruby = Ruby {
            sidekiq: sidekiq.as_ref(),
            pool: database.as_ref(),
        };
        let pools: Vec<(Role, Pool)> = pools::of(&container, &Known::new(), ruby)
            .map(|pool| (Role::App, pool))
            .into_iter()
            .collect();
        let set = self.options.set(&spec.name, "pods");
        let (pods, source) = match (set, &spec.pods) {
            (Some(pods), _) => (pods, Source::assumed("pods (--set)", pods, None)),
            (None, Some((pods, at))) => (*pods, Source::said("pods", pods, at.clone())),
            (None, None) => (1, Source::assumed("pods", 1, Some(spec.at.clone()))),
        };
        let made = Made {
            pods: Count::known(pods),
            from: vec![source],
            surge: Surge::None,
            surge_from: None,
            drains: false,
            unknown: None,
        };
        let opens = self.opens(&spec.name, Some(spec), None, &pools);
        let target = spec.target.clone();
        self.push(
            spec.name.clone(),
            "workload".into(),
            target,
            Some(spec),
            made,
            opens,
            spec.at.clone(),
        );
        Ok(())
    }

    /// The Ruby files that a workload names, else the only ones of the input, beside a manifest.
    fn ruby(
        &self,
        spec: Option<&WorkloadSpec>,
    ) -> Result<(Option<rails::Sidekiq>, Option<rails::Value>), Fault> {
        let missing = |path: &str, at: &At| {
            Err(Fault::new(
                &at.file,
                at.place,
                format!("{path} isn't in the input"),
            ))
        };
        let sidekiq = match spec.and_then(|spec| spec.sidekiq.as_ref()) {
            Some((path, at)) => {
                let path = beside(&at.file, path);
                match self.all.sidekiqs.iter().find(|one| one.file == path) {
                    Some(one) => Some(one.clone()),
                    None => return missing(&path, at),
                }
            }
            None => None,
        };
        let database = match spec.and_then(|spec| spec.database_yml.as_ref()) {
            Some((path, at)) => {
                let path = beside(&at.file, path);
                match self.all.databases.iter().find(|one| one.file == path) {
                    Some(one) => one.pool.clone(),
                    None => return missing(&path, at),
                }
            }
            None => None,
        };
        Ok((sidekiq, database))
    }

    /// A container's environment, with the maps of its namespace.
    fn env(&self, container: &Container, namespace: &str) -> Known {
        let map = |name: &str| {
            let of = |map: &&ConfigMap| map.name == name && map.namespace == namespace;
            self.all.maps.iter().find(of)
        };
        let mut env = Known::new();
        for (name, _) in &container.env.maps {
            for (key, (value, at)) in map(name).map(|map| &map.data).into_iter().flatten() {
                env.insert(key.clone(), (Some(value.clone()), at.clone()));
            }
        }
        for (name, value) in &container.env.values {
            let known = match value {
                EnvValue::Literal(text, at) => (Some(text.clone()), at.clone()),
                EnvValue::Hidden(at) => (None, at.clone()),
                EnvValue::OfMap { map: of, key, at } => {
                    match map(of).and_then(|map| map.data.get(key)) {
                        Some((value, at)) => (Some(value.clone()), at.clone()),
                        None => (None, at.clone()),
                    }
                }
            };
            env.insert(name.clone(), known);
        }
        env
    }

    /// What one pod opens.
    fn opens(
        &mut self,
        name: &str,
        spec: Option<&WorkloadSpec>,
        manifest: Option<&Manifest>,
        pools: &[(Role, Pool)],
    ) -> Opens {
        let set = |field: &str| {
            let value = self.options.set(name, field)?;
            Some((
                value,
                Source::assumed(&format!("{field} (--set)"), value, None),
            ))
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
        if let (None, None, [_, _, ..]) | (None, None, []) =
            (&connections, &processes, apps.as_slice())
        {
            return self.of_containers(name, spec, manifest, pools);
        }
        if connections.is_none() && pools.len() > 1 {
            return self.of_containers(name, spec, manifest, pools);
        }
        // One number for each process, said or seen.
        let seen = apps.first();
        let mut opens = Opens::default();
        opens.processes = match processes {
            Some((number, source)) => {
                opens.from.push(source);
                Count::known(number)
            }
            None => seen.map_or(Count::known(1), |pool| pool.processes),
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
                    opens.unknowns.extend(pool.unknown.clone());
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
    ) -> Opens {
        let mut opens = Opens {
            processes: Count::known(1),
            ..Opens::default()
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
            of.map(|(_, pool)| pool.processes.times(pool.connections))
                .sum()
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

    fn push(
        &mut self,
        name: String,
        kind: String,
        target: Option<(String, At)>,
        spec: Option<&WorkloadSpec>,
        made: Made,
        opens: Opens,
        at: At,
    ) {
        let mut made = made;
        if let Some((pods, at)) = spec.and_then(|spec| spec.pods.clone())
            && self.options.set(&name, "pods").is_none()
        {
            made.pods = Count::known(pods);
            made.from = vec![Source::said("pods", pods, at)];
            made.unknown = None;
        }
        if let Some((surge, at)) = spec.and_then(|spec| spec.surge.clone()) {
            made.surge = surge;
            let value = match surge {
                Surge::Percent(percent) => format!("{percent}%"),
                Surge::Number(number) => number.to_string(),
                other => format!("{other:?}").to_lowercase(),
            };
            made.surge_from = Some(Source::said("surge", value, at));
        }
        if let Some(surge) = self.options.set(&name, "surge") {
            made.surge = Surge::Number(surge);
            made.surge_from = Some(Source::assumed("surge (--set)", surge, None));
        }
        let drain = match spec.and_then(|spec| spec.drain.clone()) {
            Some((drain, _)) => Count::known(drain),
            None if made.drains => made.pods,
            None => Count::ZERO,
        };
        let mut from = made.from;
        from.extend(opens.from);
        from.extend(made.surge_from);
        self.budget.unknowns.extend(made.unknown);
        self.budget.unknowns.extend(opens.unknowns);
        if let Some(spec) = spec {
            super::rules::of_pool(spec, &mut self.budget.breaches);
        }
        for pool in &opens.pools {
            super::rules::of_threads(&name, pool, &mut self.budget.breaches);
        }
        self.budget.workloads.push(Workload {
            target: target.as_ref().map(|(target, _)| target.clone()),
            target_at: target.map(|(_, at)| at),
            surge: made.surge.of(made.pods),
            surge_rule: made.surge,
            drains: made.drains,
            drain,
            pods: made.pods,
            processes: opens.processes,
            connections: opens.connections,
            per_pod: opens.per_pod,
            name,
            kind,
            from,
            at,
        });
    }

    fn poolers(&mut self, scaled: &[Option<&Scaler>]) -> Result<(), Fault> {
        let all = self.all;
        let mut claimed: Vec<&str> = Vec::new();
        for spec in all.specs.iter().flat_map(|spec| &spec.poolers) {
            let bouncer = match &spec.pgbouncer {
                Some((path, at)) => {
                    let path = beside(&at.file, path);
                    let found = all.bouncers.iter().find(|one| one.file == path);
                    Some(found.ok_or_else(|| {
                        Fault::new(
                            &at.file,
                            at.place,
                            format!("{path} isn't in the input, or no pgbouncer.ini"),
                        )
                    })?)
                }
                None => None,
            };
            claimed.extend(bouncer.map(|one| one.file.as_str()));
            let manifest = all.manifests.iter().position(|m| m.name == spec.name);
            let mut made = match manifest {
                Some(at) => self.pods(&spec.name, at, scaled),
                None => Made {
                    pods: Count::known(1),
                    from: vec![Source::assumed("pods", 1, Some(spec.at.clone()))],
                    surge: Surge::None,
                    surge_from: None,
                    drains: false,
                    unknown: None,
                },
            };
            if let Some((pods, at)) = &spec.pods {
                made.pods = Count::known(*pods);
                made.from = vec![Source::said("pods", pods, at.clone())];
                made.unknown = None;
            }
            if let Some(pods) = self.options.set(&spec.name, "pods") {
                made.pods = Count::known(pods);
                made.from = vec![Source::assumed("pods (--set)", pods, None)];
            }
            if let Some((surge, at)) = &spec.surge {
                made.surge = *surge;
                made.surge_from = Some(Source::said("surge", "", at.clone()));
            }
            let target = spec.target.clone();
            self.pooler(
                spec.name.clone(),
                target,
                made,
                bouncer,
                Some(spec.at.clone()),
            )?;
        }
        for bouncer in &all.bouncers {
            if claimed.contains(&bouncer.file.as_str()) {
                continue;
            }
            let name = bouncer
                .file
                .rsplit('/')
                .next()
                .unwrap_or(&bouncer.file)
                .to_owned();
            let made = Made {
                pods: Count::known(1),
                from: vec![Source::assumed("pods", 1, None)],
                surge: Surge::None,
                surge_from: None,
                drains: false,
                unknown: None,
            };
            self.pooler(name, None, made, Some(bouncer), None)?;
        }
        Ok(())
    }

    fn pooler(
        &mut self,
        name: String,
        target: Option<(String, At)>,
        made: Made,
        bouncer: Option<&PgBouncer>,
        at: Option<At>,
    ) -> Result<(), Fault> {
        let mut from = made.from;
        let (cap, max_clients) = match bouncer {
            Some(bouncer) => {
                let (cap, sources, unknown) = bouncer.cap()?;
                from.extend(sources);
                self.budget.unknowns.extend(unknown.map(|what| Unknown {
                    what: format!("pooler {name}: {what}"),
                    settle: "an auth_file beside it, or max_db_connections".into(),
                    at: Some(At::new(&bouncer.file, Place { line: 1, column: 1 })),
                }));
                (cap, bouncer.number("max_client_conn", 100)?)
            }
            None => {
                self.budget.unknowns.push(Unknown {
                    what: format!("pools of pooler {name}"),
                    settle: "pgbouncer: PATH in budget.yaml".into(),
                    at: at.clone(),
                });
                (Count::at_least(0), 100)
            }
        };
        from.extend(made.surge_from);
        self.budget.unknowns.extend(made.unknown);
        self.budget.poolers.push(Pooler {
            target: target.as_ref().map(|(name, _)| name.clone()),
            target_at: target.map(|(_, at)| at),
            surge: made.surge.of(made.pods),
            pods: made.pods,
            cap,
            max_clients,
            name,
            from,
        });
        Ok(())
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
            let load = self.budget.workloads.iter().any(|w| w.name == *name)
                || self.budget.poolers.iter().any(|p| p.name == *name);
            let known = match field.as_str() {
                "max_connections" => server,
                "pods" | "processes" | "connections" | "surge" => load,
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

/// Pods as they are made.
struct Made {
    pods: Count,
    from: Vec<Source>,
    surge: Surge,
    surge_from: Option<Source>,
    drains: bool,
    unknown: Option<Unknown>,
}

/// What one pod opens.
struct Opens {
    processes: Count,
    connections: Count,
    per_pod: Count,
    from: Vec<Source>,
    unknowns: Vec<Unknown>,
    pools: Vec<Pool>,
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

/// Where nothing says what server it is, there is one all the same.
fn implicit_server(budget: &mut Budget) {
    budget.unknowns.push(Unknown {
        what: "max_connections of the server".into(),
        settle: "servers in budget.yaml, a postgresql.conf, or --max-connections".into(),
        at: None,
    });
    budget.servers.push(Server {
        name: "server".into(),
        max_connections: Count::at_least(0),
        superuser_reserved: 3,
        reserved: 0,
        provider_reserve: 0,
        headroom: Vec::new(),
        warn_at: 80.0,
        replica_of: None,
        from: Vec::new(),
    });
}

/// Everything has a target that is there; without one it is the only server's.
fn targets(budget: &mut Budget, all: &All) -> Result<(), Fault> {
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
                workload.target.clone_from(&only);
                if workload.target.is_none() {
                    unknowns.push(lost(&workload.name, Some(workload.at.clone())));
                }
            }
        }
    }
    budget.unknowns.extend(unknowns);
    Ok(())
}
