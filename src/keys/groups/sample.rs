//! The first keys of a walk, kept as tokens only.

use std::collections::HashMap;

use super::grouping::Grouping;
use super::learn;
use super::pattern::Pattern;
use super::shape::{LONGEST_WORD, is_fixed};
use super::token::{Kind, Token, Tokens};

/// So many keys tell what there is: a group that isn't among them has less than one key in ten thousand, most likely.
const MOST_KEYS: usize = 50_000;
const MOST_BYTES: usize = 8 << 20;
/// A single huge name must not end the sample.
const MOST_BYTES_OF_ONE: usize = 4 << 10;

/// No label.
pub const NONE: u32 = u32::MAX;

/// A token of a sampled key; labels are numbers here.
#[derive(Clone, Copy)]
pub struct Step {
    pub label: u32,
    /// For `level2`: the label of `level*`.
    pub stem: u32,
    pub kind: StepKind,
    /// Whether a segment ends behind it, and the key doesn't.
    pub more_segments: bool,
    /// Whether a value follows.
    pub value_ahead: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
    Token(Kind),
    /// A name that stays one.
    Fixed,
    End,
}

impl Step {
    pub fn is_delimiter(&self) -> bool {
        matches!(self.kind, StepKind::Token(Kind::Delimiter { .. }))
    }

    /// Whether the segment ends here.
    pub fn ends_segment(&self) -> bool {
        match self.kind {
            StepKind::Token(Kind::Delimiter { major }) => major,
            StepKind::Token(_) | StepKind::Fixed => false,
            StepKind::End => true,
        }
    }
}

/// Keys to learn from. Their order doesn't matter.
#[derive(Default)]
pub struct Sample {
    patterns: Vec<Pattern>,
    keys: usize,
    bytes: usize,
    numbers: HashMap<Box<[u8]>, u32>,
    steps: Vec<Step>,
    starts: Vec<u32>,
}

/// What of a sample is learned from: all keys in steps, where each begins, and the labels by number.
pub struct Steps {
    pub steps: Vec<Step>,
    pub starts: Vec<u32>,
    pub labels: Vec<Box<[u8]>>,
}

impl Sample {
    /// Keys that match a pattern are not learned from: they have their groups.
    pub fn new(patterns: Vec<Pattern>) -> Self {
        Self {
            patterns,
            ..Self::default()
        }
    }

    /// No more keys are taken: 50,000, or 8 MiB of names, of which the longest count for 4 KiB each.
    pub fn is_full(&self) -> bool {
        self.keys >= MOST_KEYS || self.bytes >= MOST_BYTES
    }

    /// Takes a key, unless the sample is full.
    pub fn push(&mut self, key: &[u8]) {
        if self.is_full() {
            return;
        }
        self.keys += 1;
        self.bytes += key.len().min(MOST_BYTES_OF_ONE);
        if self.patterns.iter().any(|pattern| pattern.matches(key)) {
            return;
        }
        let start = self.steps.len();
        self.starts.push(u32::try_from(start).unwrap_or(NONE));
        for token in Tokens::new(key) {
            let step = self.step(&token);
            self.steps.push(step);
        }
        let (mut more_segments, mut value_ahead) = (false, false);
        for step in self.steps[start..].iter_mut().rev() {
            (step.more_segments, step.value_ahead) =
                (more_segments, value_ahead || step.value_ahead);
            more_segments |= step.ends_segment();
            value_ahead = step.value_ahead;
        }
        self.steps.push(Step {
            label: NONE,
            stem: NONE,
            kind: StepKind::End,
            more_segments: false,
            value_ahead: false,
        });
    }

    fn step(&mut self, token: &Token<'_>) -> Step {
        let mut buffer = [0; LONGEST_WORD + 1];
        let label = self.number(token.label(&mut buffer));
        let stem = token.stem(&mut buffer).map(|stem| self.number(stem));
        let is_fixed = token.kind == Kind::Name && is_fixed(token.raw);
        Step {
            label,
            stem: stem.unwrap_or(NONE),
            kind: if is_fixed {
                StepKind::Fixed
            } else {
                StepKind::Token(token.kind)
            },
            more_segments: false,
            value_ahead: token.varies(),
        }
    }

    fn number(&mut self, label: &[u8]) -> u32 {
        if let Some(number) = self.numbers.get(label) {
            return *number;
        }
        let number = u32::try_from(self.numbers.len()).unwrap_or(NONE);
        self.numbers.insert(label.into(), number);
        number
    }

    /// What the names have in common.
    pub fn learn(self) -> Grouping {
        let mut labels = vec![Box::default(); self.numbers.len()];
        for (label, number) in self.numbers {
            labels[number as usize] = label;
        }
        let steps = Steps {
            steps: self.steps,
            starts: self.starts,
            labels,
        };
        Grouping::new(self.patterns, learn::learn(&steps))
    }
}
