//! What is shown live is shown again from the saved file: the same bytes, also with the server gone.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use stanch::drill::{Incident, Server, ServerOptions};
use stanch::source::postgres::catalog;

use crate::harness::{
    self, REPORTS, Run, admin, client, command, folder, run, scene, sql, stanch_as, stanch_command,
};

async fn same_bytes(incident: Incident) {
    let (server, scene) = scene(incident).await;
    let folder = folder();
    let spec = admin(&server);
    let mut seen: Vec<(Vec<&str>, String, Run)> = Vec::new();
    let mut read = |args: Vec<&'static str>, live: &[&str]| {
        let file = folder.path().join(seen.len().to_string());
        let file = file.display().to_string();
        let run = stanch_as(&spec, &[&args[..], live, &["--save", &file]].concat());
        assert!(!run.stdout.is_empty(), "{args:?}: {run:?}");
        assert!(run.code <= 2, "{args:?}: {run:?}");
        seen.push((args, file, run));
    };
    let plain = [&[][..], &["--json"], &["-o", "csv"], &["-o", "md"]];
    let judged = [&["-v", "--color", "always"][..], &["--check"]];
    for report in REPORTS {
        for format in plain.iter().chain(&judged) {
            read([report, format].concat(), &[]);
        }
    }
    for topic in catalog::all() {
        for format in &plain[..2] {
            read([&["query", "run", topic.name], *format].concat(), &[]);
        }
    }
    for format in plain.iter().chain(&judged[1..]) {
        read([&["pg", "deadlocks"], *format].concat(), &["--for", "1s"]);
    }
    let mode = std::fs::metadata(&seen[0].1)
        .expect("the file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    drop((scene, server));
    for (args, file, live) in seen {
        let replay = run(command(&[&args[..], &["--from", &file]].concat()));
        assert_eq!(replay.stdout, live.stdout, "{args:?}");
        assert_eq!(replay.code, live.code, "{args:?}");
        assert_eq!(replay.stderr, "", "{args:?}");
    }
}

#[tokio::test]
async fn exhaustion() {
    same_bytes(Incident::Exhaustion).await;
}

#[tokio::test]
async fn leak() {
    same_bytes(Incident::Leak).await;
}

#[tokio::test]
async fn long_transaction() {
    same_bytes(Incident::LongTransaction).await;
}

#[tokio::test]
async fn lock_chain() {
    same_bytes(Incident::LockChain).await;
}

#[tokio::test]
async fn lock_queue() {
    same_bytes(Incident::LockQueue).await;
}

#[tokio::test]
async fn prepared() {
    same_bytes(Incident::Prepared).await;
}

#[tokio::test]
async fn deadlock() {
    same_bytes(Incident::Deadlock).await;
}

#[tokio::test]
async fn storm() {
    same_bytes(Incident::Storm).await;
}

#[tokio::test]
async fn pool_timeouts() {
    same_bytes(Incident::PoolTimeouts).await;
}

/// A file saved by one report serves every other: it holds the whole round.
#[tokio::test]
async fn any_report_saves_the_whole_round() {
    let (server, scene) = scene(Incident::LockChain).await;
    let folder = folder();
    let file = folder.path().join("round.json").display().to_string();
    stanch_as(&admin(&server), &["pg", "settings", "--save", &file]).expect_code(0);
    drop((scene, server));
    let report = run(command(&["pg", "blockers", "--json", "--from", &file]))
        .expect_code(0)
        .json();
    assert_eq!(report["roots"][0]["blocked_total"], 7);
    assert_eq!(
        report["coverage"]["sections"]["locks"]["status"],
        "collected"
    );
}

