//! Logs that aren't UTF-8, and prefixes that have more names than the shape that fits them.

use serde_json::Value;

use crate::deadlocks::{json, stanch, temporary};

/// A deadlock as a server in this language writes it: labels of the message, its detail and its statement; a secret is in the
/// statements.
fn log(labels: [&str; 3], edge: [&str; 3], of: &str) -> String {
    let [error, detail, statement] = labels;
    let [before, between, behind] = edge;
    let prefix = "2026-12-01 05:09:16.651 UTC [4477] web@ej ";
    let update = |id: i32| format!("update orders set note='LEAKsecret' where id={id};");
    let waits = |pid: i32, xid: i32, by: i32| format!("{before}{pid}{between}{xid}{behind}{by}.");
    format!(
        "{prefix}{error}:  {of}\n{prefix}{detail}:  {}\n\t{}\n\t{of} 4477: {}\n\t{of} 4478: {}\n{prefix}{statement}:  {}\n",
        waits(4477, 891, 4478),
        waits(4478, 890, 4477),
        update(2),
        update(1),
        update(2),
    )
}

#[test]
fn a_deadlock_in_the_encoding_of_its_database() {
    let japanese = log(
        ["エラー", "詳細", "文"],
        [
            "プロセス ",
            " は ShareLock を トランザクション ",
            " で待機していましたが、プロセス ",
        ],
        "プロセス",
    );
    let french = log(
        ["ERREUR", "DÉTAIL", "INSTRUCTION"],
        [
            "Le processus ",
            " attend ShareLock sur transaction ",
            " ; bloqué par le processus ",
        ],
        "Processus",
    );
    let russian = log(
        ["ОШИБКА", "ПОДРОБНОСТИ", "ОПЕРАТОР"],
        [
            "Процесс ",
            " ожидает в режиме ShareLock блокировку \"транзакция ",
            "\"; заблокирован процессом ",
        ],
        "Процесс",
    );
    for (text, encoding) in [
        (&japanese, encoding_rs::EUC_JP),
        (&french, encoding_rs::WINDOWS_1252),
        (&russian, encoding_rs::KOI8_R),
        (&russian, encoding_rs::WINDOWS_1251),
    ] {
        let (bytes, _, bad) = encoding.encode(text);
        assert!(!bad);
        let (_folder, utf8) = temporary("utf8.log", text.as_bytes());
        let (_folder, own) = temporary("own.log", &bytes);
        let circle = |path: &str| json(&[path])["deadlocks"][0]["members"].clone();
        let expected = circle(&utf8);
        assert_eq!(
            expected.as_array().map(Vec::len),
            Some(2),
            "{}",
            encoding.name()
        );
        assert_eq!(circle(&own), expected, "{}", encoding.name());
        for args in [&[own.as_str()][..], &[&own, "--json"], &[&own, "--wide"]] {
            let run = stanch(args, b"");
            assert!(!run.out.contains("LEAK"), "{}", run.out);
        }
        assert_eq!(
            stanch(&[&own, "--check"], b"").code,
            1,
            "{}",
            encoding.name()
        );
    }
}

/// What is glued to a message, since nothing tells it apart, is no part of what is waited for.
#[test]
fn no_text_of_another_line_is_a_name() {
    let log = "2026-12-01 05:09:16.651 UTC [4477] LOG:  process 4477 still waiting for ExclusiveLock on page 3 of some thing 9 after 1000.1 ms\n\
        2026-12-01 05:09:16.651 UTC [4477] \u{15b}\u{15b}\u{15b}: update orders set note='LEAKsecret' where id=2;\n";
    let (_folder, path) = temporary("a.log", log.as_bytes());
    for args in [&[path.as_str()][..], &[&path, "--json"], &[&path, "--wide"]] {
        let run = stanch(args, b"");
        assert!(!run.out.contains("LEAK"), "{}", run.out);
    }
}

#[test]
fn two_names_are_none_where_the_shape_has_one() {
    let log = |who: &str| {
        let prefix = format!("2026-11-30 10:00:01.123 UTC [501] {who} ");
        format!(
            "{prefix}LOG:  process 501 still waiting for ShareLock on transaction 742 after 1000.603 ms\n\
             {prefix}DETAIL:  Process holding the lock: 502. Wait queue: 501.\n\
             {prefix}STATEMENT:  update accounts set x=1 where id=2;\n"
        )
    };
    let session = |who: &str, more: &[&str]| {
        let (_folder, path) = temporary("a.log", log(who).as_bytes());
        let report = json(&[&[path.as_str()], more].concat());
        let wait = &report["lock_waits"]["longest"][0];
        assert_eq!(wait["pid"], 501, "{report}");
        ["user", "database", "application_name"].map(|name| wait[name].clone())
    };
    let (user, database, application) = ("app_rw".into(), "shop".into(), "web-api".into());
    assert_eq!(session("app_rw@shop", &[]), [user, database, Value::Null]);
    let (user, database) = (Value::from("app_rw"), Value::from("shop"));
    assert_eq!(
        session("app_rw@shop web-api", &[]),
        [user.clone(), Value::Null, Value::Null]
    );
    assert_eq!(
        session("web-api app_rw@shop", &[]),
        [Value::Null, database.clone(), Value::Null]
    );
    let prefix = ["--prefix", "%m [%p] %u@%d %a "];
    assert_eq!(
        session("app_rw@shop web-api", &prefix),
        [user, database, application]
    );
}
