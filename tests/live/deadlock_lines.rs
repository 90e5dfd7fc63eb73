//! Deadlocks whose members wait one after the other, so that each has a line of its own: what they wait for is the server's word.

use std::path::PathBuf;

use stanch::drill::{self, Server};
use tokio_postgres::Client;

use crate::deadlocks::{collecting, with_tables, written};
use crate::harness::{admin, bin_dirs, client, sql};

const SETUP: &str = "
    create table parent (id int primary key);
    insert into parent select generate_series(1, 300);
    create table child (id int, parent_id int references parent);
    create table uniq (k int primary key, v text);
    create function pay(n int) returns void language plpgsql as $$ begin
      update accounts set balance = 0 where id = n;
    end $$;
    create function add(n int) returns void language plpgsql as $$ begin
      insert into uniq (k) values (n);
    end $$;
    create function take(n int) returns void language plpgsql as $$ begin
      perform pg_advisory_xact_lock(7, n) from parent where 'geheim' <> '' limit 1;
    end $$;";

/// What the two lock first, and then what; of the victim, which asks last, and of the other what is waited for.
type Pair = ([&'static str; 2], [&'static str; 2], [Said; 2]);
type Said = (Option<&'static str>, &'static str);

const PAIRS: [Pair; 5] = [
    (
        [
            "delete from parent where id = 201",
            "delete from parent where id = 202",
        ],
        [
            "insert into child values (1, 202)",
            "insert into child values (2, 201)",
        ],
        [(Some("parent"), "a row of parent"); 2],
    ),
    (
        ["select pay(1)", "select pay(2)"],
        ["select pay(2)", "do $x$ begin perform pay(1); end $x$"],
        [(Some("accounts"), "a row of accounts"); 2],
    ),
    (
        ["select add(1)", "select add(2)"],
        ["select add(2)", "insert into uniq values (1)"],
        [
            (Some("uniq"), "uniq value 1"),
            (Some("uniq"), "a key of uniq"),
        ],
    ),
    (
        ["lock table orders", "lock table child"],
        [
            "do $x$ begin lock table child in share mode; end $x$",
            "do $x$ begin lock table orders in share mode; end $x$",
        ],
        [(Some("orders"), "orders"), (Some("child"), "child")],
    ),
    (
        ["select take(1)", "select take(2)"],
        ["select take(2)", "select take(1)"],
        [
            (None, "advisory lock (7, 1)"),
            (None, "advisory lock (7, 2)"),
        ],
    ),
];

/// The first asks and waits until its line is written, then the second asks and is aborted.
async fn one_after_the_other(server: &Server, boss: &Client, first: &[&str; 2], then: &[&str; 2]) {
    let spec = admin(server);
    let (a, b) = (client(&spec, "early").await, client(&spec, "late").await);
    for (client, first) in [&a, &b].into_iter().zip(first) {
        sql(client, &format!("begin; {first}")).await;
    }
    let early = async {
        let done = drill::batch(&a, then[0]).await;
        let _ = drill::batch(&a, "rollback").await;
        done.is_ok()
    };
    let late = async {
        drill::until(
            boss,
            "select count(*) = 1 from pg_stat_activity where wait_event_type = 'Lock' and application_name = 'early' \
             and clock_timestamp() - query_start > interval '500 ms'",
        )
        .await
        .expect("the first waits");
        let done = drill::batch(&b, then[1]).await;
        let _ = drill::batch(&b, "rollback").await;
        done.is_err()
    };
    let (early, late) = tokio::join!(early, late);
    assert!(early && late, "{then:?}");
}

#[tokio::test]
async fn members_by_their_own_lines() {
    for (major, bin_dir) in bin_dirs() {
        let server = with_tables(collecting(bin_dir, "stderr,csvlog")).await;
        let boss = client(&admin(&server), "boss").await;
        sql(&boss, SETUP).await;
        for (first, then, _) in &PAIRS {
            one_after_the_other(&server, &boss, first, then).await;
        }
        for log in ["pg.log", "pg.csv"] {
            let report = written(&server, log, PAIRS.len() as u64).await;
            let deadlocks = report["deadlocks"].as_array().expect("a list");
            for (deadlock, (_, then, said)) in deadlocks.iter().zip(&PAIRS) {
                for (member, (relation, on)) in deadlock["members"]
                    .as_array()
                    .expect("members")
                    .iter()
                    .zip(said)
                {
                    let told = (
                        member["relation"].as_str(),
                        member["waits_for"]["on"].as_str(),
                    );
                    assert_eq!(told, (*relation, Some(*on)), "{major} {log} {then:?}");
                }
                assert_eq!(deadlock["members"][0]["application_name"], "late");
            }
            assert_eq!(deadlocks[0]["shape"], "foreign_key");
            assert_eq!(deadlocks[2]["shape"], "unique_key");
            assert_eq!(deadlocks[4]["shape"], "advisory_order");
            assert!(!report.to_string().contains("geheim"), "{report}");
        }
    }
}

/// By log_error_verbosity = terse the log has that there was one, and no more.
#[tokio::test]
async fn a_terse_log() {
    for log_lock_waits in ["on", "off"] {
        let mut options = collecting(PathBuf::new(), "stderr");
        for (name, value) in [
            ("log_error_verbosity", "terse"),
            ("log_lock_waits", log_lock_waits),
        ] {
            options.settings.push((name, value.into()));
        }
        let server = with_tables(options).await;
        let boss = client(&admin(&server), "boss").await;
        let first = [
            "select pg_advisory_xact_lock(1)",
            "select pg_advisory_xact_lock(2)",
        ];
        let then = [
            "select pg_advisory_xact_lock(2)",
            "select pg_advisory_xact_lock(1)",
        ];
        one_after_the_other(&server, &boss, &first, &then).await;
        let path = crate::deadlocks::find(server.folder(), "pg.log").expect("a log");
        let path = path.display().to_string();
        let read = || {
            crate::harness::run(crate::harness::command(&[
                "pg",
                "deadlocks",
                &path,
                "--json",
                "--check",
            ]))
        };
        crate::harness::eventually("it is written", || {
            std::fs::read_to_string(&path)
                .is_ok_and(|text| text.contains("ERROR:  deadlock detected"))
        })
        .await;
        let report = read().expect_code(1).json();
        assert_eq!(report["deadlocks_total"], 0);
        assert_eq!(report["deadlocks_without_circle"], 1, "{log_lock_waits}");
    }
}
