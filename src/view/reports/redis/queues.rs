//! `redis queues`: one table over all systems, the worst first, then what speaks against them.

use super::head::own_effect;
use super::numbers::{counted, thousands};
use crate::analysis::redis::RedisHead;
use crate::analysis::redis::queues::{QueueRow, QueueVerdict, Queues};
use crate::model::Millis;
use crate::view::console::Style;
use crate::view::layout::{Column, table};
use crate::view::prometheus::{Metric, gauges};
use crate::view::reports::Table;
use crate::view::reports::cells::{NONE, age, sentence, wrap};
use crate::view::sanitize::clean;
use crate::view::sheet::{Col, Sheet, col, more};

impl Table<RedisHead> for Queues {
    fn table(&self, head: &RedisHead, style: Style) -> String {
        let most = style.width.unwrap_or(usize::MAX);
        let mut out = sentence(&self.summary(head), style);
        let rows = self.ordered();
        if !rows.is_empty() {
            out.push('\n');
            out.push_str(&self.all(&rows, style));
        }
        let said: Vec<&&QueueRow> = rows
            .iter()
            .filter(|row| row.verdict >= QueueVerdict::Warning || !row.queue.notes.is_empty())
            .collect();
        if !said.is_empty() {
            out.push('\n');
        }
        for row in said {
            let name = clean(&row.full_name());
            for (severity, reason) in row
                .judged()
                .filter(|(severity, _)| *severity >= QueueVerdict::Warning)
            {
                out.push_str(&wrap(
                    &format!("{} {}: {}", severity.word(), name, clean(reason)),
                    most,
                    0,
                ));
            }
            for note in &row.queue.notes {
                out.push_str(
                    &style.faint(wrap(&format!("{name}: {}", clean(note)), most, 0).trim_end()),
                );
                out.push('\n');
            }
        }
        let unjudged = rows
            .iter()
            .filter(|row| row.verdict == QueueVerdict::Unknown)
            .count();
        if unjudged > 0 {
            let line = format!(
                "not judged: {}: how long they may get and how old their jobs stands in stanch.yaml (redis.queues), or nowhere",
                counted(unjudged as u64, "queue")
            );
            out.push_str(&wrap(&line, most, 0));
        }
        out.push('\n');
        out.push_str(&style.faint(wrap(&own_effect(&head.coverage), most, 0).trim_end()));
        out.push('\n');
        out
    }

    fn sentences(&self, head: &RedisHead) -> Vec<String> {
        let sums = self.sums();
        let more = match self.bad() {
            0 => return vec![self.summary(head)],
            1 => String::new(),
            bad => format!(", and {} more", thousands(bad as u64 - 1)),
        };
        let worst = self.ordered().first().map_or_else(String::new, |row| {
            let why = row.reasons.first().map_or("", String::as_str);
            format!("{}: {why}", row.full_name())
        });
        let queues = counted(self.queues.len() as u64, "queue");
        vec![format!("{worst}{more}; of {queues}, {sums}")]
    }

    fn sheets(&self) -> Vec<Sheet> {
        const COLUMNS: [Col; 27] = [
            col("system", "system"),
            col("name", "queue"),
            col("depth", "waiting"),
            col("oldest_age_ms", "oldest"),
            more("oldest_age_at_least"),
            col("in_flight", "in flight"),
            col("oldest_in_flight_ms", "longest"),
            more("oldest_in_flight_at_least"),
            col("scheduled", "scheduled"),
            col("overdue", "overdue"),
            col("retry", "retry"),
            col("dead", "dead"),
            more("oldest_dead_ms"),
            col("workers", "workers"),
            more("oldest_heartbeat_ms"),
            more("paused"),
            more("head.class"),
            more("head.id"),
            col("arrival_per_s", "in/s"),
            col("drain_per_s", "out/s"),
            col("net_per_s", "net/s"),
            col("empty_in_ms", "empty in"),
            col("verdict", "verdict"),
            col("reasons", "reasons"),
            more("severities"),
            more("notes"),
            more("refused"),
        ];
        vec![Sheet::of("queues", &COLUMNS, &self.queues)]
    }

