//! One throwaway Redis (or Valkey): of a cluster, behind a password, or alone on a socket.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::error::DrillError;
use super::folder::{Folder, RunAs};
use super::process::{spawn, tail};

const START: Duration = Duration::from_secs(20);

/// What a scene needs of its Redis.
#[derive(Clone, Debug, Default)]
pub struct CacheOptions {
    /// `redis-server` or `valkey-server`.
    pub program: PathBuf,
    /// Lines of its configuration: name and value.
    pub settings: Vec<(&'static str, String)>,
    /// Files beside its configuration, by their names: certificates.
    pub files: Vec<(&'static str, Vec<u8>)>,
    /// Listen on loopback too, on a free port: whoever asks for that sets a password, or a user with one.
    pub tcp: bool,
}

/// A running Redis; it stops and its folder goes when this value goes.
#[derive(Debug)]
pub struct Cache {
    child: Child,
    folder: Folder,
    port: Option<u16>,
}

impl Cache {
    /// Starts one without persistence, and waits until it answers.
    ///
    /// # Errors
    /// When there is no such program, or it doesn't come up.
    pub async fn start(options: &CacheOptions) -> Result<Self, DrillError> {
        let run_as = RunAs::find()?;
        let folder = Folder::create(run_as)?;
        let port = match options.tcp {
            true => Some(super::server::free_port()?),
            false => None,
        };
        let child = Self::spawn(options, &folder, port, run_as)?;
        let mut cache = Self {
            child,
            folder,
            port,
        };
        cache.wait_until_up().await?;
        Ok(cache)
    }

    fn spawn(
        options: &CacheOptions,
        folder: &Folder,
        port: Option<u16>,
        run_as: RunAs,
    ) -> Result<Child, DrillError> {
        let path = folder.path();
        let mut lines = format!(
            "port {}\nbind 127.0.0.1\nunixsocket {}\nunixsocketperm 700\ndir {}\nsave \"\"\nappendonly no\n",
            port.unwrap_or(0),
            path.join("redis.sock").display(),
            path.display()
        );
        for (name, value) in &options.settings {
            lines.push_str(&format!("{name} {value}\n"));
        }
        for (name, content) in &options.files {
            let file = path.join(name);
            std::fs::write(&file, content).map_err(DrillError::at(&file))?;
            run_as.give(&file)?;
        }
        let file = path.join("redis.conf");
        std::fs::write(&file, lines).map_err(DrillError::at(&file))?;
        run_as.give(&file)?;
        let log = path.join("server.log");
        spawn(
            &options.program,
            &[&file.display().to_string()],
            path,
            &log,
            run_as,
        )
    }

    async fn wait_until_up(&mut self) -> Result<(), DrillError> {
        let give_up = Instant::now() + START;
        while Instant::now() < give_up {
            if self.answers() {
                return Ok(());
            }
            if self
                .child
                .try_wait()
                .map_err(DrillError::io("redis"))?
                .is_some()
            {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Err(DrillError::NotUp {
            log: tail(&self.log_file()),
        })
    }

    /// Whatever it says to PING: it is there.
    fn answers(&self) -> bool {
        let Ok(mut stream) = UnixStream::connect(self.socket()) else {
            return false;
        };
        let mut byte = [0];
        stream.write_all(b"PING\r\n").is_ok() && stream.read(&mut byte).is_ok_and(|n| n == 1)
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("redis.sock")
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Its port on loopback, where it has one.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn log_file(&self) -> PathBuf {
        self.folder.path().join("server.log")
    }

    /// `unix:///…`, which only its owner reaches.
    pub fn url(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// Ends it at once, as a crash would.
    ///
    /// # Errors
    /// When it can't be ended.
    pub fn kill(&mut self) -> Result<(), DrillError> {
        self.child
            .kill()
            .and_then(|()| self.child.wait())
            .map_err(DrillError::io("redis"))?;
        Ok(())
    }

    /// Halts it, or lets it go on: a server that hangs.
    ///
    /// # Errors
    /// When it isn't there any more.
    pub fn halt(&self, halted: bool) -> Result<(), DrillError> {
        let signal = if halted { Signal::STOP } else { Signal::CONT };
        kill_process(Pid::from_child(&self.child), signal).map_err(|errno| DrillError::Io {
            what: "redis".into(),
            error: errno.into(),
        })
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        // Nothing is left that could be told of it; the parent-death signal is the second net.
        let _ = self.kill();
    }
}
