//! What a walk knows, and where it goes on: pure decisions, the same for a live run, a replayed one, a resumed one and a test.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::book::{Book, End, Include, Input, InputKind, Kind, Operand, Step, Value};
use super::cond::Scope;
use super::read::time;
use super::text::Text;
use crate::sql;

/// How a step came out, as far as the way depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Came {
    Well,
    /// A poll ran out of time.
    TimedOut,
    /// The person left it out.
    Skipped,
    /// It came to nothing: the server's SQLSTATE or our own word, and why.
    Error {
        code: String,
        why: String,
    },
}

impl Came {
    /// The server's SQLSTATE, or our own word.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Error { code, .. } => Some(code),
            _ => None,
        }
    }

    /// Where it leads nowhere, nothing has failed: it isn't known how things are.
    fn is_unknown(&self, step: &Step) -> bool {
        match self {
            Self::Error { code, .. } => {
                let reads = step.finds() && !matches!(step.kind, Kind::Command(_));
                reads || code == "unknown" || code == "incomplete" || code == "not_saved"
            }
            // A line of a decide that can't be told.
            _ => matches!(step.kind, Kind::Decide(_)),
        }
    }

    /// How a run ends that doesn't go on after it.
    pub fn nowhere(&self, step: &Step, why: String) -> Ended {
        let id = &step.id.text;
        let why = if why.contains(id) {
            why
        } else {
            format!("{id}: {why}")
        };
        match self.is_unknown(step) {
            true => Ended::Unknown(why),
            false => Ended::Failed(why),
        }
    }

    /// As the journal has it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Well => "well",
            Self::TimedOut => "timed out",
            Self::Skipped => "skipped",
            Self::Error { .. } => "error",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    Step(usize),
    End(End),
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    At(End),
    /// A question that nobody was there to answer.
    NeedsHuman(String),
    Stopped,
    /// A failed expectation, an effect that failed.
    Failed(String),
    /// What the way depends on isn't known: a read that came to nothing, a condition that can't be told.
    Unknown(String),
}

impl Ended {
    /// One word, as tests of books and the journal say it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::At(end) => end.word(),
            Self::NeedsHuman(_) => "needs_human",
            Self::Stopped => "stopped",
            // Cases of books know no other word for a walk that can't go on.
            Self::Failed(_) | Self::Unknown(_) => End::Failed.word(),
        }
    }

    /// For a person, without what is secret in what others said.
    pub fn told(&self) -> String {
        let text = match self {
            Self::At(end) => end.word().to_owned(),
            Self::NeedsHuman(question) => format!("needs a human: {question}"),
            Self::Stopped => "stopped by the operator".into(),
            Self::Failed(why) => format!("failed: {why}"),
            Self::Unknown(why) => format!("could not tell: {why}"),
        };
        sql::without_credentials(&text).into_owned()
    }
}

/// One expectation of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub that: String,
    /// Or why it can't be told.
    pub held: Result<bool, String>,
    pub warn: bool,
    pub say: String,
}

/// A walk through a book, so far.
pub struct Walk<'b> {
    pub book: &'b Book,
    /// What each book may look at, by its name; the outermost under the empty one.
    scopes: BTreeMap<String, Scope>,
    pub path: Vec<String>,
    done: BTreeSet<usize>,
}

impl<'b> Walk<'b> {
    /// At the beginning, with what was given.
    pub fn new(book: &'b Book, inputs: &BTreeMap<String, String>) -> Self {
        let mut scope = Scope::default();
        for input in &book.inputs {
            let text = inputs.get(&input.name.text).or(input.default.as_ref());
            scope
                .inputs
                .insert(input.name.text.clone(), given(input, text));
        }
        Self {
            book,
            scopes: BTreeMap::from([(String::new(), scope)]),
            path: Vec::new(),
            done: BTreeSet::new(),
        }
    }

    pub fn scope(&self, step: &Step) -> &Scope {
        static NOTHING: std::sync::LazyLock<Scope> = std::sync::LazyLock::new(Scope::default);
        self.scopes.get(&step.book).unwrap_or(&NOTHING)
    }

    fn scope_mut(&mut self, book: &str) -> &mut Scope {
        self.scopes.entry(book.to_owned()).or_default()
    }

