//! Which Redis a report is of. Never a password.

use serde::{Deserialize, Serialize};

/// As the server words it: `master` or `slave`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RedisRole {
    Primary,
    Replica,
}

/// How its keys are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RedisMode {
    Standalone,
    /// Every primary of the cluster is asked.
    Cluster,
    /// The primary that the sentinels name.
    Sentinel,
}

/// The Redis that was asked, with the login that got in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedisTarget {
    /// The name in `stanch.yaml`, where there is one.
    pub name: Option<String>,
    /// A host name, an address, or the path of a unix socket.
    pub host: String,
    /// `null` for a unix socket.
    pub port: Option<u16>,
    pub database: u32,
    /// `null`: the default user.
    pub user: Option<String>,
    pub tls: bool,
    /// `redis` or `valkey`; unknown where this login may not ask.
    pub product: Option<String>,
    pub server_version: Option<String>,
    pub role: Option<RedisRole>,
    pub mode: RedisMode,
    /// The nodes that were asked, as `host:port`.
    pub nodes: Vec<String>,
}

impl RedisTarget {
    /// `host:port`, or the configured name with it.
    pub fn label(&self) -> String {
        let place = match self.port {
            Some(port) => format!("{}:{port}", self.host),
            None => self.host.clone(),
        };
        match &self.name {
            Some(name) => format!("{name} ({place})"),
            None => place,
        }
    }
}
