//! docker-compose: services with their environment and how many of each.

use std::collections::BTreeMap;

use super::super::count::{At, Count, Source};
use super::{
    Container, Env, EnvValue, Fault, Found, Manifest, Pods, Role, Surge, WholeMap, number, plain,
};
use crate::yaml::{Kind, Node};

pub fn read(file: &str, doc: &Node, found: &mut Vec<Found>) -> Result<(), Fault> {
    for (name, service) in doc.get("services").map(Node::map).unwrap_or_default() {
        let Some(name) = name.text() else { continue };
        let top = At::new(file, service.place);
        let replicas = service
            .at(&["deploy", "replicas"])
            .or_else(|| service.get("scale"));
        let (count, source) = match replicas {
            Some(node) => {
                let count = match plain(node).as_deref().and_then(default_of) {
                    Some(count) => count,
                    None => number(file, node, "replicas")?,
                };
                (
                    count,
                    Source::said("pods (replicas)", count, At::new(file, node.place)),
                )
            }
            None => (1, Source::assumed("pods (replicas)", 1, Some(top.clone()))),
        };
        let update = service.at(&["deploy", "update_config"]);
        let first = update.and_then(|u| u.get("order")).and_then(Node::text) == Some("start-first");
        let parallelism = update.and_then(|u| u.get("parallelism"));
        let surge = match (first, parallelism) {
            (false, _) => Surge::None,
            (true, None) => Surge::Number(1.min(count)),
            (true, Some(node)) => match number(file, node, "parallelism")? {
                0 => Surge::All,
                some => Surge::Number(some.min(count)),
            },
        };
        let label = |key: &str| {
            let labels = service
                .get("labels")
                .or_else(|| service.at(&["deploy", "labels"]))?;
            if let Some(node) = labels.get(key) {
                return Some((plain(node)?, At::new(file, node.place)));
            }
            // Or a list of NAME=value.
            labels.list().iter().find_map(|line| {
                let (name, value) = line.text()?.split_once('=')?;
                (name == key).then(|| (value.to_owned(), At::new(file, line.place)))
            })
        };
        let count_of = |key: &str| {
            label(key).and_then(|(text, at)| Some((text.trim().parse::<u64>().ok()?, at)))
        };
        found.push(Found::Manifest(Box::new(Manifest {
            kind: "service".into(),
            name: name.to_owned(),
            // A project is a folder.
            namespace: file
                .rsplit_once('/')
                .map_or("", |(folder, _)| folder)
                .to_owned(),
            target: label("stanch.dev/target"),
            library: label("stanch.dev/pool"),
            connections: count_of("stanch.dev/connections"),
            processes: count_of("stanch.dev/processes"),
            pods: Pods {
                count: Count::known(count),
                from: vec![source],
                surge,
                surge_from: update
                    .filter(|_| first)
                    .map(|u| Source::said("surge (start-first)", "", At::new(file, u.place))),
                drains: false,
                unknown: None,
            },
            containers: vec![Container {
                name: name.to_owned(),
                role: Role::App,
                env: env(file, service),
                command: command(file, service),
                at: top.clone(),
                probe: None,
            }],
            task: None,
            template_of: None,
            at: top,
        })));
    }
    Ok(())
}

/// `${N:-2}` is 2 where nobody says otherwise.
fn default_of(text: &str) -> Option<u64> {
    let inside = text.strip_prefix("${")?.strip_suffix('}')?;
    let (_, default) = inside.split_once('-')?;
    default.parse().ok()
}

/// What it starts: the entry point, then the command.
fn command(file: &str, service: &Node) -> Vec<(String, At)> {
    let mut words = Vec::new();
    for node in ["entrypoint", "command"]
        .iter()
        .filter_map(|name| service.get(name))
    {
        match &node.kind {
            Kind::Text(line) => {
                let at = At::new(file, node.place);
                let all = line.split_whitespace();
                words.extend(all.map(|word| (word.to_owned(), at.clone())));
            }
            _ => {
                let all = node.list().iter();
                words
                    .extend(all.filter_map(|word| Some((plain(word)?, At::new(file, word.place)))));
            }
        }
    }
    words
}

/// A map, or lines `NAME=value`; a name without a value is the caller's own.
fn env(file: &str, service: &Node) -> Env {
    let mut values: BTreeMap<String, EnvValue> = BTreeMap::new();
    let maps = service.get("env_file").into_iter().map(|node| WholeMap {
        name: None,
        prefix: String::new(),
        at: At::new(file, node.place),
    });
    let maps = maps.collect();
    let Some(node) = service.get("environment") else {
        return Env { values, maps };
    };
    for (key, value) in node.map() {
        let (Some(name), at) = (key.text(), At::new(file, value.place)) else {
            continue;
        };
        let value = match plain(value) {
            Some(text) if !text.contains("${") => EnvValue::Literal(text, at),
            _ => EnvValue::Hidden(at),
        };
        values.insert(name.to_owned(), value);
    }
    for line in node.list() {
        let (Some(text), at) = (line.text(), At::new(file, line.place)) else {
            continue;
        };
        let (name, value) = match text.split_once('=') {
            Some((name, value)) if !value.contains("${") => {
                (name, EnvValue::Literal(value.to_owned(), at))
            }
            Some((name, _)) => (name, EnvValue::Hidden(at)),
            None => (text, EnvValue::Hidden(at)),
        };
        values.insert(name.to_owned(), value);
    }
    Env { values, maps }
}
