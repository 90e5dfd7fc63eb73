//! Runs of books that are cut off, and walked on: killed at each record of the journal, no effect is repeated and none is
//! lost from the record.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use stanch::drill::Server;
use stanch::journal::{self, Effect, Event, Journal, Record};
use stanch::model::{BackendId, Oid, Pid, Signal, Timestamp, Verb};
use stanch::operate::Past;
use stanch::source::postgres::ConnSpec;
use tokio_postgres::Client;

use crate::harness::{
    Run, at_terminal_with, client, folder, journals, run, server, sql, stanch_command,
};

/// The built-in book, without its pauses.
fn quick_book(state: &Path) -> PathBuf {
    let text = stanch::runbook::builtin::named("idle-in-transaction")
        .expect("it is built in")
        .text
        .replace("pause: 1s", "pause: 5ms");
    let file = state.join("quick.yaml");
    std::fs::write(&file, text).expect("written");
    file
}

fn begin(spec: &ConnSpec, state: &Path, what: &[&str]) -> Command {
    let file = quick_book(state).display().to_string();
    let all = [&["runbook"], what, &["--file", &file]].concat();
    let mut command = stanch_command(spec, &all);
    command.env("XDG_STATE_HOME", state);
    command
}

fn resume(spec: &ConnSpec, state: &Path, what: &[&str]) -> Run {
    run(begin(spec, state, &[&["resume"], what].concat()))
}

fn records(state: &Path) -> Vec<Record> {
    let all = journals(state);
    assert_eq!(all.len(), 1, "one run, one journal: {all:?}");
    journal::read(&all[0]).expect("a sound journal")
}

/// A server with an application's login.
async fn shop() -> Server {
    let server = server(&[]).await;
    let boss = client(&server.spec("postgres", "postgres"), "boss").await;
    sql(&boss, "CREATE ROLE app LOGIN").await;
    server
}

/// Sessions that forgot their transaction.
async fn leak(server: &Server) -> Vec<Client> {
    let mut all = Vec::new();
    for _ in 0..6 {
        let one = client(&server.spec("app", "postgres"), "checkout").await;
        sql(&one, "BEGIN; SELECT 1").await;
        all.push(one);
    }
    all
}

/// How a kill at a line of the journal came out.
enum Kill {
    /// It is to be gone on with.
    Cut,
    /// The run was past that line and at its end before the kill came.
    Missed,
    /// There is no such line, or it is the run's end.
    Over,
}

/// Starts a run and kills it once its journal has so many lines.
fn killed_at(spec: &ConnSpec, state: &Path, lines: usize) -> Kill {
    let what = ["run", "--yes", "--set", "older_than=1ms"];
    let mut child = begin(spec, state, &what)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let give_up = Instant::now() + Duration::from_secs(30);
    loop {
        let written = journals(state)
            .first()
            .and_then(|path| std::fs::read(path).ok())
            .map_or(0, |bytes| bytes.iter().filter(|b| **b == b'\n').count());
        if written >= lines {
            child.kill().expect("killed");
            child.wait().expect("gone");
            let ends = |record: &Record| {
                matches!(record.event, Event::BookEnd { .. } | Event::RunEnd { .. })
            };
            let all = records(state);
            // Once its end is written there is nothing to go on with.
            return match (all.get(lines - 1), all.last()) {
                (Some(at), _) if ends(at) => Kill::Over,
                (_, Some(last)) if ends(last) => Kill::Missed,
                _ => Kill::Cut,
            };
        }
        if child.try_wait().expect("a status").is_some() && records(state).len() < lines {
            return Kill::Over;
        }
        assert!(Instant::now() < give_up, "it stands still");
    }
}

