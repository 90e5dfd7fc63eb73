//! A book as it is walked: every name with its place, so that a fault can point at it.

use std::time::Duration;

use super::cond::{Condition, Expression};
use super::fault::Place;
use super::mask::masked;
use super::text::Text;
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
    /// Its own text and those of the books that it includes: a resumed run is of these and no others.
    pub texts: Vec<String>,
}

/// At most so many signals of each kind, and commands that change something, in one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effects {
    pub terminate: usize,
    pub cancel: usize,
    pub run: usize,
}

impl Effects {
    /// Where the book doesn't say.
    pub const DEFAULT: Self = Self {
        terminate: 10,
        cancel: 10,
        run: 10,
    };

    pub fn of(self, verb: Verb) -> usize {
        match verb {
            Verb::Terminate => self.terminate,
            Verb::Cancel => self.cancel,
        }
    }
}

/// A value that is given before the first step.
#[derive(Clone, Debug)]
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

#[derive(Clone, Debug)]
pub struct Step {
    /// Of a step of an included book: `STEP.INNER`.
    pub id: Named,
    /// The book that it is of: empty, or the including step's id with a dot. Its conditions see that book's steps only.
    pub book: String,
    pub title: Option<Text>,
    pub why: Option<Text>,
    pub kind: Kind,
    pub expect: Vec<Expect>,
    pub set: Vec<(Named, Expression)>,
    pub needs: Vec<Named>,
    pub confirm: Option<Confirm>,
    /// The answer where nobody is there to ask.
    pub unattended: Option<Named>,
    /// Longer than this the step isn't waited for.
    pub timeout: Option<Duration>,
    pub on_error: Vec<OnError>,
    pub on_timeout: Option<Named>,
    pub goto: Option<Named>,
    pub end: Option<End>,
    /// Where an included book ended with it: how.
    pub leaves: Option<End>,
}

/// Where it goes on after an error; the first that fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnError {
    /// The server's SQLSTATE; `None`: whatever it is.
    pub code: Option<String>,
    pub to: Named,
}

#[derive(Clone, Debug)]
pub enum Kind {
    Ask(Ask),
    /// A built-in report.
    Query(Named),
    /// One statement that only reads.
    Sql(Sql),
    /// A finding of triage.
    Check(FindingId),
    /// A read-only report of Redis.
    Redis(Named),
    Decide(Vec<Branch>),
    /// The snapshot of now, kept.
    Capture,
    Act(Act),
    Command(Command),
    Poll(Poll),
    Wait(Duration),
    Note(Note),
    /// The steps that follow, down to its `STEP.end`, are another book's.
    Include(Include),
    /// Where an included book comes back.
    Back,
    /// Only an end, or a jump.
    Nothing,
}

/// `$1`, `$2`, … are bound, as texts.
#[derive(Clone, Debug)]
pub struct Sql {
    pub text: Named,
    pub args: Vec<Operand>,
}

/// A command of the person's machine, without a shell.
#[derive(Clone, Debug)]
pub struct Command {
    pub argv: Vec<Operand>,
    /// It changes something: it needs a yes, and is left out in a dry run.
    pub writes: bool,
}

/// A value that is bound or handed over whole: it stands in the book, or is looked up when it is needed.
#[derive(Clone, Debug)]
pub enum Operand {
    Fixed(String),
    Looked(Expression),
}

#[derive(Clone, Debug)]
pub struct Include {
    pub book: Named,
    pub set: Vec<(Named, Operand)>,
    /// Of the included book, once it is in its place.
    pub inputs: Vec<Input>,
}

#[derive(Clone, Debug)]
pub struct Ask {
    pub text: Text,
    pub choices: Vec<(Named, Text)>,
    /// Of the postmortem, that the answer belongs into.
    pub part: Option<&'static str>,
}

/// The parts of a postmortem that an answer may belong into; `none`: into none of them, it stands in the timeline alone.
pub const PARTS: [&str; 12] = [
    "impact",
    "before",
    "detection",
    "cause",
    "factors",
    "settings",
    "by-hand",
    "well",
    "wrong",
    "lucky",
    "book",
    "none",
];

/// One line of a `decide`; without a condition it is the else.
#[derive(Clone, Debug)]
pub struct Branch {
    pub condition: Option<Condition>,
    pub to: Named,
}

#[derive(Clone, Debug)]
pub struct Act {
    pub verb: Verb,
    pub select: Select,
    pub max: usize,
    pub batch: usize,
    pub pause: Duration,
}

/// Which sessions.
#[derive(Clone, Debug, Default)]
pub struct Select {
    pub idle_in_transaction: bool,
    /// Whose present statement runs for `longer_than`.
    pub active: bool,
    /// Whose transaction is open for `longer_than`.
    pub transaction: bool,
    pub roots: bool,
    pub longer_than: Option<Value>,
    /// Of these only sessions of this login, of this application, with this pid.
    pub users: Vec<Operand>,
    pub applications: Vec<Operand>,
    pub pids: Vec<Operand>,
}

