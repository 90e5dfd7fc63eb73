//! `redis bigkeys`

use serde::{Deserialize, Serialize};

use super::head::RedisReport;
use crate::model::{BigKey, BigMeasured, GroupSum, RedisCoverage, RedisTarget, Timestamp, TypeSum};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bigkeys {
    /// By bytes, the largest first.
    pub bigkeys: Vec<BigKey>,
    /// Of each type of collections those with most elements.
    pub by_elements: Vec<BigKey>,
    pub types: Vec<TypeSum>,
    pub groups: Vec<GroupSum>,
    /// What was measured element by element; `null` in reports of before: all sizes of collections are estimates there.
    #[serde(default)]
    pub measured: Option<BigMeasured>,
}

pub fn report(
    taken_at: Timestamp,
    target: RedisTarget,
    coverage: RedisCoverage,
    data: Bigkeys,
) -> RedisReport<Bigkeys> {
    RedisReport::of("bigkeys", taken_at, target, coverage, data)
}
