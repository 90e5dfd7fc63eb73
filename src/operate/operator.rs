//! Whoever is asked and told.

use crate::action::{Consent, Guarded};
use crate::model::{Done, Target};

use super::select::Chosen;

/// What is about to be done, for the table that comes before every question.
pub struct Plan<'p> {
    pub target: &'p Target,
    pub target_name: &'p str,
    pub chosen: &'p [Chosen],
    pub guarded: &'p Guarded,
    pub notes: &'p [String],
}

/// An answer to the question.
pub enum Ask {
    Consent(Consent),
    /// Nobody to ask, or told to only show: nothing is done.
    DryRun,
    No,
}

/// A person at a terminal, or a script.
pub trait Operator {
    /// Shows the candidates, and asks.
    ///
    /// # Errors
    /// When they can't be shown.
    fn confirm(&mut self, plan: &Plan<'_>) -> std::io::Result<Ask>;

    /// Told after each effect.
    fn done(&mut self, done: &Done);

    /// A word on the way.
    fn note(&mut self, text: &str);

    /// How often the operator asked to stop: once, after the current batch; twice, now.
    fn stops(&self) -> usize;
}
