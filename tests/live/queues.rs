//! Queues on a real Redis, made by hand: where they are found, what can't be read, how they change.

use std::time::Duration;

use stanch::analysis::redis::queues::rates;
use stanch::model::{Queue, QueueSystem, RedisCoverage, Timestamp};
use stanch::source::redis::queues::{QueueOptions, discover, inspect, queues};
use stanch::source::redis::{self, Budget, Fleet, Limits, RedisAddress, Watch};

use crate::harness::{eventually, folder};
use crate::redis_server::{Redis, free_port, redis as server};

pub struct Nobody;

impl Watch for Nobody {
    fn progress(&self, _: u64, _: Option<u64>) {}

    fn is_stopped(&self) -> bool {
        false
    }
}

pub const ALL: QueueOptions = QueueOptions {
    walk: true,
    streams: true,
    touch: true,
    budget: Budget::FULL,
};

pub async fn open(url: &str) -> Fleet {
    let address = RedisAddress::parse(url).expect("an address");
    let limits = Limits {
        connect: Duration::from_secs(5),
        answer: Duration::from_secs(5),
    };
    redis::open(&address, None, limits).await.expect("a Redis")
}

pub async fn now(fleet: &mut Fleet) -> Timestamp {
    redis::time(fleet).await.expect("the server's time")
}

/// A Redis with what was made in it.
pub struct Made {
    pub url: String,
    link: ::redis::Connection,
    _redis: Redis,
    _folder: tempfile::TempDir,
}

impl Made {
    pub async fn of(more: &[&str]) -> Option<Self> {
        let home = folder();
        let port = free_port();
        let redis = server(home.path(), port, more).await?;
        let url = format!("redis://127.0.0.1:{port}/0");
        let client = ::redis::Client::open(url.as_str()).expect("a client");
        Some(Self {
            url,
            link: client.get_connection().expect("a connection"),
            _redis: redis,
            _folder: home,
        })
    }

    pub fn run(&mut self, lines: &[&str]) {
        for line in lines {
            self.ask(line);
        }
    }

    pub fn ask(&mut self, line: &str) -> ::redis::Value {
        let mut command = ::redis::Cmd::new();
        for word in line.split(' ') {
            command.arg(word);
        }
        let answer = command.query(&mut self.link);
        answer.unwrap_or_else(|e| panic!("{line}: {e}"))
    }

    /// Lookups that the server has counted.
    fn lookups(&mut self) -> u64 {
        let ::redis::Value::BulkString(text) = self.ask("INFO stats") else {
            panic!("no INFO");
        };
        let text = String::from_utf8(text).expect("text");
        let counts = text.lines().filter_map(|line| {
            let (name, count) = line.trim_end().split_once(':')?;
            name.starts_with("keyspace_")
                .then(|| count.parse::<u64>().ok())?
        });
        counts.sum()
    }

    pub async fn queues(&self) -> (Vec<Queue>, RedisCoverage) {
        let mut fleet = open(&self.url).await;
        let now = now(&mut fleet).await;
        queues(&mut fleet, now, &Nobody, ALL).await
    }
}

fn names(rows: &[Queue]) -> Vec<(QueueSystem, &str, Option<u64>)> {
    rows.iter()
        .map(|row| (row.system, row.name.as_str(), row.depth))
        .collect()
}

#[track_caller]
pub fn row<'r>(rows: &'r [Queue], name: &str) -> &'r Queue {
    let found = rows.iter().find(|row| row.name == name);
    found.unwrap_or_else(|| panic!("{name}: {rows:#?}"))
}

#[track_caller]
pub fn noted(row: &Queue, text: &str) {
    assert!(
        row.notes.iter().any(|note| note.contains(text)),
        "{text}: {row:#?}"
    );
}

const SIDEKIQ_JOB: &str =
    r#"{"class":"A","args":["hunter2"],"jid":"j1","enqueued_at":1796035660.5}"#;
const RESQUE_JOB: &str = r#"{"class":"B","args":["hunter2"]}"#;

