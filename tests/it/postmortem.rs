//! The postmortem of incidents that are made by hand: what it says, that nobody's text is markup in it, and that what people
//! write stays.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicI64, Ordering};

use proptest::prelude::*;
use stanch::journal::{Effect, Event, Journal, Left, Record};
use stanch::model::{
    BackendId, LogMoment, Outcome, Pid, Section, Session, SessionState, Signal, SlotLimit,
    SlotRefusal, Snapshot, Thresholds, Timestamp, Verb,
};
use stanch::postmortem::{self, Course, Gap, Material, Piece, Postmortem, Supply, merge, parse};
use stanch::{bundle, runbook, view};

use crate::build;

/// So many seconds after the beginning.
fn at(seconds: i64) -> Timestamp {
    build::at(3_600_000_000 + seconds * 1_000_000)
}

fn target() -> String {
    "app@db1:5432".into()
}

fn idle_in_transaction(pid: i32, application: &str, since: i64) -> Session {
    Session {
        application_name: Some(application.into()),
        xact_start: Some(at(since)),
        state_change: Some(at(since)),
        query: Some("select * from orders".into()),
        ..build::session(pid, SessionState::IdleInTransaction)
    }
}

/// A capture with so many sessions that have forgotten their transaction.
fn capture(seconds: i64, leaked: i32, application: &str) -> Snapshot {
    let mut snapshot = build::snapshot();
    snapshot.taken_at = at(seconds);
    if let Section::Collected(server) = &mut snapshot.server {
        server.max_connections = 23;
    }
    let mut sessions: Vec<Session> = (0..leaked)
        .map(|n| idle_in_transaction(100 + n, application, -60))
        .collect();
    sessions.extend((0..4).map(|n| build::session(200 + n, SessionState::Idle)));
    snapshot.activity = Section::Collected(sessions);
    snapshot
}

fn terminate(pid: i32) -> Effect {
    Effect::Signal(Signal {
        verb: Verb::Terminate,
        id: BackendId {
            pid: Pid(pid),
            backend_start: Some(build::at(0)),
        },
        xact_start: None,
        query_start: None,
        usesysid: None,
        datid: None,
        protected_applications: vec![],
        allow_syncrep: false,
        state_change: None,
    })
}

fn events() -> Vec<(i64, Event)> {
    let step = |step: &str| step.to_owned();
    let result = |n, outcome| Event::EffectResult {
        n,
        outcome,
        waited_ms: 120,
    };
    vec![
        (
            15,
            Event::RunStart {
                what: "runbook idle-in-transaction".into(),
                target: target(),
                login: "oncall".into(),
                operator: "ana".into(),
                version: "0".into(),
                evidence: String::new(),
            },
        ),
        (
            15,
            Event::Book {
                id: "idle-in-transaction".into(),
                sha256: String::new(),
                inputs: BTreeMap::from([("older_than".into(), "60s".into())]),
                texts: vec![runbook::builtin::text("idle-in-transaction").expect("the book")],
                file: None,
            },
        ),
        (
            15,
            Event::StepStart {
                step: step("picture"),
            },
        ),
        (
            15,
            Event::Expectation {
                say: None,
                step: step("picture"),
                that: "x < 85.0".into(),
                held: false,
            },
        ),
        (
            16,
            Event::Answer {
                step: step("release"),
                answer: "ours".into(),
                attended: true,
            },
        ),
        (
            17,
            Event::Skipped {
                step: step("evidence"),
                reason: "kept by hand".into(),
            },
        ),
        (
            17,
            Event::StepEnd {
                step: step("evidence"),
                came: "skipped".into(),
                next: None,
            },
        ),
        (
            20,
            Event::StepStart {
                step: step("drain"),
            },
        ),
        (
            21,
            Event::Candidates {
                signals: vec![],
                refused: vec![Left {
                    pid: 300,
                    why: "a superuser's session".into(),
                }],
            },
        ),
        (
            22,
            Event::Confirmed {
                how: "typed".into(),
            },
        ),
        (
            23,
            Event::EffectIntent {
                n: 0,
                effect: terminate(100),
            },
        ),
        (23, result(0, Outcome::Gone)),
        (
            24,
            Event::EffectIntent {
                n: 1,
                effect: terminate(101),
            },
        ),
        (24, result(1, Outcome::Gone)),
        (
            25,
            Event::EffectIntent {
                n: 2,
                effect: terminate(102),
            },
        ),
        (
            25,
            result(2, Outcome::StillAlive("it is still there".into())),
        ),
        (
            26,
            Event::EffectIntent {
                n: 3,
                effect: terminate(103),
            },
        ),
        (
            26,
            Event::StepEnd {
                step: step("recovered"),
                came: "well".into(),
                next: Some(step("write_up")),
            },
        ),
        (
            27,
            Event::Note {
                step: step("write_up"),
                question: "What did users notice, from when to when?".into(),
                text: "the checkout hung".into(),
            },
        ),
        (
            27,
            Event::Note {
                step: step("write_up"),
                question: "to do".into(),
                text: "Mend the code path (owner: shop, due: +14d)".into(),
            },
        ),
    ]
}

