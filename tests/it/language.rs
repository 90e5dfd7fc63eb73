//! The rest of the language of books: statements, commands, other books, texts, what is computed and what goes wrong. Broken
//! ones with their fault at its place; and walks on cases that are written down.

use proptest::prelude::*;
use stanch::runbook::walk::Walk;
use stanch::runbook::{self, Fault, builtin, fixture, render};

/// A sound book of which each case changes something.
pub const SOUND: &str = r#"runbook: v1
id: wide
title: All kinds
inputs: { role: { type: string, default: app }, age: { type: duration, default: 5s } }
steps:
  - { id: rows, query: { sql: "SELECT usename, $1 AS role FROM pg_stat_activity", args: [inputs.role] }, timeout: 2s, set: { n: "steps.rows.row_count" }, on_error: { "57014": give_up, "*": give_up } }
  - { id: pods, run: { argv: [kubectl, get, pods, inputs.role], writes: false }, expect: [{ that: "steps.pods.exit == 0", else: warn, say: "it said {{ stdout }}" }] }
  - { id: seen, title: "{{ vars.n }} rows", ask: { text: "{{ steps.rows.row_count }} rows?", choices: { a: "{{ inputs.role }}", b: two } }, unattended: a }
  - { id: keep, capture: {} }
  - { id: scale, run: { argv: [kubectl, scale, vars.n], writes: true }, confirm: {}, on_error: give_up }
  - { id: leak, include: { book: idle-in-transaction, set: { older_than: inputs.age } }, on_error: give_up }
  - { id: cut, act: { cancel: { active: true, longer_than: inputs.age, user: inputs.role, pid: [vars.n], max: 1 } }, confirm: {} }
  - { id: way, decide: [{ if: "steps.leak.end == 'escalated' && vars.n > 1", goto: give_up }, { else: done }] }
  - { id: done, end: resolved }
  - { id: give_up, end: escalated }
"#;

fn load(text: &str) -> Result<runbook::Book, Vec<Fault>> {
    runbook::load(text, &builtin::text)
}

#[test]
fn the_book_that_the_others_are_made_from_is_sound() {
    assert_eq!(load(SOUND).err(), None);
}

