//! What a statement may begin with. A text that begins otherwise is none, and no word of it is shown: it may be a secret
//! that was pasted into the wrong window.

const VERBS: &[&str] = &[
    "ABORT",
    "ALTER",
    "ANALYZE",
    "BEGIN",
    "CALL",
    "CHECKPOINT",
    "CLOSE",
    "CLUSTER",
    "COMMENT",
    "COMMIT",
    "COPY",
    "CREATE",
    "DEALLOCATE",
    "DECLARE",
    "DELETE",
    "DISCARD",
    "DO",
    "DROP",
    "END",
    "EXECUTE",
    "EXPLAIN",
    "FETCH",
    "GRANT",
    "IMPORT",
    "INSERT",
    "LISTEN",
    "LOAD",
    "LOCK",
    "MERGE",
    "MOVE",
    "NOTIFY",
    "PREPARE",
    "REASSIGN",
    "REFRESH",
    "REINDEX",
    "RELEASE",
    "REPACK",
    "RESET",
    "REVOKE",
    "ROLLBACK",
    "SAVEPOINT",
    "SECURITY",
    "SELECT",
    "SET",
    "SHOW",
    "START",
    "TABLE",
    "TRUNCATE",
    "UNLISTEN",
    "UPDATE",
    "VACUUM",
    "VALUES",
    "WAIT",
    "WITH",
    // Of a replication connection.
    "ALTER_REPLICATION_SLOT",
    "BASE_BACKUP",
    "CREATE_REPLICATION_SLOT",
    "DROP_REPLICATION_SLOT",
    "IDENTIFY_SYSTEM",
    "READ_REPLICATION_SLOT",
    "START_REPLICATION",
    "TIMELINE_HISTORY",
    "UPLOAD_MANIFEST",
];

/// Verbs that are a statement without another word.
const ALONE: &[&str] = &[
    "ABORT",
    "ANALYZE",
    "BASE_BACKUP",
    "BEGIN",
    "CHECKPOINT",
    "CLUSTER",
    "COMMIT",
    "END",
    "IDENTIFY_SYSTEM",
    "REPACK",
    "ROLLBACK",
    "UPLOAD_MANIFEST",
    "VACUUM",
];

/// Commands of PgBouncer's console: one word and perhaps a name.
const CONSOLE: &[&str] = &[
    "DISABLE",
    "ENABLE",
    "KILL",
    "PAUSE",
    "RECONNECT",
    "RELOAD",
    "RESUME",
    "SHUTDOWN",
    "SUSPEND",
];

/// What the server puts in place of a statement that it doesn't show.
const SERVER_TEXTS: &[&str] = &[
    "<insufficient privilege>",
    "<command string not enabled>",
    "<backend information not available>",
];

/// Stands for a text that is no statement.
pub(super) const NO_STATEMENT: &str = "(statement)";

fn is_in(word: &str, words: &[&str]) -> bool {
    words.iter().any(|w| word.eq_ignore_ascii_case(w))
}

/// The verb of a statement as it is shown; of a text that begins otherwise it isn't told.
pub(super) fn verb(first: Option<&str>) -> &'static str {
    let known = |verb: &&&str| first.is_some_and(|first| first.eq_ignore_ascii_case(verb));
    VERBS.iter().find(known).copied().unwrap_or(NO_STATEMENT)
}

pub(super) fn is_verb(word: &str) -> bool {
    is_in(word, VERBS)
}

/// What may follow a bracket that a statement begins with.
pub(super) fn is_query_verb(word: &str) -> bool {
    is_in(word, &["SELECT", "TABLE", "VALUES", "WITH"])
}

pub(super) fn stands_alone(word: &str) -> bool {
    is_in(word, ALONE) || is_in(word, CONSOLE)
}

pub(super) fn is_console(word: &str) -> bool {
    is_in(word, CONSOLE)
}

/// What an autovacuum worker says it does: `autovacuum: VACUUM public.t (to prevent wraparound)`.
pub(super) fn is_autovacuum(first: &str, after_colon: &str) -> bool {
    first == "autovacuum" && matches!(after_colon, "VACUUM" | "ANALYZE" | "BRIN")
}

pub(super) fn is_server_text(text: &str) -> bool {
    SERVER_TEXTS.contains(&text.trim_ascii())
}
