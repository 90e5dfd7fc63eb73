//! What every report of Redis begins with.

use serde::{Deserialize, Serialize};

use crate::analysis::Report;
use crate::model::{RedisCoverage, RedisTarget, Timestamp};

/// Which Redis, when by its own clock, and how much of it was seen.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RedisHead {
    /// `stanch.<report>/<version>`; the number rises with any change of shape.
    pub schema: String,
    pub taken_at: Timestamp,
    pub target: RedisTarget,
    pub coverage: RedisCoverage,
}

pub type RedisReport<D> = Report<D, RedisHead>;

impl<D> RedisReport<D> {
    pub fn of(
        name: &str,
        taken_at: Timestamp,
        target: RedisTarget,
        coverage: RedisCoverage,
        data: D,
    ) -> Self {
        Self {
            head: RedisHead {
                schema: format!("stanch.{name}/1"),
                taken_at,
                target,
                coverage,
            },
            data,
        }
    }
}
