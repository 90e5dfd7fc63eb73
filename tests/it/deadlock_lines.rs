//! `pg deadlocks` by the lines around a report: what a CONTEXT says, what each member's own wait says, and what neither does.

use serde_json::Value;

use crate::deadlocks::{folder, json, stanch, temporary};

/// In a language each: a wait for an advisory lock in a function whose statement has numbers in brackets, and texts.
fn languages() -> Vec<String> {
    let log = std::fs::read_to_string(folder().join("context.log")).expect("a log");
    let japanese = log
        .replace("SQL statement ", "SQL文 ")
        .replace("CONTEXT:", "文脈:")
        .replace("STATEMENT:", "文:")
        .replace("DETAIL:", "詳細:");
    let french = log
        .replace("SQL statement \"", "instruction SQL « ")
        .replace("limit 1\"", "limit 1 »");
    vec![log, japanese, french]
}

#[test]
fn sql_of_a_context_is_no_name() {
    for log in languages() {
        let (_folder, path) = temporary("a.log", log.as_bytes());
        for args in [
            &[][..],
            &["--json"],
            &["-o", "md"],
            &["-o", "csv", "--list", "members"],
            &["-o", "csv", "--list", "groups"],
            &["-o", "csv", "--list", "lock_waits"],
        ] {
            let run = stanch(&[&[path.as_str()], args].concat(), b"");
            assert_eq!(run.code, 0, "{}", run.err);
            for part in ["Meier", "4711", "from parent"] {
                assert!(!run.out.contains(part), "{part}: {}", run.out);
            }
        }
        let report = json(&[&path, "--unredacted"]);
        let deadlock = &report["deadlocks"][0];
        assert_eq!(deadlock["relations"], serde_json::json!([]), "{log}");
        assert_eq!(deadlock["members"][0]["relation"], Value::Null);
        let waits = report["lock_waits"]["longest"].as_array().expect("waits");
        assert_eq!(waits.len(), 2);
        for wait in waits {
            assert_eq!(wait["relation"], Value::Null, "{wait}");
        }
        assert!(moments(&path).iter().all(|what| !what.contains("Meier")));
    }
}

/// What a bundle and a postmortem have of it.
fn moments(path: &str) -> Vec<String> {
    let events = crate::deadlocks::all_events(path.as_ref());
    stanch::logs::moments(&events, &stanch::analysis::deadlocks::relations)
        .into_iter()
        .map(|moment| moment.what)
        .collect()
}

/// One victim and one other, each with a statement; what each waits for is written out.
pub fn circle(of: [(&str, &str); 2]) -> String {
    let [(victim_on, victim), (other_on, other)] = of;
    let head = "2026-11-30 22:09:10.513 UTC [11] app@shop/a ";
    format!(
        "{head}ERROR:  deadlock detected\n\
         {head}DETAIL:  Process 11 waits for {victim_on}; blocked by process 12.\n\
         \tProcess 12 waits for {other_on}; blocked by process 11.\n\
         \tProcess 11: {victim}\n\
         \tProcess 12: {other}\n\
         {head}HINT:  See server log for query details.\n\
         {head}STATEMENT:  {victim}\n"
    )
}

/// Relations of the two, as JSON has them.
fn relations(log: &str) -> Vec<Value> {
    let (_folder, path) = temporary("a.log", log.as_bytes());
    let report = json(&[&path]);
    let members = report["deadlocks"][0]["members"].as_array().expect("two");
    members.iter().map(|one| one["relation"].clone()).collect()
}

#[test]
fn a_table_of_another_statement_is_not_what_is_waited_for() {
    let several = "BEGIN; LOCK TABLE \"表三\" IN SHARE UPDATE EXCLUSIVE MODE; SELECT pg_advisory_xact_lock(-1015), count(*) from x; COMMIT";
    let told = relations(&circle([
        (
            "ExclusiveLock on advisory lock [16384,4294967295,4294966281,1]",
            several,
        ),
        (
            "AccessShareLock on relation 16457 of database 16384",
            several,
        ),
    ]));
    assert_eq!(told, [Value::Null, Value::Null]);
    let told = relations(&circle([
        (
            "ShareUpdateExclusiveLock on relation 16457 of database 16384",
            several,
        ),
        (
            "AccessExclusiveLock on relation 16458 of database 16384",
            "alter table l_one add column c int",
        ),
    ]));
    assert_eq!(told, ["表三", "l_one"]);
}

#[test]
fn a_secret_is_no_name_of_a_table() {
    let log = circle([
        (
            "ExclusiveLock on relation 16457 of database 16384",
            "lock table \"password=hunter2\" in exclusive mode",
        ),
        (
            "ExclusiveLock on relation 16458 of database 16384",
            &format!("lock table \"{}\" in exclusive mode", "x".repeat(64)),
        ),
    ]);
    let (_folder, path) = temporary("a.log", log.as_bytes());
    let report = json(&[&path]);
    let members = &report["deadlocks"][0]["members"];
    let name = members[0]["relation"].as_str().expect("a name");
    assert!(name.contains("not shown"), "{name}");
    assert_eq!(members[1]["relation"], Value::Null);
    let shown = json(&[&path, "--unredacted"]);
    assert_eq!(
        shown["deadlocks"][0]["members"][0]["relation"],
        "password=hunter2"
    );
}

