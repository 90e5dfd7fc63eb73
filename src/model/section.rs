//! One part of a snapshot: each may fail alone, and what failed is said.

use serde::{Deserialize, Serialize};

/// What became of one part of a round of reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "status", content = "value")]
pub enum Section<T> {
    /// Read whole.
    Collected(T),
    /// Not read, and why: not asked for by this report, or no such thing on this server.
    Skipped(String),
    /// Asked for and refused: the server's SQLSTATE (or the tool's own word) and message.
    Failed { code: String, message: String },
}

impl<T> Section<T> {
    pub fn skipped(why: impl Into<String>) -> Self {
        Self::Skipped(why.into())
    }

    pub fn get(&self) -> Option<&T> {
        match self {
            Self::Collected(value) => Some(value),
            Self::Skipped(_) | Self::Failed { .. } => None,
        }
    }

    pub fn get_mut(&mut self) -> Option<&mut T> {
        match self {
            Self::Collected(value) => Some(value),
            Self::Skipped(_) | Self::Failed { .. } => None,
        }
    }

    pub fn status(&self) -> &'static str {
        match self {
            Self::Collected(_) => "collected",
            Self::Skipped(_) => "skipped",
            Self::Failed { .. } => "failed",
        }
    }

    /// Why there is no value: `None` for a section that was read.
    pub fn why(&self) -> Option<String> {
        match self {
            Self::Collected(_) => None,
            Self::Skipped(why) => Some(why.clone()),
            Self::Failed { code, message } => Some(format!("{message} ({code})")),
        }
    }
}

impl<T> Section<Vec<T>> {
    /// The rows, or none where there are none to be had.
    pub fn rows(&self) -> &[T] {
        self.get().map_or(&[], Vec::as_slice)
    }
}

/// The parts of a snapshot by name: a report says which it needs, coverage says what became of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    Server,
    Login,
    Activity,
    Databases,
    Roles,
    Locks,
    Blocking,
    Relations,
    Prepared,
    Settings,
    Overrides,
    Slots,
}

impl Part {
    pub const ALL: [Self; 12] = [
        Self::Server,
        Self::Login,
        Self::Activity,
        Self::Databases,
        Self::Roles,
        Self::Locks,
        Self::Blocking,
        Self::Relations,
        Self::Prepared,
        Self::Settings,
        Self::Overrides,
        Self::Slots,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Login => "login",
            Self::Activity => "activity",
            Self::Databases => "databases",
            Self::Roles => "roles",
            Self::Locks => "locks",
            Self::Blocking => "blocking",
            Self::Relations => "relations",
            Self::Prepared => "prepared",
            Self::Settings => "settings",
            Self::Overrides => "overrides",
            Self::Slots => "slots",
        }
    }
}
