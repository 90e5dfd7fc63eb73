//! `query run`: the raw rows of one query.

use serde_json::Value;

use crate::view::console::Style;

/// Rows as they came, one cell a value.
pub fn rows(columns: &[String], rows: &[Vec<Value>], style: Style) -> String {
    let mut out = String::new();
    let titles: Vec<String> = columns
        .iter()
        .map(|name| crate::view::clean(name))
        .collect();
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(cell).collect())
        .collect();
    out.push_str(&crate::view::layout::wide_table(
        &titles,
        cells,
        style.width,
    ));
    out.push_str(&format!("({})\n", crate::model::count(rows.len(), "row")));
    out
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => crate::view::sanitize::one_line(text),
        other => other.to_string(),
    }
}
