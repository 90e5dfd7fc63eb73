//! Strangers wrote the text: escape sequences, Japanese, secrets, texts that were cut.

use stanch::drill::Server;
use stanch::view::width;

use crate::harness::{self, client, folder, sql, stanch_as, stanch_command};

async fn with_queries(queries: &[(&str, &str)]) -> (Server, Vec<tokio_postgres::Client>) {
    let server = harness::server(&[]).await;
    let mut all = Vec::new();
    for (application, query) in queries {
        let client = client(&server.spec("postgres", "postgres"), "x").await;
        sql(&client, &format!("SET application_name = {application}")).await;
        // Idle sessions show their last statement.
        let _ = client.batch_execute(query).await;
        all.push(client);
    }
    (server, all)
}

/// PostgreSQL cleans application_name of all but ASCII, but a statement may hold any character.
#[tokio::test]
async fn escape_sequences_never_reach_a_terminal() {
    let evil =
        "SELECT 'red \u{1b}[31m bell \u{7} csi \u{9b}2J osc \u{1b}]0;owned\u{7}' /* \u{202e} */";
    let (server, _all) = with_queries(&[("E'\\x1b[31mevil\\x07'", evil)]).await;
    for what in [
        &["pg", "activity"][..],
        &["pg", "activity", "--unredacted"],
        &["triage", "-v"],
        &["pg", "connections"],
        &["pg", "transactions"],
    ] {
        let out = stanch_as(&server.spec("postgres", "postgres"), what)
            .expect_code(0)
            .stdout;
        assert!(!out.chars().any(|c| c.is_control() && c != '\n'), "{out:?}");
        assert!(!out.contains('\u{202e}'), "{out:?}");
    }
    let there = server.spec("postgres", "postgres");
    let activity = stanch_as(&there, &["pg", "activity", "--unredacted"])
        .expect_code(0)
        .stdout;
    assert!(activity.contains("\\x1b[31m"), "{activity}");
    let json = stanch_as(
        &server.spec("postgres", "postgres"),
        &["pg", "activity", "--json", "--unredacted"],
    )
    .expect_code(0);
    assert!(
        json.stdout.contains("\\u001b"),
        "JSON keeps the text, escaped: {}",
        json.stdout
    );
}

#[tokio::test]
async fn japanese_is_cut_by_columns() {
    let query = "SELECT '在庫の引き当てに失敗しました。注文を確認してください。もう一度お試しください。' AS 結果";
    let (server, _all) = with_queries(&[("'shop'", query)]).await;
    for columns in ["60", "80", "101", "132"] {
        let mut command = stanch_command(
            &server.spec("postgres", "postgres"),
            &["pg", "activity", "--unredacted"],
        );
        command.env("COLUMNS", columns);
        let out = harness::run(command).expect_code(0).stdout;
        let most: usize = columns.parse().expect("a number");
        assert!(
            out.lines()
                .any(|row| row.contains("SELECT '在庫の") && row.ends_with('…')),
            "{columns}: {out}"
        );
        for line in out.lines().skip(1) {
            assert!(
                width(line) <= most,
                "{columns}: {} columns: {line}",
                width(line)
            );
        }
    }
    let whole = stanch_as(
        &server.spec("postgres", "postgres"),
        &["pg", "activity", "--unredacted"],
    )
    .expect_code(0)
    .stdout;
    assert!(
        whole.contains(query),
        "without a terminal nothing is cut: {whole}"
    );
}

#[tokio::test]
async fn secrets_are_reduced_before_anything_is_shown_or_saved() {
    let (server, _all) = with_queries(&[
        ("'one'", "CREATE ROLE bob PASSWORD 'hunter2'"),
        ("'two'", "BEGIN; ALTER ROLE bob PASSWORD 'hunter2'"),
        (
            "'three'",
            "COPY (SELECT 1) TO PROGRAM 'curl -u hunter2 >/dev/null'",
        ),
        ("'four'", "ALTER ROLE bob SET search_path = hunter"),
    ])
    .await;
    let spec = server.spec("postgres", "postgres");
    let folder = folder();
    let file = folder.path().join("saved.json");
    let table = stanch_as(
        &spec,
        &["pg", "activity", "--save", &file.display().to_string()],
    )
    .expect_code(0)
    .stdout;
    let saved = std::fs::read_to_string(&file).expect("the file");
    let raw = stanch_as(&spec, &["query", "run", "activity"])
        .expect_code(0)
        .stdout;
    let settings = stanch_as(&spec, &["query", "run", "overrides"])
        .expect_code(0)
        .stdout;
    for text in [&table, &saved, &raw, &settings] {
        assert!(!text.contains("hunter"), "{text}");
    }
    for tag in ["CREATE ROLE", "ALTER ROLE", "COPY … PROGRAM"] {
        assert!(table.contains(tag), "{tag}: {table}");
    }
    let header: serde_json::Value = serde_json::from_str(&saved).expect("JSON");
    assert_eq!(header["redaction"]["statements_reduced"], 4);
    assert!(
        header["redaction"]["rule"]
            .as_str()
            .expect("a rule")
            .contains("command tag")
    );
}

/// The server cuts at track_activity_query_size; a cut text says so.
#[tokio::test]
async fn a_cut_text_says_so() {
    let long = format!("SELECT '{}'", "x".repeat(2000));
    let multibyte = format!("SELECT '{}'", "語".repeat(600));
    let short = format!("SELECT '{}'", "x".repeat(900));
    let (server, _all) = with_queries(&[
        ("'long'", &long),
        ("'multibyte'", &multibyte),
        ("'short'", &short),
    ])
    .await;
    let report = stanch_as(
        &server.spec("postgres", "postgres"),
        &["pg", "activity", "--json"],
    )
    .expect_code(0)
    .json();
    for session in report["sessions"].as_array().expect("sessions") {
        let cut = session["application_name"] != "short";
        assert_eq!(session["query_truncated"], cut, "{session:#}");
    }
    let there = server.spec("postgres", "postgres");
    let table = stanch_as(&there, &["pg", "activity", "--unredacted"])
        .expect_code(0)
        .stdout;
    assert_eq!(
        table.matches("x…").count() + table.matches("語…").count(),
        2,
        "{table}"
    );
}

/// A connection string where a name should be: neither shown nor saved nor exported.
#[tokio::test]
async fn an_application_name_with_a_password() {
    let (server, _all) = with_queries(&[("'postgres://u:hunter2@h/d'", "SELECT 1")]).await;
    let spec = server.spec("postgres", "postgres");
    let folder = folder();
    let file = folder.path().join("saved.json").display().to_string();
    for what in [
        &["pg", "activity"][..],
        &["pg", "activity", "--json", "--save", &file],
        &["pg", "connections"],
        &["pg", "connections", "-o", "prometheus"],
        &["query", "run", "activity"],
    ] {
        let out = stanch_as(&spec, what).expect_code(0).stdout;
        assert!(!out.contains("hunter2"), "{what:?}: {out}");
    }
    let saved = std::fs::read_to_string(&file).expect("the file");
    assert!(!saved.contains("hunter2") && saved.contains("(not shown: a password in a URL)"));
}