#[tokio::test]
async fn prefixes_of_ones_own_and_what_is_no_queue() {
    let Some(mut made) = Made::of(&[]).await else {
        return;
    };
    made.run(&[
        // Sidekiq with a namespace; one queue empty, one without its entry in the set.
        "SADD myapp:queues default idle",
        &format!("LPUSH myapp:queue:default {SIDEKIQ_JOB} {SIDEKIQ_JOB}"),
        &format!("LPUSH myapp:queue:stray {SIDEKIQ_JOB}"),
        // Resque without its prefix.
        "SADD queues plain",
        &format!("RPUSH queue:plain {RESQUE_JOB}"),
        // RQ with another prefix.
        "SADD {my}:rq:queues {my}:rq:queue:mail",
        "RPUSH {my}:rq:queue:mail id1",
        "HSET {my}:rq:job:id1 created_at 2026-11-30T10:00:00Z enqueued_at 2026-11-30T10:00:00Z description app.send('hunter2')",
        // BullMQ, with a prefix, by a version before it wrote one.
        "HSET {bull}:q:meta opts.maxLenEvents 10000",
        "LPUSH {bull}:q:wait 1",
        "XADD {bull}:q:events * event added",
        // Celery with a prefix.
        "SADD p._kombu.binding.celery celery\u{6}\u{16}\u{6}\u{16}celery",
        "LPUSH p.celery {}",
        "LPUSH p.celery\u{6}\u{16}3 {} {}",
        // None of these is a queue.
        "SET other:queues 5",
        "SADD shop:queues till1 till2",
        "HSET user:5:meta name bob",
        "SET queue:7 x",
        "LPUSH queue:numbers 1 2 3",
        "SADD _kombu.binding.reply.celery.pidbox \u{6}\u{16}\u{6}\u{16}x.reply.celery.pidbox",
        "XADD temperatures * c 21",
    ]);
    let (rows, coverage) = made.queues().await;
    use QueueSystem::{Bullmq, Celery, Resque, Rq, Sidekiq};
    assert_eq!(
        names(&rows),
        [
            (Sidekiq, "myapp:default", Some(2)),
            (Sidekiq, "myapp:idle", Some(0)),
            (Sidekiq, "myapp:stray", Some(1)),
            (Resque, "plain", Some(1)),
            (Celery, "p.celery", Some(3)),
            (Bullmq, "{bull}:q", Some(1)),
            (Rq, "{my}:rq:mail", Some(1)),
        ]
    );
    assert!(coverage.complete, "{coverage:?}");
    noted(row(&rows, "myapp:stray"), "isn't in the set of queues");
    let said = serde_json::to_string(&rows).expect("JSON");
    assert!(!said.contains("hunter2"), "{said}");
    let mail = row(&rows, "{my}:rq:mail").head.as_ref().expect("a head");
    assert_eq!(mail.class.as_deref(), Some("app.send"));
}

#[tokio::test]
async fn sidekiq_and_resque_that_share_a_set() {
    let Some(mut made) = Made::of(&[]).await else {
        return;
    };
    made.run(&["SADD queues a b c", &format!("LPUSH queue:a {SIDEKIQ_JOB}")]);
    made.run(&[&format!("RPUSH queue:b {RESQUE_JOB}")]);
    let (rows, _) = made.queues().await;
    let of = |rows: &[Queue], name: &str| row(rows, name).system;
    assert_eq!(of(&rows, "a"), QueueSystem::Sidekiq);
    assert_eq!(of(&rows, "b"), QueueSystem::Resque);
    noted(row(&rows, "c"), "nothing tells which");
    assert_eq!(row(&rows, "a").notes, [""; 0]);
    // An empty installation is told by its other keys, and without any a set of that name by nothing.
    made.run(&["DEL queue:a queue:b", "SADD workers host:1:*"]);
    let (rows, _) = made.queues().await;
    assert!(
        rows.iter().all(|row| row.system == QueueSystem::Resque),
        "{rows:#?}"
    );
    made.run(&["DEL workers", "SADD processes host:1:x"]);
    let (rows, _) = made.queues().await;
    assert!(
        rows.iter().all(|row| row.system == QueueSystem::Sidekiq),
        "{rows:#?}"
    );
    made.run(&["DEL processes"]);
    let (rows, _) = made.queues().await;
    assert_eq!(rows.len(), 3);
    noted(&rows[0], "nothing tells which");
}

