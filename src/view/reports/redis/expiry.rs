//! `redis expiry`: the next cliffs first, then every group with the shape of its expiry.

use super::head::own_effect;
use super::numbers::{counted, thousands};
use crate::analysis::redis::RedisHead;
use crate::analysis::redis::expiry::Expiry;
use crate::model::{Cliff, ExpiryGroup, ExpiryVerdict, Percent};
use crate::view::console::Style;
use crate::view::layout::{Column, table};
use crate::view::reports::Table;
use crate::view::reports::cells::{NONE, age, sentence, wrap};
use crate::view::sanitize::clean;
use crate::view::sheet::{Col, Sheet, col, more};

const MOST_CLIFFS: usize = 12;
const MOST_GROUPS: usize = 20;
/// Columns of a small shape in a row.
const SMALL: usize = 16;

impl Table<RedisHead> for Expiry {
    fn table(&self, head: &RedisHead, style: Style) -> String {
        let most = style.width.unwrap_or(usize::MAX);
        let mut out = sentence(&self.summary(head), style);
        for cliff in self.cliffs.iter().take(MOST_CLIFFS) {
            out.push_str(&wrap(&clean(&cliff.forecast()), most, 2));
        }
        if self.cliffs.len() > MOST_CLIFFS {
            out.push_str(&format!(
                "  and {} more, later\n",
                self.cliffs.len() - MOST_CLIFFS
            ));
        }
        for group in self
            .groups
            .iter()
            .filter(|group| group.verdict == ExpiryVerdict::Cliff)
            .take(3)
        {
            out.push('\n');
            out.push_str(&shape(group, style));
            if let Some(jitter) = group.jitter {
                let advice = format!(
                    "flatter: give each key 90 % of today's lifetime plus a random part of up to 20 %. What they were given can't be \
                     seen; of the {} s that the last of them have left, that makes {} s + 0 to {} s: at most {} a second instead of {}",
                    jitter.lifetime_s,
                    jitter.base_s,
                    jitter.spread_s,
                    counted(jitter.peak_per_s, "key"),
                    thousands(jitter.now_per_s)
                );
                out.push_str(&wrap(&advice, most, 2));
            }
        }
        if !self.groups.is_empty() {
            out.push('\n');
            out.push_str(&self.all(style));
        }
        if let Some(pct) = self.classified_pct.filter(|pct| pct.0 < 100.0) {
            out.push_str(&wrap(
                &format!(
                    "{:.1} % of the keys have names that tell nothing of a group",
                    100.0 - pct.0
                ),
                most,
                0,
            ));
        }
        out.push('\n');
        out.push_str(&style.faint(wrap(&own_effect(&head.coverage), most, 0).trim_end()));
        out.push('\n');
        out
    }

    fn sentences(&self, head: &RedisHead) -> Vec<String> {
        std::iter::once(self.summary(head))
            .chain(self.cliffs.iter().map(Cliff::forecast))
            .collect()
    }

    fn sheets(&self) -> Vec<Sheet> {
        const GROUPS: [Col; 15] = [
            col("group", "group"),
            col("keys", "keys"),
            col("with_ttl", "with TTL"),
            more("overdue"),
            more("never"),
            col("peak_1s_share", "peak second %"),
            more("peak_1s_keys"),
            more("peak_1s_at"),
            col("peak_10s_share", "peak 10 s %"),
            col("peak_10s_keys", "keys"),
            col("peak_at", "at"),
            more("counted_within"),
            col("median_ms", "median"),
            col("longest_ms", "longest"),
            col("verdict", "verdict"),
        ];
        const CLIFFS: [Col; 6] = [
            col("at", "at"),
            col("in_ms", "in"),
            col("keys", "keys"),
            col("group", "group"),
            more("groups"),
            col("share", "share %"),
        ];
        vec![
            Sheet::of("groups", &GROUPS, &self.groups),
            Sheet::of("cliffs", &CLIFFS, &self.cliffs),
        ]
    }
}

