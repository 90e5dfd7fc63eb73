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
use crate::view::sanitize::clean;
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
            let more = self.by_elements.len() - elements.len();
            if more > 0 {
                out.push_str(&format!(
                    "and {} more by elements (--json has all)\n",
                    counted(more as u64, "key")
                ));
            }
        }
        if !self.types.is_empty() {
            out.push('\n');
            out.push_str(&self.by_type(style));
        }
        if self.groups.len() > 1 {
            out.push('\n');
            out.push_str(&self.by_group(style));
        }
        if let Some(told) = self.told_of_estimates() {
            out.push('\n');
            out.push_str(&wrap(&told, most, 0));
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
        const KEYS: [Col; 8] = [
            col("bytes", "bytes"),
            col("bytes_estimated", "estimated"),
            col("elements", "elements"),
            col("type", "type"),
            col("key", "key"),
            more("key_base64"),
            col("group", "group"),
            more("node"),
        ];
        const TYPES: [Col; 5] = [
            col("type", "type"),
            col("keys", "keys"),
            col("bytes", "bytes"),
            col("bytes_estimated", "estimated"),
            col("elements", "elements"),
        ];
        const GROUPS: [Col; 5] = [
            col("group", "group"),
            col("keys", "keys"),
            col("bytes", "bytes"),
            col("bytes_estimated", "estimated"),
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
                |bytes| {
                    let size = about(bytes, self.is_estimated());
                    let estimated = if self.is_estimated() {
                        ", estimated"
                    } else {
                        ""
                    };
                    format!("{size} with their overhead{estimated}")
                }
            )
        )
    }

    fn is_estimated(&self) -> bool {
        self.types.iter().any(|of| of.bytes_estimated)
    }

    /// What `~` means, and what was done about it.
    fn told_of_estimates(&self) -> Option<String> {
        let measured = self.measured.as_ref()?;
        let looked_at = format!(
            "{} measured element by element (at most {} elements of a key and {} in all)",
            counted(measured.keys, "key"),
            thousands(measured.of_a_key_at_most),
            thousands(measured.in_all_at_most)
        );
        let stopped = measured.stopped.as_ref().map_or_else(String::new, |why| {
            format!("; not further: {}", clean(&why.to_string()))
        });
        match (self.is_estimated(), measured.keys) {
            (false, 0) => None,
            (false, _) => Some(looked_at),
            (true, _) => Some(format!(
                "~: estimated from some elements of a collection, as MEMORY USAGE does; {looked_at}{stopped}"
            )),
        }
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
                of.bytes
                    .map_or_else(|| NONE.into(), |bytes| about(bytes, of.bytes_estimated)),
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
                of.bytes
                    .map_or_else(|| NONE.into(), |bytes| about(bytes, of.bytes_estimated)),
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

/// `55 KiB`, `~55 KiB`
fn about(bytes: u64, estimated: bool) -> String {
    let size = size(bytes);
    if estimated { format!("~{size}") } else { size }
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
            key.bytes
                .map_or_else(|| NONE.into(), |bytes| about(bytes, key.bytes_estimated)),
            key.elements.map_or_else(|| NONE.into(), thousands),
            key.kind.name().to_owned(),
            key.key.text(),
            key.group.clone(),
        ]
    };
    table(&columns, keys.iter().map(row).collect(), style.width)
}
