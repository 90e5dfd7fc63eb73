//! The events of a run.

use serde::{Deserialize, Serialize};

use crate::model::{Outcome, Signal, Timestamp};

/// One line of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub seq: u64,
    /// By the clock of the machine that acts.
    pub at: Timestamp,
    /// SHA-256 of the line before; empty in the first.
    pub prev: String,
    #[serde(flatten)]
    pub event: Event,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum Event {
    RunStart {
        /// `pg terminate`, `pg cancel`, `pg rollback-prepared`.
        what: String,
        /// `database@host:port`, or the configured name.
        target: String,
        login: String,
        operator: String,
        version: String,
        /// The snapshot that justifies what follows, beside this file.
        evidence: String,
    },
    /// A runbook, as it was when it began: its own text first, then those that it includes.
    Book {
        id: String,
        sha256: String,
        inputs: std::collections::BTreeMap<String, String>,
        #[serde(default)]
        texts: Vec<String>,
        /// Where it was read; built-in ones have none.
        #[serde(default)]
        file: Option<String>,
    },
    /// Somebody goes on with a run that was interrupted; with a changed book, where it was.
    Resumed {
        operator: String,
        version: String,
        sha256: String,
        changed: bool,
        /// Of the changed book.
        #[serde(default)]
        texts: Vec<String>,
    },
    StepStart {
        step: String,
    },
    /// What a person answered, or what stands in the book for nobody.
    Answer {
        step: String,
        answer: String,
        attended: bool,
    },
    /// What the book computes of what a step found: it stands, also when the run is resumed.
    Computed {
        step: String,
        vars: serde_json::Map<String, serde_json::Value>,
    },
    Expectation {
        step: String,
        that: String,
        held: bool,
        /// What a person was told where it isn't so; older journals don't have it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        say: Option<String>,
    },
    /// A snapshot that was kept.
    Captured {
        step: String,
        file: String,
    },
    /// What was written down.
    Note {
        step: String,
        question: String,
        text: String,
    },
    /// The person left a step out, and why.
    Skipped {
        step: String,
        reason: String,
    },
    StepEnd {
        step: String,
        came: String,
        /// The step that it goes on with; none at an end of the book.
        #[serde(default)]
        next: Option<String>,
    },
    BookEnd {
        end: String,
    },
    /// The candidates as the person saw them.
    Candidates {
        signals: Vec<Signal>,
        refused: Vec<Left>,
    },
    /// How it was confirmed: `typed`, `--yes`; or that it wasn't.
    Confirmed {
        how: String,
    },
    NotConfirmed {
        why: String,
    },
    /// Before the signal goes out.
    EffectIntent {
        n: usize,
        effect: Effect,
    },
    EffectResult {
        n: usize,
        #[serde(flatten)]
        outcome: Outcome,
        waited_ms: u64,
    },
    /// A command has ended; without a code: how else.
    CommandResult {
        n: usize,
        exit: Option<i32>,
        why: String,
        /// It could be started at all.
        started: bool,
    },
    /// An effect whose outcome wasn't known when the run was resumed: what the server says, and what the person made of it
    /// (`done`, `again`).
    EffectSeen {
        n: usize,
        seen: String,
        answer: String,
    },
    /// A batch is over: what the server said before the next one.
    BatchEnd {
        measured: String,
    },
    /// The operator stopped it, or a condition was reached.
    Stopped {
        why: String,
    },
    RunEnd {
        code: u8,
    },
}

/// One that was left alone by the guard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    pub pid: i32,
    pub why: String,
}

/// What is done to the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Effect {
    Signal(Signal),
    RollbackPrepared {
        gid: String,
        database: String,
    },
    /// A setting of a Redis, for a while.
    RedisSetting {
        node: String,
        /// Of the server that was changed, whatever its address is; journals of before have none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run_id: Option<String>,
        name: String,
        before: String,
        after: String,
    },
    /// A HOTKEYS session of a Redis, which ends by itself.
    RedisSession {
        node: String,
        seconds: u64,
    },
    /// A command of a runbook, as it was started.
    Command {
        argv: Vec<String>,
    },
}