/// The rows of every built-in query are in a bundle too, in each of its frames, as every format has them; under tokens nobody's
/// name is in them.
#[tokio::test]
async fn rows_of_queries_are_captured() {
    let (server, scene) = scene(Incident::Prepared).await;
    let spec = admin(&server);
    let kept = folder();
    let out = kept.path().display().to_string();
    let plain = stanch_as(&spec, &["capture", "--out", &out, "--json"]).expect_code(0);
    let mut hidden = stanch_command(&spec, &["capture", "--out", &out, "--tokens", "--json"]);
    hidden.env("XDG_STATE_HOME", kept.path());
    let hidden = run(hidden).expect_code(0);
    drop((scene, server));
    // With the key it can be told who a token is; without it, and of names that aren't there, not.
    let path = hidden.json()["path"].as_str().map(ToOwned::to_owned);
    let path = path.expect("a path");
    let named = |names: &[&str]| {
        let mut named = command(&[&["bundle", "names", &path, "--json"], names].concat());
        named.env("XDG_STATE_HOME", kept.path());
        run(named)
    };
    let told = named(&[&spec.user, &spec.database]).expect_code(0).json();
    let kinds: Vec<&str> = told["tokens"]
        .as_array()
        .expect("tokens")
        .iter()
        .filter_map(|one| one["kind"].as_str())
        .collect();
    assert!(kinds.contains(&"user") && kinds.contains(&"db"), "{told:#}");
    let told = named(&["nobody-of-that-name"]).expect_code(3).json();
    assert_eq!(told["missing"][0], "nobody-of-that-name");
    let elsewhere = named(&[&spec.user, "--key", "/dev/null"]);
    assert_eq!(elsewhere.code, 3, "{elsewhere:?}");
    let of = |capture: &Run, topic: &str, format: &[&str]| {
        let path = capture.json()["path"].as_str().map(ToOwned::to_owned);
        let path = path.expect("a path");
        let query = ["query", "run", topic, "--from", &path, "--at", "first"];
        run(command(&[&query[..], format].concat())).expect_code(0)
    };
    let rows = |capture: &Run, topic: &str| {
        let told = of(capture, topic, &["--json"]).json();
        told["rows"].as_array().cloned().expect("rows")
    };
    for topic in catalog::all() {
        let all = rows(&plain, topic.name);
        assert_eq!(rows(&hidden, topic.name).len(), all.len(), "{}", topic.name);
        let columns: Vec<&str> = topic.columns().collect();
        let csv = of(&plain, topic.name, &["-o", "csv"]).stdout;
        assert_eq!(csv.lines().next(), Some(&*columns.join(",")));
        let md = of(&plain, topic.name, &["-o", "md"]).stdout;
        let told = all.is_empty() && md == format!("No {}.\n", topic.name);
        assert!(told || md.starts_with('|'), "{}: {md}", topic.name);
    }
    let gids = |capture| rows(capture, "prepared")[0]["gid"].to_string();
    assert!(gids(&hidden).starts_with("\"gid_"), "{}", gids(&hidden));
    assert!(!gids(&plain).starts_with("\"gid_"));
    let database = format!("\"{}\"", spec.database);
    let user = format!("\"{}\"", spec.user);
    for (topic, name) in [
        ("databases", &database),
        ("server", &database),
        ("roles", &user),
        ("login", &user),
    ] {
        let told = |capture| of(capture, topic, &["--json"]).stdout;
        assert!(told(&plain).contains(name), "{topic}");
        assert!(!told(&hidden).contains(name), "{topic}: {}", told(&hidden));
    }
}

/// A query that failed, no connection, and a file of before rows were kept: live and replayed alike, and told apart.
#[tokio::test]
async fn rows_that_are_missing() {
    let kept = folder();
    let file = |name: &str| kept.path().join(name).display().to_string();
    let again = |args: &[&str], file: &str, live: &Run, said: &str| {
        let replay = run(command(&[args, &["--from", file]].concat()));
        assert_eq!((&replay.stdout, replay.code), (&live.stdout, live.code));
        assert!(replay.stderr.contains(said), "{replay:?}");
    };
    let server = harness::server(&[]).await;
    let boss = client(&server.spec("postgres", "postgres"), "boss").await;
    sql(&boss, "CREATE ROLE oncall LOGIN").await;
    sql(
        &boss,
        "REVOKE EXECUTE ON FUNCTION pg_prepared_xact() FROM public",
    )
    .await;
    let query = ["query", "run", "prepared"];
    let failed = file("failed");
    let oncall = server.spec("oncall", "postgres");
    let live = stanch_as(&oncall, &[&query[..], &["--save", &failed]].concat()).expect_code(3);
    assert!(live.stderr.contains("(42501)"), "{live:?}");
    again(&query, &failed, &live, "(42501)");
    // The others of that round were read.
    run(command(&["query", "run", "locks", "--from", &failed])).expect_code(0);

    let (full, _scene) = scene(Incident::Exhaustion).await;
    let refused = file("refused");
    let app = full.spec("app_rw", "shop");
    let args = [
        "query",
        "run",
        "locks",
        "--wait-slot",
        "0s",
        "--save",
        &refused,
    ];
    let live = stanch_as(&app, &args).expect_code(3);
    again(
        &["query", "run", "locks"],
        &refused,
        &live,
        "there was no connection",
    );

    let older = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures/leak.json");
    let older = older.display().to_string();
    let replay = run(command(&[&query[..], &["--from", &older]].concat())).expect_code(3);
    assert!(
        replay.stderr.contains("has no rows of queries"),
        "{replay:?}"
    );
    assert!(replay.stderr.contains("--save FILE"), "{replay:?}");
}

