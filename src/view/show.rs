//! One report in the format that is wanted.

use std::io;

use serde::Serialize;
use serde_json::{Value, json};

use super::console::{Console, Format, Style};
use super::header::Heading;
use super::json::document;
use super::reports::Table;
use super::sheet::Sheet;
use super::{header, markdown, prometheus, reports};
use crate::analysis::Report;
use crate::model::{SlotLimit, Target};

/// The list that was asked for isn't one of the report's.
#[derive(Debug, thiserror::Error)]
#[error("no list {wanted:?} in this report; there are: {}", known.join(", "))]
pub struct NoSuchList {
    wanted: String,
    known: Vec<String>,
}

/// The list that was asked for is one of the report's.
///
/// # Errors
/// When it isn't.
pub fn lists(console: &Console, sheets: &[Sheet]) -> Result<(), NoSuchList> {
    match &console.list {
        Some(wanted) if !sheets.iter().any(|sheet| sheet.name == *wanted) => Err(NoSuchList {
            wanted: wanted.clone(),
            known: sheets.iter().map(|sheet| sheet.name.clone()).collect(),
        }),
        _ => Ok(()),
    }
}

/// Writes a report in the chosen format.
///
/// # Errors
/// When standard output can't be written to.
pub fn show<D, H>(console: &mut Console, report: &Report<D, H>) -> io::Result<()>
where
    D: Serialize + Table<H>,
    H: Serialize + Heading,
{
    let text = match console.format {
        Format::Table => text(report, console.style),
        // The formats of CI are the budget's, and refused before a report is made.
        Format::Json | Format::Sarif | Format::Junit | Format::Github => {
            document(report, console.compact)?
        }
        Format::Csv => {
            // There is no room for it in the rows, and a part is never taken for the whole.
            for line in report.head.unseen() {
                console.note(&line);
            }
            let sheets = report.data.sheets();
            let wanted = sheets
                .iter()
                .find(|sheet| console.list.as_ref().is_none_or(|name| *name == sheet.name));
            wanted.map_or_else(String::new, Sheet::csv)
        }
        Format::Markdown => markdown::document(report, console.list.as_deref()),
        Format::Prometheus => report.head.prometheus(report.data.metrics(&report.head)),
    };
    console.result(&text)
}

/// A report as text for people, with its header.
pub fn text<D: Table<H>, H: Heading>(report: &Report<D, H>, style: Style) -> String {
    let mut text = header::header(&report.head, style);
    text.push_str(&report.data.table(&report.head, style));
    text
}

/// Writes any serialisable result as JSON.
///
/// # Errors
/// When standard output can't be written to.
pub fn show_json(console: &mut Console, value: &impl Serialize) -> io::Result<()> {
    let text = document(value, console.compact)?;
    console.result(&text)
}

/// Names with a line about each: what the list and its two columns are called, for programs and for people.
pub struct Names {
    pub list: &'static str,
    pub columns: [&'static str; 2],
    pub titles: [&'static str; 2],
}

/// Writes names in the chosen format.
///
/// # Errors
/// When standard output can't be written to.
pub fn show_names(console: &mut Console, names: &Names, all: &[(&str, &str)]) -> io::Result<()> {
    match console.format {
        Format::Table => {
            let text = reports::names(names.titles, all, console.style);
            console.result(&text)
        }
        Format::Json => {
            let [name, what] = names.columns;
            let rows: Vec<Value> = all
                .iter()
                .map(|(n, w)| json!({ name: n, what: w }))
                .collect();
            show_json(
                console,
                &json!({ "schema": format!("stanch.{}/1", names.list), names.list: rows }),
            )
        }
        Format::Csv
        | Format::Markdown
        | Format::Prometheus
        | Format::Sarif
        | Format::Junit
        | Format::Github => {
            let rows = all
                .iter()
                .map(|(name, what)| vec![Value::from(*name), Value::from(*what)])
                .collect();
            let columns = names.columns.map(str::to_owned);
            show_sheet(console, &Sheet::raw(names.list, &columns, rows))
        }
    }
}

/// Writes one list as CSV or Markdown.
///
/// # Errors
/// When standard output can't be written to.
pub fn show_sheet(console: &mut Console, sheet: &Sheet) -> io::Result<()> {
    let text = match console.format {
        Format::Markdown if sheet.is_empty() => format!("No {}.\n", sheet.name),
        Format::Markdown => sheet.markdown(),
        _ => sheet.csv(),
    };
    console.result(&text)
}

/// Writes that there was no connection, in Prometheus' format.
///
/// # Errors
/// When standard output can't be written to.
pub fn down(
    console: &mut Console,
    target: &Target,
    report: &str,
    refused: Option<SlotLimit>,
) -> io::Result<()> {
    console.result(&prometheus::down(target, report, refused))
}
