//! Where a book goes on after a step: a pure decision.

use super::book::{Book, End, Kind};
use super::cond::Scope;

/// How a step came out, as far as the way depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    Well,
    /// A poll ran out of time.
    TimedOut,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    Step(usize),
    End(End),
}

/// # Errors
/// Where a condition can't be told: the run stops there, it never guesses.
pub fn next(book: &Book, at: usize, came: Came, scope: &Scope) -> Result<Next, String> {
    let step = &book.steps[at];
    let to = |name: &str| {
        book.step(name)
            .map(Next::Step)
            .ok_or_else(|| format!("there is no step {name:?}"))
    };
    if let (Came::TimedOut, Some(name)) = (came, &step.on_timeout) {
        return to(&name.text);
    }
    if let Kind::Decide(branches) = &step.kind {
        for branch in branches {
            let taken = match &branch.condition {
                Some(condition) => condition.holds(scope)?,
                None => true,
            };
            if taken {
                return to(&branch.to.text);
            }
        }
        return Err("no branch was taken".into());
    }
    match (step.end, &step.goto) {
        (Some(end), _) => Ok(Next::End(end)),
        (None, Some(name)) => to(&name.text),
        (None, None) if at + 1 < book.steps.len() => Ok(Next::Step(at + 1)),
        (None, None) => Err("the book goes on nowhere".into()),
    }
}
