//! What masking takes out, and what it leaves.

use super::*;

fn text(sql: &str) -> String {
    masked(sql).text
}

#[test]
fn every_form_of_a_literal() {
    for (sql, expected) in [
        (
            "select 'x', a from T where B = 5",
            "select ?, a from T where B = ?",
        ),
        (
            r"select E'it\'s' || U&'\0041' UESCAPE '!'",
            "select ? || ? UESCAPE ?",
        ),
        (
            "select b'01', X'1F', N'x', date '2026-01-01'",
            "select ?, …, date ?",
        ),
        (
            "select $a$ it's $b$ $a$ + .5e-3 + 0x1F + 1_000",
            "select ? + ? + ? + ?",
        ),
        (
            "select t1.c2 from t1 where x = $1 and y = -5",
            "select t1.c2 from t1 where x = $1 and y = -?",
        ),
        ("select 'a'\n  'b' from t", "select ? from t"),
        ("DO $$ BEGIN PERFORM 1; END $$", "DO ?"),
    ] {
        assert_eq!(text(sql), expected, "{sql}");
    }
    assert_eq!(
        masked("select 'a', 1, ?, x from t where y in (1, 2)").replaced,
        4
    );
}

#[test]
fn white_space_stays_and_lists_fold() {
    assert_eq!(
        text("SELECT  a\n\tFROM t\nWHERE x IN (1,2 , 3)"),
        "SELECT  a\n\tFROM t\nWHERE x IN (?, …)"
    );
    assert_eq!(
        text("insert into t (a, b) values (1, f('x', 2)), (3, now()), (4, (5)) returning a"),
        "insert into t (a, b) values (?, f(?, …)), … returning a"
    );
    assert_eq!(text("select f(a, 1, 2 + x)"), "select f(a, ?, ? + x)");
    assert_eq!(
        text("insert into t values ('a', 'b'), ('c', 'unter"),
        "insert into t values (?, …), …"
    );
}

#[test]
fn what_was_cut() {
    for (sql, expected) in [
        ("select 'unter", "select ?"),
        ("select E'unter\\", "select ?"),
        ("select $t$ unter", "select ?"),
        ("select 1 /* unter", "select ?"),
        ("select 1 -- unter", "select ?"),
        ("select \"unter", "select \"?\""),
        ("select U&'unter", "select ?"),
    ] {
        assert_eq!(text(sql), expected, "{sql}");
    }
}

