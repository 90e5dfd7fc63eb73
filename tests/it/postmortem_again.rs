//! A postmortem that is rendered again: with more of the same incident, with less of it, and with another one.

use std::path::Path;

use stanch::bundle;
use stanch::journal::{Event, Journal, Record};
use stanch::model::Timestamp;
use stanch::postmortem::{self, Material, QUESTIONS};
use stanch::runbook::{self, Kind, PARTS, builtin};

use crate::postmortem_found::{at, capture, course, markdown, of, stanch};

/// Captures of these seconds, each in a file.
fn captures(folder: &Path, seconds: &[i64]) -> Vec<String> {
    let file = |seconds: &i64| {
        let name = format!("{seconds}.json");
        bundle::write(&folder.join(&name), &capture(*seconds, 20)).expect("written");
        name
    };
    seconds.iter().map(file).collect()
}

/// A run that began then, with what it was told.
fn run(folder: &Path, name: &str, clock: fn() -> Timestamp, notes: &[(&str, &str)]) -> String {
    let mut journal = Journal::create(&folder.join("runs"), name, clock).expect("a journal");
    let start = Event::RunStart {
        what: "runbook x".into(),
        target: "app@db1:5432".into(),
        login: "oncall".into(),
        operator: "ana".into(),
        version: "0".into(),
        evidence: String::new(),
    };
    journal.write(start).expect("written");
    for (question, text) in notes {
        let note = Event::Note {
            step: "write_up".into(),
            question: (*question).into(),
            text: (*text).into(),
        };
        journal.write(note).expect("written");
    }
    journal.path().display().to_string()
}

fn render(folder: &Path, files: &[String], more: &[&str]) -> (i32, String, String) {
    let mut args = vec!["report"];
    args.extend(files.iter().map(String::as_str));
    args.extend(more);
    args.push("-q");
    stanch(folder, &args)
}

const FILE: &str = "postmortem-app-db1-5432-2027-01-15";

fn read(folder: &Path) -> (String, String) {
    let of = |ending: &str| std::fs::read_to_string(folder.join(format!("{FILE}.{ending}")));
    (of("md").expect("read"), of("html").expect("read"))
}

#[test]
fn another_incident_is_never_rendered_over_it() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path();
    let first = captures(folder, &[0, 10, 20]);
    let journal = run(folder, "20270115T090000Z-a", || at(5), &[]);
    let (code, _, err) = render(folder, &first, &["--journal", &journal]);
    assert_eq!((code, err.as_str()), (0, ""));
    let before = read(folder);
    assert!(
        !before.1.contains("postmortem_origin"),
        "it is for nobody to read"
    );

    let other = captures(folder, &[7200]);
    let (code, out, err) = render(folder, &other, &[]);
    assert_eq!((code, out.as_str()), (65, ""));
    assert_eq!(
        err,
        format!(
            "stanch: ./{FILE}.md: nothing that it was made of is given: 3 captures of db1:5432, 2027-01-15 09:00:00 to 09:00:20 UTC \
             (none given now); the journal of runbook x, begun 2027-01-15 09:00:05 UTC; from 3 files, 0.json to 20.json; nothing \
             is written: give that too where it is one incident, else another --name\n"
        )
    );
    let journal = run(folder, "20270115T110000Z-b", || at(7200), &[]);
    let (code, _, err) = render(folder, &[], &["--journal", &journal]);
    assert_eq!(code, 65, "{err}");
    assert_eq!(read(folder), before);
    // The ways on.
    let (code, _, err) = render(folder, &other, &["--name", "second"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let first_run = folder
        .join("runs/20270115T090000Z-a.jsonl")
        .display()
        .to_string();
    let all: Vec<String> = first.into_iter().chain(other).collect();
    let (code, _, err) = render(folder, &all, &["--journal", &first_run]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(read(folder).0.contains("4 captures"));
}

#[test]
fn what_is_no_longer_in_it_is_told() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path();
    let files = captures(folder, &[0, 10, 20, 30]);
    let journal = run(folder, "20270115T090000Z-a", || at(5), &[]);
    assert_eq!(render(folder, &files, &[]).0, 0);
    let (code, _, err) = render(folder, &files[1..2], &["--journal", &journal]);
    assert_eq!(code, 0);
    assert_eq!(
        err,
        format!(
            "./{FILE}.md: it was made of more, which is no longer in it: 4 captures of db1:5432, 2027-01-15 09:00:00 to 09:00:30 UTC \
             (1 given now); from 3 files, 0.json to 30.json; to have that again, give it too\n"
        )
    );
    // By its time the run alone is of the same incident: captures of before are missed, and it is no other.
    assert_eq!(render(folder, &files, &["--journal", &journal]).2, "");
    let (code, _, err) = render(folder, &[], &["--journal", &journal]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("(none given now)"), "{err}");
}

#[test]
fn what_grows_is_rendered_without_a_word() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path();
    let quiet = |files: &[String], more: &[&str]| {
        let (code, _, err) = render(folder, files, more);
        assert_eq!((code, err.as_str()), (0, ""), "{files:?} {more:?}");
    };
    // One look, then captures around it that don't have it.
    quiet(&captures(folder, &[15]), &[]);
    quiet(&captures(folder, &[10, 20]), &[]);
    // A longer capture.
    let files = captures(folder, &[10, 20, 30]);
    quiet(&files, &[]);
    // The journal, and another one.
    let first = run(folder, "20270115T090000Z-a", || at(5), &[]);
    let second = run(folder, "20270115T090040Z-b", || at(40), &[]);
    quiet(&files, &["--journal", &first]);
    quiet(&files, &["--journal", &first, "--journal", &second]);
    // One of an earlier version doesn't say what it was made of.
    let (text, _) = read(folder);
    let begins = text.find("<!-- generated: made-of").expect("there");
    std::fs::write(folder.join(format!("{FILE}.md")), &text[..begins]).expect("written");
    quiet(&captures(folder, &[7200]), &[]);
}

