//! `redis bigkeys`: the largest by bytes, by elements, and what each group holds.

use super::head::own_effect;
use super::numbers::{counted, size, thousands};
use crate::analysis::redis::RedisHead;
use crate::analysis::redis::bigkeys::Bigkeys;
use crate::model::{BigKey, GroupSum, TypeSum};
use crate::view::console::Style;
use crate::view::layout::{Column, table};
use crate::view::reports::Table;
use crate::view::reports::cells::{NONE, sentence, wrap};
use crate::view::sheet::{Col, Sheet, col, more};

const MOST_GROUPS: usize = 12;
/// Of each type on a screen.
const MOST_ELEMENTS: usize = 3;

impl Table<RedisHead> for Bigkeys {
    fn table(&self, head: &RedisHead, style: Style) -> String {
        let most = style.width.unwrap_or(usize::MAX);
        let mut out = sentence(&self.summary(head), style);
        if !self.bigkeys.is_empty() {
            out.push('\n');
            out.push_str(&keys(&self.bigkeys.iter().collect::<Vec<_>>(), style));
        }
        let elements = self.most_elements();
        if !elements.is_empty() {
            out.push_str("\nby elements:\n");
            out.push_str(&keys(&elements, style));
        }
        if !self.types.is_empty() {
            out.push('\n');
            out.push_str(&self.by_type(style));
        }
        if self.groups.len() > 1 {
            out.push('\n');
            out.push_str(&self.by_group(style));
        }
        out.push('\n');
        out.push_str(&style.faint(wrap(&own_effect(&head.coverage), most, 0).trim_end()));
        out.push('\n');
        out
    }

    fn sentences(&self, head: &RedisHead) -> Vec<String> {
        vec![self.summary(head)]
    }

    fn sheets(&self) -> Vec<Sheet> {
        const KEYS: [Col; 7] = [
            col("bytes", "bytes"),
            col("elements", "elements"),
            col("type", "type"),
            col("key", "key"),
            more("key_base64"),
            col("group", "group"),
            more("node"),
        ];
        const TYPES: [Col; 4] = [
            col("type", "type"),
            col("keys", "keys"),
            col("bytes", "bytes"),
            col("elements", "elements"),
        ];
        const GROUPS: [Col; 4] = [
            col("group", "group"),
            col("keys", "keys"),
            col("bytes", "bytes"),
            col("largest", "largest"),
        ];
        vec![
            Sheet::of("bigkeys", &KEYS, &self.bigkeys),
            Sheet::of("by_elements", &KEYS, &self.by_elements),
            Sheet::of("types", &TYPES, &self.types),
            Sheet::of("groups", &GROUPS, &self.groups),
        ]
    }
}

impl Bigkeys {
    fn summary(&self, head: &RedisHead) -> String {
        let keys: u64 = self.types.iter().map(|of| of.keys).sum();
        let bytes = self
            .types
            .iter()
            .filter_map(|of| of.bytes)
            .reduce(|a, b| a + b);
        let part = if head.coverage.complete {
            "all of "
        } else {
            ""
        };
        format!(
            "{part}{}, {}",
            counted(keys, "key"),
            bytes.map_or_else(
                || "of unknown size".into(),
                |bytes| format!("{} with their overhead", size(bytes))
            )
        )
    }

    /// Some of each type, on a screen.
    fn most_elements(&self) -> Vec<&BigKey> {
        let mut kept: Vec<&BigKey> = Vec::new();
        for key in &self.by_elements {
            if kept.iter().filter(|other| other.kind == key.kind).count() < MOST_ELEMENTS {
                kept.push(key);
            }
        }
        kept
    }

    fn by_type(&self, style: Style) -> String {
        let columns = [
            Column::text("type"),
            Column::number("keys"),
            Column::number("size"),
            Column::number("elements"),
        ];
        let row = |of: &TypeSum| {
            vec![
                of.kind.name().to_owned(),
                thousands(of.keys),
                of.bytes.map_or_else(|| NONE.into(), size),
                of.elements.map_or_else(|| NONE.into(), thousands),
            ]
        };
        table(&columns, self.types.iter().map(row).collect(), style.width)
    }

    fn by_group(&self, style: Style) -> String {
        let columns = [
            Column::text("group").flex_from(30, 16),
            Column::number("keys"),
            Column::number("size"),
            Column::number("largest"),
        ];
        let row = |of: &GroupSum| {
            vec![
                of.group.clone(),
                thousands(of.keys),
                of.bytes.map_or_else(|| NONE.into(), size),
                of.largest.map_or_else(|| NONE.into(), size),
            ]
        };
        let mut out = table(
            &columns,
            self.groups.iter().take(MOST_GROUPS).map(row).collect(),
            style.width,
        );
        if self.groups.len() > MOST_GROUPS {
            out.push_str(&format!(
                "and {} more (--json has all)\n",
                counted((self.groups.len() - MOST_GROUPS) as u64, "group")
            ));
        }
        out
    }
}

fn keys(keys: &[&BigKey], style: Style) -> String {
    let columns = [
        Column::number("size"),
        Column::number("elements"),
        Column::text("type"),
        Column::text("key").flex_from(30, 16),
        Column::text("group").shrink(12).drop(1),
    ];
    let row = |key: &&BigKey| {
        vec![
            key.bytes.map_or_else(|| NONE.into(), size),
            key.elements.map_or_else(|| NONE.into(), thousands),
            key.kind.name().to_owned(),
            key.key.text(),
            key.group.clone(),
        ]
    };
    table(&columns, keys.iter().map(row).collect(), style.width)
}