/// A refusal for want of a slot is an answer too, and replays.
#[tokio::test]
async fn a_refusal_replays() {
    let (server, scene) = scene(Incident::Exhaustion).await;
    let folder = folder();
    let file = folder.path().join("refused.json").display().to_string();
    let app = server.spec("app_rw", "shop");
    let live = stanch_as(
        &app,
        &["triage", "--json", "--wait-slot", "0s", "--save", &file],
    )
    .expect_code(2);
    drop((scene, server));
    let replay = run(command(&["triage", "--json", "--from", &file])).expect_code(2);
    assert_eq!(replay.stdout, live.stdout);
    assert_eq!(live.json()["findings"][0]["id"], "conn.exhausted");
    // And no book takes it for calm.
    let walked = run(command(&[
        "runbook",
        "run",
        "lock-pileup",
        "--json",
        "--from",
        &file,
    ]));
    assert!(
        walked.expect_code(3).json()["ended"]
            .as_str()
            .is_some_and(|how| how.starts_with("could not tell: ")),
    );
}

/// The primary dies and its standby takes over: what was kept of both is one postmortem, each number under its own server.
#[tokio::test]
async fn a_failover_is_one_postmortem() {
    let mut primary =
        crate::harness::server(&[("max_wal_senders", "5"), ("max_connections", "40")]).await;
    let standby = crate::harness::start(ServerOptions {
        settings: vec![("max_connections", "60".into())],
        standby_of: Some(primary.spec("postgres", "postgres")),
        ..ServerOptions::default()
    })
    .await;
    let folder = folder();
    let mut files = Vec::new();
    let mut keep = |server: &Server, name: &str| {
        let file = folder.path().join(name).display().to_string();
        let spec = server.spec("postgres", "postgres");
        let run = stanch_as(&spec, &["triage", "--save", &file]);
        assert!(run.code < 3, "{run:?}");
        files.push(file);
    };
    keep(&primary, "1.json");
    keep(&standby, "2.json");
    keep(&primary, "3.json");
    primary.stop().expect("it stops");
    let boss = client(&standby.spec("postgres", "postgres"), "boss").await;
    sql(&boss, "SELECT pg_promote()").await;
    stanch::drill::until(&boss, "SELECT NOT pg_is_in_recovery()")
        .await
        .expect("it is promoted");
    keep(&standby, "4.json");
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let run = run(command(&[&["report", "-o", "md"], &files[..]].concat())).expect_code(0);
    let place = |server: &Server| {
        let spec = server.spec("postgres", "postgres");
        format!("{}:{}", spec.host, spec.port)
    };
    let (first, second) = (place(&primary), place(&standby));
    let line = |what: &str| {
        let found = run.stdout.lines().find(|line| line.contains(what));
        found.unwrap_or_else(|| panic!("{what}: {}", run.stdout))
    };
    assert!(
        line("**2 servers**").contains(&format!("`{first}` (")),
        "{run:?}"
    );
    line(&format!(
        "{second}: the server is a primary now, before it was a standby"
    ));
    // 3 are the superusers' on each.
    let bad = line("- **How bad:**");
    let (one, two) = bad.split_once(". On ").expect("both");
    assert!(
        one.contains("of 37 usable") && two.contains("of 57 usable"),
        "{bad}"
    );
    assert!(!run.stdout.contains("max_connections is"), "{run:?}");
}
