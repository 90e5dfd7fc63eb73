//! `pg connections`: the sum, then groups and limits as tables.

use std::collections::BTreeMap;

use super::Table;
use super::cells::{NONE, age, or_none, wrap};
use crate::analysis::Head;
use crate::analysis::connections::{Capacity, Connections, Group, Limit, PoolerPart, UsedIs};
use crate::model::Pool;
use crate::view::clean;
use crate::view::console::Style;
use crate::view::layout::{Column, table};
use crate::view::prometheus::{Metric, gauge, gauges, number};
use crate::view::sheet::{Col, Sheet, col, more};

impl Table for Connections {
    fn table(&self, _: &Head, style: Style) -> String {
        let most = style.width.unwrap_or(usize::MAX);
        let sentences = self.slots();
        let mut out: String = sentences.iter().map(|text| wrap(text, most, 0)).collect();
        if !self.groups.is_empty() {
            out.push('\n');
            let columns = [
                Column::text("user").shrink(6),
                Column::text("database").shrink(6),
                Column::text("application").flex(8),
                Column::text("client").shrink(9).drop(3),
                Column::number("total"),
                Column::number("active"),
                Column::number("idle"),
                Column::number("in xact"),
                Column::number("aborted").drop(2),
                Column::number("other").drop(4),
                Column::number("hidden").drop(5),
                Column::number("oldest idle").drop(6),
                Column::number("new/min").drop(7),
            ];
            let rows = self.groups.iter().map(group).collect();
            out.push_str(&table(&columns, rows, style.width));
        }
        if !self.limits.is_empty() {
            out.push('\n');
            let columns = [
                Column::text("limit of").shrink(8),
                Column::number("limit"),
                Column::number("used"),
                Column::number("free"),
            ];
            let rows = self.limits.iter().map(limit).collect();
            out.push_str(&table(&columns, rows, style.width));
        }
        if let Some(pooler) = &self.pooler {
            out.push('\n');
            out.push_str(&wrap(&place(pooler), most, 0));
            let columns = [
                Column::text("pool of").shrink(6),
                Column::text("as").shrink(6),
                Column::text("mode").drop(2),
                Column::number("waiting"),
                Column::number("longest wait"),
                Column::number("clients"),
                Column::number("servers in use"),
                Column::number("idle"),
                Column::number("size"),
            ];
            let rows: Vec<Vec<String>> = pooler.pools.iter().flatten().map(pool).collect();
            if !rows.is_empty() {
                out.push_str(&table(&columns, rows, style.width));
            }
        }
        out
    }

    fn sentences(&self, _: &Head) -> Vec<String> {
        self.slots()
    }

    fn sheets(&self) -> Vec<Sheet> {
        const GROUPS: [Col; 14] = [
            col("user", "user"),
            col("database", "database"),
            col("application_name", "application"),
            col("client_addr", "client"),
            col("total", "total"),
            col("active", "active"),
            col("idle", "idle"),
            col("idle_in_transaction", "in xact"),
            col("idle_in_transaction_aborted", "aborted"),
            col("other", "other"),
            col("hidden", "hidden"),
            col("oldest_idle_ms", "oldest idle"),
            more("newest_backend_start"),
            col("opened_last_minute", "new/min"),
        ];
        const LIMITS: [Col; 5] = [
            col("kind", "limit of"),
            col("name", "name"),
            col("limit", "limit"),
            col("used", "used"),
            col("free", "free"),
        ];
        const CAPACITY: [Col; 10] = [
            col("max_connections", "max_connections"),
            col("superuser_reserved", "for superusers"),
            col("reserved", "reserved"),
            col("usable", "usable"),
            col("used", "used"),
            more("used_is"),
            col("free", "free"),
            col("used_pct", "used %"),
            more("provider_reserved"),
            col("unaccounted", "unaccounted"),
        ];
        const POOLS: [Col; 16] = [
            col("database", "pool of"),
            col("user", "as"),
            col("mode", "mode"),
            col("clients_waiting", "waiting"),
            col("max_wait_ms", "longest wait"),
            col("clients_active", "clients"),
            col("servers_active", "servers in use"),
            col("servers_idle", "idle"),
            col("servers_login", "logging in"),
            col("size", "size"),
            more("servers_used"),
            more("servers_tested"),
            more("database_limit"),
            more("database_open"),
            more("paused"),
            more("disabled"),
        ];
        let capacity: Vec<&Capacity> = self.capacity.iter().collect();
        let pools: Vec<&Pool> = self
            .pooler
            .iter()
            .flat_map(|pooler| pooler.pools.iter().flatten())
            .collect();
        vec![
            Sheet::of("groups", &GROUPS, &self.groups),
            Sheet::of("limits", &LIMITS, &self.limits),
            Sheet::of("capacity", &CAPACITY, &capacity),
            Sheet::of("pools", &POOLS, &pools),
        ]
    }

