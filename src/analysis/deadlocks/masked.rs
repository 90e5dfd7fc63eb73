//! Statements as they are shown: texts masked, numbers kept, since the order of locks is told by them.

use crate::sql::{Token, doubtful, name_redacted, redacted, tokens};

/// Every text as `…`, comments gone, and names by the rules of names. Where a text may end elsewhere, so does what is shown.
pub fn masked(sql: &str) -> String {
    let sure = sure(sql);
    let mut out = clear(sure);
    if sure.len() < sql.len() {
        out.push_str("'…");
    }
    out
}

/// What can be read in one way only.
pub fn sure(sql: &str) -> &str {
    doubtful(sql).map_or(sql, |end| &sql[..end])
}

/// A card's number, by its issuer and its check digit.
pub fn is_private(number: &str) -> bool {
    number.len() > 12 && redacted(number) != number
}

fn clear(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len());
    let mut at = 0;
    for token in tokens(sql) {
        let text = match token {
            Token::Word(text)
            | Token::Quoted(text)
            | Token::Number(text)
            | Token::Text(text)
            | Token::Param(text) => text,
            Token::Symbol(_) => continue,
        };
        let from = text.as_ptr() as usize - sql.as_ptr() as usize;
        push_gap(&mut out, &sql[at..from]);
        match token {
            Token::Text("") => {}
            Token::Text(_) => out.push('…'),
            Token::Quoted(name) => out.push_str(&name_redacted(name)),
            Token::Number(number) if is_private(number) => out.push('…'),
            _ => out.push_str(text),
        }
        at = from + text.len();
    }
    push_gap(&mut out, &sql[at..]);
    out
}

/// What stands between two tokens, without its comments.
fn push_gap(out: &mut String, gap: &str) {
    if !(gap.contains("--") || gap.contains("/*")) {
        out.push_str(gap);
        return;
    }
    let mut rest = gap;
    loop {
        let line = rest.find("--");
        let block = rest.find("/*");
        let Some(start) = line.into_iter().chain(block).min() else {
            out.push_str(rest);
            return;
        };
        out.push_str(&rest[..start]);
        // A quote that opens the next text may stand behind a comment, never inside of one that is gone.
        let end = if line == Some(start) {
            rest[start..].find(['\n', '\r']).map(|end| start + end)
        } else {
            block_end(&rest[start..]).map(|end| start + end)
        };
        match end {
            Some(end) => rest = &rest[end..],
            None => return,
        }
    }
}

/// Behind a comment in brackets; they nest.
fn block_end(text: &str) -> Option<usize> {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return Some(at);
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_masked_and_numbers_are_not() {
        let cases = [
            (
                "update t set a = 'x' where id = 7",
                "update t set a = '…' where id = 7",
            ),
            (
                "select E'a\\'b', $q$it's$q$, '', 1.5",
                "select E'…', $q$…$q$, '', 1.5",
            ),
            (
                "update t -- mail me@example.com\n set /* a /* b */ 'c' */ a = $1",
                "update t \n set  a = $1",
            ),
            ("select 'cut", "select '…"),
            (
                "update \"It's\" set a = '花子'",
                "update \"It's\" set a = '…'",
            ),
            // By standard_conforming_strings = off the text goes on behind its second quote.
            (
                r"update t set a = 'it\'s hunter1x battery' where id = 2",
                "update t set a = '…",
            ),
            (r"select 'a\\' from t", "select '…' from t"),
        ];
        for (sql, shown) in cases {
            assert_eq!(masked(sql), shown, "{sql}");
        }
    }

    #[test]
    fn a_card_is_no_key() {
        let masked =
            masked("update cards set n = 1 where pan = 4111111111111111 and id = 4111111111111112");
        assert_eq!(
            masked,
            "update cards set n = 1 where pan = … and id = 4111111111111112"
        );
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_left(inside in "[a-z]{4,12}") {
            let sql = format!("select 1 /* {inside} */ from t where a = '{inside}' -- {inside}");
            proptest::prop_assert!(!masked(&sql).contains(&inside));
        }
    }
}