#[test]
fn a_later_answer_reaches_the_document() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path();
    let files = captures(folder, &[0, 10]);
    let asked = "What did users notice, from when to when?";
    let first = run(
        folder,
        "20270115T090000Z-a",
        || at(5),
        &[
            (asked, "it hung"),
            ("to do", "Mend it (owner: ana, due: +14d)"),
        ],
    );
    let second = run(
        folder,
        "20270115T090008Z-b",
        || at(8),
        &[(asked, "a second wave")],
    );
    // Without a journal there is neither answer nor table; it comes with the journal, once.
    assert_eq!(render(folder, &files[..1], &[]).0, 0);
    let early = read(folder).0;
    let (code, _, err) = render(folder, &files, &["--journal", &first]);
    assert_eq!((code, err.as_str()), (0, ""));
    let (text, _) = read(folder);
    assert_eq!(text.matches("Mend it").count(), 1, "{text}");
    assert!(early.contains("<!-- people: impact -->\nTODO\n") && text.contains("it hung"));

    let both = ["--journal", &first, "--journal", &second];
    assert_eq!(render(folder, &files, &both).2, "");
    let (text, _) = read(folder);
    let answers = "_What did users notice, from when to when?_ it hung (written down during the run)\n\n_What did users notice, from when to when?_ a second wave (written down during the run)\n";
    assert!(text.contains(answers), "{text}");
    // Where people have written it stands below.
    std::fs::write(
        folder.join(format!("{FILE}.md")),
        text.replace(answers, "The checkout stood still.\n"),
    )
    .expect("written");
    let third = run(
        folder,
        "20270115T090009Z-c",
        || at(9),
        &[(asked, "a third wave")],
    );
    let all = [
        "--journal",
        &first,
        "--journal",
        &second,
        "--journal",
        &third,
    ];
    let (code, _, err) = render(folder, &files, &all);
    assert_eq!(
        (code, err),
        (
            0,
            format!("./{FILE}.md: impact: 1 answer of the journals not in it, listed below it\n")
        )
    );
    let (text, page) = read(folder);
    let below = "Written down during the run and not in the answer above:\n\n- _What did users notice, from when to when?_ a third wave\n";
    assert!(
        text.contains("The checkout stood still.\n<!-- /people: impact -->"),
        "{text}"
    );
    assert!(
        text.contains(below) && !text.contains("_ a second wave\n"),
        "{text}"
    );
    assert!(page.contains("a third wave"), "{page}");
}

#[test]
fn a_title_goes_with_its_document() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path();
    for (seconds, idle) in [(0, 2), (10, 18)] {
        let file = folder.join(format!("{seconds}.json"));
        bundle::write(&file, &capture(seconds, idle)).expect("written");
    }
    assert_eq!(render(folder, &["0.json".into()], &[]).0, 0);
    assert!(read(folder).0.contains("\n# Postmortem: Incident ("));
    let both = ["0.json".into(), "10.json".into()];
    assert_eq!(render(folder, &both, &[]).0, 0);
    let (text, page) = read(folder);
    assert!(
        text.contains("\n# Postmortem: 2 connection slots left ("),
        "{text}"
    );
    assert!(
        page.contains("<title>Postmortem: 2 connection slots left ("),
        "{page}"
    );
}