fn records(events: Vec<(i64, Event)>) -> Vec<Record> {
    let records = events
        .into_iter()
        .enumerate()
        .map(|(seq, (seconds, event))| Record {
            seq: seq as u64,
            at: at(seconds),
            prev: String::new(),
            event,
        });
    records.collect()
}

/// The incident: a leak that is ended by hand, as far as it could be.
fn material(application: &str) -> Material {
    let runs = vec![records(events())];
    let mut course = Course::new(
        Thresholds::default(),
        Material::followed(&runs, None, None, Default::default()),
    );
    for (seconds, leaked) in [(0, 0), (10, 14), (20, 14), (30, 2), (40, 0)] {
        course.add(&capture(seconds, leaked, application));
    }
    let supply = |name: &str, captures, is_whole| Supply {
        name: name.into(),
        captures,
        gaps: 0,
        is_whole,
        is_redacted: is_whole,
    };
    Material {
        supplies: vec![
            supply("first.json", 4, true),
            supply("second.json", 1, false),
        ],
        course,
        others: vec![],
        gaps: vec![Gap {
            at: at(35),
            server: None,
            what: "frame".into(),
            why: "no connection within 10 s".into(),
        }],
        records: runs,
        log: vec![LogMoment {
            at: at(12),
            until: at(19),
            count: 40,
            sqlstate: Some("53300".into()),
            what: "a login was refused".into(),
        }],
        logs: vec![],
        design: None,
        roles_only: false,
    }
}

fn leak() -> Postmortem {
    postmortem::make(material("checkout"))
}

fn markdown(postmortem: &Postmortem) -> String {
    merge(&view::postmortem::blocks(postmortem), None)
        .expect("sound")
        .text
}

fn html(postmortem: &Postmortem) -> String {
    view::postmortem::html(postmortem, &markdown(postmortem)).expect("sound")
}

#[test]
fn an_incident_as_markdown() {
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("postmortem-leak.md", markdown(&leak()));
    });
}

/// Of a stored capture, with nothing else.
fn of_capture(name: &str) -> Postmortem {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/captures/{name}.json"));
    let mut course = Course::new(Thresholds::default(), Default::default());
    course.add(&bundle::read(&file).expect("a capture"));
    postmortem::make(Material {
        supplies: vec![],
        course,
        others: vec![],
        gaps: vec![],
        records: vec![],
        log: vec![],
        logs: vec![],
        design: None,
        roles_only: false,
    })
}

#[test]
fn a_forest_as_markdown() {
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("postmortem-lock-queue.md", markdown(&of_capture("lock-queue")));
    });
}

#[test]
fn the_cause_that_the_evidence_speaks_for() {
    use stanch::postmortem::Cause;
    for (name, cause) in [
        ("exhaustion", Cause::PoolSum),
        ("leak", Cause::Leak),
        ("lock-chain", Cause::LockQueue),
        ("lock-queue", Cause::LockQueue),
        ("prepared", Cause::LockQueue),
        ("deadlock", Cause::Deadlock),
        ("long-transaction", Cause::LongTransaction),
        ("storm", Cause::LongTransaction),
    ] {
        let suggested = of_capture(name).causes;
        assert_eq!(
            suggested.first().map(|one| one.cause),
            Some(cause),
            "{name}: {suggested:?}"
        );
        assert!(suggested[0].measured && !suggested[0].evidence.is_empty());
    }
}

/// What was only said never stands before what was measured.
#[test]
fn a_word_is_no_measure() {
    let mut material = material("checkout");
    let said = Event::Answer {
        step: "leak.release".into(),
        answer: "scaled".into(),
        attended: true,
    };
    material.records.push(records(vec![(9, said)]));
    let made = postmortem::make(material);
    let text = markdown(&made);
    assert!(
        text.contains(", which was said, not measured. It is"),
        "{text}"
    );
    let causes = made.causes;
    let measured: Vec<bool> = causes.iter().map(|one| one.measured).collect();
    assert_eq!(measured, [true, true, false], "{causes:?}");
}

