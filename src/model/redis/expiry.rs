//! When the keys of each group expire.

use serde::{Deserialize, Serialize};

use crate::model::{Millis, Percent, Timestamp, counted};

/// What a group's expiry times come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpiryVerdict {
    /// A large part of it expires within the same ten seconds.
    Cliff,
    /// They are spread.
    Spread,
    /// Whatever there is expires within half a minute: whether it is one burst or goes on for ever, one look can't tell.
    ShortLived,
    /// None of its keys expires.
    NoTtl,
    /// Too few keys expire to speak of a part of them.
    Few,
}

impl ExpiryVerdict {
    pub fn word(self) -> &'static str {
        match self {
            Self::Cliff => "cliff",
            Self::Spread => "spread",
            Self::ShortLived => "short-lived",
            Self::NoTtl => "no TTL",
            Self::Few => "few",
        }
    }
}

/// What a group would need so as not to expire at once: a lifetime of `base_s` plus a random part of up to `spread_s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jitter {
    /// Estimated: the time that the last of those that expire together have left stands for the lifetime that is given.
    pub lifetime_s: u64,
    pub base_s: u64,
    pub spread_s: u64,
    /// Keys a second then, at the most, where now they are `now_per_s`.
    pub peak_per_s: u64,
    pub now_per_s: u64,
}

/// One group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExpiryGroup {
    pub group: String,
    pub keys: u64,
    pub with_ttl: u64,
    /// Their time is over; they count until they are removed.
    pub overdue: u64,
    /// Their time is more than ten years away, so they never expire, in effect. None of what follows is of these, but for
    /// the longest.
    #[serde(default)]
    pub never: u64,
    /// Of the keys that expire, those in the second, and in the ten seconds, in which most do.
    pub peak_1s_share: Option<Percent>,
    pub peak_1s_keys: Option<u64>,
    pub peak_1s_at: Option<Timestamp>,
    pub peak_10s_share: Option<Percent>,
    pub peak_10s_keys: Option<u64>,
    /// Of those ten seconds the one in which most do.
    pub peak_at: Option<Timestamp>,
    /// Counts of a second are too low by at most so many keys.
    pub counted_within: u64,
    /// Half of the keys have no more than this left; the longest is estimated to be the lifetime that they are given.
    pub median_ms: Option<Millis>,
    pub longest_ms: Option<Millis>,
    pub verdict: ExpiryVerdict,
    pub jitter: Option<Jitter>,
    /// Keys that expire in each of equal parts of the time from now to `histogram_until_ms`.
    pub histogram: Vec<u64>,
    pub histogram_until_ms: Option<Millis>,
    /// Keys that expire after that. With `histogram`, `overdue` and `never` they are all that have a TTL.
    #[serde(default)]
    pub histogram_later: u64,
}

/// Many keys of a group, or of many groups, that expire together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cliff {
    /// Of its ten seconds the one in which most expire.
    pub at: Timestamp,
    pub in_ms: Millis,
    pub keys: u64,
    /// `60 groups` where no single one is it.
    pub group: String,
    /// Of so many groups, none of which alone is most of it; `null`: of one.
    #[serde(default)]
    pub groups: Option<u64>,
    /// Of the keys of the group that expire; of all keys that do, where it is of many groups.
    pub share: Percent,
}

impl Cliff {
    /// In UTC; with its date where it isn't within a day.
    pub fn moment(&self) -> String {
        let format = if self.in_ms < Millis::from_secs(86_400) {
            "%H:%M:%S"
        } else {
            "%Y-%m-%d %H:%M"
        };
        self.at.utc().format(format).to_string()
    }

    /// `in 4m 12s (14:05:00 UTC) 94,000 keys of catalog:product:* expire within 10 s: 63.0 % of its expiring keys`
    pub fn forecast(&self) -> String {
        format!(
            "in {} ({} UTC) {} of {} expire within 10 s: {:.1} % of {}",
            self.in_ms,
            self.moment(),
            counted(self.keys, "key"),
            self.group,
            self.share.0,
            match self.groups {
                None => "its expiring keys",
                Some(_) => "all keys that expire",
            }
        )
    }
}