/// What is put in whose place, and what is said of it, in which line and column.
#[rustfmt::skip]
pub const CASES: [(&str, &str, usize, usize, &str); 49] = [
    ("SELECT usename", "DELETE FROM x; SELECT usename", 6, 31, "begins with SELECT, WITH, TABLE or VALUES, not with DELETE"),
    ("pg_stat_activity\"", "pg_stat_activity; SELECT 1\"", 6, 31, "one statement, without a semicolon"),
    ("SELECT usename", "SELECT pg_terminate_backend(1), usename", 6, 31, "ended by an act only"),
    ("$1 AS role", "$2 AS role", 6, 31, "binds up to $2, and 1 value"),
    ("$1 AS role", "'{{ inputs.role }}' AS role", 6, 31, "no template in a statement"),
    ("args: [inputs.role] }, timeout", "args: ['{{ inputs.role }}'] }, timeout", 6, 90, "no template here"),
    ("args: [inputs.role] }, timeout", "args: [inputs.rule] }, timeout", 6, 90, "there is no input \"rule\""),
    ("args: [inputs.role] }, timeout", "args: [steps.pods.exit] }, timeout", 6, 90, "\"pods\" hasn't run on every way"),
    ("query: { sql:", "query: { report: locks, sql:", 6, 24, "a query is one of report and sql"),
    ("timeout: 2s", "timeout: soon", 6, 115, "no time such as"),
    ("set: { n: \"steps.rows.row_count\" }", "set: { n: \"steps.rows.(\" }", 6, 129, "not a condition"),
    ("set: { n: \"steps.rows.row_count\" }", "set: { n-m: \"1\" }", 6, 126, "read the - as minus"),
    ("set: { n: \"steps.rows.row_count\" }", "set: { n: \"step.rows\" }", 6, 129, "\"step\" is nothing that there is"),
    ("\"57014\": give_up", "\"5701\": give_up", 6, 167, "no SQLSTATE"),
    ("\"*\": give_up }", "\"*\": give_in }", 6, 190, "there is no step \"give_in\""),
    ("argv: [kubectl, get, pods, inputs.role]", "argv: []", 7, 22, "a command has a name"),
    ("argv: [kubectl, get, pods, inputs.role]", "argv: [inputs.role]", 7, 31, "which command it is stands in the book"),
    ("argv: [kubectl, get, pods, inputs.role]", "argv: kubectl get pods", 7, 30, "a list is expected here"),
    ("argv: [kubectl, get, pods, inputs.role]", "argv: [sh, -c, 'ls {{ inputs.role }}']", 7, 39, "no template here"),
    (", writes: false", "", 7, 22, "\"writes\" is missing"),
    ("writes: false", "writes: maybe", 7, 73, "true or false is expected here"),
    ("say: \"it said {{ stdout }}\"", "say: \"it said {{ stdout }\"", 7, 140, "not a template"),
    ("say: \"it said {{ stdout }}\"", "say: \"it said {{ steps.scale.exit }}\"", 7, 140, "\"scale\" hasn't run on every way"),
    ("title: \"{{ vars.n }} rows\"", "title: \"{{ vars.m }} rows\"", 8, 24, "nothing sets \"m\""),
    ("title: \"{{ vars.n }} rows\"", "title: \"{{ row_count }} rows\"", 8, 24, "\"row_count\" is nothing that there is"),
    ("title: \"{{ vars.n }} rows\"", "title: \"{% if x %}{% endif %}\"", 8, 24, "without {% %}"),
    ("b: two }", "stop: two }", 8, 129, "a key of the walk itself"),
    ("text: \"{{ steps.rows.row_count }} rows?\"", "text: \"{{ steps.raws.row_count }} rows?\"", 8, 58, "there is no step \"raws\""),
    ("unattended: a }", "unattended: a, timeout: 5s }", 8, 156, "\"timeout\" means nothing to a step of kind ask"),
    ("confirm: {}, on_error: give_up }", "on_error: give_up }", 10, 11, "a run that writes, without confirm"),
    ("  - { id: keep, capture: {} }\n", "", 9, 11, "a run that writes, without evidence before it"),
    ("steps:", "limits: { effects: { pg.cancel: 1 } }\nsteps:", 11, 11, "limits.effects doesn't allow"),
    ("book: idle-in-transaction", "book: idle-in-transit", 11, 34, "there is no book \"idle-in-transit\""),
    ("book: idle-in-transaction", "book: wide", 11, 34, "would include itself"),
    ("set: { older_than: inputs.age }", "set: { older: inputs.age }", 11, 62, "has no input \"older\""),
    ("inputs.age } }, on_error: give_up }", "inputs.age } }, on_error: keep }", 11, 100, "stands above: only a poll goes back"),
    ("inputs.age } }, on_error: give_up }", "inputs.age } }, on_error: nowhere }", 11, 100, "there is no step \"nowhere\""),
    ("inputs.age } }, on_error: give_up }", "inputs.age } }, on_error: { \"57014\": give_up } }", 11, 11, "an include's error has no code"),
    ("steps.leak.end == 'escalated'", "steps.leak.picture.x == 1 && steps.leek.end == 'x'", 13, 31, "there is no step \"leek\""),
    ("cancel: { active: true, longer_than: inputs.age,", "terminate: { active: true, longer_than: inputs.age,", 12, 34, "is for a cancel"),
    ("active: true, longer_than: inputs.age, ", "active: true, ", 12, 31, "needs longer_than: it would be everybody"),
    ("active: true,", "active: true, roots: true,", 12, 31, "an act selects by one of"),
    ("active: true,", "active: no,", 12, 41, "true is expected here"),
    ("user: inputs.role", "user: inputs.rolle", 12, 78, "there is no input \"rolle\""),
    ("id: scale", "id: sc-ale", 10, 11, "read the - as minus"),
    ("inputs: { role:", "inputs: { my-role: { type: bool }, role:", 4, 11, "read the - as minus"),
    ("{ id: keep, capture: {} }", "{ id: keep, capture: {}, on_error: done }", 9, 30, "\"on_error\" means nothing to a step of kind capture"),
    ("{ id: done, end: resolved }", "{ id: more, redis: { report: keys }, on_error: give_up }\n  - { id: done, end: resolved }", 14, 34, "unknown report \"keys\""),
    ("{ id: done, end: resolved }", "{ id: more, note: { actions: [{ title: x, owner: y, due: soon }] } }\n  - { id: done, end: resolved }", 14, 35, "no day such as +14d"),
];

#[test]
fn each_fault_at_its_place() {
    crate::runbook::told_at_their_places(SOUND, &CASES);
}

/// An included book's steps stand in its place, under its name, with inputs of their own.
#[test]
fn an_included_book_has_names_of_its_own() {
    let book = load(SOUND).expect("sound");
    let inner = book.step("leak.drain").expect("its step");
    assert_eq!(book.steps[inner].book, "leak.");
    assert_eq!(book.texts.len(), 2);
    let mut walk = Walk::new(&book, &std::collections::BTreeMap::new());
    walk.enter(book.step("leak").expect("there"))
        .expect("entered");
    let inputs = &walk.scope(&book.steps[inner]).inputs;
    assert_eq!(inputs["older_than"], "5s", "{inputs:?}");
}

