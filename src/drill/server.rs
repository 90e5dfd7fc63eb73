//! One throwaway PostgreSQL server.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use rand::RngExt as _;
use rustix::process::{Pid, Signal, kill_process};

use super::error::DrillError;
use super::folder::{Folder, RunAs};
use super::process::{postmaster, run, spawn, tail};
use super::standby::copy;
use crate::model::Secret;
use crate::source::postgres::ConnSpec;
use crate::source::postgres::connect::attempt;

const START: Duration = Duration::from_secs(60);
const STOP: Duration = Duration::from_secs(60);

/// What a scene needs of its server.
#[derive(Clone, Debug, Default)]
pub struct ServerOptions {
    /// The folder with `postgres` and `initdb`.
    pub bin_dir: PathBuf,
    /// Lines of `postgresql.conf`: name and value.
    pub settings: Vec<(&'static str, String)>,
    /// Listen on loopback too, behind a random SCRAM password.
    pub tcp: bool,
    /// Lines of `pg_hba.conf` that stand before the drill's own.
    pub hba: &'static str,
    /// Run as a hot standby of this server.
    pub standby_of: Option<ConnSpec>,
}

/// A running server; it stops and its folder goes when this value goes.
#[derive(Debug)]
pub struct Server {
    child: Child,
    // After `child`: the folder goes last.
    folder: Folder,
    bin_dir: PathBuf,
    port: u16,
    password: Secret,
}

/// The name of the superuser of every drill.
const SUPERUSER: &str = "postgres";

impl Server {
    /// Creates, starts, and waits until it lets in.
    ///
    /// # Errors
    /// When there is no server program, or it doesn't come up within a minute.
    pub async fn start(options: &ServerOptions) -> Result<Self, DrillError> {
        let run_as = RunAs::find()?;
        let folder = Folder::create(run_as)?;
        let data = folder.path().join("data");
        let password: String = {
            let mut random = rand::rng();
            (0..24)
                .map(|_| char::from(random.sample(rand::distr::Alphanumeric)))
                .collect()
        };
        match &options.standby_of {
            None => init(&options.bin_dir, folder.path(), &data, &password, run_as)?,
            Some(primary) => {
                copy(&options.bin_dir, folder.path(), &data, primary, run_as).await?;
            }
        }
        let port = free_port()?;
        configure(&data, folder.path(), options, port)?;
        let child = postmaster(&options.bin_dir, folder.path(), run_as)?;
        let mut server = Self {
            child,
            folder,
            bin_dir: options.bin_dir.clone(),
            port,
            password: Secret::new(password),
        };
        server.wait_until_up().await?;
        Ok(server)
    }

