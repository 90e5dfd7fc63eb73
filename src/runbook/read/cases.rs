//! The cases of a book: `<book>.test.yaml`.

use serde_json::{Map, Value as Json};

use super::Reader;
use crate::runbook::book::{End, Named};
use crate::runbook::fault::Fault;
use crate::runbook::fixture::{Case, Given};
use crate::runbook::node::{self, Node};

/// Reads them all; what can't be read is told.
pub fn cases(node: &Node, faults: &mut Vec<Fault>) -> Vec<Case> {
    let mut r = Reader { faults };
    let Some(map) = r.map(node, &["test", "cases"]) else {
        return Vec::new();
    };
    if let Some(version) = r.must(&map, "test").and_then(|n| r.text(n))
        && version.text != "v1"
    {
        r.fault(version.place, "this version reads `test: v1`");
    }
    let Some(list) = r.must(&map, "cases") else {
        return Vec::new();
    };
    r.list(list)
        .iter()
        .filter_map(|node| r.case(node))
        .collect()
}

impl Reader<'_> {
    fn case(&mut self, node: &Node) -> Option<Case> {
        let map = self.map(node, &["name", "set", "steps", "path", "end"])?;
        let name = self.must(&map, "name").and_then(|n| self.text(n));
        let set = map.get("set").map(|n| self.pairs(n, Self::scalar));
        let mut steps: Vec<(Named, Vec<Given>)> = Vec::new();
        if let Some(node) = map.get("steps") {
            let node::Kind::Map(pairs) = &node.kind else {
                self.not(node, "a map of steps");
                return None;
            };
            for (key, value) in pairs {
                let all: Vec<Given> = match &value.kind {
                    node::Kind::List(all) => all.iter().map(given).collect(),
                    _ => vec![given(value)],
                };
                steps.extend(self.text(key).map(|name| (name, all)));
            }
        }
        let path = map.get("path").map(|n| self.texts(n));
        let end = self.must(&map, "end").and_then(|n| self.text(n))?;
        let mut ends = End::ALL.map(End::word).to_vec();
        ends.extend(["needs_human", "stopped"]);
        if !ends.contains(&end.text.as_str()) {
            self.unknown(end.place, "end", &end.text, &ends);
        }
        let set = set.unwrap_or_default().into_iter();
        Some(Case {
            name: name?.text,
            set: set.map(|(name, value)| (name.text, value.text)).collect(),
            steps,
            path,
            end,
        })
    }
}

fn given(node: &Node) -> Given {
    Given {
        place: node.place,
        value: json(node),
    }
}

fn json(node: &Node) -> Json {
    match &node.kind {
        node::Kind::Null => Json::Null,
        node::Kind::Bool(value) => Json::Bool(*value),
        node::Kind::Int(number) => Json::from(*number),
        node::Kind::Float(number) => Json::from(*number),
        node::Kind::Text(text) => Json::from(text.as_str()),
        node::Kind::List(all) => Json::Array(all.iter().map(json).collect()),
        node::Kind::Map(pairs) => {
            let fields: Map<String, Json> = pairs
                .iter()
                .map(|(key, value)| {
                    let name = match &key.kind {
                        node::Kind::Text(text) => text.clone(),
                        other => format!("{other:?}"),
                    };
                    (name, json(value))
                })
                .collect();
            Json::Object(fields)
        }
    }
}
