//! Statements that carry secrets, reduced to their command tag before anything is shown or saved.

use super::lexer::{Token, comments, tokens};
use super::{utility, verbs};

/// What is taken out, in words: the header of a saved snapshot states it.
pub const REDACTION_RULE: &str = "statements that may carry secrets (CREATE/ALTER ROLE, USER, GROUP, SUBSCRIPTION, SERVER, USER MAPPING, \
FOREIGN DATA WRAPPER, FOREIGN TABLE with options, IMPORT FOREIGN SCHEMA, ALTER SYSTEM, SET and set_config of any but known harmless \
settings, SECURITY LABEL, COMMENT, LOAD, COPY … PROGRAM, dblink, WITH PASSWORD, IDENTIFIED BY, \
a password in a connection string) are reduced to their command tag, and what begins with no verb of SQL to (statement); \
in all others every literal is ?, and comments are left out but for the tags of a route, controller, action, framework, driver, application, \
job or trace; what looks like a secret in other texts is replaced by what it is";

/// How deep texts inside texts are read: `DO $$ … EXECUTE 'ALTER ROLE …' $$` is two deep.
const MAX_DEPTH: usize = 4;

/// The command tag of a statement that carries a secret, `None` for any other.
///
/// The tag stands for the whole text, also where only one of several statements in it is such a one.
pub fn reduce_secret(sql: &str) -> Option<String> {
    secret_tag(sql, 0, true)
}

/// `code`: its statements are carried out; else it may be prose, in which any sentence may begin with `Set` or `Load`.
fn secret_tag(sql: &str, depth: usize, code: bool) -> Option<String> {
    let tokens = tokens(sql);
    let text = Text::new(&tokens);
    let word = |i: usize| text.word(i);
    for i in 0..tokens.len() {
        let verb = match word(i) {
            Some(verb @ ("CREATE" | "ALTER")) => verb,
            Some("COPY") if text.program.get(i).is_some_and(Option::is_some) => {
                return Some("COPY … PROGRAM".into());
            }
            Some("PASSWORD") if matches!(tokens.get(i + 1), Some(Token::Text(_))) => {
                return Some(text.verb());
            }
            Some("PASSWORD" | "IDENTIFIED") if code && text.sets_login(i) => {
                return Some(text.verb());
            }
            _ => match utility::tag(&text, i, code) {
                None => continue,
                tag => return tag,
            },
        };
        let tag = match (word(i + 1), word(i + 2)) {
            (Some("USER"), Some("MAPPING")) => "USER MAPPING",
            (Some(kind @ ("ROLE" | "USER" | "GROUP" | "SUBSCRIPTION" | "SERVER")), _) => kind,
            (Some("SYSTEM"), _) => "SYSTEM",
            _ => match utility::tag(&text, i, code) {
                None => continue,
                tag => return tag,
            },
        };
        return Some(format!("{verb} {tag}"));
    }
    // What was commented out was written all the same.
    let commented = comments(sql).into_iter().any(|comment| {
        has_password(comment)
            || depth < MAX_DEPTH && secret_tag(comment, depth + 1, false).is_some()
    });
    if commented {
        return Some(text.verb());
    }
    let code = code && (depth > 0 || matches!(text.verb().as_str(), "DO" | "CREATE" | "EXECUTE"));
    tokens.iter().find_map(|token| match token {
        Token::Text(inside) if has_password(inside) => Some(text.verb()),
        Token::Text(inside) if depth < MAX_DEPTH => secret_tag(inside, depth + 1, code),
        _ => None,
    })
}

/// The tokens of a text, their words in capitals, and where the words stand that a statement is asked for.
pub(super) struct Text<'a> {
    pub tokens: &'a [Token<'a>],
    words: Vec<Option<String>>,
    /// For each token: where the next `SET` of its statement is.
    pub set: Vec<Option<usize>>,
    pub options: Vec<Option<usize>>,
    program: Vec<Option<usize>>,
    pub last_literal: Option<usize>,
}

impl<'a> Text<'a> {
    fn new(tokens: &'a [Token<'a>]) -> Self {
        let upper = |token: &Token<'_>| match token {
            Token::Word(word) => Some(word.to_uppercase()),
            _ => None,
        };
        let words: Vec<_> = tokens.iter().map(upper).collect();
        Text {
            tokens,
            set: next_of("SET", tokens, &words),
            options: next_of("OPTIONS", tokens, &words),
            program: next_of("PROGRAM", tokens, &words),
            last_literal: tokens
                .iter()
                .rposition(|token| matches!(token, Token::Text(_))),
            words,
        }
    }

    pub fn word(&self, at: usize) -> Option<&str> {
        self.words.get(at).and_then(Option::as_deref)
    }

    /// `WITH PASSWORD bareword`, `IDENTIFIED BY …`, `IDENTIFIED WITH plugin BY …`; no CTE of the name `password`.
    fn sets_login(&self, at: usize) -> bool {
        let word = |ahead: usize| self.word(at + ahead);
        if word(0) == Some("IDENTIFIED") {
            return word(1) == Some("BY")
                || word(1) == Some("WITH") && matches!(word(3), Some("BY" | "AS"));
        }
        let before = at.checked_sub(1).and_then(|before| self.word(before));
        let value = match self.tokens.get(at + 1) {
            None | Some(Token::Symbol('(' | ')' | ',' | ';')) => false,
            Some(_) => !matches!(word(1), Some("AS" | "…")),
        };
        value && matches!(before, Some("WITH" | "ENCRYPTED" | "UNENCRYPTED"))
    }

    /// The verb that the text begins with, as it is shown: with `…` where it would be a statement of its own.
    pub fn verb(&self) -> String {
        let verb = verbs::verb(self.words.iter().flatten().next().map(String::as_str));
        if verbs::stands_alone(verb) {
            format!("{verb} …")
        } else {
            verb.into()
        }
    }
}

