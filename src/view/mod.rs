//! Report → bytes: a table for people, JSON for programs. The one place where output is made.

mod console;
mod header;
mod json;
mod layout;
mod reports;
mod sanitize;

pub use console::{Console, Format, Style};
pub use header::identity;
pub use reports::{Table, drill_list, explain, query};
pub use sanitize::{clean, cut, width};

use std::io;

use serde::Serialize;

use crate::analysis::Report;

/// Writes a report in the chosen format.
///
/// # Errors
/// When standard output can't be written to.
pub fn show<D: Serialize + Table>(console: &mut Console, report: &Report<D>) -> io::Result<()> {
    let text = match console.format {
        Format::Table => {
            let mut text = header::header(&report.head, console.style);
            text.push_str(&report.data.table(&report.head, console.style));
            text
        }
        Format::Json => json::document(report, console.compact)?,
    };
    console.result(&text)
}

/// Writes any serialisable result as JSON.
///
/// # Errors
/// When standard output can't be written to.
pub fn show_json(console: &mut Console, value: &impl Serialize) -> io::Result<()> {
    let text = json::document(value, console.compact)?;
    console.result(&text)
}
