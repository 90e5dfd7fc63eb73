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
            Piece::People {
                name, body, line, ..
            } if *name == wanted => Some((*body, *line)),
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

/// A document of ours: it has one of our parts, or markers that are damaged.
pub fn is_one(markdown: &str) -> bool {
    parse(markdown).map_or(true, |pieces| {
        let is_part = |piece: &Piece<'_>| !matches!(piece, Piece::Outside { .. });
        pieces.iter().any(is_part)
    })
}

fn missing(name: &str) -> String {
    format!("the part \"people: {name}\" is missing: render the report once more")
}

/// The line, counted from the opening marker, where an answer is missing.
fn is_open(body: &str) -> Option<usize> {
    if body.trim().is_empty() {
        return Some(0);
    }
    let todo = body.lines().position(is_todo);
    // The first line with anything on it stands for all.
    let nothing =
        || is_nothing(body).then(|| body.lines().position(|line| !line.trim().is_empty()));
    todo.or_else(|| nothing().flatten()).map(|n| n + 1)
}

/// `TODO` or `TBD`, also as an item of a list or a quote; in small letters only where nothing follows: a word may begin so.
fn is_todo(line: &str) -> bool {
    let line = line.trim_start_matches(|c: char| c.is_whitespace() || "-*+>#_`[]()".contains(c));
    let loud = [TODO, "TBD"].iter().any(|word| {
        let rest = line.strip_prefix(word);
        rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
    });
    loud || ["todo", "tbd"].contains(&bare(line).as_str())
}

/// Text without markup and punctuation around it, in small letters.
fn bare(text: &str) -> String {
    let text = text.replace("&nbsp;", " ").replace('\u{a0}', " ");
    let around = |c: char| c.is_whitespace() || c.is_ascii_punctuation() || "…–—".contains(c);
    text.trim_matches(around).to_lowercase()
}

/// Without comments, which nobody sees.
fn seen(body: &str) -> String {
    let mut out = String::new();
    let mut rest = body;
    while let Some((before, comment)) = rest.split_once("<!--") {
        out.push_str(before);
        rest = comment.split_once("-->").map_or("", |(_, after)| after);
    }
    out + rest
}

/// It is filled in, and says nothing.
fn is_nothing(text: &str) -> bool {
    const WORDS: [&str; 8] = ["", "todo", "tbd", "n/a", "na", "none", "nothing", "unknown"];
    WORDS.contains(&bare(&seen(text)).as_str())
}

