//! PURE: Snapshot → reports. No clock of its own, no I/O: the same snapshot gives the same report for ever.

pub mod actions;
pub mod activity;
pub mod blocking;
pub mod catalog;
mod command;
pub mod compare;
pub mod connections;
mod coverage;
pub mod deadlocks;
pub mod doctor;
pub mod glance;
pub mod horizon;
pub mod locks;
mod lookup;
pub mod redis;
pub mod settings;
pub mod transactions;
pub mod triage;

use serde::{Deserialize, Serialize};

use crate::model::{Part, Snapshot, Target, Timestamp};

pub use command::{
    psql_command, psql_commands, redis_command, redis_url, shell_word, stanch_command,
};
pub use coverage::Coverage;
pub use lookup::Lookup;

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
