//! The ways through a book: what may follow a step, and what must have run before it.

use std::collections::BTreeSet;

use super::book::{Book, End, Kind, Step};

/// One way on from a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    pub to: Goal,
    pub when: When,
}

/// When a way is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// All is well.
    Usual,
    /// This line of a decide, by its number and its condition; without one it is the else.
    Branch(usize, Option<String>),
    OutOfTime,
    /// The step has come to nothing: with this SQLSTATE, or whatever.
    Error(Option<String>),
}

impl Way {
    /// The step itself has found or done nothing then.
    pub fn is_after_error(&self) -> bool {
        matches!(self.when, When::Error(_))
    }
}

impl When {
    /// In words; nothing for the usual way.
    pub fn words(&self) -> String {
        match self {
            Self::Usual => String::new(),
            Self::Branch(_, Some(condition)) => condition.clone(),
            Self::Branch(_, None) => "else".into(),
            Self::OutOfTime => "out of time".into(),
            Self::Error(Some(code)) => format!("error {code}"),
            Self::Error(None) => "error".into(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    Step(usize),
    End(End),
}

/// All ways on from a step. Names that lead nowhere are left out: they are told elsewhere.
pub fn ways(book: &Book, n: usize) -> Vec<Way> {
    let Some(step) = book.steps.get(n) else {
        return Vec::new();
    };
    let to = |name: &str| book.step(name).map(Goal::Step);
    let way = |to: Option<Goal>, when: When| to.map(|to| Way { to, when });
    let mut all: Vec<Way> = Vec::new();
    if let Kind::Decide(branches) = &step.kind {
        for (n, branch) in branches.iter().enumerate() {
            let condition = branch.condition.as_ref().map(|c| c.text.clone());
            all.extend(way(to(&branch.to.text), When::Branch(n, condition)));
        }
        return all;
    }
    all.extend(way(usual(book, n, step), When::Usual));
    if let Some(name) = &step.on_timeout {
        all.extend(way(to(&name.text), When::OutOfTime));
    }
    for error in &step.on_error {
        all.extend(way(to(&error.to.text), When::Error(error.code.clone())));
    }
    all
}

/// Where it goes on when all is well.
fn usual(book: &Book, n: usize, step: &Step) -> Option<Goal> {
    match (step.end, &step.goto) {
        (Some(end), _) => Some(Goal::End(end)),
        (None, Some(goto)) => book.step(&goto.text).map(Goal::Step),
        (None, None) if n + 1 < book.steps.len() => Some(Goal::Step(n + 1)),
        (None, None) => None,
    }
}

/// For each step those that have run on every way to it, itself included; `None`: no way leads to it.
pub fn before(ways: &[Vec<Way>]) -> Vec<Option<BTreeSet<usize>>> {
    let mut before: Vec<Option<BTreeSet<usize>>> = vec![None; ways.len()];
    if let Some(first) = before.first_mut() {
        *first = Some(BTreeSet::from([0]));
    }
    loop {
        let mut changed = false;
        for n in 0..ways.len() {
            let Some(passed) = before[n].clone() else {
                continue;
            };
            for way in &ways[n] {
                let Goal::Step(next) = way.to else { continue };
                let mut passed = passed.clone();
                if way.is_after_error() {
                    passed.remove(&n);
                }
                let mut with: BTreeSet<usize> = match &before[next] {
                    Some(known) => known.intersection(&passed).copied().collect(),
                    None => passed,
                };
                with.insert(next);
                if before[next].as_ref() != Some(&with) {
                    before[next] = Some(with);
                    changed = true;
                }
            }
        }
        if !changed {
            return before;
        }
    }
}
