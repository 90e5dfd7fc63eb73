//! The `redis` step of books, on a real Redis.

use std::path::Path;

use stanch::source::postgres::ConnSpec;

use crate::harness::{Run, folder, run, server, stanch_command};
use crate::redis_server::{free_port, redis};

fn walk(spec: &ConnSpec, state: &Path, book: &[&str], redis: &str) -> Run {
    let all = [&["runbook", "run", "--json", "--yes"], book].concat();
    let mut command = stanch_command(spec, &all);
    command.env("XDG_STATE_HOME", state).env("REDIS_URL", redis);
    run(command)
}

const STEPS: &str = "runbook: v1
id: looks
title: Looks
steps:
  - { id: cache, redis: { report: info }, timeout: 2s, on_error: broken, set: { keys: steps.cache.keys },
      expect: [{ that: 'steps.cache.hit_pct > 60.0', else: stop, say: 'only {{ hit_pct }} %' }] }
  - { id: way, decide: [{ if: 'vars.keys == 2 && steps.cache.role == \"master\" && steps.cache.maxmemory_bytes == 0', goto: done }, { else: broken }] }
  - { id: done, end: resolved }
  - { id: broken, end: escalated }
";

#[tokio::test]
async fn what_a_redis_says_of_itself() {
    let (state, home) = (folder(), folder());
    let port = free_port();
    let acl = [
        "--user", "default", "off", "--user", "looker", "on", ">hunter2", "~*", "+@all",
    ];
    let Some(_redis) = redis(home.path(), port, &acl).await else {
        return;
    };
    let url = format!("redis://looker:hunter2@127.0.0.1:{port}/3");
    let client = ::redis::Client::open(url.as_str()).expect("a client");
    let mut connection = client.get_connection().expect("a connection");
    for line in ["SET a 1", "SET b 2", "GET a", "GET a", "GET nothing"] {
        let mut command = ::redis::Cmd::new();
        for word in line.split(' ') {
            command.arg(word);
        }
        let _: ::redis::Value = command.query(&mut connection).expect("an answer");
    }
    let server = server(&[]).await;
    let spec = server.spec("postgres", "postgres");
    let file = state.path().join("looks.yaml");
    std::fs::write(&file, STEPS).expect("written");
    let file = file.display().to_string();
    let socket = home.path().join("redis.sock").display().to_string();
    for good in [
        url.clone(),
        format!("unix://{socket}?user=looker&pass=hunter2&db=3"),
    ] {
        let run = walk(&spec, state.path(), &["--file", &file], &good);
        assert_eq!(run.json()["ended"], "resolved", "{run:?}");
        for shown in ["database 3", "hit pct", "66.7", "slow log entries"] {
            assert!(run.stderr.contains(shown), "{shown}: {run:?}");
        }
        assert!(!format!("{run:?}").contains("hunter2"), "{run:?}");
    }
    // A wrong password, nobody there, no address: each ends in its own way, and none shows the password.
    for (bad, ended) in [
        (url.replace("hunter2", "hunter3"), "escalated"),
        (url.replace(&port.to_string(), "1"), "escalated"),
        (String::new(), "escalated"),
    ] {
        let run = walk(&spec, state.path(), &["--file", &file], &bad);
        assert_eq!(run.json()["ended"], ended, "{run:?}");
        assert!(!format!("{run:?}").contains("hunter"), "{run:?}");
    }
    let none = walk(&spec, state.path(), &["--file", &file], "cache");
    assert_eq!(none.code, 64, "{none:?}");
    // The built-in books look at it as well: a cache that is well, and nothing that storms.
    for (book, ended) in [
        ("cache-stampede", "false_alarm"),
        ("queue-backlog", "escalated"),
    ] {
        let book = match book {
            "cache-stampede" => &[book, "--set", "hit_floor=50"][..],
            _ => &[book][..],
        };
        let run = walk(&spec, state.path(), book, &url);
        assert_eq!(run.json()["ended"], ended, "{run:?}");
        assert!(run.stderr.contains("Redis at 127.0.0.1"), "{run:?}");
    }
    // On the command line a password is warned of.
    let mut flag = stanch_command(
        &spec,
        &["runbook", "run", "--json", "--file", &file, "--redis", &url],
    );
    flag.env("XDG_STATE_HOME", state.path());
    let flag = run(flag);
    assert!(flag.stderr.contains("can be read by others"), "{flag:?}");
}
