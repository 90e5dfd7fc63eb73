//! A group of keys as a walk has seen it.

use super::Spread;
use crate::model::{Misses, Soft};

/// One group as it was seen.
#[derive(Clone, Debug)]
pub struct GroupSeen {
    pub group: String,
    pub spread: Spread,
    pub hottest: Option<u8>,
    pub soft: Soft,
    pub misses: Option<Misses>,
}
