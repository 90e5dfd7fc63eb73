//! Markdown: what the server is, what was found in a sentence or two, and the lists, to be pasted into an issue.

use super::header::{self, Heading};
use super::reports::Table;
use super::sheet::escape;
use crate::analysis::Report;

pub fn document<D: Table<H>, H: Heading>(report: &Report<D, H>, list: Option<&str>) -> String {
    let lines = header::lines(&report.head);
    let mut out = String::new();
    for (n, line) in lines.iter().enumerate() {
        // What couldn't be seen stands out.
        let mark = if n == 0 { "**" } else { "" };
        let quote = if n == 0 { "" } else { "> " };
        out.push_str(&format!("{quote}{mark}{}{mark}\n\n", escape(line)));
    }
    for sentence in report.data.sentences(&report.head) {
        out.push_str(&format!("{}\n\n", escape(&sentence)));
    }
    let sheets = report.data.sheets();
    let several = sheets.iter().filter(|sheet| !sheet.is_empty()).count() > 1;
    for sheet in &sheets {
        if list.is_some_and(|wanted| wanted != sheet.name) {
            continue;
        }
        let table = sheet.markdown();
        if table.is_empty() {
            continue;
        }
        if several {
            out.push_str(&format!("{}:\n\n", escape(&sheet.name)));
        }
        out.push_str(&format!("{table}\n"));
    }
    format!("{}\n", out.trim_end())
}
