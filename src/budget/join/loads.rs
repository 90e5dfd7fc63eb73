//! Workloads: manifests with what the budget says of them, and those that only the budget knows.

use super::super::count::{At, Count, Source};
use super::super::libraries;
use super::super::pools::{self, Known, Pool, Ruby};
use super::super::rules::{self, Breach, Level};
use super::super::sources::{
    ConfigMap, Container, Env, EnvValue, Fault, Role, Scaler, Surge, WholeMap, WorkloadSpec,
    beside, rails,
};
use super::super::spec::{Unknown, Workload};
use super::opens::Opens;
use super::{Join, Made};

impl<'j> Join<'j> {
    pub(super) fn workloads(&mut self, scaled: &[Option<&Scaler>]) -> Result<(), Fault> {
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
            if let Some(n) = spec
                && std::mem::replace(&mut joined[n], true)
            {
                let at = &specs[n].at;
                let what = format!(
                    "{} is the name of several objects of the input, {} of {} among them: leave out the others with --exclude, or name them otherwise",
                    specs[n].name,
                    manifest.kind,
                    manifest.at.words()
                );
                return Err(Fault::new(&at.file, at.place, what));
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
        let task = manifest.task.as_ref().and_then(|task| self.all.task(task));
        let containers = task.map_or(&manifest.containers, |task| &task.containers);
        // What it runs isn't in the input: that is unknown, not nothing.
        let is_hidden = manifest.template_of.is_some() || manifest.task.is_some() && task.is_none();
        let (sidekiq, database) = self.ruby(spec, containers)?;
        let library = spec
            .and_then(|spec| spec.library.as_ref())
            .or(manifest.library.as_ref());
        known_library(library)?;
        let pools: Vec<(Role, Pool)> = containers
            .iter()
            .filter_map(|container| {
                let (env, missing) = self.env(container, &manifest.namespace);
                let is_app = container.role == Role::App;
                let runs = containers.len() == 1 || pools::is_ruby(container);
                let ruby = match is_app && runs {
                    true => Ruby {
                        sidekiq,
                        pools: database,
                    },
                    false => Ruby::default(),
                };
                let library = library.filter(|_| is_app);
                let said = manifest.connections.is_some()
                    || spec.is_some_and(|spec| spec.connections.is_some());
                let pool = pools::of(container, &env, ruby, library);
                let pool = pools::with_missing(pool, container, missing, said);
                Some((container.role, pool?))
            })
            .collect();
        let annotated = manifest.target.is_some()
            || manifest.connections.is_some()
            || manifest.processes.is_some()
            || is_hidden;
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
        let mut opens = self.opens(&name, spec, Some(manifest), &pools);
        opens.address = containers
            .iter()
            .find_map(|container| pools::address(&self.env(container, &manifest.namespace).0));
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
        let (sidekiq, pools) = self.ruby(Some(spec), &[])?;
        let container = Container {
            name: spec.name.clone(),
            role: Role::App,
            env: Env::default(),
            command: Vec::new(),
            at: spec.at.clone(),
            probe: None,
        };
        let ruby = Ruby { sidekiq, pools };
        let pools: Vec<(Role, Pool)> =
            pools::of(&container, &Known::new(), ruby, spec.library.as_ref())
                .map(|pool| (Role::App, pool))
                .into_iter()
                .collect();
        known_library(spec.library.as_ref())?;
        let set = self.options.set(&spec.name, "pods");
        let (pods, source) = match (set, &spec.pods) {
            (Some(pods), _) => (pods, Source::asked("pods (--set)", pods)),
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

    /// The Ruby files that a workload names; else those that its own command or the input leaves no choice about.
    fn ruby(
        &self,
        spec: Option<&WorkloadSpec>,
        containers: &[Container],
    ) -> Result<(Option<&'j rails::Sidekiq>, &'j [rails::Value]), Fault> {
        let all = self.all;
        let missing = |path: &str, at: &At| {
            Fault::new(&at.file, at.place, format!("{path} isn't in the input"))
        };
        let sidekiq = match spec.and_then(|spec| spec.sidekiq.as_ref()) {
            Some((path, at)) => {
                let path = beside(&at.file, path);
                let found = all.sidekiqs.iter().find(|one| one.file == path);
                Some(found.ok_or_else(|| missing(&path, at))?)
            }
            None => sidekiq_of(containers, &all.sidekiqs),
        };
        let database = match spec.and_then(|spec| spec.database_yml.as_ref()) {
            Some((path, at)) => {
                let path = beside(&at.file, path);
                let found = all.databases.iter().find(|one| one.file == path);
                Some(found.ok_or_else(|| missing(&path, at))?)
            }
            None => match all.databases.as_slice() {
                [only] if containers.iter().any(pools::is_ruby) => Some(only),
                _ => None,
            },
        };
        let pools = database.map_or(&[][..], |one| one.pools.as_slice());
        Ok((sidekiq, pools))
    }

    /// A container's environment, with the maps of its namespace; and the maps of it that aren't in the input.
    fn env<'c>(&self, container: &'c Container, namespace: &str) -> (Known, Vec<&'c WholeMap>) {
        let map = |name: &str| {
            let of = |map: &&ConfigMap| map.name == name && map.namespace == namespace;
            self.all.maps.iter().find(of)
        };
        let mut env = Known::new();
        let mut missing = Vec::new();
        for whole in &container.env.maps {
            let Some(found) = whole.name.as_ref().and_then(|name| map(name)) else {
                missing.push(whole);
                continue;
            };
            for (key, (value, at)) in &found.data {
                let name = format!("{}{key}", whole.prefix);
                env.insert(name, (Some(value.clone()), at.clone()));
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
        (env, missing)
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
            made.surge_from = Some(Source::said("surge", surge.words(), at));
        }
        if let Some(surge) = self.options.set(&name, "surge") {
            made.surge = Surge::Number(surge);
            made.surge_from = Some(Source::asked("surge (--set)", surge));
        }
        let drain = match spec.and_then(|spec| spec.drain.clone()) {
            Some((drain, _)) => Count::known(drain),
            None if made.drains => made.pods,
            None => Count::ZERO,
        };
        let mut from = made.from;
        from.extend(opens.from);
        from.extend(made.surge_from);
        let unknown = made.unknown.map(|unknown| Unknown {
            what: format!("{name}: {}", unknown.what),
            ..unknown
        });
        self.budget.unknowns.extend(unknown);
        self.budget.unknowns.extend(opens.unknowns);
        if let Some(spec) = spec {
            rules::of_pool(spec, &mut self.budget.breaches);
        }
        for pool in &opens.pools {
            rules::of_threads(&name, pool, &mut self.budget.breaches);
        }
        let named = |of: fn(&WorkloadSpec) -> &Option<(String, At)>| {
            spec.and_then(|spec| of(spec).as_ref())
                .map(|(name, _)| name.clone())
        };
        self.budget.workloads.push(Workload {
            role: named(|spec| &spec.role),
            database: named(|spec| &spec.database),
            address: opens.address,
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
}

fn known_library(library: Option<&(String, At)>) -> Result<(), Fault> {
    match library {
        Some((name, at)) if libraries::by_name(name).is_none() => {
            let known = libraries::library_names().join(", ");
            let what = format!("no library {name:?} is known; there are: {known}");
            Err(Fault::new(&at.file, at.place, what))
        }
        _ => Ok(()),
    }
}

/// The `sidekiq.yml` of what runs Sidekiq: by its `-C`, else the only one that there is.
fn sidekiq_of<'a>(
    containers: &[Container],
    all: &'a [rails::Sidekiq],
) -> Option<&'a rails::Sidekiq> {
    let runs = containers.iter().find(|one| pools::runs(one, "sidekiq"))?;
    let words: Vec<&str> = runs
        .command
        .iter()
        .flat_map(|(word, _)| word.split_whitespace())
        .collect();
    let config = words
        .iter()
        .position(|word| matches!(*word, "-C" | "--config"))
        .and_then(|at| words.get(at + 1));
    if let Some(path) = config {
        let path = path.trim_start_matches("./").trim_start_matches('/');
        let ends = |one: &&rails::Sidekiq| {
            one.file == path
                || one.file.ends_with(&format!("/{path}"))
                || path.ends_with(&format!("/{}", one.file))
        };
        return all.iter().find(ends);
    }
    match all {
        [only] => Some(only),
        _ => None,
    }
}
