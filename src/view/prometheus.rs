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
        for (labels, value) in &metric.series {
            let labels: Vec<String> = place
                .iter()
                .map(|(name, value)| (*name, value))
                .chain(labels.iter().map(|(name, value)| (*name, value)))
                .map(|(name, value)| format!("{name}=\"{}\"", escape(value)))
                .collect();
            out.push_str(&format!("{name}{{{}}} {value}\n", labels.join(",")));
        }
    }
    out
}

fn escape(text: &str) -> String {
    super::clean(text)
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
}
