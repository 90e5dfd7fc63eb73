//! One fingerprint for "the same statement": storms are found by it.

use super::lexer::{Token, tokens};

/// The statement with its literals as `?`, lists of them folded to one, comments gone, words in lower case.
///
/// Two texts with one fingerprint differ in values only. A text that was cut is compared up to the cut.
pub fn fingerprint(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len());
    let all = tokens(sql);
    for (at, token) in all.iter().enumerate() {
        match token {
            Token::Number(_) | Token::Text(_) | Token::Param(_) => {
                if out.ends_with("?, ") {
                    // `?, ?` says no more than `?`.
                    out.truncate(out.len() - 2);
                } else {
                    push(&mut out, "?");
                }
            }
            Token::Word(word) => push(&mut out, &word.to_lowercase()),
            Token::Quoted(word) => push(&mut out, word),
            Token::Symbol(',') => out.push_str(", "),
            Token::Symbol('-' | '+') if is_sign(&all, at) => {}
            Token::Symbol(c) => push_symbol(&mut out, *c),
        }
    }
    out.truncate(out.trim_end_matches([' ', ';', ',']).len());
    // Rows of values are as many as there happen to be.
    while out.contains("(?), (?)") {
        out = out.replace("(?), (?)", "(?)");
    }
    out
}

/// A sign belongs to the number behind it where no value stands before.
fn is_sign(all: &[Token<'_>], at: usize) -> bool {
    let before = at.checked_sub(1).map(|before| all[before]);
    let value = matches!(
        before,
        Some(
            Token::Word(_) | Token::Quoted(_) | Token::Number(_) | Token::Text(_) | Token::Param(_)
        ) | Some(Token::Symbol(')' | ']'))
    );
    !value && matches!(all.get(at + 1), Some(Token::Number(_)))
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
    fn signs_exponents_and_rows_are_values() {
        assert_eq!(
            fingerprint("select 1 where a = -5"),
            fingerprint("select 1 where a = 5")
        );
        assert_eq!(
            fingerprint("select f(-5, -6)"),
            fingerprint("select f(1, 2)")
        );
        assert_eq!(
            fingerprint("select 1 where a = 1e-5"),
            fingerprint("select 1 where a = 3")
        );
        assert_ne!(fingerprint("select a - 5"), fingerprint("select a"));
        assert_eq!(
            fingerprint("insert into t values (1, 2), (3, 4), (5, 6)"),
            fingerprint("insert into t values ($1, $2)")
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
