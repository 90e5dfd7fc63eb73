//! Whether a statement of a stranger's book is one that only reads. A READ ONLY transaction doesn't make it so: signals, slots,
//! advisory locks and switches of the log are functions, and functions act in it all the same.

use super::lexer::{Token, tokens};

/// What a statement may begin with.
const BEGINS: &[&str] = &["select", "with", "table", "values"];

/// Functions that end or cancel sessions, and those that carry out a text: never in a statement, whoever says yes. Signals
/// go out through the guard only.
const NEVER: &[&str] = &[
    "pg_terminate_backend",
    "pg_cancel_backend",
    "query_to_xml",
    "cursor_to_xml",
    "ts_stat",
    "ts_rewrite",
    "dblink",
];

/// Functions of `pg_catalog` (12 to 18) that the server calls volatile, one a line: what they do isn't known by their result.
const VOLATILE: &str = include_str!("volatile.txt");

/// Words that a bracket may follow without a call.
#[rustfmt::skip]
const NOT_CALLS: &[&str] = &[
    "all", "and", "any", "array", "as", "between", "by", "case", "cube", "distinct", "else", "end", "except", "exists", "filter",
    "from", "group", "having", "in", "inner", "intersect", "is", "join", "lateral", "left", "like", "ilike", "limit", "materialized",
    "not", "offset", "on", "or", "order", "over", "partition", "right", "rollup", "row", "rows", "select", "sets", "some", "then",
    "union", "using", "values", "when", "where",
];

/// Types that are written with a bracket.
#[rustfmt::skip]
const TYPES: &[&str] = &[
    "bit", "char", "character", "decimal", "float", "interval", "numeric", "time", "timestamp", "timestamptz", "timetz", "varchar",
];

/// Functions of `pg_catalog` (12 to 18) that read, compute, and change nothing.
#[rustfmt::skip]
const HARMLESS: &[&str] = &[
    "abs", "age", "array_agg", "array_length", "array_position", "array_to_string", "avg", "bit_length", "bool_and", "bool_or",
    "btrim", "cardinality", "cast", "ceil", "ceiling", "char_length", "clock_timestamp", "coalesce", "col_description", "concat", "concat_ws",
    "corr", "count", "current_database", "current_schema", "current_schemas", "current_setting", "date_part", "date_trunc",
    "dense_rank", "div", "every", "exp", "extract", "first_value", "floor", "format", "format_type", "generate_series",
    "generate_subscripts", "greatest", "has_database_privilege", "has_schema_privilege", "has_table_privilege", "host",
    "inet_server_addr", "inet_server_port", "initcap", "json_agg", "json_array_elements", "json_build_object", "json_each",
    "jsonb_agg", "jsonb_array_elements", "jsonb_build_object", "jsonb_each", "justify_interval", "lag", "last_value", "lead",
    "least", "left", "length", "ln", "log", "lower", "lpad", "ltrim", "make_interval", "max", "md5", "min", "mod", "mode", "now",
    "ntile", "nullif", "num_nonnulls", "num_nulls", "obj_description", "percent_rank", "percentile_cont", "percentile_disc",
    "pg_backend_pid", "pg_blocking_pids", "pg_conf_load_time", "pg_database_size", "pg_get_constraintdef", "pg_get_expr",
    "pg_get_indexdef", "pg_get_userbyid", "pg_has_role", "pg_is_in_recovery", "pg_last_wal_receive_lsn",
    "pg_last_wal_replay_lsn", "pg_last_xact_replay_timestamp", "pg_current_wal_lsn", "pg_postmaster_start_time",
    "pg_size_pretty", "pg_table_is_visible", "pg_wal_lsn_diff", "position", "power", "quote_ident", "rank",
    "regexp_matches", "regexp_replace", "repeat", "replace", "right", "round", "row_number", "row_to_json", "rpad", "rtrim",
    "sign", "split_part", "sqrt", "stddev", "string_agg", "strpos", "substr", "substring", "sum", "to_char", "to_json",
    "to_jsonb", "to_timestamp", "trim", "trunc", "unnest", "upper", "variance", "version",
];

/// One statement that begins as a read does, and calls nothing that signals.
///
/// # Errors
/// What it is instead.
pub fn one_read(sql: &str) -> Result<(), String> {
    let all = tokens(sql);
    let Some(Token::Word(first)) = all.first() else {
        return Err("a statement begins with SELECT, WITH, TABLE or VALUES".into());
    };
    if !BEGINS.contains(&first.to_ascii_lowercase().as_str()) {
        return Err(format!(
            "a statement begins with SELECT, WITH, TABLE or VALUES, not with {first}"
        ));
    }
    if all.iter().any(|token| matches!(token, Token::Symbol(';'))) {
        return Err("one statement, without a semicolon".into());
    }
    plain(sql, &all)?;
    // In texts and comments too: without escapes a name can't be spelled in another way, and a text may be carried out.
    let lower = sql.to_lowercase();
    match NEVER.iter().find(|name| lower.contains(**name)) {
        Some(name) => Err(format!(
            "{name} in a statement: sessions are ended by an act only, through its guard"
        )),
        None => Ok(()),
    }
}