#[test]
fn bounds_lie_between_captures() {
    let postmortem = leak();
    let trouble = postmortem.course.trouble.expect("trouble");
    assert_eq!((trouble.not_before, trouble.first), (Some(at(0)), at(10)));
    assert_eq!((trouble.last, trouble.not_after), (at(30), Some(at(40))));
    assert!(!trouble.with_breaks);
    // What comes back was never over.
    let mut course = Course::new(Thresholds::default(), Default::default());
    for (seconds, leaked) in [(0, 14), (10, 0), (20, 14)] {
        course.add(&capture(seconds, leaked, "checkout"));
    }
    let trouble = course.trouble.expect("trouble");
    assert_eq!(
        (trouble.not_before, trouble.first, trouble.last),
        (None, at(0), at(20))
    );
    assert_eq!((trouble.not_after, trouble.with_breaks), (None, true));
}

/// A capture that couldn't see neither begins nor ends anything, and is no zero.
#[test]
fn what_wasnt_read_is_unknown() {
    let mut course = Course::new(Thresholds::default(), Default::default());
    course.add(&capture(0, 14, "checkout"));
    let mut blind = capture(10, 0, "checkout");
    blind.activity = Section::Failed {
        code: "57014".into(),
        message: "canceled".into(),
    };
    blind.locks = Section::Failed {
        code: "57014".into(),
        message: "canceled".into(),
    };
    course.add(&blind);
    let trouble = course.trouble.expect("trouble");
    assert_eq!((trouble.last, trouble.not_after), (at(0), None));
    let frame = &course.frames[1];
    assert!(frame.states.is_none() && frame.blocked.is_none() && frame.slots.is_none());
    let target = blind.target.clone();
    let refusal = SlotRefusal {
        limit: SlotLimit::Nothing,
        user: "oncall".into(),
        database: "app".into(),
        ms_before: 10,
    };
    course.add(&Snapshot::without_connection(
        at(20),
        target,
        vec![refusal],
        bundle::no_redaction(stanch::model::RedactionLevel::Redacted),
    ));
    let text = markdown(&postmortem::make(Material {
        course,
        others: vec![],
        gaps: vec![],
        records: vec![],
        log: vec![],
        logs: vec![],
        supplies: vec![],
        design: None,
        roles_only: false,
    }));
    let row = text
        .lines()
        .find(|line| line.starts_with("| 09:00:10") && line.contains(" ? |"))
        .expect("its row");
    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
    assert_eq!(cells[2..9], ["?"; 7], "{row}");
    assert!(
        text.contains("a login was refused for want of a slot at 1 of 3 captures"),
        "{text}"
    );
    // What a capture couldn't see isn't gone.
    assert!(!text.contains("found no more"), "{text}");
    assert!(
        text.contains(
            "| 1 capture: newly found conn.exhausted (critical); not enough could be read to judge it; \
             a login was refused for want of a slot |"
        ),
        "{text}"
    );
}

/// Of thousands of sessions only numbers are kept.
#[test]
fn a_capture_is_kept_as_numbers() {
    let mut snapshot = capture(0, 0, "x");
    let sessions = (0..3000).map(|n| idle_in_transaction(n + 1, &format!("app {n:04}"), -60));
    snapshot.activity = Section::Collected(sessions.collect());
    let mut course = Course::new(Thresholds::default(), Default::default());
    course.add(&snapshot);
    let frame = &course.frames[0];
    assert!(
        frame.applications.len() <= 12,
        "{}",
        frame.applications.len()
    );
    let listed: usize = frame.applications.iter().map(|(_, count)| count).sum();
    assert_eq!(listed + frame.other_applications, 3000);
    assert!(course.peak.expect("a peak").groups.len() <= 8);
}

#[test]
fn an_unknown_outcome_is_loud() {
    let text = markdown(&leak());
    assert!(
        text.contains("> [!CAUTION]\n> **The outcome of 1 effect isn't known**"),
        "{text}"
    );
    assert!(
        text.contains(
            "| **OUTCOME UNKNOWN: it was begun, and the journal ends before its result** |"
        ),
        "{text}"
    );
    assert!(text.contains("THE OUTCOME OF 1 IS NOT KNOWN"), "{text}");
    // Once somebody has looked it is told as that.
    let mut material = material("checkout");
    let seen = Event::EffectSeen {
        n: 3,
        seen: "no such session".into(),
        answer: "done".into(),
    };
    material.records[0].extend(records(vec![(60, seen)]));
    let text = markdown(&postmortem::make(material));
    assert!(!text.contains("CAUTION"), "{text}");
    assert!(
        text.contains("looked at later: no such session; counted as done"),
        "{text}"
    );
}

