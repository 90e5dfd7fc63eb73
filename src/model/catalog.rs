//! Rows of the catalogs that reports need beside activity and locks.

use serde::{Deserialize, Serialize};

use crate::model::{Oid, Pid, Timestamp, Xid};

/// A database, with its limit and what the statistics count in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Database {
    pub oid: Oid,
    pub name: String,
    /// `pg_encoding_to_char(encoding)`: in which encoding its query texts are.
    pub encoding: String,
    /// `None`: no limit.
    pub connection_limit: Option<u32>,
    /// Backends in it by the statistics, workers included; seen by every login.
    pub backends: i32,
    /// Since `stats_reset`; `None` in files of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadlocks: Option<i64>,
    /// `None`: never, or in a file of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats_reset: Option<Timestamp>,
}

/// A login or group role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Role {
    pub oid: Oid,
    pub name: String,
    pub superuser: bool,
    /// `None`: no limit.
    pub connection_limit: Option<u32>,
}

/// A relation of the current database (or a shared one) that a lock is on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relation {
    pub oid: Oid,
    pub schema: String,
    pub name: String,
}

/// `pg_prepared_xacts`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparedXact {
    pub xid: Xid,
    /// `age(transaction)`, in transactions.
    pub xid_age: i32,
    pub gid: String,
    pub prepared: Timestamp,
    pub owner: Option<String>,
    pub datid: Oid,
    pub database: Option<String>,
}

/// A row of `pg_settings`, as it was before this session's own local timeouts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    pub name: String,
    /// In raw units of `unit` (`reset_val`).
    pub value: String,
    pub unit: Option<String>,
    pub boot_value: Option<String>,
    /// `None` where it is this session's own local value that hides it.
    pub source: Option<String>,
    pub pending_restart: bool,
}

/// `ALTER ROLE … SET`, `ALTER DATABASE … SET` (`pg_db_role_setting`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Override {
    /// `None`: every database.
    pub datid: Option<Oid>,
    /// `None`: every role.
    pub roleid: Option<Oid>,
    pub name: String,
    /// As written, with or without a unit.
    pub value: String,
}

/// A replication slot, for what it holds back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    pub name: String,
    pub slot_type: String,
    pub datid: Option<Oid>,
    pub active: bool,
    pub active_pid: Option<Pid>,
    pub xmin: Option<Xid>,
    pub xmin_age: Option<i32>,
    pub catalog_xmin: Option<Xid>,
    pub catalog_xmin_age: Option<i32>,
}
