//! What a postmortem finds beside the slots: Redis, deadlocks of a log, a server that is away; and what it leaves out.

use std::path::Path;
use std::process::Command;

use serde_json::json;
use stanch::bundle::{self, Folder, Gap, Head};
use stanch::journal::{Effect, Event, Record};
use stanch::model::{
    BackendId, FindingId, LogMoment, Outcome, Pid, RedactionLevel, Section, SessionState, Signal,
    Snapshot, Thresholds, Timestamp, Verb,
};
use stanch::postmortem::{self, Cause, Course, Followed, Material, Postmortem};
use stanch::view;

use crate::build;

pub fn at(seconds: i64) -> Timestamp {
    build::at(3_600_000_000 + seconds * 1_000_000)
}

/// A capture with so many idle sessions of 20 usable slots.
pub fn capture(seconds: i64, idle: i32) -> Snapshot {
    let mut snapshot = build::snapshot();
    snapshot.taken_at = at(seconds);
    if let Section::Collected(server) = &mut snapshot.server {
        server.max_connections = 23;
    }
    let sessions = (0..idle).map(|n| build::session(200 + n, SessionState::Idle));
    snapshot.activity = Section::Collected(sessions.collect());
    snapshot
}

pub fn course(captures: &[Snapshot]) -> Course {
    let mut course = Course::new(Thresholds::default(), Followed::default());
    captures.iter().for_each(|snapshot| course.add(snapshot));
    course
}

pub fn of(course: Course) -> Material {
    Material {
        supplies: vec![],
        course,
        others: vec![],
        gaps: vec![],
        records: vec![],
        log: vec![],
        logs: vec![],
        design: None,
        roles_only: false,
    }
}

pub fn markdown(postmortem: &Postmortem) -> String {
    postmortem::merge(&view::postmortem::blocks(postmortem), None)
        .expect("sound")
        .text
}

pub fn stanch(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_stanch"))
        .args(args)
        .env_clear()
        .env("HOME", folder)
        .current_dir(folder)
        .output()
        .expect("the program runs");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    (
        output.status.code().expect("a code"),
        text(&output.stdout),
        text(&output.stderr),
    )
}

fn folder(root: &Path) -> Folder {
    let snapshot = capture(0, 0);
    let head = Head {
        format: bundle::BUNDLE_FORMAT.into(),
        stanch: "0.1.0".into(),
        started_at: snapshot.taken_at,
        target: snapshot.target,
        every_ms: Some(1000),
        for_ms: None,
        redaction: RedactionLevel::Redacted,
        tokens: false,
        logs: Vec::new(),
    };
    Folder::create(root.to_path_buf(), &head, 1 << 24).expect("a folder")
}

/// A look with keys that expire together and a queue that grows.
fn look() -> serde_json::Value {
    use stanch::model::{Queue, QueueSystem, RedisCoverage};
    let mut queue = Queue::new(QueueSystem::Sidekiq, "mailers".into());
    queue.depth = Some(4000);
    let mut queue = serde_json::to_value(queue).expect("JSON");
    queue["verdict"] = json!("critical");
    queue["reasons"] = json!(["the oldest job waits for 2h"]);
    let coverage = RedisCoverage {
        complete: true,
        keys_seen: Some(9000),
        ..Default::default()
    };
    json!({
        "taken_at": at(0),
        "target": {
            "name": null, "host": "cache", "port": 6379, "database": 0, "user": null, "tls": false, "product": "redis",
            "server_version": "7.2.4", "role": null, "mode": "standalone", "nodes": []
        },
        "coverage": coverage,
        "info": null,
        "stampede": {
            "stampede": [], "rebuild_ms": null, "misses_by": null, "statements": null,
            "cliffs": [{ "at": at(60), "in_ms": 60_000, "keys": 5000, "group": "product:*", "share": 80.0 }]
        },
        "hottest": null,
        "queues": [queue]
    })
}

