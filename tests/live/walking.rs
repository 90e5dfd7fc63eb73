//! Runbooks on real servers: the built-in one ends the leak; nobody there means nothing is done; what was said is kept.

use std::path::Path;

use serde_json::Value;
use stanch::drill::{Incident, Server};
use stanch::journal::{self, Event};
use stanch::source::postgres::ConnSpec;
use tokio_postgres::Client;

use crate::harness::{
    Run, admin, at_terminal, client, command, folder, journals, run, scene, sql, stanch_command,
};

fn walk(spec: &ConnSpec, state: &Path, what: &[&str]) -> Run {
    walk_book(spec, state, "idle-in-transaction", what)
}

fn walk_book(spec: &ConnSpec, state: &Path, book: &str, what: &[&str]) -> Run {
    let all = [&["runbook", "run", book], what].concat();
    let mut command = stanch_command(spec, &all);
    command.env("XDG_STATE_HOME", state);
    run(command)
}

async fn leaked(boss: &Client) -> i64 {
    let row = boss
        .query_one(
            "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'",
            &[],
        )
        .await
        .expect("a count");
    row.get(0)
}

async fn leak() -> (Server, stanch::drill::Scene, Client) {
    let (server, scene) = scene(Incident::Leak).await;
    let boss = client(&server.spec("postgres", "postgres"), "boss").await;
    // Every one of them is idle for longer than the runs below ask for.
    sql(&boss, "SELECT pg_sleep(0.1)").await;
    (server, scene, boss)
}

fn events(state: &Path) -> Vec<Event> {
    let all = journals(state);
    let journal = all.last().expect("a journal");
    let records = journal::read(journal).expect("a sound journal");
    records.into_iter().map(|record| record.event).collect()
}

fn signals(events: &[Event]) -> usize {
    let intents = events
        .iter()
        .filter(|event| matches!(event, Event::EffectIntent { .. }));
    intents.count()
}

/// Nobody there: the way to the act is walked, and there it ends, with the code for it. A dry run goes on as if it had been
/// done. Neither sends a signal, with or without a yes that counts for nothing.
#[tokio::test]
async fn without_a_yes_nothing_is_signalled() {
    let (server, _scene, boss) = leak().await;
    let spec = admin(&server);
    let before = leaked(&boss).await;
    assert_eq!(before, 14);
    for (what, code, ended) in [
        (
            &["--set", "older_than=10ms", "--json"][..],
            4,
            "needs a human",
        ),
        (
            &["--set", "older_than=10ms", "--json", "--dry-run"],
            0,
            "it leads to the end resolved; nothing was done",
        ),
    ] {
        let state = folder();
        let run = walk(&spec, state.path(), what).expect_code(code);
        let json = run.json();
        assert!(
            json["ended"].as_str().expect("how").starts_with(ended),
            "{json:#}"
        );
        assert_eq!(json["exit_code"], code);
        let path: Vec<&str> = json["path"]
            .as_array()
            .expect("a way")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        assert_eq!(
            path[..5],
            ["picture", "release", "choose", "evidence", "drain"],
            "{path:?}"
        );
        let events = events(state.path());
        assert_eq!(signals(&events), 0, "{events:#?}");
        assert!(matches!(events.last(), Some(Event::RunEnd { .. })));
        assert_eq!(leaked(&boss).await, before);
    }
}

/// With a yes in advance it ends exactly the leaked sessions, waits until there is room again, and says how it went.
#[tokio::test]
async fn the_leak_is_drained() {
    let (server, _scene, boss) = leak().await;
    let (spec, state) = (admin(&server), folder());
    let what = ["--yes", "--set", "older_than=10ms", "--json"];
    let run = walk(&spec, state.path(), &what).expect_code(0);
    let json = run.json();
    assert_eq!(json["ended"], "resolved", "{json:#}");
    assert_eq!(leaked(&boss).await, 0);
    sql(&boss, "SELECT 1").await;
    let events = events(state.path());
    assert_eq!(signals(&events), 14);
    let unattended = events.iter().any(|event| {
        matches!(event, Event::Answer { step, answer, attended: false } if step == "release" && answer == "none")
    });
    assert!(unattended, "{events:#?}");
    // What justified it was written before the first signal, and is there to be looked at.
    let kept = events
        .iter()
        .position(|e| matches!(e, Event::Captured { .. }));
    let first = events
        .iter()
        .position(|e| matches!(e, Event::EffectIntent { .. }));
    assert!(kept.is_some() && kept < first, "{events:#?}");
    let Some(Event::Captured { file, .. }) = kept.map(|at| &events[at]) else {
        unreachable!("found above");
    };
    let again = crate::harness::run(command(&["triage", "--json", "--from", file]));
    assert!(again.stdout.contains("conn."), "{again:?}");
    // And how it was at the end, so that the postmortem doesn't say that it goes on.
    let [
        ..,
        Event::Captured { file, .. },
        Event::BookEnd { .. },
        Event::RunEnd { .. },
    ] = &events[..]
    else {
        panic!("{events:#?}");
    };
    let again = crate::harness::run(command(&["triage", "--json", "--from", file]));
    assert!(!again.stdout.contains("conn.leak"), "{again:?}");
    let journal = json["journal"].as_str().expect("a path");
    let mut report = command(&["report", "--journal", journal, "--name", "x"]);
    report.current_dir(state.path());
    crate::harness::run(report).expect_code(0);
    let told = std::fs::read_to_string(state.path().join("postmortem-x.md")).expect("a report");
    assert!(told.contains(", over by "), "{told}");
}

