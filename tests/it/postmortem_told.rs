//! How a postmortem tells an incident: by severity, with what was done as done, who was hurt, and whether it helped.

use std::collections::BTreeMap;
use std::path::Path;

use stanch::bundle;
use stanch::journal::{Effect, Event, Record};
use stanch::model::{
    BackendId, Outcome, Pid, Role, Section, SessionState, Signal, Snapshot, Thresholds, Timestamp,
    Verb,
};
use stanch::postmortem::{self, Course, Gap, Material, Postmortem};
use stanch::{runbook, view};

use crate::build;
use crate::postmortem_found::{at, capture, course, markdown, of};

/// The lock queue, so many seconds later: who waits has waited for longer.
fn queue(seconds: i64) -> Snapshot {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures/lock-queue.json");
    let mut snapshot = bundle::read(&file).expect("a capture");
    snapshot.taken_at = later(snapshot.taken_at, seconds);
    snapshot
}

fn later(at: Timestamp, seconds: i64) -> Timestamp {
    Timestamp::new(at.utc() + chrono::TimeDelta::seconds(seconds))
}

/// Nobody waits any more, and the transaction in front is still open.
fn flowing(seconds: i64) -> Snapshot {
    let mut snapshot = queue(seconds);
    snapshot.blocking = Section::Collected(vec![]);
    if let Section::Collected(locks) = &mut snapshot.locks {
        locks.retain(|lock| lock.granted);
    }
    if let Section::Collected(sessions) = &mut snapshot.activity {
        for session in sessions.iter_mut().filter(|s| s.id.pid != Pid(862)) {
            session.state = Some(SessionState::Idle);
            session.xact_start = None;
        }
    }
    snapshot
}

fn run(from: Timestamp, events: impl IntoIterator<Item = (i64, Event)>) -> Vec<Record> {
    let records = (0..).zip(events).map(|(seq, (seconds, event))| Record {
        seq,
        at: later(from, seconds),
        prev: String::new(),
        event,
    });
    records.collect()
}

fn start(what: &str) -> Event {
    Event::RunStart {
        what: what.into(),
        target: "shop@/var/run/postgresql:5432".into(),
        login: "oncall".into(),
        operator: "ana".into(),
        version: "0".into(),
        evidence: String::new(),
    }
}

fn book(id: &str) -> Event {
    Event::Book {
        id: id.into(),
        sha256: String::new(),
        inputs: BTreeMap::new(),
        texts: vec![runbook::builtin::text(id).expect("the book")],
        file: None,
    }
}

fn step(step: &str) -> Event {
    Event::StepStart { step: step.into() }
}

fn signal(verb: Verb, pid: i32) -> [Event; 2] {
    let id = BackendId {
        pid: Pid(pid),
        backend_start: Some(build::at(0)),
    };
    let signal = Signal {
        verb,
        id,
        xact_start: None,
        query_start: None,
        usesysid: None,
        datid: None,
        protected_applications: vec![],
        allow_syncrep: false,
        state_change: None,
    };
    let intent = Event::EffectIntent {
        n: 0,
        effect: Effect::Signal(signal),
    };
    let result = Event::EffectResult {
        n: 0,
        outcome: Outcome::Gone,
        waited_ms: 5,
    };
    [intent, result]
}

/// Two captures of the queue, the cancel of what stands in front of it, two without it.
fn cancelled() -> Postmortem {
    let captures = [queue(40), queue(42), flowing(44), flowing(46)];
    let from = captures[0].taken_at;
    let [intent, result] = signal(Verb::Cancel, 864);
    let records = run(
        from,
        [
            (1, start("pg cancel")),
            (3, intent),
            (3, result),
            (3, Event::RunEnd { code: 0 }),
        ],
    );
    postmortem::make(Material {
        records: vec![records],
        ..of(course(&captures))
    })
}

fn line<'t>(text: &'t str, begins: &str) -> &'t str {
    let found = text.lines().find(|line| line.contains(begins));
    found.unwrap_or_else(|| panic!("{begins}: {text}"))
}

