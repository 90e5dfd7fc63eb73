//! `doctor` as a list of checks.

use super::Table;
use crate::analysis::Head;
use crate::analysis::doctor::{Check, CheckStatus, Doctor};
use crate::view::console::Style;
use crate::view::sanitize::clean;

impl Table for Doctor {
    fn table(&self, _: &Head, _: Style) -> String {
        let mut out = String::new();
        let widest = self.doctor.iter().map(|c| c.check.len()).max().unwrap_or(0);
        for check in &self.doctor {
            out.push_str(&format!(
                "{:<7}  {:widest$}  {}\n",
                word(check),
                check.check,
                clean(&check.detail)
            ));
            if let Some(fix) = &check.fix {
                out.push_str(&format!("{:<7}  {:widest$}  {}\n", "", "", clean(fix)));
            }
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
