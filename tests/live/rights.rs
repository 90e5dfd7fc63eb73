//! A login with half the rights: no crash, no wrong total, and the grant that is missing.

use serde_json::Value;
use stanch::drill::{Incident, Scene, ServerOptions};
use stanch::source::postgres::ConnSpec;

use crate::harness::{self, REPORTS, admin, client, oncall, scene, sql, stanch_as};

#[tokio::test]
async fn without_pg_monitor() {
    let (server, _scene) = scene(Incident::Leak).await;
    let oncall = oncall(&server, Scene::database()).await;
    // The sessions of the preparation end in their own time.
    crate::harness::eventually("18 sessions are left", || {
        stanch_as(&oncall, &["pg", "connections", "--json"]).json()["capacity"]["used"] == 18
    })
    .await;
    let grant = "GRANT pg_read_all_stats TO oncall;";

    for report in REPORTS {
        let run = stanch_as(&oncall, &[report, &["--json"]].concat());
        assert!(run.code <= 2, "{report:?}: {run:?}");
        let json = run.json();
        let coverage = &json["coverage"];
        assert_eq!(coverage["sessions_hidden"], 18, "{report:?}: {coverage:#}");
        let grants = coverage["missing_grants"].as_array().expect("grants");
        assert_eq!(grants[0], grant, "{report:?}");
        // Only the doctor asks for more than the report needs.
        assert_eq!(
            grants.len(),
            if report == ["doctor"] { 3 } else { 1 },
            "{report:?}"
        );
        let table = stanch_as(&oncall, report).stdout;
        assert!(table.contains("18 of "), "{table}");
        assert!(table.contains(grant), "{table}");
    }

    // All slots are seen, if not what is done with them.
    let connections = stanch_as(&oncall, &["pg", "connections", "--json"])
        .expect_code(0)
        .json();
    let capacity = &connections["capacity"];
    assert_eq!(capacity["used"], 18);
    assert_eq!(capacity["used_is"], "at_most");
    assert_eq!(capacity["usable"], 20);
    for group in connections["groups"].as_array().expect("groups") {
        assert_eq!(group["hidden"], group["total"], "{group:#}");
        assert_eq!(group["idle"], 0);
    }
    let activity = stanch_as(&oncall, &["pg", "activity", "--json"])
        .expect_code(0)
        .json();
    for session in activity["sessions"].as_array().expect("sessions") {
        assert_eq!(session["hidden"], true);
        assert_eq!(session["state"], Value::Null);
        assert_eq!(session["xact_age_ms"], Value::Null);
        assert_eq!(
            session["query"],
            Value::Null,
            "the server's placeholder is nobody's query"
        );
        assert_ne!(
            session["application_name"],
            Value::Null,
            "what may be seen is shown"
        );
    }

    // Nothing is said of what can't be seen.
    let said = |what: &[&str]| stanch_as(&oncall, what).stdout;
    let transactions = said(&["pg", "transactions"]);
    assert!(
        transactions.contains("no open transaction to be seen; 18 hidden sessions may be in one"),
        "{transactions}"
    );
    let filtered = said(&["pg", "activity", "--state", "idle-in-transaction"]);
    assert!(
        filtered.contains("no session that could be seen (")
            && filtered.contains("18 hidden ones may match it"),
        "{filtered}"
    );
    let triage = stanch_as(&oncall, &["triage", "--json"]).json();
    assert_eq!(triage["summary"]["active"], Value::Null);
    assert!(
        triage["unknown"][0]
            .as_str()
            .expect("unknown")
            .contains("18 sessions do is hidden"),
        "{triage:#}"
    );

    let doctor = stanch_as(&oncall, &["doctor"]).expect_code(1).stdout;
    for grant in [
        grant,
        "GRANT pg_read_all_settings TO oncall;",
        "GRANT pg_signal_backend TO oncall;",
    ] {
        assert!(doctor.contains(grant), "{doctor}");
    }

    let boss = client(&admin(&server), "boss").await;
    sql(&boss, "GRANT pg_monitor, pg_signal_backend TO oncall").await;
    drop(boss);
    let doctor = stanch_as(&oncall, &["doctor", "--json"])
        .expect_code(0)
        .json();
    assert_eq!(doctor["coverage"]["sessions_hidden"], 0);
    assert_eq!(doctor["coverage"]["missing_grants"], serde_json::json!([]));
}

