//! What a login may not do is told as that, with what grants it.

use crate::redis_keys::{connect, say_to, stanch, start};

/// A server that evicts by this, with a queue, and a user of these rights.
async fn with_user(
    program: &str,
    policy: &str,
    rights: &str,
) -> Option<(stanch::drill::Cache, String)> {
    let settings = [("maxmemory", "100mb"), ("maxmemory-policy", policy)];
    let cache = start(program, &settings, true).await?;
    let mut link = connect(&cache.url());
    say_to(&mut link, "SADD queues mail");
    say_to(
        &mut link,
        r#"LPUSH queue:mail {"class":"Mail","args":[],"jid":"1"}"#,
    );
    say_to(&mut link, &format!("ACL SETUSER ro on >pw ~* {rights}"));
    let url = format!("redis://ro:pw@127.0.0.1:{}", cache.port().expect("a port"));
    Some((cache, url))
}

fn missing(report: &serde_json::Value) -> Vec<&str> {
    let all = report["coverage"]["missing_permissions"].as_array();
    all.into_iter()
        .flatten()
        .filter_map(|one| one.as_str())
        .collect()
}

#[tokio::test]
async fn what_a_server_evicts_by_is_asked_in_both_ways_and_the_grant_is_named() {
    let Some((cache, url)) = with_user("redis-server", "noeviction", "+@read").await else {
        return;
    };
    let has_no_touch = redis::cmd("CLIENT")
        .arg("NO-TOUCH")
        .arg("ON")
        .query::<redis::Value>(&mut connect(&cache.url()))
        .is_ok();
    let grant = match has_no_touch {
        true => "ACL SETUSER ro +client|no-touch",
        false => "ACL SETUSER ro +info",
    };
    let run = stanch(&url, &["queues"]).expect_code(3);
    assert!(
        run.stdout.contains(grant) && !run.stdout.contains("unknown policy"),
        "{run:?}"
    );
    let report = stanch(&url, &["queues", "--json"]).expect_code(3).json();
    assert_eq!(missing(&report), [grant]);
    for more in ["+info", "-info +config|get"] {
        say_to(
            &mut connect(&cache.url()),
            &format!("ACL SETUSER ro {more}"),
        );
        let report = stanch(&url, &["queues", "--json"]).json();
        assert_eq!(report["queues"][0]["name"], "mail", "{report:#}");
    }
}

#[tokio::test]
async fn a_server_that_has_no_touch_and_a_login_that_may_not_ask_for_it() {
    let Some((_cache, url)) =
        with_user("valkey-8.1/valkey-server", "allkeys-lfu", "+@read +info").await
    else {
        return;
    };
    let grant = "ACL SETUSER ro +client|no-touch";
    for what in ["queues", "bigkeys"] {
        let run = stanch(&url, &[what]);
        assert!(
            run.stdout
                .contains("this login may not ask for CLIENT NO-TOUCH")
                && !run.stdout.contains("this server has no"),
            "{run:?}"
        );
        let report = stanch(&url, &[what, "--json"]).json();
        assert_eq!(missing(&report), [grant], "{what}");
    }
}

#[tokio::test]
async fn a_walk_that_is_not_permitted_names_what_grants_it() {
    for program in ["redis-server", "redis-6.2/redis-server"] {
        let Some((_cache, url)) = with_user(program, "noeviction", "+@read +info -scan").await
        else {
            continue;
        };
        for what in ["expiry", "bigkeys", "queues"] {
            let run = stanch(&url, &[what]).expect_code(3);
            assert!(
                run.stdout.contains("missing: ACL SETUSER ro +scan"),
                "{run:?}"
            );
        }
    }
}
