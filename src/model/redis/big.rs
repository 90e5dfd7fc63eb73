//! The largest keys.

use serde::{Deserialize, Serialize};

use super::{KeyName, KeyType};

/// One large key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BigKey {
    #[serde(flatten)]
    pub key: KeyName,
    pub node: String,
    pub group: String,
    #[serde(rename = "type")]
    pub kind: KeyType,
    /// `MEMORY USAGE`: of a collection estimated from five of its elements.
    pub bytes: Option<u64>,
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
    pub elements: Option<u64>,
}

/// What one group comes to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupSum {
    pub group: String,
    pub keys: u64,
    /// Of those whose size could be read; `null`: of none.
    pub bytes: Option<u64>,
    /// The size of its largest key.
    pub largest: Option<u64>,
}
