//! When keys expire, on a real server: the moment that is named, all keys in the shape, and what only the sum shows.

use serde_json::Value;

use crate::harness::{command, run};
use crate::redis_keys::{cache, connect, say_to, stanch};

/// The server's time in seconds.
fn seconds(connection: &mut redis::Connection) -> i64 {
    let (now, _): (i64, i64) = redis::cmd("TIME").query(connection).expect("a time");
    now
}

fn time(value: &Value) -> i64 {
    let text = value.as_str().expect("a time");
    let time = chrono::DateTime::parse_from_rfc3339(text);
    time.expect("a time").timestamp()
}

#[tokio::test]
async fn the_moment_is_that_of_the_many() {
    let Some(server) = cache(&[]).await else {
        return;
    };
    let mut connection = connect(&server.url());
    let at = seconds(&mut connection) + 240;
    let mut pipe = redis::pipe();
    let mut set = |n: i64, at_ms: i64| {
        let key = format!("catalog:product:{n}:v1");
        pipe.cmd("SET").arg(key).arg("x").arg("PXAT").arg(at_ms);
    };
    for n in 0..2000 {
        set(n, at * 1000 + n % 1000);
    }
    set(2000, at * 1000 - 4_000);
    for n in 0..15 {
        set(2001 + n, at * 1000 + 60_000 * (n + 1));
    }
    pipe.exec(&mut connection).expect("it is written");
    let report = stanch(&server.url(), &["expiry", "--full", "--json"])
        .expect_code(0)
        .json();
    let (group, cliff) = (&report["groups"][0], &report["cliffs"][0]);
    assert_eq!(cliff["keys"], 2001, "{report}");
    for told in [&cliff["at"], &group["peak_at"], &group["peak_1s_at"]] {
        assert_eq!(time(told), at, "{report}");
    }
    let bins = group["histogram"].as_array().expect("numbers");
    let later = group["histogram_later"].as_u64().expect("a number");
    let sum: u64 = bins.iter().filter_map(Value::as_u64).sum();
    assert_eq!((sum + later, &group["with_ttl"]), (2016, &2016.into()));
    let moment = chrono::DateTime::from_timestamp(at, 0).expect("a time");
    let said = format!("({} UTC) 2,001 keys", moment.format("%H:%M:%S"));
    let line = stanch(&server.url(), &["expiry", "--full", "--check"]).expect_code(2);
    assert!(line.stdout.contains(&said), "{said}: {line:?}");
}

#[tokio::test]
async fn many_groups_that_expire_together_are_a_cliff() {
    let Some(server) = cache(&[]).await else {
        return;
    };
    let mut connection = connect(&server.url());
    let at = seconds(&mut connection) + 240;
    let mut pipe = redis::pipe();
    for service in ["shop", "blog", "mail", "feed", "auth", "docs"] {
        for what in [
            "basket", "page", "user", "price", "stock", "image", "review", "order", "draft",
            "label",
        ] {
            for n in 0..900 {
                let key = format!("{service}:{what}:{n}");
                pipe.cmd("SET")
                    .arg(key)
                    .arg("x")
                    .arg("PXAT")
                    .arg(at * 1000 + n % 1000);
            }
        }
    }
    pipe.exec(&mut connection).expect("it is written");
    let run_of = |what: &[&str]| stanch(&server.url(), what);
    let report = run_of(&["expiry", "--full", "--json"])
        .expect_code(0)
        .json();
    let cliff = &report["cliffs"][0];
    assert_eq!(
        (&cliff["keys"], &cliff["groups"], time(&cliff["at"])),
        (&54_000.into(), &60.into(), at),
        "{cliff}"
    );
    assert_eq!(report["cliffs"].as_array().map(Vec::len), Some(61));
    let line = run_of(&["expiry", "--full", "--check"]).expect_code(2);
    let said = "54,000 keys of 60 groups expire within 10 s";
    assert!(line.stdout.contains(said), "{line:?}");
    let triage = run(command(&["triage", "--json", "--redis", &server.url()]));
    let report = triage.json();
    let findings = report["findings"].clone();
    let found = findings.as_array().and_then(|all| {
        let of = |finding: &&Value| finding["id"] == "redis.expiry_cliff";
        all.iter().find(of).cloned()
    });
    let found = found.unwrap_or_else(|| panic!("{findings}"));
    assert_eq!(found["severity"], "critical", "{found}");
    // Triage looks for ten seconds at most: on a slow machine it doesn't get to all of them.
    let whole = report["redis"]["coverage"]["complete"] == true;
    let said = if whole {
        said
    } else {
        " groups expire within 10 s"
    };
    let title = found["title"].as_str().expect("a title");
    assert!(title.contains(said), "{title}");

    // Where one group is most of it, it is told once.
    say_to(&mut connection, "FLUSHALL");
    let mut pipe = redis::pipe();
    for (what, keys) in [("basket", 5000), ("page", 900)] {
        for n in 0..keys {
            let key = format!("shop:{what}:{n}");
            pipe.cmd("SET").arg(key).arg("x").arg("PXAT").arg(at * 1000);
        }
    }
    pipe.exec(&mut connection).expect("it is written");
    let report = run_of(&["expiry", "--full", "--json"])
        .expect_code(0)
        .json();
    let cliffs = report["cliffs"].as_array().expect("cliffs");
    assert!(cliffs.len() == 2 && cliffs.iter().all(|cliff| cliff["groups"].is_null()));
}
