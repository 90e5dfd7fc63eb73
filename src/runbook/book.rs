//! A book as it is walked: every name with its place, so that a fault can point at it.

use std::time::Duration;

use super::cond::Condition;
use super::fault::Place;
use crate::model::{FindingId, Verb};

/// A name or text, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    pub text: String,
    pub place: Place,
}

#[derive(Debug)]
pub struct Book {
    pub id: Named,
    pub title: String,
    pub owner: Option<String>,
    pub inputs: Vec<Input>,
    /// For the whole run.
    pub wall: Option<Duration>,
    /// For the whole run.
    pub effects: Effects,
    pub steps: Vec<Step>,
}

/// At most so many signals of each kind in one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effects {
    pub terminate: usize,
    pub cancel: usize,
}

impl Effects {
    /// Where the book doesn't say.
    pub const DEFAULT: Self = Self {
        terminate: 10,
        cancel: 10,
    };

    pub fn of(self, verb: Verb) -> usize {
        match verb {
            Verb::Terminate => self.terminate,
            Verb::Cancel => self.cancel,
        }
    }
}

/// A value that is given before the first step.
#[derive(Debug)]
pub struct Input {
    pub name: Named,
    pub kind: InputKind,
    pub default: Option<String>,
    pub help: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    Duration,
    Number,
    Text,
    Bool,
}

#[derive(Debug)]
pub struct Step {
    pub id: Named,
    pub title: Option<String>,
    pub why: Option<String>,
    pub kind: Kind,
    pub expect: Vec<Expect>,
    pub needs: Vec<Named>,
    pub confirm: Option<Confirm>,
    /// The answer where nobody is there to ask.
    pub unattended: Option<Named>,
    pub on_timeout: Option<Named>,
    pub goto: Option<Named>,
    pub end: Option<End>,
}

#[derive(Debug)]
pub enum Kind {
    Ask(Ask),
    /// A built-in report.
    Query(Named),
    /// A finding of triage.
    Check(FindingId),
    Decide(Vec<Branch>),
    /// The snapshot of now, kept.
    Capture,
    Act(Act),
    Poll(Poll),
    Wait(Duration),
    Note(Note),
    /// Only an end, or a jump.
    Nothing,
}

#[derive(Debug)]
pub struct Ask {
    pub text: String,
    pub choices: Vec<(Named, String)>,
}

/// One line of a `decide`; without a condition it is the else.
#[derive(Debug)]
pub struct Branch {
    pub condition: Option<Condition>,
    pub to: Named,
}

#[derive(Debug)]
pub struct Act {
    pub verb: Verb,
    pub select: Select,
    pub max: usize,
    pub batch: usize,
    pub pause: Duration,
}

/// Which sessions.
#[derive(Debug, Default)]
pub struct Select {
    pub idle_in_transaction: bool,
    pub roots: bool,
    pub longer_than: Option<Value>,
    pub users: Vec<String>,
    pub applications: Vec<String>,
}

/// A time that stands in the book, or an input's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Time(Duration),
    Input(Named),
}

#[derive(Debug)]
pub struct Poll {
    /// The query that is asked again.
    pub repeat: Named,
    pub until: Condition,
    pub every: Duration,
    pub timeout: Duration,
}

#[derive(Debug)]
pub struct Note {
    /// What people have to write down.
    pub ask: Vec<String>,
    pub actions: Vec<ActionItem>,
}

/// What somebody does afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionItem {
    pub title: String,
    pub owner: String,
    pub due: String,
}

#[derive(Debug)]
pub struct Expect {
    pub that: Condition,
    /// `warn` says it and goes on; else the run stops there.
    pub warn: bool,
    pub say: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Confirm {
    /// A reason has to be given.
    pub reason: bool,
}

/// How a book ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Resolved,
    FalseAlarm,
    Escalated,
    Failed,
}

impl End {
    pub const ALL: [Self; 4] = [
        Self::Resolved,
        Self::FalseAlarm,
        Self::Escalated,
        Self::Failed,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Self::Resolved => "resolved",
            Self::FalseAlarm => "false_alarm",
            Self::Escalated => "escalated",
            Self::Failed => "failed",
        }
    }
}

impl Book {
    /// It changes something on a server.
    pub fn acts(&self) -> bool {
        self.steps
            .iter()
            .any(|step| matches!(step.kind, Kind::Act(_)))
    }

    pub fn step(&self, id: &str) -> Option<usize> {
        self.steps.iter().position(|step| step.id.text == id)
    }
}

impl Step {
    /// The kind's key in the file.
    pub fn kind_word(&self) -> &'static str {
        match &self.kind {
            Kind::Ask(_) => "ask",
            Kind::Query(_) => "query",
            Kind::Check(_) => "check",
            Kind::Decide(_) => "decide",
            Kind::Capture => "capture",
            Kind::Act(_) => "act",
            Kind::Poll(_) => "poll",
            Kind::Wait(_) => "wait",
            Kind::Note(_) => "note",
            Kind::Nothing => "end",
        }
    }
}
