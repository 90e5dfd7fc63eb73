//! JSON: one object a report, indented; one line each when rounds follow one another.

use serde::Serialize;

pub fn document(value: &impl Serialize, compact: bool) -> serde_json::Result<String> {
    let mut text = if compact {
        serde_json::to_string(value)?
    } else {
        serde_json::to_string_pretty(value)?
    };
    text.push('\n');
    Ok(text)
}
