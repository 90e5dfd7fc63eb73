//! Utility statements whose bare words may be secrets too: settings, labels, options of foreign data.

use super::lexer::Token;
use super::secrets::Text;

/// Settings whose values are of the server's own words and numbers, or names that are shown anyway.
const HARMLESS_SETTINGS: &[&str] = &[
    "bytea_output",
    "client_encoding",
    "client_min_messages",
    "commit_delay",
    "constraint_exclusion",
    "cursor_tuple_fraction",
    "datestyle",
    "default_statistics_target",
    "default_tablespace",
    "default_transaction_deferrable",
    "default_transaction_isolation",
    "default_transaction_read_only",
    "effective_cache_size",
    "effective_io_concurrency",
    "extra_float_digits",
    "from_collapse_limit",
    "geqo",
    "gin_fuzzy_search_limit",
    "hash_mem_multiplier",
    "intervalstyle",
    "jit",
    "join_collapse_limit",
    "lc_messages",
    "lc_monetary",
    "lc_numeric",
    "lc_time",
    "log_duration",
    "log_error_verbosity",
    "log_min_duration_statement",
    "log_min_messages",
    "log_statement",
    "maintenance_work_mem",
    "max_parallel_maintenance_workers",
    "max_parallel_workers",
    "max_parallel_workers_per_gather",
    "names",
    "parallel_leader_participation",
    "plan_cache_mode",
    "quote_all_identifiers",
    "random_page_cost",
    "role",
    "row_security",
    "search_path",
    "seq_page_cost",
    "session_replication_role",
    "standard_conforming_strings",
    "synchronize_seqscans",
    "synchronous_commit",
    "temp_buffers",
    "temp_tablespaces",
    "timezone",
    "transaction_deferrable",
    "transaction_isolation",
    "transaction_read_only",
    "vacuum_cost_delay",
    "vacuum_cost_limit",
    "work_mem",
    "xmloption",
];

/// Stands where masking cut a text to its verb: nothing of it is left.
const LEFT_OUT: &str = "…";

/// What follows `SET` and is no setting.
const SPECIAL: &[&str] = &[
    "AUTHORIZATION",
    "CHARACTERISTICS",
    "CONSTRAINTS",
    "SCHEMA",
    "TABLESPACE",
    "TRANSACTION",
];

fn is_harmless(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let prefixed = name.strip_prefix("enable_").is_some_and(|rest| {
        !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
    });
    HARMLESS_SETTINGS.contains(&name.as_str()) || is_timeout(&name) || prefixed
}

fn is_timeout(name: &str) -> bool {
    matches!(
        name,
        "statement_timeout"
            | "lock_timeout"
            | "transaction_timeout"
            | "idle_in_transaction_session_timeout"
            | "idle_session_timeout"
            | "deadlock_timeout"
            | "client_connection_check_interval"
            | "tcp_keepalives_idle"
            | "tcp_keepalives_interval"
            | "tcp_keepalives_count"
            | "tcp_user_timeout"
    )
}

/// The tag of the utility statement that begins at a token, if it may carry a secret in more than its literals. In what
/// isn't `code` only the unmistakable ones count.
pub(super) fn tag(text: &Text<'_>, at: usize, code: bool) -> Option<String> {
    if is_call(text.tokens, at) {
        return call_tag(text, at);
    }
    let first = text.word(at)?;
    if matches!(first, "CREATE" | "ALTER") {
        return definition_tag(first, text, at);
    }
    if !code || !begins_statement(text, at) {
        return None;
    }
    match (first, text.word(at + 1)) {
        ("SET", _) => (!sets_harmless(text, at + 1)).then(|| "SET".into()),
        ("SECURITY", Some("LABEL")) => Some("SECURITY LABEL".into()),
        ("COMMENT", Some("ON")) => Some("COMMENT".into()),
        ("IMPORT", Some("FOREIGN")) => Some("IMPORT FOREIGN SCHEMA".into()),
        ("LOAD", name) if name != Some(LEFT_OUT) => Some("LOAD".into()),
        _ => None,
    }
}

/// `CREATE` and `ALTER` of what has options or settings.
fn definition_tag(verb: &str, text: &Text<'_>, at: usize) -> Option<String> {
    let has_options = text.options.get(at).is_some_and(Option::is_some);
    let set = text.set.get(at).copied().flatten();
    let sets = set.is_some_and(|set| !sets_harmless(text, set + 1));
    let tag = match (text.word(at + 1)?, text.word(at + 2)) {
        ("FOREIGN", Some("DATA")) => "FOREIGN DATA WRAPPER",
        ("FOREIGN", Some("TABLE")) if has_options => "FOREIGN TABLE",
        ("DATABASE", _) if sets => "DATABASE",
        (kind @ ("FUNCTION" | "PROCEDURE" | "ROUTINE"), _) if verb == "ALTER" && sets => kind,
        _ => return None,
    };
    Some(format!("{verb} {tag}"))
}

/// What stands behind `SET` names a setting whose value is no secret. A cut text has no name yet, and no value.
fn sets_harmless(text: &Text<'_>, mut at: usize) -> bool {
    if matches!(text.word(at), Some("LOCAL" | "SESSION")) {
        at += 1;
    }
    let Some(token) = text.tokens.get(at) else {
        return true;
    };
    let dotted = text.tokens.get(at + 1) == Some(&Token::Symbol('.'));
    let name = match token {
        Token::Word(LEFT_OUT) => return true,
        Token::Word(name) => *name,
        Token::Quoted(name) => name.trim_matches('"'),
        _ => return false,
    };
    let special = match text.word(at) {
        Some("TIME") => text.word(at + 1) == Some("ZONE"),
        Some("XML") => text.word(at + 1) == Some("OPTION"),
        Some(word) => SPECIAL.contains(&word),
        None => false,
    };
    !dotted && (special || is_harmless(name))
}