#[test]
fn a_warning_that_stands_is_no_incident_that_goes_on() {
    let text = markdown(&cancelled());
    let when = line(&text, "- **When:**");
    for told in [
        "It began at 2026-11-29 19:17:34, by its age when it was first seen. Critical: at least from 19:18:16 to 19:18:18 UTC (2 s), over by 19:18:20 (cancel at 19:18:19).",
        "Since then only a long transaction (tx.long, warning), still there at the last capture.",
        "4 captures, 19:18:16 to 19:18:22 UTC",
    ] {
        assert!(when.contains(told), "{told}: {when}");
    }
    let row = line(&text, "| `lock.chain`");
    assert!(row.contains("19:17:34, by its age |"), "{row}");
}

/// Before anything was critical it was a warning, which has an age of its own.
#[test]
fn what_was_a_warning_at_first_is_told_as_one() {
    let captures = [queue(0), queue(2), queue(40), flowing(44)];
    let text = markdown(&postmortem::make(of(course(&captures))));
    let when = line(&text, "- **When:**");
    let told = "It began at 2026-11-29 19:17:34, by its age when it was first seen. Seen from 19:17:36 on, at first only \
                sessions that wait for a lock (lock.chain, warning), a queue behind a waiting DDL (lock.queue_behind_ddl, \
                warning). Critical: seen once, at 19:18:16 UTC, over by 19:18:20.";
    assert!(when.contains(told), "{told}: {when}");
    // Where a capture has nothing of it, that is the bound.
    let captures = [flowing(20), queue(40)];
    let text = markdown(&postmortem::make(of(course(&captures))));
    let when = line(&text, "- **When:**");
    assert!(
        when.contains(" It began after 2026-11-29 19:17:56."),
        "{when}"
    );
}

#[test]
fn one_capture_tells_no_end() {
    let text = markdown(&postmortem::make(of(course(&[capture(0, 20)]))));
    let when = line(&text, "- **When:**");
    assert!(
        when.contains("Critical: seen once, at 2027-01-15 09:00:00 UTC. One capture can't tell when it began or ended."),
        "{when}"
    );
}

#[test]
fn within_a_second_there_is_no_from_and_to() {
    let mut later = capture(0, 20);
    later.taken_at = build::at(3_600_000_000 + 400_000);
    let text = markdown(&postmortem::make(of(course(&[capture(0, 20), later]))));
    let when = line(&text, "- **When:**");
    assert!(
        when.contains(
            "had connected at 2027-01-15 08:00:00. Critical: seen at 09:00:00 UTC (400 ms), still there at the last capture."
        ),
        "{when}"
    );
}

#[test]
fn a_cancel_ends_a_statement_and_no_session() {
    let text = markdown(&cancelled());
    let done = line(&text, "- **What was done:**");
    assert!(
        done.contains("1 statement cancelled (its session lives on)"),
        "{done}"
    );
    let row = line(&text, "| cancel pid 864 |");
    assert!(
        row.contains("| its statement ended after 5 ms, the session lives on |"),
        "{row}"
    );
    let from = at(0);
    let [intent, result] = signal(Verb::Terminate, 4711);
    let records = run(from, [(1, start("pg terminate")), (2, intent), (2, result)]);
    let made = postmortem::make(Material {
        records: vec![records],
        ..of(course(&[capture(0, 2)]))
    });
    assert_eq!(made.runs[0].sum(), "1 session ended");
}

#[test]
fn what_was_done_isnt_told_as_a_possibility() {
    let text = markdown(&cancelled());
    let done = line(&text, "   done at 19:18:19: cancel 864: ");
    assert!(done.contains("a lock queue"), "{done}");
    line(&text, "   lost with pid 864: its transaction of ");
    assert!(!text.contains("could have been done"), "{text}");
    // Without a journal nobody knows that it was done.
    let text = markdown(&postmortem::make(of(course(&[queue(40)]))));
    line(&text, "   what could have been done: cancel 864: ");
    line(&text, "   what would have been lost with pid 864: its");
}