/// A second time there is no leak: a false alarm, which is no fault.
#[tokio::test]
async fn a_healthy_server_is_a_false_alarm() {
    let server = crate::harness::server(&[]).await;
    let (spec, state) = (server.spec("postgres", "postgres"), folder());
    let run = walk(&spec, state.path(), &["--yes", "--json"]).expect_code(0);
    let json = run.json();
    assert_eq!(json["ended"], "false_alarm", "{json:#}");
    assert_eq!(signals(&events(state.path())), 0);
}

/// More than the book's own limit is refused as a whole, and the book doesn't end well.
#[tokio::test]
async fn the_limits_hold() {
    let (server, _scene, boss) = leak().await;
    let (spec, state) = (admin(&server), folder());
    let text = stanch::runbook::builtin::named("idle-in-transaction")
        .expect("it is built in")
        .text
        .replace(
            "effects: { pg.terminate: 25 }",
            "effects: { pg.terminate: 5 }",
        );
    let file = state.path().join("small.yaml");
    std::fs::write(&file, text).expect("written");
    let file = file.display().to_string();
    let what = [
        "runbook",
        "run",
        "--file",
        &file,
        "--yes",
        "--set",
        "older_than=10ms",
        "--json",
    ];
    let mut command = stanch_command(&spec, &what);
    command.env("XDG_STATE_HOME", state.path());
    let run = run(command);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(
        run.stderr.contains("no built-in book"),
        "it says whose book it is: {run:?}"
    );
    assert_eq!(leaked(&boss).await, 14);
    assert_eq!(signals(&events(state.path())), 0);
}

/// At a terminal each question is asked, the name is typed, and what was answered is in the journal; anything but the name
/// leaves every session as it is.
#[tokio::test]
async fn a_person_walks_it() {
    let (server, _scene, boss) = leak().await;
    let what = "runbook run idle-in-transaction --set older_than=10ms";
    let spec = admin(&server);
    let name = format!("{}@{}:{}\n", spec.database, spec.host, spec.port);
    let question = "(or skip, show, stop):";
    let typed = "anything else leaves it:";
    let state = folder();
    let (code, shown) = at_terminal(
        &spec,
        state.path(),
        what,
        &[
            (question, "1\n"),
            ("(kept in the journal)", "it is full\n"),
            (typed, "yes\n"),
            ("once more, or Enter leaves it:", "\n"),
        ],
    );
    assert_eq!(code, Some(5), "{shown}");
    assert_eq!(leaked(&boss).await, 14);
    assert_eq!(signals(&events(state.path())), 0);

    let state = folder();
    let (code, shown) = at_terminal(
        &spec,
        state.path(),
        what,
        &[
            (question, "soon\n"),
            (question, "ours\n"),
            ("(kept in the journal)", "it is full\n"),
            (typed, &name),
            ("from when to when?", "errors since three\n"),
            ("not detected earlier?", "no alert\n"),
            ("for something else?", "the checkout\n"),
        ],
    );
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("none of the answers"), "{shown}");
    assert!(shown.contains("resolved"), "{shown}");
    assert_eq!(leaked(&boss).await, 0);
    let text = format!("{:?}", events(state.path()));
    for said in ["ours", "it is full", "errors since three", "the checkout"] {
        assert!(text.contains(said), "{said}: {text}");
    }

    // In another database's name nothing of the shop's is touched, and it is said how it would be.
    let (state, other) = (folder(), server.spec("postgres", "postgres"));
    let run = walk(&other, state.path(), &["--yes", "--set", "older_than=10ms"]);
    assert_eq!(run.code, 0, "nothing is left to do: {run:?}");

    // Ctrl-C at a question ends it there.
    let state = folder();
    let (code, shown) = at_terminal(&spec, state.path(), what, &[(question, "\u{3}")]);
    assert_eq!(code, Some(5), "{shown}");
    assert_eq!(signals(&events(state.path())), 0);
}

