//! A command of a runbook: an argument list, never a shell, in a process group of its own that is ended as a whole.

use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

/// More of its output isn't kept.
const MOST_BYTES: usize = 64 << 10;
/// Between being asked to end and being ended.
const GRACE: Duration = Duration::from_secs(2);

/// For the last of the output, once it has ended.
const LEFT_BEHIND: Duration = Duration::from_millis(500);

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// `None`: by a signal, or not by itself; `why` says it.
    pub exit: Option<i32>,
    pub why: String,
    /// What it wrote, both streams cut at 64 KiB; broken characters are replaced.
    pub stdout: String,
    pub stderr: String,
    pub elapsed: Duration,
}

/// Runs it for `limit` at most, and no longer once `stop` says so.
///
/// # Errors
/// When it can't be started.
pub async fn command(
    argv: &[String],
    limit: Duration,
    stop: &dyn Fn() -> bool,
) -> std::io::Result<Ran> {
    let started = Instant::now();
    let [name, args @ ..] = argv else {
        return Err(std::io::ErrorKind::InvalidInput.into());
    };
    let mut child = tokio::process::Command::new(name)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let group = child
        .id()
        .and_then(|id| i32::try_from(id).ok())
        .and_then(Pid::from_raw);
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let (out, err) = (Reading::of(out), Reading::of(err));
    let give_up = started + limit;
    let mut asked: Option<(Instant, &str)> = None;
    let cut = loop {
        if has_ended(group) {
            break asked.map(|(_, why)| why);
        }
        let now = Instant::now();
        match asked {
            None if stop() => asked = Some((now, "stopped by the operator")),
            None if now >= give_up => asked = Some((now, "out of time")),
            Some((at, why)) if now >= at + GRACE => {
                break Some(why);
            }
            _ => {
                sleep(Duration::from_millis(10)).await;
                continue;
            }
        }
        let _ = group.map(|group| kill_process_group(group, Signal::TERM));
    };
    // What it has started and left behind goes with it; else its open output would be waited for. Before it is reaped: until
    // then its number is nobody else's.
    let _ = group.map(|group| kill_process_group(group, Signal::KILL));
    let status = child.wait().await.ok();
    let (stdout, stderr) = (out.text().await, err.text().await);
    let exit = status
        .and_then(|status| status.code())
        .filter(|_| cut.is_none());
    let why = match (cut, exit) {
        (Some(why), _) => why.to_owned(),
        (None, Some(code)) => format!("it ended with {code}"),
        (None, None) => "a signal ended it".to_owned(),
    };
    Ok(Ran {
        exit,
        why,
        stdout,
        stderr,
        elapsed: started.elapsed(),
    })
}

/// Whether the leader of the group is over, without reaping it.
fn has_ended(group: Option<Pid>) -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    group.is_none_or(|leader| !matches!(waitid(WaitId::Pid(leader), look), Ok(None)))
}

/// A stream of the command's, read while it runs: a full pipe would hold it up.
struct Reading {
    kept: Arc<Mutex<Vec<u8>>>,
    task: JoinHandle<()>,
}

impl Reading {
    fn of(stream: Option<impl AsyncRead + Unpin + Send + 'static>) -> Self {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&kept);
        let task = tokio::spawn(async move {
            let Some(mut stream) = stream else { return };
            let mut bytes = [0; 4096];
            while let Ok(n @ 1..) = stream.read(&mut bytes).await {
                let mut kept = shared.lock().unwrap_or_else(PoisonError::into_inner);
                // What is more is read and forgotten.
                let room = MOST_BYTES.saturating_sub(kept.len());
                kept.extend_from_slice(&bytes[..n.min(room)]);
            }
        });
        Self { kept, task }
    }

    /// What was read. Somebody who has left the group may hold the stream open: that isn't waited for.
    async fn text(mut self) -> String {
        if timeout(LEFT_BEHIND, &mut self.task).await.is_err() {
            self.task.abort();
        }
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(all: &[&str]) -> Vec<String> {
        all.iter().map(|arg| (*arg).to_owned()).collect()
    }

    #[tokio::test]
    async fn it_ends_in_its_own_way_and_in_time() {
        let never = || false;
        let limit = Duration::from_secs(20);
        let ran = command(
            &argv(&["sh", "-c", "echo out; echo err >&2; exit 3"]),
            limit,
            &never,
        )
        .await
        .expect("it starts");
        assert_eq!(
            (ran.exit, ran.stdout.as_str(), ran.stderr.as_str()),
            (Some(3), "out\n", "err\n")
        );
        let ran = command(
            &argv(&["sh", "-c", "sleep 60 & sleep 60"]),
            Duration::from_millis(50),
            &never,
        )
        .await
        .expect("it starts");
        assert_eq!((ran.exit, ran.why.as_str()), (None, "out of time"));
        assert!(ran.elapsed < Duration::from_secs(10), "{ran:?}");
        // One that won't be asked, with a child that holds the output open.
        let deaf = argv(&[
            "sh",
            "-c",
            "trap '' TERM; sleep 60 & while :; do sleep 1; done",
        ]);
        let ran = command(&deaf, limit, &|| true).await.expect("it starts");
        assert_eq!(
            (ran.exit, ran.why.as_str()),
            (None, "stopped by the operator")
        );
        assert!(
            command(&argv(&["/nowhere/to/be/found"]), limit, &never)
                .await
                .is_err()
        );
        let much = argv(&["sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x"]);
        let ran = command(&much, limit, &never).await.expect("it starts");
        assert_eq!((ran.exit, ran.stdout.len()), (Some(0), 64 << 10));
    }
}