/// Who answers for it is one, and can be asked: a name, or a team by its name.
fn is_nobody(owner: &str) -> bool {
    const WORDS: [&str; 13] = [
        "nobody",
        "no one",
        "everyone",
        "everybody",
        "anyone",
        "anybody",
        "somebody",
        "someone",
        "all",
        "team",
        "owner",
        "us",
        "we",
    ];
    let bare = bare(&owner.replace("&lt;", "<").replace("&gt;", ">"));
    let bare = bare.strip_prefix("the ").unwrap_or(&bare);
    // As runbooks have it, for whoever has to find out.
    let placeholder = bare.starts_with("team that ")
        || bare.starts_with("whoever ")
        || bare == "database's owner";
    is_nothing(owner) || placeholder || WORDS.contains(&bare)
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
        let is_empty = |text: &str| is_nothing(text) || is_todo(text);
        if row.iter().all(|text| is_empty(text)) {
            continue;
        }
        items += 1;
        let name = cell(what);
        // Struck out or ticked: it is done, and its day may have passed.
        let is_done = name.starts_with("~~") || name.to_lowercase().starts_with("[x]");
        // All that is wrong with one is one thing to mend.
        let mut wrong: Vec<String> = Vec::new();
        if is_empty(name) {
            wrong.push("an action item that doesn't say what is to be done".into());
        }
        match cell(owner) {
            text if is_empty(text) => wrong.push("an action item without an owner".into()),
            text if is_nobody(text) => wrong.push(format!(
                "{text:?} is no owner: one person, or one team by its name"
            )),
            _ => {}
        }
        match cell(due) {
            text if is_empty(text) => wrong.push("an action item without a due date".into()),
            text => match text.parse::<NaiveDate>() {
                // 2027-1-5 sorts and reads otherwise.
                Ok(day) if day.to_string() == text => {
                    if day < today && !is_done {
                        wrong.push(format!(
                            "due on {day}, which has passed (done? then [x] before it)"
                        ));
                    }
                }
                _ => wrong.push(format!("{text:?} is no date such as {today}")),
            },
        }
        let kind = cell(kind).to_lowercase();
        if !TYPES.contains(&kind.as_str()) {
            let given = if is_empty(&kind) {
                "no type".to_owned()
            } else {
                format!("{kind:?} is no type")
            };
            wrong.push(format!("{given}; there are: {}", TYPES.join(", ")));
        }
        if !wrong.is_empty() {
            say(line, wrong.join("; "));
        }
    }
    if items == 0 {
        say(line, "no action item at all".into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postmortem::marked::frame;

    fn day(text: &str) -> NaiveDate {
        text.parse().expect("a day")
    }

    /// A document in which nothing is missing, but for what is put in a part's place.
    fn with(changed: &[(&str, &str)]) -> Vec<(usize, String)> {
        let table = "| what | owner | due | type |\n|---|---|---|---|\n| Sum up | ana | 2027-02-01 | prevent |\n";
        let mut parts = vec![
            ("title", "# T\n"),
            ("status", "draft\n"),
            ("authors", "Ana\n"),
        ];
        parts.extend(
            QUESTIONS
                .iter()
                .map(|question| (question.name, "An answer.\n")),
        );
        parts.push(("actions", table));
        let mut text = String::new();
        for (name, body) in parts {
            let body = changed
                .iter()
                .find(|(of, _)| *of == name)
                .map_or(body, |(_, body)| *body);
            text.push_str(&frame(name, body));
        }
        let all = lint(&text, day("2027-01-10"));
        all.into_iter().map(|one| (one.line, one.what)).collect()
    }

    #[test]
    fn a_whole_document_has_no_fault() {
        assert_eq!(with(&[]), []);
    }

    #[test]
    fn what_isnt_written_is_told_at_its_line() {
        assert_eq!(
            with(&[
                ("title", "\n"),
                ("status", "final\n"),
                ("impact", "So far:\n- TODO how many\n"),
                ("cause", "")
            ]),
            [
                (1, "no title".into()),
                (
                    4,
                    "the status is one of: draft, in review, reviewed, closed".into()
                ),
                (12, "not answered: Impact on users".into()),
                (20, "not answered: Cause, as people see it".into()),
            ]
        );
        // A word that only begins so is an answer.
        assert_eq!(
            with(&[
                ("impact", "TODOs were closed.\n"),
                ("status", "**In review**\n")
            ]),
            []
        );
    }

    #[test]
    fn action_items_name_who_and_when() {
        let head = "| what | owner | due | type |\n|---|---|---|---|\n";
        let of = |rows: &str| -> Vec<(usize, String)> {
            let body = format!("{head}{rows}");
            let all = with(&[("actions", &body)]);
            all.into_iter()
                .map(|(line, what)| (line.wrapping_sub(46), what))
                .collect()
        };
        assert_eq!(of("| a \\| b | ana | 2027-01-10 | Detect |\n"), []);
        assert_eq!(
            of(
                "| a |  | 2027-02-01 | detect |\n| b | ana |  | detect |\n| c | ana | soon | detect |\n| d | ana | 2027-01-09 | detect |\n| e | ana | 2027-01-11 | fix |\n| f | ana | 2027-01-11 |\n"
            ),
            [
                (0, "an action item without an owner".into()),
                (1, "an action item without a due date".into()),
                (2, "\"soon\" is no date such as 2027-01-10".into()),
                (
                    3,
                    "due on 2027-01-09, which has passed (done? then [x] before it)".into()
                ),
                (
                    4,
                    "\"fix\" is no type; there are: prevent, detect, mitigate, process".into()
                ),
                (
                    5,
                    "no type; there are: prevent, detect, mitigate, process".into()
                ),
            ]
        );
        assert_eq!(
            of("| [x] d | ana | 2027-01-09 | detect |\n| ~~e~~ | ana | 2027-01-09 | detect |\n"),
            []
        );
        assert_eq!(
            of("| a | ? | soon |  |\n"),
            [(
                0,
                "an action item without an owner; \"soon\" is no date such as 2027-01-10; no type; there are: prevent, detect, mitigate, process".into()
            )]
        );
        assert_eq!(of("| TODO |  |  |  |\n")[0].1, "no action item at all");
        assert_eq!(
            with(&[("actions", "later\n")])[0].1,
            "no action item at all"
        );
        assert_eq!(
            with(&[("actions", "| what | who |\n|---|---|\n| a | b |\n")])[0].1,
            "the columns of the action items are what, owner, due and type"
        );
    }

    #[test]
    fn what_says_nothing_is_no_answer() {
        for nothing in [
            "todo\n",
            "- Tbd.\n",
            "TBD: ask the shop\n",
            "?\n",
            "n/a\n",
            "N/A.\n",
            "-\n",
            "*Nothing.*\n",
            "<!-- later -->\n",
            "&nbsp;\n",
            "<!-- a -->\n\n&nbsp;\n",
        ] {
            let all = with(&[("impact", nothing)]);
            assert_eq!(all.len(), 1, "{nothing:?}: {all:?}");
            assert_eq!(all[0].1, "not answered: Impact on users");
        }
        for answer in [
            "Nothing was lost.\n",
            "To do this took us an hour.\n",
            "Todo lists were empty <!-- all -->\n",
            "42\n",
        ] {
            assert_eq!(with(&[("impact", answer)]), [], "{answer:?}");
        }
    }

    #[test]
    fn an_owner_can_be_asked() {
        let of = |owner: &str, due: &str| {
            let body = format!(
                "| what | owner | due | type |\n|---|---|---|---|\n| a | {owner} | {due} | detect |\n"
            );
            with(&[("actions", &body)])
        };
        for owner in [
            "?",
            "tbd",
            "TODO",
            "n/a",
            "-",
            "nobody",
            "Everyone",
            "team",
            "the team",
            "<owner>",
            "&lt;owner&gt;",
            "the team that owns the application",
            "whoever is on call",
            "&nbsp;",
        ] {
            let all = of(owner, "2027-02-01");
            assert!(
                all.len() == 1 && all[0].1.contains("owner"),
                "{owner:?}: {all:?}"
            );
        }
        for owner in [
            "ana",
            "Team Checkout",
            "@data-platform",
            "the payments team",
        ] {
            assert_eq!(of(owner, "2027-02-01"), [], "{owner:?}");
        }
        for due in ["2027-2-1", "2027-02-1", "+2027-02-01", "27-02-01"] {
            let all = of("ana", due);
            assert!(
                all.len() == 1 && all[0].1.contains("is no date"),
                "{due:?}: {all:?}"
            );
        }
    }

    #[test]
    fn what_cant_be_told_apart_is_one_fault() {
        let all = lint("x\n<!-- people: a -->\n", day("2027-01-10"));
        assert_eq!(
            all,
            [Lint {
                line: 2,
                what: "people: a begins, and never ends".into()
            }]
        );
        assert!(is_one("x\n<!-- people: a -->\n") && is_one(&frame("title", "# T\n")));
        assert!(!is_one("nothing of ours\n") && !is_one(""));
        let all = lint("nothing of ours\n", day("2027-01-10"));
        assert_eq!(all.len(), 4 + QUESTIONS.len());
    }
}
