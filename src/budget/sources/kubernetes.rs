//! Rendered Kubernetes manifests: what runs pods, what scales them, and the maps that their environment comes from.

use std::collections::BTreeMap;

use super::super::count::{At, Count, Source};
use super::super::spec::Unknown;
use super::{
    ConfigMap, Container, Env, EnvValue, Fault, Found, Input, Manifest, PgBouncer, Pods, Role,
    Scaler, Surge, WholeMap, cron, number, pgbouncer, plain, surge, text,
};
use crate::yaml::{Kind, Node};

/// Reads one object; a list is each of its items.
pub fn read(file: &str, doc: &Node, found: &mut Vec<Found>) -> Result<(), Fault> {
    let kind = doc
        .get("kind")
        .and_then(Node::text)
        .unwrap_or_default()
        .to_owned();
    if kind == "List" || (kind.ends_with("List") && doc.get("items").is_some()) {
        for item in doc.get("items").map(Node::list).unwrap_or_default() {
            read(file, item, found)?;
        }
        return Ok(());
    }
    match kind.as_str() {
        "HorizontalPodAutoscaler" => found.push(Found::Scaler(hpa(file, doc)?)),
        "ScaledObject" => found.push(Found::Scaler(scaled_object(file, doc)?)),
        "ConfigMap" => {
            found.extend(poolers(file, doc)?.into_iter().map(Found::PgBouncer));
            found.push(Found::ConfigMap(config_map(file, doc)));
        }
        "Deployment"
        | "StatefulSet"
        | "DaemonSet"
        | "Job"
        | "CronJob"
        | "ScaledJob"
        | "Rollout"
        | "Pod"
        | "ReplicaSet"
        | "ReplicationController" => {
            found.push(Found::Manifest(Box::new(manifest(file, doc, &kind)?)));
        }
        _ => {}
    }
    Ok(())
}

fn name(file: &str, doc: &Node) -> Result<(String, String), Fault> {
    let metadata = doc.get("metadata").unwrap_or(doc);
    let name = match metadata
        .get("name")
        .or_else(|| metadata.get("generateName"))
    {
        Some(name) => text(file, name, "a name")?,
        None => {
            return Err(Fault::new(
                file,
                doc.place,
                "an object without metadata.name",
            ));
        }
    };
    let namespace = metadata
        .get("namespace")
        .and_then(Node::text)
        .unwrap_or("default");
    Ok((name, namespace.to_owned()))
}

fn hpa(file: &str, doc: &Node) -> Result<Scaler, Fault> {
    let (name, namespace) = name(file, doc)?;
    let target = doc.at(&["spec", "scaleTargetRef"]).unwrap_or(doc);
    let field = |name: &str| {
        target
            .get(name)
            .and_then(Node::text)
            .unwrap_or_default()
            .to_owned()
    };
    let most = doc
        .at(&["spec", "maxReplicas"])
        .ok_or_else(|| Fault::new(file, doc.place, "an autoscaler without spec.maxReplicas"))?;
    let at = At::new(file, most.place);
    let most = number(file, most, "maxReplicas")?;
    Ok(Scaler {
        kind: "HorizontalPodAutoscaler".into(),
        source: Source::said("pods (maxReplicas)", most, at.clone()),
        name,
        namespace,
        target_kind: field("kind"),
        target: field("name"),
        most,
        fixed: false,
        at,
    })
}

fn scaled_object(file: &str, doc: &Node) -> Result<Scaler, Fault> {
    let (name, namespace) = name(file, doc)?;
    let target = doc.at(&["spec", "scaleTargetRef"]).unwrap_or(doc);
    let field = |name: &str| target.get(name).and_then(Node::text).map(str::to_owned);
    let top = At::new(file, doc.place);
    let (mut most, mut source) = match doc.at(&["spec", "maxReplicaCount"]) {
        Some(node) => {
            let most = number(file, node, "maxReplicaCount")?;
            let at = At::new(file, node.place);
            (most, Source::said("pods (maxReplicaCount)", most, at))
        }
        None => (
            100,
            Source::assumed("pods (KEDA's maxReplicaCount)", 100, Some(top.clone())),
        ),
    };
    if let Some(node) = doc.at(&["spec", "fallback", "replicas"]) {
        let fallback = number(file, node, "fallback.replicas")?;
        if fallback > most {
            most = fallback;
            source = Source::said("pods (fallback.replicas)", most, At::new(file, node.place));
        }
    }
    let paused = doc.at(&[
        "metadata",
        "annotations",
        "autoscaling.keda.sh/paused-replicas",
    ]);
    let paused = paused.and_then(|node| Some((plain(node)?.parse::<u64>().ok()?, node)));
    if let Some((pods, node)) = paused {
        most = pods;
        source = Source::said("pods (paused-replicas)", pods, At::new(file, node.place));
    }
    Ok(Scaler {
        kind: "ScaledObject".into(),
        name,
        namespace,
        target_kind: field("kind").unwrap_or_else(|| "Deployment".into()),
        target: field("name").unwrap_or_default(),
        most,
        fixed: paused.is_some(),
        source,
        at: top,
    })
}

