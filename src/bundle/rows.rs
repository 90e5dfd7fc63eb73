//! Which column a line of a frame's file is of, where it is a cell of a built-in query's rows: those have no name beside them.

use super::columns::{Class, class};

/// Reads a frame line by line, as it is written: two blanks for each level, an element a line.
#[derive(Default)]
pub struct Rows {
    within: bool,
    query: String,
    columns: Vec<String>,
    part: Part,
    next: usize,
}

#[derive(Default, PartialEq)]
enum Part {
    #[default]
    Other,
    Columns,
    Rows,
}

/// How far in they stand.
const TOP: usize = 2;
const QUERY: usize = 4;
const PART: usize = 8;
const ROW: usize = 10;
const CELL: usize = 12;

impl Rows {
    /// The next line; what its cell holds, where it is one.
    pub fn line(&mut self, line: &str) -> Option<Class> {
        let bare = line.trim_start_matches(' ');
        let depth = line.len() - bare.len();
        if depth == TOP {
            self.within = bare.starts_with("\"queries\": ");
        }
        if !self.within {
            return None;
        }
        match depth {
            QUERY => {
                self.query = bare.split('"').nth(1).unwrap_or_default().to_owned();
                self.columns.clear();
                self.part = Part::Other;
            }
            PART if bare.starts_with("\"columns\": [") => self.part = Part::Columns,
            PART if bare.starts_with("\"rows\": [") => self.part = Part::Rows,
            PART => self.part = Part::Other,
            ROW if self.part == Part::Columns => {
                let name = bare.split('"').nth(1).unwrap_or_default();
                self.columns.push(name.to_owned());
            }
            ROW => self.next = 0,
            CELL if self.part == Part::Rows && !bare.starts_with(']') => {
                let column = self.columns.get(self.next)?;
                self.next += 1;
                return Some(class(&self.query, column));
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::bundle::folder::pretty;
    use crate::model::{QueryRows, Section};

    #[test]
    fn each_cell_has_its_column() {
        let rows = QueryRows {
            columns: ["pid", "blockers", "query", "application_name"]
                .map(Into::into)
                .into(),
            rows: vec![
                vec![json!(7), json!([1, 2]), json!("select 1"), json!("web")],
                vec![json!(8), json!([]), json!("]\n[\"x\"]"), json!(null)],
            ],
        };
        let all: BTreeMap<&str, _> = [
            ("activity", Section::Collected(rows)),
            ("locks", Section::skipped("x")),
        ]
        .into();
        let text = pretty(
            &json!({"before": [[["a"]]], "queries": all, "behind": {"x": {"y": {"rows": [["z"]]}}}}),
        );
        let text = String::from_utf8(text.expect("JSON")).expect("text");
        let mut reader = Rows::default();
        let found: Vec<(Class, &str)> = text
            .lines()
            .filter_map(|line| Some((reader.line(line)?, line.trim().trim_end_matches(','))))
            .collect();
        assert_eq!(
            found,
            [
                (Class::Other, "7"),
                (Class::Other, "["),
                (Class::Statement, "\"select 1\""),
                (Class::Application, "\"web\""),
                (Class::Other, "8"),
                (Class::Other, "[]"),
                (Class::Statement, "\"]\\n[\\\"x\\\"]\""),
                (Class::Application, "null"),
            ]
        );
    }
}
