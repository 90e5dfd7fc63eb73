//! Which server a snapshot is of, as a person would name it. Never a password.

use serde::{Deserialize, Serialize};

/// Primary or standby, by `pg_is_in_recovery()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerRole {
    Primary,
    Standby,
}

/// The server that was asked, with the login that got in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The name in `stanch.yaml`, where there is one.
    pub name: Option<String>,
    /// A host name, an address, or the directory of a unix socket.
    pub host: String,
    pub port: u16,
    /// `-d` for the next command, where host, port, user and database aren't the whole way: a service, TLS files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conninfo: Option<String>,
    pub database: String,
    pub user: String,
    /// `server_version` as the server reports it; unknown where no connection was had.
    pub server_version: Option<String>,
    pub role: Option<ServerRole>,
    /// A pooler stands between: the process that answered isn't the one that was connected to.
    pub via_pooler: Option<bool>,
}

impl Target {
    /// `database@host:port`, or the configured name with it.
    pub fn label(&self) -> String {
        let place = format!("{}@{}:{}", self.database, self.host, self.port);
        match &self.name {
            Some(name) => format!("{name} ({place})"),
            None => place,
        }
    }
}
