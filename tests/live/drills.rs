//! The drills as a person runs them: the incident is found, and nothing is left behind.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::harness::{Run, command, folder, run};

/// `TMPDIR` of its own, so that what is left can be told from other drills.
fn once(incident: &str, args: &[&str]) -> (Run, tempfile::TempDir) {
    let tmp = folder();
    open_to_all(tmp.path());
    let mut command = command(&[&["drill", incident][..], args].concat());
    command.env("TMPDIR", tmp.path());
    (run(command), tmp)
}

/// The server's user must be able to reach the folder.
fn open_to_all(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("permissions");
}

fn left(tmp: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(tmp)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .collect()
}

fn finds(incident: &str, id: &str, pattern: Option<&str>) {
    let (run, tmp) = once(incident, &["--once", "--json"]);
    let run = run.expect_code(0);
    let report = run.json();
    let findings = report["findings"].as_array().expect("findings");
    let found = findings
        .iter()
        .find(|f| f["id"] == id)
        .unwrap_or_else(|| panic!("{report:#}"));
    assert_eq!(found["pattern"].as_str(), pattern, "{report:#}");
    let about = |f: &&serde_json::Value| f["severity"] != "info";
    let worst = findings.iter().filter(about).count();
    assert!(
        worst <= 4,
        "an incident is told in few findings: {report:#}"
    );
    assert_eq!(left(tmp.path()), Vec::<PathBuf>::new());
}

#[test]
fn exhaustion() {
    finds("exhaustion", "conn.exhausted", Some("A"));
}

#[test]
fn leak() {
    finds("leak", "conn.leak", Some("B"));
}

#[test]
fn long_transaction() {
    finds("long-transaction", "tx.long", Some("C"));
}

#[test]
fn lock_chain() {
    finds("lock-chain", "lock.chain", None);
}

#[test]
fn lock_queue() {
    finds("lock-queue", "lock.queue_behind_ddl", None);
}

#[test]
fn prepared() {
    finds("prepared", "lock.prepared_root", None);
}

#[test]
fn deadlock() {
    finds("deadlock", "lock.cycle", None);
}

#[test]
fn storm() {
    finds("storm", "query.storm", None);
}

/// The one that takes longest to be seen is held, and its book walked on it: nothing is ended, since no session is at fault.
#[test]
fn pool_timeouts_and_their_book() {
    let tmp = tempfile::tempdir().expect("a folder");
    let mut drill = command(&["drill", "pool-timeouts", "--for", "10m"]);
    let mut drill = drill
        .env("TMPDIR", tmp.path())
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut lines = BufReader::new(drill.stderr.take().expect("stderr")).lines();
    let url = lines
        .find_map(|line| {
            let line = line.expect("a line");
            Some(
                line.trim()
                    .strip_prefix("server: \"")?
                    .trim_end_matches('"')
                    .to_owned(),
            )
        })
        .expect("it says where");
    std::thread::spawn(move || lines.for_each(drop));
    for (how, code) in [(&["--yes"][..], 6), (&[], 6)] {
        let walk = [
            &[
                "runbook",
                "run",
                "pool-timeout-mismatch",
                "--json",
                "-d",
                &url,
            ],
            how,
        ]
        .concat();
        let mut walk = command(&walk);
        let walk = run({
            walk.env("XDG_STATE_HOME", tmp.path());
            walk
        });
        assert_eq!(walk.code, code, "{walk:?}");
        assert!(walk.stderr.contains("conn.churn"), "{walk:?}");
        let journals = crate::harness::journals(tmp.path());
        let text = std::fs::read_to_string(journals.last().expect("a journal")).expect("text");
        assert!(!text.contains("effect_intent"), "{text}");
    }
    kill_process(Pid::from_child(&drill), Signal::INT).expect("a signal");
    let shown = drill.wait_with_output().expect("it ends");
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("conn.churn"), "{shown}");
}

#[test]
fn without_an_incident_they_are_listed() {
    let listed = run(command(&["drill"])).expect_code(0).stdout;
    for incident in stanch::drill::Incident::ALL {
        assert!(listed.contains(incident.name()), "{listed}");
    }
}

#[test]
fn a_bounded_hold() {
    let (run, tmp) = once("storm", &["--for", "300ms"]);
    let run = run.expect_code(0);
    assert!(
        run.stderr.contains("postgresql://postgres@/shop?host="),
        "{}",
        run.stderr
    );
    assert!(run.stdout.contains("query.storm"), "{}", run.stdout);
    assert_eq!(left(tmp.path()), Vec::<PathBuf>::new());
}

