//! A backend as `pg_stat_activity` tells of it.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::model::{Millis, Oid, Pid, Timestamp, Xid};

/// Who a backend is: pids are reused, so a pid alone names nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackendId {
    pub pid: Pid,
    /// Unknown where this login may not see it (no `pg_read_all_stats`).
    pub backend_start: Option<Timestamp>,
}

/// Declares a closed set of words that PostgreSQL may extend: what isn't known is kept as `Other`.
macro_rules! word_enum {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($variant,)+ Other(String) }

        impl $name {
            pub fn parse(word: &str) -> Self {
                match word { $($word => Self::$variant,)+ other => Self::Other(other.to_owned()) }
            }

            pub fn as_str(&self) -> &str {
                match self { $(Self::$variant => $word,)+ Self::Other(word) => word }
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer).map(|word| Self::parse(&word))
            }
        }
    };
}
pub(super) use word_enum;

word_enum! {
    /// `pg_stat_activity.state`. `Starting` exists from PostgreSQL 18.
    SessionState {
        Active = "active",
        Idle = "idle",
        IdleInTransaction = "idle in transaction",
        IdleInTransactionAborted = "idle in transaction (aborted)",
        FastpathFunctionCall = "fastpath function call",
        Disabled = "disabled",
        Starting = "starting",
    }
}

impl SessionState {
    /// In an open transaction with nothing running.
    pub fn is_idle_in_transaction(&self) -> bool {
        matches!(
            self,
            Self::IdleInTransaction | Self::IdleInTransactionAborted
        )
    }
}

word_enum! {
    /// `pg_stat_activity.backend_type` (PostgreSQL 10+).
    BackendType {
        Client = "client backend",
        ParallelWorker = "parallel worker",
        WalSender = "walsender",
        AutovacuumWorker = "autovacuum worker",
        AutovacuumLauncher = "autovacuum launcher",
        LogicalLauncher = "logical replication launcher",
        Startup = "startup",
        Checkpointer = "checkpointer",
        BackgroundWriter = "background writer",
        WalWriter = "walwriter",
    }
}

/// Where the client connected from: behind a pooler, the pooler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    /// `None` for a unix socket.
    pub addr: Option<String>,
    pub port: Option<i32>,
}

/// What a backend waits for, by PostgreSQL's names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitEvent {
    pub class: String,
    pub event: String,
}

/// One row of the activity section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Session {
    pub id: BackendId,
    /// The leader of a parallel query, for its workers (PostgreSQL 13+).
    pub leader_pid: Option<Pid>,
    pub datid: Option<Oid>,
    pub database: Option<String>,
    pub usesysid: Option<Oid>,
    pub user: Option<String>,
    /// The login is a superuser's: such a session is never signalled lightly.
    pub superuser: Option<bool>,
    pub application_name: Option<String>,
    pub client: Client,
    pub backend_type: Option<BackendType>,
    pub state: Option<SessionState>,
    pub wait: Option<WaitEvent>,
    pub xact_start: Option<Timestamp>,
    pub query_start: Option<Timestamp>,
    pub state_change: Option<Timestamp>,
    pub backend_xid: Option<Xid>,
    pub backend_xmin: Option<Xid>,
    /// `age(backend_xmin)` and `age(backend_xid)`, in transactions.
    pub xmin_age: Option<i32>,
    pub xid_age: Option<i32>,
    pub query: Option<String>,
    /// The server cut the text at `track_activity_query_size`.
    pub query_truncated: bool,
    /// This login may not see state, times, client and query of this session.
    pub hidden: bool,
}

impl Session {
    pub fn pid(&self) -> Pid {
        self.id.pid
    }

    /// A connection that takes one of `max_connections`: client backends, of every role.
    ///
    /// A hidden row doesn't tell its type; with a user and a database it is at most a client (it may be a parallel
    /// worker or a logical walsender), so counts that include hidden rows are upper bounds.
    pub fn takes_slot(&self) -> bool {
        match &self.backend_type {
            Some(kind) => *kind == BackendType::Client,
            None => self.usesysid.is_some() && self.datid.is_some(),
        }
    }

    /// One of the server's own processes, as opposed to a client of a person or an application.
    pub fn is_background(&self) -> bool {
        match &self.backend_type {
            Some(kind) => *kind != BackendType::Client,
            None => self.usesysid.is_none() || self.datid.is_none(),
        }
    }

    pub fn is_idle_in_transaction(&self) -> bool {
        self.state
            .as_ref()
            .is_some_and(SessionState::is_idle_in_transaction)
    }

    pub fn is_active(&self) -> bool {
        self.state == Some(SessionState::Active)
    }

    pub fn waits_on_lock(&self) -> bool {
        self.wait.as_ref().is_some_and(|wait| wait.class == "Lock")
    }

    /// A dump or a backup: its transaction lasts as long as it does.
    pub fn is_long_by_nature(&self) -> bool {
        let application = self.application_name.as_deref().unwrap_or("");
        ["pg_dump", "pg_basebackup"]
            .iter()
            .any(|name| application.starts_with(name))
    }

    pub fn xact_age(&self, now: Timestamp) -> Option<Millis> {
        self.xact_start.map(|at| at.age_at(now))
    }

    pub fn query_age(&self, now: Timestamp) -> Option<Millis> {
        self.query_start.map(|at| at.age_at(now))
    }

    pub fn state_age(&self, now: Timestamp) -> Option<Millis> {
        self.state_change.map(|at| at.age_at(now))
    }
}
