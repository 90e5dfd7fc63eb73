//! What was done, each effect with its outcome; one whose outcome isn't known says so.

use super::course::{Course, signal_words};
use super::document::Of;
use super::helped::helped;
use super::runs::{Operators, Words, book};
use crate::journal::{Effect, Event, Record};
use crate::model::{ExitCode, Millis, Outcome, Timestamp, Verb, count};

/// A run of which there is a journal.
#[derive(Clone, Debug)]
pub struct Run {
    /// `pg terminate`, `runbook connection-exhaustion`
    pub what: String,
    pub target: String,
    pub login: String,
    pub operator: String,
    pub began: Timestamp,
    pub last: Timestamp,
    /// What the book was given.
    pub inputs: Vec<(String, String)>,
    /// How it ended, in words; `None`: the journal has no end.
    pub end: Option<String>,
    pub dry_run: bool,
    pub resumed: usize,
    pub acts: Vec<Act>,
    /// What the guard left alone, and why.
    pub left: Vec<(i32, String)>,
    pub not_confirmed: Vec<String>,
    /// What was waited for and came about, the last of it.
    pub held: Option<(Timestamp, String)>,
    /// What a person was asked, and what the answer means.
    pub answers: Vec<(String, String)>,
    /// What the captures before and after what was done say; `None`: nothing was done, or there are none.
    pub helped: Option<String>,
}

/// One effect.
#[derive(Clone, Debug)]
pub struct Act {
    pub at: Timestamp,
    pub step: Option<String>,
    /// `terminate pid 4711`
    pub what: String,
    /// Whose session it was, as a capture has it.
    pub who: Option<String>,
    /// The pid, of a signal: what is alike is told together.
    pub pid: Option<i32>,
    /// Of a signal.
    pub verb: Option<Verb>,
    pub came: Came,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Came {
    Outcome(Outcome, Millis),
    /// A command, with what is said of its end.
    Ended {
        well: bool,
        why: String,
    },
    /// It was begun, and the journal doesn't say what came of it.
    Unknown,
    /// That was so; later the server was read and a person said what they make of it.
    SeenLater {
        seen: String,
        answer: String,
    },
}

impl Came {
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown)
    }

    /// What was wanted has come about, and this is seen.
    pub fn is_well(&self) -> bool {
        matches!(
            self,
            Self::Outcome(Outcome::Gone | Outcome::Set, _) | Self::Ended { well: true, .. }
        )
    }

    fn word(&self) -> &str {
        match self {
            Self::Outcome(Outcome::StillAlive(_), _) => "still alive",
            Self::Outcome(outcome, _) => outcome.word(),
            Self::Ended { well: true, .. } => "ended well",
            Self::Ended { well: false, .. } => "ended badly",
            Self::Unknown => "OUTCOME UNKNOWN",
            Self::SeenLater { .. } => "looked at later",
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Outcome(outcome, waited) => {
                let why = outcome
                    .reason()
                    .map_or(String::new(), |why| format!(": {why}"));
                format!("{}{}{why}", self.word(), after(*waited))
            }
            Self::Ended { why, .. } => format!("{}: {why}", self.word()),
            Self::Unknown => {
                "OUTCOME UNKNOWN: it was begun, and the journal ends before its result".into()
            }
            Self::SeenLater { seen, answer } => {
                let answer = match answer.as_str() {
                    "done" => "counted as done",
                    "again" => "may be done again",
                    other => other,
                };
                format!("the journal has no result; looked at later: {seen}; {answer}")
            }
        }
    }
}