/// A held drill, its folder, and its postmaster's pid.
fn held(tmp: &Path) -> (Child, PathBuf, Pid) {
    let mut command = command(&["drill", "storm"]);
    let mut child = command
        .env("TMPDIR", tmp)
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("it runs");
    let mut lines = BufReader::new(child.stderr.take().expect("stderr")).lines();
    lines
        .find(|line| line.as_ref().is_ok_and(|line| line.contains("holding")))
        .expect("it holds")
        .expect("a line");
    // Whoever reads no further must not stop it.
    std::thread::spawn(move || lines.for_each(drop));
    let folder = left(tmp).into_iter().next().expect("its folder");
    let pid =
        std::fs::read_to_string(folder.join("data/postmaster.pid")).expect("the postmaster's pid");
    let pid =
        Pid::from_raw(pid.lines().next().expect("a line").parse().expect("a pid")).expect("a pid");
    (child, folder, pid)
}

fn gone(pid: Pid) -> bool {
    let give_up = Instant::now() + Duration::from_secs(60);
    while test_kill_process(pid).is_ok() {
        // Nobody may be left to reap it, in a container without an init.
        let state = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()))
            .unwrap_or_default();
        if state
            .rsplit(')')
            .next()
            .is_some_and(|rest| rest.trim_start().starts_with('Z'))
        {
            return true;
        }
        if Instant::now() > give_up {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

#[test]
fn nothing_is_left_after_ctrl_c_or_a_polite_kill() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let tmp = folder();
        open_to_all(tmp.path());
        let (mut child, _, server) = held(tmp.path());
        kill_process(Pid::from_child(&child), signal).expect("a signal");
        assert_eq!(child.wait().expect("it ends").code(), Some(0), "{signal:?}");
        assert!(gone(server), "{signal:?}");
        assert_eq!(left(tmp.path()), Vec::<PathBuf>::new(), "{signal:?}");
    }
}

/// After kill -9 the server dies with the drill, and the next drill sweeps the folder.
#[test]
fn a_killed_drill_is_swept_by_the_next() {
    let tmp = folder();
    open_to_all(tmp.path());
    let (mut child, killed, server) = held(tmp.path());
    let (mut other, kept, _) = {
        let before = left(tmp.path());
        let (other, _, pid) = held(tmp.path());
        let kept = left(tmp.path())
            .into_iter()
            .find(|path| !before.contains(path))
            .expect("a second folder");
        (other, kept, pid)
    };
    child.kill().expect("kill -9");
    child.wait().expect("it ends");
    assert!(gone(server), "the server outlives the drill");
    // While the server's last processes still write, a folder can't be swept: then by the next but one.
    for _ in 0..5 {
        let mut third = command(&["drill", "storm", "--once"]);
        third.env("TMPDIR", tmp.path());
        run(third).expect_code(0);
        if !killed.exists() {
            break;
        }
    }
    assert!(!killed.exists(), "what a killed drill left is swept");
    assert!(kept.exists(), "a drill that lives is left alone");
    kill_process(Pid::from_child(&other), Signal::INT).expect("a signal");
    other.wait().expect("it ends");
}

/// The person's own servers and settings are no part of a drill.
#[test]
fn the_persons_environment_is_not_used() {
    let tmp = folder();
    open_to_all(tmp.path());
    let mut command = command(&["drill", "lock-chain", "--once", "--json"]);
    command.env("TMPDIR", tmp.path()).envs([
        ("PGHOST", "production.invalid"),
        ("PGPORT", "1"),
        ("PGUSER", "nobody_here"),
        ("PGOPTIONS", "-c nonsense=1"),
        ("DATABASE_URL", "postgresql://production.invalid/app"),
    ]);
    let report = run(command).expect_code(0).json();
    assert_eq!(report["target"]["database"], "shop");
}

#[test]
fn without_a_server_program_it_says_what_to_install() {
    let mut command = command(&["drill", "storm", "--once"]);
    command.env("PATH", "/nonexistent");
    let run = run(command);
    // Where the packaged folder exists a drill works without PATH.
    if stanch::drill::bin_dirs("/nonexistent").is_empty() {
        assert_eq!(run.code, 3);
        assert!(
            run.stderr.contains("apt-get install postgresql"),
            "{}",
            run.stderr
        );
    } else {
        assert_eq!(run.code, 0, "{}", run.stderr);
    }
}