#[test]
fn redis_is_part_of_the_incident() {
    let place = tempfile::tempdir().expect("a folder");
    let mut bundle = folder(&place.path().join("b"));
    for seconds in [0, 50, 100, 200] {
        bundle.frame(&capture(seconds, 2)).expect("written");
    }
    let section = json!(Section::Collected(look()));
    bundle.redis("look", at(1), &section).expect("written");
    let (code, out, err) = stanch(place.path(), &["report", "b", "-o", "md"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(
        out.contains("5,000 keys of product:\\* expire within 10 s (redis.expiry_cliff, critical); 4,000 jobs wait in sidekiq/mailers (queue.backlog, critical)"),
        "{out}"
    );
    assert!(!out.contains("Nothing was found"), "{out}");
    let row = |id: &str| {
        let row = out
            .lines()
            .find(|line| line.starts_with(&format!("| `{id}`")));
        let row = row.unwrap_or_else(|| panic!("{id}: {out}"));
        let cells: Vec<String> = row.split('|').map(|cell| cell.trim().to_owned()).collect();
        cells
    };
    // A look that is further off than a minute says nothing: it isn't over either.
    for id in ["redis.expiry_cliff", "queue.backlog"] {
        assert_eq!(
            row(id)[4..7],
            ["09:00:50", "still there", "2 of 4"],
            "{out}"
        );
    }
    for cause in [Cause::CacheStampede, Cause::WorkerBacklog] {
        let words = cause.words();
        let (first, rest) = words.split_at(1);
        let line = format!("**{}{rest}**", first.to_uppercase());
        assert!(out.contains(&line), "{line}: {out}");
    }
    assert!(out.contains("4,000 jobs wait in"), "{out}");
    assert!(
        out.contains("- Redis: `cache:6379`, beside 2 captures"),
        "{out}"
    );
    assert!(out.contains("Redis wasn't looked at then"), "{out}");
    assert!(!out.contains("found no more"), "{out}");
}

#[test]
fn a_look_without_trouble_ends_it() {
    let mut bad = capture(0, 2);
    bad.redis = Some(Section::Collected(look()));
    let mut well = capture(10, 2);
    let mut quiet = look();
    quiet["stampede"]["cliffs"] = json!([]);
    quiet["queues"] = json!([]);
    well.redis = Some(Section::Collected(quiet));
    let course = course(&[bad, capture(5, 2), well]);
    let trouble = course.trouble.expect("trouble");
    assert_eq!((trouble.last, trouble.not_after), (at(0), Some(at(10))));
    for seen in &course.seen {
        assert_eq!(seen.bounds.not_after, Some(at(10)), "{seen:?}");
    }
    assert_eq!(course.seen.len(), 2);
}

#[test]
fn our_own_sessions_are_no_part_of_it() {
    let place = tempfile::tempdir().expect("a folder");
    let mut with = capture(0, 5);
    let named = |pid, name: Option<&str>| {
        let mut session = build::session(pid, SessionState::Idle);
        session.application_name = name.map(Into::into);
        session
    };
    if let Section::Collected(sessions) = &mut with.activity {
        // Pid 77 is another run's; 78 has got a new owner.
        sessions.extend([named(77, None), named(78, Some("web")), named(79, None)]);
    }
    bundle::write(&place.path().join("a.json"), &with).expect("written");
    for (name, pid) in [("b.json", 77), ("c.json", 78)] {
        let mut other = capture(i64::from(pid), 0);
        if let Section::Collected(server) = &mut other.server {
            server.own_pid = Pid(pid);
        }
        bundle::write(&place.path().join(name), &other).expect("written");
    }
    let args = ["report", "a.json", "b.json", "c.json", "-o", "md"];
    let (code, out, err) = stanch(place.path(), &args);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("7 of 20 usable slots taken"), "{out}");
    assert!(!out.contains("8 of 20"), "{out}");
    assert!(
        out.contains(
            "stanch's own sessions, those of these captures and runs, up to 1 in one capture"
        ),
        "{out}"
    );
}

#[test]
fn who_it_was_is_told_as_it_was_before() {
    let id = BackendId {
        pid: Pid(200),
        backend_start: Some(build::at(0)),
    };
    let signal = Signal {
        verb: Verb::Cancel,
        id,
        xact_start: None,
        query_start: None,
        usesysid: None,
        datid: None,
        protected_applications: vec![],
        allow_syncrep: false,
        state_change: None,
    };
    let events = [
        Event::EffectIntent {
            n: 0,
            effect: Effect::Signal(signal),
        },
        Event::EffectResult {
            n: 0,
            outcome: Outcome::Gone,
            waited_ms: 1,
        },
    ];
    let records: Vec<Record> = (0..)
        .zip(events)
        .map(|(seq, event)| Record {
            seq,
            at: at(15),
            prev: String::new(),
            event,
        })
        .collect();
    let runs = vec![records];
    let followed = Material::followed(&runs, None, None, Default::default());
    let mut course = Course::new(Thresholds::default(), followed);
    let mut before = capture(10, 0);
    before.activity = Section::Collected(vec![build::session(200, SessionState::Active)]);
    course.add(&before);
    course.add(&capture(20, 1));
    let made = postmortem::make(Material {
        records: runs,
        ..of(course)
    });
    let who = made.runs[0].acts[0].who.as_deref().expect("somebody");
    assert!(who.starts_with("app_rw, web, active for "), "{who}");
}

fn deadlocks(from: i64, until: i64, count: u64) -> LogMoment {
    LogMoment {
        at: at(from),
        until: at(until),
        count,
        sqlstate: Some("40P01".into()),
        what: "deadlock: transfer-a and transfer-b on accounts".into(),
    }
}

#[test]
fn deadlocks_of_the_log_are_told_once() {
    let other = LogMoment {
        what: "deadlock: a and b".into(),
        ..deadlocks(40, 40, 1)
    };
    let log = postmortem::once(vec![
        vec![deadlocks(5, 9, 3)],
        vec![deadlocks(5, 12, 4), other],
    ]);
    assert_eq!(log.len(), 2, "{log:?}");
    let made = postmortem::make(Material {
        log,
        logs: vec![("postgresql.log".into(), 2)],
        ..of(course(&[capture(0, 2)]))
    });
    let text = markdown(&made);
    assert!(
        text.contains("the server's log tells of 5 deadlocks, 2027-01-15 09:00:05 to 09:00:40 UTC"),
        "{text}"
    );
    let cause = made.causes.first().expect("a cause");
    assert_eq!((cause.cause, cause.measured), (Cause::Deadlock, true));
    assert_eq!(
        cause.evidence[1..],
        [
            "deadlock: transfer-a and transfer-b on accounts (4 times)".to_owned(),
            "deadlock: a and b".to_owned()
        ]
    );
    assert!(
        text.contains("- server log: `postgresql.log`, 2 moments"),
        "{text}"
    );
    assert!(text.contains("# Postmortem: Deadlocks"), "{text}");
}

/// Nobody saw it between two captures: the log tells of it.
#[test]
fn a_crash_that_the_log_tells_of_is_a_cause() {
    let moment = |second, what: &str| LogMoment {
        sqlstate: None,
        what: what.into(),
        ..deadlocks(second, second, 1)
    };
    let made = |log| {
        postmortem::make(Material {
            log,
            logs: vec![("postgresql.log".into(), 2)],
            ..of(course(&[capture(0, 2)]))
        })
    };
    let crash = made(vec![
        moment(5, "a server process crashed"),
        moment(6, "server recovers: it was interrupted"),
    ]);
    let cause = crash.causes.first().expect("a cause");
    assert_eq!((cause.cause, cause.measured), (Cause::Failover, true));
    assert_eq!(
        cause.evidence,
        [
            "the server's log tells that a server process crashed, 2027-01-15 09:00:05 UTC",
            "the server's log tells that the server was interrupted and recovered, 09:00:06 UTC"
        ]
    );
    let text = markdown(&crash);
    assert!(!text.contains("nothing is suggested"), "{text}");
    assert!(made(vec![moment(5, "server ready")]).causes.is_empty());
}

/// The fullest capture isn't the one with the longest queue.
#[test]
fn each_finding_is_worst_by_its_own_measure() {
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures/lock-queue.json");
    let mut queue = bundle::read(&stored).expect("a capture");
    let mut fuller = queue.clone();
    queue.taken_at = at(0);
    fuller.taken_at = at(10);
    if let Section::Collected(sessions) = &mut fuller.activity {
        sessions.extend((0..5).map(|n| build::session(900_000 + n, SessionState::Idle)));
    }
    // One waits no more.
    let gone = match &queue.blocking {
        Section::Collected(edges) => edges.last().expect("somebody waits").pid,
        _ => panic!("the locks were read"),
    };
    if let Section::Collected(edges) = &mut fuller.blocking {
        edges.retain(|edge| edge.pid != gone);
    }
    if let Section::Collected(sessions) = &mut fuller.activity {
        sessions.retain(|session| session.id.pid != gone);
    }
    if let Section::Collected(locks) = &mut fuller.locks {
        locks.retain(|lock| lock.pid != Some(gone));
    }
    let blocked = |snapshot: &Snapshot| course(std::slice::from_ref(snapshot)).frames[0].blocked;
    assert!(blocked(&fuller) < blocked(&queue), "{:?}", blocked(&fuller));
    let course = course(&[queue, fuller]);
    let mut locks = 0;
    for seen in &course.seen {
        if seen.id.name().starts_with("lock.") {
            assert_eq!(seen.worst_at, at(0), "{seen:?}");
            locks += 1;
        }
    }
    assert!(locks > 0);
}

#[test]
fn a_server_that_is_away_is_told_of() {
    let place = tempfile::tempdir().expect("a folder");
    let mut bundle = folder(&place.path().join("away"));
    for seconds in 0..9 {
        let gap = Gap {
            at: at(seconds),
            until: None,
            times: 1,
            what: "frame".into(),
            why: "no connection: refused\n  at: host db1".into(),
        };
        bundle.gap(gap).expect("written");
    }
    let (code, out, err) = stanch(place.path(), &["report", "away", "-o", "md"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(
        out.contains(
            "9 captures failed, 2027-01-15 09:00:00 to 09:00:08 UTC: no connection: refused"
        ),
        "{out}"
    );
    assert!(
        out.contains("PostgreSQL 15.18 (primary), `app@db1:5432`; no capture of it could be taken"),
        "{out}"
    );
    assert!(out.contains("- `away`: 0 captures, 9 missing"), "{out}");
    assert!(!out.contains("No capture of a server was given"), "{out}");
}

/// Of two servers one may be away: its gaps are none of the other's.
#[test]
fn a_gap_is_of_the_server_that_was_away() {
    let place = tempfile::tempdir().expect("a folder");
    let mut away = folder(&place.path().join("away"));
    for seconds in 0..9 {
        let gap = Gap {
            at: at(seconds),
            until: None,
            times: 1,
            what: "frame".into(),
            why: "no connection: refused".into(),
        };
        away.gap(gap).expect("written");
    }
    let mut other = capture(30, 4);
    other.target.host = "db2".into();
    bundle::write(&place.path().join("db2.json"), &other).expect("written");
    let args = ["report", "away", "db2.json", "-o", "md"];
    let (code, out, err) = stanch(place.path(), &args);
    assert_eq!((code, err.as_str()), (0, ""));
    let line = |begins: &str| {
        out.lines()
            .find(|line| line.contains(begins))
            .expect("there")
    };
    let bad = line("- **How bad:**");
    let (other, away) = bad.split_once(". On db1:5432: ").expect("both");
    assert!(
        other.contains("On db2:5432: ") && !other.contains("failed"),
        "{bad}"
    );
    assert!(
        away.contains("9 captures failed")
            && away.contains("what went on in the server isn't known"),
        "{bad}"
    );
    let gap = line("| missing ");
    assert!(
        gap.contains("| db1:5432: no capture: no connection: refused (9 times) |"),
        "{gap}"
    );
    let both = line("**2 servers**");
    assert!(
        both.contains(
            "`db2:5432` (2027-01-15 09:00:30 UTC, 1 capture), then `db1:5432` (no capture)"
        ),
        "{both}"
    );
}

/// All slots taken is no end of nearly all.
#[test]
fn what_got_worse_isnt_over() {
    let course = course(&[capture(0, 18), capture(10, 20), capture(20, 1)]);
    let near = course
        .seen
        .iter()
        .find(|seen| seen.id == FindingId::ConnNearLimit)
        .expect("found");
    assert_eq!(near.bounds.not_after, Some(at(20)), "{near:?}");
    let text = markdown(&postmortem::make(of(course)));
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("found no more"))
        .collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].contains("found no more: conn.exhausted"),
        "{lines:?}"
    );
}