/// Written so that there is one way to read it, on every server and with every setting.
fn plain(sql: &str, all: &[Token<'_>]) -> Result<(), String> {
    if let Some(c) = sql
        .chars()
        .find(|c| c.is_control() && !matches!(c, '\n' | '\t'))
    {
        return Err(format!(
            "a control character in a statement: {:?}",
            c.to_string()
        ));
    }
    if sql.contains('\\') {
        return Err(
            "no backslash in a statement: it is read in one way or another by a setting".into(),
        );
    }
    for (n, token) in all.iter().enumerate() {
        let next = all.get(n + 1);
        match token {
            Token::Symbol('$') => return Err("no dollar quotes in a statement".into()),
            Token::Symbol('&')
                if n > 0
                    && matches!(all[n - 1], Token::Word("u" | "U"))
                    && matches!(next, Some(Token::Text(_) | Token::Quoted(_))) =>
            {
                return Err("no U& in a statement: it hides a name".into());
            }
            Token::Number(text) if text.contains(['x', 'X', 'o', 'O', 'b', 'B', '_']) => {
                return Err(format!("{text}: a number in digits only"));
            }
            Token::Word(text) | Token::Quoted(text) if !text.is_ascii() => {
                return Err(format!("{text}: a name in ASCII only"));
            }
            _ => {}
        }
    }
    // Between quotes only: `$tag$ … $tag$` is a text for the lexer.
    let texts: usize = all.iter().filter(|t| matches!(t, Token::Text(_))).count();
    let dollars = sql
        .match_indices('$')
        .filter(|(at, _)| !sql[at + 1..].starts_with(|c: char| c.is_ascii_digit()));
    let in_quotes: usize = all
        .iter()
        .filter_map(|t| match t {
            Token::Text(text) => Some(text.matches('$').count()),
            _ => None,
        })
        .sum();
    if texts > 0 && dollars.count() > in_quotes {
        return Err("no dollar quotes in a statement".into());
    }
    Ok(())
}

/// What can't be told to be harmless about it: functions that aren't on the list, spellings that hide a name. Empty where
/// it can.
pub fn doubts(sql: &str) -> Vec<String> {
    let all = tokens(sql);
    let mut doubts: Vec<String> = Vec::new();
    for (n, token) in all.iter().enumerate() {
        let name = match token {
            Token::Word(word) | Token::Quoted(word) => folded(word, token),
            _ => continue,
        };
        let before = n.checked_sub(1).and_then(|n| all.get(n));
        let after = all.get(n + 1);
        // `x.name` calls it as well as `name(x)` does.
        if !is_harmless(&name) && VOLATILE.lines().any(|volatile| volatile == name) {
            doubts.push(format!("{name}()"));
            continue;
        }
        let dotted = matches!(before, Some(Token::Symbol('.')));
        let of = |back: usize| n.checked_sub(back).and_then(|n| all.get(n));
        if dotted && matches!(of(2), Some(Token::Symbol(')' | ']'))) && !is_harmless(&name) {
            doubts.push(format!("(…).{name}"));
        }
        // A type or an operator of somebody's own schema is read by somebody's own function.
        let own_schema = |schema: Option<&Token<'_>>| !matches!(schema, Some(Token::Word(word) | Token::Quoted(word)) if word.trim_matches('"').eq_ignore_ascii_case("pg_catalog"));
        if dotted && own_schema(of(2)) {
            let cast = matches!(of(3), Some(Token::Symbol(':')))
                || matches!(of(3), Some(Token::Word(word)) if word.eq_ignore_ascii_case("as"))
                || matches!(after, Some(Token::Text(_)));
            if cast {
                doubts.push(format!("type {name}"));
            }
        }
        if !matches!(after, Some(Token::Symbol('('))) {
            continue;
        }
        let bare = matches!(token, Token::Word(_));
        let of_schema = matches!(before, Some(Token::Symbol('.')));
        if of_schema {
            let schema = n.checked_sub(2).and_then(|n| all.get(n));
            let system = matches!(schema, Some(Token::Word(word) | Token::Quoted(word))
                if folded(word, schema.unwrap_or(&Token::Symbol('.'))) == "pg_catalog");
            if system && is_harmless(&name) {
                continue;
            }
        } else {
            let follows = |words: &[&str]| matches!(before, Some(Token::Word(word)) if words.iter().any(|w| word.eq_ignore_ascii_case(w)));
            // `AS t (a, b)` names columns, `WITH t (a, b) AS` too.
            let named = follows(&["as", "with", "recursive"]) && !TYPES.contains(&name.as_str());
            let word =
                bare && (NOT_CALLS.contains(&name.as_str()) || TYPES.contains(&name.as_str()));
            if named || word || is_harmless(&name) {
                continue;
            }
        }
        doubts.push(format!("{name}()"));
    }
    doubts.sort();
    doubts.dedup();
    doubts
}

fn is_harmless(name: &str) -> bool {
    HARMLESS.contains(&name) || name.starts_with("pg_stat_get_")
}

/// The highest `$n`.
pub fn params(sql: &str) -> usize {
    let all = tokens(sql).into_iter().filter_map(|token| match token {
        Token::Param(text) => text.trim_start_matches('$').parse::<usize>().ok(),
        _ => None,
    });
    all.max().unwrap_or(0)
}

/// As the server reads a name: bare ones in lower case.
fn folded(word: &str, token: &Token<'_>) -> String {
    match token {
        Token::Quoted(_) => word.trim_matches('"').replace("\"\"", "\""),
        _ => word.to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_statement_that_reads() {
        for good in [
            "SELECT 1",
            "with x as (select 1) table x",
            "VALUES (1), (2)",
            "TABLE pg_stat_database",
            "/* why */ select ';' -- and ; here",
            "SELECT 'gr\u{fc}n, $5 & 1_0', $1::int, 1e-5 FROM public.t",
        ] {
            assert_eq!(one_read(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "DELETE FROM x",
            "(SELECT 1)",
            "EXPLAIN ANALYZE SELECT 1",
            "SELECT 1; SELECT 2",
            "SELECT 1;",
            "SELECT 1 AS a --\r, pg_reload_conf()",
            "SELECT E'a'\n'\\' , ' , pg_reload_conf()::text AS k, ''",
            "SELECT $\u{2192}$ ' $\u{2192}$ AS a",
            "SELECT $$x$$",
            "SELECT $a$x$a$, 'y'",
            "SELECT 0x1e-pg_reload_conf()::int",
            "SELECT U&\"pg\\005freload_conf\"()",
            "SELECT U&'!0070' UESCAPE '!'",
            "SELECT 'x\\'",
            "SELECT 1 AS n\u{e4}mlich",
            "SELECT query_to_xml('select 1', true, true, '')",
            "SELECT 'pg_terminate_backend'",
            "SELECT pg_terminate_backend(1)",
            "SELECT PG_CATALOG.Pg_Cancel_Backend(1)",
            "SELECT \"pg_terminate_backend\"(1)",
            "SET x = 1",
            "COPY x TO PROGRAM 'y'",
        ] {
            assert!(one_read(bad).is_err(), "{bad}");
        }
        assert_eq!(params("SELECT $2, $1::int, '$9'"), 2);
    }

    #[test]
    fn what_isnt_known_to_be_harmless_is_told() {
        let none: [&str; 0] = [];
        for good in [
            "SELECT datname, deadlocks FROM pg_stat_database WHERE datname = current_database()",
            "SELECT count(*) FILTER (WHERE state = 'active') FROM pg_catalog.pg_stat_get_activity(NULL)",
            "SELECT x::numeric(10, 2), CAST(y AS varchar(3)) FROM (VALUES (1, 2)) AS t (x, y) WHERE x IN (1) AND (y > 2)",
            "WITH RECURSIVE a (n) AS (SELECT 1 UNION ALL (SELECT n + 1 FROM a WHERE n < 5)) SELECT max(n) FROM a",
            "SELECT extract(epoch FROM now() - pg_catalog.pg_postmaster_start_time())",
        ] {
            assert_eq!(doubts(good), none, "{good}");
        }
        for (bad, what) in [
            ("SELECT pg_reload_conf()", "pg_reload_conf()"),
            ("SELECT pg_advisory_lock (1)", "pg_advisory_lock()"),
            (
                "SELECT ('x'::name).pg_drop_replication_slot",
                "pg_drop_replication_slot()",
            ),
            (
                "SELECT x.pg_read_file FROM unnest(ARRAY['PG_VERSION']) AS x",
                "pg_read_file()",
            ),
            ("SELECT ('x'::name).theirs", "(…).theirs"),
            ("SELECT '1'::mine.kind", "type kind"),
            ("SELECT CAST('1' AS mine.kind)", "type kind"),
            ("SELECT mine.kind '1'", "type kind"),
            ("SELECT 1 OPERATOR(mine.+) 2", "operator()"),
            ("SELECT mine.count(1)", "count()"),
            ("SELECT \"Count\"(1)", "Count()"),
            ("SELECT dblink('x', 'y')", "dblink()"),
            (
                "SELECT pg_logical_emit_message(true, 'a', 'b')",
                "pg_logical_emit_message()",
            ),
        ] {
            assert!(
                doubts(bad).iter().any(|d| d == what),
                "{bad}: {:?}",
                doubts(bad)
            );
        }
    }
}
