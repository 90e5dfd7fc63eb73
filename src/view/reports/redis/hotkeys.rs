//! `redis hotkeys`: the hottest first, then the groups they belong to.

use super::head::own_effect;
use super::numbers::{counted, size, thousands};
use crate::analysis::redis::RedisHead;
use crate::analysis::redis::hotkeys::Hotkeys;
use crate::model::{HotGroup, HotKey, HotMethod, HotUnit, KeyFacts, RedisMode};
use crate::view::console::Style;
use crate::view::layout::{Column, table};
use crate::view::reports::Table;
use crate::view::reports::cells::{NONE, sentence, wrap};
use crate::view::sanitize::clean;
use crate::view::sheet::{Col, Sheet, col, more};

/// What a screen takes of the groups.
const MOST_GROUPS: usize = 12;

impl Table<RedisHead> for Hotkeys {
    fn table(&self, head: &RedisHead, style: Style) -> String {
        let most = style.width.unwrap_or(usize::MAX);
        let mut out = sentence(&self.summary(head), style);
        if !self.keys.is_empty() {
            out.push('\n');
            out.push_str(&self.ranking(head, style));
        }
        let hot: Vec<&HotGroup> = self
            .groups
            .iter()
            .filter(|group| group.hottest > 0)
            .collect();
        if self.groups.len() > 1 && !hot.is_empty() {
            out.push('\n');
            out.push_str(&self.by_group(&hot, style));
        }
        if self.method.is_some() {
            out.push('\n');
            for line in &self.confidence {
                out.push_str(&style.faint(wrap(line, most, 0).trim_end()));
                out.push('\n');
            }

            out.push_str(&style.faint(wrap(&own_effect(&head.coverage), most, 0).trim_end()));
            out.push('\n');
        }
        for next in &self.next {
            out.push_str(&format!("{} {}\n", style.faint("next:"), clean(next)));
        }
        out
    }

    fn sentences(&self, head: &RedisHead) -> Vec<String> {
        std::iter::once(self.summary(head))
            .chain(self.confidence.iter().cloned())
            .collect()
    }

    fn sheets(&self) -> Vec<Sheet> {
        const KEYS: [Col; 12] = [
            col("score", "score"),
            more("unit"),
            col("share_pct", "share %"),
            col("key", "key"),
            more("key_base64"),
            col("group", "group"),
            col("type", "type"),
            more("expires"),
            col("ttl_ms", "expires in"),
            col("bytes", "bytes"),
            more("node"),
            more("database"),
        ];
        const GROUPS: [Col; 7] = [
            col("group", "group"),
            col("keys", "keys"),
            col("hottest", "hottest"),
            col("accesses", "accesses"),
            col("share_pct", "share %"),
            col("bytes", "bytes"),
            col("with_ttl", "with TTL"),
        ];
        vec![
            Sheet::of("keys", &KEYS, &self.keys),
            Sheet::of("groups", &GROUPS, &self.groups),
        ]
    }
}

impl Hotkeys {
    fn summary(&self, head: &RedisHead) -> String {
        let Some(method) = self.method else {
            return "hot keys can't be ranked without being asked for by name".into();
        };
        let window = self
            .window_ms
            .map_or_else(String::new, |window| format!(" over {window}"));
        match method {
            HotMethod::Lfu if self.sampled == 0 && head.coverage.complete => {
                "there are no keys".into()
            }
            HotMethod::Lfu => {
                let part = if head.coverage.complete {
                    "all of "
                } else {
                    ""
                };
                format!(
                    "by LFU counters, {part}{} read",
                    counted(self.sampled, "key")
                )
            }
            HotMethod::Monitor => format!(
                "by a MONITOR sample of {}{window}",
                counted(self.sampled, "access").replace("accesss", "accesses")
            ),
            HotMethod::HotkeysSession => format!("by a HOTKEYS session that was there{window}"),
            HotMethod::HotkeysStarted => format!("by a HOTKEYS session of ours{window}"),
            HotMethod::HotkeysTopK => format!("by the server's own list{window}"),
        }
    }