#[tokio::test]
async fn what_is_too_long_stands_in_a_row_of_its_own() {
    let Some(mut made) = Made::of(&[]).await else {
        return;
    };
    made.run(&["SADD queues a", &format!("LPUSH queue:a {SIDEKIQ_JOB}")]);
    let fill = r#"for i=1,tonumber(ARGV[2]) do redis.call('ZADD',KEYS[1],ARGV[1]+i,'{"class":"A","queue":"a","jid":"'..i..'"}') end"#;
    let fill = fill.replace(' ', "\t");
    made.run(&[
        &format!("EVAL {fill} 1 dead 1796000000 9999"),
        &format!("EVAL {fill} 1 retry 1000 100"),
        &format!("EVAL {fill} 1 schedule 9000000000 101"),
    ]);
    let (rows, _) = made.queues().await;
    let (all, a) = (row(&rows, "*"), row(&rows, "a"));
    assert_eq!((all.dead, a.dead), (Some(9999), None));
    noted(all, "the dead set is full");
    assert!(all.oldest_dead_ms.is_some());
    // What is shared out stands with its queue alone.
    assert_eq!((all.retry, a.retry), (None, Some(100)));
    assert_eq!((all.scheduled, a.scheduled), (Some(101), None));
    // Of the retries it is known, of the schedule for all queues together only.
    assert_eq!((all.overdue, a.overdue), (Some(100), None));
    assert_eq!((all.long_overdue, all.depth), (Some(100), None));
}

#[tokio::test]
async fn streams_and_their_groups() {
    let Some(mut made) = Made::of(&[]).await else {
        return;
    };
    for n in 1..=300 {
        made.ask(&format!("XADD orders * n {n}"));
    }
    made.run(&[
        "XGROUP CREATE orders paid 0",
        "XREADGROUP GROUP paid c1 COUNT 100 STREAMS orders >",
        "XGROUP CREATE orders late $",
        // Made at an id that isn't the first: the server doesn't know its lag.
        "XADD odd 1001-0 a b",
        "XADD odd 1002-0 a b",
        "XADD odd 1003-0 a b",
        "XGROUP CREATE odd g 1001-5",
        "XADD mail:jobs * a b",
        "EVAL for\ti=1,10200\tdo\tredis.call('XADD',KEYS[1],i..'-1','a','b')\tend 1 long",
        "XGROUP CREATE long g 5-5",
        "XADD gone * a b",
        "XGROUP CREATE gone g 0",
        "XREADGROUP GROUP g c STREAMS gone >",
        "XTRIM gone MAXLEN 0",
    ]);
    let (rows, coverage) = made.queues().await;
    let of = |name: &str| row(&rows, name);
    let paid = of("orders/paid");
    assert_eq!((paid.depth, paid.in_flight), (Some(200), Some(100)));
    assert_eq!((paid.retry, paid.workers), (Some(0), None));
    assert!(
        paid.oldest_age_ms.is_some_and(|age| age.0 < 60_000),
        "{paid:#?}"
    );
    assert!(paid.oldest_in_flight_ms.is_some_and(|age| age.0 < 60_000));
    noted(paid, "consumers: 1");
    let late = of("orders/late");
    assert_eq!((late.depth, late.workers), (Some(0), Some(0)));
    assert_eq!(late.oldest_age_ms, None);
    let odd = of("odd/g");
    assert_eq!((odd.depth, odd.oldest_age_ms), (Some(2), None));
    noted(odd, "counted by XRANGE");
    noted(odd, "its ids aren't times");
    let long = of("long/g");
    assert_eq!((long.depth, long.depth_at_least), (None, Some(10_000)));
    noted(long, "at least 10000");
    let jobs = of("mail:jobs");
    assert_eq!(jobs.depth, None);
    noted(jobs, "history");
    let gone = of("gone/g");
    assert_eq!((gone.depth, gone.in_flight), (Some(0), Some(1)));
    noted(gone, "pending but deleted (poison): 1");
    assert_eq!(rows.len(), 6, "{rows:#?}");
    assert!(coverage.complete, "{coverage:?}");
}