/// Beyond the usable slots are those of superusers: no more than all is taken.
#[test]
fn more_than_all_is_never_said() {
    let made = postmortem::make(of(course(&[capture(0, 20), capture(1, 21)])));
    let text = markdown(&made);
    assert!(
        !text.contains("21 of 20") && !text.contains("105 %"),
        "{text}"
    );
    assert!(
        text.contains("all 20 usable slots taken, and 1 of the 3 kept for superusers (100 %)"),
        "{text}"
    );
    assert!(
        text.contains("all 20 usable slots taken, and up to 1 of the 3 kept for superusers |"),
        "{text}"
    );
    assert!(text.contains(" 20 of 20 + 1 kept |"), "{text}");
}

#[test]
fn the_same_second_is_told_once_and_a_selection_as_one() {
    let mut later = capture(0, 2);
    later.taken_at = build::at(3_600_000_000 + 400_000);
    let text = markdown(&postmortem::make(of(course(&[capture(0, 2), later]))));
    assert!(
        text.contains("2 captures, 2027-01-15 09:00:00 UTC"),
        "{text}"
    );
    assert!(
        !text.contains("09:00:00 –") && !text.contains("09:00:00 to"),
        "{text}"
    );
    assert!(!text.contains("of 2 captures: where"), "{text}");
    let many: Vec<Snapshot> = (0..54).map(|n| capture(n, 2)).collect();
    let text = markdown(&postmortem::make(of(course(&many))));
    assert!(text.contains("\n2 of 54 captures: where"), "{text}");
}