    /// A step begins.
    ///
    /// # Errors
    /// Where it can't: what it needs wasn't done, or an included book's input can't be told.
    pub fn enter(&mut self, at: usize) -> Result<(), String> {
        let step = &self.book.steps[at];
        self.path.push(step.id.text.clone());
        for need in &step.needs {
            let done = self
                .book
                .step(&need.text)
                .is_some_and(|n| self.done.contains(&n));
            if !done {
                return Err(format!(
                    "{} needs {}, which wasn't done",
                    step.id.text, need.text
                ));
            }
        }
        if step.is_effect() && !self.has_evidence() {
            return Err(format!(
                "{} needs evidence, and none was kept",
                step.id.text
            ));
        }
        if let Kind::Include(include) = &step.kind {
            let scope = self.inner(step, include)?;
            self.scopes.insert(format!("{}.", step.id.text), scope);
        }
        Ok(())
    }

    /// What was captured on the way so far.
    fn has_evidence(&self) -> bool {
        let captured = |n: &usize| matches!(self.book.steps[*n].kind, Kind::Capture);
        self.done.iter().any(captured)
    }

    fn inner(&self, step: &Step, include: &Include) -> Result<Scope, String> {
        let mut scope = Scope::default();
        for input in &include.inputs {
            let name = &input.name.text;
            let set = include.set.iter().find(|(set, _)| set.text == *name);
            let text = match set {
                Some((_, operand)) => Some(self.operand(step, operand)?),
                None => input.default.clone(),
            };
            if let Some(text) = &text {
                input
                    .kind
                    .check(text)
                    .map_err(|what| format!("{name}: {what}"))?;
            }
            scope
                .inputs
                .insert(name.clone(), given(input, text.as_ref()));
        }
        Ok(scope)
    }

    /// A value as it is bound or handed over.
    ///
    /// # Errors
    /// Where it can't be told.
    pub fn operand(&self, step: &Step, operand: &Operand) -> Result<String, String> {
        match operand {
            Operand::Fixed(text) => Ok(text.clone()),
            Operand::Looked(expression) => match expression.value(self.scope(step))? {
                Json::String(text) => Ok(text),
                Json::Null => Err(format!("{} isn't known", expression.text)),
                // A number that is given as 5 is 5, not 5.0.
                Json::Number(number) => Ok(number
                    .as_f64()
                    .filter(|n| n.fract() == 0.0 && n.abs() < 1e15)
                    .map_or_else(|| number.to_string(), |n| format!("{n:.0}"))),
                other => Ok(other.to_string()),
            },
        }
    }

    /// A time of a step. One that is no time selects nobody: without an age it would be everybody.
    pub fn time(&self, step: &Step, value: &Value) -> Duration {
        match value {
            Value::Time(time) => *time,
            Value::Input(name) => {
                let given = self.scope(step).inputs.get(&name.text);
                let text = given.and_then(Json::as_str);
                text.and_then(time)
                    .unwrap_or(Duration::from_secs(u32::MAX.into()))
            }
        }
    }

    /// What a read found, and what the book computes of it.
    ///
    /// # Errors
    /// Where that can't be told.
    pub fn learn(&mut self, step: &Step, found: Json) -> Result<(), String> {
        let name = step.own_name().to_owned();
        self.scope_mut(&step.book).steps.insert(name, found);
        for (name, expression) in &step.set {
            let value = expression.value(self.scope(step))?;
            self.scope_mut(&step.book)
                .vars
                .insert(name.text.clone(), value);
        }
        Ok(())
    }

