//! The times that job libraries write, in each of their ways, as milliseconds since 1970; and how long ago that is.

use std::time::Instant;

use chrono::{DateTime, NaiveDateTime};
use serde_json::Value;

use crate::model::{Millis, Timestamp};

/// The server's time: what it said, and what has gone by since.
pub struct Clock {
    said: Timestamp,
    heard: Instant,
}

impl Clock {
    pub fn new(said: Timestamp) -> Self {
        Self {
            said,
            heard: Instant::now(),
        }
    }

    pub fn ms(&self) -> i64 {
        let since = i64::try_from(self.heard.elapsed().as_millis()).unwrap_or(0);
        self.said.utc().timestamp_millis().saturating_add(since)
    }

    /// For scores in seconds: so many milliseconds ago.
    pub fn seconds_ago(&self, ms: i64) -> String {
        let ms = self.ms() - ms;
        format!("{}.{:03}", ms.div_euclid(1000), ms.rem_euclid(1000))
    }

    /// What lies ahead is 0 old.
    pub fn age(&self, at: i64) -> Millis {
        Millis(u64::try_from(self.ms() - at).unwrap_or(0))
    }
}

/// From this on a number is milliseconds: as seconds it would be the year 5138.
const MILLISECONDS_FROM: f64 = 1e11;

/// Seconds or milliseconds, by how large it is; `None` for what can be no time.
pub fn of_number(number: f64) -> Option<i64> {
    if !number.is_finite() || number <= 0.0 || number > 1e15 {
        return None;
    }
    let ms = if number >= MILLISECONDS_FROM {
        number
    } else {
        number * 1000.0
    };
    Some(ms.round() as i64)
}

/// A number or a text of one, or a time in ISO 8601.
pub fn of_json(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => of_number(number.as_f64()?),
        Value::String(text) => of_text(text),
        _ => None,
    }
}

pub fn of_text(text: &str) -> Option<i64> {
    let text = text.trim();
    match text.parse() {
        Ok(number) => of_number(number),
        Err(_) => iso(text),
    }
}

/// ISO 8601; without an offset it is UTC.
pub fn iso(text: &str) -> Option<i64> {
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Some(at.timestamp_millis());
    }
    let at = NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f").ok()?;
    Some(at.and_utc().timestamp_millis())
}

/// As Ruby's Resque (`2026/11/30 10:48:25 UTC`) and node's (`Mon Nov 30 2026 10:48:25 GMT+0000 (…)`) write it. A zone
/// that is but a name, other than UTC, can't be told: `None`.
pub fn resque(text: &str) -> Option<i64> {
    if let Some(at) = iso(text) {
        return Some(at);
    }
    let bare = text.split(" (").next().unwrap_or(text).trim();
    if let Ok(at) = DateTime::parse_from_str(bare, "%a %b %d %Y %H:%M:%S GMT%z") {
        return Some(at.timestamp_millis());
    }
    if let Ok(at) = DateTime::parse_from_str(bare, "%Y-%m-%d %H:%M:%S %z") {
        return Some(at.timestamp_millis());
    }
    let utc = bare.strip_suffix(" UTC").or(bare.strip_suffix(" GMT"))?;
    let at = NaiveDateTime::parse_from_str(utc, "%Y/%m/%d %H:%M:%S")
        .or_else(|_| NaiveDateTime::parse_from_str(utc, "%Y-%m-%d %H:%M:%S"));
    Some(at.ok()?.and_utc().timestamp_millis())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn seconds_and_milliseconds_are_told_by_their_size() {
        for (written, at) in [
            (json!(1_796_035_660.551_413_5), Some(1_796_035_660_551)),
            (json!(1_796_035_663_393_i64), Some(1_796_035_663_393)),
            (json!(1_796_035_660), Some(1_796_035_660_000)),
            (json!("1796035660.5"), Some(1_796_035_660_500)),
            (json!("1796035663393"), Some(1_796_035_663_393)),
            (json!("2026-11-30T10:47:40.5Z"), Some(1_796_035_660_500)),
            (json!(0), None),
            (json!(-5), None),
            (json!(1e300), None),
            (json!("soon"), None),
            (json!(null), None),
            (json!(["1796035660"]), None),
        ] {
            assert_eq!(of_json(&written), at, "{written}");
        }
    }

    #[test]
    fn times_of_rq_celery_and_resque() {
        let at = Some(1_796_035_693_480);
        assert_eq!(iso("2026-11-30T10:48:13.480140Z"), at);
        assert_eq!(iso("2026-11-30T10:48:13.480140"), at);
        assert_eq!(iso("2026-11-30T11:48:13.480140+01:00"), at);
        assert_eq!(iso(""), None);
        let whole = Some(1_796_035_693_000);
        for text in [
            "Mon Nov 30 2026 10:48:13 GMT+0000 (Coordinated Universal Time)",
            "Mon Nov 30 2026 11:48:13 GMT+0100 (Central European Standard Time)",
            "2026/11/30 10:48:13 UTC",
            "2026-11-30 10:48:13 UTC",
            "2026-11-30 11:48:13 +0100",
            "2026-11-30T10:48:13Z",
        ] {
            assert_eq!(resque(text), whole, "{text}");
        }
        assert_eq!(resque("2026/11/30 10:48:13 CET"), None);
    }

    #[test]
    fn what_lies_ahead_is_not_old() {
        let clock = Clock::new(Timestamp::new(
            DateTime::from_timestamp(1_796_035_693, 0).expect("a time"),
        ));
        assert_eq!(clock.age(1_796_039_999_000), Millis(0));
        assert!(clock.age(1_796_035_692_000).0 >= 1000);
    }
}