#[tokio::test]
async fn a_login_that_may_only_read() {
    let reader = [
        "--user",
        "default",
        "on",
        "nopass",
        "~*",
        "+@all",
        "--user",
        "reader",
        "on",
        ">pw",
        "+@read",
        "+select",
        "~*",
        "--user",
        "narrow",
        "on",
        ">pw",
        "+@read",
        "+select",
        "~queues",
        "~queue:a",
        "~queue:b",
        "~processes",
        "~paused",
        "~schedule",
        "~retry",
    ];
    let Some(mut made) = Made::of(&reader).await else {
        return;
    };
    made.run(&[
        "SADD queues a b c",
        &format!("LPUSH queue:a {SIDEKIQ_JOB}"),
        &format!("LPUSH queue:c {SIDEKIQ_JOB}"),
        "HSET bull:q:meta version bullmq:6.7.0",
    ]);
    let now = Timestamp::new("2026-11-30T10:48:00Z".parse().expect("a time"));
    let mut reader = open(&made.url.replace("//", "//reader:pw@")).await;
    assert!(reader.facts.is_none() && redis::time(&mut reader).await.is_err());
    let (rows, coverage) = queues(&mut reader, now, &Nobody, ALL).await;
    assert!(rows.iter().all(|row| row.refused.is_none()), "{rows:#?}");
    let a = row(&rows, "a");
    assert!(
        a.oldest_age_ms.is_some_and(|age| age.0 / 1000 == 19),
        "{a:#?}"
    );
    assert_eq!(row(&rows, "q").workers, None);
    assert!(coverage.complete, "{coverage:?}");
    // What one queue is refused is told of that queue, and the others are told as ever.
    let mut narrow = open(&made.url.replace("//", "//narrow:pw@")).await;
    let (rows, coverage) = queues(&mut narrow, now, &Nobody, ALL).await;
    let (a, b, c) = (row(&rows, "a"), row(&rows, "b"), row(&rows, "c"));
    assert_eq!((a.depth, b.depth, c.depth), (Some(1), Some(0), None));
    assert_eq!(
        (a.refused.as_deref(), a.dead, a.retry),
        (None, None, Some(0))
    );
    assert!(
        c.refused
            .as_deref()
            .is_some_and(|why| why.contains("NOPERM")),
        "{c:#?}"
    );
    assert!(row(&rows, "*").refused.is_some());
    assert!(!coverage.complete, "{coverage:?}");
    assert!(coverage.sections.contains_key("queues"), "{coverage:?}");
}

#[tokio::test]
async fn two_looks_tell_rates_and_the_lookups_are_counted() {
    let Some(mut made) = Made::of(&[]).await else {
        return;
    };
    made.run(&[
        "HSET bull:q:meta version bullmq:6.7.0",
        "SET bull:q:id 2",
        "LPUSH bull:q:wait 1 2",
        "ZADD bull:q:completed 1796035660500 done",
        "HSET bull:q:1 name charge timestamp 1796035660500 opts {}",
        "XADD orders * a b",
        "XGROUP CREATE orders g 0",
        "SADD _kombu.binding.celery celery\u{6}\u{16}\u{6}\u{16}celery",
        r#"LPUSH celery {"headers":{"task":"t","id":"1"}}"#,
        "SADD resque:queues r",
        &format!("RPUSH resque:queue:r {RESQUE_JOB}"),
        "SADD rq:queues rq:queue:d",
        "RPUSH rq:queue:d id1",
    ]);
    let mut fleet = open(&made.url).await;
    let at = now(&mut fleet).await;
    let unlooked = made.lookups();
    let (places, mut coverage) = discover(&mut fleet, &Nobody, ALL).await;
    let (counted, said) = (made.lookups(), coverage.own_effect.lookups);
    assert_eq!(said, counted - unlooked);
    let before = inspect(&mut fleet, &places, at, &mut coverage).await;
    assert_eq!(coverage.own_effect.lookups - said, made.lookups() - counted);
    made.run(&[
        "INCRBY bull:q:id 10",
        "LPUSH bull:q:wait 3 4 5",
        "ZADD bull:q:completed 1 a 2 b 3 c 4 d 5 e 6 f 7 g",
        "XADD orders * a b",
        "XADD orders * a b",
        "XREADGROUP GROUP g c COUNT 1 STREAMS orders >",
    ]);
    let at = now(&mut fleet).await;
    let mut after = inspect(&mut fleet, &places, at, &mut coverage).await;
    rates(&before, &mut after, Duration::from_secs(10));
    let q = row(&after, "q");
    assert_eq!((q.arrival_per_s, q.drain_per_s), (Some(1.0), Some(0.7)));
    let orders = row(&after, "orders/g");
    assert_eq!(
        (orders.arrival_per_s, orders.drain_per_s),
        (Some(0.2), Some(0.1))
    );
    let celery = row(&after, "celery");
    assert_eq!((celery.net_per_s, celery.drain_per_s), (Some(0.0), None));
    assert_eq!(celery.oldest_age_ms.map(|age| age.0), Some(10_000));
    noted(celery, "the head hasn't changed for 10 s");
    noted(row(&after, "r"), "just like it");
}