/// A journal whose book has these things to do.
fn journal(folder: &Path, name: &str, todo: &[&str]) -> String {
    let runs = folder.join("runs");
    let mut journal = stanch::journal::Journal::create(&runs, name, || at(0)).expect("a journal");
    let start = Event::RunStart {
        what: "runbook x".into(),
        target: "app@db1:5432".into(),
        login: "oncall".into(),
        operator: "ana".into(),
        version: "0".into(),
        evidence: String::new(),
    };
    journal.write(start).expect("written");
    for what in todo {
        let note = Event::Note {
            step: "write_up".into(),
            question: "to do".into(),
            text: format!("{what} (owner: ana, due: +14d)"),
        };
        journal.write(note).expect("written");
    }
    journal.path().display().to_string()
}

#[test]
fn what_a_later_journal_says_is_to_be_done_isnt_lost() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path();
    let first = journal(folder, "20270115T090000Z-a", &["Lower *every* pool"]);
    let second = journal(folder, "20270115T090001Z-b", &["Alarm <early> | loudly"]);
    let (code, _, err) = stanch(
        folder,
        &["report", "--journal", &first, "--name", "x", "-q"],
    );
    assert_eq!((code, err.as_str()), (0, ""));
    let args = [
        "report",
        "--journal",
        &first,
        "--journal",
        &second,
        "--name",
        "x",
    ];
    let file = folder.join("postmortem-x.md");
    let heading = "not in the table above";
    // As long as nobody has touched the table it has both.
    let before = std::fs::read_to_string(&file).expect("read");
    let (code, _, err) = stanch(folder, &args);
    let text = std::fs::read_to_string(&file).expect("read");
    assert_eq!(code, 0, "{err}");
    assert!(
        !text.contains(heading) && !err.contains("action item"),
        "{err}{text}"
    );
    assert!(text.contains("Lower") && text.contains("Alarm"), "{text}");
    let typed = before.replace("2027-01-29 |  |", "2027-01-29 | detect |");
    assert_ne!(typed, before, "{before}");
    std::fs::write(&file, typed).expect("written");
    let (code, _, err) = stanch(folder, &args);
    let text = std::fs::read_to_string(&file).expect("read");
    assert_eq!(code, 0, "{err}");
    assert!(
        err.contains("actions: 1 action item of the journals not in it, listed below it"),
        "{err}"
    );
    let (_, later) = text.split_once(heading).expect("a block");
    let row = later
        .lines()
        .find(|line| line.contains("| ana"))
        .expect("a row")
        .to_owned();
    assert!(row.contains("Alarm") && row.contains("2027-01-29"), "{row}");
    assert!(!later.contains("Lower"), "{later}");
    // Once people have taken it over, it is told no more.
    let row = row.replacen("Alarm", "[x] Alarm", 1);
    let end = "<!-- /people: actions -->";
    std::fs::write(&file, text.replace(end, &format!("{row}\n{end}"))).expect("written");
    let (code, _, err) = stanch(folder, &args);
    let text = std::fs::read_to_string(&file).expect("read");
    assert_eq!(code, 0, "{err}");
    assert!(
        !text.contains(heading) && !err.contains("action item"),
        "{err}{text}"
    );
}