/// Walks on to the end; what isn't known is answered by what is shown of it.
fn walked_on(spec: &ConnSpec, state: &Path) {
    for _ in 0..20 {
        let on = resume(spec, state, &["--yes", "--json"]);
        if on.code == 0 {
            assert_eq!(on.json()["ended"], "resolved", "{on:?}");
            return;
        }
        assert_eq!(on.code, 4, "{on:?}");
        let question = on.json()["ended"].as_str().expect("how").to_owned();
        assert!(
            question.contains("was begun, and the run ended"),
            "{question}"
        );
        let file = quick_book(state).display().to_string();
        let mut answer = |shown: &str| {
            let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            if flat.ends_with("number or name (or skip, show, stop):") {
                let there = flat.contains("the session is still there");
                return Some(if there { "again\n" } else { "done\n" }.to_owned());
            }
            let other = ["(kept in the journal)", "leaves it:", "when to when?"];
            other
                .iter()
                .any(|end| flat.ends_with(end))
                .then(|| "stop\n".to_owned())
        };
        let what = format!("runbook resume --file {file}");
        let (code, shown) = at_terminal_with(spec, state, &what, &mut answer);
        assert_eq!(code, Some(5), "{shown}");
    }
    panic!("it comes to no end");
}

/// kill -9 at each record, then on: each session is ended once, each effect has its outcome in the record, each step ends once.
#[tokio::test]
async fn killed_at_each_record_and_walked_on() {
    let server = shop().await;
    let spec = server.spec("postgres", "postgres");
    let (mut lines, mut cut, mut missed, mut ended) = (1, 0, 0, 0);
    loop {
        let sessions = leak(&server).await;
        let state = folder();
        let killed = {
            let (spec, state) = (spec.clone(), state.path().to_path_buf());
            let cut = tokio::task::spawn_blocking(move || killed_at(&spec, &state, lines));
            cut.await.expect("it runs")
        };
        match killed {
            Kill::Cut => {}
            Kill::Missed if missed < 100 => {
                missed += 1;
                ended += sessions.len();
                continue;
            }
            Kill::Missed | Kill::Over => {
                ended += sessions.len();
                break;
            }
        }
        cut += 1;
        lines += 1;
        let before = records(state.path());
        if before.len() < 2 {
            // Not even the book is in it: there is nothing to go on with, and nothing was done.
            assert_eq!(resume(&spec, state.path(), &["--yes"]).code, 64);
            drop(sessions);
            continue;
        }
        {
            let (spec, state) = (spec.clone(), state.path().to_path_buf());
            let on = tokio::task::spawn_blocking(move || walked_on(&spec, &state));
            on.await.expect("it runs");
        }
        ended += sessions.len();
        let after = records(state.path());
        assert_eq!(after[..before.len()], before[..], "what was written stays");
        check(&after);
        for one in sessions {
            assert!(one.simple_query("SELECT 1").await.is_err(), "{after:#?}");
        }
    }
    assert!(cut > 30, "only {cut} records were cut at");
    let log = std::fs::read_to_string(server.log_file()).expect("the log");
    let told = log.matches("terminating connection due to administrator command");
    assert_eq!(told.count(), ended, "each was ended once");
}

#[track_caller]
fn check(records: &[Record]) {
    let past = Past::of(records).expect("a run");
    assert!(past.unknown().is_empty(), "{past:#?}");
    assert_eq!(past.end.as_deref(), Some("resolved"));
    let key = |id: BackendId| (id.pid, id.backend_start);
    let mut sent: BTreeMap<_, usize> = BTreeMap::new();
    let mut numbers = Vec::new();
    let mut of: BTreeMap<usize, BackendId> = BTreeMap::new();
    let mut ended: BTreeMap<&str, usize> = BTreeMap::new();
    for record in records {
        match &record.event {
            Event::EffectIntent {
                n,
                effect: Effect::Signal(signal),
            } => {
                *sent.entry(key(signal.id)).or_default() += 1;
                numbers.push(*n);
                of.insert(*n, signal.id);
            }
            // A person has seen that it hadn't arrived.
            Event::EffectSeen { n, answer, .. } if answer == "again" => {
                *sent.get_mut(&key(of[n])).expect("it was begun") -= 1;
            }
            Event::StepEnd { step, .. } => *ended.entry(step).or_default() += 1,
            _ => {}
        }
    }
    assert_eq!(sent.len(), 6, "{records:#?}");
    // One that had been signalled and was still on its way out was seen to be there: then it is 0, and its log tells of one.
    assert!(sent.values().all(|times| *times <= 1), "{records:#?}");
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    assert!(ended.values().all(|times| *times == 1), "{ended:?}");
}

