use super::{NONE, Table, or_none};
use crate::analysis::Head;
use crate::analysis::settings::{Judged, Settings, Verdict};
use crate::view::console::Style;
use crate::view::layout::{Column, table};

impl Table for Settings {
    fn table(&self, _: &Head, style: Style) -> String {
        if self.settings.is_empty() {
            return "the settings weren't read\n".into();
        }
        let columns = [
            Column::text("").shrink(6),
            Column::text("setting").shrink(20),
            Column::number("value").shrink(6),
            Column::text("recommended").shrink(8),
            Column::text("why").flex(20),
        ];
        let rows = self.settings.iter().map(row).collect();
        let mut out = table(&columns, rows, style.width);
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
                out.push_str(&format!("override: {}\n", crate::view::clean(&text)));
            }
        }
        out
    }
}

fn row(s: &Judged) -> Vec<String> {
    let verdict = match s.verdict {
        Verdict::Change => "change",
        Verdict::Consider => "consider",
        Verdict::Ok => "ok",
    };
    let pending = if s.pending_restart {
        "; a change waits for a restart"
    } else {
        ""
    };
    vec![
        verdict.into(),
        s.name.clone(),
        value(s),
        match s.verdict {
            Verdict::Ok => NONE.into(),
            _ => or_none(s.recommended.as_deref()),
        },
        format!("{}{pending}", s.why),
    ]
}

/// `1000 ms` as PostgreSQL keeps it; an empty value is told as such.
fn value(s: &Judged) -> String {
    match (&s.unit, s.value.as_str()) {
        (_, "") => "''".into(),
        (_, "0" | "-1") | (None, _) => s.value.clone(),
        // Units of whole pages (`8kB`) would read as part of the number.
        (Some(unit), value) if unit.starts_with(|c: char| c.is_ascii_digit()) => {
            format!("{value} x {unit}")
        }
        (Some(unit), value) => format!("{value} {unit}"),
    }
}