/// What stands in front decides: a forgotten console is ended, DDL in a queue is cancelled, and what queued behind them goes on; a
/// prepared transaction and a circle are for a person, and nothing is signalled; where nobody waits it was a false alarm.
#[tokio::test]
async fn a_pile_up_is_ended_at_its_root_or_left_to_a_person() {
    const WHAT: [&str; 4] = ["--yes", "--set", "older_than=10ms", "--json"];
    for (incident, code, ended, sent) in [
        (Incident::LockChain, 0, "resolved", 1),
        (Incident::LockQueue, 0, "resolved", 1),
        (Incident::Prepared, 6, "escalated", 0),
        (Incident::Deadlock, 6, "escalated", 0),
        (Incident::Storm, 0, "false_alarm", 0),
    ] {
        let (server, _scene) = scene(incident).await;
        let spec = admin(&server);
        // In a thread of its own: the scene's sessions go on meanwhile.
        let walks = tokio::task::spawn_blocking(move || {
            [&WHAT[1..], &WHAT[..]].map(|what| {
                let state = folder();
                let run = walk_book(&spec, state.path(), "lock-pileup", what);
                (run, signals(&events(state.path())))
            })
        });
        let [(nobody, none), (run, signals)] = walks.await.expect("both");
        assert_eq!(none, 0, "{nobody:?}");
        assert_eq!(run.code, code, "{incident:?}: {run:?}");
        assert_eq!(run.json()["ended"], ended, "{incident:?}: {run:?}");
        assert_eq!(signals, sent, "{incident:?}");
    }
}

/// A built-in book against the drill that it is for, unattended: it ends as a person would want to read it the next day, and
/// nothing is signalled that the incident doesn't call for. Without a yes nothing is, whatever the book.
async fn against_its_drill(
    book: &'static str,
    incident: Incident,
    code: i32,
    ended: &str,
    sent: usize,
) {
    let (server, _scene) = scene(incident).await;
    let spec = admin(&server);
    // Some are an incident only after half a second.
    let boss = client(&spec, "boss").await;
    sql(&boss, "SELECT pg_sleep(0.7)").await;
    drop(boss);
    let walks = tokio::task::spawn_blocking(move || {
        [&["--json"][..], &["--json", "--yes"]].map(|how| {
            let set: &[&str] = match book {
                "cache-stampede" | "queue-backlog" => &[],
                _ => &["--set", "older_than=10ms"],
            };
            let state = folder();
            let run = walk_book(&spec, state.path(), book, &[set, how].concat());
            (run, signals(&events(state.path())))
        })
    });
    let [(nobody, none), (run, signals)] = walks.await.expect("both");
    assert_eq!(none, 0, "{book}: {nobody:?}");
    assert_eq!(run.code, code, "{book} on {incident:?}: {run:?}");
    assert_eq!(
        run.json()["ended"],
        ended,
        "{book} on {incident:?}: {run:?}"
    );
    assert_eq!(signals, sent, "{book} on {incident:?}: {run:?}");
}

#[tokio::test]
async fn pools_too_large_are_not_answered_by_ending_sessions() {
    against_its_drill(
        "connection-exhaustion",
        Incident::Exhaustion,
        6,
        "escalated",
        0,
    )
    .await;
}

#[tokio::test]
async fn exhaustion_by_a_leak_goes_the_way_of_the_leak() {
    against_its_drill("connection-exhaustion", Incident::Leak, 0, "resolved", 14).await;
}

/// Its statement is cancelled; what then holds a failed transaction is ended.
#[tokio::test]
async fn a_long_transaction_is_ended() {
    against_its_drill(
        "long-transaction",
        Incident::LongTransaction,
        0,
        "resolved",
        2,
    )
    .await;
}

#[tokio::test]
async fn a_circle_is_for_a_person() {
    against_its_drill("deadlock", Incident::Deadlock, 6, "escalated", 0).await;
}

#[tokio::test]
async fn a_stampede_is_stopped_at_its_callers() {
    against_its_drill("cache-stampede", Incident::Storm, 6, "escalated", 0).await;
}

#[tokio::test]
async fn a_backlog_is_stopped_at_its_intake() {
    against_its_drill("queue-backlog", Incident::Storm, 6, "escalated", 0).await;
}
