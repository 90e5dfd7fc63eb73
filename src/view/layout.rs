//! Columns for a screen of a given width: text columns shrink, the least important go, one takes what is left.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::sanitize::{clean, cut, width};

const GAP: usize = 2;

/// How a column behaves when there is little room.
#[derive(Clone, Copy)]
enum Room {
    Fixed,
    /// Down to so many columns.
    Shrink(usize),
    /// Takes what is left: it gives way first down to `ease`, and last of all down to `least`.
    Flex {
        ease: usize,
        least: usize,
    },
}

#[derive(Clone, Copy)]
pub struct Column<'t> {
    title: &'t str,
    right: bool,
    room: Room,
    /// The higher, the sooner it is left out; 0 stays.
    drop: u8,
}

impl<'t> Column<'t> {
    pub fn text(title: &'t str) -> Self {
        Self {
            title,
            right: false,
            room: Room::Fixed,
            drop: 0,
        }
    }

    pub fn number(title: &'t str) -> Self {
        Self {
            right: true,
            ..Self::text(title)
        }
    }

    pub fn shrink(self, least: usize) -> Self {
        Self {
            room: Room::Shrink(least),
            ..self
        }
    }

    pub fn flex(self, least: usize) -> Self {
        self.flex_from(least, least)
    }

    pub fn flex_from(self, ease: usize, least: usize) -> Self {
        Self {
            room: Room::Flex { ease, least },
            ..self
        }
    }

    pub fn drop(self, order: u8) -> Self {
        Self {
            drop: order,
            ..self
        }
    }

    fn least(&self, natural: usize) -> usize {
        match self.room {
            Room::Fixed => natural,
            Room::Shrink(least) | Room::Flex { least, .. } => {
                natural.min(least.max(width(self.title)))
            }
        }
    }
}

/// A table as text, cut to `most` columns.
pub fn table(columns: &[Column<'_>], rows: Vec<Vec<String>>, most: Option<usize>) -> String {
    let rows: Vec<Vec<String>> = rows
        .into_iter()
        .map(|row| row.iter().map(|cell| clean(cell)).collect())
        .collect();
    let natural: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(i, column)| {
            rows.iter()
                .map(|row| width(&row[i]))
                .max()
                .unwrap_or(0)
                .max(width(column.title))
        })
        .collect();
    let mut kept: Vec<usize> = (0..columns.len()).collect();
    let mut widths = natural.clone();
    let mut dropped = Vec::new();
    if let Some(most) = most {
        let least = |kept: &[usize]| {
            kept.iter()
                .map(|i| columns[*i].least(natural[*i]))
                .sum::<usize>()
                + GAP * kept.len().saturating_sub(1)
        };
        while least(&kept) > most {
            let Some(at) = (0..kept.len()).max_by_key(|at| columns[kept[*at]].drop) else {
                break;
            };
            if columns[kept[at]].drop == 0 {
                break;
            }
            dropped.push(columns[kept.remove(at)].title);
        }
        shrink(columns, &kept, &natural, &mut widths, most);
    }
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(kept.iter().map(|i| cut(columns[*i].title, widths[*i])));
    for row in &rows {
        table.add_row(kept.iter().map(|i| cut(&row[*i], widths[*i])));
    }
    for (at, i) in kept.iter().enumerate() {
        if let Some(column) = table.column_mut(at) {
            column.set_padding((0, if at + 1 < kept.len() { GAP as u16 } else { 0 }));
            if columns[*i].right {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
    }
    let limit = most.unwrap_or(usize::MAX);
    let mut text = String::new();
    for line in table.lines() {
        // Where even the least of each is too much, the line ends at the edge.
        text.push_str(&cut(line.trim_end(), limit));
        text.push('\n');
    }
    if !dropped.is_empty() {
        let note = format!("(left out for this width: {})", dropped.join(", "));
        for line in super::reports::wrap(&note, limit, 0).lines() {
            text.push_str(&cut(line, limit));
            text.push('\n');
        }
    }
    text
}

/// A table of columns that aren't known before: on a narrow screen all give way alike.
pub fn wide_table(titles: &[String], rows: Vec<Vec<String>>, most: Option<usize>) -> String {
    let columns: Vec<Column<'_>> = titles
        .iter()
        .map(|title| Column::text(title).shrink(6).drop(1))
        .collect();
    table(&columns, rows, most)
}

/// Takes columns away: from the flexible one while it has plenty, then from the widest that can give, then from the
/// flexible one again.
fn shrink(
    columns: &[Column<'_>],
    kept: &[usize],
    natural: &[usize],
    widths: &mut [usize],
    most: usize,
) {
    let total = |widths: &[usize]| {
        kept.iter().map(|i| widths[*i]).sum::<usize>() + GAP * kept.len().saturating_sub(1)
    };
    let floor = |i: usize, stage: usize| match (columns[i].room, stage) {
        (Room::Flex { ease, .. }, 0) => natural[i].min(ease.max(columns[i].least(natural[i]))),
        (Room::Flex { .. }, 2) | (Room::Shrink(_), 1) => columns[i].least(natural[i]),
        _ => natural[i],
    };
    for stage in 0..3 {
        loop {
            let excess = total(widths).saturating_sub(most);
            let give = kept
                .iter()
                .copied()
                .filter(|i| widths[*i] > floor(*i, stage))
                .max_by_key(|i| widths[*i]);
            let (Some(i), 1..) = (give, excess) else {
                break;
            };
            let step = if stage == 1 { 1 } else { excess };
            widths[i] = widths[i].saturating_sub(step).max(floor(i, stage));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(most: Option<usize>) -> String {
        let columns = [
            Column::number("pid"),
            Column::text("user").shrink(4),
            Column::text("client").drop(1),
            Column::text("query").flex(8),
        ];
        let rows = vec![
            vec![
                "1".into(),
                "application_user".into(),
                "10.0.0.1".into(),
                "select 日本語 from a_table".into(),
            ],
            vec!["12345".into(), "u".into(), "-".into(), "x\x1b[31m".into()],
        ];
        table(&columns, rows, most)
    }

    #[test]
    fn without_a_limit_everything_is_shown() {
        assert_eq!(
            sample(None),
            "  pid  user              client    query\n\
             \x20   1  application_user  10.0.0.1  select 日本語 from a_table\n\
             12345  u                 -         x\\x1b[31m\n"
        );
    }

    #[test]
    fn a_narrow_screen_is_never_passed() {
        for most in 5..90 {
            for line in sample(Some(most)).lines() {
                assert!(width(line) <= most, "{most}: {line:?}");
            }
        }
        assert!(sample(Some(24)).contains("left out"));
    }
}
