//! What is told of keys, added up by the groups that their names fall into: in one pass, in constant memory.

use super::groups::{GroupId, Grouping, Pattern, Sample};

/// What a group adds up.
pub trait Absorb<T> {
    fn absorb(&mut self, item: T);
}

/// Keys with what is known of each, on their way into groups. The first ones are held back until the groups are learned.
pub struct Grouped<T, S> {
    make: fn(usize) -> S,
    state: State<T, S>,
}

enum State<T, S> {
    Learning {
        sample: Sample,
        held: Vec<(Vec<u8>, T)>,
    },
    Known {
        grouping: Grouping,
        sums: Vec<S>,
    },
}

impl<T, S: Absorb<T>> Grouped<T, S> {
    /// The patterns of `stanch.yaml` count before what is learned; `make` begins the sum of the group of that number.
    pub fn new(patterns: Vec<Pattern>, make: fn(usize) -> S) -> Self {
        Self {
            make,
            state: State::Learning {
                sample: Sample::new(patterns),
                held: Vec::new(),
            },
        }
    }

    pub fn push(&mut self, key: Vec<u8>, item: T) {
        match &mut self.state {
            State::Known { grouping, sums } => {
                add(grouping, sums, self.make, &key, item);
            }
            State::Learning { sample, held } => {
                sample.push(&key);
                held.push((key, item));
                if sample.is_full() {
                    self.learn();
                }
            }
        }
    }

    fn learn(&mut self) {
        let empty = State::Learning {
            sample: Sample::new(Vec::new()),
            held: Vec::new(),
        };
        if let State::Learning { sample, held } = std::mem::replace(&mut self.state, empty) {
            let mut grouping = sample.learn();
            let mut sums = Vec::new();
            for (key, item) in held {
                add(&mut grouping, &mut sums, self.make, &key, item);
            }
            self.state = State::Known { grouping, sums };
        }
    }

    /// The groups, and the sum of each by the number of its id.
    pub fn finish(mut self) -> (Grouping, Vec<S>) {
        if matches!(self.state, State::Learning { .. }) {
            self.learn();
        }
        match self.state {
            State::Known { grouping, sums } => (grouping, sums),
            State::Learning { sample, .. } => (sample.learn(), Vec::new()),
        }
    }
}

fn add<T, S: Absorb<T>>(
    grouping: &mut Grouping,
    sums: &mut Vec<S>,
    make: fn(usize) -> S,
    key: &[u8],
    item: T,
) {
    let GroupId(n) = grouping.assign(key);
    let n = n as usize;
    while sums.len() <= n {
        sums.push(make(sums.len()));
    }
    sums[n].absorb(item);
}
