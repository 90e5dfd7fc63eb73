//! Something in between that drops connections which say nothing for a while, as load balancers, proxies and firewalls do.
//! It says so to neither side.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

use super::error::DrillError;
use super::server::Server;

/// A way to the server that forgets silent connections.
pub struct Balancer {
    folder: PathBuf,
}

impl Balancer {
    /// Listens in a folder of the server's own.
    ///
    /// # Errors
    /// When it can't.
    pub fn start(server: &Server, idle: Duration) -> Result<Self, DrillError> {
        let folder = server.folder().join("lb");
        let failed = || DrillError::io(folder.display().to_string());
        std::fs::create_dir(&folder).map_err(failed())?;
        let name = format!(".s.PGSQL.{}", server.port());
        let listener = UnixListener::bind(folder.join(&name)).map_err(failed())?;
        let behind = server.folder().join(&name);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, behind.clone(), idle));
            }
        });
        Ok(Self { folder })
    }

    /// What clients take for the server's own folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Bytes both ways, until one side ends or neither says anything for so long.
async fn carry(mut client: UnixStream, behind: PathBuf, idle: Duration) {
    let Ok(mut server) = UnixStream::connect(behind).await else {
        return;
    };
    let (mut from_client, mut from_server) = ([0; 8192], [0; 8192]);
    loop {
        let next = async {
            tokio::select! {
                read = client.read(&mut from_client) => read.map(|n| (true, n)),
                read = server.read(&mut from_server) => read.map(|n| (false, n)),
            }
        };
        let written = match timeout(idle, next).await {
            Ok(Ok((true, n))) if n > 0 => server.write_all(&from_client[..n]).await,
            Ok(Ok((false, n))) if n > 0 => client.write_all(&from_server[..n]).await,
            _ => return,
        };
        if written.is_err() {
            return;
        }
    }
}