#[test]
fn whether_it_helped_is_told() {
    let text = markdown(&cancelled());
    let helped = "9 → 0 blocked, oldest transaction 43.7 s → 45.7 s, still 10 of 47 usable slots taken (captures of 19:18:18 and 19:18:20)";
    for of in ["- **What was done:**", "Did it help? 9"] {
        let told = line(&text, of);
        assert!(told.contains(helped), "{told}");
    }
}

#[test]
fn who_was_hurt_is_told_first() {
    let text = markdown(&cancelled());
    let bad = line(&text, "- **How bad:**");
    assert!(bad.contains("**How bad:** 9 sessions blocked"), "{bad}");
    for who in [
        "web (app_rw): all its 8 sessions waited",
        "migration (migrator): its only session waited",
    ] {
        assert!(bad.contains(who), "{who}: {bad}");
    }
    line(
        &text,
        "| reconstructed | ALTER TABLE of pid 864 began to wait; 8 queued behind it |",
    );
    line(
        &text,
        "| the run ended: as it was asked for (exit code 0) |",
    );
}

#[test]
fn a_server_that_goes_away_is_the_last_word() {
    let gaps: Vec<Gap> = (21..29)
        .map(|seconds| Gap {
            at: at(seconds),
            server: None,
            what: "frame".into(),
            why: "no connection: refused\n  at: host db1".into(),
        })
        .collect();
    let made = postmortem::make(Material {
        gaps,
        ..of(course(&[capture(0, 20), capture(10, 20), capture(20, 12)]))
    });
    let text = markdown(&made);
    let bad = line(&text, "- **How bad:**");
    assert!(bad.contains("**How bad:** 20 of 20 usable"), "{bad}");
    let last = text
        .split("\n\n")
        .find(|part| part.starts_with("- **What:**"))
        .and_then(|summary| summary.lines().rev().find(|line| line.starts_with("- ")));
    assert_eq!(
        last,
        Some(
            "- **After it:** Since 09:00:21 it couldn't be captured (8 attempts, until 09:00:28): no connection: refused. Whether it was stopped or failed, and whether it is back, isn't known here."
        )
    );
    line(&text, "> **8 captures failed**: see the timeline.");
    // And in the pictures.
    let page = view::postmortem::html(&made, &text).expect("sound");
    let figures = page.matches("<figure ").count();
    assert!(figures > 0, "{page}");
    assert_eq!(
        page.matches("<path class=\"gap\" d=\"M").count(),
        (8 + 1) * figures,
        "eight and the legend's"
    );
}

#[test]
fn a_journal_that_breaks_off_says_so() {
    let events = [
        (1, start("runbook lock-pileup")),
        (1, book("lock-pileup")),
        (1, step("picture")),
        (2, step("release")),
    ];
    let resumed = Event::Resumed {
        operator: "ben".into(),
        version: "0".into(),
        sha256: String::new(),
        changed: false,
        texts: vec![],
    };
    let made = |more: Vec<(i64, Event)>| {
        let records = run(at(0), events.iter().cloned().chain(more));
        markdown(&postmortem::make(Material {
            records: vec![records],
            ..of(course(&[capture(0, 2)]))
        }))
    };
    let text = made(vec![]);
    line(
        &text,
        "| **the journal breaks off here: the run was interrupted, or still goes on** |",
    );
    line(
        &text,
        "`lock-pileup` was left at `release`, at none of its ends: the journal breaks off.",
    );
    assert!(!text.contains("Nothing was left out"), "{text}");
    // Of one that is resumed and comes to its end it is told where it was interrupted.
    let answer = Event::Answer {
        step: "release".into(),
        answer: "migration".into(),
        attended: true,
    };
    let held = Event::StepEnd {
        step: "recovered".into(),
        came: "well".into(),
        next: None,
    };
    let end = Event::BookEnd {
        end: "resolved".into(),
    };
    let text = made(vec![
        (9, resumed),
        (9, answer),
        (9, held),
        (10, end),
        (10, Event::RunEnd { code: 0 }),
    ]);
    line(&text, "| **the journal breaks off here** |");
    line(&text, "| ben went on with the run that was interrupted |");
    assert!(!text.contains("was left at"), "{text}");
    line(&text, "Nothing was left out, failed, or ran out of time.");
    // In the book's words, without its ids, its conditions and its advice.
    let done = line(&text, "- **What was done:**");
    assert!(
        done.contains("asked “Does a migration, a batch or somebody at a console run just now?”, they said: yes, a migration; Does it flow again? yes, at 09:00:09;"),
        "{done}"
    );
    assert!(!text.contains("steps."), "{text}");
}