impl Select {
    /// What makes a session a candidate, as the file says it.
    pub fn by(&self) -> Vec<&'static str> {
        [
            (self.idle_in_transaction, "state: idle in transaction"),
            (self.active, "active: true"),
            (self.transaction, "transaction: true"),
            (self.roots, "roots: true"),
        ]
        .into_iter()
        .filter_map(|(is, word)| is.then_some(word))
        .collect()
    }
}

/// A time that stands in the book, or an input's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Time(Duration),
    Input(Named),
}

#[derive(Clone, Debug)]
pub struct Poll {
    /// The read that is done again.
    pub repeat: Named,
    pub until: Condition,
    pub every: Duration,
    pub timeout: Duration,
}

#[derive(Clone, Debug)]
pub struct Note {
    /// What people have to write down.
    pub ask: Vec<Question>,
    pub actions: Vec<ActionItem>,
}

#[derive(Clone, Debug)]
pub struct Question {
    pub text: Text,
    /// Of the postmortem, that the answer belongs into; `None`: by the question's words.
    pub part: Option<&'static str>,
}

/// What somebody does afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionItem {
    pub title: String,
    pub owner: String,
    pub due: String,
}

#[derive(Clone, Debug)]
pub struct Expect {
    pub that: Condition,
    /// `warn` says it and goes on; else the run stops there.
    pub warn: bool,
    pub say: Option<Text>,
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

    /// The commands that it runs, as a person would type them.
    pub fn commands(&self) -> Vec<String> {
        let all = self.steps.iter().filter_map(|step| match &step.kind {
            Kind::Command(command) => Some(command.shown()),
            _ => None,
        });
        all.collect()
    }

    /// The lines of a step in its own file; of an included book's steps all of those books.
    pub fn source(&self, id: &str) -> Option<String> {
        let at = self.step(id)?;
        if !self.steps[at].book.is_empty() {
            return Some(self.texts.iter().skip(1).cloned().collect());
        }
        let line = |step: &Step| step.id.place.line;
        let from = line(&self.steps[at]);
        let next = self.steps[at + 1..]
            .iter()
            .filter(|step| step.book.is_empty())
            .map(line)
            .find(|next| *next > from);
        let lines = self.texts.first()?.lines().skip(from.saturating_sub(1));
        let kept: Vec<&str> = match next {
            Some(next) => lines.take(next - from).collect(),
            None => lines.collect(),
        };
        Some(kept.join("\n").trim_end().to_owned())
    }

    pub fn step(&self, id: &str) -> Option<usize> {
        self.steps.iter().position(|step| step.id.text == id)
    }
}

impl Command {
    /// For a person: values that are looked up later by their names.
    pub fn shown(&self) -> String {
        let all: Vec<String> = self.argv.iter().map(|arg| arg.shown().to_owned()).collect();
        masked(&all).join(" ")
    }
}

impl Operand {
    pub fn shown(&self) -> &str {
        match self {
            Self::Fixed(text) => text,
            Self::Looked(expression) => &expression.text,
        }
    }
}

impl Step {
    /// The kind's key in the file.
    pub fn kind_word(&self) -> &'static str {
        match &self.kind {
            Kind::Ask(_) => "ask",
            Kind::Query(_) | Kind::Sql(_) => "query",
            Kind::Check(_) => "check",
            Kind::Redis(_) => "redis",
            Kind::Decide(_) => "decide",
            Kind::Capture => "capture",
            Kind::Act(_) => "act",
            Kind::Command(_) => "run",
            Kind::Poll(_) => "poll",
            Kind::Wait(_) => "wait",
            Kind::Note(_) => "note",
            Kind::Include(_) => "include",
            Kind::Back | Kind::Nothing => "end",
        }
    }

    /// It reads something, which conditions can look at: `steps.NAME`.
    pub fn finds(&self) -> bool {
        matches!(
            self.kind,
            Kind::Query(_) | Kind::Sql(_) | Kind::Check(_) | Kind::Redis(_) | Kind::Command(_)
        )
    }

    /// It may be done again without harm: a poll does.
    pub fn is_read(&self) -> bool {
        match &self.kind {
            Kind::Command(command) => !command.writes,
            _ => self.finds(),
        }
    }

    /// It changes something.
    pub fn is_effect(&self) -> bool {
        match &self.kind {
            Kind::Act(_) => true,
            Kind::Command(command) => command.writes,
            _ => false,
        }
    }

    /// Its name without that of the including step.
    pub fn own_name(&self) -> &str {
        &self.id.text[self.book.len()..]
    }

    /// A name that this step says, as the whole book knows it.
    pub fn full(&self, name: &str) -> String {
        format!("{}{name}", self.book)
    }
}
