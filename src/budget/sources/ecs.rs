//! ECS: a service, and the task definition that it names.

use std::collections::BTreeMap;

use super::super::count::{At, Count, Source};
use super::{Container, Env, EnvValue, Fault, Found, Manifest, Pods, Role, Surge, number, plain};
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
        found.push(Found::Task {
            family: family.to_owned(),
            containers: all.iter().map(|node| container(file, node)).collect(),
        });
    }
    Ok(())
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
    // Rounded down, as the service does it.
    let most = count * percent / 100;
    // `arn:…:task-definition/web:7` or `web:7`.
    let task = doc.get("taskDefinition").and_then(Node::text).map(|text| {
        let name = text.rsplit('/').next().unwrap_or(text);
        name.split(':').next().unwrap_or(name).to_owned()
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
            surge: Surge::Number(most.saturating_sub(count)),
            surge_from: Some(surge_from),
            drains: false,
            unknown: None,
        },
        containers: Vec::new(),
        task,
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
