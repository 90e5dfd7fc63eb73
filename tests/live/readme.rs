//! The README's commands do what it says, in its order, on the incident that it tells of.

use std::process::Command;
use std::time::Duration;

use stanch::drill::{Incident, Scene, Server};
use stanch::model::ExitCode;

use crate::harness::{self, admin, path, scene, stanch_as};

fn readme() -> String {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    std::fs::read_to_string(file).expect("the README")
}

/// Each command with the output that is shown below it.
fn console(readme: &str) -> Vec<(String, Vec<String>)> {
    let mut all: Vec<(String, Vec<String>)> = Vec::new();
    let mut inside = false;
    for line in readme.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| inside) {
            let command = command.split(" # ").next().unwrap_or(command).trim();
            all.push((command.to_owned(), Vec::new()));
        } else if inside && let Some((_, output)) = all.last_mut() {
            output.push(line.to_owned());
        }
    }
    all
}

/// Numbers, times and places differ from run to run; words don't.
fn words(text: &str) -> Vec<String> {
    let text = text.replace("-h /", "-h db1 /");
    text.split_whitespace()
        .filter(|word| {
            !word.contains('/') && !word.starts_with("db1") && !word.starts_with("shop@")
        })
        .map(|word| word.split('@').next().unwrap_or(word))
        .map(|word| {
            word.chars()
                .filter(|c| !c.is_ascii_digit() && *c != '.')
                .collect::<String>()
        })
        .filter(|word| {
            !word.is_empty() && !["s", "ms", "m", "h", "::", "--", "-"].contains(&word.as_str())
        })
        .collect()
}

async fn shell(server: &Server, command: &str) -> (i32, String) {
    let spec = admin(server);
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_stanch"));
    let folder = program.parent().expect("its folder").display();
    let output = Command::new("sh")
        .args(["-c", command])
        .env_clear()
        .env("PATH", format!("{folder}:{}", path()))
        .env("PGHOST", &spec.host)
        .env("PGPORT", spec.port.to_string())
        .env("PGUSER", &spec.user)
        .env("PGDATABASE", &spec.database)
        .output()
        .expect("a shell");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!said.contains("error:"), "{command}: {said}");
    (output.status.code().expect("a code"), text)
}

/// For how long the longest has waited for a lock.
fn waits_ms(server: &Server) -> Option<u64> {
    stanch_as(&admin(server), &["pg", "blockers", "--json"]).json()["longest_wait_ms"].as_u64()
}

/// The README's incident: two seconds old.
async fn young_queue() -> (Server, Scene) {
    let (server, scene) = scene(Incident::LockQueue).await;
    while waits_ms(&server).is_none_or(|ms| ms < 1100) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    (server, scene)
}

#[tokio::test]
async fn from_alarm_to_relief() {
    let (mut server, mut _scene) = young_queue().await;
    let commands = console(&readme());
    assert!(commands.len() > 15, "{commands:?}");
    for (command, output) in commands {
        // Those of the budget are about files: `tests/it/budget_output.rs` runs them.
        if command.contains("stanch budget") {
            continue;
        }
        // On a slow machine the incident grows old, and is worse then.
        if waits_ms(&server).is_some_and(|ms| ms > 15_000) {
            (server, _scene) = young_queue().await;
        }
        let report = stanch_as(&admin(&server), &["pg", "blockers", "--json"]).json();
        let (code, shown) = shell(&server, &command).await;
        assert!(code <= 2, "{command}: {code}");
        assert!(!shown.is_empty(), "{command}");
        if !output.is_empty() {
            let want: Vec<String> = output.iter().flat_map(|line| words(line)).collect();
            assert_eq!(words(&shown), want, "{command}\n{shown}");
        }
        if command == "stanch pg blockers" && !report["roots"][0].is_null() {
            // "Paste it": the command that it names, as it stands there.
            let remedy = report["roots"][0]["remedy"]["command"]
                .as_str()
                .expect("a command")
                .to_owned();
            assert!(shown.contains(&remedy), "{shown}");
            shell(&server, &remedy).await;
            let watcher = harness::client(&admin(&server), "watcher").await;
            stanch::drill::until(
                &watcher,
                "SELECT count(*) = 0 FROM pg_locks WHERE NOT granted",
            )
            .await
            .expect("relief");
            drop(watcher);
            harness::eventually("ten sessions are left", || {
                stanch_as(&admin(&server), &["pg", "connections", "--json"]).json()["capacity"]["used"]
                    == 10
            })
    .await;
        }
    }
    std::fs::remove_file("/tmp/stanch-readme.json").expect("the saved file");
}

#[test]
fn the_exit_codes_are_the_programs() {
    let readme = readme();
    for code in ExitCode::ALL {
        let row = format!("| {} | {} |", code.code(), code.meaning());
        assert!(readme.contains(&row), "{row}");
    }
}

#[test]
fn the_list_of_drills_is_whole() {
    let readme = readme();
    for incident in Incident::ALL {
        assert!(readme.contains(incident.name()) && readme.contains(incident.summary()));
    }
}