impl Run {
    /// # Panics
    /// Never; an empty run gives `None`.
    pub fn of(records: &[Record], courses: &[&Course], operators: &Operators) -> Option<Self> {
        let (first, last) = (records.first()?, records.last()?);
        let mut run = Self {
            what: "run".into(),
            target: String::new(),
            login: String::new(),
            operator: String::new(),
            began: first.at,
            last: last.at,
            inputs: Vec::new(),
            end: None,
            dry_run: false,
            resumed: 0,
            acts: Vec::new(),
            left: Vec::new(),
            not_confirmed: Vec::new(),
            held: None,
            answers: Vec::new(),
            helped: None,
        };
        let book = book(records);
        let words = Words(book.as_ref());
        let mut step: Option<String> = None;
        // By its number, where it stands among the acts.
        let mut open: Vec<(usize, usize)> = Vec::new();
        for record in records {
            match &record.event {
                Event::RunStart {
                    what,
                    target,
                    login,
                    operator,
                    ..
                } => {
                    let bare = what.strip_suffix(" (dry run)");
                    run.dry_run = bare.is_some();
                    run.what = bare.unwrap_or(what).to_owned();
                    run.target.clone_from(target);
                    run.login.clone_from(login);
                    operators.call(operator).clone_into(&mut run.operator);
                }
                Event::Book { inputs, .. } => {
                    let inputs = inputs
                        .iter()
                        .map(|(name, value)| (name.clone(), value.clone()));
                    run.inputs = inputs.collect();
                }
                Event::Resumed { .. } => {
                    run.resumed += 1;
                    run.end = None;
                }
                Event::StepEnd { step, came, .. } if came == "well" && words.waits(step) => {
                    run.held = Some((record.at, words.came_about(step)));
                }
                Event::StepStart { step: id } => step = Some(id.clone()),
                Event::Candidates { refused, .. } => {
                    let left = refused.iter().map(|left| (left.pid, left.why.clone()));
                    run.left.extend(left);
                }
                Event::Answer {
                    step,
                    answer,
                    attended: true,
                } => {
                    let answer = words.answer(step, answer);
                    run.answers.push((words.question(step), answer));
                }
                Event::NotConfirmed { why } => run.not_confirmed.push(why.clone()),
                Event::EffectIntent { n, effect } => {
                    open.push((*n, run.acts.len()));
                    run.acts
                        .push(Act::of(record.at, step.clone(), effect, courses));
                }
                Event::EffectResult {
                    n,
                    outcome,
                    waited_ms,
                } => {
                    let came = Came::Outcome(outcome.clone(), Millis(*waited_ms));
                    run.came(&open, *n, came);
                }
                Event::CommandResult { n, exit, why, .. } => {
                    let came = Came::Ended {
                        well: *exit == Some(0),
                        why: why.clone(),
                    };
                    run.came(&open, *n, came);
                }
                Event::EffectSeen { n, seen, answer } => {
                    let came = Came::SeenLater {
                        seen: seen.clone(),
                        answer: answer.clone(),
                    };
                    run.came(&open, *n, came);
                }
                Event::BookEnd { end } => run.end = Some(end.clone()),
                Event::RunEnd { code } => {
                    let is_walk = run.what.starts_with("runbook ");
                    run.end.get_or_insert(end_words(is_walk, *code));
                }
                _ => {}
            }
        }
        run.helped = run.compared(courses);
        Some(run)
    }

    /// The captures before and after what was done, of the server that it was done to.
    fn compared(&self, courses: &[&Course]) -> Option<String> {
        let course = match courses {
            [one] => one,
            several => several.iter().find(|course| self.is_at(course))?,
        };
        let done = || self.acts.iter().filter(|act| act.came.is_well());
        if self.dry_run {
            return None;
        }
        helped(course, done().next()?.at, done().next_back()?.at)
    }

    fn is_at(&self, course: &Course) -> bool {
        let place = format!("@{}", course.place());
        let name = course.target.as_ref().and_then(|at| at.name.as_deref());
        self.target.trim_end_matches(')').ends_with(&place) || name == Some(&self.target)
    }

    /// It was done to that server, where there are several.
    pub fn is_on(&self, of: &Of<'_>) -> bool {
        !of.is_one_of_several || self.is_at(of.course)
    }

    /// The last effect of that number: a run that is resumed counts on.
    fn came(&mut self, open: &[(usize, usize)], n: usize, came: Came) {
        let at = open.iter().rev().find(|(number, _)| *number == n);
        if let Some((_, at)) = at {
            self.acts[*at].came = came;
        }
    }

    /// `13 sessions ended; terminate of 1 session: 1 refused`
    pub fn sum(&self) -> String {
        // What was wanted and came about is told as what it made of the server; the rest by what was tried.
        let mut made: Vec<(&str, usize)> = Vec::new();
        let mut tried: Vec<(String, Vec<&Act>)> = Vec::new();
        for act in &self.acts {
            if let Some(what) = act.made() {
                match made.iter_mut().find(|(known, _)| *known == what) {
                    Some((_, count)) => *count += 1,
                    None => made.push((what, 1)),
                }
                continue;
            }
            match tried.iter_mut().find(|(kind, _)| *kind == act.kind()) {
                Some((_, acts)) => acts.push(act),
                None => tried.push((act.kind(), vec![act])),
            }
        }
        let made = made.iter().map(|(what, n)| match (*what, *n) {
            ("statement", 1) => "1 statement cancelled (its session lives on)".into(),
            ("statement", n) => format!("{n} statements cancelled (their sessions live on)"),
            (what, n) => format!("{} ended", count(n, what)),
        });
        let tried = tried.iter().map(|(kind, acts)| {
            let mut words: Vec<(&str, usize)> = Vec::new();
            for act in acts {
                match words.iter_mut().find(|(word, _)| *word == act.word()) {
                    Some((_, count)) => *count += 1,
                    None => words.push((act.word(), 1)),
                }
            }
            let words: Vec<String> = words
                .iter()
                .map(|(word, n)| format!("{n} {word}"))
                .collect();
            let what = match acts[0].pid {
                Some(_) => format!("{kind} of {}", count(acts.len(), "session")),
                None => kind.clone(),
            };
            format!("{what}: {}", words.join(", "))
        });
        match self.acts.len() {
            0 => "this run changed nothing".into(),
            _ => made.chain(tried).collect::<Vec<_>>().join("; "),
        }
    }