    fn metrics(&self, _: &Head) -> Vec<Metric> {
        let mut metrics = self
            .capacity
            .as_ref()
            .map_or_else(Vec::new, capacity_metrics);
        metrics.push(gauges(
            "stanch_sessions",
            "Client sessions by login, database, application and state.",
            by_state(&self.groups),
        ));
        let limits = |value: fn(&Limit) -> Option<f64>| {
            let one = |limit: &Limit| {
                let labels = vec![
                    ("kind", limit.kind.word().to_owned()),
                    ("name", limit.name.clone()),
                ];
                Some((labels, value(limit)?))
            };
            self.limits.iter().filter_map(one).collect()
        };
        metrics.push(gauges(
            "stanch_connection_limit",
            "CONNECTION LIMIT of a role or database.",
            limits(|limit| Some(f64::from(limit.limit))),
        ));
        metrics.push(gauges(
            "stanch_connection_limit_used",
            "Sessions that count against it.",
            limits(|limit| limit.used.map(number)),
        ));
        metrics
    }
}

/// `PgBouncer 1.18.0 at pgb:6432`, or why it can't be seen.
fn place(pooler: &PoolerPart) -> String {
    match (&pooler.host, pooler.port, &pooler.error) {
        (Some(host), Some(port), None) => format!(
            "{} at {}:{port}{}",
            clean(pooler.version.as_deref().unwrap_or("PgBouncer")),
            clean(host),
            match pooler.paused {
                Some(true) => ", all of it paused",
                _ => "",
            }
        ),
        (.., why) => clean(why.as_deref().unwrap_or("the pooler wasn't read")),
    }
}

fn pool(pool: &Pool) -> Vec<String> {
    let state = match (pool.paused, pool.disabled) {
        (Some(true), _) => " (paused)",
        (_, Some(true)) => " (disabled)",
        _ => "",
    };
    vec![
        format!("{}{state}", clean(&pool.database)),
        clean(&pool.user),
        or_none(pool.mode.as_deref()),
        or_unknown(pool.clients_waiting),
        or_unknown(pool.max_wait_ms),
        or_unknown(pool.clients_active),
        or_unknown(pool.servers_active),
        or_unknown(pool.servers_idle),
        or_unknown(pool.size),
    ]
}

fn or_unknown(value: Option<impl ToString>) -> String {
    value.map_or_else(|| NONE.into(), |value| value.to_string())
}

