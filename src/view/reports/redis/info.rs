//! `redis info`: each node's numbers, then what this login may do.

use super::numbers::{counted, size, thousands};
use crate::analysis::redis::RedisHead;
use crate::analysis::redis::info::{Info, NodeInfo};
use crate::model::{Allowed, Millis, Right};
use crate::view::console::Style;
use crate::view::layout::{Column, table};
use crate::view::prometheus::{Metric, gauges};
use crate::view::reports::Table;
use crate::view::reports::cells::{NONE, or_none};
use crate::view::sanitize::clean;
use crate::view::sheet::{Col, Sheet, col, more};

impl Table<RedisHead> for Info {
    fn table(&self, head: &RedisHead, style: Style) -> String {
        let slow_log = head.coverage.sections.get("slow_log");
        let unread = slow_log.and_then(|note| note.why.as_deref());
        let mut out = String::new();
        for node in &self.info {
            if self.info.len() > 1 {
                out.push_str(&format!("\n{}\n", style.strong(&clean(&node.node))));
            }
            out.push_str(&lines(node, unread, style));
        }
        if let Some(node) = self.info.first().filter(|node| !node.rights.is_empty()) {
            out.push('\n');
            out.push_str(&rights(&node.rights, style));
        }
        out
    }

    fn sentences(&self, _: &RedisHead) -> Vec<String> {
        self.info
            .iter()
            .map(|node| format!("{}: {}", node.node, hits(node)))
            .collect()
    }

    fn sheets(&self) -> Vec<Sheet> {
        const NODES: [Col; 26] = [
            col("node", "node"),
            more("product"),
            col("version", "version"),
            col("role", "role"),
            more("uptime_s"),
            col("used_memory_bytes", "memory"),
            col("maxmemory_bytes", "maxmemory"),
            more("memory_used_pct"),
            col("maxmemory_policy", "policy"),
            col("connected_clients", "clients"),
            more("maxclients"),
            more("clients_used_pct"),
            more("blocked_clients"),
            col("keys", "keys"),
            col("interval.hit_pct", "hit %"),
            more("interval.hits"),
            more("interval.misses"),
            more("interval.evicted"),
            more("interval.expired"),
            more("hits"),
            more("misses"),
            more("instantaneous_ops_per_s"),
            more("primary_link"),
            more("primary_link_down_s"),
            more("primary_sync_in_progress"),
            more("cluster_state"),
        ];
        const RIGHTS: [Col; 4] = [
            col("command", "command"),
            col("allowed", "allowed"),
            col("for_what", "for"),
            col("grant", "grant"),
        ];
        let rights = self.info.first().map_or(&[][..], |node| &node.rights);
        vec![
            Sheet::of("info", &NODES, &self.info),
            Sheet::of("rights", &RIGHTS, rights),
        ]
    }

    fn metrics(&self, _: &RedisHead) -> Vec<Metric> {
        let of = |name, help, value: &dyn Fn(&NodeInfo) -> Option<f64>| {
            let series = self
                .info
                .iter()
                .filter_map(|node| Some((vec![("node", node.node.clone())], value(node)?)));
            gauges(name, help, series.collect())
        };
        let number = |value: Option<u64>| value.map(|value| value as f64);
        vec![
            of("stanch_redis_memory_bytes", "Memory that is used.", &|n| {
                number(n.totals.used_memory_bytes)
            }),
            of(
                "stanch_redis_clients",
                "Clients that are connected.",
                &|n| number(n.totals.connected_clients),
            ),
            of("stanch_redis_keys", "Keys of all databases.", &|n| {
                number(n.totals.keys)
            }),
            of(
                "stanch_redis_hit_ratio",
                "Hits of the lookups between two looks.",
                &|n| n.interval.hit_pct.map(|pct| pct / 100.0),
            ),
        ]
    }
}

