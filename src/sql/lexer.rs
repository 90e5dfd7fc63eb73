//! Tokens of a statement. Never fails: a text that `track_activity_query_size` cut ends in whatever token was open.

use std::ops::Range;

/// A piece of the text, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// A keyword or a bare identifier.
    Word(&'a str),
    /// `"…"`, quotes included.
    Quoted(&'a str),
    Number(&'a str),
    /// `'…'`, `E'…'`, `B'…'`, `$tag$…$tag$`: the inside, without quotes, escapes as written.
    Text(&'a str),
    /// `$1`
    Param(&'a str),
    /// One character of anything else.
    Symbol(char),
}

/// All tokens; white space and comments are left out.
pub fn tokens(sql: &str) -> Vec<Token<'_>> {
    spans(sql).into_iter().map(|(token, _)| token).collect()
}

/// All tokens and where each stands. Between two of them there are only white space and comments.
pub fn spans(sql: &str) -> Vec<(Token<'_>, Range<usize>)> {
    let mut lexer = Lexer {
        sql,
        at: 0,
        comments: Vec::new(),
    };
    let mut all = Vec::new();
    loop {
        lexer.skip_blanks_and_comments();
        let start = lexer.at;
        let Some(token) = lexer.next_token() else {
            return all;
        };
        all.push((token, start..lexer.at));
    }
}

/// The texts of all comments, without their marks.
pub fn comments(sql: &str) -> Vec<&str> {
    let mut lexer = Lexer {
        sql,
        at: 0,
        comments: Vec::new(),
    };
    while lexer.next_token().is_some() {}
    lexer.comments
}

struct Lexer<'a> {
    sql: &'a str,
    at: usize,
    comments: Vec<&'a str>,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.sql[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take_while(&mut self, keep: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !keep(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn skip_blanks_and_comments(&mut self) {
        loop {
            self.take_while(is_blank);
            if self.rest().starts_with("--") {
                let comment = self.take_while(|c| !matches!(c, '\n' | '\r'));
                self.comments.push(&comment[2..]);
            } else if self.rest().starts_with("/*") {
                self.skip_block_comment();
            } else {
                return;
            }
        }
    }

    /// Comments nest in SQL.
    fn skip_block_comment(&mut self) {
        let start = self.at + 2;
        let mut depth = 0;
        while self.at < self.sql.len() {
            if self.rest().starts_with("/*") {
                depth += 1;
                self.at += 2;
            } else if self.rest().starts_with("*/") {
                depth -= 1;
                self.at += 2;
                if depth == 0 {
                    self.comments.push(&self.sql[start..self.at - 2]);
                    return;
                }
            } else {
                self.at += self.peek().map_or(1, char::len_utf8);
            }
        }
        self.comments.push(&self.sql[start.min(self.sql.len())..]);
    }

    fn next_token(&mut self) -> Option<Token<'a>> {
        self.skip_blanks_and_comments();
        let first = self.peek()?;
        Some(match first {
            '\'' => self.text(false),
            '"' => self.quoted(),
            '$' => self.dollar(),
            '0'..='9' => Token::Number(self.number()),
            '.' if self.rest()[1..].starts_with(|c: char| c.is_ascii_digit()) => {
                Token::Number(self.number())
            }
            c if is_in_name(c) => self.word_or_prefixed_text(),
            c => {
                self.at += c.len_utf8();
                Token::Symbol(c)
            }
        })
    }

    /// From the opening quote on; `escapes`: a backslash takes the next character with it.
    fn text(&mut self, escapes: bool) -> Token<'a> {
        let start = self.at + 1;
        self.at = start;
        loop {
            let Some(i) = self.rest().find(['\'', '\\']) else {
                self.at = self.sql.len();
                return Token::Text(&self.sql[start..]);
            };
            let quote = self.at + i;
            self.at = quote + 1;
            if self.sql[quote..].starts_with('\\') {
                if escapes {
                    self.at += self.peek().map_or(0, char::len_utf8);
                }
                continue;
            }
            if self.peek() == Some('\'') {
                self.at += 1;
                continue;
            }
            // Over the end of a line a literal goes on in the next quotes, escapes and all.
            let next = self.rest().trim_start_matches(is_blank);
            let between = &self.rest()[..self.rest().len() - next.len()];
            if !(next.starts_with('\'') && between.contains(['\n', '\r'])) {
                return Token::Text(&self.sql[start..quote]);
            }
            self.at = self.sql.len() - next.len() + 1;
        }
    }

    fn quoted(&mut self) -> Token<'a> {
        let start = self.at;
        let mut chars = self.sql[start + 1..].char_indices().peekable();
        while let Some((i, c)) = chars.next() {
            if c == '"' {
                if chars.peek().is_some_and(|(_, next)| *next == '"') {
                    chars.next();
                } else {
                    self.at = start + 1 + i + 1;
                    return Token::Quoted(&self.sql[start..self.at]);
                }
            }
        }
        self.at = self.sql.len();
        Token::Quoted(&self.sql[start..])
    }

    /// `$1`, `$tag$…$tag$`, or a lone `$`.
    fn dollar(&mut self) -> Token<'a> {
        let rest = self.rest();
        let tag_len = rest[1..]
            .find(|c: char| !(is_in_name(c) || c.is_ascii_digit()))
            .unwrap_or(rest.len() - 1);
        let tag = &rest[1..1 + tag_len];
        if !tag.is_empty() && tag.bytes().all(|b| b.is_ascii_digit()) {
            self.at += 1 + tag_len;
            return Token::Param(&rest[..1 + tag_len]);
        }
        if !rest[1 + tag_len..].starts_with('$') || tag.starts_with(|c: char| c.is_ascii_digit()) {
            self.at += 1;
            return Token::Symbol('$');
        }
        let fence = &rest[..tag_len + 2];
        let body = &rest[fence.len()..];
        let end = body.find(fence).unwrap_or(body.len());
        self.at = (self.at + fence.len() + end + fence.len()).min(self.sql.len());
        Token::Text(&body[..end])
    }

    /// With the sign of its exponent: `1e-5`.
    fn number(&mut self) -> &'a str {
        let rest = self.rest();
        let mut end = 0;
        // No other letters yet, so that a sign behind an `e` belongs to it.
        let mut decimal = true;
        let mut last = ' ';
        for c in rest.chars() {
            let exponent = matches!(c, '+' | '-') && decimal && matches!(last, 'e' | 'E');
            if !(c.is_ascii_alphanumeric() || c == '.' || c == '_' || exponent) {
                break;
            }
            decimal = decimal && (c.is_ascii_digit() || matches!(c, '.' | '_' | 'e' | 'E'));
            end += c.len_utf8();
            last = c;
        }
        self.at += end;
        &rest[..end]
    }

    fn word_or_prefixed_text(&mut self) -> Token<'a> {
        let word = self.take_while(|c| is_in_name(c) || c == '$' || c.is_ascii_digit());
        if self.peek() == Some('\'')
            && matches!(word, "E" | "e" | "B" | "b" | "X" | "x" | "N" | "n")
        {
            return self.text(matches!(word, "E" | "e"));
        }
        Token::Word(word)
    }
}

