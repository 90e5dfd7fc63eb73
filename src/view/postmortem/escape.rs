//! Text of strangers in Markdown: nothing of it is markup, a link, a mention or a marker.

use crate::view::sanitize::{clean, one_line};

/// For a line of text.
pub fn text(text: &str) -> String {
    safe(text, false)
}

/// For a cell of a table.
pub fn cell(text: &str) -> String {
    safe(text, true)
}

fn safe(text: &str, in_table: bool) -> String {
    let line = clean(&one_line(text));
    let words: Vec<String> = line
        .split(' ')
        .map(|word| {
            if !is_eager(word) {
                return escape(word);
            }
            // What stands around it isn't part of it.
            let rest = word.trim_start_matches(['(', '"', '\'']);
            let (before, _) = word.split_at(word.len() - rest.len());
            let core = rest.trim_end_matches([',', ';', '.', ')', '"', '\'', ':']);
            let (_, after) = rest.split_at(core.len());
            match is_eager(core) {
                true => format!(
                    "{}{}{}",
                    escape(before),
                    code(core, in_table),
                    escape(after)
                ),
                false => code(word, in_table),
            }
        })
        .collect();
    let text = words.join(" ");
    if in_table { text } else { guard(text) }
}

/// GitHub would make a link, a mention, an emoji or a formula of it.
fn is_eager(word: &str) -> bool {
    let lower = word.to_lowercase();
    let number_follows = |at: usize| word[at + 1..].starts_with(|c: char| c.is_ascii_digit());
    lower.contains("://")
        || lower.contains("www.")
        || lower.contains("mailto:")
        || lower.contains("gh-")
        || word.contains(['@', '$'])
        || word.match_indices('#').any(|(at, _)| number_follows(at))
        || is_emoji(word)
}

/// `:name:`
fn is_emoji(word: &str) -> bool {
    let mut parts = word.split(':');
    parts.next();
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_+-".contains(c);
        if parts.peek().is_some()
            && !part.is_empty()
            && part.chars().all(is_name)
            && !part.chars().all(|c| c.is_ascii_digit())
        {
            return true;
        }
    }
    false
}

fn escape(word: &str) -> String {
    let chars: Vec<char> = word.chars().collect();
    let mut out = String::with_capacity(word.len());
    for (n, c) in chars.iter().enumerate() {
        let is_inside = |at: Option<&char>| at.is_some_and(|c| c.is_alphanumeric());
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '|' | '`' | '*' | '[' | ']' | '~' => {
                out.push('\\');
                out.push(*c);
            }
            // Inside of a word it means nothing.
            '_' if !(n > 0 && is_inside(chars.get(n - 1)) && is_inside(chars.get(n + 1))) => {
                out.push_str("\\_");
            }
            c => out.push(*c),
        }
    }
    out
}

/// At the beginning of a line some characters begin a list, a heading or a rule.
fn guard(text: String) -> String {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let at = match text[digits..].chars().next() {
        Some('.' | ')') if digits > 0 => digits,
        Some('#' | '-' | '+' | '=') if digits == 0 => 0,
        _ => return text,
    };
    format!("{}\\{}", &text[..at], &text[at..])
}

