//! What is done to a server, and how it ends.

use serde::{Deserialize, Serialize};

use crate::model::{BackendId, Millis, Oid, Timestamp};

/// What a session is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// `pg_cancel_backend`: ends the statement.
    Cancel,
    /// `pg_terminate_backend`: ends the session.
    Terminate,
}

impl Verb {
    pub fn word(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Terminate => "terminate",
        }
    }
}

/// One signal to one session, with everything that is checked again in the statement that sends it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signal {
    pub verb: Verb,
    #[serde(flatten)]
    pub id: BackendId,
    /// The transaction that made it a candidate: another one of the same session isn't meant.
    pub xact_start: Option<Timestamp>,
    /// The statement that a cancel is for, which must still be running.
    pub query_start: Option<Timestamp>,
    /// Whose it is and in which database.
    pub usesysid: Option<Oid>,
    pub datid: Option<Oid>,
    /// Names that it must not have taken on since.
    pub protected_applications: Vec<String>,
    /// Also while it waits for a synchronous standby.
    pub allow_syncrep: bool,
    /// Since when it does nothing in its transaction, where it was chosen for that.
    pub state_change: Option<Timestamp>,
}

/// How it ended. Never one word for all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome", content = "reason")]
pub enum Outcome {
    /// The session (of a cancel: the statement) is no more, and this is seen.
    Gone,
    /// Of a setting: it has the value that was wanted, and this is seen.
    Set,
    /// Not what was approved any more, so it wasn't touched: ended, or the pid is somebody else's by now.
    Changed(String),
    /// By the guard, or by the server: its own words.
    Refused(String),
    /// The signal was sent, and it is still there after the wait.
    StillAlive(String),
    Failed(String),
    /// Not tried: the operator stopped, or the condition was reached.
    Skipped(String),
}

impl Outcome {
    pub fn word(&self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Set => "set",
            Self::Changed(_) => "changed",
            Self::Refused(_) => "refused",
            Self::StillAlive(_) => "still_alive",
            Self::Failed(_) => "failed",
            Self::Skipped(_) => "skipped",
        }
    }

    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Gone | Self::Set => None,
            Self::Changed(why)
            | Self::Refused(why)
            | Self::StillAlive(why)
            | Self::Failed(why)
            | Self::Skipped(why) => Some(why),
        }
    }

    /// What was wanted didn't come about.
    pub fn is_fault(&self) -> bool {
        matches!(
            self,
            Self::Refused(_) | Self::StillAlive(_) | Self::Failed(_)
        )
    }
}

/// An outcome with the session that it is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    pub verb: Verb,
    pub id: BackendId,
    pub outcome: Outcome,
    /// How long it was waited for.
    pub waited: Millis,
}