/// What the server takes for a blank: no others of Unicode's.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

/// What a name may begin with: whatever isn't ASCII belongs to it.
fn is_in_name(c: char) -> bool {
    c == '_' || c.is_ascii_alphabetic() || !c.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;
    use Token::{Number, Param, Quoted, Symbol, Text, Word};

    #[test]
    fn the_forms_of_a_literal() {
        assert_eq!(tokens("'a''b'"), [Text("a''b")]);
        assert_eq!(tokens(r"E'a\'b' x"), [Text(r"a\'b"), Word("x")]);
        assert_eq!(tokens(r"'a\' x"), [Text(r"a\"), Word("x")]);
        assert_eq!(
            tokens("$q$ it's $x$ $q$ 1"),
            [Text(" it's $x$ "), Number("1")]
        );
        assert_eq!(tokens("$$x$$"), [Text("x")]);
        assert_eq!(
            tokens("$1 + .5e10"),
            [Param("$1"), Symbol('+'), Number(".5e10")]
        );
        assert_eq!(
            tokens(r#""a""b".c"#),
            [Quoted(r#""a""b""#), Symbol('.'), Word("c")]
        );
    }

    #[test]
    fn as_the_server_reads_it() {
        assert_eq!(tokens("a -- b\r c"), [Word("a"), Word("c")]);
        assert_eq!(tokens("E'a'\n'\\' , ' b"), [Text("a'\n'\\' , "), Word("b")]);
        assert_eq!(tokens("'a' 'b'"), [Text("a"), Text("b")]);
        assert_eq!(
            tokens("$\u{2192}$ ' $\u{2192}$ a"),
            [Text(" ' "), Word("a")]
        );
        assert_eq!(
            tokens("0x1e-f(5)")[..3],
            [Number("0x1e"), Symbol('-'), Word("f")]
        );
        assert_eq!(tokens("1e-5"), [Number("1e-5")]);
        assert_eq!(tokens("a\u{a0}b"), [Word("a\u{a0}b")]);
    }

    #[test]
    fn comments_nest_and_vanish() {
        assert_eq!(
            tokens("a /* b /* c */ d */ e -- f\n g"),
            [Word("a"), Word("e"), Word("g")]
        );
    }

    #[test]
    fn text_that_was_cut() {
        assert_eq!(tokens("select 'unter"), [Word("select"), Text("unter")]);
        assert_eq!(tokens("select $a$ unter"), [Word("select"), Text(" unter")]);
        assert_eq!(
            tokens("select \"unter"),
            [Word("select"), Quoted("\"unter")]
        );
        assert_eq!(tokens("select /* unter"), [Word("select")]);
        assert_eq!(tokens("select $"), [Word("select"), Symbol('$')]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_ends(text in "\\PC*") {
            let _ = tokens(&text);
        }

        #[test]
        fn any_soup_of_quotes_ends(text in "['\"$a1 /*\\\\E.-]{0,60}") {
            let _ = tokens(&text);
        }
    }
}
