//! What people still owe a postmortem: a line each, an object, or annotations of the file.

use serde_json::{Value, json};

use crate::postmortem::Lint;
use crate::view::annotation::annotation;
use crate::view::sanitize::clean;

/// `FILE:LINE: WHAT`
pub fn lint_lines(file: &str, all: &[Lint]) -> String {
    all.iter()
        .map(|one| clean(&format!("{file}:{}: {}", one.line, one.what)) + "\n")
        .collect()
}

pub fn lint_json(file: &str, all: &[Lint]) -> Value {
    let missing: Vec<Value> = all
        .iter()
        .map(|one| json!({ "file": file, "line": one.line, "message": one.what }))
        .collect();
    json!({ "schema": "stanch.postmortem_lint/1", "missing": missing })
}

pub fn lint_github(file: &str, all: &[Lint]) -> String {
    all.iter()
        .map(|one| {
            let fields = [
                ("file", file.to_owned()),
                ("line", one.line.to_string()),
                ("title", "postmortem".to_owned()),
            ];
            annotation("error", &fields, &clean(&one.what))
        })
        .collect()
}