    fn metrics(&self, _: &RedisHead) -> Vec<Metric> {
        let of = |name, help, value: &dyn Fn(&QueueRow) -> Option<f64>| {
            let series = self.queues.iter().filter_map(|row| {
                let labels = vec![
                    ("system", row.queue.system.name().to_owned()),
                    ("queue", row.queue.name.clone()),
                ];
                Some((labels, value(row)?))
            });
            gauges(name, help, series.collect())
        };
        let count = |value: Option<u64>| value.map(|value| value as f64);
        vec![
            of("stanch_queue_depth", "Jobs that wait.", &|row| {
                count(row.queue.depth)
            }),
            of(
                "stanch_queue_oldest_seconds",
                "Age of the oldest waiting job.",
                &|row| row.queue.oldest_age_ms.map(Millis::seconds),
            ),
            of(
                "stanch_queue_in_flight",
                "Jobs that are taken and not done.",
                &|row| count(row.queue.in_flight),
            ),
            of(
                "stanch_queue_overdue",
                "Jobs whose time has passed.",
                &|row| count(row.queue.overdue),
            ),
            of("stanch_queue_dead", "Jobs that failed for good.", &|row| {
                count(row.queue.dead)
            }),
            of("stanch_queue_workers", "Live workers.", &|row| {
                count(row.queue.workers)
            }),
        ]
    }
}

impl Queues {
    fn summary(&self, head: &RedisHead) -> String {
        if self.queues.is_empty() {
            if head.coverage.skipped("queues").is_some() {
                return "queues weren't looked at".into();
            }
            let seen = if head.coverage.skipped("discovery").is_some() {
                " in the usual places"
            } else if head.coverage.complete {
                ""
            } else {
                " in what was seen"
            };
            return format!("no queue found{seen}");
        }
        format!(
            "{} of {} to look at: {}",
            self.bad(),
            counted(self.queues.len() as u64, "queue"),
            self.sums()
        )
    }

    /// How many are to look at.
    fn bad(&self) -> usize {
        let bad = |row: &&QueueRow| row.verdict >= QueueVerdict::Warning;
        self.queues.iter().filter(bad).count()
    }

    /// `1,200 waiting, 3 dead; rates over 10s`
    fn sums(&self) -> String {
        let waiting: u64 = self.queues.iter().filter_map(|row| row.queue.depth).sum();
        let dead: u64 = self.queues.iter().filter_map(|row| row.queue.dead).sum();
        let rates = match self.sampled_ms {
            Some(time) => format!("; rates over {time}"),
            None => "; one look has no rates (--sample 10s)".into(),
        };
        format!(
            "{} waiting, {} dead{rates}",
            thousands(waiting),
            thousands(dead)
        )
    }

    /// The worst first, then the oldest.
    fn ordered(&self) -> Vec<&QueueRow> {
        let mut rows: Vec<&QueueRow> = self.queues.iter().collect();
        rows.sort_by_key(|row| {
            let is_real = row.queue.name != "*";
            std::cmp::Reverse((
                row.verdict,
                is_real,
                row.queue.oldest_age_ms,
                row.queue.depth,
            ))
        });
        rows
    }