#[tokio::test]
async fn keys_of_a_queue_on_any_node_of_a_cluster() {
    let clustered = ["--cluster-enabled", "yes", "--cluster-port"];
    let (first, second) = (free_port().to_string(), free_port().to_string());
    let Some(mut a) = Made::of(&[&clustered[..], &[&first]].concat()).await else {
        return;
    };
    let Some(mut b) = Made::of(&[&clustered[..], &[&second]].concat()).await else {
        return;
    };
    let port = b.url.rsplit([':', '/']).nth(1).expect("a port").to_owned();
    a.ask("CLUSTER ADDSLOTSRANGE 0 8191");
    b.ask("CLUSTER ADDSLOTSRANGE 8192 16383");
    a.ask(&format!("CLUSTER MEET 127.0.0.1 {port} {second}"));
    eventually("the cluster", || {
        let ready = |made: &mut Made| {
            let info = format!("{:?}", made.ask("CLUSTER INFO"));
            info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:2")
        };
        ready(&mut a) && ready(&mut b)
    })
    .await;
    // Each of these lines goes to whichever node takes it.
    for line in [
        "SADD rq:queues rq:queue:d rq:queue:e".to_owned(),
        "RPUSH rq:queue:d id1".to_owned(),
        "RPUSH rq:queue:e id1 id2".to_owned(),
        "HSET rq:job:id1 created_at 2026-11-30T10:00:00Z description f()".to_owned(),
        "HSET {x}:q:meta version bullmq:6.7.0".to_owned(),
        "LPUSH {x}:q:wait 1".to_owned(),
        "XADD {y}:s 1-1 a b".to_owned(),
        "XGROUP CREATE {y}:s g 0".to_owned(),
    ] {
        let sent = [&mut a, &mut b].map(|made| {
            let mut command = ::redis::Cmd::new();
            line.split(' ').for_each(|word| {
                command.arg(word);
            });
            command.query::<::redis::Value>(&mut made.link).is_ok()
        });
        assert!(sent[0] != sent[1], "{line}: {sent:?}");
    }
    let (rows, coverage) = a.queues().await;
    assert_eq!(
        names(&rows),
        [
            (QueueSystem::Bullmq, "{x}:q", Some(1)),
            (QueueSystem::Rq, "d", Some(1)),
            (QueueSystem::Rq, "e", Some(2)),
            (QueueSystem::Stream, "{y}:s/g", Some(1)),
        ]
    );
    assert!(rows.iter().all(|row| row.refused.is_none()), "{rows:#?}");
    assert!(
        coverage.complete && coverage.nodes.len() == 2,
        "{coverage:?}"
    );
    assert_eq!(
        row(&rows, "d")
            .head
            .as_ref()
            .and_then(|head| head.class.as_deref()),
        Some("f")
    );
}

#[tokio::test]
async fn a_server_that_falls_silent_is_waited_for_once() {
    let Some(mut made) = Made::of(&[]).await else {
        return;
    };
    for n in 0..20 {
        made.ask(&format!("HSET bull:q{n}:meta version bullmq:6.7.0"));
    }
    let address = RedisAddress::parse(&made.url).expect("an address");
    let limits = Limits {
        connect: Duration::from_secs(5),
        answer: Duration::from_secs(2),
    };
    let mut fleet = redis::open(&address, None, limits).await.expect("a Redis");
    let at = now(&mut fleet).await;
    let (places, mut coverage) = discover(&mut fleet, &Nobody, ALL).await;
    made.ask("CLIENT PAUSE 60000");
    let asked = std::time::Instant::now();
    let rows = inspect(&mut fleet, &places, at, &mut coverage).await;
    assert!(
        asked.elapsed() < Duration::from_secs(20),
        "{:?}",
        asked.elapsed()
    );
    assert_eq!(rows.len(), 20);
    assert!(
        rows.iter()
            .all(|row| row.depth.is_none() && row.refused.is_some()),
        "{rows:#?}"
    );
    assert!(!coverage.complete && coverage.sections.contains_key("queues"));
}