#[test]
fn a_link_stays_a_link() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path();
    bundle::write(&folder.join("a.json"), &capture(0, 2)).expect("written");
    std::fs::create_dir(folder.join("wiki")).expect("made");
    let link = folder.join("postmortem-x.md");
    std::os::unix::fs::symlink("wiki/incident.md", &link).expect("a link");
    // At first it leads to nothing.
    for _ in 0..2 {
        let (code, _, err) = stanch(folder, &["report", "a.json", "--name", "x", "-q"]);
        assert_eq!((code, err.as_str()), (0, ""));
        let meta = std::fs::symlink_metadata(&link).expect("there");
        assert!(meta.is_symlink());
        let text = std::fs::read_to_string(folder.join("wiki/incident.md")).expect("read");
        assert!(text.contains("# Postmortem"), "{text}");
    }
}

/// What a person did by hand is in no journal: that whole applications are gone is seen all the same.
#[test]
fn sessions_that_vanish_are_told() {
    let at_start = |seconds: i64, starts: &[(i32, &str, i64)]| {
        let mut snapshot = capture(seconds, 0);
        let sessions = starts.iter().map(|(pid, application, start)| {
            let mut session = build::session(*pid, SessionState::Idle);
            session.application_name = Some((*application).into());
            session.id.backend_start = Some(at(*start));
            session
        });
        snapshot.activity = Section::Collected(sessions.collect());
        snapshot
    };
    let web: Vec<(i32, &str, i64)> = (0..4).map(|n| (100 + n, "web", -60)).collect();
    let worker: Vec<(i32, &str, i64)> = (0..3).map(|n| (200 + n, "worker", -60)).collect();
    let all = [
        &web[..],
        &worker[..],
        &[(300, "console", -60), (301, "console", -60)],
    ]
    .concat();
    let back: Vec<(i32, &str, i64)> = (0..3).map(|n| (200 + n, "worker", 30)).collect();
    let captures = [at_start(0, &all), at_start(10, &[]), at_start(40, &back)];
    let line = |captures: &[Snapshot], done: Vec<(BackendId, Timestamp)>| {
        let mut course = Course::new(
            Thresholds::default(),
            Followed {
                sessions: done,
                ..Followed::default()
            },
        );
        captures.iter().for_each(|one| course.add(one));
        let text = markdown(&postmortem::make(of(course)));
        let line = text
            .lines()
            .find(|line| line.contains("by whom isn't recorded"));
        line.map(str::to_owned)
    };
    let told = line(&captures, Vec::new()).expect("a line");
    assert!(
        told.contains("09:00:00 – 09:00:10 ")
            && told
                .contains("| reconstructed | the sessions of web (all 4), worker (all 3) ended,"),
        "{told}"
    );
    assert!(
        told.contains(
            "isn't recorded; worker was back by 09:00:40; of the others none was back by 09:00:40 |"
        ),
        "{told}"
    );
    // What a run did is told by its journal; captures far apart tell nothing; others in their place are no end.
    let by_run = BackendId {
        pid: Pid(100),
        backend_start: Some(at(-60)),
    };
    let told = line(&captures, vec![(by_run, at(5))]).expect("a line");
    assert!(
        !told.contains("web") && told.contains("worker (all 3)"),
        "{told}"
    );
    assert_eq!(
        line(&[at_start(0, &all), at_start(100, &[])], Vec::new()),
        None
    );
    let renewed: Vec<(i32, &str, i64)> = (0..4).map(|n| (100 + n, "web", 5)).collect();
    let told = line(&[at_start(0, &web), at_start(10, &renewed)], Vec::new()).expect("a line");
    assert!(told.ends_with("; web had others by then |"), "{told}");
}
