//! The kinds of steps that books from outside are made of: statements that only read, commands without a shell, what goes
//! wrong in them, and what is asked before a book that can't be told to be harmless.

use std::path::{Path, PathBuf};

use serde_json::Value;
use stanch::journal::{self, Event};
use stanch::source::postgres::ConnSpec;

use crate::harness::{
    Run, at_terminal, client, command, folder, journals, run, server, sql, stanch_command,
};

fn book(state: &Path, steps: &str) -> PathBuf {
    let text = format!(
        "runbook: v1\nid: tried\ntitle: Tried\ninputs: {{ word: {{ type: string, default: web }} }}\nsteps:\n{steps}"
    );
    let file = state.join("tried.yaml");
    std::fs::write(&file, text).expect("written");
    file
}

fn walk(spec: &ConnSpec, state: &Path, steps: &str, what: &[&str]) -> Run {
    let file = book(state, steps).display().to_string();
    let all = [&["runbook", "run", "--json", "--file", &file], what].concat();
    let mut command = stanch_command(spec, &all);
    command.env("XDG_STATE_HOME", state);
    run(command)
}

fn path(run: &Run) -> Vec<String> {
    let json = run.json();
    let path = json["path"].as_array().expect("a way").iter();
    path.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn events(state: &Path) -> Vec<Event> {
    let all = journals(state);
    let records = journal::read(all.last().expect("a journal")).expect("a sound journal");
    records.into_iter().map(|record| record.event).collect()
}

const ENDS: &str = "  - { id: done, end: resolved }\n  - { id: broken, end: escalated }\n";

/// A statement binds its values, reads rows, and can't write; what goes wrong in it goes the way that the book says.
#[tokio::test]
async fn a_statement_reads_and_nothing_else() {
    let server = server(&[]).await;
    let spec = server.spec("postgres", "postgres");
    let boss = client(&spec, "boss").await;
    sql(&boss, "CREATE TABLE public.kept (word text); INSERT INTO public.kept VALUES ('web'), ('''; DROP TABLE kept; --')").await;
    let state = folder();
    let step = |sql: &str, more: &str| {
        // Only what never comes to an end is cut short.
        let timeout = if sql.contains("1000000000") {
            "300ms"
        } else {
            "10s"
        };
        format!(
            "  - {{ id: rows, query: {{ sql: \"{sql}\" {more} }}, timeout: {timeout}, on_error: {{ \"57014\": slow, \"*\": broken }} }}\n  - {{ id: way, decide: [{{ if: 'steps.rows.row_count == 1', goto: done }}, {{ else: broken }}] }}\n  - {{ id: slow, end: false_alarm }}\n{ENDS}"
        )
    };
    let reads = step(
        "SELECT word FROM public.kept WHERE word = $1 -- $2",
        ", args: [inputs.word]",
    );
    for (word, end) in [
        ("web", "resolved"),
        ("'; DROP TABLE kept; --", "resolved"),
        ("web' OR true --", "escalated"),
    ] {
        let set = format!("word={word}");
        let run = walk(&spec, state.path(), &reads, &["--set", &set]);
        assert_eq!(run.json()["ended"], end, "{run:?}");
    }
    for (sql, end) in [
        (
            "SELECT count(*) FROM generate_series(1, 1000000000)",
            "false_alarm",
        ),
        ("SELECT 1 / 0", "escalated"),
        ("SELECT nothing FROM nowhere", "escalated"),
        (
            "WITH gone AS (DELETE FROM public.kept RETURNING 1) SELECT * FROM gone",
            "escalated",
        ),
        ("SELECT * FROM generate_series(1, 2000)", "escalated"),
        ("SELECT 1 AS found", "resolved"),
        ("VALUES (1)", "resolved"),
        ("WITH a AS (SELECT 1) TABLE a", "resolved"),
    ] {
        let run = walk(&spec, state.path(), &step(sql, ""), &[]);
        assert_eq!(run.json()["ended"], end, "{sql}: {run:?}");
    }
    let row = boss
        .query_one("SELECT count(*) FROM public.kept", &[])
        .await
        .expect("a count");
    assert_eq!(row.get::<_, i64>(0), 2);
}

/// SQL of which it can't be told needs a person's word, before the first step; a yes in advance is none. Even then nothing is
/// written by it, and nothing is signalled.
#[tokio::test]
async fn sql_that_isnt_known_needs_a_word() {
    let server = server(&[]).await;
    let spec = server.spec("postgres", "postgres");
    let boss = client(&spec, "boss").await;
    sql(&boss, "CREATE SEQUENCE public.s").await;
    let steps = format!(
        "  - {{ id: rows, query: {{ sql: \"SELECT pg_advisory_lock(7), nextval('public.s')\" }}, on_error: {{ \"25006\": done, \"*\": broken }} }}\n  - {{ id: no, goto: broken }}\n{ENDS}"
    );
    for how in [&[][..], &["--yes"]] {
        let state = folder();
        let run = walk(&spec, state.path(), &steps, how);
        assert_eq!(run.code, 4, "{run:?}");
        let ended = run.json()["ended"].as_str().expect("how").to_owned();
        assert!(ended.contains("nextval(), pg_advisory_lock()"), "{ended}");
        assert_eq!(path(&run), Vec::<String>::new());
        assert_eq!(
            journals(state.path()),
            Vec::<PathBuf>::new(),
            "nothing was begun"
        );
    }
    let state = folder();
    let file = book(state.path(), &steps).display().to_string();
    let what = format!("runbook run --file {file}");
    for (answer, code) in [("no\n", 5), ("yes\n", 0)] {
        let asked = "number or name (or skip, show, stop):";
        let (done, shown) = at_terminal(&spec, state.path(), &what, &[(asked, answer)]);
        assert_eq!(done, Some(code), "{shown}");
    }
}

/// A command gets each value as one argument, whatever stands in it; its end, its words and its JSON can be asked for.
#[tokio::test]
async fn a_command_is_looked_at() {
    let server = server(&[]).await;
    let spec = server.spec("postgres", "postgres");
    let state = folder();
    let steps = format!(
        "  - {{ id: said, run: {{ argv: [printf, '[\"%s\", %d]', inputs.word, 3], writes: false }}, set: {{ n: \"steps.said.json[1]\" }} }}
  - {{ id: fails, run: {{ argv: [sh, -c, 'exit 7'], writes: false }}, expect: [{{ that: \"steps.fails.exit == 0\", else: warn, say: \"it ended with {{{{ exit }}}}\" }}] }}
  - {{ id: way, decide: [{{ if: \"vars.n == 3 && steps.said.stdout.contains('$(id)')\", goto: slow }}, {{ else: broken }}] }}
  - {{ id: slow, run: {{ argv: [sleep, 60], writes: false }}, timeout: 200ms, on_error: done }}
  - {{ id: no, goto: broken }}
{ENDS}"
    );
    let word = "word=$(id) && touch /tmp/never";
    let run = walk(&spec, state.path(), &steps, &["--set", word, "--dry-run"]);
    assert_eq!(run.json()["rehearsal"]["leads_to"], "resolved", "{run:?}");
    assert!(run.stderr.contains("warning: it ended with 7"), "{run:?}");
    assert!(run.stderr.contains("sleep: out of time"), "{run:?}");
    assert!(run.stderr.contains("and it runs: sleep 60"), "{run:?}");
    // Without an expectation of its own a code that isn't 0 is an error, and one that leads nowhere ends the run.
    let steps = format!("  - {{ id: fails, run: {{ argv: ['false'], writes: false }} }}\n  - {{ id: no, goto: done }}\n{ENDS}").replace("  - { id: broken, end: escalated }\n", "");
    let run = walk(&spec, state.path(), &steps, &[]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(
        run.json()["ended"]
            .as_str()
            .expect("how")
            .contains("the command ended with 1")
    );
}

/// A command that changes something is run only with a yes, once, with its intent before it and its end after it in the
/// journal; never in a dry run, and no password of it is written down.
#[tokio::test]
async fn a_command_that_changes_something_needs_a_yes() {
    let server = server(&[]).await;
    let spec = server.spec("postgres", "postgres");
    let state = folder();
    let mark = state.path().join("mark");
    let steps = format!(
        "  - {{ id: keep, capture: {{}} }}
  - {{ id: scale, run: {{ argv: [sh, -c, 'echo done >> {}', sh, '--password=hunter2'], writes: true }}, confirm: {{ reason: required }} }}
  - {{ id: way, decide: [{{ if: \"steps.scale.exit == 0\", goto: done }}, {{ else: broken }}] }}
{ENDS}",
        mark.display()
    );
    for (how, code, ended) in [
        (&[][..], 4, "needs a human"),
        (
            &["--dry-run"],
            0,
            "it leads to the end resolved; nothing was done",
        ),
    ] {
        let run = walk(&spec, state.path(), &steps, how);
        assert_eq!(run.code, code, "{run:?}");
        assert!(
            run.json()["ended"]
                .as_str()
                .expect("how")
                .starts_with(ended),
            "{run:?}"
        );
        assert!(!mark.exists(), "{how:?}");
        let changed = events(state.path())
            .iter()
            .any(|e| matches!(e, Event::EffectIntent { .. }));
        assert!(!changed, "{how:?}");
    }
    let run_yes = walk(&spec, state.path(), &steps, &["--yes"]);
    assert_eq!(run_yes.json()["ended"], "resolved", "{run_yes:?}");
    assert_eq!(std::fs::read_to_string(&mark).expect("it ran"), "done\n");
    let all = events(state.path());
    let at = |wanted: &dyn Fn(&Event) -> bool| all.iter().position(wanted).expect("written");
    let intent = at(&|e| matches!(e, Event::EffectIntent { .. }));
    let result = at(&|e| matches!(e, Event::CommandResult { exit: Some(0), .. }));
    let kept = at(&|e| matches!(e, Event::Captured { .. }));
    assert!(kept < intent && intent < result, "{all:#?}");
    let last = std::fs::read_to_string(journals(state.path()).last().expect("one")).expect("text");
    // The book's own text is in it as it stands; what was started isn't.
    let intents = last
        .lines()
        .find(|line| line.contains("effect_intent"))
        .expect("there");
    assert!(!intents.contains("hunter2"), "{intents}");
    assert!(
        !run_yes.stderr.contains("sh --password=hunter2\nstanch"),
        "{run_yes:?}"
    );

    // At a terminal: the reason, the target's name, and anything but the name leaves it.
    let file = book(state.path(), &steps).display().to_string();
    let what = format!("runbook run --file {file}");
    let why = ("(kept in the journal)", "too few\n");
    let name = format!("{}@{}:{}\n", spec.database, spec.host, spec.port);
    for (typed, code, lines) in [("no\n", 5, 1), (name.as_str(), 0, 2)] {
        let again = ("once more, or Enter leaves it:", "\n");
        let answers = [why, ("anything else leaves it:", typed), again];
        let (done, shown) = at_terminal(&spec, state.path(), &what, &answers);
        assert_eq!(done, Some(code), "{shown}");
        let text = std::fs::read_to_string(&mark).expect("it ran once");
        assert_eq!(text.lines().count(), lines, "{shown}");
    }
    // Left out with a reason: what needs it later can't be told, and isn't guessed.
    let skips = [
        ("(kept in the journal)", "skip\n"),
        ("empty: it isn't)", "not now\n"),
    ];
    let (done, shown) = at_terminal(&spec, state.path(), &what, &skips);
    assert_eq!(done, Some(3), "{shown}");
    assert!(shown.contains("can't be told"), "{shown}");
}

/// The same book on a saved snapshot: the branches are those of then, nothing is asked of a server, nothing is done.
#[tokio::test]
async fn a_saved_snapshot_is_walked_as_it_was() {
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures");
    for (book, capture, ended, code) in [
        ("idle-in-transaction", "leak", "resolved", 0),
        ("idle-in-transaction", "storm", "false_alarm", 0),
        ("lock-pileup", "lock-chain", "resolved", 0),
        ("lock-pileup", "prepared", "escalated", 6),
        ("lock-pileup", "deadlock", "escalated", 6),
        ("connection-exhaustion", "exhaustion", "escalated", 6),
        ("connection-exhaustion", "leak", "resolved", 0),
        ("cache-stampede", "storm", "escalated", 6),
    ] {
        let file = captures
            .join(format!("{capture}.json"))
            .display()
            .to_string();
        let state = folder();
        let mut what = vec!["runbook", "run", book, "--json", "--from", &file];
        if book != "cache-stampede" {
            what.extend(["--set", "older_than=1s"]);
        }
        let mut walk = command(&what);
        walk.env("XDG_STATE_HOME", state.path());
        let run = run(walk);
        assert_eq!(run.code, code, "{book} on {capture}: {run:?}");
        let json = run.json();
        let leads = format!("it leads to the end {ended}; nothing was done");
        assert_eq!(json["ended"], leads, "{book} on {capture}: {run:?}");
        assert_eq!(json["rehearsal"]["leads_to"], ended);
        assert_eq!(json["journal"], Value::Null);
        assert_eq!(journals(state.path()), Vec::<PathBuf>::new());
    }
    // Nobody is old enough yet: that isn't nobody, and nothing is taken for done.
    let file = captures.join("leak.json").display().to_string();
    let mut young = command(&[
        "runbook",
        "run",
        "idle-in-transaction",
        "--json",
        "--from",
        &file,
    ]);
    young.env("XDG_STATE_HOME", folder().path());
    let young = run(young);
    assert_eq!(young.code, 2, "{young:?}");
    let ended = young.json()["ended"].as_str().expect("how").to_owned();
    assert!(
        ended.contains("14 sessions would be meant, and none for 1m 00s yet"),
        "{ended}"
    );
    // A statement of a book isn't part of a snapshot: that is an error, and no answer.
    let file = captures.join("long-transaction.json").display().to_string();
    let mut walk = command(&[
        "runbook",
        "run",
        "long-transaction",
        "--json",
        "--from",
        &file,
    ]);
    walk.env("XDG_STATE_HOME", folder().path());
    let run = run(walk);
    assert_eq!(run.code, 3, "{run:?}");
    assert!(
        run.json()["ended"]
            .as_str()
            .expect("how")
            .contains("isn't part of a snapshot")
    );
}
