//! What is written down of the command line, against the command line: the reference in the README, the files in
//! `completions/`, the manual pages.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::{Arg, Command as Cli};

const BEGIN: &str = "<!-- reference: made from the program's own help -->\n";
const END: &str = "<!-- end of the reference -->\n";
/// Options that many commands have, told once.
const COMMON: [&str; 3] = ["Connection", "Output", "Snapshots"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn stanch(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stanch"));
    command.args(args).env_clear().current_dir("/");
    command
}

fn out(mut command: Command) -> String {
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Every command that does something, by its whole name.
fn leaves(command: &Cli, name: &str, all: &mut Vec<(String, Cli)>) {
    let below: Vec<&Cli> = command
        .get_subcommands()
        .filter(|below| below.get_name() != "help")
        .collect();
    if below.is_empty() {
        all.push((name.to_owned(), command.clone()));
    }
    for below in below {
        leaves(below, &format!("{name} {}", below.get_name()), all);
    }
}

fn all() -> Vec<(String, Cli)> {
    let mut command = stanch::cli::command();
    command.build();
    let mut all = Vec::new();
    leaves(&command, "stanch", &mut all);
    all
}

fn spelled(arg: &Arg) -> String {
    let value = arg.get_value_names().map_or(String::new(), |names| {
        let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
        match arg.get_action().takes_values() {
            true => format!(" {}", names.join(" ")),
            false => String::new(),
        }
    });
    if arg.is_positional() {
        return value.trim().to_owned();
    }
    let short = arg.get_short().map(|c| format!("-{c}"));
    let long = arg.get_long().map(|name| format!("--{name}"));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    format!("{}{value}", names.join(", "))
}

fn told(arg: &Arg) -> String {
    let mut text = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let values: Vec<String> = arg
        .get_possible_values()
        .iter()
        .map(|value| value.get_name().to_owned())
        .collect();
    if !values.is_empty() && arg.get_action().takes_values() && values.len() < 9 {
        text.push_str(&format!(": {}", values.join(", ")));
    }
    let defaults: Vec<String> = arg
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy().into_owned())
        .collect();
    if !defaults.is_empty() && arg.get_action().takes_values() {
        text.push_str(&format!(" (default {})", defaults.join(" ")));
    }
    text.replace('|', "\\|")
}

fn reference() -> String {
    let mut text = String::from("| command | |\n|---|---|\n");
    let mut own = String::new();
    let mut common: BTreeMap<&str, Vec<(String, String)>> = BTreeMap::new();
    for (name, command) in all() {
        let about = command
            .get_about()
            .map(ToString::to_string)
            .unwrap_or_default();
        text.push_str(&format!("| `{name}` | {about} |\n"));
        for arg in command.get_arguments() {
            let row = (spelled(arg), told(arg));
            let heading = arg.get_help_heading().unwrap_or_default();
            match COMMON.iter().find(|common| **common == heading) {
                Some(heading) => {
                    let rows = common.entry(heading).or_default();
                    if !rows.contains(&row) {
                        rows.push(row);
                    }
                }
                None => own.push_str(&format!("| `{name}` | `{}` | {} |\n", row.0, row.1)),
            }
        }
    }
    text.push_str(&format!("\n| of one command | | |\n|---|---|---|\n{own}"));
    for heading in COMMON {
        text.push_str(&format!("\n| {} | |\n|---|---|\n", heading.to_lowercase()));
        for (option, what) in &common[heading] {
            text.push_str(&format!("| `{option}` | {what} |\n"));
        }
    }
    text
}

/// `STANCH_UPDATE=1 cargo test --test it reference` writes it anew.
#[test]
fn the_readme_tells_every_command_and_option() {
    let path = root().join("README.md");
    let readme = std::fs::read_to_string(&path).expect("the README");
    let (before, rest) = readme.split_once(BEGIN).expect("the reference begins");
    let (there, after) = rest.split_once(END).expect("the reference ends");
    let want = format!("\n{}\n", reference());
    if std::env::var_os("STANCH_UPDATE").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{want}{END}{after}")).expect("written");
    } else {
        assert!(
            there == want,
            "the reference in the README is old: STANCH_UPDATE=1 writes it anew\n{want}"
        );
    }
}