/// What log_error_verbosity = terse leaves of two deadlocks, the second of them in Japanese.
const TERSE: &str = "\
2026-11-30 22:09:05.513 UTC [11] LOG:  process 11 detected deadlock while waiting for ShareLock on transaction 7 after 50.1 ms
2026-11-30 22:09:05.513 UTC [11] STATEMENT:  update t set a = 1
2026-11-30 22:09:05.514 UTC [11] ERROR:  deadlock detected at character 8
2026-11-30 22:09:05.514 UTC [11] STATEMENT:  update t set a = 1
2026-11-30 22:09:06.514 UTC [11] ERROR:  デッドロックを検出しました
2026-11-30 22:09:06.514 UTC [11] STATEMENT:  update t set a = 1
2026-11-30 22:09:07.514 UTC [12] ERROR:  relation \"deadlock detected\" does not exist
";

#[test]
fn deadlocks_without_a_circle_are_deadlocks() {
    let errors: String = TERSE
        .lines()
        .filter(|line| !line.contains(" LOG: "))
        .map(|line| format!("{line}\n"))
        .collect();
    let nobody = errors.replace("[11] ", "").replace("[12] ", "");
    for log in [TERSE, &errors, &nobody] {
        let (_folder, path) = temporary("a.log", log.as_bytes());
        let run = stanch(&[&path, "--check"], b"");
        assert_eq!(run.code, 1, "{}", run.out);
        assert!(!run.out.contains("no deadlock"), "{}", run.out);
        assert!(
            run.out.contains("2 deadlocks without a circle"),
            "{}",
            run.out
        );
        let report = json(&[&path]);
        assert_eq!(report["deadlocks_total"], 0);
        assert_eq!(report["deadlocks_without_circle"], 2, "{log}");
        // The same log once more tells of no others.
        let twice = json(&[&path, &path]);
        assert_eq!(twice["deadlocks_without_circle"], 2);
        assert_eq!(
            moments(&path)
                .iter()
                .filter(|what| what.starts_with("deadlock"))
                .count(),
            1,
            "alike within a minute"
        );
    }
    let both = std::fs::read_to_string(folder().join("english.log")).expect("a log") + TERSE;
    let (_folder, path) = temporary("a.log", both.as_bytes());
    let report = json(&[&path]);
    assert_eq!(report["deadlocks_total"], 9);
    assert_eq!(report["deadlocks_without_circle"], 2);
    let run = stanch(&[&path], b"");
    assert!(run.out.contains("; 2 more without a circle"), "{}", run.out);
}

/// Of a real server: of each circle the members with what each waits for, and what kind it is.
#[test]
fn each_member_waits_for_what_its_own_line_says() {
    let report = json(&["members.csv"]);
    let told: Vec<(&str, Vec<(&str, &str)>)> = report["deadlocks"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|deadlock| {
            let members = deadlock["members"].as_array().expect("members");
            (
                deadlock["shape"].as_str().expect("a word"),
                members
                    .iter()
                    .map(|member| {
                        (
                            member["relation"].as_str().unwrap_or("-"),
                            member["waits_for"]["on"].as_str().expect("words"),
                        )
                    })
                    .collect(),
            )
        })
        .collect();
    let expected = [
        // The second's text was cut in the middle of a long comment.
        (
            "unique_key",
            vec![("uniq", "uniq k 156"), ("uniq", "uniq k 155")],
        ),
        // A function in a function, a function, and a plain statement.
        (
            "foreign_key",
            vec![
                ("parent", "a row of parent"),
                ("従業員 表.明細", "従業員 表.明細 id 160"),
                ("-", "advisory lock (7, 1005)"),
            ],
        ),
        // A function, and a parameter.
        (
            "row_order",
            vec![
                ("Größe.Tab.Punkt", "Größe.Tab.Punkt id 174"),
                ("Größe.Tab.Punkt", "a row of Größe.Tab.Punkt"),
            ],
        ),
        (
            "unique_key",
            vec![("uniq", "uniq k 175"), ("uniq", "uniq k 176")],
        ),
        // Both insert into a table with a foreign key.
        (
            "foreign_key",
            vec![("parent", "a row of parent"), ("parent", "a row of parent")],
        ),
        // LOCK TABLE in a DO.
        ("table_order", vec![("l_five", "l_five"), ("表三", "表三")]),
    ];
    assert_eq!(told, expected);
    assert_eq!(report["deadlocks"][4]["order_conflict"], Value::Null);
    let whole = report["deadlocks"][0]["members"][1]["statement"].as_str();
    assert!(
        whole.is_some_and(|text| text.contains("INSERT INTO uniq (k, v)")),
        "{whole:?}"
    );
    for wait in report["lock_waits"]["longest"].as_array().expect("waits") {
        assert_ne!(wait["on"], "a key of parent");
        assert_ne!(wait["relation"], "uniq_pkey");
    }
    let moments = moments(&folder().join("members.csv").display().to_string());
    let fk = "deadlock: fk0 and fk1 on parent";
    assert!(moments.iter().any(|what| what == fk), "{moments:?}");
}

