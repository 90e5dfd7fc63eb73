//! Why an act stopped early, and who decided that: it sets the exit code.

/// What ended an action before all of it was done, with what is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Halt {
    /// More than the limit: refused as a whole.
    TooMany(String),
    /// The person didn't confirm it.
    Declined(String),
    /// The person stopped it.
    Operator(String),
    /// The condition was reached: not all was needed.
    Until(String),
    /// Nobody was chosen, or every rule spoke against it.
    Nothing(String),
    /// A consent that isn't enough, a journal that can't be written, a connection that is gone.
    Fault(String),
}

impl Halt {
    pub fn by_operator() -> Self {
        Self::Operator("stopped by the operator".into())
    }

    pub fn text(&self) -> &str {
        match self {
            Self::TooMany(text)
            | Self::Declined(text)
            | Self::Operator(text)
            | Self::Until(text)
            | Self::Nothing(text)
            | Self::Fault(text) => text,
        }
    }

    /// The person said so.
    pub fn is_by_person(&self) -> bool {
        matches!(self, Self::Declined(_) | Self::Operator(_))
    }
}
