//! The rules of safety, read off the server's own log: what is sent, and what is never sent.

use std::collections::BTreeSet;

use crate::harness::{self, REPORTS, stanch_as};

/// Everything that a run of each subcommand made the server do.
#[tokio::test]
async fn only_bounded_reads_over_one_connection() {
    let server = harness::server(&[
        ("log_statement", "all"),
        ("log_connections", "on"),
        ("log_min_duration_statement", "-1"),
    ])
    .await;
    let spec = server.spec("postgres", "postgres");
    let log = || std::fs::read_to_string(server.log_file()).expect("the log");
    let mut commands: Vec<Vec<&str>> = REPORTS.iter().map(|what| what.to_vec()).collect();
    for topic in stanch::source::postgres::catalog::all() {
        commands.push(vec!["query", "run", topic.name]);
    }
    for what in commands {
        let from = log().len();
        stanch_as(&spec, &what).expect_code(0);
        let said = log()[from..].to_owned();
        assert_eq!(
            said.matches("connection authorized").count(),
            1,
            "{what:?}: one connection\n{said}"
        );
        for lost in ["unexpected EOF", "could not receive data"] {
            assert!(
                !said.contains(lost),
                "{what:?}: it leaves without a goodbye\n{said}"
            );
        }
        check(&what, &said);
    }
}

fn check(what: &[&str], log: &str) {
    let statements: Vec<&str> = log
        .lines()
        .filter_map(|line| {
            line.split_once("LOG:  statement: ")
                .or_else(|| line.split_once("LOG:  execute "))
                .map(|(_, text)| text)
        })
        .collect();
    assert!(!statements.is_empty(), "{what:?}: {log}");
    let begin = statements
        .iter()
        .find(|s| s.starts_with("BEGIN"))
        .unwrap_or_else(|| panic!("{what:?}: {log}"));
    for bound in [
        "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY NOT DEFERRABLE",
        "SET LOCAL lock_timeout = '300ms'",
        "SET LOCAL idle_in_transaction_session_timeout",
        "SET LOCAL search_path = pg_catalog, pg_temp",
        "SET LOCAL client_encoding = 'SQL_ASCII'",
    ] {
        assert!(begin.contains(bound), "{what:?}: {begin}");
    }
    let mut kinds = BTreeSet::new();
    for statement in &statements {
        let text = statement.strip_prefix("<unnamed>: ").unwrap_or(statement);
        assert!(
            !statement.starts_with('s') || statement.starts_with("select"),
            "a named statement: {statement}"
        );
        let kind = text
            .split_whitespace()
            .next()
            .unwrap_or("")
            .trim_end_matches(';');
        kinds.insert(if text.starts_with("--") {
            "query"
        } else {
            kind
        });
        let lower = text.to_lowercase();
        for never in [
            "pg_cancel_backend",
            "pg_terminate_backend",
            "rollback prepared",
            "commit prepared",
            "regclass",
            "pg_relation_size",
            "pg_total_relation_size",
            "deallocate",
            "discard",
            "prepare ",
        ] {
            assert!(!lower.contains(never), "{what:?}: {statement}");
        }
        assert!(
            !lower.starts_with("set ") && !lower.starts_with("reset "),
            "a setting of the session: {statement}"
        );
    }
    let allowed = BTreeSet::from([
        "BEGIN",
        "SAVEPOINT",
        "ROLLBACK",
        "COMMIT",
        "SELECT",
        "query",
        "",
    ]);
    assert!(kinds.is_subset(&allowed), "{what:?}: {kinds:?}");
    assert_eq!(
        statements.last(),
        Some(&"COMMIT"),
        "{what:?}: the transaction is ended"
    );
    assert!(
        statements
            .iter()
            .any(|s| s.contains("set_config('statement_timeout', $1, true)")),
        "{what:?}"
    );
}