/// The same circle without the lines of their waits: of the other member nothing is made up.
#[test]
fn without_its_line_no_wrong_table_is_said() {
    let log = std::fs::read_to_string(folder().join("members.csv")).expect("a log");
    let mut records = csv_records(&log);
    records.retain(|record| record.contains(",40P01,"));
    let (_folder, path) = temporary("a.csv", records.concat().as_bytes());
    let report = json(&[&path]);
    assert_eq!(report["lock_waits"]["waits"], 0);
    let fk = &report["deadlocks"][4];
    assert_eq!(fk["members"][0]["relation"], "parent");
    assert_eq!(fk["members"][1]["relation"], Value::Null);
    assert_eq!(
        fk["members"][1]["waits_for"]["on"],
        "a row (of the statement's table or of one it refers to)"
    );
    assert_eq!(fk["relations"], serde_json::json!(["parent"]));
    assert_eq!(fk["order_conflict"], Value::Null);
    assert_eq!(fk["shape"], "foreign_key");
}

/// Records of a csvlog, whose fields may span lines.
fn csv_records(log: &str) -> Vec<String> {
    let mut records = vec![String::new()];
    for line in log.split_inclusive('\n') {
        let last = records.last_mut().expect("one");
        last.push_str(line);
        if last.matches('"').count() % 2 == 0 {
            records.push(String::new());
        }
    }
    records
}

/// The name of a database ends in letters that have no case, as a label might.
#[test]
fn a_database_with_a_blank_before_its_last_letters() {
    let log = std::fs::read_to_string(folder().join("context.log")).expect("a log");
    let (_folder, plain) = temporary("a.log", log.as_bytes());
    let with_blank = log.replace("shop_店", "shop 店");
    let (_other, blank) = temporary("a.log", with_blank.as_bytes());
    // Another session's line shows that nothing but the two names stands there.
    let one = "2026-11-30 22:15:40.800 UTC [24000] app@shop LOG:  duration: 1.0 ms\n";
    let (_third, sure) = temporary("a.log", format!("{one}{with_blank}").as_bytes());
    let expected = json(&[&plain]);
    assert_eq!(expected["lock_waits"]["waits"], 2);
    let prefix = ["--prefix", "%m [%p] %q%u@%d "];
    for args in [
        &[sure.as_str()][..],
        &[blank.as_str(), prefix[0], prefix[1]],
    ] {
        let mut told = json(args);
        let members = &mut told["deadlocks"][0]["members"];
        assert_eq!(members[0]["database"], "shop 店", "{args:?}");
        for field in ["deadlocks", "lock_waits"] {
            let text = told[field].to_string().replace("shop 店", "shop_店");
            assert_eq!(text, expected[field].to_string(), "{args:?}");
        }
    }
    // Else it may as well be an application's name that stands behind the database's.
    let told = json(&[&blank]);
    let member = &told["deadlocks"][0]["members"][0];
    assert_eq!(
        (&member["database"], &member["user"]),
        (&Value::Null, &"postgres".into())
    );
    assert_eq!(told["lock_waits"]["waits"], 2);
}

/// A session that hasn't told its application yet, and then does.
#[test]
fn applications_of_a_japanese_log() {
    let log = std::fs::read_to_string(folder().join("japanese.log")).expect("a log");
    let pid = json(&["japanese.log"])["deadlocks"][0]["members"][1]["pid"].clone();
    let head = "2026-12-01 02:35:00 JST";
    let logins = format!(
        "{head} [{pid}]: [1-1] user=[不明],db=[不明],app=[不明],client=127.0.0.1 LOG:  接続を受け付けました: ホスト=127.0.0.1 ポート番号=5\n"
    );
    let of = |logins: &str| {
        let (_folder, path) = temporary("a.log", format!("{logins}{log}").as_bytes());
        json(&[&path])["deadlocks"][0]["members"][1]["application_name"].clone()
    };
    assert_eq!(of(&logins), Value::Null);
    let told = format!(
        "{logins}{head} [{pid}]: [2-1] user=app,db=shop,app=[不明],client=127.0.0.1 LOG:  接続の認証完了: ユーザー=app データベース=shop \
         application_name=app B,0\n"
    );
    assert_eq!(of(&told), "app B,0");
}
