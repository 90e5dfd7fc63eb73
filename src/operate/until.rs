//! `--until 'used_pct < 70'`: a condition on what the server says between batches. What isn't known is never met.

use crate::analysis::{activity, connections};
use crate::model::Snapshot;

/// A measure, a comparison and a number.
#[derive(Clone, Debug, PartialEq)]
pub struct Until {
    measure: Measure,
    comparison: Comparison,
    number: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    UsedPct,
    Used,
    Free,
    Blocked,
    IdleInTransaction,
    Active,
}

const MEASURES: [(&str, Measure); 6] = [
    ("used_pct", Measure::UsedPct),
    ("used", Measure::Used),
    ("free", Measure::Free),
    ("blocked", Measure::Blocked),
    ("idle_in_transaction", Measure::IdleInTransaction),
    ("active", Measure::Active),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Less,
    AtMost,
    More,
    AtLeast,
    Equal,
}

const COMPARISONS: [(&str, Comparison); 5] = [
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("==", Comparison::Equal),
    ("<", Comparison::Less),
    (">", Comparison::More),
];

impl Until {
    /// # Errors
    /// What a condition looks like.
    pub fn parse(text: &str) -> Result<Self, String> {
        let names: Vec<&str> = MEASURES.iter().map(|(name, _)| *name).collect();
        let wrong = || {
            format!(
                "a condition such as 'used_pct < 70'; there are: {}",
                names.join(", ")
            )
        };
        let (sign, comparison) = COMPARISONS
            .into_iter()
            .find(|(sign, _)| text.contains(sign))
            .ok_or_else(wrong)?;
        let (name, number) = text.split_once(sign).ok_or_else(wrong)?;
        let measure = MEASURES
            .into_iter()
            .find(|(known, _)| *known == name.trim())
            .ok_or_else(wrong)?
            .1;
        let number: f64 = number.trim().parse().map_err(|_| wrong())?;
        if !number.is_finite() {
            return Err(wrong());
        }
        Ok(Self {
            measure,
            comparison,
            number,
        })
    }

    /// Whether it holds, and what was measured in words.
    pub fn holds(&self, snapshot: &Snapshot) -> (bool, String) {
        let name = MEASURES
            .iter()
            .find(|(_, measure)| *measure == self.measure)
            .map_or("", |(name, _)| name);
        let Some(value) = self.measure.of(snapshot) else {
            return (false, format!("{name} isn't known"));
        };
        let holds = match self.comparison {
            Comparison::Less => value < self.number,
            Comparison::AtMost => value <= self.number,
            Comparison::More => value > self.number,
            Comparison::AtLeast => value >= self.number,
            Comparison::Equal => (value - self.number).abs() < f64::EPSILON,
        };
        (holds, format!("{name} is {value}"))
    }
}

impl Measure {
    fn of(self, snapshot: &Snapshot) -> Option<f64> {
        let capacity = || connections::capacity(snapshot);
        let count = |number: usize| number as f64;
        match self {
            Self::UsedPct => Some(capacity()?.used_pct?.0),
            Self::Used => Some(capacity()?.used.into()),
            Self::Free => Some(capacity()?.free.into()),
            Self::Blocked => {
                snapshot.locks.get()?;
                let report = crate::analysis::blocking::report(snapshot);
                Some(count(report.data.blocked))
            }
            Self::IdleInTransaction | Self::Active => {
                let sessions = activity::report(snapshot, &activity::Filter::default());
                let sessions = sessions.data.sessions;
                // Of a hidden session nobody knows what it does.
                if snapshot.activity.get().is_none() || sessions.iter().any(|s| s.hidden) {
                    return None;
                }
                let is = |s: &&activity::SessionRow| {
                    s.state.as_ref().is_some_and(|state| match self {
                        Self::Active => state.as_str() == "active",
                        _ => state.is_idle_in_transaction(),
                    })
                };
                Some(count(sessions.iter().filter(is).count()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_or_refused() {
        for good in ["used_pct < 70", "free>=10", " blocked == 0 ", "active<=3.5"] {
            assert!(Until::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "used_pct",
            "load < 3",
            "used_pct < x",
            "used_pct < nan",
            "< 3",
        ] {
            assert!(Until::parse(bad).is_err(), "{bad}");
        }
    }
}
