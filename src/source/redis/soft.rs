//! A copy that is kept longer than it is good for: its own expiry stands in its value, before the key's.

use serde_json::Value as Json;

use crate::model::{Millis, Soft, Timestamp};

/// Names that a soft expiry goes by.
const KNOWN: [&str; 14] = [
    "soft_expires_at",
    "softExpiresAt",
    "soft_expiry",
    "softExpiry",
    "soft_ttl_at",
    "stale_at",
    "staleAt",
    "fresh_until",
    "freshUntil",
    "logical_expiry",
    "logicalExpiry",
    "logicalExpireTime",
    "expires_at",
    "expiresAt",
];

/// The names to look for, and the server's time.
#[derive(Clone, Debug)]
pub struct SoftFields {
    names: Vec<String>,
    now: Timestamp,
}

impl SoftFields {
    /// `own`: those of the person, before the known ones.
    pub fn new(own: &[String], now: Timestamp) -> Self {
        let known = KNOWN.iter().map(ToString::to_string);
        Self {
            names: own.iter().cloned().chain(known).collect(),
            now,
        }
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// The values of the named fields of a hash, in their order.
    pub fn of_hash(&self, values: Vec<Option<Vec<u8>>>, left_ms: Option<i64>) -> Soft {
        let found = self.names.iter().zip(values).find_map(|(name, value)| {
            let text = String::from_utf8(value?).ok()?;
            Some((name, moment(&Json::String(text))?))
        });
        self.told(found, left_ms)
    }

    fn told(&self, found: Option<(&String, i64)>, left_ms: Option<i64>) -> Soft {
        let Some((name, at_ms)) = found else {
            return Soft {
                found: Some(false),
                ..Soft::default()
            };
        };
        let kept_until = left_ms
            .filter(|left| *left >= 0)
            .map(|left| self.now.utc().timestamp_millis() + left);
        // A key that never expires is kept for ever.
        let stale_for = kept_until.map(|until| until - at_ms);
        Soft {
            // Within a second it is the same moment, written down twice.
            found: Some(stale_for.is_none_or(|stale| stale > 1000)),
            field: Some(name.clone()),
            stale_for_ms: stale_for
                .and_then(|stale| u64::try_from(stale).ok())
                .map(Millis),
            why_unknown: None,
        }
    }
}

/// Looks for a soft expiry at the top of a JSON value, or one level below. Nothing of the value is kept.
pub fn peek(text: &[u8], fields: &SoftFields, left_ms: Option<i64>) -> Soft {
    let Ok(Json::Object(top)) = serde_json::from_slice::<Json>(text) else {
        return Soft {
            why_unknown: Some("the value isn't a JSON object".into()),
            ..Soft::default()
        };
    };
    let levels = std::iter::once(&top).chain(top.values().filter_map(Json::as_object));
    let found = levels
        .flat_map(|level| {
            fields
                .names
                .iter()
                .filter_map(move |name| Some((name, moment(level.get(name)?)?)))
        })
        .next();
    fields.told(found, left_ms)
}

/// Milliseconds since 1970: of seconds, milli-, micro- or nanoseconds between 2001 and 2100, or of a time as ISO 8601
/// writes it (without a zone: UTC). A number that is none of these is a length of time, or something else.
fn moment(value: &Json) -> Option<i64> {
    const EPOCHS: std::ops::Range<f64> = 1e9..4.1e9;
    let number = match value {
        Json::Number(number) => number.as_f64()?,
        Json::String(text) => match text.parse() {
            Ok(number) => number,
            Err(_) => return of_iso(text),
        },
        _ => return None,
    };
    let of = |unit: f64| {
        EPOCHS
            .contains(&(number / unit))
            .then_some((number / unit * 1000.0) as i64)
    };
    of(1.0)
        .or_else(|| of(1e3))
        .or_else(|| of(1e6))
        .or_else(|| of(1e9))
}

fn of_iso(text: &str) -> Option<i64> {
    if let Ok(at) = chrono::DateTime::parse_from_rfc3339(text) {
        return Some(at.timestamp_millis());
    }
    let bare = text.parse::<chrono::NaiveDateTime>().ok()?;
    Some(bare.and_utc().timestamp_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked(text: &str, left_ms: i64) -> Soft {
        let now =
            Timestamp::new(chrono::DateTime::from_timestamp(1_700_000_000, 0).expect("a time"));
        peek(
            text.as_bytes(),
            &SoftFields::new(&["mine".into()], now),
            Some(left_ms),
        )
    }

    #[test]
    fn envelopes_of_several_kinds() {
        for (text, field) in [
            (
                r#"{"data":1,"soft_expires_at":1700000060}"#,
                "soft_expires_at",
            ),
            (r#"{"data":1,"staleAt":1700000060000}"#, "staleAt"),
            (
                r#"{"meta":{"fresh_until":"2023-11-14T22:14:20Z"},"data":{}}"#,
                "fresh_until",
            ),
            (r#"{"mine":"1700000060"}"#, "mine"),
            (r#"{"stale_at":"2023-11-14T22:14:20.000000"}"#, "stale_at"),
            (r#"{"stale_at":1700000060000000000}"#, "stale_at"),
        ] {
            let soft = looked(text, 360_000);
            assert_eq!(
                (soft.found, soft.field.as_deref()),
                (Some(true), Some(field)),
                "{text}"
            );
            assert_eq!(soft.stale_for_ms, Some(Millis(300_000)), "{text}");
        }
        // The key's own expiry, written down in the value.
        assert_eq!(
            looked(r#"{"expires_at":1700000060}"#, 60_000).found,
            Some(false)
        );
        assert_eq!(looked(r#"{"data":1}"#, 60_000).found, Some(false));
        // Seconds from now, not a moment.
        assert_eq!(looked(r#"{"fresh_until":60}"#, 60_000).found, Some(false));
        assert_eq!(looked("a:1:{s:4:\"data\"}", 60_000).found, None);
        // It never expires: the copy is always there.
        assert_eq!(looked(r#"{"stale_at":1700000060}"#, -1).found, Some(true));
    }
}
