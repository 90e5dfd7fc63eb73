//! What a server's log tells of, by structure: never its whole text.

use serde::{Deserialize, Serialize};

use crate::model::{LockMode, LogFormat, Millis, Pid, Timestamp};

/// One thing in a log that a postmortem's timeline shows; what is alike and close together is one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogMoment {
    pub at: Timestamp,
    /// The last of them; the same as `at` where there is one.
    pub until: Timestamp,
    pub count: u64,
    /// SQLSTATE, where the log has it or the structure gives it.
    pub sqlstate: Option<String>,
    /// One line in plain words, redacted: `deadlock: transfer-a and transfer-b on accounts`.
    pub what: String,
}

impl LogMoment {
    /// How the server's own end is told, and its beginning.
    pub const CRASHED: &'static str = "a server process crashed";
    pub const RECOVERS: &'static str = "server recovers: it was interrupted";
    pub const STARTING: &'static str = "server starting";
}

/// What is said of a log that a capture was to read at its end, which never came.
pub const LOG_UNREAD: &str =
    "not read: the capture was cut off before its end, when it would have been";

/// How a log begins.
#[derive(Clone, Copy, Debug)]
pub struct LogStart {
    pub format: LogFormat,
    /// The time of its first line that has one, and that line's hash.
    pub first: Option<Timestamp>,
    pub line: u64,
}

/// One event of a server's log. Only what it is about, never the text of a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEvent {
    /// `None`: the lines carry no time.
    pub at: Option<Timestamp>,
    /// The process that wrote it.
    pub pid: Option<Pid>,
    pub session: LogSession,
    pub sqlstate: Option<String>,
    pub what: LogWhat,
}

/// Whose process it is, as far as the lines tell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogSession {
    pub user: Option<String>,
    pub database: Option<String>,
    pub application_name: Option<String>,
}

impl LogObject {
    /// PostgreSQL's name of the lock type; of other kinds none.
    pub fn locktype(&self) -> Option<&'static str> {
        Some(match self {
            Self::Transaction { .. } => "transactionid",
            Self::VirtualTransaction { .. } => "virtualxid",
            Self::Relation { .. } => "relation",
            Self::Tuple { .. } => "tuple",
            Self::Advisory { .. } => "advisory",
            Self::Other { .. } => return None,
        })
    }

    /// A row is what is really waited for.
    pub fn is_row(&self) -> bool {
        matches!(self, Self::Transaction { .. } | Self::Tuple { .. })
    }
}

impl LogSession {
    /// What is known here stays; what isn't comes from the other.
    pub fn or(self, other: &Self) -> Self {
        let pick = |mine: Option<String>, theirs: &Option<String>| mine.or_else(|| theirs.clone());
        Self {
            user: pick(self.user, &other.user),
            database: pick(self.database, &other.database),
            application_name: pick(self.application_name, &other.application_name),
        }
    }

    pub fn is_known(&self) -> bool {
        self.user.is_some() || self.database.is_some() || self.application_name.is_some()
    }
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LogWhat {
    /// The server broke a circle of waiting: this process is the victim.
    Deadlock(LogDeadlock),
    /// The same where the log has nothing but the error's first line.
    BareDeadlock,
    /// A line of log_lock_waits (or, from 18 on, log_lock_failures).
    LockWait(LogLockWait),
    /// A login was refused: no slot of the kind that the SQLSTATE's message names.
    TooManyConnections,
    /// A statement was ended.
    Canceled {
        why: LogCancellation,
    },
    /// A session was ended.
    Terminated {
        why: LogTermination,
    },
    Server(LogServer),
}

/// The circle as the server wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogDeadlock {
    /// Each waits for the next, the last for the first.
    pub edges: Vec<LogEdge>,
    /// What lines shortly before tell of the processes in the circle.
    pub before: Vec<LogBefore>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEdge {
    pub pid: Pid,
    pub mode: LockMode,
    pub on: LogObject,
    pub blocked_by: Pid,
    /// As the server wrote it, with secrets reduced and the end of a very long one cut.
    pub statement: Option<String>,
    /// Where it stands, and inside of a function the statement that waits: the victim's by the report, the others' by
    /// the lines of their own waits.
    pub place: Option<LogPlace>,
    pub inner: Option<String>,
}

/// A process of the circle, in lines before the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogBefore {
    pub pid: Pid,
    pub session: LogSession,
    /// Statements of its transaction that the log has, oldest first.
    pub statements: Vec<String>,
}

/// What is waited for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "locktype", rename_all = "snake_case")]
pub enum LogObject {
    /// A row, as a rule: whoever wants it waits for the transaction that wrote it last.
    Transaction {
        xid: u32,
    },
    VirtualTransaction {
        vxid: String,
    },
    Relation {
        relation: u32,
        database: u32,
    },
    /// A row too: the queue for one that somebody else waits for.
    Tuple {
        relation: u32,
        database: u32,
    },
    Advisory {
        database: u32,
        key: [u32; 3],
    },
    /// Another kind, in the server's words.
    Other {
        text: String,
    },
}

/// The row and the relation that a CONTEXT names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPlace {
    /// Of a row, or of an index where a key is inserted.
    pub relation: String,
    pub page: u32,
    pub tuple: u32,
    /// A key is inserted: the name is the index's, or the table's by ON CONFLICT.
    pub index: bool,
    /// It is the check of a foreign key that waits, not the statement itself.
    pub foreign_key: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLockWait {
    pub pid: Pid,
    pub mode: LockMode,
    pub on: LogObject,
    pub stage: LogWaitStage,
    pub waited_ms: Option<Millis>,
    /// 0: a prepared transaction.
    pub holders: Vec<Pid>,
    /// Who waits for it, in order.
    pub queue: Vec<Pid>,
    pub place: Option<LogPlace>,
    pub statement: Option<String>,
    /// The statement of a function that waits, where it is one of its.
    pub inner: Option<String>,
}

/// How far a wait has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogWaitStage {
    StillWaiting,
    Acquired,
    /// It is part of a deadlock, and the victim.
    Deadlock,
    /// The server resolved it by another order in the queue.
    Avoided,
    /// It was given up.
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogCancellation {
    StatementTimeout,
    LockTimeout,
    /// By a person or a program.
    Request,
    /// On a standby: it stood in the way of replay.
    Recovery,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogTermination {
    /// pg_terminate_backend, or a fast shutdown.
    Administrator,
    IdleInTransaction,
    IdleSession,
    TransactionTimeout,
    /// Another process crashed, and all are started anew.
    Crash,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogServer {
    Starting,
    Ready,
    ShutdownRequested,
    ShutDown,
    /// A process died by a signal.
    Crashed,
    Interrupted,
    /// What it was interrupted in is recovered: a second line on the same, as a rule.
    Recovering,
    /// A login was refused by the limit of its role (the session's user) or of its database.
    RoleLimit,
    DatabaseLimit,
}
