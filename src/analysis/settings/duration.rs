//! Times as PostgreSQL writes them.

use crate::model::{Millis, Setting};

/// A value of `pg_settings` in its own unit, as a time.
pub(super) fn setting_ms(setting: &Setting) -> Option<Millis> {
    duration_ms(&setting.value, setting.unit.as_deref())
}

/// A time as PostgreSQL writes settings: `30s`, `5 min`, or a bare number in the setting's unit.
pub fn duration_ms(text: &str, default_unit: Option<&str>) -> Option<Millis> {
    let text = text.trim().trim_matches('\'');
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let number: f64 = text[..digits].parse().ok()?;
    let unit = match text[digits..].trim() {
        "" => default_unit.unwrap_or("ms"),
        unit => unit,
    };
    let factor: f64 = match unit {
        "us" => 0.001,
        "ms" => 1.0,
        "s" => 1000.0,
        "min" => 60_000.0,
        "h" => 3_600_000.0,
        "d" => 86_400_000.0,
        _ => return None,
    };
    Some(Millis((number * factor).round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_postgresql_writes_them() {
        let ms = |text, unit| duration_ms(text, unit).map(|m| m.0);
        assert_eq!(ms("30s", None), Some(30_000));
        assert_eq!(ms("5 min", Some("ms")), Some(300_000));
        assert_eq!(ms("1500", Some("ms")), Some(1500));
        assert_eq!(ms("60", Some("s")), Some(60_000));
        assert_eq!(ms("-1", Some("ms")), None);
        assert_eq!(ms("1.5s", None), Some(1500));
        assert_eq!(ms("8kB", None), None);
    }
}