/// A stop at a question is gone on with there: what was answered isn't asked again, and a changed book is noticed.
#[tokio::test]
async fn a_stop_is_gone_on_with_and_a_changed_book_is_noticed() {
    let server = shop().await;
    let _sessions = leak(&server).await;
    let (spec, state) = (server.spec("postgres", "postgres"), folder());
    let file = quick_book(state.path());
    let what = format!("runbook run --file {} --set older_than=1ms", file.display());
    let mut stop_at_reason = |shown: &str| {
        if shown.ends_with("(or skip, show, stop):") {
            return Some("other\n".into());
        }
        shown
            .ends_with("(kept in the journal)")
            .then(|| "stop\n".into())
    };
    let (code, shown) = at_terminal_with(&spec, state.path(), &what, &mut stop_at_reason);
    assert_eq!(code, Some(5), "{shown}");
    assert!(shown.contains("stanch runbook resume"), "{shown}");

    // Whoever looks on takes no connection.
    let mut follow = crate::harness::command(&["runbook", "follow"]);
    follow.env("XDG_STATE_HOME", state.path());
    let follow = run(follow);
    assert_eq!(follow.code, 0, "{follow:?}");
    for said in [
        "release: other",
        "ended: stopped by the operator",
        "exit code 5",
    ] {
        assert!(follow.stdout.contains(said), "{said}: {follow:?}");
    }

    // The file is looked for where it was, and it is another one by now.
    let text = std::fs::read_to_string(&file).expect("the book");
    std::fs::write(&file, text.replace("few slots", "hardly any slots")).expect("written");
    let mut other = stanch_command(&spec, &["runbook", "resume", "--yes"]);
    other.env("XDG_STATE_HOME", state.path());
    let other = run(other);
    std::fs::write(&file, &text).expect("written");
    assert_eq!(other.code, 65, "{other:?}");
    assert!(other.stderr.contains("--as-begun"), "{other:?}");

    // Nobody there and no yes: the way to the act is gone on with, and there it ends.
    let nobody = resume(&spec, state.path(), &["--json"]);
    assert_eq!(nobody.code, 4, "{nobody:?}");
    let signalled = records(state.path())
        .iter()
        .any(|record| matches!(record.event, Event::EffectIntent { .. }));
    assert!(!signalled);

    // Another target than the run's.
    let elsewhere = server.spec("postgres", "template1");
    let journal = journals(state.path())[0].display().to_string();
    let run_elsewhere = resume(&elsewhere, state.path(), &["--yes", &journal]);
    assert_eq!(run_elsewhere.code, 64, "{run_elsewhere:?}");
    assert!(
        run_elsewhere.stderr.contains("the run was on"),
        "{run_elsewhere:?}"
    );

    // A step that was done has become another one.
    let changed = state.path().join("changed.yaml");
    let accepts = |text: String| {
        std::fs::write(&changed, text).expect("written");
        let file = changed.display().to_string();
        let mut command = stanch_command(
            &spec,
            &[
                "runbook",
                "resume",
                "--yes",
                "--json",
                "--accept-changed",
                "--file",
                &file,
            ],
        );
        command.env("XDG_STATE_HOME", state.path());
        run(command)
    };
    let refused = accepts(text.replace("What has changed?", "What was changed?"));
    assert_eq!(refused.code, 65, "{refused:?}");
    assert!(
        refused.stderr.contains("others by now: release"),
        "{refused:?}"
    );
    // One that comes later may be another.
    let done = accepts(text.replace("What did users notice", "What did people notice"));
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(done.json()["ended"], "resolved", "{done:?}");
    let events: Vec<Event> = records(state.path()).into_iter().map(|r| r.event).collect();
    let answers = events
        .iter()
        .filter(|e| matches!(e, Event::Answer { .. }))
        .count();
    assert_eq!(answers, 1, "it isn't asked twice");
    assert!(
        events
            .iter()
            .any(|e| matches!(e, Event::Resumed { changed: true, .. }))
    );

    // It is over: there is nothing to go on with.
    let over = resume(&spec, state.path(), &["--yes"]);
    assert_eq!(over.code, 64, "{over:?}");
}

