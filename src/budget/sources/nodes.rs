//! What the readers share: numbers, names and paths, each refused with its place.

use super::{Fault, Surge};
use crate::yaml::{Kind, Node};

/// A path as a file beside `base` names it.
pub fn beside(base: &str, path: &str) -> String {
    if path.starts_with('/') {
        return path.to_owned();
    }
    let mut parts: Vec<&str> = base.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Nobody has a thousand million of anything here: a slip, and sums that stay exact.
const MOST: i64 = 1_000_000_000;

/// A whole number that isn't negative.
pub(super) fn number(file: &str, node: &Node, what: &str) -> Result<u64, Fault> {
    match &node.kind {
        Kind::Int(number) if (0..=MOST).contains(number) => Ok(u64::try_from(*number).unwrap_or(0)),
        other => Err(Fault::new(
            file,
            node.place,
            format!(
                "{what} is a whole number from 0, and here is {}",
                shown(other)
            ),
        )),
    }
}

fn shown(kind: &Kind) -> String {
    match kind {
        Kind::Text(text) => format!("the text {text:?}"),
        Kind::Int(number) => number.to_string(),
        other => other.word().to_owned(),
    }
}

/// `25%` or a number.
pub(super) fn surge(file: &str, node: &Node, what: &str) -> Result<Surge, Fault> {
    match &node.kind {
        Kind::Text(text) => {
            let percent = text
                .trim()
                .strip_suffix('%')
                .and_then(|text| text.parse::<f64>().ok());
            let percent = percent.filter(|percent| (0.0..=10_000.0).contains(percent));
            percent.map(Surge::Percent).ok_or_else(|| {
                Fault::new(
                    file,
                    node.place,
                    format!("{what} is a number or a percentage, not {text:?}"),
                )
            })
        }
        _ => number(file, node, what).map(Surge::Number),
    }
}

/// A name.
pub(super) fn text(file: &str, node: &Node, what: &str) -> Result<String, Fault> {
    let text = node.text().filter(|text| !text.is_empty());
    text.map(str::to_owned).ok_or_else(|| {
        Fault::new(
            file,
            node.place,
            format!("{what} is a text, and here is {}", shown(&node.kind)),
        )
    })
}

/// A plain value as a text: numbers and truths are written without quotes.
pub(super) fn plain(node: &Node) -> Option<String> {
    Some(match &node.kind {
        Kind::Text(text) => text.clone(),
        Kind::Int(number) => number.to_string(),
        Kind::Float(number) => number.to_string(),
        Kind::Bool(value) => value.to_string(),
        _ => return None,
    })
}

/// A map with known keys only.
pub(super) fn known(file: &str, node: &Node, keys: &[&str]) -> Result<(), Fault> {
    let Kind::Map(fields) = &node.kind else {
        let what = format!("a map is expected here, not {}", node.kind.word());
        return Err(Fault::new(file, node.place, what));
    };
    for (key, _) in fields {
        let name = key.text().unwrap_or_default();
        if !keys.contains(&name) {
            let what = format!("unknown key {name:?}; there are: {}", keys.join(", "));
            return Err(Fault::new(file, key.place, what));
        }
    }
    Ok(())
}