    /// Effects of which nobody knows what came of them.
    pub fn unknown(&self) -> usize {
        self.acts.iter().filter(|act| act.came.is_unknown()).count()
    }
}

impl Act {
    /// What is alike is counted together: the verb of a signal, or all of it.
    pub(super) fn kind(&self) -> String {
        match self.pid {
            Some(_) => self.what.split(' ').next().unwrap_or_default().to_owned(),
            None => self.what.clone(),
        }
    }

    /// What of the server is no more by it.
    fn made(&self) -> Option<&'static str> {
        match (self.verb, self.came.is_well()) {
            (Some(Verb::Terminate), true) => Some("session"),
            (Some(Verb::Cancel), true) => Some("statement"),
            _ => None,
        }
    }

    /// One word or two for what came of it: of a cancel it is the statement that goes on.
    pub(super) fn word(&self) -> &str {
        match (self.verb, &self.came) {
            (Some(Verb::Cancel), Came::Outcome(Outcome::StillAlive(_), _)) => "still running",
            (Some(Verb::Cancel), Came::Outcome(Outcome::Gone, _)) => {
                "its statement ended and the session lives on"
            }
            _ => self.came.word(),
        }
    }

    /// What came of it: `gone after 120 ms`, `its statement ended after 5 ms, the session lives on`.
    pub fn words(&self) -> String {
        match (self.verb, &self.came) {
            (Some(Verb::Cancel), Came::Outcome(Outcome::Gone, waited)) => {
                format!(
                    "its statement ended{}, the session lives on",
                    after(*waited)
                )
            }
            (Some(Verb::Cancel), Came::Outcome(Outcome::StillAlive(why), waited)) => {
                format!("still running{}: {why}", after(*waited))
            }
            _ => self.came.words(),
        }
    }

    fn of(at: Timestamp, step: Option<String>, effect: &Effect, courses: &[&Course]) -> Self {
        let (mut who, mut pid, mut verb) = (None, None, None);
        let what = match effect {
            Effect::Signal(signal) => {
                let mut seen = courses.iter().filter_map(|c| c.who(&signal.id, at));
                who = seen.next().map(str::to_owned);
                pid = Some(signal.id.pid.0);
                verb = Some(signal.verb);
                signal_words(signal.verb, &signal.id)
            }
            Effect::RollbackPrepared { gid, database } => {
                format!("roll back the prepared transaction {gid} in {database}")
            }
            Effect::RedisSetting {
                node,
                name,
                before,
                after,
                ..
            } => {
                format!("set {name} of {node} from {before:?} to {after:?}")
            }
            Effect::RedisSession { node, seconds } => {
                format!("a HOTKEYS session of {seconds} s on {node}")
            }
            Effect::Command { argv } => format!("run {}", argv.join(" ")),
        };
        Self {
            at,
            step,
            what,
            who,
            pid,
            verb,
            came: Came::Unknown,
        }
    }
}

/// ` after 120 ms`
fn after(waited: Millis) -> String {
    match waited.0 {
        0 => String::new(),
        _ => format!(" after {waited}"),
    }
}

/// How a run ended: of an act its code speaks of what was done, not of what is found.
pub(super) fn end_words(is_walk: bool, code: u8) -> String {
    if !is_walk && code == 0 {
        return "as it was asked for (exit code 0)".into();
    }
    let known = ExitCode::ALL.iter().find(|known| known.code() == code);
    let meaning = known.map_or("", |known| known.meaning());
    match meaning.is_empty() {
        true => format!("exit code {code}"),
        false => format!("exit code {code} ({meaning})"),
    }
}
