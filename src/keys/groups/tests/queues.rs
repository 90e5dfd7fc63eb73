//! Queues of the well-known kinds.

use super::*;

#[test]
fn sidekiq() {
    let r = &mut Random::new(11);
    let mut keys: Vec<String> = [
        "queues",
        "processes",
        "schedule",
        "retry",
        "dead",
        "stat:processed",
        "stat:failed",
        "queue:default",
        "queue:mailers",
        "queue:low",
    ]
    .map(String::from)
    .to_vec();
    for day in 1..=30 {
        keys.push(format!("stat:processed:2024-01-{day:02}"));
        keys.push(format!("stat:failed:2024-01-{day:02}"));
    }
    for n in 0..40 {
        let process = format!("web-{}:{}:{}", r.text("bcdfghjkmn", 5), 100 + n, r.hex(12));
        keys.push(format!("{process}:work"));
        keys.push(process);
    }
    assert_groups(
        &keys,
        &[
            ("queues", 1),
            ("processes", 1),
            ("schedule", 1),
            ("retry", 1),
            ("dead", 1),
            ("stat:processed", 1),
            ("stat:failed", 1),
            ("stat:processed:*", 30),
            ("stat:failed:*", 30),
            ("queue:default", 1),
            ("queue:mailers", 1),
            ("queue:low", 1),
            ("web-*:*:*", 40),
            ("web-*:*:*:work", 40),
        ],
    );
}

#[test]
fn bullmq() {
    let parts = [
        "meta",
        "id",
        "events",
        "wait",
        "active",
        "completed",
        "failed",
        "delayed",
        "stalled-check",
        "marker",
        "prioritized",
        "waiting-children",
    ];
    let mut keys: Vec<String> = parts
        .iter()
        .map(|part| format!("bull:mail:{part}"))
        .collect();
    for n in 0..1000 {
        keys.push(format!("bull:mail:{n}"));
        if n % 10 == 0 {
            keys.push(format!("bull:mail:{n}:lock"));
        }
    }
    let mut expected: Vec<(String, usize)> = parts
        .iter()
        .map(|p| (format!("bull:mail:{p}"), 1))
        .collect();
    expected.push(("bull:mail:*".to_owned(), 1000));
    expected.push(("bull:mail:*:lock".to_owned(), 100));
    let expected: Vec<(&str, usize)> = expected.iter().map(|(name, n)| (&**name, *n)).collect();
    assert_groups(&keys, &expected);
}

#[test]
fn many_queues_of_bullmq() {
    let mut keys = Vec::new();
    for queue in 0..200 {
        for part in ["meta", "id", "wait"] {
            keys.push(format!("bull:{}:{part}", word(queue)));
        }
        for job in 0..5 {
            keys.push(format!("bull:{}:{job}", word(queue)));
        }
    }
    assert_groups(
        &keys,
        &[
            ("bull:*:meta", 200),
            ("bull:*:id", 200),
            ("bull:*:wait", 200),
            ("bull:*:*", 1000),
        ],
    );
}

#[test]
fn celery() {
    let r = &mut Random::new(12);
    let mut keys: Vec<String> = [
        "celery",
        "celery\x06\x163",
        "celery\x06\x166",
        "celery\x06\x169",
        "unacked",
        "unacked_index",
        "unacked_mutex",
        "_kombu.binding.celery",
        "_kombu.binding.celeryev",
        "_kombu.binding.celery.pidbox",
    ]
    .map(String::from)
    .to_vec();
    for _ in 0..200 {
        keys.push(format!("celery-task-meta-{}", r.uuid()));
        keys.push(format!("{}.reply.celery.pidbox", r.uuid()));
    }
    assert_groups(
        &keys,
        &[
            ("celery", 1),
            ("celery*", 3),
            ("unacked", 1),
            ("unacked_index", 1),
            ("unacked_mutex", 1),
            ("_kombu.binding.celery", 1),
            ("_kombu.binding.celeryev", 1),
            ("_kombu.binding.celery.pidbox", 1),
            ("celery-task-meta-*", 200),
            ("*.reply.celery.pidbox", 200),
        ],
    );
}

#[test]
fn rq_and_resque() {
    let r = &mut Random::new(13);
    let mut keys: Vec<String> = [
        "rq:queues",
        "rq:workers",
        "rq:queue:default",
        "rq:queue:high",
        "rq:wip:default",
        "rq:finished:default",
        "rq:failed:default",
        "rq:scheduler-lock:default",
        "resque:queues",
        "resque:failed",
        "resque:stat:processed",
        "resque:queue:images",
    ]
    .map(String::from)
    .to_vec();
    let mut expected: Vec<(String, usize)> = keys.iter().map(|key| (key.clone(), 1)).collect();
    for n in 0..200 {
        keys.push(format!("rq:job:{}", r.uuid()));
        keys.push(format!("rq:results:{}", r.uuid()));
        keys.push(format!("rq:worker:{}", r.hex(32)));
        keys.push(format!("resque:worker:host{n:02}:{n}:default"));
        keys.push(format!("resque:delayed:{}", 1_700_000_000 + n));
    }
    for name in [
        "rq:job:*",
        "rq:results:*",
        "rq:worker:*",
        "resque:worker:host*:*:default",
        "resque:delayed:*",
    ] {
        expected.push((name.to_owned(), 200));
    }
    let expected: Vec<(&str, usize)> = expected.iter().map(|(name, n)| (&**name, *n)).collect();
    assert_groups(&keys, &expected);
}