/// Files of PgBouncer that a ConfigMap holds; what they include and who may log in isn't beside them.
fn poolers(file: &str, doc: &Node) -> Result<Vec<PgBouncer>, Fault> {
    let mut all = Vec::new();
    for (key, node) in doc.get("data").map(Node::map).unwrap_or_default() {
        let (Some(name), Some(text)) = (key.text(), node.text()) else {
            continue;
        };
        if !name.ends_with(".ini") {
            continue;
        }
        let input = Input {
            path: file.to_owned(),
            text: text.to_owned(),
        };
        let read = pgbouncer::read(&input, &|_| None).map_err(|mut fault| {
            fault.place = pgbouncer::inside(fault.place, node.place);
            fault
        })?;
        let (map, _) = self::name(file, doc)?;
        all.extend(read.map(|one| one.within(node.place, &map)));
    }
    Ok(all)
}

fn config_map(file: &str, doc: &Node) -> ConfigMap {
    let (name, namespace) = name(file, doc).unwrap_or_default();
    let data = doc.get("data").map(Node::map).unwrap_or_default();
    let data = data.iter().filter_map(|(key, value)| {
        let at = At::new(file, value.place);
        Some((key.text()?.to_owned(), (plain(value)?, at)))
    });
    ConfigMap {
        name,
        namespace,
        data: data.collect(),
    }
}

fn manifest(file: &str, doc: &Node, kind: &str) -> Result<Manifest, Fault> {
    let (name, namespace) = name(file, doc)?;
    let job = match kind {
        "CronJob" => doc.at(&["spec", "jobTemplate", "spec"]),
        "ScaledJob" => doc.at(&["spec", "jobTargetRef"]),
        _ => doc.get("spec"),
    };
    let template = job.and_then(|job| job.get("template"));
    let pod = match kind {
        "Pod" => job,
        _ => template.and_then(|template| template.get("spec")),
    };
    let annotation = |key: &str| {
        let on = |node: Option<&Node>| -> Option<Node> {
            node?.at(&["metadata", "annotations"])?.get(key).cloned()
        };
        on(Some(doc)).or_else(|| on(template))
    };
    let count = |key: &str| -> Result<Option<(u64, At)>, Fault> {
        let Some(node) = annotation(key) else {
            return Ok(None);
        };
        let parsed = plain(&node).and_then(|text| text.trim().parse::<u64>().ok());
        let number = parsed.ok_or_else(|| {
            Fault::new(file, node.place, format!("{key} is a whole number from 0"))
        })?;
        Ok(Some((number, At::new(file, node.place))))
    };
    let word = |key: &str| {
        annotation(key).and_then(|node| Some((plain(&node)?, At::new(file, node.place))))
    };
    Ok(Manifest {
        pods: pods(file, doc, kind, job)?,
        kind: kind.to_owned(),
        at: At::new(file, doc.place),
        target: word("stanch.dev/target"),
        library: word("stanch.dev/pool"),
        connections: count("stanch.dev/connections")?,
        processes: count("stanch.dev/processes")?,
        containers: pod
            .map(|pod| containers(file, pod))
            .transpose()?
            .unwrap_or_default(),
        task: None,
        template_of: doc
            .at(&["spec", "workloadRef", "name"])
            .and_then(Node::text)
            .map(str::to_owned),
        name,
        namespace,
    })
}