/// Who walks it holds the journal and the server: the second is told who, and since when, and how to look on.
#[tokio::test]
async fn a_second_operator_is_told_and_looks_on() {
    let server = shop().await;
    let _sessions = leak(&server).await;
    let (spec, state) = (server.spec("postgres", "postgres"), folder());
    let text = std::fs::read_to_string(quick_book(state.path())).expect("the book");
    let slow = state.path().join("slow.yaml");
    let text = text.replace(
        "  - id: drain\n",
        "  - { id: breathe, wait: 20s }\n\n  - id: drain\n",
    );
    std::fs::write(&slow, text).expect("written");
    let slow = slow.display().to_string();
    let what = [
        "runbook",
        "run",
        "--yes",
        "--set",
        "older_than=1ms",
        "--file",
        &slow,
    ];
    let mut first = stanch_command(&spec, &what);
    let mut first = first
        .env("XDG_STATE_HOME", state.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    crate::harness::eventually("it waits", || {
        journals(state.path())
            .first()
            .and_then(|path| std::fs::read_to_string(path).ok())
            .is_some_and(|text| text.contains("\"step\":\"breathe\""))
    })
    .await;
    let mut second = stanch_command(&spec, &what);
    second.env("XDG_STATE_HOME", state.path());
    let second = run(second);
    assert_eq!(second.code, 2, "{second:?}");
    for said in [
        "somebody acts there already",
        " since ",
        "stanch runbook follow",
    ] {
        assert!(second.stderr.contains(said), "{said}: {second:?}");
    }
    let busy = {
        let mut command = stanch_command(&spec, &["runbook", "resume", "--yes"]);
        command.env("XDG_STATE_HOME", state.path());
        let newest = journals(state.path())[0].display().to_string();
        command.arg(newest);
        run(command)
    };
    assert_eq!(busy.code, 2, "it still goes on: {busy:?}");
    let mut follow = Command::new(env!("CARGO_BIN_EXE_stanch"))
        .args(["runbook", "follow", "--json"])
        .env_clear()
        .env("HOME", "/nonexistent")
        .env("XDG_STATE_HOME", state.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    std::thread::sleep(Duration::from_millis(500));
    assert!(
        follow.try_wait().expect("a status").is_none(),
        "it looks on"
    );
    first.kill().expect("killed");
    first.wait().expect("gone");
    let seen = follow.wait_with_output().expect("it ends with the run");
    let (out, err) = (
        String::from_utf8_lossy(&seen.stdout).into_owned(),
        String::from_utf8_lossy(&seen.stderr).into_owned(),
    );
    assert!(out.contains("\"step\":\"breathe\""), "{out}");
    assert!(err.contains("ended without an end"), "{err}");
}

/// An effect that was begun and never reached the server: the session is seen to be there still, and only after a person has
/// said so is it signalled, once, with a yes as always.
#[tokio::test]
async fn what_never_arrived_is_done_only_after_a_word() {
    let server = shop().await;
    let sessions = leak(&server).await;
    let (spec, state) = (server.spec("postgres", "postgres"), folder());
    let file = quick_book(state.path()).display().to_string();
    let mut stop_at_reason = |shown: &str| {
        if shown.ends_with("(or skip, show, stop):") {
            return Some("none\n".into());
        }
        shown
            .ends_with("(kept in the journal)")
            .then(|| "stop\n".into())
    };
    let what = format!("runbook run --file {file} --set older_than=1ms");
    let (code, shown) = at_terminal_with(&spec, state.path(), &what, &mut stop_at_reason);
    assert_eq!(code, Some(5), "{shown}");
    let row = sessions[0]
        .query_one(
            "SELECT pid, backend_start, xact_start, usesysid, datid FROM pg_stat_activity WHERE pid = pg_backend_pid()",
            &[],
        )
        .await
        .expect("itself");
    let at = |n| Timestamp::new(row.get::<_, chrono::DateTime<chrono::Utc>>(n));
    let signal = Signal {
        verb: Verb::Terminate,
        id: BackendId {
            pid: Pid(row.get(0)),
            backend_start: Some(at(1)),
        },
        xact_start: Some(at(2)),
        query_start: None,
        usesysid: Some(Oid(row.get(3))),
        datid: Some(Oid(row.get(4))),
        protected_applications: Vec::new(),
        allow_syncrep: false,
        state_change: None,
    };
    fn now() -> Timestamp {
        Timestamp::new(chrono::Utc::now())
    }
    let (mut journal, _) = Journal::reopen(&journals(state.path())[0], now).expect("it is free");
    for event in [
        Event::Resumed {
            operator: "root".into(),
            version: "0".into(),
            sha256: String::new(),
            changed: false,
            texts: Vec::new(),
        },
        Event::EffectIntent {
            n: 0,
            effect: Effect::Signal(signal),
        },
    ] {
        journal.write(event).expect("written");
    }
    drop(journal);
    let asked = resume(&spec, state.path(), &["--yes", "--json"]);
    assert_eq!(asked.code, 4, "{asked:?}");
    let question = asked.json()["ended"].as_str().expect("how").to_owned();
    assert!(
        question.contains("the session is still there, idle in transaction"),
        "{question}"
    );
    assert!(
        sessions[0].simple_query("SELECT 1").await.is_ok(),
        "nothing was sent"
    );
    // Counted as done it is left alone, whatever it is; said that it may be done again, it is a candidate as before.
    let name = format!("{}@{}:{}\n", spec.database, spec.host, spec.port);
    let mut again = |shown: &str| {
        let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        for (end, said) in [
            ("number or name (or skip, show, stop):", "again\n"),
            ("(kept in the journal)", "it is full\n"),
            ("anything else leaves it:", name.as_str()),
            ("when to when?", "skip\n"),
            ("empty: it isn't)", "tomorrow\n"),
        ] {
            if flat.ends_with(end) {
                return Some(said.to_owned());
            }
        }
        None
    };
    let what = format!("runbook resume --file {file}");
    let (code, shown) = at_terminal_with(&spec, state.path(), &what, &mut again);
    assert_eq!(code, Some(0), "{shown}");
    for one in &sessions {
        assert!(one.simple_query("SELECT 1").await.is_err(), "{shown}");
    }
    let all = records(state.path());
    check(&all);
    assert!(all.iter().any(|r| matches!(&r.event, Event::Skipped { step, reason } if step == "write_up" && reason == "tomorrow")));
}

/// Writes a book of its own, begins it, and says how to go on with it.
fn own_book(state: &Path, steps: &str) -> String {
    let text = format!("runbook: v1\nid: own\ntitle: Own\nsteps:\n{steps}");
    let file = state.join("own.yaml");
    std::fs::write(&file, text).expect("written");
    file.display().to_string()
}

fn own(spec: &ConnSpec, state: &Path, what: &[&str]) -> Run {
    let mut command = stanch_command(spec, &[&["runbook"], what, &["--json"]].concat());
    command.env("XDG_STATE_HOME", state);
    run(command)
}

/// What was found, what was asked and what was given may hold a password: the journal and the terminal say that it did. An
/// input of that kind is given again, since the journal doesn't have it.
#[tokio::test]
async fn no_secret_is_journaled() {
    let server = shop().await;
    let (spec, state) = (server.spec("postgres", "postgres"), folder());
    let text = "runbook: v1
id: own
title: Own
inputs: { to: { type: string } }
steps:
  - id: looks
    query: { sql: \"SELECT 'host=x password=' || 'hunter' || '60x' AS said\" }
    set: { said: 'steps.looks.rows[0].said' }
    expect: [{ that: 'steps.looks.row_count == 2', else: warn, say: 'got {{ vars.said }}' }]
  - { id: asks, ask: { text: 'is it {{ inputs.to }}?', choices: { a: one, b: two } } }
  - { id: done, end: resolved }
";
    let file = state.path().join("own.yaml");
    std::fs::write(&file, text).expect("written");
    let file = file.display().to_string();
    let to = "to=postgres://u:hunter60x@h/d";
    let mut first = stanch_command(&spec, &["runbook", "run", "--file", &file, "--set", to]);
    first.env("XDG_STATE_HOME", state.path());
    let first = run(first).expect_code(4);
    let path = journals(state.path()).pop().expect("a journal");
    let journal = || std::fs::read_to_string(&path).expect("a journal");
    for text in [&first.stdout, &first.stderr, &journal()] {
        assert!(!text.contains("hunter60x"), "{text}");
    }
    assert!(
        first.stderr.contains("got host=x password=(not shown"),
        "{first:?}"
    );
    // Nothing is guessed, and nothing else is taken for it.
    for set in [&[][..], &["--set", "to=postgres://other:hunter60x@h/d"]] {
        let on = own(&spec, state.path(), &[&["resume"], set].concat());
        assert_eq!(on.code, 64, "{on:?}");
        assert!(on.stderr.contains("--set to"), "{on:?}");
        assert!(!on.stderr.contains("hunter60x"), "{on:?}");
    }
    let on = own(&spec, state.path(), &["resume", "--set", to]).expect_code(4);
    let ended = on.json()["ended"].as_str().expect("how").to_owned();
    assert!(ended.contains("postgres://u:(not shown"), "{ended}");
    for text in [&on.stdout, &on.stderr, &journal()] {
        assert!(!text.contains("hunter60x"), "{text}");
    }
}

/// A signal while something is awaited: the step isn't over by that, and a resumed run waits anew.
#[tokio::test]
async fn a_wait_that_was_cut_short_is_waited_anew() {
    let server = shop().await;
    let (spec, state) = (server.spec("postgres", "postgres"), folder());
    let steps = "  - { id: looks, query: { sql: \"SELECT extract(epoch FROM clock_timestamp()) AS at\" }, set: { at: 'steps.looks.rows[0].at' } }
  - { id: waits, wait: 10s }
  - { id: later, query: { sql: \"SELECT extract(epoch FROM clock_timestamp()) AS at\" }, set: { later: 'steps.later.rows[0].at' } }
  - { id: way, decide: [{ if: 'vars.later - vars.at > 10.0', goto: done }, { else: early }] }
  - { id: done, end: resolved }
  - { id: early, end: escalated }
";
    let file = own_book(state.path(), steps);
    let mut first = stanch_command(&spec, &["runbook", "run", "--file", &file]);
    let mut first = first
        .env("XDG_STATE_HOME", state.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    crate::harness::eventually("it waits", || {
        let text = journals(state.path())
            .first()
            .and_then(|path| std::fs::read_to_string(path).ok());
        text.is_some_and(|text| text.contains("\"step\":\"waits\""))
    })
    .await;
    let pid = rustix::process::Pid::from_child(&first);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("a signal");
    assert_eq!(first.wait().expect("it ends").code(), Some(5));
    let events: Vec<Event> = records(state.path()).into_iter().map(|r| r.event).collect();
    let over = events
        .iter()
        .any(|e| matches!(e, Event::StepEnd { step, .. } if step == "waits"));
    assert!(!over, "{events:#?}");
    let began = Instant::now();
    let on = own(&spec, state.path(), &["resume"]);
    assert_eq!(on.json()["ended"], "resolved", "{on:?}");
    assert!(began.elapsed() >= Duration::from_secs(10), "it waits anew");
    // What was computed before stands: it isn't computed anew of what is read anew.
    let computed = records(state.path())
        .iter()
        .filter(|r| matches!(&r.event, Event::Computed { step, .. } if step == "looks"))
        .count();
    assert_eq!(computed, 1);
}

/// A command whose outcome isn't known, that failed, or that couldn't be started: each is gone on with in its own way, and none
/// is run a second time without a word.
#[tokio::test]
async fn commands_are_gone_on_with() {
    let server = shop().await;
    let spec = server.spec("postgres", "postgres");
    let book = |argv: &str| {
        format!(
            "  - {{ id: keep, capture: {{}} }}
  - {{ id: go, run: {{ argv: {argv}, writes: true }}, confirm: {{}} }}
  - {{ id: done, end: resolved }}
"
        )
    };
    // It can't be started: once it can, it is run, with a yes as always.
    let state = folder();
    let tool = state.path().join("tool");
    let file = own_book(state.path(), &book(&format!("[{}]", tool.display())));
    let first = own(&spec, state.path(), &["run", "--yes", "--file", &file]);
    assert_eq!(first.code, 2, "{first:?}");
    std::fs::write(&tool, "#!/bin/sh\necho ran >> \"$0.log\"\n").expect("written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&tool, mode).expect("a mode");
    let log = || std::fs::read_to_string(state.path().join("tool.log")).unwrap_or_default();
    assert_eq!(
        own(&spec, state.path(), &["resume"]).code,
        4,
        "not without a yes"
    );
    assert_eq!(log(), "");
    assert_eq!(own(&spec, state.path(), &["resume", "--yes"]).code, 0);
    assert_eq!(log(), "ran\n");

    // It failed, and it was killed in the middle: both are asked about, and what is done isn't done again.
    for (argv, kill) in [
        ("[sh, -c, 'echo ran >> LOG; exit 3']", false),
        ("[sh, -c, 'echo ran >> LOG; sleep 30']", true),
    ] {
        let state = folder();
        let log = state.path().join("log");
        let file = own_book(
            state.path(),
            &book(&argv.replace("LOG", &log.display().to_string())),
        );
        if kill {
            let mut first = stanch_command(&spec, &["runbook", "run", "--yes", "--file", &file]);
            let mut first = first
                .env("XDG_STATE_HOME", state.path())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("it starts");
            crate::harness::eventually("it runs", || log.exists()).await;
            first.kill().expect("killed");
            first.wait().expect("gone");
        } else {
            assert_eq!(
                own(&spec, state.path(), &["run", "--yes", "--file", &file]).code,
                2
            );
        }
        let asked = own(&spec, state.path(), &["resume", "--yes"]);
        assert_eq!(asked.code, 4, "{asked:?}");
        let mut done = |shown: &str| {
            let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            flat.ends_with("number or name (or skip, show, stop):")
                .then(|| "done\n".to_owned())
        };
        let (code, shown) = at_terminal_with(&spec, state.path(), "runbook resume", &mut done);
        assert_eq!(code, Some(0), "{shown}");
        assert_eq!(
            std::fs::read_to_string(&log).expect("it ran"),
            "ran\n",
            "{shown}"
        );
    }
}

/// An error goes on by its own way after an interruption too; SQL that isn't known needs its word again; the book's time is
/// one for all parts of a run.
#[tokio::test]
async fn the_way_that_was_taken_stands() {
    let server = shop().await;
    let spec = server.spec("postgres", "postgres");
    let state = folder();
    let steps = "  - { id: slow, query: { sql: 'SELECT count(*) FROM generate_series(1, 100000000)' }, timeout: 100ms, on_error: { '57014': late, '*': other } }
  - { id: none, goto: other }
  - { id: late, ask: { text: how?, choices: { a: one, b: two } } }
  - { id: end, end: escalated }
  - { id: other, end: failed }
";
    let file = own_book(state.path(), steps);
    assert_eq!(own(&spec, state.path(), &["run", "--file", &file]).code, 4);
    let on = own(&spec, state.path(), &["resume"]);
    assert_eq!(on.code, 4, "{on:?}");
    assert_eq!(
        on.json()["path"],
        serde_json::json!(["slow", "late"]),
        "{on:?}"
    );

    // A changed book with SQL that isn't known is asked about before anything of it is walked.
    let text = std::fs::read_to_string(&file).expect("the book");
    let changed = text.replace("{ id: end, end: escalated }", "{ id: end, query: { sql: 'SELECT pg_advisory_lock(9)' } }\n  - { id: over, end: escalated }");
    std::fs::write(&file, changed).expect("written");
    let asked = own(
        &spec,
        state.path(),
        &["resume", "--yes", "--accept-changed"],
    );
    assert_eq!(asked.code, 4, "{asked:?}");
    let ended = asked.json()["ended"].as_str().expect("how").to_owned();
    assert!(ended.contains("pg_advisory_lock()"), "{ended}");
}