    async fn wait_until_up(&mut self) -> Result<(), DrillError> {
        let give_up = Instant::now() + START;
        while Instant::now() < give_up {
            if let Ok(connected) = attempt(&self.spec(SUPERUSER, "postgres"), START).await {
                connected.close().await;
                return Ok(());
            }
            if self
                .child
                .try_wait()
                .map_err(DrillError::io("postgres"))?
                .is_some()
            {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Err(DrillError::NotUp {
            log: tail(&self.log_file()),
        })
    }

    /// How to get in over the socket, which only its owner reaches.
    pub fn spec(&self, user: &str, database: &str) -> ConnSpec {
        ConnSpec::new(&text(self.folder.path()), self.port, user, database)
    }

    /// How the superuser gets in over loopback, with the random password.
    pub fn tcp_spec(&self, database: &str) -> ConnSpec {
        ConnSpec {
            host: "127.0.0.1".into(),
            password: Some(self.password.clone()),
            ..self.spec(SUPERUSER, database)
        }
    }

    pub fn superuser(&self) -> &'static str {
        SUPERUSER
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn bin_dir(&self) -> &Path {
        &self.bin_dir
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn log_file(&self) -> PathBuf {
        self.folder.path().join("server.log")
    }

    /// `postgresql://…`, as psql takes it.
    pub fn url(&self, user: &str, database: &str) -> String {
        format!(
            "postgresql://{user}@/{database}?host={}&port={}",
            text(self.folder.path()),
            self.port
        )
    }

    /// The postmaster's pid.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it at once, as a crash would.
    ///
    /// # Errors
    /// When it doesn't end.
    pub fn stop(&mut self) -> Result<(), DrillError> {
        // Immediate shutdown: its sessions are cut, nothing is kept.
        self.end(Signal::QUIT)
    }

    /// Shuts it down in order and starts it again on what it has written.
    ///
    /// # Errors
    /// When it doesn't end, or doesn't come back.
    pub async fn restart(mut self) -> Result<Self, DrillError> {
        self.end(Signal::INT)?;
        self.child = postmaster(&self.bin_dir, self.folder.path(), RunAs::find()?)?;
        self.wait_until_up().await?;
        Ok(self)
    }

    fn end(&mut self, signal: Signal) -> Result<(), DrillError> {
        if self
            .child
            .try_wait()
            .map_err(DrillError::io("postgres"))?
            .is_some()
        {
            return Ok(());
        }
        kill_process(Pid::from_child(&self.child), signal).map_err(|errno| DrillError::Io {
            what: "postgres".into(),
            error: errno.into(),
        })?;
        let give_up = Instant::now() + STOP;
        while Instant::now() < give_up {
            if self
                .child
                .try_wait()
                .map_err(DrillError::io("postgres"))?
                .is_some()
            {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.child
            .kill()
            .and_then(|()| self.child.wait())
            .map_err(DrillError::io("postgres"))?;
        Ok(())
    }

    /// Starts a program beside the server, as the same user and with the same life: it dies with the drill.
    ///
    /// # Errors
    /// When it can't be started.
    pub fn spawn_beside(
        &self,
        program: &Path,
        args: &[&str],
        log: &str,
    ) -> Result<Child, DrillError> {
        spawn(
            program,
            args,
            self.folder.path(),
            &self.folder.path().join(log),
            RunAs::find()?,
        )
    }

    /// Writes a file into the drill's folder, owned by whoever runs the server.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn write_file(&self, name: &str, content: &str) -> Result<PathBuf, DrillError> {
        let path = self.folder.path().join(name);
        fs::write(&path, content).map_err(DrillError::at(&path))?;
        RunAs::find()?.give(&path)?;
        Ok(path)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nothing is left that could be told of it; the parent-death signal is the second net.
        let _ = self.stop();
    }
}

fn init(
    bin_dir: &Path,
    folder: &Path,
    data: &Path,
    password: &str,
    run_as: RunAs,
) -> Result<(), DrillError> {
    let password_file = folder.join("password");
    fs::write(&password_file, password).map_err(DrillError::at(&password_file))?;
    run_as.give(&password_file)?;
    let pwfile = format!("--pwfile={}", text(&password_file));
    let args = [
        "-D",
        &text(data),
        "-U",
        SUPERUSER,
        "-A",
        "trust",
        "-N",
        "-E",
        "UTF8",
        "--locale=C",
        &pwfile,
    ];
    run(&bin_dir.join("initdb"), &args, folder, run_as)?;
    fs::remove_file(&password_file).map_err(DrillError::at(&password_file))
}

fn configure(
    data: &Path,
    folder: &Path,
    options: &ServerOptions,
    port: u16,
) -> Result<(), DrillError> {
    let listen = if options.tcp { "127.0.0.1" } else { "" };
    let mut conf = format!(
        "listen_addresses = '{listen}'\nport = {port}\nunix_socket_directories = '{}'\nfsync = off\n\
         full_page_writes = off\nshared_buffers = '32MB'\nlogging_collector = off\nlog_line_prefix = '%m [%p] %q%u@%d/%a '\n",
        text(folder)
    );
    for (name, value) in &options.settings {
        conf.push_str(&format!("{name} = '{value}'\n"));
    }
    // Whoever reaches the socket has passed the folder's mode; loopback is open to all users of the machine.
    let hba = format!(
        "{}\nlocal all all trust\nlocal replication all trust\nhost all all 127.0.0.1/32 scram-sha-256\n",
        options.hba
    );
    for (name, content, append) in [
        ("postgresql.conf", conf.as_str(), true),
        ("pg_hba.conf", &hba, false),
    ] {
        let path = data.join(name);
        let old = if append {
            fs::read_to_string(&path).map_err(DrillError::at(&path))?
        } else {
            String::new()
        };
        fs::write(&path, format!("{old}\n{content}")).map_err(DrillError::at(&path))?;
    }
    Ok(())
}

/// A port that is free now, and that no outgoing connection is given before the server binds it: those come from 32768 on
/// (Linux's `ip_local_port_range`).
///
/// # Errors
/// When none of a hundred is free.
pub fn free_port() -> Result<u16, DrillError> {
    let mut random = rand::rng();
    let mut last = None;
    for _ in 0..100 {
        let port = random.random_range(15_000..30_000);
        match TcpListener::bind(("127.0.0.1", port)) {
            Ok(_) => return Ok(port),
            Err(error) => last = Some(error),
        }
    }
    let error = last.unwrap_or_else(|| std::io::ErrorKind::AddrInUse.into());
    Err(DrillError::io("a free port")(error))
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