#[test]
fn what_can_be_read_in_two_ways_ends_the_text() {
    assert_eq!(text(r"select 'it\'s secret' from t"), "select ? …");
    assert_eq!(
        text("select * from t where a = ‘it is secret’"),
        "select * from t where a = ? …"
    );
    assert_eq!(text(r"select 'C:\\' from t"), "select ? from t");
    assert_eq!(text(r#"select "it\"s secret" from t"#), "select \"?\" …");
}

#[test]
fn comments_go_but_for_tags() {
    assert_eq!(
        text("/* hunter2 */ select 1 -- hunter2\n from t"),
        "select ?\nfrom t"
    );
    assert_eq!(
        text("select 1 /*controller='users',user='alice%40example.com'*/"),
        "select ? /*controller='users'*/"
    );
    assert_eq!(text("select 1 /*controller='users"), "select ?");
    assert_eq!(text("select/**/1"), "select ?");
}

#[test]
fn quoted_names_stay_and_quoted_values_go() {
    for sql in [
        "SELECT \"users\".\"id\" FROM \"users\" WHERE \"users\".\"a\" = \"t\".\"b\"",
        "SELECT \"größe in m\", \"日本\" FROM \"t-1\" ORDER BY \"größe in m\"",
        "INSERT INTO \"password_resets\" (\"token\", \"token_id\") VALUES ($1, $2)",
        "UPDATE auth_tokens SET token = crypt($1, salt) WHERE a.token = b.token",
    ] {
        assert_eq!(text(sql), sql);
    }
    assert_eq!(
        text("select * from t where p = \"hunter2\" or p in (\"a\", \"b\")"),
        "select * from t where p = \"?\" or p in (\"?\", \"?\")"
    );
    assert_eq!(
        text("insert into t values (\"hunter2\")"),
        "insert into t values (\"?\")"
    );
    assert_eq!(text("select 1 as \"it's a secret\""), "select ? as \"?\"");
    assert_eq!(
        text("select 1 as \"AKIAIOSFODNN7EXAMPLE\""),
        "select ? as \"?\""
    );
    assert_eq!(
        text("execute s(ghp_16C7e42F292c6912E7710c838347Ae178B4a)"),
        "execute s(?)"
    );
}

#[test]
fn what_the_detectors_still_find_leaves_the_first_word() {
    assert_eq!(text("alter thing password = hunter2"), "ALTER …");
    assert_eq!(shown("SET …").text, "SET …");
    assert_eq!(text("SECRET_KEY_BASE=abcdef"), "(statement)");
    assert_eq!(text("Alice@example.com"), "(statement)");
}

#[test]
fn a_text_that_begins_with_no_verb_is_not_shown() {
    for sql in [
        "hunter2",
        "p@ssw0rd;",
        "correct horse battery staple",
        "Authorization: Bearer hunter2",
        "psql -W hunter2 -h x",
        "AUTH Winter2026eg",
        "\\password Winter2026bw",
        "IDENTIFIED BY Winter2026ed",
        "ALTE ROLE x PASSWORD Winter2026ea",
        "'hunter2' hunter2",
        "(hunter2)",
        "; hunter2; select 1",
        "/* a */ hunter2",
        "autovacuum: hunter2",
        "KILL shop hunter2",
        "<insufficient privilege> hunter2",
        "\"hunter2\"",
        "return hunter2",
        "(statement)",
        "(statement) hunter2",
    ] {
        assert_eq!(text(sql), "(statement)", "{sql}");
        assert_eq!(shown(sql).text, "(statement)", "{sql}");
    }
    assert_eq!(masked("hunter2 'a', 2").replaced, 2);
}

#[test]
fn what_the_server_and_its_kin_say_stays() {
    for sql in [
        "",
        "  ",
        ";",
        "autovacuum: VACUUM public.t (to prevent wraparound)",
        "autovacuum: ANALYZE public.t",
        "autovacuum: VACUUM ANALYZE public.t",
        "START_REPLICATION SLOT \"s\" LOGICAL ?/? (proto_version ?)",
        "IDENTIFY_SYSTEM",
        "BASE_BACKUP ( LABEL ?, PROGRESS )",
        "CREATE_REPLICATION_SLOT \"s\" TEMPORARY PHYSICAL",
        "DROP_REPLICATION_SLOT s",
        "READ_REPLICATION_SLOT s",
        "TIMELINE_HISTORY ?",
        "SHOW work_mem",
        "<insufficient privilege>",
        "<command string not enabled>",
        "<backend information not available>",
        "(select a from t) union (select b from u)",
        "((table a) except table b)",
        "SHOW POOLS",
        "PAUSE shop;",
        "RESUME",
        "RELOAD",
        "KILL shop",
        "ABORT; begin; Values (a); WAIT FOR LSN ?",
        "create function f() returns int begin atomic select a; return b; end",
        "SELECT …",
    ] {
        assert_eq!(text(sql), sql);
    }
    assert_eq!(text("/* hunter2 */"), "");
    assert_eq!(text("/* hunter2 */ select a"), "select a");
    assert_eq!(text("-- hunter2\n(select a)"), "(select a)");
}

#[test]
fn a_later_statement_without_a_verb_ends_the_text() {
    for (sql, expected) in [
        ("select 1;hunter2", "select ?; …"),
        ("select 1 ;\n hunter2; select 2", "select ? ; …"),
        ("begin;; (hunter2)", "begin;; …"),
        ("select 1; 'hunter2'", "select ?; …"),
        ("select 1; select 2;", "select ?; select ?;"),
        ("select 1; -- hunter2", "select ?;"),
        ("select 1; … hunter2", "select ?; …"),
        (
            "insert into t values (1), (2; hunter2), (3)",
            "insert into t values (?), … …",
        ),
    ] {
        assert_eq!(text(sql), expected, "{sql}");
        assert_eq!(text(expected), expected);
    }
}

#[test]
fn a_quote_that_touches_a_word_ends_the_text() {
    for (sql, expected) in [
        ("select 'O'Brien hunter2 said 'hi'", "select ? …"),
        ("select 'it's hunter2 o'clock'", "select ? …"),
        ("select 1, E'a'hunter2", "select ?, ? …"),
        ("select 'a'1, hunter2", "select ? …"),
        ("select U&'a'hunter2", "select ? …"),
        (
            "select * from t where a in ('b', 'c'd, 'e')",
            "select * from t where a in (?, ? …",
        ),
    ] {
        assert_eq!(text(sql), expected, "{sql}");
        assert_eq!(text(expected), expected);
    }
    for (sql, expected) in [
        (
            "select E'a' || B'1' || X'f' || N'x' || U&'y' , a",
            "select ? || ? || ? || ? || ? , a",
        ),
        (
            "select date'2020-01-01' + interval'1 day' from t",
            "select date? + interval? from t",
        ),
        ("select 'a'::text, a", "select ?::text, a"),
        (
            "create function f() as $$ x $$language sql",
            "create function f() as ?language sql",
        ),
    ] {
        assert_eq!(text(sql), expected, "{sql}");
    }
}

#[test]
fn quotes_of_other_kinds() {
    for curly in CURLY {
        let sql = format!("select * from t where a = {curly}the hunter2{curly}");
        assert_eq!(text(&sql), "select * from t where a = ? …", "{sql}");
        let named = format!("select \"a{curly}hunter2\" from t");
        assert_eq!(text(&named), "select \"?\" from t", "{named}");
    }
    for sql in [
        "select `a`.`b-c` from `orders` where `a`.`b` = `c`.`d`",
        "insert into `t` (`a`, `b`) select a from t",
    ] {
        assert_eq!(text(sql), sql);
    }
    for (sql, expected) in [
        (
            "select a from t where b = `hunter2`",
            "select a from t where b = ?",
        ),
        (
            "insert into t values (`hunter2`)",
            "insert into t values (?)",
        ),
        ("select `the hunter2`, a", "select ?, a"),
        ("select `AKIAIOSFODNN7EXAMPLE`", "select ?"),
        ("select `it's hunter2`, a", "select ? …"),
        ("select `hunter2", "select ? …"),
    ] {
        assert_eq!(text(sql), expected, "{sql}");
        assert_eq!(text(expected), expected);
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(500))]

    #[test]
    fn masking_twice_is_masking_once(sql in "\\PC*") {
        for sql in [format!("select {sql}"), sql] {
            let once = text(&sql);
            proptest::prop_assert_eq!(text(&once), once);
        }
    }

    #[test]
    fn of_any_soup_too(sql in "(select |begin;|\\(select |set )?(set |alter |role |; ?|; ?select |with |identified by |`|autovacuum: |KILL |´|「|password |dblink\\(|begin |comment on |['\"$a1EUu&x?…,;()=*/ \n\\\\.+-]|--|/\\*|\\*/|\\$t\\$|values ?\\(|\\), ?\\(|, ?|in \\(|é|'[a-z]*'|\"[a-z]*\"|/\\*controller='a'\\*/){0,40}") {
        let once = text(&sql);
        proptest::prop_assert_eq!(text(&once), once.clone());
        proptest::prop_assert_eq!(detect(&once), None);
        let first = shown(&sql).text;
        proptest::prop_assert_eq!(shown(&first).text, first);
    }

    #[test]
    fn no_literal_survives(value in "[a-z]{6}", before in "[a-z ,(=]{0,10}", form in 0..5usize) {
        let literal = match form {
            0 => format!("'{value}'"),
            1 => format!("E'{value}\\'{value}'"),
            2 => format!("$q${value}$q$"),
            3 => format!("U&'{value}'"),
            _ => format!("'{value}"),
        };
        let sql = format!("select x {before} {literal}");
        proptest::prop_assume!(!before.contains(&value));
        proptest::prop_assert!(!text(&sql).contains(&value), "{}", text(&sql));
    }
}
