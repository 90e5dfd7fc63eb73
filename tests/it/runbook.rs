//! Broken books, each with its fault at its place; and that no text makes the reader fall over.

use proptest::prelude::*;
use stanch::runbook::{self, Fault};

/// A sound book of nine lines, of which each case changes something.
pub const SOUND: &str = "\
runbook: v1
id: leak
title: A leak
inputs: { older_than: { type: duration, default: 60s } }
steps:
  - { id: picture, query: { report: connections } }
  - { id: keep, capture: {} }
  - { id: drain, act: { terminate: { state: idle in transaction, longer_than: inputs.older_than } }, confirm: {} }
  - { id: done, end: resolved }
";

fn faults(text: &str) -> Vec<Fault> {
    runbook::load(text, &runbook::builtin::text)
        .err()
        .unwrap_or_default()
}

#[test]
fn the_book_that_the_others_are_made_from_is_sound() {
    assert_eq!(faults(SOUND), []);
}

/// What is put in whose place, and what is said of it, in which line and column.
#[rustfmt::skip]
pub const CASES: [(&str, &str, usize, usize, &str); 67] = [
    ("runbook: v1", "runbook: v2", 1, 10, "this version reads `runbook: v1`"),
    ("runbook: v1\n", "", 1, 1, "\"runbook\" is missing"),
    ("id: leak\n", "", 1, 1, "\"id\" is missing"),
    ("id: leak", "id: Leak Now", 2, 5, "a name is lower case"),
    ("id: leak", "id: [leak]", 2, 5, "a text is expected here, not a list"),
    ("title: A leak", "titel: A leak", 3, 1, "unknown key \"titel\""),
    ("title: A leak\n", "", 1, 1, "\"title\" is missing"),
    ("title: A leak", "title: A leak\ntitle: B", 4, 1, "stands here twice"),
    ("type: duration", "type: durations", 4, 31, "unknown type \"durations\""),
    ("default: 60s", "default: soon", 4, 50, "is not a time such as 60s"),
    ("{ type: duration, default: 60s }", "{ default: 60s }", 4, 23, "\"type\" is missing"),
    ("{ type: duration, default: 60s }", "60s", 4, 23, "a map is expected here, not a text"),
    ("inputs: { older_than:", "inputs: { Older:", 4, 11, "a name is lower case"),
    ("steps:", "limits: { wall: long }\nsteps:", 5, 17, "no time such as"),
    ("steps:", "limits: { effects: { pg.kill: 3 } }\nsteps:", 5, 22, "unknown key \"pg.kill\""),
    ("steps:", "limits: { effects: { pg.terminate: 0 } }\nsteps:", 5, 36, "a whole number above 0"),
    ("report: connections", "report: conections", 6, 37, "unknown report \"conections\""),
    ("report: connections", "reports: connections", 6, 29, "unknown key \"reports\""),
    ("{ report: connections }", "connections", 6, 27, "a map is expected here"),
    ("query: { report: connections }", "query: { report: connections }, wait: 5s", 6, 52, "a step is of one kind"),
    (", query: { report: connections }", "", 6, 5, "a step without a kind"),
    ("id: picture, ", "", 6, 5, "\"id\" is missing"),
    ("id: picture", "id: keep", 7, 11, "step \"keep\" is there already, in line 6"),
    ("id: keep, capture: {}", "id: keep, capture: { all: yes }", 7, 28, "unknown key \"all\""),
    ("capture: {}", "capture: { include: [locks, everything] }", 7, 45, "unknown report \"everything\""),
    ("  - { id: keep, capture: {} }\n", "", 7, 11, "an act without evidence before it"),
    (", confirm: {}", "", 8, 11, "an act without confirm"),
    ("confirm: {}", "confirm: { reason: please }", 8, 121, "`reason: required`"),
    ("longer_than: inputs.older_than", "longer_than: inputs.older_then", 8, 79, "there is no input \"older_then\""),
    (", longer_than: inputs.older_than", "", 8, 36, "idle in transaction needs longer_than"),
    ("state: idle in transaction, ", "", 8, 36, "an act that selects nothing"),
    ("state: idle in transaction", "state: active", 8, 45, "the state to select by"),
    ("terminate: {", "kill: {", 8, 25, "unknown key \"kill\""),
    ("longer_than: inputs.older_than", "longer_than: 0s", 8, 79, "no time such as"),
    ("longer_than: inputs.older_than", "longer_than: 500000000000y", 8, 79, "no time such as"),
    ("inputs.older_than }", "inputs.older_than, max: none }", 8, 103, "a whole number above 0"),
    ("inputs.older_than }", "inputs.older_than, batch: { size: 0 } }", 8, 113, "a whole number above 0"),
    ("terminate: { state: idle in transaction,", "cancel: { state: idle in transaction,", 8, 33, "a cancel does nothing"),
    ("steps:", "limits: { effects: { pg.cancel: 3 } }\nsteps:", 9, 11, "limits.effects doesn't allow"),
    ("state: idle in transaction,", "user: [], state: idle in transaction,", 8, 44, "a list of nobody"),
    ("{ id: done, end: resolved }", "{ id: done, decide: [{ else: last, goto: last }] }\n  - { id: last, end: failed }", 9, 46, "an else names its step itself"),
    ("{ id: done, end: resolved }", "{ id: done, decide: [{ if: 'steps.keep.x', goto: last }, { else: last }] }\n  - { id: last, end: failed }", 9, 32, "finds nothing"),
    ("{ id: done, end: resolved }", "{ id: done, decide: [{ if: 'steps[\"x\"].y', goto: last }, { else: last }] }\n  - { id: last, end: failed }", 9, 32, "named after a dot"),
    ("end: resolved", "end: solved", 9, 22, "unknown end \"solved\""),
    ("  - { id: done, end: resolved }\n", "", 8, 11, "doesn't end"),
    ("end: resolved }", "goto: picture }", 9, 23, "stands above: only a poll goes back"),
    ("end: resolved }", "goto: nowhere }", 9, 23, "there is no step \"nowhere\""),
    ("end: resolved }", "goto: done, end: resolved }", 9, 23, "jumps nowhere"),
    ("capture: {} }", "capture: {}, goto: done }", 8, 11, "no way leads to step \"drain\""),
    ("capture: {} }", "capture: {}, needs: [drain] }", 7, 38, "hasn't run on every way"),
    ("capture: {} }", "capture: {}, needs: [pictures] }", 7, 38, "there is no step \"pictures\""),
    ("capture: {} }", "capture: {}, unattended: x }", 7, 30, "means nothing to a step of kind capture"),
    ("{ id: done, end: resolved }", "{ id: done, decide: [{ if: 'true', goto: last }] }\n  - { id: last, end: failed }", 9, 26, "a decide without an else"),
    ("{ id: done, end: resolved }", "{ id: done, decide: [{ else: last }, { if: 'true', goto: last }] }\n  - { id: last, end: failed }", 9, 26, "never reached"),
    ("{ id: done, end: resolved }", "{ id: done, decide: [{ if: 'true && >', goto: last }, { else: last }] }\n  - { id: last, end: failed }", 9, 32, "not a condition"),
    ("{ id: done, end: resolved }", "{ id: done, decide: [{ if: 'steps.other.x', goto: last }, { else: last }] }\n  - { id: last, end: failed }", 9, 32, "there is no step \"other\""),
    ("{ id: done, end: resolved }", "{ id: done, decide: [{ if: 'inputs.x > 1', goto: last }, { else: last }] }\n  - { id: last, end: failed }", 9, 32, "there is no input \"x\""),
    ("{ id: done, end: resolved }", "{ id: done, decide: [{ if: 'answers.picture == \"x\"', goto: last }, { else: last }] }\n  - { id: last, end: failed }", 9, 32, "asks nothing"),
    ("{ id: done, end: resolved }", "{ id: done, poll: { repeat: keep, until: 'true', timeout: 5m }, on_timeout: last }\n  - { id: last, end: failed }", 9, 33, "only what reads is asked again"),
    ("{ id: done, end: resolved }", "{ id: done, poll: { repeat: picture, until: 'true', timeout: 5m } }\n  - { id: last, end: failed }", 9, 11, "a poll without on_timeout"),
    ("{ id: done, end: resolved }", "{ id: done, check: lock.chains }\n  - { id: last, end: failed }", 9, 24, "unknown finding \"lock.chains\""),
    ("{ id: done, end: resolved }", "{ id: done, ask: { text: why?, choices: { a: only } } }\n  - { id: last, end: failed }", 9, 45, "at least two answers"),
    ("{ id: done, end: resolved }", "{ id: done, ask: { text: why?, choices: { a: one, b: two } }, unattended: c }\n  - { id: last, end: failed }", 9, 79, "none of the answers"),
    ("{ id: done, end: resolved }", "{ id: done, note: { actions: [{ title: x, due: +1d }] } }\n  - { id: last, end: failed }", 9, 35, "\"owner\" is missing"),
    ("{ id: done, end: resolved }", "{ id: done, note: { ask: [{ text: why?, for: causes }] } }\n  - { id: last, end: failed }", 9, 50, "unknown part of a postmortem \"causes\""),
    ("{ id: done, end: resolved }", "{ id: done, note: { ask: { for: cause } } }\n  - { id: last, end: failed }", 9, 30, "\"text\" is missing"),
    ("{ id: done, end: resolved }", "{ id: done, ask: { text: why?, choices: { a: one, b: two }, for: by_hand } }\n  - { id: last, end: failed }", 9, 70, "unknown part of a postmortem \"by_hand\""),
];