#[test]
fn people_by_what_they_did() {
    let text = markdown(&postmortem::make(Material {
        roles_only: true,
        ..material("checkout")
    }));
    assert!(!text.contains("ana"), "{text}");
    assert!(
        text.contains("the operator began runbook idle-in-transaction"),
        "{text}"
    );
}

/// The names of elements that are open, in order; a fault where one is closed that isn't.
fn balanced(html: &str) -> Result<(), String> {
    const VOID: [&str; 6] = ["meta", "br", "hr", "img", "input", "link"];
    let mut open: Vec<&str> = Vec::new();
    for part in html.split('<').skip(1) {
        let (tag, _) = part
            .split_once('>')
            .ok_or_else(|| format!("never closed: {part:.60}"))?;
        let name: &str = tag
            .trim_start_matches('/')
            .split([' ', '\n', '/'])
            .next()
            .unwrap_or_default();
        if tag.starts_with('!') || VOID.contains(&name) || tag.ends_with('/') {
            continue;
        }
        if tag.starts_with('/') {
            if open.pop() != Some(name) {
                return Err(format!("</{name}> in {open:?}"));
            }
        } else {
            open.push(name);
        }
    }
    if open.is_empty() {
        Ok(())
    } else {
        Err(format!("open: {open:?}"))
    }
}

fn asks_nothing(html: &str) {
    for never in [
        "http:",
        "https:",
        "src=",
        "<script",
        "<link",
        "<iframe",
        "<object",
        "<base",
        "@import",
        " on",
        "javascript:",
    ] {
        let hits = html.match_indices(never).filter(|(n, _)| {
            never != " on"
                || html[n + 3..].split_once('=').is_some_and(|(word, _)| {
                    word.len() < 12 && word.chars().all(|c| c.is_ascii_lowercase())
                })
        });
        assert_eq!(hits.count(), 0, "{never}");
    }
    assert_eq!(html.matches("url(").count(), html.matches("url(#").count());
    assert_eq!(
        html.matches("href=").count(),
        html.matches("href=\"#").count()
    );
    assert!(
        html.contains("content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\"")
    );
}

#[test]
fn the_page_is_whole_and_asks_nothing() {
    let page = html(&leak());
    assert_eq!(balanced(&page), Ok(()));
    asks_nothing(&page);
    // Every entry of the contents leads somewhere.
    for part in page.split("href=\"#").skip(1) {
        let id = part.split('"').next().expect("its end");
        assert_eq!(page.matches(&format!("id=\"{id}\"")).count(), 1, "{id}");
    }
    assert_eq!(
        page.matches("<figure ").count(),
        3,
        "states, applications, oldest transaction"
    );
    assert!(
        page.contains(
            "<title>Postmortem: 2 connection slots left (app@db1:5432), 2027-01-15</title>"
        ),
        "{page}"
    );
}

const HOSTILE: [&str; 9] = [
    "<script>alert(1)</script>",
    "\n<!-- people: end -->\n",
    "x --> <img src=http://e.example/x onerror=alert(1)>",
    "` | ``` | </pre></section>",
    "[a](javascript:alert(1)) ![p](http://e.example/p.png) http://e.example",
    "\u{1b}[31m\u{202e}\u{0}",
    "{{ title }} {% raw %} &lt;b&gt;",
    "'\" onload=alert(1) x=\"",
    "# h\n- l\n\n| a |\n|---|\n",
];