/// A book that ends with another book's end is left by it as by its own; what that one doesn't answer, this one may.
#[test]
fn books_within_books_come_back_and_fail_outwards() {
    let inner = "runbook: v1\nid: inner\ntitle: I\nsteps:\n  - { id: looks, query: { report: locks } }\n  - { id: way, decide: [{ if: 'steps.looks.n == 1', goto: good }, { else: bad }] }\n  - { id: good, end: resolved }\n  - { id: bad, end: failed }\n";
    let middle = "runbook: v1\nid: middle\ntitle: M\nsteps:\n  - { id: first, wait: 1s }\n  - { id: within, include: { book: inner }, end: resolved }\n";
    let outer = "runbook: v1\nid: outer\ntitle: O\nsteps:\n  - { id: all, include: { book: middle }, on_error: saved }\n  - { id: way, decide: [{ if: \"steps.all.end == 'resolved'\", goto: done }, { else: saved }] }\n  - { id: done, end: resolved }\n  - { id: saved, end: escalated }\n";
    let shelf = |id: &str| match id {
        "inner" => Some(inner.to_owned()),
        "middle" => Some(middle.to_owned()),
        _ => None,
    };
    let book = runbook::load(outer, &shelf).expect("sound");
    let case = |looks: &str, path: &str, end: &str| {
        let text = format!(
            "test: v1\ncases:\n  - {{ name: x, steps: {{ all.within.looks: {looks} }}, path: [{path}], end: {end} }}\n"
        );
        fixture::run(&book, &fixture::cases(&text).expect("cases")).failed
    };
    let to_looks = "all, all.first, all.within, all.within.looks";
    assert_eq!(
        case(
            "{ n: 1 }",
            &format!(
                "{to_looks}, all.within.way, all.within.good, all.within.end, all.end, way, done"
            ),
            "resolved"
        ),
        []
    );
    // It ends failed, and it can't read: both are answered by the outermost.
    assert_eq!(
        case(
            "{ n: 2 }",
            &format!("{to_looks}, all.within.way, all.within.bad, saved"),
            "escalated"
        ),
        []
    );
    assert_eq!(
        case(
            "{ error: '57014' }",
            &format!("{to_looks}, saved"),
            "escalated"
        ),
        []
    );
    assert_eq!(
        case("{ m: 1 }", &format!("{to_looks}, all.within.way"), "failed"),
        []
    );
}

/// Every case of every built-in book comes to its end by its way, and each way is taken by one.
#[test]
fn the_built_in_books_do_what_their_cases_say() {
    for found in builtin::BOOKS {
        let book = load(found.text).expect(found.id);
        let cases = fixture::cases(found.cases).expect(found.id);
        assert!(cases.len() >= 6, "{}: {} cases", found.id, cases.len());
        let outcome = fixture::run(&book, &cases);
        assert!(
            outcome.failed.is_empty(),
            "{}: {:#?}",
            found.id,
            outcome.failed
        );
        assert!(
            outcome.unreached.is_empty(),
            "{}: {:#?}",
            found.id,
            outcome.unreached
        );
        assert_eq!(outcome.passed.len(), cases.len());
    }
}

/// A case that says what isn't so fails at the place where it says it.
#[test]
fn a_case_that_isnt_so_fails() {
    let book = load(builtin::named("idle-in-transaction").expect("there").text).expect("sound");
    let case = |steps: &str, path: &str, end: &str| {
        let text = format!(
            "test: v1\ncases:\n  - name: x\n    steps: {{ {steps} }}\n    path: [{path}]\n    end: {end}\n"
        );
        fixture::run(&book, &fixture::cases(&text).expect("cases"))
    };
    let calm = "picture: { capacity: { used_pct: 10.0 }, groups: [] }";
    let way = "picture, release, choose, nothing";
    assert_eq!(case(calm, way, "false_alarm").failed, []);
    for (steps, path, end, line, column, want) in [
        (
            calm,
            way,
            "resolved",
            6,
            10,
            "it ended false_alarm, not resolved",
        ),
        (
            calm,
            "picture, release, choose, evidence",
            "false_alarm",
            5,
            38,
            "another way",
        ),
        (
            "release: none",
            way,
            "false_alarm",
            6,
            10,
            "nothing says what \"picture\" finds",
        ),
        (
            "picture: 5",
            way,
            "false_alarm",
            4,
            23,
            "what is found: a map",
        ),
        (
            "pictures: {}",
            way,
            "false_alarm",
            4,
            14,
            "there is no step \"pictures\"",
        ),
        (
            "picture: [{ capacity: { used_pct: 1.0 }, groups: [] }, { capacity: {} }]",
            way,
            "false_alarm",
            4,
            69,
            "wasn't asked so often",
        ),
        (
            "picture: { capacity: { used_pct: 1.0 }, groups: [] }, release: soon",
            way,
            "false_alarm",
            4,
            77,
            "one of the choices",
        ),
        (
            "picture: { capacity: {}, groups: [] }",
            way,
            "resolved",
            6,
            10,
            "it ended false_alarm",
        ),
    ] {
        let failed = case(steps, path, end).failed;
        let [fault] = failed.as_slice() else {
            panic!("{steps}: {failed:?}")
        };
        assert!(fault.what.contains(want), "{steps}: {fault:?}");
        assert_eq!(
            (fault.place.line, fault.place.column),
            (line, column),
            "{fault:?}"
        );
    }
    let few = case(calm, way, "false_alarm");
    assert!(
        few.unreached
            .iter()
            .any(|way| way == "drain: no case comes here"),
        "{few:?}"
    );
    assert!(
        few.unreached
            .iter()
            .any(|way| way.starts_with("choose > evidence (")),
        "{few:?}"
    );
}