/// As code, in as many backticks as it takes.
pub fn code(text: &str, in_table: bool) -> String {
    let mut text = clean(&one_line(text));
    if text.is_empty() {
        return text;
    }
    if in_table {
        text = text.replace('|', "\\|");
    }
    let longest = text
        .split(|c| c != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    let ticks = "`".repeat(longest + 1);
    let space = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{ticks}{space}{text}{space}{ticks}")
}

/// Lines as a block of code, behind a fence that no line of them is.
pub fn fenced(text: &str) -> String {
    let longest = text
        .split(|c| c != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{}\n{fence}\n", text.trim_end())
}

/// A table with its columns one below the other; cells are safe already.
pub fn table(head: &[(&str, bool)], rows: &[Vec<String>]) -> String {
    // The last column may be as long as it likes; a long cell elsewhere moves only its own row.
    const MOST: usize = 48;
    let width = crate::view::width;
    let widths: Vec<usize> = head
        .iter()
        .enumerate()
        .map(|(n, (title, _))| {
            let cells = rows
                .iter()
                .map(|row| row.get(n).map_or(0, |cell| width(cell)));
            cells
                .filter(|w| *w <= MOST)
                .max()
                .unwrap_or(0)
                .max(width(title))
                .max(3)
        })
        .collect();
    let last = head.len().saturating_sub(1);
    let line = |cells: Vec<(String, bool)>| {
        let cells: Vec<String> = cells
            .into_iter()
            .enumerate()
            .map(|(n, (cell, right))| {
                let pad = " ".repeat(widths[n].saturating_sub(width(&cell)));
                match (right, n == last) {
                    (true, _) => format!("{pad}{cell}"),
                    (false, true) => cell,
                    (false, false) => format!("{cell}{pad}"),
                }
            })
            .collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let mut out = line(
        head.iter()
            .map(|(title, right)| ((*title).to_owned(), *right))
            .collect(),
    );
    let rule = |n: usize, right: bool| {
        let dashes = "-".repeat(
            if n == last && !right { 3 } else { widths[n] }.saturating_sub(usize::from(right)),
        );
        if right { format!("{dashes}:") } else { dashes }
    };
    let rules: Vec<String> = head
        .iter()
        .enumerate()
        .map(|(n, (_, right))| rule(n, *right))
        .collect();
    out.push_str(&format!("| {} |\n", rules.join(" | ")));
    for row in rows {
        let cells = head
            .iter()
            .enumerate()
            .map(|(n, (_, right))| (row.get(n).cloned().unwrap_or_default(), *right));
        out.push_str(&line(cells.collect()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_stranger_is_markup() {
        assert_eq!(
            text("<script>alert(1)</script> *a* _b_ c_d [x](y) `z` a|b &lt;"),
            "&lt;script&gt;alert(1)&lt;/script&gt; \\*a\\* \\_b\\_ c_d \\[x\\](y) \\`z\\` a\\|b &amp;lt;"
        );
        assert_eq!(text("<!-- people: end -->"), "&lt;!-- people: end --&gt;");
        assert_eq!(text("a\nb\u{1b}[31m"), "a b\\\\x1b\\[31m");
    }

    #[test]
    fn nothing_becomes_a_link_or_a_mention() {
        assert_eq!(
            text("see https://x.example @root, #12 $a$ :bug: 10:20:30 a:b"),
            "see `https://x.example` `@root`, `#12` `$a$` `:bug:` 10:20:30 a:b"
        );
        assert_eq!(cell("x@y|z"), "`x@y\\|z`");
        assert_eq!(text("x@y|z"), "`x@y|z`");
    }

    #[test]
    fn a_line_begins_no_block() {
        assert_eq!(text("- x"), "\\- x");
        assert_eq!(text("12. x"), "12\\. x");
        assert_eq!(text("# x"), "\\# x");
        assert_eq!(text("12 x"), "12 x");
    }

    #[test]
    fn code_of_any_text() {
        assert_eq!(code("a``b", false), "```a``b```");
        assert_eq!(code("`a", false), "`` `a ``");
        assert_eq!(fenced("a\n```\nb\n"), "````text\na\n```\nb\n````\n");
    }

    #[test]
    fn columns_stand_below_each_other() {
        let rows = [
            vec!["日本".into(), "7".into(), "x".into()],
            vec!["a".into(), "1234".into(), "long text".into()],
        ];
        assert_eq!(
            table(&[("who", false), ("n", true), ("what", false)], &rows),
            "| who  |    n | what |\n| ---- | ---: | --- |\n| 日本 |    7 | x |\n| a    | 1234 | long text |\n"
        );
    }
}