/// Everywhere that a stranger can write: names, statements, answers, reasons, gaps, the log.
fn hostile(text: &str, servers: usize) -> Postmortem {
    let mut material = material(text);
    if servers > 1 {
        let mut other = capture(20, 14, text);
        other.target.host = text.into();
        let mut course = Course::new(Thresholds::default(), Default::default());
        course.add(&other);
        other.taken_at = at(21);
        course.add(&other);
        material.others.push(course);
    }
    let mut snapshot = capture(50, 14, text);
    if let Section::Collected(sessions) = &mut snapshot.activity {
        for session in sessions.iter_mut() {
            session.user = Some(text.into());
            session.database = Some(text.into());
            session.client.addr = Some(text.into());
            session.query = Some(text.into());
            session.state = Some(SessionState::Other(text.into()));
        }
    }
    material.course.add(&snapshot);
    let note = |question: &str| Event::Note {
        step: text.into(),
        question: question.into(),
        text: text.into(),
    };
    material.records.push(records(vec![
        (
            50,
            Event::RunStart {
                what: text.into(),
                target: text.into(),
                login: text.into(),
                operator: text.into(),
                version: text.into(),
                evidence: String::new(),
            },
        ),
        (50, note("What did users notice?")),
        (50, note(text)),
        (50, note("to do")),
        (50, note("reason")),
        (
            51,
            Event::Skipped {
                step: text.into(),
                reason: text.into(),
            },
        ),
        (
            51,
            Event::EffectIntent {
                n: 0,
                effect: Effect::Command {
                    argv: vec![text.into()],
                },
            },
        ),
        (
            51,
            Event::CommandResult {
                n: 0,
                exit: None,
                why: text.into(),
                started: true,
            },
        ),
        (52, Event::Stopped { why: text.into() }),
        (52, Event::BookEnd { end: text.into() }),
    ]));
    material.gaps.push(Gap {
        at: at(50),
        server: (servers > 1).then(|| text.to_owned()),
        what: text.into(),
        why: text.into(),
    });
    material.log.push(LogMoment {
        at: at(50),
        until: at(50),
        count: 1,
        sqlstate: None,
        what: text.into(),
    });
    material.supplies.push(Supply {
        name: text.into(),
        captures: 1,
        gaps: 0,
        is_whole: false,
        is_redacted: false,
    });
    postmortem::make(material)
}

/// The names of its parts, generated and people's.
fn parts(markdown: &str) -> Vec<(bool, String)> {
    let pieces = parse(markdown).expect("sound");
    let named = pieces.iter().filter_map(|piece| match piece {
        Piece::Generated { name, is_whole, .. } => {
            assert!(is_whole, "{name}");
            Some((false, (*name).to_owned()))
        }
        Piece::People { name, .. } => Some((true, (*name).to_owned())),
        Piece::Outside { .. } => None,
    });
    named.collect()
}

fn is_harmless(text: &str) {
    for servers in [1, 2] {
        is_harmless_of(text, servers);
    }
}

fn is_harmless_of(text: &str, servers: usize) {
    let postmortem = hostile(text, servers);
    let written = markdown(&postmortem);
    assert_eq!(
        parts(&written),
        parts(&markdown(&hostile("plain", servers))),
        "{text:?}"
    );
    let steers = |c: char| c != '\n' && c.is_control() || c == '\u{202e}';
    assert!(!written.contains(steers), "{text:?}");
    let page = html(&postmortem);
    assert_eq!(balanced(&page), Ok(()), "{text:?}");
    let bare = page
        .replace("http:", "")
        .replace("src=", "")
        .replace("javascript:", "");
    // Without a tag around it, it is text.
    for never in ["<script", "<img", "href=\"http", "href=\"java"] {
        assert!(!bare.contains(never), "{text:?}: {never}");
    }
    assert_eq!(bare.matches("<h1").count(), 1, "{text:?}");
    assert_eq!(
        bare.matches("<section ").count(),
        html(&hostile("plain", servers))
            .matches("<section ")
            .count(),
        "{text:?}"
    );
}

