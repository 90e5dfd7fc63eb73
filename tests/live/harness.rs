//! Real servers for the tests, through the drills' own code, and the built program to run against them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;
use stanch::drill::{self, Incident, Scene, Server, ServerOptions};
use stanch::source::postgres::ConnSpec;
use tokio_postgres::Client;

/// Every report that reads a server.
pub const REPORTS: [&[&str]; 9] = [
    &["triage"],
    &["pg", "activity"],
    &["pg", "blockers"],
    &["pg", "locks"],
    &["pg", "transactions"],
    &["pg", "connections"],
    &["pg", "settings"],
    &["pg", "horizon"],
    &["doctor"],
];

/// What a run of the program gave.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    #[track_caller]
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}\n{}", self.stdout, self.stderr);
        self
    }
}

/// The program with nothing of this machine's environment but PATH.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stanch"));
    command
        .args(args)
        .env_clear()
        .env("PATH", path())
        .env("HOME", "/nonexistent")
        .current_dir("/")
        .stdin(Stdio::null());
    command
}

pub fn run(mut command: Command) -> Run {
    let output = command.output().expect("the program runs");
    Run {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).expect("standard output is UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("standard error is UTF-8"),
    }
}

/// Runs `stanch <what> -h … -p … -U … -d …`.
pub fn stanch_as(spec: &ConnSpec, what: &[&str]) -> Run {
    run(stanch_command(spec, what))
}

pub fn stanch_command(spec: &ConnSpec, what: &[&str]) -> Command {
    let port = spec.port.to_string();
    let place = [
        "-h",
        &spec.host,
        "-p",
        &port,
        "-U",
        &spec.user,
        "-d",
        &spec.database,
    ];
    let args: Vec<&str> = what.iter().copied().chain(place).collect();
    let mut command = command(&args);
    if let Some(password) = &spec.password {
        command.env("PGPASSWORD", password.expose());
    }
    command
}

pub fn path() -> String {
    std::env::var("PATH").unwrap_or_default()
}

pub fn bin_dir() -> PathBuf {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        drill::bin_dirs(&path())
            .into_iter()
            .next()
            .expect("a PostgreSQL server; `make servers` installs one")
    })
    .clone()
}

