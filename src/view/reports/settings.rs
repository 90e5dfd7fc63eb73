//! `pg settings`: what to change with its reason, then what is right.

use super::Table;
use super::cells::wrap;
use crate::analysis::Head;
use crate::analysis::settings::{Judged, OverrideRow, Settings, Verdict};
use crate::model::count;
use crate::view::console::Style;
use crate::view::layout::{Column, table};
use crate::view::sanitize::clean;
use crate::view::sheet::{Col, Sheet, col, more};

impl Table for Settings {
    fn table(&self, _: &Head, style: Style) -> String {
        if self.settings.is_empty() {
            return "the settings weren't read\n".into();
        }
        let mut out = String::new();
        for setting in self.settings.iter().filter(|s| s.verdict != Verdict::Ok) {
            describe(&mut out, setting, style);
        }
        let rows: Vec<Vec<String>> = self
            .settings
            .iter()
            .filter(|s| s.verdict == Verdict::Ok)
            .map(row)
            .collect();
        if !rows.is_empty() {
            out.push_str(&format!("\n{}\n", style.strong("ok")));
            let columns = [
                Column::text("  setting").shrink(20),
                Column::text("value").shrink(6),
                Column::text("").flex(10),
            ];
            out.push_str(&table(&columns, rows, style.width));
        }
        if self.settings.iter().any(|s| !s.overrides.is_empty()) {
            out.push('\n');
        }
        for setting in self.settings.iter().filter(|s| !s.overrides.is_empty()) {
            for o in &setting.overrides {
                let role = o
                    .role
                    .as_deref()
                    .map_or(String::new(), |role| format!(" for role {role}"));
                let database = o
                    .database
                    .as_deref()
                    .map_or(String::new(), |db| format!(" in database {db}"));
                let text = format!("{} = {}{role}{database}", setting.name, o.value);
                out.push_str(&format!("override: {}\n", clean(&text)));
            }
        }
        out
    }

    fn sentences(&self, _: &Head) -> Vec<String> {
        let of = |verdict| {
            self.settings
                .iter()
                .filter(|s| s.verdict == verdict)
                .count()
        };
        if self.settings.is_empty() {
            return vec!["the settings weren't read".into()];
        }
        vec![format!(
            "{} to change, {} to consider, {} unknown, {} right",
            count(of(Verdict::Change), "setting"),
            of(Verdict::Consider),
            of(Verdict::Unknown),
            of(Verdict::Ok)
        )]
    }

    fn sheets(&self) -> Vec<Sheet> {
        const COLUMNS: [Col; 8] = [
            col("verdict", "verdict"),
            col("name", "setting"),
            col("value", "value"),
            col("unit", "unit"),
            more("source"),
            col("recommended", "recommended"),
            more("pending_restart"),
            col("why", "why"),
        ];
        const OVERRIDES: [Col; 4] = [
            col("name", "setting"),
            col("role", "role"),
            col("database", "database"),
            col("value", "value"),
        ];
        #[derive(serde::Serialize)]
        struct Row<'s> {
            name: &'s str,
            #[serde(flatten)]
            row: &'s OverrideRow,
        }
        let overrides: Vec<Row<'_>> = self
            .settings
            .iter()
            .flat_map(|s| s.overrides.iter().map(|row| Row { name: &s.name, row }))
            .collect();
        vec![
            Sheet::of("settings", &COLUMNS, &self.settings),
            Sheet::of("overrides", &OVERRIDES, &overrides),
        ]
    }
}

/// `change  name = value, recommended: …`, and the reason below.
fn describe(out: &mut String, s: &Judged, style: Style) {
    let word = match s.verdict {
        Verdict::Change => "change  ",
        Verdict::Unknown => "unknown ",
        Verdict::Consider | Verdict::Ok => "consider",
    };
    let recommended = s
        .recommended
        .as_deref()
        .map_or(String::new(), |r| format!("; recommended: {r}"));
    let most = style.width.unwrap_or(usize::MAX);
    let line = format!("{} = {}{recommended}", clean(&s.name), clean(&value(s)));
    out.push_str(&format!("{word}  {}", wrap(&line, most, 10).trim_start()));
    let width = style.width.unwrap_or(usize::MAX).max(40);
    out.push_str(&wrap(
        &format!("{}{}", clean(&s.why), pending(s)),
        width,
        10,
    ));
}

fn pending(s: &Judged) -> &'static str {
    if s.pending_restart {
        "; a change waits for a restart"
    } else {
        ""
    }
}

/// What is right needs no reason, unless it is an override that makes it so.
fn row(s: &Judged) -> Vec<String> {
    let why = if s.overrides.is_empty() {
        ""
    } else {
        s.why.as_str()
    };
    vec![
        format!("  {}", s.name),
        value(s),
        format!("{why}{}", pending(s)),
    ]
}

/// As a person says it; an empty value is told as such.
fn value(s: &Judged) -> String {
    match (&s.unit, s.value.as_str()) {
        (_, "") => "''".into(),
        // Units of whole pages (`8kB`) would read as part of the number.
        (Some(unit), value) if unit.starts_with(|c: char| c.is_ascii_digit()) => {
            format!("{value} x {unit}")
        }
        _ => s.words(),
    }
}
