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
            out.push_str(&format!("\n{}\n{}", style.strong(title), wrap(text, width)));
        }
    }
    out
}

/// One line an id, with the condition.
pub fn list(entries: &[Entry], style: Style) -> String {
    let all: Vec<(&str, &str)> = entries.iter().map(|e| (e.id.name(), e.condition)).collect();
    super::names(["finding", "when"], &all, style)
}

fn wrap(text: &str, width: usize) -> String {
    let mut out = String::new();
    let mut line = String::from(" ");
    for word in text.split_whitespace() {
        if line.len() > 1 && crate::view::width(&line) + 1 + crate::view::width(word) > width {
            out.push_str(&line);
            out.push('\n');
            line = String::from(" ");
        }
        line.push(' ');
        line.push_str(word);
    }
    out.push_str(&line);
    out.push('\n');
    out
}