/// How many pods an object makes by itself.
fn pods(file: &str, doc: &Node, kind: &str, job: Option<&Node>) -> Result<Pods, Fault> {
    let spec = doc.get("spec").unwrap_or(doc);
    let top = At::new(file, doc.place);
    let said = |node: &Node, what: &str| -> Result<(u64, Source), Fault> {
        let count = number(file, node, what)?;
        let source = Source::said(&format!("pods ({what})"), count, At::new(file, node.place));
        Ok((count, source))
    };
    let replicas = || -> Result<(u64, Source), Fault> {
        match spec
            .get("replicas")
            .filter(|node| !matches!(node.kind, Kind::Null))
        {
            Some(node) => said(node, "replicas"),
            None => Ok((1, Source::assumed("pods (replicas)", 1, Some(top.clone())))),
        }
    };
    let parallel = |job: Option<&Node>| -> Result<(u64, Source), Fault> {
        let field = |name: &str| job.and_then(|job| job.get(name));
        match (field("parallelism"), field("completions")) {
            (Some(parallelism), Some(completions)) => {
                let (parallelism, source) = said(parallelism, "parallelism")?;
                let completions = number(file, completions, "completions")?;
                Ok((parallelism.min(completions), source))
            }
            (Some(parallelism), None) => said(parallelism, "parallelism"),
            _ => Ok((
                1,
                Source::assumed("pods (parallelism)", 1, Some(top.clone())),
            )),
        }
    };
    let suspended = |node: Option<&Node>| {
        matches!(
            node.and_then(|node| node.get("suspend"))
                .map(|node| &node.kind),
            Some(Kind::Bool(true))
        )
    };
    let mut pods = Pods {
        count: Count::ZERO,
        from: Vec::new(),
        surge: Surge::None,
        surge_from: None,
        drains: false,
        unknown: None,
    };
    let set = |pods: &mut Pods, (count, source): (u64, Source)| {
        pods.count = Count::known(count);
        pods.from.push(source);
    };
    match kind {
        "Deployment" => {
            set(&mut pods, replicas()?);
            rolling(file, spec, &top, &mut pods)?;
        }
        "Rollout" => {
            set(&mut pods, replicas()?);
            rollout(file, spec, &top, &mut pods)?;
        }
        "DaemonSet" => {
            pods.count = Count::at_least(0);
            pods.unknown = Some(Unknown {
                what: "on how many nodes a DaemonSet runs".into(),
                settle: "--nodes N".into(),
                at: Some(top),
            });
            if let Some(node) = spec.at(&["updateStrategy", "rollingUpdate", "maxSurge"]) {
                pods.surge = surge(file, node, "maxSurge")?;
                pods.surge_from = Some(Source::said(
                    "surge (maxSurge)",
                    shown(node),
                    At::new(file, node.place),
                ));
            }
        }
        "Job" => {
            set(&mut pods, parallel(job)?);
            if suspended(Some(spec)) {
                pods.count = Count::ZERO;
            }
        }
        "CronJob" => {
            let (count, source) = parallel(job)?;
            set(&mut pods, (count, source));
            cron::overlap(file, spec, job, count, &top, &mut pods)?;
            if suspended(Some(spec)) {
                (pods.count, pods.unknown, pods.surge) = (Count::ZERO, None, Surge::None);
            }
        }
        "ScaledJob" => {
            let (each, source) = parallel(job)?;
            let most = match spec.get("maxReplicaCount") {
                Some(node) => said(node, "maxReplicaCount")?,
                None => (
                    100,
                    Source::assumed("pods (KEDA's maxReplicaCount)", 100, Some(top)),
                ),
            };
            pods.count = Count::known(most.0.saturating_mul(each));
            pods.from.extend([most.1, source]);
        }
        _ => set(&mut pods, replicas()?),
    }
    Ok(pods)
}

fn shown(node: &Node) -> String {
    plain(node).unwrap_or_default()
}

/// `maxSurge`, else the 25 % that Deployments and Rollouts have.
fn max_surge(file: &str, node: Option<&Node>, top: &At) -> Result<(Surge, Option<Source>), Fault> {
    const WHAT: &str = "surge (maxSurge)";
    Ok(match node {
        Some(node) => {
            let source = Source::said(WHAT, shown(node), At::new(file, node.place));
            (surge(file, node, "maxSurge")?, Some(source))
        }
        None => {
            let source = Source::assumed(WHAT, "25%", Some(top.clone()));
            (Surge::Percent(25.0), Some(source))
        }
    })
}

fn rolling(file: &str, spec: &Node, top: &At, pods: &mut Pods) -> Result<(), Fault> {
    let strategy = spec.get("strategy");
    let kind = strategy.and_then(|s| s.get("type"));
    if kind.and_then(Node::text) == Some("Recreate") {
        let at = kind.map(|kind| At::new(file, kind.place));
        pods.surge_from = at.map(|at| Source::said("surge", "0 (Recreate)", at));
        return Ok(());
    }
    pods.drains = true;
    let node = strategy.and_then(|s| s.at(&["rollingUpdate", "maxSurge"]));
    (pods.surge, pods.surge_from) = max_surge(file, node, top)?;
    Ok(())
}

