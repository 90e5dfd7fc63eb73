//! `doctor` as a list of checks.

use super::Table;
use super::cells::wrap;
use crate::analysis::Head;
use crate::analysis::doctor::{Check, CheckStatus, Doctor};
use crate::model::count;
use crate::view::console::Style;
use crate::view::layout::{Column, table};
use crate::view::sanitize::clean;
use crate::view::sheet::{Col, Sheet, col};

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

    fn sentences(&self, _: &Head) -> Vec<String> {
        let of = |status| self.doctor.iter().filter(|c| c.status == status).count();
        vec![format!(
            "{} ok, {} missing, {} unknown",
            count(of(CheckStatus::Ok), "check"),
            of(CheckStatus::Missing),
            of(CheckStatus::Unknown)
        )]
    }

    fn sheets(&self) -> Vec<Sheet> {
        const CHECKS: [Col; 4] = [
            col("status", "status"),
            col("check", "check"),
            col("detail", "detail"),
            col("fix", "fix"),
        ];
        const PARAMETERS: [Col; 3] = [
            col("name", "parameter"),
            col("value", "value"),
            col("given_by", "given by"),
        ];
        #[derive(serde::Serialize)]
        struct Row<'p> {
            name: &'p str,
            value: &'p str,
            given_by: String,
        }
        let parameters: Vec<Row<'_>> = self
            .link
            .iter()
            .flat_map(|link| &link.parameters)
            .map(|p| Row {
                name: &p.name,
                value: &p.value,
                given_by: p.origin.to_string(),
            })
            .collect();
        vec![
            Sheet::of("doctor", &CHECKS, &self.doctor),
            Sheet::of("parameters", &PARAMETERS, &parameters),
        ]
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
