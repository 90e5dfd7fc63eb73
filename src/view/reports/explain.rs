//! `explain`: what a finding means, as a page.

use crate::analysis::catalog::Entry;
use crate::view::console::Style;

/// Columns of text that read well.
const PAGE: usize = 88;

pub fn page(entry: &Entry, style: Style) -> String {
    let width = style.width.unwrap_or(PAGE).clamp(20, PAGE);
    let mut out = format!("{}\n", style.strong(entry.id.name()));
    let pattern = entry.pattern.map(|p| p.meaning());
    for (title, text) in [
        ("when", Some(entry.condition)),
        ("pattern", pattern),
        ("meaning", Some(entry.meaning)),
        ("relief", Some(entry.relief)),
        ("cure", Some(entry.cure)),
    ] {
        if let Some(text) = text {
            out.push_str(&format!(
                "\n{}\n{}",
                style.strong(title),
                super::cells::wrap(text, width, 2)
            ));
        }
    }
    out
}

/// One line an id, with the condition.
pub fn list(entries: &[Entry], style: Style) -> String {
    let all: Vec<(&str, &str)> = entries.iter().map(|e| (e.id.name(), e.condition)).collect();
    super::cells::names(["finding", "when"], &all, style)
}