/// `unread`: why the slow log wasn't read, where it isn't that it isn't permitted.
fn lines(node: &NodeInfo, unread: Option<&str>, style: Style) -> String {
    let t = &node.totals;
    let number = |value: Option<u64>| value.map_or_else(|| NONE.into(), thousands);
    let memory = match (t.used_memory_bytes, t.maxmemory_bytes) {
        (Some(used), Some(0)) => format!("{}, without a limit", size(used)),
        (Some(used), Some(most)) => format!(
            "{} of {}{}",
            size(used),
            size(most),
            pct(node.memory_used_pct.map(|p| p.0))
        ),
        (Some(used), None) => size(used),
        _ => NONE.into(),
    };
    let clients = match (t.connected_clients, t.maxclients) {
        (Some(now), Some(most)) => format!(
            "{} of {}{}",
            thousands(now),
            thousands(most),
            pct(node.clients_used_pct.map(|p| p.0))
        ),
        (Some(now), None) => thousands(now),
        _ => NONE.into(),
    };
    let i = &node.interval;
    let mut rows = vec![
        ("hits", hits(node)),
        (
            "memory",
            format!("{memory}; {}", or_none(t.maxmemory_policy.as_deref())),
        ),
        (
            "clients",
            format!(
                "{clients}; {} blocked, {} refused since the start",
                number(t.blocked_clients),
                number(t.rejected_connections)
            ),
        ),
        ("keys", format!("{} in all databases", number(t.keys))),
        (
            "commands",
            format!("{} a second", number(t.instantaneous_ops_per_s)),
        ),
        (
            "evicted",
            format!(
                "{} in {}, {} since the start",
                number(i.evicted),
                i.ms,
                number(t.evicted_keys)
            ),
        ),
        (
            "expired",
            format!(
                "{} in {}, {} since the start",
                number(i.expired),
                i.ms,
                number(t.expired_keys)
            ),
        ),
        (
            "up for",
            t.uptime_s
                .map_or_else(|| NONE.into(), |s| Millis::from_secs(s).to_string()),
        ),
    ];
    let slow = match (&node.slow_log, t.slow_log_entries) {
        (None, _) => unread.unwrap_or("not permitted").to_owned(),
        (Some(entries), _) if entries.is_empty() => "empty".into(),
        (Some(entries), all) => format!(
            "{}; the newest:",
            counted(all.unwrap_or(entries.len() as u64), "entry").replace("entrys", "entries")
        ),
    };
    rows.push(("slow log", slow));
    rows.extend(link(node).map(|words| ("primary", words)));
    let cluster = t.cluster_state.as_ref();
    rows.extend(cluster.map(|state| ("cluster", format!("cluster_state:{state}"))));
    let mut out = String::new();
    for (name, text) in rows {
        out.push_str(&crate::view::cut(
            &format!("{name:9} {}", clean(&text)),
            style.width.unwrap_or(usize::MAX),
        ));
        out.push('\n');
    }
    for slow in node.slow_log.iter().flatten() {
        let line = format!(
            "          {} UTC  {:>9.1} ms  {} {}",
            slow.at.utc().format("%H:%M:%S"),
            slow.took_us as f64 / 1000.0,
            slow.command,
            slow.keys.join(" ")
        );
        out.push_str(&crate::view::cut(
            clean(&line).trim_end(),
            style.width.unwrap_or(usize::MAX),
        ));
        out.push('\n');
    }
    out
}

fn hits(node: &NodeInfo) -> String {
    let i = &node.interval;
    let lately = match (i.hit_pct, i.hits, i.misses) {
        (Some(pct), Some(hits), Some(misses)) => format!(
            "{pct:.1} % in {} ({} hits, {} misses)",
            i.ms,
            thousands(hits),
            thousands(misses)
        ),
        (None, Some(0), Some(0)) => format!("no lookup in {}", i.ms),
        _ => "unknown".into(),
    };
    match node.totals.hit_pct {
        Some(pct) => format!("{lately}; {pct:.1} % since the start"),
        None => lately,
    }
}

/// A replica's link to its primary; `None`: it is none, or all is well.
fn link(node: &NodeInfo) -> Option<String> {
    let t = &node.totals;
    let mut words = Vec::new();
    if t.primary_link.as_deref().is_some_and(|link| link != "up") {
        let since = t.primary_link_down_s;
        words.push(since.map_or_else(
            || "the link to it is down".into(),
            |s| format!("the link to it is down for {s} s"),
        ));
    }
    if t.primary_sync_in_progress == Some(true) {
        words.push("a sync with it is going on".into());
    }
    (!words.is_empty()).then(|| words.join(", "))
}

fn pct(pct: Option<f64>) -> String {
    pct.map_or_else(String::new, |pct| format!(" ({pct:.0} %)"))
}

fn rights(rights: &[Right], style: Style) -> String {
    let columns = [
        Column::text("this login may"),
        Column::text("").shrink(3),
        Column::text("for").shrink(10).drop(1),
        Column::text("to grant it").flex(12),
    ];
    let row = |right: &Right| {
        vec![
            right.command.to_string(),
            right.allowed.word().to_owned(),
            right.for_what.to_string(),
            match right.allowed {
                Allowed::No => right.grant.clone().unwrap_or_default(),
                _ => String::new(),
            },
        ]
    };
    table(&columns, rights.iter().map(row).collect(), style.width)
}