/// Each kind of step comes to what the case says, and goes on by that.
#[test]
fn each_kind_comes_to_something() {
    let book = load(SOUND).expect("sound");
    let text = r#"test: v1
cases:
  - name: all well
    set: { role: web }
    steps:
      rows: { rows: [{ usename: a }] }
      pods: { exit: 1, stdout: "" }
      scale: { exit: 0 }
      leak.picture: { capacity: { used_pct: 1.0 }, groups: [] }
    path: [rows, pods, seen, keep, scale, leak, leak.picture, leak.release, leak.choose, leak.nothing, leak.end, cut, way, done]
    end: resolved
  - name: the statement runs out of time
    steps: { rows: { error: "57014" } }
    path: [rows, give_up]
    end: escalated
  - name: the command that changes something fails
    steps: { rows: { rows: [] }, pods: { exit: 0 }, scale: { exit: 3 } }
    path: [rows, pods, seen, keep, scale, give_up]
    end: escalated
  - name: a session isn't there any more
    steps:
      rows: { rows: [{}, {}] }
      pods: { exit: 0 }
      scale: { exit: 0 }
      leak.picture: { capacity: { used_pct: 1.0 }, groups: [] }
      cut: refused
    end: failed
  - name: the person says no
    steps:
      rows: { rows: [{}, {}] }
      pods: { exit: 0 }
      scale: { exit: 0 }
      leak.picture: { capacity: { used_pct: 1.0 }, groups: [] }
      cut: declined
    end: stopped
"#;
    let outcome = fixture::run(&book, &fixture::cases(text).expect("cases"));
    assert!(outcome.failed.is_empty(), "{:#?}", outcome.failed);
}

/// The page for the wiki, of a book with most kinds of steps.
#[test]
fn a_page_for_the_wiki() {
    let book = load(builtin::named("idle-in-transaction").expect("there").text).expect("sound");
    insta::assert_snapshot!("runbook-page", render::markdown(&book, "0123abcd"));
    for found in builtin::BOOKS {
        let book = load(found.text).expect(found.id);
        let page = render::markdown(&book, "");
        // Every step is in the flow chart, every branch among the decisions.
        assert_eq!(page.matches("\n    s").count(), {
            let ways: usize = (0..book.steps.len())
                .map(|n| runbook::graph::ways(&book, n).len())
                .sum();
            book.steps.len() + ways
        });
        for broken in ["-->||", "[\"\"]", "\"\"\""] {
            assert!(!page.contains(broken), "{}: {broken}", found.id);
        }
    }
}

proptest! {
    /// A book with any part of it replaced by anything is a book or a list of faults, never a panic; likewise its cases.
    #[test]
    fn no_text_makes_it_fall_over(at in 0..2000_usize, length in 0..80_usize, text in "[ -~\n\u{e9}\u{5728}]{0,40}") {
        let at = at.min(SOUND.len() - 1);
        let end = (at + length).min(SOUND.len());
        let broken = format!("{}{text}{}", &SOUND[..at], &SOUND[end..]);
        match load(&broken) {
            Ok(book) => {
                render::markdown(&book, "");
            }
            Err(found) => {
                prop_assert!(!found.is_empty());
                for fault in found {
                    fault.show("x.yaml", &broken);
                }
            }
        }
        let cases = builtin::BOOKS[0].cases;
        let at = cases.char_indices().nth(at).map_or(0, |(i, _)| i);
        let broken = format!("{}{text}{}", &cases[..at], &cases[at..]);
        let _ = fixture::cases(&broken);
    }
}
