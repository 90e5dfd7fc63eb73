//! Whether a text that was masked or reduced still says which statement it was.

use super::lexer::{Token, tokens};
use super::verbs::{NO_STATEMENT, is_server_text, is_verb, stands_alone};

/// What the tags of `CREATE` and `ALTER` end in. A statement has a name behind it.
const KINDS: &[&str] = &[
    "DATABASE",
    "FOREIGN DATA WRAPPER",
    "FOREIGN TABLE",
    "FUNCTION",
    "GROUP",
    "PROCEDURE",
    "ROLE",
    "ROUTINE",
    "SERVER",
    "SUBSCRIPTION",
    "SYSTEM",
    "USER",
    "USER MAPPING",
];

/// Whether two statements of which one has this text differ in values only. Not so for what was cut (`SELECT …`), for the
/// tag of what may carry a secret (`ALTER ROLE`), for `DO ?`, and for what was never shown.
///
/// Lists of values that were folded (`(?, …)`) are whole.
pub fn is_whole(text: &str) -> bool {
    if text.trim_ascii() == NO_STATEMENT || is_server_text(text) {
        return false;
    }
    let mut all = tokens(text);
    while all.last() == Some(&Token::Symbol(';')) {
        all.pop();
    }
    !(is_cut(&all) || is_block(&all) || is_tag(&all))
}

fn is_cut(all: &[Token<'_>]) -> bool {
    (0..all.len()).any(|at| {
        let folded = matches!(
            all[..at],
            [.., Token::Symbol('?' | ')'), Token::Symbol(',')]
        );
        all[at] == Token::Word("…") && !folded
    })
}

/// `DO ?`, `DO LANGUAGE plpgsql ?`, `DO ? LANGUAGE plpgsql`: nothing of it is left.
fn is_block(all: &[Token<'_>]) -> bool {
    let is = |token: &Token<'_>, word: &str| matches!(token, Token::Word(w) if w.eq_ignore_ascii_case(word));
    match all {
        [first, Token::Symbol('?')] => is(first, "DO"),
        [first, language, _, Token::Symbol('?')] | [first, Token::Symbol('?'), language, _] => {
            is(first, "DO") && is(language, "LANGUAGE")
        }
        _ => false,
    }
}

fn is_tag(all: &[Token<'_>]) -> bool {
    let mut words = Vec::new();
    for token in all {
        let Token::Word(word) = token else {
            return false;
        };
        words.push(word.to_ascii_uppercase());
    }
    match &words[..] {
        [] => false,
        [one] => is_verb(one) && !stands_alone(one),
        [first, rest @ ..] => match first.as_str() {
            "CREATE" | "ALTER" => KINDS.contains(&rest.join(" ").as_str()),
            "SECURITY" => rest == ["LABEL"],
            "IMPORT" => rest == ["FOREIGN", "SCHEMA"],
            _ => false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::is_whole;
    use crate::sql::shown;

    #[test]
    fn statements_are() {
        for sql in [
            "COMMIT",
            "begin;",
            "ROLLBACK",
            "END",
            "CHECKPOINT",
            "DISCARD ALL",
            "VACUUM",
            "LISTEN x",
            "SHOW work_mem",
            "IDENTIFY_SYSTEM",
            "select 1",
            "select * from t where a in (1, 2, 3) and b = array['a', 'b']",
            "insert into t values (1, 2), (3, 4) returning a",
            "ALTER TABLE t ADD a int",
            "ALTER DATABASE shop SET work_mem = '4MB'",
            "CREATE FUNCTION f() RETURNS int AS $$ select 1 $$ LANGUAGE sql",
            "select \"a …\" from t",
            "autovacuum: VACUUM public.t",
            "",
        ] {
            let text = shown(sql).text;
            assert!(is_whole(&text), "{sql}: {text}");
        }
    }

    #[test]
    fn what_was_cut_or_reduced_is_not() {
        for sql in [
            "hunter2",
            "select 1; hunter2",
            r"select 'it\'s' from t",
            "insert into t values (1), (2), ('it's",
            "insert into t values (1), (2, 'it's x'), (3)",
            "select 'a', 'b', 'it's",
            "alter thing password = hunter2",
            "DO $$ BEGIN PERFORM 1; END $$",
            "do language plpgsql $$ begin end $$;",
            "ALTER ROLE bob PASSWORD 'x'",
            "CREATE USER bob",
            "ALTER SYSTEM SET a = 1",
            "create user mapping for x server y options (password 'x')",
            "create foreign table t (a int) server s options (x 'y')",
            "ALTER FOREIGN DATA WRAPPER w OPTIONS (x 'y')",
            "ALTER DATABASE shop SET app.key = 'x'",
            "ALTER FUNCTION f() SET app.key = 'x'",
            "copy t from program 'x'",
            "SET app.key = 'x'",
            "SECURITY LABEL ON COLUMN a.b IS 'x'",
            "COMMENT ON ROLE bob IS 'x'",
            "IMPORT FOREIGN SCHEMA a FROM SERVER s INTO b",
            "LOAD 'x'",
            "select dblink_exec('c', 'select 1')",
            "BEGIN; select dblink_exec('c', 'select 1')",
            "VACUUM /* password=x */",
            "<insufficient privilege>",
        ] {
            let text = shown(sql).text;
            assert!(!is_whole(&text), "{sql}: {text}");
        }
    }
}