impl Expiry {
    fn summary(&self, head: &RedisHead) -> String {
        let keys: u64 = self.groups.iter().map(|group| group.keys).sum();
        let expiring: u64 = self.groups.iter().map(|group| group.with_ttl).sum();
        let seen = if head.coverage.complete { "" } else { " seen" };
        let found = match self.cliffs.len() {
            0 if head.coverage.complete => "no cliff".into(),
            0 => "no cliff in what was seen".into(),
            n => counted(n as u64, "cliff"),
        };
        format!(
            "{found}: {}{seen}, {} of them expire",
            counted(keys, "key"),
            thousands(expiring)
        )
    }

    fn all(&self, style: Style) -> String {
        let columns = [
            Column::text("group").flex_from(30, 16),
            Column::number("keys"),
            Column::number("with TTL").drop(1),
            Column::number("peak 1 s").drop(2),
            Column::number("peak 10 s"),
            Column::number("longest").drop(3),
            Column::text("verdict"),
            Column::text("from now on").drop(4),
        ];
        let share = |share: Option<Percent>| {
            share.map_or_else(|| NONE.into(), |share| format!("{:.1} %", share.0))
        };
        let row = |group: &ExpiryGroup| {
            vec![
                group.group.clone(),
                thousands(group.keys),
                thousands(group.with_ttl),
                share(group.peak_1s_share),
                share(group.peak_10s_share),
                age(group.longest_ms),
                group.verdict.word().to_owned(),
                small(&group.histogram),
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

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

fn block(keys: u64, most: u64, levels: usize) -> char {
    if keys == 0 {
        return ' ';
    }
    let level = (keys as f64 / most.max(1) as f64 * levels as f64).ceil() as usize;
    BLOCKS[level.clamp(1, BLOCKS.len()) - 1]
}

/// The shape in one cell.
fn small(histogram: &[u64]) -> String {
    let part = histogram.len().div_ceil(SMALL).max(1);
    let sums: Vec<u64> = histogram
        .chunks(part)
        .map(|chunk| chunk.iter().sum())
        .collect();
    let most = sums.iter().copied().max().unwrap_or(0);
    sums.iter()
        .map(|keys| block(*keys, most, 8))
        .collect::<String>()
        .trim_end()
        .to_owned()
}

/// The shape of one group in four lines, with its axis.
fn shape(group: &ExpiryGroup, style: Style) -> String {
    const LINES: u64 = 4;
    let room = style
        .width
        .unwrap_or(80)
        .saturating_sub(4)
        .clamp(8, group.histogram.len().max(8));
    let part = group.histogram.len().div_ceil(room).max(1);
    let sums: Vec<u64> = group
        .histogram
        .chunks(part)
        .map(|chunk| chunk.iter().sum())
        .collect();
    let most = sums.iter().copied().max().unwrap_or(0).max(1);
    let mut out = format!("{}\n", style.strong(&clean(&group.group)));
    for line in (0..LINES).rev() {
        let row: String = sums
            .iter()
            .map(|keys| {
                let eighths = (*keys as f64 / most as f64 * (LINES * 8) as f64).ceil() as u64;
                match eighths.saturating_sub(line * 8) {
                    0 => ' ',
                    n => BLOCKS[(n.min(8) - 1) as usize],
                }
            })
            .collect();
        let row = row.trim_end();
        let label = if line == LINES - 1 {
            format!("  {}", counted(most, "key"))
        } else {
            String::new()
        };
        out.push_str(format!("  {row}{label}").trim_end());
        out.push('\n');
    }
    let until = age(group.histogram_until_ms);
    let axis = "─".repeat(sums.len());
    out.push_str(&format!(
        "  {axis}\n  now{until:>width$}\n",
        width = sums.len().saturating_sub(3)
    ));
    out
}
