//! One fingerprint for "the same statement": storms are found by it.

use super::lexer::{Token, tokens};

/// The statement with its literals as `?`, lists of them folded to one, comments gone, words in lower case.
///
/// Two texts with one fingerprint differ in values only. A text that was cut is compared up to the cut.
pub fn fingerprint(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len());
    let mut folding = false;
    for token in tokens(sql) {
        match token {
            Token::Number(_) | Token::Text(_) | Token::Param(_) => {
                if out.ends_with("?, ") || (folding && out.ends_with("?,")) {
                    // `?, ?` says no more than `?`.
                    out.truncate(out.trim_end_matches([',', ' ']).len());
                    folding = true;
                    continue;
                }
                push(&mut out, "?");
            }
            Token::Word(word) => push(&mut out, &word.to_lowercase()),
            Token::Quoted(word) => push(&mut out, word),
            Token::Symbol(',') => out.push_str(", "),
            Token::Symbol(c) => push_symbol(&mut out, c),
        }
        folding = false;
    }
    out.truncate(out.trim_end_matches([' ', ';', ',']).len());
    out
}

fn push(out: &mut String, word: &str) {
    if !out.is_empty() && !out.ends_with([' ', '(', '.', '[']) {
        out.push(' ');
    }
    out.push_str(word);
}

fn push_symbol(out: &mut String, c: char) {
    let glued =
        matches!(c, '.' | ')' | ']' | ';' | '[' | ':') || out.ends_with(['.', '(', '[', ':', ' ']);
    // `count (` and `in (` read alike: a call and a list needn't be told apart.
    if !(glued || out.is_empty() || is_operator(c) && out.ends_with(is_operator)) {
        out.push(' ');
    }
    out.push(c);
}

fn is_operator(c: char) -> bool {
    matches!(
        c,
        '<' | '>' | '=' | '!' | '|' | '&' | '@' | '#' | '~' | '*' | '/' | '+' | '-' | '%' | '^'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_do_not_matter() {
        let same = [
            "SELECT * FROM orders WHERE id = 17 AND note = 'x'",
            "select *  from orders where id = 4711\n and note = $tag$y$tag$ /* trace=1 */",
            "select * from orders where id = $1 and note = $2;",
        ];
        for text in same {
            assert_eq!(
                fingerprint(text),
                "select * from orders where id = ? and note = ?",
                "{text}"
            );
        }
    }

    #[test]
    fn lists_are_one_value() {
        assert_eq!(
            fingerprint("select 1 where id in (1, 2,3)"),
            "select ? where id in (?)"
        );
        assert_eq!(
            fingerprint("select 1 where id in ($1)"),
            "select ? where id in (?)"
        );
    }

    #[test]
    fn names_do_matter() {
        assert_ne!(
            fingerprint("select a from t"),
            fingerprint("select b from t")
        );
        assert_ne!(
            fingerprint("select \"A\" from t"),
            fingerprint("select \"a\" from t")
        );
        assert_ne!(
            fingerprint("select 1 where a >= 1"),
            fingerprint("select 1 where a <= 1")
        );
    }
}