    /// What the book has computed of what a step found: plain values only.
    pub fn vars(&self, step: &Step) -> serde_json::Map<String, Json> {
        let known = &self.scope(step).vars;
        let of = step
            .set
            .iter()
            .filter_map(|(name, _)| known.get_key_value(&name.text));
        of.filter(|(_, value)| !value.is_array() && !value.is_object())
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    /// What it had computed before the run was interrupted stands. What the journal doesn't show of it isn't known, whatever
    /// would be computed now.
    pub fn recall(
        &mut self,
        step: &Step,
        vars: &serde_json::Map<String, Json>,
        is_hidden: fn(&str) -> bool,
    ) {
        let known = &mut self.scope_mut(&step.book).vars;
        for (name, value) in vars {
            match value.as_str().is_some_and(is_hidden) {
                true => known.remove(name),
                false => known.insert(name.clone(), value.clone()),
            };
        }
    }

    pub fn answered(&mut self, step: &Step, answer: &str) {
        let name = step.own_name().to_owned();
        self.scope_mut(&step.book)
            .answers
            .insert(name, answer.into());
    }

    /// What the step itself found.
    pub fn own(&self, step: &Step) -> Option<&Json> {
        self.scope(step).steps.get(step.own_name())
    }

    /// A text as it is shown.
    pub fn told(&self, step: &Step, text: &Text) -> String {
        text.told(self.scope(step), self.own(step))
    }

    /// Each expectation of a step, against what was found.
    pub fn expectations(&self, step: &Step) -> Vec<Held> {
        let all = step.expect.iter().map(|expect| Held {
            that: expect.that.text.clone(),
            held: expect.that.holds(self.scope(step)),
            warn: expect.warn,
            say: expect
                .say
                .as_ref()
                .map_or_else(|| expect.that.text.clone(), |say| self.told(step, say)),
        });
        all.collect()
    }

    /// What was learned before the run was interrupted stays unknown, where it can't be read anew: conditions on it can't be
    /// told.
    pub fn learn_what_is_left(&mut self, step: &Step, found: Json) {
        let _ = self.learn(step, found);
    }

    /// Where the book goes on.
    ///
    /// # Errors
    /// Where a condition can't be told, or an error leads nowhere: the run stops there, it never guesses.
    pub fn next(&mut self, at: usize, came: &Came) -> Result<Next, String> {
        let step = &self.book.steps[at];
        let to = |name: &str| {
            self.book
                .step(name)
                .map(Next::Step)
                .ok_or_else(|| format!("there is no step {name:?}"))
        };
        match came {
            Came::Error { code, why } => {
                let fits = |wanted: &Option<String>| wanted.as_ref().is_none_or(|w| w == code);
                // What an included book doesn't answer itself, the one around it may.
                let mut around = Some(step);
                while let Some(step) = around {
                    if let Some(error) = step.on_error.iter().find(|error| fits(&error.code)) {
                        return to(&error.to.text);
                    }
                    let including = step.book.trim_end_matches('.');
                    around = self.book.step(including).map(|n| &self.book.steps[n]);
                }
                return Err(why.clone());
            }
            Came::TimedOut => {
                if let Some(name) = &step.on_timeout {
                    return to(&name.text);
                }
            }
            Came::Well => {
                self.done.insert(at);
            }
            // That it has come about nobody has seen.
            Came::Skipped => {
                if let Some(name) = &step.on_timeout {
                    return to(&name.text);
                }
            }
        }
        if let Kind::Decide(branches) = &step.kind {
            let taken = self.branch(at)?.and_then(|n| branches.get(n));
            let taken = taken.ok_or("no branch was taken")?;
            return to(&taken.to.text);
        }
        let next = match (step.end, &step.goto) {
            (Some(end), _) => Next::End(end),
            (None, Some(name)) => to(&name.text)?,
            (None, None) if at + 1 < self.book.steps.len() => Next::Step(at + 1),
            (None, None) => return Err("the book goes on nowhere".into()),
        };
        if let Some(end) = step.leaves {
            self.left(step, end);
        }
        Ok(next)
    }

    /// Which line of a decide is taken; of other steps none is.
    ///
    /// # Errors
    /// Where a condition before it can't be told.
    pub fn branch(&self, at: usize) -> Result<Option<usize>, String> {
        let step = &self.book.steps[at];
        let Kind::Decide(branches) = &step.kind else {
            return Ok(None);
        };
        for (n, branch) in branches.iter().enumerate() {
            let taken = match &branch.condition {
                Some(condition) => condition.holds(self.scope(step))?,
                None => true,
            };
            if taken {
                return Ok(Some(n));
            }
        }
        Ok(None)
    }

    /// An included book has ended: the one around it sees how.
    fn left(&mut self, step: &Step, end: End) {
        let name = step.book.trim_end_matches('.');
        if let Some(n) = self.book.step(name) {
            let including = &self.book.steps[n];
            let own = including.own_name().to_owned();
            self.scope_mut(&including.book)
                .steps
                .insert(own, json!({ "end": end.word() }));
        }
    }
}

/// An input's value, of its type.
fn given(input: &Input, text: Option<&String>) -> Json {
    text.map_or(Json::Null, |text| match input.kind {
        InputKind::Number => text.parse::<f64>().map_or(Json::Null, Json::from),
        InputKind::Bool => Json::Bool(text == "true"),
        InputKind::Text | InputKind::Duration => Json::from(text.as_str()),
    })
}