/// At the head of the text, behind a semicolon, or behind what opens a block of a procedure.
fn begins_statement(text: &Text<'_>, at: usize) -> bool {
    const OPENS: &[&str] = &["BEGIN", "THEN", "ELSE", "LOOP", "ANALYZE", "ATOMIC"];
    let Some(before) = at.checked_sub(1) else {
        return true;
    };
    text.tokens[before] == Token::Symbol(';')
        || text.word(before).is_some_and(|word| OPENS.contains(&word))
}

fn is_call(tokens: &[Token<'_>], at: usize) -> bool {
    matches!(tokens[at], Token::Word(_) | Token::Quoted(_))
        && tokens.get(at + 1) == Some(&Token::Symbol('('))
}

/// `set_config('…', '…', …)` of anything but harmless settings, `dblink*('…')`.
fn call_tag(text: &Text<'_>, at: usize) -> Option<String> {
    let (Token::Word(name) | Token::Quoted(name)) = text.tokens[at] else {
        return None;
    };
    let name = name.trim_matches('"').to_ascii_lowercase();
    if name.starts_with("dblink") {
        let literal = text.last_literal.is_some_and(|last| last > at);
        return literal.then(|| text.verb());
    }
    if name != "set_config" {
        return None;
    }
    let arg = |n: usize| text.tokens.get(at + 2 + n);
    let harmless = matches!(arg(0), Some(Token::Text(setting)) if is_harmless(setting));
    // `set_config('…', $2, …)` shows nothing of its value, and neither does one that was masked before.
    let bound = arg(1) == Some(&Token::Symbol(','))
        && matches!(
            arg(2),
            Some(Token::Param(_) | Token::Symbol('?') | Token::Word(LEFT_OUT)) | None
        );
    let cut = arg(1).is_none();
    (!(harmless || bound || cut)).then(|| text.verb())
}

#[cfg(test)]
mod tests {
    use crate::sql::reduce_secret;

    #[test]
    fn what_may_carry_a_secret_in_bare_words() {
        for (sql, tag) in [
            ("SET app.jwt_secret = 'hunter2'", "SET"),
            ("set session app.key to hunter2", "SET"),
            ("SET application_name = 'x'", "SET"),
            ("SELECT 1; SET LOCAL my.token = x", "SET"),
            ("SET \"app.key\" = 'x'", "SET"),
            ("select set_config('app.key', 'hunter2', false)", "SELECT"),
            (
                "select pg_catalog.set_config($1, 'hunter2', false)",
                "SELECT",
            ),
            ("ALTER DATABASE shop SET app.key = 'x'", "ALTER DATABASE"),
            ("ALTER FUNCTION f() SET app.key = 'x'", "ALTER FUNCTION"),
            ("ALTER ROLE bob SET app.key = 'x'", "ALTER ROLE"),
            (
                "SECURITY LABEL ON COLUMN a.b IS 'hunter2'",
                "SECURITY LABEL",
            ),
            ("COMMENT ON ROLE bob IS 'hunter2'", "COMMENT"),
            (
                "create foreign table t (a int) server s options (x 'y')",
                "CREATE FOREIGN TABLE",
            ),
            (
                "ALTER FOREIGN DATA WRAPPER w OPTIONS (x 'y')",
                "ALTER FOREIGN DATA WRAPPER",
            ),
            (
                "IMPORT FOREIGN SCHEMA a FROM SERVER s INTO b OPTIONS (x 'y')",
                "IMPORT FOREIGN SCHEMA",
            ),
            ("LOAD 'hunter2'", "LOAD"),
            ("select dblink_exec('c', 'select 1')", "SELECT"),
            ("DO $$ BEGIN SET app.key = 'x'; END $$", "SET"),
        ] {
            assert_eq!(reduce_secret(sql).as_deref(), Some(tag), "{sql}");
        }
    }

    #[test]
    fn what_does_not_stays_whole() {
        for sql in [
            "SET statement_timeout = '5s'",
            "set local lock_timeout to 100",
            "SET search_path TO a, b",
            "SET TIME ZONE 'UTC'",
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
            "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            "SET SESSION AUTHORIZATION bob",
            "SET",
            "UPDATE t SET app = 1",
            "INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET b = 2",
            "select set_config('search_path', 'x', true)",
            "select set_config('request.jwt.claims', $1, true)",
            "ALTER DATABASE shop SET work_mem = '4MB'",
            "ALTER DATABASE shop RENAME TO store",
            "ALTER TABLE t ALTER COLUMN a SET DEFAULT 1",
            "create foreign table t (a int) server s",
            "select comment, security, load from t",
            "CREATE FUNCTION f() RETURNS int SET search_path = a AS $$ select 1 $$ LANGUAGE sql",
            "NOTIFY ch, 'payload'",
            "insert into notes values ('Set up a call'), ('Comment on it; load the rest')",
            "/* Load the users */ select 1 -- set x",
        ] {
            assert_eq!(reduce_secret(sql), None, "{sql}");
        }
    }
}
