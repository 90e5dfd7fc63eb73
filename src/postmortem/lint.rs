//! What people still owe the document: answers, and action items that name who and by when.

use chrono::NaiveDate;

use super::marked::{Piece, parse};
use super::people::{QUESTIONS, STATUSES, TODO, TYPES};

/// Something that is missing or wrong, at its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lint {
    pub line: usize,
    pub what: String,
}

/// All of them, in the order of the file; a file that can't be told apart has one.
pub fn lint(markdown: &str, today: NaiveDate) -> Vec<Lint> {
    let pieces = match parse(markdown) {
        Ok(pieces) => pieces,
        Err(damage) => {
            return vec![Lint {
                line: damage.line,
                what: damage.what,
            }];
        }
    };
    let part = |wanted: &str| {
        pieces.iter().find_map(|piece| match piece {
            Piece::People { name, body, line } if *name == wanted => Some((*body, *line)),
            _ => None,
        })
    };
    let mut all = Vec::new();
    let mut say = |line: usize, what: String| all.push(Lint { line, what });
    for (name, what) in [
        ("title", "no title"),
        ("authors", "nobody is named as author"),
    ] {
        match part(name) {
            Some((body, line)) if is_open(body).is_some() => say(line, what.into()),
            Some(_) => {}
            None => say(1, missing(name)),
        }
    }
    match part("status") {
        Some((body, line)) => {
            let status = body
                .trim()
                .trim_matches(['*', '_', '`', '.'])
                .to_lowercase();
            if !STATUSES.contains(&status.as_str()) {
                say(
                    line,
                    format!("the status is one of: {}", STATUSES.join(", ")),
                );
            }
        }
        None => say(1, missing("status")),
    }
    for question in QUESTIONS {
        match part(question.name) {
            None => say(1, missing(question.name)),
            Some((body, line)) => {
                if let Some(n) = is_open(body) {
                    say(line + n, format!("not answered: {}", question.heading));
                }
            }
        }
    }
    match part("actions") {
        None => say(1, missing("actions")),
        Some((body, line)) => actions(body, line, today, &mut say),
    }
    all.sort_by_key(|lint| lint.line);
    all
}

fn missing(name: &str) -> String {
    format!("the part \"people: {name}\" is missing: render the report once more")
}

/// The line, counted from the opening marker, where an answer is missing.
fn is_open(body: &str) -> Option<usize> {
    if body.trim().is_empty() {
        return Some(0);
    }
    body.lines().position(is_todo).map(|n| n + 1)
}

/// `TODO`, also as an item of a list or a quote.
fn is_todo(line: &str) -> bool {
    let bare = line.trim_start_matches(|c: char| c.is_whitespace() || "-*+>#_`[]()".contains(c));
    let rest = bare.strip_prefix(TODO);
    rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

/// Cells of a row; a bar behind a backslash is text.
fn cells(line: &str) -> Option<Vec<String>> {
    let inner = line.trim().strip_prefix('|')?;
    let mut cells = vec![String::new()];
    let mut escaped = false;
    for c in inner.chars() {
        match c {
            '|' if !escaped => cells.push(String::new()),
            _ => {
                if let Some(cell) = cells.last_mut() {
                    cell.push(c);
                }
            }
        }
        escaped = c == '\\' && !escaped;
    }
    // Behind the last bar is nothing.
    if cells.last().is_some_and(|cell| cell.trim().is_empty()) {
        cells.pop();
    }
    Some(
        cells
            .into_iter()
            .map(|cell| cell.trim().to_owned())
            .collect(),
    )
}

fn actions(body: &str, line: usize, today: NaiveDate, say: &mut impl FnMut(usize, String)) {
    let mut rows = body
        .lines()
        .enumerate()
        .filter_map(|(n, text)| Some((line + n + 1, cells(text)?)));
    let Some((head_line, head)) = rows.next() else {
        say(line, "no action item at all".into());
        return;
    };
    let at = |wanted: &str| {
        head.iter()
            .position(|name| name.eq_ignore_ascii_case(wanted))
    };
    let (Some(what), Some(owner), Some(due), Some(kind)) =
        (at("what"), at("owner"), at("due"), at("type"))
    else {
        say(
            head_line,
            "the columns of the action items are what, owner, due and type".into(),
        );
        return;
    };
    let mut items = 0;
    for (line, row) in rows {
        if row
            .iter()
            .all(|cell| cell.trim_matches([':', '-']).is_empty() && !cell.is_empty())
        {
            continue;
        }
        let cell = |n: usize| row.get(n).map_or("", String::as_str);
        let is_empty = |text: &str| text.is_empty() || text == "-" || is_todo(text);
        if row.iter().all(|text| is_empty(text)) {
            continue;
        }
        items += 1;
        let name = cell(what);
        // Struck out or ticked: it is done, and its day may have passed.
        let is_done = name.starts_with("~~") || name.to_lowercase().starts_with("[x]");
        if is_empty(name) {
            say(
                line,
                "an action item that doesn't say what is to be done".into(),
            );
        }
        if is_empty(cell(owner)) {
            say(line, "an action item without an owner".into());
        }
        match cell(due) {
            text if is_empty(text) => say(line, "an action item without a due date".into()),
            text => match text.parse::<NaiveDate>() {
                Err(_) => say(line, format!("{text:?} is no date such as {today}")),
                Ok(day) if day < today && !is_done => {
                    say(
                        line,
                        format!("due on {day}, which has passed (done? then [x] before it)"),
                    );
                }
                Ok(_) => {}
            },
        }
        let kind = cell(kind).to_lowercase();
        if !TYPES.contains(&kind.as_str()) {
            let given = if is_empty(&kind) {
                "no type".to_owned()
            } else {
                format!("{kind:?} is no type")
            };
            say(line, format!("{given}; there are: {}", TYPES.join(", ")));
        }
    }
    if items == 0 {
        say(line, "no action item at all".into());
    }
}