#[test]
fn a_timeline_that_was_edited_has_its_heading_once() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path();
    let files = captures(folder, &[0, 10]);
    assert_eq!(render(folder, &files, &[]).0, 0);
    let (text, _) = read(folder);
    let edited = text.replace(
        "## Timeline\n",
        "## Timeline\n\nThe alarm went off at nine.\n",
    );
    std::fs::write(folder.join(format!("{FILE}.md")), edited).expect("written");
    assert_eq!(render(folder, &files, &[]).0, 0);
    let (text, _) = read(folder);
    let headings: Vec<&str> = text
        .lines()
        .filter(|line| line.ends_with("# Timeline"))
        .collect();
    assert_eq!(headings, ["## Timeline", "### Timeline"]);
    assert!(text.contains("The alarm went off at nine."), "{text}");
}

/// Each question of each built-in book says where its answer belongs.
#[test]
fn every_question_has_a_home() {
    let names: Vec<&str> = QUESTIONS.iter().map(|question| question.name).collect();
    assert_eq!(PARTS[..names.len()], names);
    assert_eq!(PARTS[names.len()..], ["none"]);
    for found in builtin::BOOKS {
        let book = runbook::load(found.text, &builtin::text).expect("sound");
        for step in &book.steps {
            let Kind::Note(note) = &step.kind else {
                continue;
            };
            for ask in &note.ask {
                let place = format!("{} {}: {}", found.id, step.id.text, ask.text.text);
                let part = ask.part.unwrap_or_else(|| panic!("{place}"));
                // Where its words say one they say the same.
                let by_words = QUESTIONS.iter().find(|q| q.is_asked_by(&ask.text.text));
                assert!(
                    by_words.is_none_or(|question| question.name == part),
                    "{place}"
                );
            }
        }
    }
}

/// The parts of a walk of a built-in book with these events.
fn walked(id: &str, events: Vec<Event>) -> String {
    let text = builtin::text(id).expect("a book");
    let book = runbook::load(&text, &builtin::text).expect("sound");
    let begun = Event::Book {
        id: id.into(),
        sha256: String::new(),
        inputs: Default::default(),
        texts: book.texts,
        file: None,
    };
    let all = std::iter::once(begun).chain(events).enumerate();
    let records = all.map(|(seq, event)| Record {
        seq: seq as u64,
        at: at(0),
        prev: String::new(),
        event,
    });
    markdown(&postmortem::make(Material {
        records: vec![records.collect()],
        ..of(course(&[]))
    }))
}

fn part<'t>(text: &'t str, name: &str) -> &'t str {
    let (_, rest) = text
        .split_once(&format!("<!-- people: {name}"))
        .expect("the part");
    let (_, body) = rest.split_once(" -->\n").expect("its text");
    let (body, _) = body.split_once("<!-- /people").expect("its end");
    body
}

fn note(step: &str, question: &str, text: &str) -> Event {
    Event::Note {
        step: step.into(),
        question: question.into(),
        text: text.into(),
    }
}

#[test]
fn answers_stand_where_the_book_says() {
    let text = walked(
        "lock-pileup",
        vec![
            note(
                "by_hand",
                "What was done, and who decided it?",
                "the batch was stopped",
            ),
            note("escalate", "Whom have you called, and when?", "Bo, at nine"),
            note(
                "write_up",
                "What held the lock, and what was it waiting for?",
                "a console",
            ),
        ],
    );
    assert_eq!(
        part(&text, "by-hand"),
        "_What was done, and who decided it?_ the batch was stopped (written down during the run)\n\n_Whom have you called, and when?_ Bo, at nine (written down during the run)\n"
    );
    assert_eq!(
        part(&text, "cause"),
        "_What held the lock, and what was it waiting for?_ a console (written down during the run)\n"
    );
    // What is chosen at a question is an answer as well, but for what holds where nobody is there.
    let chosen = |answer: &str, attended| Event::Answer {
        step: "levers".into(),
        answer: answer.into(),
        attended,
    };
    let text = walked("connection-exhaustion", vec![chosen("limit", true)]);
    assert!(
        part(&text, "by-hand").contains("a CONNECTION LIMIT for the application that takes most"),
        "{text}"
    );
    for nothing in [chosen("none", true), chosen("none", false)] {
        let text = walked("connection-exhaustion", vec![nothing]);
        assert_eq!(part(&text, "by-hand"), "TODO\n");
    }
    // Also in an included book; and by its words where the book says nothing.
    let text = walked(
        "connection-exhaustion",
        vec![
            note(
                "locks.by_hand",
                "What was done, and who decided it?",
                "nothing but a call",
            ),
            note("gone", "Why was it not detected earlier?", "no alarm"),
        ],
    );
    assert!(
        part(&text, "by-hand")
            .starts_with("_What was done, and who decided it?_ nothing but a call ("),
        "{text}"
    );
    assert!(
        part(&text, "detection").starts_with("_Why was it not detected earlier?_ no alarm ("),
        "{text}"
    );
}

