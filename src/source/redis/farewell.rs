//! The last words of a server that lets nobody in.

use std::time::Duration;

use redis::{ConnectionAddr, ConnectionInfo};
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpStream, UnixStream};

use super::error::Refused;
use super::fleet::Limits;

/// What a server says before it hangs up on whoever connects: that it is full, or in protected mode. Nothing was asked, so
/// the client has dropped it.
pub(super) async fn farewell(info: &ConnectionInfo, limits: Limits) -> Option<Refused> {
    let first = async {
        let mut said = [0; 512];
        let length = match info.addr() {
            ConnectionAddr::Tcp(host, port) => {
                let mut link = TcpStream::connect((host.as_str(), *port)).await.ok()?;
                link.read(&mut said).await.ok()?
            }
            ConnectionAddr::Unix(path) => {
                let mut link = UnixStream::connect(path).await.ok()?;
                link.read(&mut said).await.ok()?
            }
            _ => return None,
        };
        let said = String::from_utf8_lossy(&said[..length]).into_owned();
        let line = said.strip_prefix('-')?.lines().next()?;
        let sentence = line.split(". ").next().unwrap_or(line);
        Some(Refused::Other(sentence.to_owned()))
    };
    let limit = limits.answer.min(Duration::from_secs(1));
    tokio::time::timeout(limit, first).await.ok()?
}
