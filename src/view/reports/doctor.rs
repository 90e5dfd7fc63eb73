//! `doctor` as a list of checks.

use super::Table;
use super::cells::wrap;
use crate::analysis::Head;
use crate::analysis::doctor::{Check, CheckStatus, Doctor};
use crate::view::console::Style;
use crate::view::layout::{Column, table};
use crate::view::sanitize::clean;

impl Table for Doctor {
    fn table(&self, _: &Head, style: Style) -> String {
        let mut out = String::new();
        let widest = self.doctor.iter().map(|c| c.check.len()).max().unwrap_or(0);
        let indent = 7 + 2 + widest + 2;
        for check in &self.doctor {
            let detail = wrap(
                &clean(&check.detail),
                style.width.unwrap_or(usize::MAX),
                indent,
            );
            out.push_str(&format!(
                "{:<7}  {:widest$}  {}",
                word(check),
                check.check,
                detail.trim_start()
            ));
            if let Some(fix) = &check.fix {
                out.push_str(&format!("{:indent$}{}\n", "", clean(fix)));
            }
        }
        if let Some(link) = self
            .link
            .as_ref()
            .filter(|link| !link.parameters.is_empty())
        {
            let columns = [
                Column::text("parameter"),
                Column::text("value").flex_from(24, 12),
                Column::text("given by").shrink(10),
            ];
            let rows = link
                .parameters
                .iter()
                .map(|p| vec![p.name.clone(), p.value.clone(), p.origin.to_string()])
                .collect();
            out.push('\n');
            out.push_str(&table(&columns, rows, style.width));
        }
        out
    }
}

fn word(check: &Check) -> &'static str {
    match check.status {
        CheckStatus::Ok => "ok",
        CheckStatus::Missing => "missing",
        CheckStatus::Note => "note",
        CheckStatus::Unknown => "unknown",
    }
}