/// The forest needs no rights; advice about a session that can't be seen does.
#[tokio::test]
async fn the_forest_of_a_login_that_sees_nothing() {
    let (server, _scene) = scene(Incident::LockChain).await;
    let oncall = oncall(&server, Scene::database()).await;
    crate::harness::ripe(&oncall).await;
    let report = stanch_as(&oncall, &["pg", "blockers", "--json"])
        .expect_code(0)
        .json();
    let root = &report["roots"][0];
    assert_eq!(root["blocked_total"], 7);
    assert_eq!(root["hidden"], true);
    assert_eq!(root["remedy"]["action"], "grant");
    assert_eq!(
        root["remedy"]["command"],
        "GRANT pg_read_all_stats TO oncall;"
    );
    assert_ne!(
        report["longest_wait_ms"],
        Value::Null,
        "waits are visible to everyone"
    );
}

/// What is hidden is never called healthy.
#[tokio::test]
async fn hidden_sessions_are_not_healthy_ones() {
    let (server, _scene) = scene(Incident::Storm).await;
    let oncall = oncall(&server, Scene::database()).await;
    let out = stanch_as(&oncall, &["triage"]).expect_code(0).stdout;
    assert!(
        !out.contains("nothing found: ") && !out.contains("0 active"),
        "{out}"
    );
    assert!(out.contains("nothing found in what could be seen"), "{out}");
    assert!(out.contains("what they do is hidden"), "{out}");
}

/// A command that this login may not run says so, and who may.
#[tokio::test]
async fn advice_that_this_login_may_not_take() {
    let (server, _scene) = scene(Incident::LockChain).await;
    let oncall = oncall(&server, Scene::database()).await;
    let boss = client(&admin(&server), "boss").await;
    sql(&boss, "GRANT pg_monitor TO oncall").await;
    crate::harness::ripe(&oncall).await;
    let why = || {
        let report = stanch_as(&oncall, &["pg", "blockers", "--json"])
            .expect_code(0)
            .json();
        report["roots"][0]["remedy"]["why"]
            .as_str()
            .expect("why")
            .to_owned()
    };
    assert!(
        why().contains(
            "this login may not: as another, or after GRANT pg_signal_backend TO oncall;"
        ),
        "{}",
        why()
    );
    sql(&boss, "GRANT pg_signal_backend TO oncall").await;
    assert!(!why().contains("may not"), "{}", why());
}

/// What a managed service withholds costs the section that needs it, and no other: no privilege (42501).
#[tokio::test]
async fn a_forbidden_function_costs_its_section() {
    let server = harness::server(&[]).await;
    let oncall = oncall(&server, "postgres").await;
    let boss = client(&server.spec("postgres", "postgres"), "boss").await;
    sql(&boss, "GRANT pg_monitor TO oncall").await;
    for (function, section) in [
        ("pg_lock_status()", "locks"),
        ("pg_prepared_xact()", "prepared"),
        ("pg_get_replication_slots()", "slots"),
        ("pg_stat_get_activity(int)", "activity"),
        ("pg_blocking_pids(int)", "blocking"),
        ("pg_stat_get_db_numbackends(oid)", "databases"),
    ] {
        sql(
            &boss,
            &format!("REVOKE EXECUTE ON FUNCTION {function} FROM public, pg_monitor"),
        )
        .await;
        only_failed(&oncall, section, "42501");
        sql(
            &boss,
            &format!("GRANT EXECUTE ON FUNCTION {function} TO public"),
        )
        .await;
    }
}

/// … and what it doesn't have at all (0A000, as some forks of PostgreSQL say).
#[tokio::test]
async fn an_unsupported_function_costs_its_section() {
    for (function, section) in [
        ("pg_prepared_xact", "prepared"),
        ("pg_get_replication_slots", "slots"),
        ("pg_lock_status", "locks"),
    ] {
        let server = harness::server(&[("allow_system_table_mods", "on")]).await;
        let oncall = oncall(&server, "postgres").await;
        let boss = client(&server.spec("postgres", "postgres"), "boss").await;
        sql(&boss, "GRANT pg_monitor TO oncall").await;
        let definition = format!("SELECT pg_get_functiondef('pg_catalog.{function}'::regproc)");
        let text: String = boss
            .query_one(&definition, &[])
            .await
            .expect("its text")
            .get(0);
        let (head, _) = text.split_once("LANGUAGE internal").expect("a language");
        let body = "LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not here' USING ERRCODE = '0A000'; END $$";
        // The one of that number is compiled in: another has to take its name.
        sql(
            &boss,
            &format!("DO $$ BEGIN EXECUTE 'ALTER FUNCTION ' || 'pg_catalog.{function}'::regproc::regprocedure || ' RENAME TO old_one'; END $$"),
        )
        .await;
        sql(&boss, &format!("{head} {body}")).await;
        only_failed(&oncall, section, "0A000");
    }
}