/// From the end, so that a text of many statements is walked once. Empty if the word isn't there at all.
fn next_of(wanted: &str, tokens: &[Token<'_>], words: &[Option<String>]) -> Vec<Option<usize>> {
    if !words.iter().flatten().any(|word| word == wanted) {
        return Vec::new();
    }
    let mut next = vec![None; tokens.len()];
    let mut last = None;
    for at in (0..tokens.len()).rev() {
        if tokens[at] == Token::Symbol(';') {
            last = None;
        } else if words[at].as_deref() == Some(wanted) {
            last = Some(at);
        }
        next[at] = last;
    }
    next
}

/// A connection string with a password: `… password=… …` or `scheme://user:password@host`.
pub fn has_password(text: &str) -> bool {
    let lower = text.to_lowercase();
    let keyword = lower
        .match_indices("password")
        .any(|(i, word)| lower[i + word.len()..].trim_start().starts_with('='));
    let url = lower.match_indices("://").any(|(i, mark)| {
        let rest = &lower[i + mark.len()..];
        let authority = rest.split(['/', '?', ' ', '\'', '"']).next().unwrap_or("");
        match authority.rsplit_once('@') {
            Some((login, _)) => login.contains(':'),
            // Cut before its host: what stands behind the colon may be a password as well as a port.
            None => {
                authority.len() == rest.len()
                    && authority
                        .split_once(':')
                        .is_some_and(|(_, port)| !port.bytes().all(|b| b.is_ascii_digit()))
            }
        }
    });
    keyword || url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_carries_secrets_is_reduced() {
        let cases = [
            ("ALTER ROLE bob PASSWORD 'hunter2'", "ALTER ROLE"),
            ("create user x with password 'hunter2'", "CREATE USER"),
            (
                "/* c */ ALTER USER bob ENCRYPTED PASSWORD 'hunter",
                "ALTER USER",
            ),
            (
                "BEGIN; ALTER ROLE bob PASSWORD 'hunter2'; COMMIT",
                "ALTER ROLE",
            ),
            (
                "create user mapping for x server y options (password 'hunter2')",
                "CREATE USER MAPPING",
            ),
            (
                "CREATE SUBSCRIPTION s CONNECTION 'host=x password=hunter2' PUBLICATION p",
                "CREATE SUBSCRIPTION",
            ),
            (
                "ALTER SERVER s OPTIONS (SET password 'hunter2')",
                "ALTER SERVER",
            ),
            (
                "ALTER SYSTEM SET primary_conninfo = 'password=hunter2'",
                "ALTER SYSTEM",
            ),
            ("copy t from program 'curl -u hunter2'", "COPY … PROGRAM"),
            (
                "DO $$ BEGIN EXECUTE 'ALTER ROLE bob PASSWORD ''hunter2'''; END $$",
                "ALTER ROLE",
            ),
            (
                "select dblink_connect('host=x password = hunter2')",
                "SELECT",
            ),
            (
                "select dblink_connect('postgresql://a:hunter2@b/c')",
                "SELECT",
            ),
            ("select 1 /* postgresql://u:hunter2@h/db */", "SELECT"),
            ("select 1 -- alter role bob password 'hunter2'", "SELECT"),
            ("select dblink_connect('postgresql://u:hunter", "SELECT"),
            ("CREATE THING bob WITH PASSWORD hunter2", "CREATE"),
            ("GRANT a TO bob IDENTIFIED BY hunter2", "GRANT"),
            ("grant a to bob identified with x as 'hunter2'", "GRANT"),
            ("BEGIN; grant a to bob with password hunter2", "BEGIN …"),
            ("IDENTIFIED BY hunter2", "(statement)"),
        ];
        for (sql, tag) in cases {
            assert_eq!(reduce_secret(sql).as_deref(), Some(tag), "{sql}");
        }
        assert_eq!(
            reduce_secret("hunter2 /* password=x */").as_deref(),
            Some("(statement)")
        );
    }

    #[test]
    fn what_does_not_is_kept() {
        for sql in [
            "select * from users where role = 'admin'",
            "SET ROLE app",
            "alter table role add column password text",
            "copy t from stdin",
            "select 'https://example.com/a:b@c'",
            "select program from copy",
            "with password as (select 1) select * from password",
            "with password (a) as (select 1) select * from password",
            "create table identified with (fillfactor = 70)",
            "select 1 -- works with password files",
        ] {
            assert_eq!(reduce_secret(sql), None, "{sql}");
        }
    }
}