/// The slots of a server as metrics.
pub(super) fn capacity_metrics(c: &Capacity) -> Vec<Metric> {
    let one = |name, help, value: u32| gauge(name, help, Some(value));
    vec![
        one(
            "stanch_max_connections",
            "max_connections.",
            c.max_connections,
        ),
        one(
            "stanch_slots_superuser_reserved",
            "superuser_reserved_connections.",
            c.superuser_reserved,
        ),
        one("stanch_slots_reserved", "reserved_connections.", c.reserved),
        one(
            "stanch_slots_usable",
            "Slots that applications may use.",
            c.usable,
        ),
        one(
            match c.used_is {
                UsedIs::Exact => "stanch_slots_used",
                UsedIs::AtMost => "stanch_slots_used_at_most",
            },
            "Slots taken, superusers counted, this reading not.",
            c.used,
        ),
        gauge(
            "stanch_used_percent",
            "Slots taken, in percent of the usable ones; superusers count, so it may pass 100.",
            c.used_pct.map(|used| used.0),
        ),
        one("stanch_slots_free", "Usable slots that are left.", c.free),
        gauge(
            "stanch_slots_unaccounted",
            "Slots held by what the server does not show; known only where a login was refused.",
            c.unaccounted,
        ),
    ]
}

/// The groups of all clients together, a series for each state that there is.
fn by_state(groups: &[Group]) -> Vec<(Vec<(&'static str, String)>, f64)> {
    let mut sums: BTreeMap<Vec<(&'static str, String)>, usize> = BTreeMap::new();
    for group in groups {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        for (state, sessions) in [
            ("active", group.active),
            ("idle", group.idle),
            ("idle in transaction", group.idle_in_transaction),
            (
                "idle in transaction (aborted)",
                group.idle_in_transaction_aborted,
            ),
            ("other", group.other),
            ("hidden", group.hidden),
        ] {
            let labels = vec![
                ("usename", text(&group.user)),
                ("database", text(&group.database)),
                ("application", text(&group.application_name)),
                ("state", state.to_owned()),
            ];
            if sessions > 0 {
                *sums.entry(labels).or_default() += sessions;
            }
        }
    }
    sums.into_iter()
        .map(|(labels, sessions)| (labels, number(sessions)))
        .collect()
}

impl Connections {
    fn slots(&self) -> Vec<String> {
        match &self.capacity {
            Some(capacity) => slots(capacity),
            None => {
                vec!["how full it is can't be told: the limits or the sessions weren't read".into()]
            }
        }
    }
}

fn slots(c: &Capacity) -> Vec<String> {
    let mut sum = format!(
        "max_connections {} - {} for superusers - {} reserved",
        c.max_connections, c.superuser_reserved, c.reserved
    );
    if let Some(provider) = c.provider_reserved {
        sum.push_str(&format!(" - {provider} for the provider"));
    }
    sum.push_str(&format!(
        " = {} usable; this connection isn't counted",
        c.usable
    ));
    let mut sentences = vec![format!("{}, {} free", c.words(), c.free_words()), sum];
    if let Some(unaccounted @ 1..) = c.unaccounted {
        sentences.push(format!(
            "at least {unaccounted} more are held by what the server doesn't show (not yet authenticated, or starting)"
        ));
    }
    sentences
}

fn group(g: &Group) -> Vec<String> {
    vec![
        or_none(g.user.as_deref()),
        or_none(g.database.as_deref()),
        or_none(g.application_name.as_deref()),
        match (&g.client_addr, g.hidden) {
            (Some(addr), _) => addr.clone(),
            (None, 0) => "local".into(),
            (None, _) => "-".into(),
        },
        g.total.to_string(),
        g.active.to_string(),
        g.idle.to_string(),
        g.idle_in_transaction.to_string(),
        g.idle_in_transaction_aborted.to_string(),
        g.other.to_string(),
        g.hidden.to_string(),
        age(g.oldest_idle_ms),
        g.opened_last_minute
            .map_or_else(|| "-".into(), |opened| opened.to_string()),
    ]
}

fn limit(l: &Limit) -> Vec<String> {
    vec![
        format!("{} {}", l.kind.word(), l.name),
        l.limit.to_string(),
        l.used.map_or_else(|| NONE.into(), |used| used.to_string()),
        l.free.map_or_else(|| NONE.into(), |free| free.to_string()),
    ]
}