/// A question that looks something up is known by what stands before it; one that is for none has no part.
#[test]
fn a_question_of_ones_own() {
    let book = "\
runbook: v1
id: own
title: Own
steps:
  - { id: picture, query: { report: connections } }
  - id: say
    note:
      ask:
        - { text: \"Who took {{ steps.picture.capacity.used }} slots?\", for: factors }
        - { text: What was done by hand with the coffee?, for: none }
    end: resolved
";
    assert!(runbook::load(book, &builtin::text).is_ok());
    let text = walked(
        "lock-pileup",
        vec![
            Event::Resumed {
                operator: "ana".into(),
                version: "0".into(),
                sha256: String::new(),
                changed: true,
                texts: vec![book.into()],
            },
            note("say", "Who took 19 slots?", "the importer"),
            note(
                "say",
                "What was done by hand with the coffee?",
                "it was drunk",
            ),
        ],
    );
    assert!(
        part(&text, "factors").starts_with("_Who took 19 slots?_ the importer ("),
        "{text}"
    );
    assert_eq!(part(&text, "by-hand"), "TODO\n");
}

#[test]
fn a_lint_for_ci() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path();
    let files = captures(folder, &[0]);
    assert_eq!(render(folder, &files, &["--name", "a,b"]).0, 0);
    let lint = |file: &str, more: &[&str]| {
        let mut args = vec!["report", "--lint", file];
        args.extend(more);
        stanch(folder, &args)
    };
    let file = "postmortem-a,b.md";
    let (code, lines, _) = lint(file, &[]);
    assert_eq!(code, 65);
    let (code, json, err) = lint(file, &["--json"]);
    assert_eq!((code, err.as_str()), (65, ""));
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["schema"], "stanch.postmortem_lint/1");
    let told = json["missing"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| {
            assert_eq!(one["file"], file);
            format!(
                "{file}:{}: {}\n",
                one["line"],
                one["message"].as_str().expect("words")
            )
        });
    assert_eq!(told.collect::<String>(), lines);
    let (code, github, err) = lint(file, &["-o", "github"]);
    assert_eq!((code, err.as_str()), (65, ""));
    assert_eq!(github.lines().count(), lines.lines().count());
    let first = "::error file=postmortem-a%2Cb.md,line=";
    assert!(
        github.lines().all(|line| line.starts_with(first)),
        "{github}"
    );
    assert!(
        github.contains(",title=postmortem::not answered: Impact on users\n"),
        "{github}"
    );
    for format in ["csv", "sarif"] {
        assert_eq!(lint(file, &["-o", format]).0, 64);
    }
    assert_eq!(stanch(folder, &["report", "0.json", "-o", "github"]).0, 64);

    // What is no postmortem is told in one line.
    assert_eq!(
        lint("postmortem-a,b.html", &[]),
        (
            65,
            String::new(),
            "stanch: postmortem-a,b.html: it is the page of a postmortem; people write in postmortem-a,b.md\n".into()
        )
    );
    std::fs::write(folder.join("README.md"), "# Mine\n").expect("written");
    assert_eq!(
        lint("README.md", &[]),
        (
            65,
            String::new(),
            "stanch: README.md: it is no postmortem that stanch report wrote\n".into()
        )
    );
}

#[test]
fn a_report_of_nothing() {
    let place = tempfile::tempdir().expect("a folder");
    assert_eq!(
        stanch(place.path(), &["report"]),
        (
            64,
            String::new(),
            "stanch: of what? BUNDLE is what was captured, --journal RUN what was done; one of them is enough\n".into()
        )
    );
}
