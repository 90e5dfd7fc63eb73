//! Newtypes with their unit in the name: times, ages, percentages and PostgreSQL's identifiers.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A moment by the server's clock, to the microsecond as PostgreSQL keeps it.
///
/// Serialises as RFC 3339 in UTC with exactly six digits of a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(DateTime<Utc>);

impl Timestamp {
    /// Cut to whole microseconds, so that a saved time reads back as the same time.
    pub fn new(at: DateTime<Utc>) -> Self {
        Self(at.trunc_subsecs(6))
    }

    /// The time from `self` to `now`; 0 when `self` lies after `now`.
    ///
    /// The start of a query can be later than the snapshot's clock, since the server runs on while it is read.
    pub fn age_at(self, now: Self) -> Millis {
        let ms = (now.0 - self.0).num_milliseconds();
        Millis(u64::try_from(ms).unwrap_or(0))
    }

    /// So long before.
    pub fn before(self, age: Millis) -> Self {
        let age = i64::try_from(age.0)
            .ok()
            .and_then(TimeDelta::try_milliseconds);
        Self(
            age.and_then(|age| self.0.checked_sub_signed(age))
                .unwrap_or(self.0),
        )
    }

    pub fn utc(self) -> DateTime<Utc> {
        self.0
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.format("%Y-%m-%dT%H:%M:%S%.6fZ"))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        DateTime::<Utc>::deserialize(deserializer).map(Self::new)
    }
}

/// A length of time in whole milliseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Millis {
    /// In seconds, for formats that want the base unit.
    #[expect(clippy::cast_precision_loss, reason = "ages are far below 2^53 ms")]
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1000.0
    }

    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1000)
    }
}

impl From<Duration> for Millis {
    fn from(d: Duration) -> Self {
        Self(u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
    }
}

/// Reads at a glance: `850 ms`, `12.3 s`, `30 s`, `4m 05s`, `3h 12m`, `2d 04h`.
impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ms, s) = (self.0, self.0 / 1000);
        let text = match s {
            0 => format!("{ms} ms"),
            1..60 if ms % 1000 == 0 => format!("{s} s"),
            1..60 => format!("{}.{} s", s, (ms % 1000) / 100),
            60..3600 => format!("{}m {:02}s", s / 60, s % 60),
            3600..86_400 => format!("{}h {:02}m", s / 3600, (s % 3600) / 60),
            _ => format!("{}d {:02}h", s / 86_400, (s % 86_400) / 3600),
        };
        f.pad(&text)
    }
}

/// A share in percent, to one decimal; may pass 100.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Percent(pub f64);

impl Percent {
    /// `part` of `whole`, rounded to a tenth, never up to 100; `None` when there is no whole.
    pub fn of(part: u64, whole: u64) -> Option<Self> {
        (whole > 0).then(|| {
            let rounded = (part as f64 * 1000.0 / whole as f64).round() / 10.0;
            // All of it is said only where it is all of it.
            Self(if part < whole {
                rounded.min(99.9)
            } else {
                rounded
            })
        })
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} %", self.0)
    }
}

/// A server process. Only ever an identity together with its `backend_start` (see `BackendId`): pids are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pid(pub i32);

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An object identifier. 0 means "none" in PostgreSQL's catalogs (or "shared", for a lock's database).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Oid(pub u32);

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A 32-bit transaction id. It wraps, so two of them are never compared by size: ages come from the server's `age()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Xid(pub u32);

impl fmt::Display for Xid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// `1,234,567`
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 key`, `12,345 keys`
pub fn counted(number: u64, noun: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{} {noun}{s}", thousands(number))
}

/// `1 session`, `3 sessions`
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 {
        format!("1 {noun}")
    } else {
        format!("{number} {noun}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::new(text.parse().expect("a time"))
    }

    #[test]
    fn ages_never_go_below_zero() {
        let (a, b) = (at("2026-01-01T00:00:00Z"), at("2026-01-01T00:00:01.5Z"));
        assert_eq!(a.age_at(b), Millis(1500));
        assert_eq!(b.age_at(a), Millis(0));
    }

    #[test]
    fn times_are_written_with_six_digits() {
        let json = serde_json::to_string(&at("2026-01-01T00:00:00Z")).expect("json");
        assert_eq!(json, "\"2026-01-01T00:00:00.000000Z\"");
        assert_eq!(
            serde_json::from_str::<Timestamp>(&json).expect("back"),
            at("2026-01-01T00:00:00Z")
        );
    }

    #[test]
    fn ages_read_at_a_glance() {
        let shown: Vec<String> = [0, 850, 12_345, 30_000, 245_000, 11_520_000, 187_200_000]
            .map(|ms| Millis(ms).to_string())
            .into();
        assert_eq!(
            shown,
            [
                "0 ms", "850 ms", "12.3 s", "30 s", "4m 05s", "3h 12m", "2d 04h"
            ]
        );
    }

    #[test]
    fn large_numbers_read_at_a_glance() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(thousands),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(
            (counted(1, "key"), counted(1000, "key")),
            ("1 key".into(), "1,000 keys".into())
        );
    }

    #[test]
    fn a_share_of_nothing_is_unknown() {
        assert_eq!(Percent::of(1, 0), None);
        assert_eq!(Percent::of(1, 3), Some(Percent(33.3)));
        assert_eq!(Percent::of(21, 20), Some(Percent(105.0)));
    }
}
