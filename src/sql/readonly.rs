//! Whether a statement of a stranger's book is one that only reads. A READ ONLY transaction doesn't make it so: signals, slots,
//! advisory locks and switches of the log are functions, and functions act in it all the same.

use super::lexer::{Token, tokens};

/// What a statement may begin with.
const BEGINS: &[&str] = &["select", "with", "table", "values"];

/// Functions that end or cancel sessions: never in a statement, whoever says yes. Signals go out through the guard only.
const SIGNALS: &[&str] = &["pg_terminate_backend", "pg_cancel_backend"];

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
    for token in &all {
        let name = match token {
            Token::Word(word) | Token::Quoted(word) => folded(word, token),
            _ => continue,
        };
        if SIGNALS.contains(&name.as_str()) {
            return Err(format!(
                "{name} in a statement: sessions are ended by an act only, through its guard"
            ));
        }
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
        if matches!(token, Token::Word(word) if word.eq_ignore_ascii_case("u"))
            && matches!(after, Some(Token::Symbol('&')))
        {
            doubts.push("U&: a name that is written in escapes".into());
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
            ("SELECT query_to_xml('x', true, true, '')", "query_to_xml()"),
            ("SELECT mine.count(1)", "count()"),
            ("SELECT \"Count\"(1)", "Count()"),
            ("SELECT dblink('x', 'y')", "dblink()"),
            (
                "SELECT U&\"pg\\005freload_conf\"()",
                "U&: a name that is written in escapes",
            ),
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
