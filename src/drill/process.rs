//! Programs that a drill starts: they see nothing of the person's environment and die with us.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;

use super::error::DrillError;
use super::folder::RunAs;

/// A program that sees nothing of the person's environment and dies with us.
fn command(program: &Path, args: &[&str], folder: &Path, run_as: RunAs) -> Command {
    let mut command = Command::new(program);
    command
        .args(args)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("LC_ALL", "C")
        .env("TZ", "UTC")
        .env("HOME", folder)
        .current_dir(folder)
        .stdin(Stdio::null())
        // Ctrl-C at the terminal is for the drill, which then stops its servers itself.
        .process_group(0);
    if let Some((uid, gid)) = run_as.ids {
        command.uid(uid).gid(gid);
    }
    die_with_us(&mut command);
    command
}

#[expect(
    unsafe_code,
    reason = "the parent-death signal must be set in the child, after its change of user"
)]
fn die_with_us(command: &mut Command) {
    let parent = rustix::process::getpid();
    let set = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::QUIT))?;
        // The parent may have died before the signal was set.
        if rustix::process::getppid() == Some(parent) {
            Ok(())
        } else {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
    };
    // SAFETY: between fork and exec only async-signal-safe calls are made: prctl and getppid.
    unsafe {
        command.pre_exec(set);
    }
}

pub(super) fn postmaster(
    bin_dir: &Path,
    folder: &Path,
    run_as: RunAs,
) -> Result<Child, DrillError> {
    let data = folder.join("data").display().to_string();
    spawn(
        &bin_dir.join("postgres"),
        &["-D", &data],
        folder,
        &folder.join("server.log"),
        run_as,
    )
}

pub(super) fn spawn(
    program: &Path,
    args: &[&str],
    folder: &Path,
    log: &Path,
    run_as: RunAs,
) -> Result<Child, DrillError> {
    let file = File::options()
        .create(true)
        .append(true)
        .open(log)
        .map_err(DrillError::at(log))?;
    let copy = file.try_clone().map_err(DrillError::at(log))?;
    command(program, args, folder, run_as)
        .stdout(file)
        .stderr(copy)
        .spawn()
        .map_err(DrillError::io(program.display().to_string()))
}

pub(super) fn run(
    program: &Path,
    args: &[&str],
    folder: &Path,
    run_as: RunAs,
) -> Result<(), DrillError> {
    let output = command(program, args, folder, run_as)
        .output()
        .map_err(DrillError::io(program.display().to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let tool = program
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(DrillError::Tool { tool, output: said })
}

pub(super) fn tail(log: &Path) -> String {
    let mut text = String::new();
    if let Ok(mut file) = File::open(log) {
        // A log that can't be read has nothing to tell.
        let _ = file.read_to_string(&mut text);
    }
    let lines: Vec<&str> = text.lines().rev().take(5).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
}