#[test]
fn without_a_capture_nothing_was_looked_at() {
    let records = run(at(0), [(1, start("pg terminate"))]);
    let course = Course::new(Thresholds::default(), Default::default());
    let text = markdown(&postmortem::make(Material {
        records: vec![records],
        ..of(course)
    }));
    line(
        &text,
        "- **Probable cause:** Not known: there is no capture.",
    );
    let what = line(&text, "- **What:**");
    assert!(
        what.contains("No capture of `shop@/var/run/postgresql:5432` was given; what follows"),
        "{what}"
    );
    assert!(!text.contains("othing was found"), "{text}");
}

/// A table of captures that are alike says nothing.
#[test]
fn rows_are_where_something_changes() {
    let captures: Vec<Snapshot> = (0..54)
        .map(|n| capture(n, if n == 27 { 5 } else { 2 }))
        .collect();
    let text = markdown(&postmortem::make(of(course(&captures))));
    let numbers = &text[text.find("## In numbers").expect("there")..];
    let times: Vec<&str> = numbers
        .lines()
        .filter(|line| line.contains(" of 20 |"))
        .filter_map(|line| line.split('|').nth(1))
        .map(str::trim)
        .collect();
    assert_eq!(
        times,
        [
            "2027-01-15 09:00:00",
            "09:00:26",
            "09:00:27",
            "09:00:28",
            "09:00:53"
        ]
    );
}

#[test]
fn a_limit_that_moved_is_told() {
    let with = |seconds, limit| {
        let mut snapshot = capture(seconds, 2);
        snapshot.roles = Section::Collected(vec![Role {
            oid: stanch::model::Oid(10),
            name: "app_rw".into(),
            superuser: false,
            connection_limit: limit,
        }]);
        snapshot
    };
    let mut unread = with(15, None);
    unread.roles = Section::skipped("not asked for");
    let captures = [with(0, Some(20)), with(10, Some(5)), unread, with(20, None)];
    let made = postmortem::make(of(course(&captures)));
    let text = markdown(&made);
    for change in ["is 5, before it was 20 |", "is none, before it was 5 |"] {
        line(
            &text,
            &format!("| CONNECTION LIMIT of role app_rw {change}"),
        );
    }
    assert_eq!(
        made.causes.first().map(|one| one.cause),
        Some(postmortem::Cause::LimitLowered)
    );
    // Lowered once the trouble is there it is the remedy.
    let full = |seconds, limit| {
        let mut snapshot = with(seconds, limit);
        snapshot.activity = capture(seconds, 20).activity;
        snapshot
    };
    let captures = [full(0, None), full(10, None), with(20, Some(5))];
    let made = postmortem::make(of(course(&captures)));
    let told = markdown(&made);
    assert!(told.contains("Critical: "), "{told}");
    line(
        &told,
        "| CONNECTION LIMIT of role app_rw is 5, before it was none |",
    );
    let lowered = |one: &postmortem::Suggestion| one.cause == postmortem::Cause::LimitLowered;
    assert!(!made.causes.iter().any(lowered), "{told}");
}
