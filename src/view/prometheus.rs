//! Prometheus' text format, for the textfile collector of the node exporter. What isn't known is left out: an absent
//! series is a gap, a 0 would be a lie.

use crate::analysis::Head;
use crate::analysis::redis::RedisHead;
use crate::model::{SlotLimit, Target};

/// One metric with its series.
pub struct Metric {
    name: &'static str,
    help: &'static str,
    series: Vec<(Vec<(&'static str, String)>, f64)>,
}

impl Metric {
    /// Name and value, where it has no labels of its own.
    pub fn single(&self) -> Option<(&'static str, f64)> {
        match self.series.as_slice() {
            [(labels, value)] if labels.is_empty() => Some((self.name, *value)),
            _ => None,
        }
    }
}

/// A metric of one series, or of none where the value isn't known.
pub fn gauge(name: &'static str, help: &'static str, value: Option<impl Into<f64>>) -> Metric {
    let series = value.map(|value| (Vec::new(), value.into()));
    Metric {
        name,
        help,
        series: series.into_iter().collect(),
    }
}

/// A metric of several series, each by its labels.
pub fn gauges(
    name: &'static str,
    help: &'static str,
    series: Vec<(Vec<(&'static str, String)>, f64)>,
) -> Metric {
    Metric { name, help, series }
}

/// A count, as the number that this format has.
pub fn number(count: usize) -> f64 {
    count as f64
}

pub fn document(head: &Head, metrics: Vec<Metric>) -> String {
    let coverage = &head.coverage;
    let read = coverage.failed().count() < coverage.sections.len();
    let taken_at = head.taken_at.utc().timestamp_micros() as f64 / 1e6;
    let own = [
        up(if read { 1.0 } else { 0.0 }),
        gauge(
            "stanch_taken_at_seconds",
            "The server's time when it was read.",
            read.then_some(taken_at),
        ),
        gauge(
            "stanch_sections_failed",
            "Parts that could not be read.",
            read.then(|| number(coverage.failed().count())),
        ),
        gauge(
            "stanch_sessions_hidden",
            "Sessions that this login may not see into.",
            coverage.sessions_hidden.map(number),
        ),
    ];
    text(&head.target, &head.schema, own.into_iter().chain(metrics))
}

/// That there was no connection.
pub fn down(target: &Target, report: &str, refused: Option<SlotLimit>) -> String {
    text(
        target,
        report,
        std::iter::once(up(0.0)).chain(refused.map(refusal)),
    )
}

/// That the server is there, and has no slot for this login.
fn refusal(limit: SlotLimit) -> Metric {
    let limit = match limit {
        SlotLimit::Nothing => "all",
        SlotLimit::Reserved => "unreserved",
        SlotLimit::Role => "role",
        SlotLimit::Database => "database",
        SlotLimit::Pooler => "pooler",
        SlotLimit::Unknown => "unknown",
    };
    gauges(
        "stanch_refused",
        "1 where the login was refused for want of a slot, by the limit that was reached.",
        vec![(vec![("limit", limit.to_owned())], 1.0)],
    )
}

fn up(value: f64) -> Metric {
    gauge(
        "stanch_up",
        "1 where the server was read, 0 where there was no connection.",
        Some(value),
    )
}

/// Of a Redis: the database stands where it has one.
pub fn of_redis(head: &RedisHead, metrics: Vec<Metric>) -> String {
    let target = &head.target;
    let port = target
        .port
        .map_or_else(String::new, |port| format!(":{port}"));
    let complete = gauge(
        "stanch_redis_complete",
        "1 where all that the report needs was read.",
        Some(if head.coverage.complete { 1.0 } else { 0.0 }),
    );
    let place = [
        ("server", format!("{}{port}", target.host)),
        ("db", target.database.to_string()),
        ("report", super::check::name(&head.schema)),
    ];
    series(&place, std::iter::once(complete).chain(metrics))
}

fn text(target: &Target, schema: &str, metrics: impl Iterator<Item = Metric>) -> String {
    let place = [
        ("server", format!("{}:{}", target.host, target.port)),
        ("datname", target.database.clone()),
        // Files of several reports may lie side by side: no series is in two of them.
        ("report", super::check::name(schema)),
    ];
    series(&place, metrics)
}

fn series(place: &[(&str, String)], metrics: impl Iterator<Item = Metric>) -> String {
    let mut out = String::new();
    for metric in metrics.filter(|metric| !metric.series.is_empty()) {
        let name = metric.name;
        out.push_str(&format!(
            "# HELP {name} {}\n# TYPE {name} gauge\n",
            metric.help
        ));
        let mut told: Vec<(String, f64)> = Vec::new();
        for (labels, value) in &metric.series {
            let labels: Vec<String> = place
                .iter()
                .map(|(name, value)| (*name, value))
                .chain(labels.iter().map(|(name, value)| (*name, value)))
                .map(|(name, value)| format!("{name}=\"{}\"", escape(value)))
                .collect();
            let labels = labels.join(",");
            // Names that are masked may be alike, and no series may stand there twice.
            match told.iter_mut().find(|(other, _)| *other == labels) {
                Some((_, before)) => *before = joined(name, *before, *value),
                None => told.push((labels, *value)),
            }
        }
        for (labels, value) in told {
            out.push_str(&format!("{name}{{{labels}}} {value}\n"));
        }
    }
    out
}

/// Two series as one: counts add up, of ages and shares the largest stands for both, and a finding is there or not.
fn joined(name: &str, one: f64, other: f64) -> f64 {
    let by_largest = ["_seconds", "_percent", "_ratio", "_finding"];
    if by_largest.iter().any(|end| name.ends_with(end)) {
        one.max(other)
    } else {
        one + other
    }
}

fn escape(text: &str) -> String {
    super::clean(text)
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_masked_alike_are_one_series() {
        let of = |name, values: [f64; 3]| {
            let names = ["(masked)", "mail", "(masked)"];
            let labels = names.map(|name| vec![("queue", name.to_owned())]);
            gauges(name, "Help.", labels.into_iter().zip(values).collect())
        };
        let metrics = [
            of("stanch_queue_depth", [2.0, 9.0, 3.0]),
            of("stanch_queue_oldest_seconds", [20.0, 9.0, 30.0]),
        ];
        let text = series(&[("db", "0".into())], metrics.into_iter());
        let told: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            told,
            [
                r#"stanch_queue_depth{db="0",queue="(masked)"} 5"#,
                r#"stanch_queue_depth{db="0",queue="mail"} 9"#,
                r#"stanch_queue_oldest_seconds{db="0",queue="(masked)"} 30"#,
                r#"stanch_queue_oldest_seconds{db="0",queue="mail"} 9"#,
            ]
        );
    }
}