#[test]
fn each_fault_at_its_place() {
    told_at_their_places(SOUND, &CASES);
}

/// Each case put into a sound book: what is put in whose place, and what is said of it, in which line and column.
#[track_caller]
pub fn told_at_their_places(sound: &str, cases: &[(&str, &str, usize, usize, &str)]) {
    let mut wrong = Vec::new();
    for (from, to, line, column, want) in cases {
        assert!(sound.contains(from), "{from}");
        let found = faults(&sound.replacen(from, to, 1));
        let there = found.iter().any(|fault| {
            (fault.place.line, fault.place.column) == (*line, *column) && fault.what.contains(want)
        });
        if !there {
            let all: Vec<String> = found
                .iter()
                .map(|f| format!("{}:{} {}", f.place.line, f.place.column, f.what))
                .collect();
            wrong.push(format!(
                "{to}\n   want {line}:{column} {want}\n   have {all:?}"
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

/// All of them, not the first; each with its line and a caret.
#[test]
fn every_fault_is_told_and_shown() {
    let text = SOUND
        .replace("report: connections", "report: conections")
        .replace(", confirm: {}", "")
        .replace("end: resolved", "end: solved");
    let found = faults(&text);
    let lines: Vec<usize> = found.iter().map(|fault| fault.place.line).collect();
    assert_eq!(lines, [6, 8, 9], "{found:#?}");
    assert_eq!(
        found[0].show("leak.yaml", &text),
        "error: unknown report \"conections\"\n \
         --> leak.yaml:6:37\n  |\n\
         6 |   - { id: picture, query: { report: conections } }\n  |                                     ^^^^^^^^^^\n  |\n\
         help: did you mean \"connections\"?\n"
    );
}

#[test]
fn a_finding_names_a_book_that_is_there() {
    for id in stanch::model::FindingId::ALL {
        if let Some(name) = stanch::analysis::catalog::runbook(*id) {
            assert!(runbook::builtin::named(name).is_some(), "{name}");
        }
    }
}

/// The README's book can be walked as it stands there.
#[test]
fn the_book_of_the_readme_is_sound() {
    let readme = include_str!("../../README.md");
    let at = readme.find("```yaml\nrunbook: v1").expect("a book");
    let text = readme[at..].trim_start_matches("```yaml\n");
    let (book, _) = text.split_once("```").expect("its end");
    assert_eq!(faults(book), []);
}

#[test]
fn what_is_no_yaml_is_told_too() {
    for text in [
        "",
        "a: [",
        "\u{feff}",
        "- 1\n- 2\n",
        "42",
        "steps: *nowhere",
        "? [a]\n: b\n",
    ] {
        let found = faults(text);
        assert!(!found.is_empty(), "{text:?}");
        for fault in found {
            fault.show("x.yaml", text);
        }
    }
}

proptest! {
    /// A book with any part of it replaced by anything is a book or a list of faults, never a panic.
    #[test]
    fn no_text_makes_it_fall_over(at in 0..400_usize, length in 0..60_usize, text in "[ -~\n\u{e9}\u{5728}]{0,40}") {
        let at = SOUND.char_indices().nth(at.min(SOUND.len() - 1)).map_or(0, |(i, _)| i);
        let end = (at + length).min(SOUND.len());
        let broken = format!("{}{text}{}", &SOUND[..at], &SOUND[end..]);
        if let Err(found) = runbook::load(&broken, &runbook::builtin::text) {
            prop_assert!(!found.is_empty());
            for fault in found {
                fault.show("x.yaml", &broken);
            }
        }
    }
}