    fn all(&self, rows: &[&QueueRow], style: Style) -> String {
        let sampled = self.sampled_ms.is_some();
        let mut columns = vec![
            Column::text("queue").flex_from(24, 14),
            Column::text("verdict"),
            Column::number("waiting"),
            Column::number("oldest"),
            Column::number("in flight").drop(3),
            Column::number("longest").drop(4),
            Column::number("scheduled").drop(3),
            Column::number("overdue").drop(2),
            Column::number("retry").drop(4),
            Column::number("dead").drop(1),
            Column::number("workers").drop(2),
        ];
        if sampled {
            columns.extend([
                Column::number("in/s").drop(5),
                Column::number("out/s").drop(5),
                Column::number("net/s"),
                Column::number("empty in").drop(1),
            ]);
        }
        let number = |value: Option<u64>| value.map_or_else(|| NONE.into(), thousands);
        let rate =
            |value: Option<f64>| value.map_or_else(|| NONE.into(), |rate| format!("{rate:.1}"));
        let row = |row: &&QueueRow| {
            let queue = &row.queue;
            let bound = |time: Option<Millis>, at_least: bool| match (time, at_least) {
                (Some(time), true) => format!("≥ {time}"),
                (known, _) => age(known),
            };
            let paused = if queue.paused == Some(true) {
                " (paused)"
            } else {
                ""
            };
            let mut cells = vec![
                format!("{}{paused}", row.full_name()),
                row.verdict.word().to_owned(),
                number(queue.depth),
                bound(queue.oldest_age_ms, queue.oldest_age_at_least),
                number(queue.in_flight),
                bound(queue.oldest_in_flight_ms, queue.oldest_in_flight_at_least),
                number(queue.scheduled),
                number(queue.overdue),
                number(queue.retry),
                number(queue.dead),
                number(queue.workers),
            ];
            if sampled {
                let net = queue
                    .net_per_s
                    .map_or_else(|| NONE.into(), |net| format!("{net:+.1}"));
                cells.extend([
                    rate(queue.arrival_per_s),
                    rate(queue.drain_per_s),
                    net,
                    age(queue.empty_in_ms),
                ]);
            }
            cells
        };
        table(&columns, rows.iter().map(row).collect(), style.width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::redis::queues::report;
    use crate::model::{
        ExitCode, Queue, QueueBounds, QueueSystem, RedisCoverage, RedisMode, RedisTarget, Timestamp,
    };
    use crate::view::check;

    /// The line of a check, of queues that nobody listens to; `quick`: the keys weren't walked.
    fn line(names: &[&str], quick: bool) -> (ExitCode, String) {
        let target = RedisTarget {
            name: None,
            host: "cache".into(),
            port: Some(6379),
            database: 0,
            user: None,
            tls: false,
            product: None,
            server_version: None,
            role: None,
            mode: RedisMode::Standalone,
            nodes: Vec::new(),
        };
        let mut coverage = RedisCoverage {
            complete: true,
            ..RedisCoverage::default()
        };
        if quick {
            coverage.note("discovery", "skipped", "BullMQ wasn't looked for");
        }
        let queue = |(n, name): (usize, &&str)| Queue {
            depth: Some(if *name == "empty" { 0 } else { 7 }),
            workers: Some(0),
            oldest_age_ms: Some(Millis::from_secs(1000 + n as u64)),
            ..Queue::new(QueueSystem::Rq, (*name).into())
        };
        let queues = names.iter().enumerate().map(queue).collect();
        let now = Timestamp::new(chrono::DateTime::from_timestamp_millis(0).expect("a time"));
        let bounds = QueueBounds::default();
        let report = report(now, target, coverage, queues, &bounds, None);
        let code = report.exit_code();
        let said = report.data.sentences(&report.head);
        (code, check::of_redis("queues", code, &said, &report.head))
    }

    #[test]
    fn a_check_names_the_worst_and_its_reason() {
        let (code, line_of) = line(&["mail", "sms", "empty"], false);
        assert_eq!(code, ExitCode::Critical);
        assert_eq!(
            line_of,
            "STANCH QUEUES CRITICAL: rq/sms: no worker listens to it, and 1 more; of 3 queues, 14 waiting, 0 dead; \
             one look has no rates (--sample 10s)\n"
        );
        assert!(line(&["mail"], false).1.contains("to it; of 1 queue, 7"));
    }

    #[test]
    fn that_the_quick_way_finds_none_is_no_good_news() {
        let unseen = "not seen: discovery: BullMQ wasn't looked for\n";
        let (code, none) = line(&[], true);
        assert_eq!(code, ExitCode::Unknown);
        let begins = "STANCH QUEUES UNKNOWN: no queue found in the usual places; ";
        assert_eq!(none, format!("{begins}{unseen}"));
        assert_eq!(line(&[], false).0, ExitCode::Ok);
        let (code, empty) = line(&["empty"], true);
        assert_eq!(code, ExitCode::Ok);
        assert!(empty.ends_with(unseen), "{empty}");
        assert_eq!(line(&["mail"], true).0, ExitCode::Critical);
    }
}