#[test]
fn nobody_elses_text_is_markup() {
    for text in HOSTILE {
        is_harmless(text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_text_is_markup(text in "[ -~\\n\\té日]{0,40}") {
        is_harmless(&text);
    }
}

// The command line.

fn stanch(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stanch"));
    command
        .args(args)
        .env_clear()
        .env("HOME", folder)
        .current_dir(folder);
    command.output().expect("the program runs")
}

fn said(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    (
        output.status.code().expect("a code"),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// A folder with four captures.
fn folder() -> (tempfile::TempDir, Vec<String>) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut names = Vec::new();
    for (seconds, leaked) in [(10, 14), (0, 0), (30, 0), (20, 14)] {
        let name = format!("{seconds}.json");
        bundle::write(
            &folder.path().join(&name),
            &capture(seconds, leaked, "checkout"),
        )
        .expect("written");
        names.push(name);
    }
    (folder, names)
}

fn report(folder: &Path, names: &[String], more: &[&str]) -> (i32, String, String) {
    let mut args = vec!["report"];
    args.extend(names.iter().map(String::as_str));
    args.extend(more);
    said(&stanch(folder, &args))
}

#[test]
fn both_files_are_written_and_what_people_write_stays() {
    let (folder, names) = folder();
    let (code, out, err) = report(folder.path(), &names, &[]);
    let name = "postmortem-app-db1-5432-2027-01-15";
    assert_eq!(
        (code, out.as_str()),
        (0, format!("./{name}.md\n./{name}.html\n").as_str()),
        "{err}"
    );
    assert_eq!(
        err,
        format!("13 things for people to write: stanch report --lint ./{name}.md\n")
    );
    let (md, page) = (
        folder.path().join(format!("{name}.md")),
        folder.path().join(format!("{name}.html")),
    );
    for path in [&md, &page] {
        let mode = std::fs::metadata(path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", path.display());
    }
    assert_eq!(
        balanced(&std::fs::read_to_string(&page).expect("read")),
        Ok(())
    );
    // Captures are put in order, whatever the order of the files.
    let text = std::fs::read_to_string(&md).expect("read");
    assert!(
        text.contains("4 captures, 09:00:00 to 09:00:30 UTC"),
        "{text}"
    );

    let theirs = "A **hundred** users; see [the page](https://status.example/1) and <b>this</b>.\n\n```\n| x |\n```\n";
    let written = text
        .replace(
            "<!-- people: impact -->\nTODO\n",
            &format!("<!-- people: impact -->\n{theirs}"),
        )
        .replace("## Summary\n", "## Summary\n\nMine.\n");
    std::fs::write(&md, &written).expect("written");
    std::fs::set_permissions(&md, std::fs::Permissions::from_mode(0o644)).expect("shared");
    let (code, _, err) = report(folder.path(), &names, &[]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("summary was edited by hand; the edited text is kept below the new one, as edited-by-hand-summary"), "{err}");
    let again = std::fs::read_to_string(&md).expect("read");
    assert!(
        again.contains(&format!(
            "<!-- people: impact -->\n{theirs}<!-- /people: impact -->"
        )),
        "{again}"
    );
    assert!(
        again.contains("<!-- people: edited-by-hand-summary -->") && again.contains("\nMine.\n"),
        "{again}"
    );
    assert_eq!(
        std::fs::metadata(&md).expect("there").permissions().mode() & 0o777,
        0o644
    );
    let page = std::fs::read_to_string(&page).expect("read");
    assert!(page.contains("A <strong>hundred</strong> users; see <a href=\"https://status.example/1\">the page</a> and &lt;b&gt;this&lt;/b&gt;."), "{page}");
    // Once more changes nothing more.
    let (code, _, err) = report(folder.path(), &names, &["-q"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(std::fs::read_to_string(&md).expect("read"), again);
}

#[test]
fn damaged_markers_are_never_written_over() {
    let (folder, names) = folder();
    report(folder.path(), &names, &["--name", "x"]);
    let md = folder.path().join("postmortem-x.md");
    let damaged = std::fs::read_to_string(&md)
        .expect("read")
        .replace("<!-- /people: impact -->\n", "");
    std::fs::write(&md, &damaged).expect("written");
    let line = damaged
        .lines()
        .position(|line| line == "<!-- people: impact -->")
        .expect("there")
        + 1;
    let (code, out, err) = report(folder.path(), &names, &["--name", "x"]);
    assert_eq!((code, out.as_str()), (65, ""));
    assert!(
        err.contains(&format!(
            "people: impact (line {line}) hasn't ended; nothing is written"
        )),
        "{err}"
    );
    assert_eq!(std::fs::read_to_string(&md).expect("read"), damaged);
}

#[test]
fn the_lint_tells_each_line() {
    let (folder, names) = folder();
    report(folder.path(), &names, &["--name", "x"]);
    let (code, out, err) = said(&stanch(
        folder.path(),
        &["report", "--lint", "postmortem-x.md"],
    ));
    assert_eq!((code, err.as_str()), (65, ""));
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 13, "{out}");
    let text = std::fs::read_to_string(folder.path().join("postmortem-x.md")).expect("read");
    for line in lines {
        let (number, _) = line
            .strip_prefix("postmortem-x.md:")
            .and_then(|rest| rest.split_once(':'))
            .expect("a place");
        let at = text
            .lines()
            .nth(number.parse::<usize>().expect("a number") - 1)
            .expect("a line");
        assert!(
            at.contains("TODO") || at.starts_with("<!-- people: "),
            "{line}: {at}"
        );
    }
    let whole = text
        .replace(
            "| TODO |  |  |  |",
            "| Mend it | ana | 2199-01-01 | prevent |",
        )
        .replace("TODO", "Said.");
    std::fs::write(folder.path().join("whole.md"), whole).expect("written");
    let (code, out, err) = said(&stanch(folder.path(), &["report", "--lint", "whole.md"]));
    assert_eq!(
        (code, out.as_str(), err.as_str()),
        (0, "", "nothing is missing\n")
    );
}

#[test]
fn markdown_to_standard_output_and_no_other_format() {
    let (folder, names) = folder();
    let (code, out, err) = report(folder.path(), &names, &["-o", "md"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(
        out.starts_with("<!-- people: title sha256=") && out.contains(" -->\n# Postmortem: "),
        "{out}"
    );
    assert!(
        !folder
            .path()
            .join("postmortem-app-db1-5432-2027-01-15.md")
            .exists()
    );
    let (code, _, err) = report(folder.path(), &names, &["-o", "csv"]);
    assert_eq!(code, 64, "{err}");
    let (code, _, err) = report(folder.path(), &[], &[]);
    assert_eq!(code, 64, "{err}");
}

/// The old primary dies, the standby takes over: the captures of both are one incident, and nothing of one is told of the other.
#[test]
fn after_a_failover_there_are_two_servers() {
    use stanch::model::ServerRole;

    let (folder, mut names) = folder();
    for (seconds, role, leaked) in [
        (15, ServerRole::Standby, 0),
        (40, ServerRole::Primary, 12),
        (50, ServerRole::Primary, 0),
    ] {
        let mut other = capture(seconds, leaked, "orders");
        other.target.host = "db2".into();
        other.target.role = Some(role);
        // A session here has the number that stanch's own had on the first: it is somebody else's.
        if let Section::Collected(server) = &mut other.server {
            let same = std::mem::replace(&mut server.own_pid, Pid(99));
            server.max_connections = 103;
            if let Section::Collected(sessions) = &mut other.activity {
                sessions.push(Session {
                    application_name: None,
                    ..build::session(same.0, SessionState::Idle)
                });
            }
        }
        let name = format!("db2-{seconds}.json");
        bundle::write(&folder.path().join(&name), &other).expect("written");
        names.push(name);
    }
    let (code, md, err) = report(folder.path(), &names, &["-o", "md"]);
    assert_eq!((code, err.as_str()), (0, ""), "{md}");
    let line = |begins: &str| {
        let found = md.lines().find(|line| line.contains(begins));
        found.unwrap_or_else(|| panic!("{begins}: {md}")).to_owned()
    };
    let title = line("# Postmortem: ");
    assert!(
        title.ends_with("(`app@db1:5432`, `app@db2:5432`), 2027-01-15"),
        "{title}"
    );
    let both = line("**2 servers**");
    assert!(
        both.contains("`db1:5432` (2027-01-15 09:00:00 to 09:00:30 UTC, 4 captures), then `db2:5432` (2027-01-15 09:00:15 to 09:00:50 UTC, 3 captures)."),
        "{both}"
    );
    // Each with its own limits, and its own end.
    let bad = line("- **How bad:**");
    assert!(
        bad.contains("On db1:5432: 18 of 20 usable slots taken"),
        "{bad}"
    );
    assert!(
        bad.contains(". On db2:5432: ") && bad.contains("17 of 100 usable slots taken"),
        "{bad}"
    );
    assert_eq!(md.matches("people decide.").count(), 1, "{md}");
    let last = line("- **At the last capture:**");
    assert!(
        last.contains("On db1:5432: 2027-01-15 09:00:30 UTC"),
        "{last}"
    );
    assert!(
        last.contains("On db2:5432: 2027-01-15 09:00:50 UTC"),
        "{last}"
    );
    // One timeline, in the order of time.
    let rows: Vec<&str> = md
        .lines()
        .filter(|line| line.contains("| observed ") && line.contains(" capture"))
        .collect();
    let servers: Vec<&str> = rows
        .iter()
        .map(|row| {
            if row.contains("db1:5432: ") {
                "db1"
            } else {
                "db2"
            }
        })
        .collect();
    assert_eq!(
        servers,
        ["db1", "db1", "db2", "db1", "db2", "db2"],
        "{rows:#?}"
    );
    assert!(
        md.contains(
            "| reconstructed | db2:5432: the server is a primary now, before it was a standby |"
        ),
        "{md}"
    );
    assert!(
        !md.contains("max\\_connections is") && !md.contains("max_connections is"),
        "{md}"
    );
    // The numbers, the worst and the settings under the name of their server.
    for heading in ["### `db1:5432`", "### `db2:5432`"] {
        assert_eq!(
            md.lines().filter(|line| *line == heading).count(),
            4,
            "{heading}: {md}"
        );
    }
    for heading in [
        "### Who held the connections on `db1:5432`",
        "### Who held the connections on `db2:5432`",
    ] {
        assert!(md.contains(heading), "{heading}: {md}");
    }
    let course = &md[md.find("## In numbers").expect("there")..];
    let (one, two) = course.split_once("### `db2:5432`").expect("both");
    assert!(one.contains("checkout") && !one.contains("orders"), "{one}");
    assert!(one.contains("full height: 20 usable slots"), "{one}");
    let two = &two[..two.find("## At its worst").expect("there")];
    assert!(two.contains("orders") && !two.contains("checkout"), "{two}");
    assert!(two.contains("full height: 100 usable slots"), "{two}");
    assert_eq!(
        one.matches("\n| 2027-").count() + one.matches("\n| 09:").count(),
        4,
        "{one}"
    );
    assert_eq!(
        two.matches("\n| 2027-").count() + two.matches("\n| 09:").count(),
        3,
        "{two}"
    );
    assert!(two.contains("12 to 0") || two.contains("0 to 12"), "{two}");

    // And the page: pictures of each, no place in it twice.
    let (code, _, err) = report(folder.path(), &names, &["--name", "failover"]);
    assert_eq!(code, 0, "{err}");
    let page =
        std::fs::read_to_string(folder.path().join("postmortem-failover.html")).expect("a page");
    assert_eq!(balanced(&page), Ok(()));
    let mut ids: Vec<&str> = page
        .split(" id=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all);
    for id in ["states-title", "states-2-title"] {
        assert!(ids.contains(&id), "{ids:?}");
    }
}

fn clock() -> Timestamp {
    static SECONDS: AtomicI64 = AtomicI64::new(11);
    at(SECONDS.fetch_add(1, Ordering::Relaxed))
}

#[test]
fn a_journal_brings_its_captures() {
    let (folder, names) = folder();
    let runs = folder.path().join("runs");
    let mut journal = Journal::create(&runs, "20270115T090011Z-run", clock).expect("a journal");
    let kept = journal.kept("evidence");
    bundle::write(&kept, &capture(12, 15, "checkout")).expect("written");
    for (_, event) in events() {
        journal.write(event).expect("written");
    }
    // As it was called where it was written.
    let file = Path::new("/elsewhere")
        .join(kept.file_name().expect("a name"))
        .display()
        .to_string();
    journal
        .write(Event::Captured {
            step: "evidence".into(),
            file,
        })
        .expect("written");
    let path: PathBuf = journal.path().to_path_buf();
    drop(journal);
    let path = path.display().to_string();
    let (code, _, err) = report(
        folder.path(),
        &names,
        &["--journal", &path, "--name", "x", "-q"],
    );
    assert_eq!((code, err.as_str()), (0, ""));
    let text = std::fs::read_to_string(folder.path().join("postmortem-x.md")).expect("read");
    assert!(
        text.contains("5 captures, ") && text.contains("19 of 20 usable slots taken"),
        "{text}"
    );
    assert!(
        text.contains("ana began runbook idle-in-transaction on `app@db1:5432`, as oncall"),
        "{text}"
    );
    // Whose session it was, by the captures.
    assert!(
        text.contains(
            "| app_rw, checkout, idle in transaction for 1m 20s at 09:00:20 | gone after 120 ms |"
        ),
        "{text}"
    );
}

#[test]
fn the_design_is_compared() {
    let (folder, names) = folder();
    let budget = "servers:\n  main:\n    max_connections: 40\n    settings: { statement_timeout: 30s }\nworkloads:\n  checkout: { pods: 2, connections: 5 }\n";
    std::fs::write(folder.path().join("budget.yaml"), budget).expect("written");
    let (code, out, err) = report(
        folder.path(),
        &names,
        &["--budget", "budget.yaml", "-o", "md"],
    );
    assert_eq!((code, err.as_str()), (0, ""));
    let row = |name: &str| {
        let row = out
            .lines()
            .find(|line| line.starts_with(&format!("| `{name}`")) && line.contains("**differs**"));
        let row = row.unwrap_or_else(|| panic!("{name}: {out}"));
        row.split('|')
            .map(|cell| cell.trim().to_owned())
            .collect::<Vec<String>>()
    };
    assert_eq!(
        row("max_connections")[2..6],
        ["40", "`budget.yaml:3`", "23", "**differs**"]
    );
    assert_eq!(
        row("checkout")[2..6],
        ["10", "14", "09:00:10", "**differs**"]
    );
    assert!(out.contains("max_connections is 23, designed 40"), "{out}");
}
