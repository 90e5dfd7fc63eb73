//! What all reports have in common: a head, then data.

use serde::{Deserialize, Serialize};

use super::Coverage;
use crate::model::{Part, Snapshot, Target, Timestamp};

/// What every report begins with.
#[derive(Clone, Debug, Serialize)]
pub struct Head {
    /// `stanch.<report>/<version>`; the number rises with any change of shape.
    pub schema: String,
    pub taken_at: Timestamp,
    pub target: Target,
    pub coverage: Coverage,
}

/// One report: its head, then its data, as one object in JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report<D, H = Head> {
    #[serde(flatten)]
    pub head: H,
    #[serde(flatten)]
    pub data: D,
}

impl<D> Report<D> {
    pub fn new(name: &str, snapshot: &Snapshot, parts: &[Part], data: D) -> Self {
        let head = Head {
            schema: format!("stanch.{name}/1"),
            taken_at: snapshot.taken_at,
            target: snapshot.target.clone(),
            coverage: Coverage::of(snapshot, parts),
        };
        Self { head, data }
    }
}