fn rollout(file: &str, spec: &Node, top: &At, pods: &mut Pods) -> Result<(), Fault> {
    let strategy = spec.get("strategy");
    if let Some(blue_green) = strategy.and_then(|s| s.get("blueGreen")) {
        pods.surge = Surge::All;
        pods.surge_from = Some(Source::said(
            "surge",
            "all (blueGreen)",
            At::new(file, blue_green.place),
        ));
        return Ok(());
    }
    let canary = strategy.and_then(|s| s.get("canary"));
    let is_on = |name: &str| {
        matches!(
            canary.and_then(|c| c.get(name)).map(|node| &node.kind),
            Some(Kind::Bool(true))
        )
    };
    if let Some(routing) = canary.and_then(|c| c.get("trafficRouting"))
        && !is_on("dynamicStableScale")
    {
        pods.surge = Surge::All;
        let at = At::new(file, routing.place);
        pods.surge_from = Some(Source::said(
            "surge",
            "all (the stable set stays whole)",
            at,
        ));
        return Ok(());
    }
    (pods.surge, pods.surge_from) = max_surge(file, canary.and_then(|c| c.get("maxSurge")), top)?;
    Ok(())
}

fn containers(file: &str, pod: &Node) -> Result<Vec<Container>, Fault> {
    let mut all = Vec::new();
    for (field, init) in [("containers", false), ("initContainers", true)] {
        for node in pod.get(field).map(Node::list).unwrap_or_default() {
            let sidecar = node.get("restartPolicy").and_then(Node::text) == Some("Always");
            all.push(Container {
                name: node
                    .get("name")
                    .and_then(Node::text)
                    .unwrap_or("container")
                    .to_owned(),
                role: match (init, sidecar) {
                    (false, _) => Role::App,
                    (true, true) => Role::Sidecar,
                    (true, false) => Role::Init,
                },
                env: env(file, node)?,
                command: ["command", "args"]
                    .into_iter()
                    .flat_map(|name| node.get(name).map(Node::list).unwrap_or_default())
                    .filter_map(|word| Some((plain(word)?, At::new(file, word.place))))
                    .collect(),
                at: At::new(file, node.place),
                probe: probe(file, node),
            });
        }
    }
    Ok(all)
}

/// A readiness probe that runs a client of the database.
fn probe(file: &str, container: &Node) -> Option<At> {
    let command = container.at(&["readinessProbe", "exec", "command"])?;
    let words: Vec<String> = command.list().iter().filter_map(plain).collect();
    let line = words.join(" ");
    let clients = [
        "psql",
        "pg_isready -d",
        "rails runner",
        "manage.py",
        "mysql",
    ];
    clients
        .iter()
        .any(|client| line.contains(client))
        .then(|| At::new(file, command.place))
}

fn env(file: &str, container: &Node) -> Result<Env, Fault> {
    let mut values: BTreeMap<String, EnvValue> = BTreeMap::new();
    for node in container.get("env").map(Node::list).unwrap_or_default() {
        let Some(name) = node.get("name").and_then(Node::text) else {
            return Err(Fault::new(
                file,
                node.place,
                "an environment variable without a name",
            ));
        };
        let at = At::new(file, node.get("value").unwrap_or(node).place);
        let of_map = node.at(&["valueFrom", "configMapKeyRef"]);
        let value = match (node.get("value"), of_map) {
            (Some(value), _) => match plain(value) {
                Some(text) => EnvValue::Literal(text, at),
                None => EnvValue::Hidden(at),
            },
            (None, Some(reference)) => EnvValue::OfMap {
                map: reference
                    .get("name")
                    .and_then(Node::text)
                    .unwrap_or_default()
                    .to_owned(),
                key: reference
                    .get("key")
                    .and_then(Node::text)
                    .unwrap_or_default()
                    .to_owned(),
                at,
            },
            (None, None) if node.get("valueFrom").is_some() => EnvValue::Hidden(at),
            (None, None) => EnvValue::Literal(String::new(), at),
        };
        values.insert(name.to_owned(), value);
    }
    let maps = container.get("envFrom").map(Node::list).unwrap_or_default();
    let maps = maps.iter().map(|node| WholeMap {
        name: node
            .at(&["configMapRef", "name"])
            .and_then(Node::text)
            .map(str::to_owned),
        prefix: node
            .get("prefix")
            .and_then(Node::text)
            .unwrap_or_default()
            .to_owned(),
        at: At::new(file, node.place),
    });
    Ok(Env {
        values,
        maps: maps.collect(),
    })
}
