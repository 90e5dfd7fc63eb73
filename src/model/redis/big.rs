//! The largest keys.

use serde::{Deserialize, Serialize};

use super::{KeyName, KeyType, Stopped};

/// One large key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BigKey {
    #[serde(flatten)]
    pub key: KeyName,
    pub node: String,
    pub group: String,
    #[serde(rename = "type")]
    pub kind: KeyType,
    /// `MEMORY USAGE`.
    pub bytes: Option<u64>,
    /// Not all elements were measured: others may be larger or smaller.
    #[serde(default)]
    pub bytes_estimated: bool,
    /// `null` for strings, for the types of modules, and where counting would change the server.
    pub elements: Option<u64>,
}

/// What one type comes to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TypeSum {
    #[serde(rename = "type")]
    pub kind: KeyType,
    pub keys: u64,
    /// Of those whose size could be read; `null`: of none.
    pub bytes: Option<u64>,
    /// Sizes of collections are in it that are estimated.
    #[serde(default)]
    pub bytes_estimated: bool,
    pub elements: Option<u64>,
}

/// What one group comes to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupSum {
    pub group: String,
    pub keys: u64,
    /// Of those whose size could be read; `null`: of none.
    pub bytes: Option<u64>,
    /// Sizes of collections are in it that are estimated.
    #[serde(default)]
    pub bytes_estimated: bool,
    /// The size of its largest key.
    pub largest: Option<u64>,
}

/// What was measured element by element, after the walk had estimated it from five.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BigMeasured {
    /// Of which all elements were.
    pub keys: u64,
    /// At most so many were looked at.
    pub elements: u64,
    /// So many are looked at, of one key and of all: more would keep the server from its work.
    pub of_a_key_at_most: u64,
    pub in_all_at_most: u64,
    /// Why it ended before its end.
    pub stopped: Option<Stopped>,
}