    fn ranking(&self, head: &RedisHead, style: Style) -> String {
        let shares = self.keys.iter().any(|key| key.share_pct.is_some());
        let title = match self.keys.first().map(|key| key.unit) {
            Some(HotUnit::LfuCounter) | None => "counter",
            Some(HotUnit::Accesses) => "accesses",
            Some(HotUnit::CpuUs) => "CPU µs",
            Some(HotUnit::NetBytes) => "bytes",
            Some(HotUnit::PerSecond) => "a second",
        };
        let mut columns = vec![Column::number(title)];
        if shares {
            columns.push(Column::number("share"));
        }
        // The same name in two databases is two keys.
        let elsewhere = |key: &HotKey| key.database.is_some_and(|db| db != head.target.database);
        let databases = self.keys.iter().any(elsewhere);
        if databases {
            columns.push(Column::number("db"));
        }
        columns.extend([
            Column::text("key").flex_from(30, 16),
            Column::text("group").shrink(12).drop(2),
            Column::text("type").drop(3),
            Column::number("expires in").drop(1),
            Column::number("size").drop(1),
        ]);
        let clustered = head.target.mode == RedisMode::Cluster;
        if clustered {
            columns.push(Column::text("node").shrink(9).drop(4));
        }
        let row = |key: &HotKey| {
            let mut row = vec![thousands(key.score)];
            if shares {
                row.push(
                    key.share_pct
                        .map_or_else(|| NONE.into(), |share| format!("{:.1} %", share.0)),
                );
            }
            if databases {
                row.push(
                    key.database
                        .map_or_else(|| NONE.into(), |db| db.to_string()),
                );
            }
            row.extend([
                key.key.text(),
                key.group.clone(),
                key.about.kind.map_or(NONE, |kind| kind.name()).to_owned(),
                expires(&key.about),
                key.about.bytes.map_or_else(|| NONE.into(), size),
            ]);
            if clustered {
                row.push(key.node.clone());
            }
            row
        };
        table(&columns, self.keys.iter().map(row).collect(), style.width)
    }

    fn by_group(&self, hot: &[&HotGroup], style: Style) -> String {
        let sampled = hot.iter().any(|group| group.accesses.is_some());
        let attributes = hot.iter().any(|group| group.bytes.is_some());
        let mut columns = vec![
            Column::text("group").flex_from(30, 16),
            Column::number("keys"),
        ];
        columns.push(Column::number("hottest"));
        if sampled {
            columns.extend([Column::number("accesses"), Column::number("share")]);
        }
        if attributes {
            columns.extend([Column::number("size"), Column::number("expiring")]);
        }
        let row = |group: &&HotGroup| {
            let mut row = vec![
                group.group.clone(),
                thousands(group.keys),
                thousands(group.hottest),
            ];
            if sampled {
                row.push(group.accesses.map_or_else(|| NONE.into(), thousands));
                row.push(
                    group
                        .share_pct
                        .map_or_else(|| NONE.into(), |share| format!("{:.1} %", share.0)),
                );
            }
            if attributes {
                row.push(group.bytes.map_or_else(|| NONE.into(), size));
                row.push(group.with_ttl.map_or_else(|| NONE.into(), thousands));
            }
            row
        };
        let mut out = table(
            &columns,
            hot.iter().take(MOST_GROUPS).map(row).collect(),
            style.width,
        );
        if hot.len() > MOST_GROUPS {
            out.push_str(&format!(
                "and {} more (--json has all)\n",
                counted((hot.len() - MOST_GROUPS) as u64, "group")
            ));
        }
        out
    }
}

/// `never`, or the time that is left; `-` where it isn't known.
pub fn expires(about: &KeyFacts) -> String {
    match (about.expires, about.ttl_ms) {
        (Some(false), _) => "never".into(),
        (Some(true), Some(ttl)) => ttl.to_string(),
        _ => NONE.into(),
    }
}