/// Every report that doesn't need it is whole, the others say what is missing and show the rest.
fn only_failed(spec: &ConnSpec, section: &str, code: &str) {
    for report in harness::REPORTS {
        let run = stanch_as(spec, &[report, &["--json"]].concat());
        assert!(run.code <= 3, "{section} {report:?}: {run:?}");
        let json = run.json();
        let sections = json["coverage"]["sections"].as_object().expect("sections");
        for (name, state) in sections {
            let wanted = if name == section {
                "failed"
            } else {
                "collected"
            };
            assert_eq!(
                state["status"], wanted,
                "{section} {report:?} {name}: {state}"
            );
            if name == section {
                assert!(
                    state["why"].as_str().expect("why").contains(code),
                    "{state}"
                );
                assert!(run.code != 0, "{section} {report:?}: {run:?}");
            }
        }
        let table = stanch_as(spec, report);
        assert!(!table.stdout.is_empty(), "{table:?}");
        let told = table.stdout.contains(&format!("not seen: {section}"));
        assert_eq!(
            told,
            sections.contains_key(section),
            "{section} {report:?}: {}",
            table.stdout
        );
    }
}

/// Unknown isn't 0: not the use of a limit, not the number of hidden sessions.
#[tokio::test]
async fn what_was_not_read_is_not_zero() {
    let server = harness::server(&[]).await;
    let oncall = oncall(&server, "postgres").await;
    let boss = client(&server.spec("postgres", "postgres"), "boss").await;
    sql(&boss, "CREATE ROLE lim LOGIN CONNECTION LIMIT 2").await;
    let _lim = client(&server.spec("lim", "postgres"), "lim").await;
    let limit = |spec: &ConnSpec| {
        stanch_as(spec, &["pg", "connections", "--json"]).json()["limits"][0].clone()
    };
    assert_eq!(limit(&oncall)["used"], 1);
    sql(
        &boss,
        "REVOKE EXECUTE ON FUNCTION pg_stat_get_activity(int) FROM public",
    )
    .await;
    assert_eq!(limit(&oncall)["used"], Value::Null);
    assert_eq!(limit(&oncall)["free"], Value::Null);
    let text = stanch_as(&oncall, &["pg", "connections", "-o", "prometheus"]).stdout;
    assert!(text.contains("stanch_connection_limit{"), "{text}");
    assert!(!text.contains("stanch_connection_limit_used"), "{text}");
    let doctor = stanch_as(&oncall, &["doctor"]).stdout;
    assert!(
        doctor.contains("an unknown number of the other sessions"),
        "{doctor}"
    );
}

/// A member that doesn't inherit is shown all before 15 and little from then on; it is told just that on each.
#[tokio::test]
async fn a_member_that_does_not_inherit() {
    for (major, bin_dir) in harness::bin_dirs() {
        let server = harness::start(ServerOptions {
            bin_dir,
            ..ServerOptions::default()
        })
        .await;
        let boss = client(&server.spec("postgres", "postgres"), "boss").await;
        for statement in [
            "CREATE ROLE looks LOGIN NOINHERIT",
            "GRANT pg_monitor TO looks",
            "SELECT 'somebody else''s'",
        ] {
            sql(&boss, statement).await;
        }
        let looks = server.spec("looks", "postgres");
        let report = stanch_as(&looks, &["pg", "activity", "--json"])
            .expect_code(0)
            .json();
        let coverage = &report["coverage"];
        let (hidden, grants) = (&coverage["sessions_hidden"], &coverage["missing_grants"]);
        let boss_hidden = u32::from(major >= 15);
        assert_eq!(hidden, boss_hidden, "{major}: {coverage:#}");
        assert_eq!(
            grants.as_array().is_some_and(Vec::is_empty),
            major < 15,
            "{major}: {coverage:#}"
        );
        drop(boss);
    }
}
