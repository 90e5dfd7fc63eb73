//! Numbers of queues where the server or the library counts something else than it seems to.

use std::time::Duration;

use stanch::analysis::redis::queues::{QueueVerdict, judged, rates};
use stanch::model::{Millis, Queue, QueueBounds};
use stanch::source::redis::queues::{discover, inspect, queues};

use crate::harness::{command, run};
use crate::queues::{ALL, Made, Nobody, noted, now, open, row};
use crate::redis_keys::{connect, say_to, stanch, start};

/// Two looks, as if ten seconds apart, and what happens between them.
async fn sampled(made: &mut Made, between: &[String]) -> Vec<Queue> {
    let mut fleet = open(&made.url).await;
    let at = now(&mut fleet).await;
    let (places, mut coverage) = discover(&mut fleet, &Nobody, ALL).await;
    let before = inspect(&mut fleet, &places, at, &mut coverage).await;
    for line in between {
        made.ask(line);
    }
    let at = now(&mut fleet).await;
    let mut after = inspect(&mut fleet, &places, at, &mut coverage).await;
    rates(&before, &mut after, Duration::from_secs(10));
    after
}

#[tokio::test]
async fn the_same_job_of_bullmq_again_and_again() {
    let Some(mut made) = Made::of(&[]).await else {
        return;
    };
    made.run(&[
        "HSET bull:q:meta version bullmq:6.7.0",
        "SET bull:q:id 5",
        "LPUSH bull:q:wait daily",
        "HSET bull:q:daily name report timestamp 1700000000000 opts {}",
    ]);
    let rows = sampled(&mut made, &["INCRBY bull:q:id 200".into()]).await;
    let q = row(&rows, "q");
    assert_eq!((q.arrival_per_s, q.drain_per_s), (None, None));
    assert_eq!((q.net_per_s, q.workers), (Some(0.0), Some(0)));
    noted(q, "in/s and out/s aren't known");
    let judged = judged(q.clone(), &QueueBounds::default());
    assert_eq!(judged.verdict, QueueVerdict::Critical, "{judged:?}");
    assert_eq!(judged.reasons[0], "no worker listens to it");
}

#[tokio::test]
async fn a_job_of_bullmq_that_was_promoted_before_it_was_due() {
    let Some(mut made) = Made::of(&[]).await else {
        return;
    };
    let ahead = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("a time")
        .as_millis();
    made.run(&[
        "HSET bull:q:meta version bullmq:6.7.0",
        "LPUSH bull:q:wait 1",
        &format!("HSET bull:q:1 name a timestamp {ahead} opts {{\"delay\":3600000}}"),
    ]);
    let (rows, _) = made.queues().await;
    let q = row(&rows, "q");
    assert_eq!((q.depth, q.oldest_age_ms), (Some(1), None));
    made.run(&[
        "RPUSH bull:q:wait 2",
        "HSET bull:q:2 name b timestamp 1796035660500 opts {}",
    ]);
    let (rows, _) = made.queues().await;
    let q = row(&rows, "q");
    assert!(q.oldest_age_ms.is_some() && q.oldest_age_at_least, "{q:#?}");
    noted(q, "isn't known of 1 of the next 2");
}

#[tokio::test]
async fn a_stream_that_is_trimmed_before_its_group_reads() {
    let Some(mut made) = Made::of(&[]).await else {
        return;
    };
    made.run(&["XGROUP CREATE jobs never 0 MKSTREAM"]);
    let add = |from: u64, to: u64| -> Vec<String> {
        (from..to)
            .map(|n| format!("XADD jobs MAXLEN 100 {n}-0 n {n}"))
            .collect()
    };
    for line in add(1, 301) {
        made.ask(&line);
    }
    let rows = sampled(&mut made, &add(301, 401)).await;
    let never = row(&rows, "jobs/never");
    assert_eq!((never.depth, never.workers), (Some(100), Some(0)));
    assert_eq!(
        (never.arrival_per_s, never.drain_per_s, never.net_per_s),
        (Some(10.0), Some(0.0), Some(0.0))
    );
    noted(never, "trimmed before they were given out: 300");
    noted(never, "10.0 a second are trimmed or deleted");
    let judged = judged(never.clone(), &QueueBounds::default());
    assert_eq!(judged.verdict, QueueVerdict::Warning, "{judged:?}");
    assert_eq!(judged.reasons[0], "no worker listens to it");
}