const SHELLS: [(&str, &str); 5] = [
    ("bash", "stanch.bash"),
    ("zsh", "_stanch"),
    ("fish", "stanch.fish"),
    ("powershell", "_stanch.ps1"),
    ("elvish", "stanch.elv"),
];

#[test]
fn the_completions_are_those_of_the_program() {
    for (shell, file) in SHELLS {
        let path = root().join("completions").join(file);
        let want = out(stanch(&["completions", shell]));
        if std::env::var_os("STANCH_UPDATE").is_some() {
            std::fs::write(&path, &want).expect("written");
        }
        let there = std::fs::read_to_string(&path).expect(file);
        assert_eq!(there, want, "{file} is old: STANCH_UPDATE=1 writes it anew");
    }
}

/// What a real bash offers after these words.
fn offered(words: &str, folder: &Path) -> Vec<String> {
    let script = format!(
        "source {}; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMP_TYPE=9; \
         _clap_complete_stanch stanch; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        root().join("completions/stanch.bash").display()
    );
    let program = PathBuf::from(env!("CARGO_BIN_EXE_stanch"));
    let bin = program.parent().expect("a folder").display().to_string();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut bash = Command::new("bash");
    bash.args(["-c", &script])
        .env_clear()
        .env("PATH", format!("{bin}:{path}"))
        .current_dir(folder);
    out(bash).lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_queries_and_targets() {
    let folder = tempfile::tempdir().expect("a folder");
    let targets = "targets: { prod: { db: service=prod }, staging: { db: postgresql://h/d } }";
    std::fs::write(folder.path().join("stanch.yaml"), targets).expect("a file");
    let has = |words: &str, want: &[&str]| {
        let all = offered(words, folder.path());
        for want in want {
            assert!(
                all.iter().any(|word| word == want),
                "{words}: {want} in {all:?}"
            );
        }
    };
    has("stanch ''", &["triage", "pg", "doctor", "completions"]);
    has("stanch pg bl", &["blockers"]);
    has("stanch query run ''", &["activity", "waits"]);
    has("stanch triage -d ''", &["prod", "staging"]);
    has("stanch triage --dbname st", &["staging"]);
    has(
        "stanch pg blockers -o ''",
        &["table", "json", "csv", "md", "prometheus"],
    );
    has("stanch drill lock", &["lock-chain", "lock-queue"]);
    has("stanch pg activity --wai", &["--wait-slot"]);
}

/// The other shells ask in their own ways, and are answered with the same names.
#[test]
fn every_shell_is_answered() {
    for (shell, _) in SHELLS {
        let mut ask = stanch(&["--", "stanch", "pg", ""]);
        ask.env("COMPLETE", shell)
            .env("_CLAP_COMPLETE_INDEX", "2")
            .env("_CLAP_IFS", "\n");
        let answer = out(ask);
        for report in ["activity", "blockers", "horizon"] {
            assert!(answer.contains(report), "{shell}: {answer}");
        }
    }
}

/// A page for each command, with each of its options in it.
#[test]
fn manual_pages_tell_every_option() {
    let folder = tempfile::tempdir().expect("a folder");
    out(stanch(&[
        "man",
        "--dir",
        &folder.path().display().to_string(),
    ]));
    for (name, command) in all() {
        let page = name.replace(' ', "-");
        let file = folder.path().join(format!("{page}.1"));
        let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{page}: {e}"));
        assert!(text.contains(".SH SYNOPSIS"), "{page}");
        for arg in command.get_arguments() {
            let Some(long) = arg.get_long() else { continue };
            let spelled = format!("\\-\\-{}", long.replace('-', "\\-"));
            assert!(text.contains(&spelled), "{page}: {long}");
        }
        let words: Vec<&str> = name.split(' ').skip(1).collect();
        assert_eq!(
            out(stanch(&[&["man"], &words[..]].concat())),
            text,
            "{page}"
        );
    }
    assert!(folder.path().join("stanch.1").exists());
}
