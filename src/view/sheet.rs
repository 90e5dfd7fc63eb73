//! The lists of a report as rows and columns: what CSV and Markdown are made of.

use serde::Serialize;
use serde_json::Value;

use crate::model::Millis;

/// A column by its place in the JSON of a row (`remedy.action`), which is also its name in CSV.
#[derive(Clone, Copy, Debug)]
pub struct Col {
    pub path: &'static str,
    /// Its heading in Markdown; `None`: for programs only.
    title: Option<&'static str>,
}

/// A column for people and programs.
pub const fn col(path: &'static str, title: &'static str) -> Col {
    Col {
        path,
        title: Some(title),
    }
}

/// A column for programs only.
pub const fn more(path: &'static str) -> Col {
    Col { path, title: None }
}

/// One list of a report.
pub struct Sheet {
    pub name: String,
    columns: Vec<(String, Option<String>)>,
    rows: Vec<Vec<Value>>,
}

impl Sheet {
    /// Rows that can be serialised, each field by its path.
    pub fn of<T: Serialize>(name: &str, columns: &[Col], rows: &[T]) -> Self {
        let rows = rows
            .iter()
            .map(|row| {
                let json = serde_json::to_value(row).unwrap_or_default();
                columns
                    .iter()
                    .map(|column| at(&json, column.path).cloned().unwrap_or_default())
                    .collect()
            })
            .collect();
        let columns = columns
            .iter()
            .map(|column| (column.path.to_owned(), column.title.map(str::to_owned)))
            .collect();
        Self {
            name: name.to_owned(),
            columns,
            rows,
        }
    }

    /// Rows of columns that aren't known before.
    pub fn raw(name: &str, columns: &[String], rows: Vec<Vec<Value>>) -> Self {
        Self {
            name: name.to_owned(),
            columns: columns
                .iter()
                .map(|name| (name.clone(), Some(name.clone())))
                .collect(),
            rows,
        }
    }

    /// RFC 4180: CRLF, a line of names first, quotes where they are needed. Unknown is an empty cell.
    pub fn csv(&self) -> String {
        let mut writer = csv::WriterBuilder::new()
            .terminator(csv::Terminator::CRLF)
            .from_writer(Vec::new());
        let names = self.columns.iter().map(|(name, _)| name.clone());
        let lines = std::iter::once(names.collect::<Vec<_>>()).chain(
            self.rows
                .iter()
                .map(|row| row.iter().map(plain).collect::<Vec<_>>()),
        );
        for line in lines {
            // Into memory: there is nothing that could fail.
            let _ = writer.write_record(line);
        }
        writer
            .into_inner()
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    /// A table of GitHub's Markdown; empty where there are no rows.
    pub fn markdown(&self) -> String {
        let kept: Vec<(usize, &String, &str)> = self
            .columns
            .iter()
            .enumerate()
            // What is empty all the way down only takes room.
            .filter(|(i, _)| self.rows.iter().any(|row| !is_empty(&row[*i])))
            .filter_map(|(i, (path, title))| Some((i, path, title.as_deref()?)))
            .collect();
        if self.rows.is_empty() || kept.is_empty() {
            return String::new();
        }
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let mut out = line(kept.iter().map(|(.., title)| escape(title)).collect());
        let numbers = |i: usize| {
            self.rows
                .iter()
                .all(|row| row[i].is_number() || row[i].is_null())
        };
        out.push_str(&line(
            kept.iter()
                .map(|(i, ..)| if numbers(*i) { "---:" } else { "---" }.to_owned())
                .collect(),
        ));
        for row in &self.rows {
            out.push_str(&line(
                kept.iter()
                    .map(|(i, path, _)| readable(path, &row[*i]))
                    .collect(),
            ));
        }
        out
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(values) => values.is_empty(),
        _ => false,
    }
}

fn at<'v>(json: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(json, |value, key| value.get(key))
}

/// For programs: as in the JSON, numbers of a list with blanks between.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => visible(text),
        // Texts may have blanks in them: a line each.
        Value::Array(values) => {
            let texts = values.iter().any(Value::is_string);
            let cells: Vec<String> = values.iter().map(plain).collect();
            cells.join(if texts { "\n" } else { " " })
        }
        other => other.to_string(),
    }
}

/// Control characters but those that CSV itself can hold.
fn visible(text: &str) -> String {
    text.split_inclusive(['\n', '\t', '\r'])
        .map(|part| match part.strip_suffix(['\n', '\t', '\r']) {
            Some(line) => format!("{}{}", super::clean(line), &part[line.len()..]),
            None => super::clean(part),
        })
        .collect()
}

/// For people: ages as words, statements as code.
fn readable(path: &str, value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Number(ms) if path.ends_with("_ms") => {
            Millis(ms.as_u64().unwrap_or_default()).to_string()
        }
        Value::String(text) if is_code(path) => code(text),
        Value::String(text) => escape(text),
        Value::Array(values) => {
            let texts = values.iter().any(Value::is_string);
            let cells: Vec<String> = values.iter().map(|value| readable(path, value)).collect();
            cells.join(if texts { "<br>" } else { " " })
        }
        other => other.to_string(),
    }
}

fn is_code(path: &str) -> bool {
    ["query", "command", "or_command", "next", "fix", "release"]
        .iter()
        .any(|name| path == *name || path.ends_with(&format!(".{name}")))
}

/// In as many backticks as it takes; a bar would end the cell even so.
fn code(text: &str) -> String {
    let text = super::clean(&super::sanitize::one_line(text)).replace('|', "\\|");
    if text.is_empty() {
        return text;
    }
    let longest = text
        .split(|c| c != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    let space = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{fence}{space}{text}{space}{fence}")
}

/// Nothing of a text is taken for markup.
pub fn escape(text: &str) -> String {
    let text = super::clean(&super::sanitize::one_line(text));
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '\\' | '|' | '`' | '*' | '[' | ']' | '~' | '#' => {
                out.push('\\');
                out.push(c);
            }
            // Inside of a word it means nothing; at its edge it may.
            '_' if out.is_empty() || out.ends_with(' ') => out.push_str("\\_"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const COLUMNS: [Col; 4] = [
        col("pid", "pid"),
        more("lock.mode"),
        col("wait_ms", "waits"),
        col("query", "query"),
    ];

    fn sheet() -> Sheet {
        let rows = [
            json!({"pid": 7, "lock": {"mode": "Share"}, "wait_ms": 61_000, "query": "select 'a|b', \"c\"\nfrom t"}),
            json!({"pid": 8, "lock": null, "wait_ms": null, "query": "\u{1b}[31m`x`"}),
        ];
        Sheet::of("edges", &COLUMNS, &rows)
    }

    #[test]
    fn csv_by_the_letter() {
        assert_eq!(
            sheet().csv(),
            "pid,lock.mode,wait_ms,query\r\n7,Share,61000,\"select 'a|b', \"\"c\"\"\nfrom t\"\r\n8,,,\\x1b[31m`x`\r\n"
        );
    }

    #[test]
    fn markdown_that_no_text_breaks() {
        assert_eq!(
            sheet().markdown(),
            "| pid | waits | query |\n| ---: | ---: | --- |\n| 7 | 1m 01s | `select 'a\\|b', \"c\" from t` |\n\
             | 8 |  | `` \\x1b[31m`x` `` |\n"
        );
        assert_eq!(
            escape("*a* <b> _c_ d_e [x](y)"),
            "\\*a\\* &lt;b> \\_c_ d_e \\[x\\](y)"
        );
    }
}