/// A server of our own, with these lines in its configuration.
pub async fn server(settings: &[(&'static str, &str)]) -> Server {
    let settings = settings
        .iter()
        .map(|(name, value)| (*name, (*value).to_owned()))
        .collect();
    start(ServerOptions {
        settings,
        ..ServerOptions::default()
    })
    .await
}

/// Every PostgreSQL that is to be tested against, by major: those of `STANCH_TEST_PG_BINS`, and this system's.
pub fn bin_dirs() -> BTreeMap<u32, PathBuf> {
    let named = std::env::var("STANCH_TEST_PG_BINS").unwrap_or_default();
    named
        .split(':')
        .filter(|dir| !dir.is_empty())
        .map(PathBuf::from)
        // Of two of a version the system's counts: it has the clients too.
        .chain(drill::bin_dirs(&path()).into_iter().rev())
        .filter_map(|dir| Some((major(&dir)?, dir)))
        .collect()
}

fn major(bin_dir: &Path) -> Option<u32> {
    let output = Command::new(bin_dir.join("postgres"))
        .arg("--version")
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let version = text.split_whitespace().nth(2)?;
    version.split('.').next()?.parse().ok()
}

/// Started from this system's programs, unless the options name others.
pub async fn start(options: ServerOptions) -> Server {
    let named = !options.bin_dir.as_os_str().is_empty();
    Server::start(&ServerOptions {
        bin_dir: if named {
            options.bin_dir.clone()
        } else {
            bin_dir()
        },
        ..options
    })
    .await
    .expect("the server starts")
}

/// A server with an incident on it.
pub async fn scene(incident: Incident) -> (Server, Scene) {
    let server = start(incident.server_options()).await;
    let scene = Scene::set(&server, incident)
        .await
        .expect("the scene is set");
    (server, scene)
}

/// The superuser's way into the database of a scene.
pub fn admin(server: &Server) -> ConnSpec {
    server.spec(server.superuser(), Scene::database())
}

pub async fn client(spec: &ConnSpec, application: &str) -> Client {
    drill::connect(spec, application)
        .await
        .expect("a connection")
}

pub async fn sql(client: &Client, text: &str) {
    drill::batch(client, text)
        .await
        .unwrap_or_else(|e| panic!("{text}: {e}"));
}

/// A folder of this test's own.
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

/// A role without any rights, and its way in.
pub async fn oncall(server: &Server, database: &str) -> ConnSpec {
    let boss = client(&server.spec(server.superuser(), database), "boss").await;
    sql(&boss, "CREATE ROLE oncall LOGIN").await;
    drill::leave(boss).await.expect("it ends");
    server.spec("oncall", database)
}

/// Waits until the longest wait for a lock has lasted long enough to be acted on.
pub async fn ripe(spec: &ConnSpec) {
    let watcher = client(spec, "watcher").await;
    let version: i32 = watcher
        .query_one("SELECT current_setting('server_version_num')::int", &[])
        .await
        .expect("a version")
        .get(0);
    // Before 14 no lock tells since when it is awaited, and replay has no statement to tell it by.
    let old = if version >= 140_000 {
        "SELECT min(waitstart) < clock_timestamp() - interval '1.1 s' FROM pg_locks WHERE NOT granted \
         HAVING count(*) > 0"
    } else {
        "SELECT coalesce(min(query_start) < clock_timestamp() - interval '1.1 s', true) FROM pg_stat_activity \
         WHERE wait_event_type = 'Lock' HAVING count(*) > 0"
    };
    drill::until(&watcher, old).await.expect("they wait");
    drill::leave(watcher).await.expect("it ends");
}

/// Asks again and again until the answer is yes, for a minute at most.
pub async fn eventually(what: &str, mut ask: impl FnMut() -> bool) {
    let give_up = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !ask() {
        assert!(std::time::Instant::now() < give_up, "{what}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// A word to whoever runs the tests: what was left out.
#[expect(
    clippy::print_stderr,
    reason = "the tests' own word, not the program's"
)]
pub fn say(text: &str) {
    eprintln!("{text}");
}

/// The journals of the runs that were kept in `state`, oldest first.
pub fn journals(state: &Path) -> Vec<PathBuf> {
    stanch::journal::all(&state.join("stanch/runs"))
}

/// The program at a terminal of its own: each text is typed when the question that belongs to it stands there.
pub fn at_terminal(
    spec: &ConnSpec,
    state: &Path,
    what: &str,
    answers: &[(&str, &str)],
) -> (Option<i32>, String) {
    let mut left = answers.iter();
    let mut next = left.next();
    let mut answer = |shown: &str| {
        let (asked, text) = next?;
        if !shown.ends_with(asked) {
            return None;
        }
        next = left.next();
        Some((*text).to_owned())
    };
    at_terminal_with(spec, state, what, &mut answer)
}

/// The same, with whatever is said to what was shown since the last answer.
pub fn at_terminal_with(
    spec: &ConnSpec,
    state: &Path,
    what: &str,
    answer: &mut dyn FnMut(&str) -> Option<String>,
) -> (Option<i32>, String) {
    use std::io::{Read as _, Write as _};
    let line = format!(
        "stty cols 80 rows 50; exec {} {what} -h {} -p {} -U {} -d {}",
        env!("CARGO_BIN_EXE_stanch"),
        spec.host,
        spec.port,
        spec.user,
        spec.database
    );
    let mut child = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .env_clear()
        .env("PATH", path())
        .env("HOME", "/nonexistent")
        .env("XDG_STATE_HOME", state)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script runs");
    let (mut keys, mut screen) = (
        child.stdin.take().expect("its input"),
        child.stdout.take().expect("its output"),
    );
    let mut shown = Vec::new();
    let mut answered = 0;
    let mut byte = [0];
    while screen.read(&mut byte).expect("output") == 1 {
        shown.push(byte[0]);
        let Ok(since) = std::str::from_utf8(&shown[answered..]) else {
            continue;
        };
        if let Some(text) = answer(since) {
            let typed = keys.write_all(text.as_bytes());
            assert!(typed.is_ok(), "{}", String::from_utf8_lossy(&shown));
            answered = shown.len();
        }
    }
    let status = child.wait().expect("it ends");
    (status.code(), String::from_utf8_lossy(&shown).into_owned())
}
