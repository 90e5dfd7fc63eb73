//! Groups of keys, learned from their names: `catalog:product:12:v1` and its like are `catalog:product:*:v1`.
//!
//! The first keys of a SCAN are as good as a random sample: from them the rules are learned, and then every key is assigned.

mod grouping;
mod judge;
mod learn;
mod pattern;
mod sample;
mod shape;
mod span;
#[cfg(test)]
mod tests;
mod token;
mod tree;

pub use grouping::{GroupId, Grouping};
pub use pattern::Pattern;
pub use sample::Sample;
