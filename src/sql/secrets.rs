//! Statements that carry secrets, reduced to their command tag before anything is shown or saved.

use super::lexer::{Token, comments, tokens};

/// What is reduced, in words: the header of a saved snapshot states it.
pub const REDACTION_RULE: &str = "statements that carry secrets (CREATE/ALTER ROLE, USER, GROUP, SUBSCRIPTION, SERVER, \
USER MAPPING, ALTER SYSTEM, COPY … PROGRAM, a password in a connection string) are reduced to their command tag; application names with such a \
string are left out; other literals are kept";

/// How deep texts inside texts are read: `DO $$ … EXECUTE 'ALTER ROLE …' $$` is two deep.
const MAX_DEPTH: usize = 4;

/// The command tag of a statement that carries a secret, `None` for any other.
///
/// The tag stands for the whole text, also where only one of several statements in it is such a one.
pub fn reduce_secret(sql: &str) -> Option<String> {
    secret_tag(sql, 0)
}

fn secret_tag(sql: &str, depth: usize) -> Option<String> {
    let tokens = tokens(sql);
    let words: Vec<Option<String>> = tokens.iter().map(upper_word).collect();
    let word = |i: usize| words.get(i).and_then(Option::as_deref);
    let has_program = words.iter().flatten().any(|word| word == "PROGRAM");
    for i in 0..tokens.len() {
        let verb = match word(i) {
            Some(verb @ ("CREATE" | "ALTER")) => verb,
            Some("COPY") if has_program && statement_has(&tokens[i..], "PROGRAM") => {
                return Some("COPY … PROGRAM".into());
            }
            Some("PASSWORD") if matches!(tokens.get(i + 1), Some(Token::Text(_))) => {
                return Some(first_word(&words));
            }
            _ => continue,
        };
        let tag = match (word(i + 1), word(i + 2)) {
            (Some("USER"), Some("MAPPING")) => "USER MAPPING",
            (Some(kind @ ("ROLE" | "USER" | "GROUP" | "SUBSCRIPTION" | "SERVER")), _) => kind,
            (Some("SYSTEM"), _) => "SYSTEM",
            _ => continue,
        };
        return Some(format!("{verb} {tag}"));
    }
    // What was commented out was written all the same.
    let commented = comments(sql).into_iter().any(|comment| {
        has_password(comment) || depth < MAX_DEPTH && secret_tag(comment, depth + 1).is_some()
    });
    if commented {
        return Some(first_word(&words));
    }
    tokens.iter().find_map(|token| match token {
        Token::Text(inside) if has_password(inside) => Some(first_word(&words)),
        Token::Text(inside) if depth < MAX_DEPTH => secret_tag(inside, depth + 1),
        _ => None,
    })
}

fn upper_word(token: &Token<'_>) -> Option<String> {
    match token {
        Token::Word(word) => Some(word.to_uppercase()),
        _ => None,
    }
}

fn first_word(words: &[Option<String>]) -> String {
    words
        .iter()
        .flatten()
        .next()
        .cloned()
        .unwrap_or_else(|| "(statement)".into())
}

fn statement_has(tokens: &[Token<'_>], wanted: &str) -> bool {
    tokens
        .iter()
        .take_while(|token| **token != Token::Symbol(';'))
        .any(|token| matches!(token, Token::Word(word) if word.eq_ignore_ascii_case(wanted)))
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
        ];
        for (sql, tag) in cases {
            assert_eq!(reduce_secret(sql).as_deref(), Some(tag), "{sql}");
        }
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
        ] {
            assert_eq!(reduce_secret(sql), None, "{sql}");
        }
    }
}
