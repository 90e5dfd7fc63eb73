//! Numbers that may be known only from below, and where they came from.

use std::iter::Sum;

use crate::yaml::Place;

/// A number of pods, connections, slots: exact, or at least so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    pub at_least: u64,
    pub exact: bool,
}

impl Count {
    pub const ZERO: Self = Self::known(0);

    pub const fn known(number: u64) -> Self {
        Self {
            at_least: number,
            exact: true,
        }
    }

    pub const fn at_least(number: u64) -> Self {
        Self {
            at_least: number,
            exact: false,
        }
    }

    pub fn plus(self, other: Self) -> Self {
        Self {
            at_least: self.at_least.saturating_add(other.at_least),
            exact: self.exact && other.exact,
        }
    }

    /// None of something is none, whatever the other is.
    pub fn times(self, other: Self) -> Self {
        let none = |one: Self| one.exact && one.at_least == 0;
        Self {
            at_least: self.at_least.saturating_mul(other.at_least),
            exact: self.exact && other.exact || none(self) || none(other),
        }
    }

    pub fn largest(self, other: Self) -> Self {
        Self {
            at_least: self.at_least.max(other.at_least),
            exact: self.exact && other.exact,
        }
    }

    /// In percent of another, rounded; of nothing: 0.
    pub fn percent_of(self, of: Self) -> u64 {
        match of.at_least {
            0 => 0,
            whole => {
                let share = u128::from(self.at_least) * 100 + u128::from(whole) / 2;
                u64::try_from(share / u128::from(whole)).unwrap_or(u64::MAX)
            }
        }
    }

    /// As people read it: `>= 30 (+ unknown)` where it isn't exact.
    pub fn words(self) -> String {
        match self.exact {
            true => self.at_least.to_string(),
            false => format!(">= {} (+ unknown)", self.at_least),
        }
    }
}

impl Sum for Count {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::ZERO, Self::plus)
    }
}

/// A place in a file of the input.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct At {
    pub file: String,
    pub place: Place,
}

impl At {
    pub fn new(file: &str, place: Place) -> Self {
        Self {
            file: file.to_owned(),
            place,
        }
    }

    pub fn words(&self) -> String {
        format!("{}:{}", self.file, self.place.line)
    }
}

/// Where one factor of a number came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// `pods`, `connections per process`, `surge`, …
    pub what: String,
    pub value: String,
    /// Nothing says it: it is what the library or the platform does by itself.
    pub assumed: bool,
    pub at: Option<At>,
}

impl Source {
    pub fn said(what: &str, value: impl ToString, at: At) -> Self {
        Self {
            what: what.to_owned(),
            value: value.to_string(),
            assumed: false,
            at: Some(at),
        }
    }

    /// Of the command line.
    pub fn asked(what: &str, value: impl ToString) -> Self {
        Self {
            what: what.to_owned(),
            value: value.to_string(),
            assumed: false,
            at: None,
        }
    }

    pub fn assumed(what: &str, value: impl ToString, at: Option<At>) -> Self {
        Self {
            what: what.to_owned(),
            value: value.to_string(),
            assumed: true,
            at,
        }
    }
}