/// Entries after the last that was given out, counted by the server's own range.
fn truth(link: &mut ::redis::Connection, key: &str) -> u64 {
    let groups = say_to(link, &format!("XINFO GROUPS {key}"));
    let text = format!("{groups:?}");
    let (_, after) = text.split_once("last-delivered-id").expect("an id");
    let id: String = after
        .chars()
        .skip_while(|c| !c.is_ascii_digit())
        .take_while(|c| c.is_ascii_digit() || *c == '-')
        .collect();
    match say_to(link, &format!("XRANGE {key} ({id} +")) {
        ::redis::Value::Array(entries) => entries.len() as u64,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_waits_in_a_stream_whatever_its_lag_says() {
    for program in [
        "redis-server",
        "redis-6.2/redis-server",
        "valkey-8.1/valkey-server",
        "valkey-9.1/valkey-server",
    ] {
        let Some(cache) = start(program, &[], true).await else {
            continue;
        };
        let mut link = connect(&cache.url());
        let mut run = |line: &str| say_to(&mut link, line);
        run("XGROUP CREATE jobs g 0 MKSTREAM");
        run("XADD jobs * a b");
        run("XREADGROUP GROUP g c STREAMS jobs >");
        for n in 0..1500 {
            run(&format!("XADD jobs MAXLEN 1000 * n {n}"));
        }
        for _ in 0..9 {
            run("XREADGROUP GROUP g c COUNT 100 NOACK STREAMS jobs >");
        }
        run("XGROUP CREATE odd g 0 MKSTREAM");
        for line in [
            "XADD odd 1-0 a b",
            "XREADGROUP GROUP g c STREAMS odd >",
            "XADD odd 2-0 a b",
            "XADD odd 3-0 a b",
            "XDEL odd 2-0",
            "XREADGROUP GROUP g c STREAMS odd >",
            "XADD odd 4-0 a b",
        ] {
            run(line);
        }
        let mut fleet = open(&cache.url()).await;
        let at = now(&mut fleet).await;
        let (rows, _) = queues(&mut fleet, at, &Nobody, ALL).await;
        for (key, waits) in [("jobs", 100), ("odd", 1)] {
            assert_eq!(truth(&mut link, key), waits);
            let row = row(&rows, &format!("{key}/g"));
            assert_eq!(row.depth, Some(waits), "{program}: {row:#?}");
        }
    }
}

#[tokio::test]
async fn the_longest_in_flight_among_many() {
    for program in [
        "redis-server",
        "redis-6.2/redis-server",
        "valkey-9.1/valkey-server",
    ] {
        let Some(cache) = start(program, &[], true).await else {
            continue;
        };
        let mut link = connect(&cache.url());
        let mut run = |line: &str| say_to(&mut link, line);
        run("XGROUP CREATE jobs g 0 MKSTREAM");
        for n in 1..=350 {
            run(&format!("XADD jobs {n}-0 a b"));
        }
        run("XREADGROUP GROUP g c COUNT 350 STREAMS jobs >");
        // As if the last ones had been taken long ago, the first ones just now.
        run("XCLAIM jobs g c 0 340-0 IDLE 3600000");
        run("XCLAIM jobs g c 0 345-0 IDLE 7200000");
        let mut fleet = open(&cache.url()).await;
        let at = now(&mut fleet).await;
        let (rows, _) = queues(&mut fleet, at, &Nobody, ALL).await;
        let jobs = row(&rows, "jobs/g");
        let longest = jobs.oldest_in_flight_ms.expect("a time");
        assert!(longest >= Millis(7_200_000), "{jobs:#?}");
        assert!(!jobs.oldest_in_flight_at_least, "{jobs:#?}");
    }
}

#[tokio::test]
async fn what_can_not_be_read_is_counted_all_the_same() {
    let Some(mut made) = Made::of(&[]).await else {
        return;
    };
    let job = r#"{"class":"A","queue":"a","jid":"1","args":[]}"#;
    let delayed = r#"{"class":"B","queue":"r","args":null}"#;
    made.run(&[
        "SADD queues a",
        &format!("LPUSH queue:a {job}"),
        &format!("ZADD retry 1000 {job} 1001 odd 9000000000 {{}}"),
        "ZADD dead 1000 odd",
        &format!("ZADD schedule 9000000000 {job}"),
        "SADD resque:queues r",
        &format!("RPUSH resque:queue:r {delayed}"),
        r#"RPUSH resque:failed {"failed_at":"2026/11/30\t10:46:26\tUTC"} {"queue":"r"} {"queue":7}"#,
        "ZADD resque:delayed_queue_schedule 1000 1000",
        &format!(r#"RPUSH resque:delayed:1000 {delayed} {{"class":"B"}} odd"#),
        "SADD resque:workers host:1:r*",
    ]);
    let (rows, _) = made.queues().await;
    let of = |name: &str| row(&rows, name);
    let (a, all) = (of("a"), of("*"));
    assert_eq!((a.retry, a.scheduled, a.dead), (Some(1), Some(1), Some(0)));
    assert_eq!((a.overdue, all.overdue), (Some(1), Some(1)));
    assert_eq!(
        (all.retry, all.scheduled, all.dead),
        (Some(2), None, Some(1))
    );
    noted(all, "3 of the scheduled, retried and dead can't be read");
    let resque: Vec<&Queue> = rows
        .iter()
        .filter(|row| row.system == stanch::model::QueueSystem::Resque)
        .collect();
    let [all, r] = resque[..] else {
        panic!("{resque:#?}")
    };
    assert_eq!((r.depth, r.scheduled, r.dead), (Some(1), Some(1), Some(1)));
    assert_eq!((all.scheduled, all.dead), (Some(2), Some(2)));
    assert_eq!((r.overdue, all.overdue), (Some(1), Some(2)));
    // Its worker listens to whatever begins so.
    assert_eq!(r.workers, Some(1));
}

#[tokio::test]
async fn jobs_of_rq_that_are_kept_for_different_times() {
    let Some(mut made) = Made::of(&[]).await else {
        return;
    };
    made.run(&["SADD rq:queues rq:queue:d"]);
    // The first to fail is forgotten last.
    for n in 0..40 {
        let at = format!("2026-11-30T10:{:02}:00.000000Z", 10 + n);
        made.ask(&format!("HSET rq:job:{n} created_at {at} ended_at {at}"));
        made.ask(&format!("ZADD rq:failed:d {} {n}", 9_000_000_000_u64 - n));
    }
    let mut fleet = open(&made.url).await;
    let at = stanch::model::Timestamp::new("2026-11-30T11:00:00Z".parse().expect("a time"));
    let (rows, _) = queues(&mut fleet, at, &Nobody, ALL).await;
    let d = row(&rows, "d");
    let oldest = d.oldest_dead_ms.expect("a time");
    assert!(
        d.dead == Some(40) && (3_000_000..3_060_000).contains(&oldest.0),
        "{d:#?}"
    );
    for n in 40..60 {
        made.ask(&format!("ZADD rq:failed:d {} {n}", 9_000_000_001_u64 + n));
    }
    let (rows, _) = queues(&mut fleet, at, &Nobody, ALL).await;
    let d = row(&rows, "d");
    assert_eq!((d.dead, d.oldest_dead_ms), (Some(60), None));
    noted(d, "at least 50m 00s");
}

#[tokio::test]
async fn a_broker_of_celery_with_a_separator_of_its_own() {
    let Some(mut made) = Made::of(&[]).await else {
        return;
    };
    made.run(&[
        "SADD _kombu.binding.celery celery::celery",
        "SADD _kombu.binding.mail mail::mail",
        "LPUSH celery {}",
        "LPUSH celery:3 {} {}",
    ]);
    let (rows, _) = made.queues().await;
    let of = |name: &str| row(&rows, name).depth;
    assert_eq!((of("celery"), of("mail")), (Some(3), Some(0)));

    // Another application of the same database has the usual one, and one queue has lists of both after a change.
    made.run(&[
        "SADD _kombu.binding.reports reports\u{6}\u{16}\u{6}\u{16}reports",
        "LPUSH reports\u{6}\u{16}3 {} {} {}",
        "LPUSH reports:3 {}",
        "SADD _kombu.binding.celery celery\u{6}\u{16}\u{6}\u{16}celery",
        "LPUSH celery\u{6}\u{16}6 {} {} {} {}",
    ]);
    let (rows, _) = made.queues().await;
    let of = |name: &str| row(&rows, name).depth;
    assert_eq!(
        (of("celery"), of("mail"), of("reports")),
        (Some(7), Some(0), Some(3))
    );
}

#[tokio::test]
async fn a_queue_without_a_worker_and_one_that_is_paused() {
    let Some(mut made) = Made::of(&[]).await else {
        return;
    };
    let ms = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("a time")
        .as_millis();
    for (queue, age_ms) in [("new", 0), ("old", 1_000_000), ("paused", 1_000_000)] {
        made.run(&[
            &format!("HSET bull:{queue}:meta version bullmq:6.7.0"),
            &format!("LPUSH bull:{queue}:wait 1"),
            &format!(
                "HSET bull:{queue}:1 name a timestamp {} opts {{}}",
                ms - age_ms
            ),
        ]);
    }
    made.run(&["HSET bull:paused:meta paused 1"]);
    let (rows, _) = made.queues().await;
    let of = |name: &str| judged(row(&rows, name).clone(), &QueueBounds::default());
    let (new, old, paused) = (of("new"), of("old"), of("paused"));
    assert_eq!(new.verdict, QueueVerdict::Warning, "{new:?}");
    assert_eq!(new.reasons, ["no worker listens to it"]);
    assert_eq!(old.verdict, QueueVerdict::Critical, "{old:?}");
    assert_eq!(old.reasons[0], "no worker listens to it");
    assert_eq!(
        (paused.queue.paused, paused.queue.workers),
        (Some(true), Some(0))
    );
    assert_eq!(paused.verdict, QueueVerdict::Unknown, "{paused:?}");
    assert!(!paused.reasons.iter().any(|why| why.contains("worker")));
    // The same in the report, in its exit code and in triage.
    let queues = stanch(&made.url, &["queues"]).expect_code(0);
    assert!(
        queues.stdout.contains("bullmq/paused (paused)"),
        "{queues:?}"
    );
    made.run(&["DEL bull:old:wait"]);
    stanch(&made.url, &["queues", "--check"]).expect_code(1);
    let triage = run(command(&["triage", "--json", "--redis", &made.url]));
    let findings = triage.json()["findings"].clone();
    let found = findings.as_array().and_then(|all| {
        let of = |finding: &&serde_json::Value| finding["id"] == "queue.backlog";
        all.iter().find(of).cloned()
    });
    let found = found.unwrap_or_else(|| panic!("{findings}"));
    assert_eq!(found["severity"], "warning", "{found}");
}
