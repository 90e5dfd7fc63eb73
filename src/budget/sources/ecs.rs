//! ECS: a service, and the task definition that it names.

use std::collections::BTreeMap;

use super::super::count::{At, Count, Source};
use super::{
    Container, Env, EnvValue, Fault, Found, Manifest, Pods, Role, Scaler, Surge, Task, number,
    plain,
};
use crate::yaml::Node;

pub fn read(file: &str, doc: &Node, found: &mut Vec<Found>) -> Result<(), Fault> {
    // As the API answers, or as files are written.
    for wrapped in ["service", "taskDefinition"] {
        if let Some(inner) = doc.get(wrapped).filter(|inner| !inner.map().is_empty()) {
            return read(file, inner, found);
        }
    }
    for one in doc.get("services").map(Node::list).unwrap_or_default() {
        read(file, one, found)?;
    }
    if let Some(name) = doc.get("serviceName").and_then(Node::text) {
        found.push(Found::Manifest(Box::new(service(file, doc, name)?)));
    }
    if let Some(family) = doc.get("family").and_then(Node::text) {
        let all = doc
            .get("containerDefinitions")
            .map(Node::list)
            .unwrap_or_default();
        let revision = doc
            .get("revision")
            .map(|node| number(file, node, "revision"));
        found.push(Found::Task(Task {
            family: family.to_owned(),
            revision: revision.transpose()?,
            containers: all.iter().map(|node| container(file, node)).collect(),
        }));
    }
    for one in doc
        .get("ScalableTargets")
        .map(Node::list)
        .unwrap_or_default()
    {
        found.extend(scaler(file, one)?.map(Found::Scaler));
    }
    Ok(())
}

/// `service/CLUSTER/NAME` and how many at most.
fn scaler(file: &str, doc: &Node) -> Result<Option<Scaler>, Fault> {
    let target = doc
        .get("ResourceId")
        .and_then(Node::text)
        .unwrap_or_default();
    let (Some(name), Some(node)) = (
        target
            .strip_prefix("service/")
            .and_then(|rest| rest.rsplit('/').next()),
        doc.get("MaxCapacity"),
    ) else {
        return Ok(None);
    };
    let most = number(file, node, "MaxCapacity")?;
    let at = At::new(file, node.place);
    Ok(Some(Scaler {
        kind: "ScalableTarget".into(),
        name: name.to_owned(),
        namespace: "default".into(),
        target_kind: "ECS service".into(),
        target: name.to_owned(),
        most,
        fixed: false,
        source: Source::said("pods (MaxCapacity)", most, at.clone()),
        at,
    }))
}

fn service(file: &str, doc: &Node, name: &str) -> Result<Manifest, Fault> {
    let top = At::new(file, doc.place);
    let (count, source) = match doc.get("desiredCount") {
        Some(node) => {
            let count = number(file, node, "desiredCount")?;
            (
                count,
                Source::said("pods (desiredCount)", count, At::new(file, node.place)),
            )
        }
        None => (
            1,
            Source::assumed("pods (desiredCount)", 1, Some(top.clone())),
        ),
    };
    let (percent, surge_from) = match doc.at(&["deploymentConfiguration", "maximumPercent"]) {
        Some(node) => {
            let percent = number(file, node, "maximumPercent")?;
            let source = Source::said("surge (maximumPercent)", percent, At::new(file, node.place));
            (percent, source)
        }
        None => (
            200,
            Source::assumed("surge (maximumPercent)", 200, Some(top.clone())),
        ),
    };
    let controller = doc.at(&["deploymentController", "type"]);
    let strategy = doc.at(&["deploymentConfiguration", "strategy"]);
    let both = [controller, strategy]
        .into_iter()
        .flatten()
        .find(|node| matches!(node.text(), Some("CODE_DEPLOY" | "BLUE_GREEN")));
    let (surge, surge_from) = match both {
        Some(node) => {
            let at = At::new(file, node.place);
            (
                Surge::All,
                Source::said("surge", "all (blue and green)", at),
            )
        }
        None => (Surge::Over(percent), surge_from),
    };
    // `arn:…:task-definition/web:7` or `web:7`.
    let task = doc.get("taskDefinition").and_then(Node::text).map(|text| {
        let name = text.rsplit('/').next().unwrap_or(text);
        match name.split_once(':') {
            Some((family, revision)) => (family.to_owned(), revision.parse().ok()),
            None => (name.to_owned(), None),
        }
    });
    Ok(Manifest {
        kind: "ECS service".into(),
        name: name.to_owned(),
        namespace: "default".into(),
        target: None,
        connections: None,
        processes: None,
        library: None,
        pods: Pods {
            count: Count::known(count),
            from: vec![source],
            surge,
            surge_from: Some(surge_from),
            drains: false,
            unknown: None,
        },
        containers: Vec::new(),
        task,
        template_of: None,
        at: top,
    })
}

fn container(file: &str, node: &Node) -> Container {
    let mut values: BTreeMap<String, EnvValue> = BTreeMap::new();
    for one in node.get("environment").map(Node::list).unwrap_or_default() {
        if let (Some(name), Some(value)) = (one.get("name").and_then(Node::text), one.get("value"))
        {
            let at = At::new(file, value.place);
            let value =
                plain(value).map_or(EnvValue::Hidden(at.clone()), |v| EnvValue::Literal(v, at));
            values.insert(name.to_owned(), value);
        }
    }
    for one in node.get("secrets").map(Node::list).unwrap_or_default() {
        if let Some(name) = one.get("name").and_then(Node::text) {
            values.insert(name.to_owned(), EnvValue::Hidden(At::new(file, one.place)));
        }
    }
    Container {
        name: node
            .get("name")
            .and_then(Node::text)
            .unwrap_or("container")
            .to_owned(),
        role: Role::App,
        env: Env {
            values,
            maps: Vec::new(),
        },
        command: ["entryPoint", "command"]
            .into_iter()
            .flat_map(|name| node.get(name).map(Node::list).unwrap_or_default())
            .filter_map(|word| Some((plain(word)?, At::new(file, word.place))))
            .collect(),
        at: At::new(file, node.place),
        probe: None,
    }
}
