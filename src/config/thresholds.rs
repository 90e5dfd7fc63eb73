//! One threshold by its name: as `stanch.yaml` and the flag spell it.

use crate::model::{Millis, Percent, Thresholds};

/// Every name.
pub const NAMES: [&str; 15] = [
    "connections_warning",
    "connections_critical",
    "pools",
    "idle_in_transaction",
    "idle_in_transaction_age",
    "transaction_age",
    "lock_wait",
    "lock_wait_critical",
    "blocked_critical",
    "storm_sessions",
    "storm_age",
    "pool_wait",
    "pool_wait_critical",
    "horizon_warning",
    "horizon_critical",
];

/// Sets one.
///
/// # Errors
/// What is wrong with the name or the value.
pub fn set(thresholds: &mut Thresholds, name: &str, value: &str) -> Result<(), String> {
    let value = value.trim();
    let percent = || percent(value).ok_or_else(|| format!("{name}: not a percentage such as 85%"));
    let time = || time(value).ok_or_else(|| format!("{name}: not a time such as 30s"));
    let count = || {
        value
            .parse()
            .map_err(|_| format!("{name}: not a whole number"))
    };
    match name {
        "connections_warning" => thresholds.connections_warning = percent()?,
        "connections_critical" => thresholds.connections_critical = percent()?,
        "pools" => thresholds.pools = percent()?,
        "idle_in_transaction" => thresholds.idle_in_transaction = count()?,
        "idle_in_transaction_age" => thresholds.idle_in_transaction_age = time()?,
        "transaction_age" => thresholds.transaction_age = time()?,
        "lock_wait" => thresholds.lock_wait = Some(time()?),
        "lock_wait_critical" => thresholds.lock_wait_critical = time()?,
        "blocked_critical" => thresholds.blocked_critical = count()?,
        "storm_sessions" => thresholds.storm_sessions = count()?,
        "storm_age" => thresholds.storm_age = time()?,
        "pool_wait" => thresholds.pool_wait = time()?,
        "pool_wait_critical" => thresholds.pool_wait_critical = time()?,
        "horizon_warning" => {
            thresholds.horizon_warning = value
                .parse()
                .map_err(|_| format!("{name}: not a whole number"))?;
        }
        "horizon_critical" => {
            thresholds.horizon_critical = value
                .parse()
                .map_err(|_| format!("{name}: not a whole number"))?;
        }
        _ => {
            return Err(format!(
                "no threshold {name:?}; there are: {}",
                NAMES.join(", ")
            ));
        }
    }
    Ok(())
}

fn percent(text: &str) -> Option<Percent> {
    let number: f64 = text.strip_suffix('%').unwrap_or(text).trim().parse().ok()?;
    (0.0..=100.0).contains(&number).then_some(Percent(number))
}

fn time(text: &str) -> Option<Millis> {
    humantime::parse_duration(text).ok().map(Millis::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_that_is_listed_can_be_set() {
        for name in NAMES {
            let mut t = Thresholds::default();
            let values = ["7%", "7s", "7"];
            let set = values.iter().any(|value| set(&mut t, name, value).is_ok());
            assert!(set && t != Thresholds::default(), "{name}");
        }
    }
}
