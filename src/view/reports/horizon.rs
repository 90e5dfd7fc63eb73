use super::{NONE, Table, age, or_none};
use crate::analysis::Head;
use crate::analysis::horizon::{Held, Horizon};
use crate::view::console::Style;
use crate::view::layout::{Column, table};

/// What a screen takes; the oldest matter.
const MOST: usize = 30;

impl Table for Horizon {
    fn table(&self, _: &Head, style: Style) -> String {
        let Some(oldest) = self.horizon.first() else {
            return "nothing holds the xmin horizon\n".into();
        };
        let mut out = format!(
            "the xmin horizon is {} transactions behind\n",
            oldest.xmin_age
        );
        let columns = [
            Column::number("behind"),
            Column::text("held by").shrink(12),
            Column::number("pid"),
            Column::text("name").shrink(8),
            Column::text("user").shrink(6).drop(2),
            Column::text("database").shrink(6).drop(1),
            Column::number("age"),
            Column::text("to let it go").flex(20),
        ];
        let rows = self.horizon.iter().take(MOST).map(row).collect();
        out.push_str(&table(&columns, rows, style.width));
        if self.horizon.len() > MOST {
            out.push_str(&format!("and {} younger ones\n", self.horizon.len() - MOST));
        }
        out
    }
}

fn row(h: &Held) -> Vec<String> {
    vec![
        h.xmin_age.to_string(),
        h.kind.words().into(),
        h.pid.map_or_else(|| NONE.into(), |pid| pid.to_string()),
        or_none(h.name.as_deref()),
        or_none(h.user.as_deref()),
        or_none(h.database.as_deref()),
        age(h.age_ms),
        h.release.clone(),
    ]
}
