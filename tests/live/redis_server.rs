//! A Redis of a test's own.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::harness::{eventually, path, say};

/// It ends with the test.
pub struct Redis(Child);

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn free_port() -> u16 {
    stanch::drill::free_port().expect("a free port")
}

/// `None` where this machine has none.
pub async fn redis(folder: &Path, port: u16, more: &[&str]) -> Option<Redis> {
    let port = port.to_string();
    let socket = folder.join("redis.sock");
    let child = Command::new("redis-server")
        .env_clear()
        .env("PATH", path())
        .args([
            "--port",
            &port,
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--unixsocketperm",
            "700",
        ])
        .args(["--dir", &folder.display().to_string()])
        .args(["--unixsocket", &socket.display().to_string()])
        .args(more)
        .stdout(Stdio::null())
        .spawn();
    let Ok(child) = child else {
        say("there is no redis-server here: left out");
        return None;
    };
    let redis = Redis(child);
    eventually("Redis listens", || socket.exists()).await;
    Some(redis)
}
