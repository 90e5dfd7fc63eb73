//! A book's text as a tree; where it is none, a fault.

use super::fault::Fault;
pub use crate::yaml::{Kind, Node};

/// The tree, or the one place where it is no YAML.
pub fn parse(text: &str, faults: &mut Vec<Fault>) -> Option<Node> {
    crate::yaml::parse(text)
        .map_err(|wrong| faults.push(Fault::new(wrong.place, wrong.what)))
        .ok()
}
