//! The N highest of any number of keys, in constant memory.

use std::collections::{BTreeSet, HashMap};

/// Keeps the N keys with the highest scores. A key that comes twice (SCAN may give it twice) counts once, with its
/// higher score; among equal scores the names decide, so that the same data give the same list.
#[derive(Clone, Debug)]
pub struct Top<T> {
    most: usize,
    /// Lowest score first; of equal scores the last name first.
    order: BTreeSet<(i64, std::cmp::Reverse<Vec<u8>>)>,
    held: HashMap<Vec<u8>, (i64, T)>,
    /// Keys that had the lowest score that is kept, and weren't: the order among equals is arbitrary.
    tied_out: u64,
}

impl<T> Top<T> {
    pub fn new(most: usize) -> Self {
        Self {
            most,
            order: BTreeSet::new(),
            held: HashMap::new(),
            tied_out: 0,
        }
    }

    /// The cheap question first: could it be one of them?
    pub fn wants(&self, score: i64) -> bool {
        self.held.len() < self.most || self.order.first().is_some_and(|(least, _)| score >= *least)
    }

    pub fn push(&mut self, key: &[u8], score: i64, more: impl FnOnce() -> T) {
        if self.most == 0 || !self.wants(score) {
            return;
        }
        // The common case of a walk over keys that are all alike: it comes after the last one that is kept.
        if self.held.len() == self.most
            && let Some((least, last)) = self.order.first()
            && score == *least
            && *key >= *last.0
        {
            self.tied_out += u64::from(*key != *last.0);
            return;
        }
        if let Some((held, _)) = self.held.get(key) {
            if *held >= score {
                return;
            }
            let old = (*held, std::cmp::Reverse(key.to_vec()));
            self.order.remove(&old);
            self.held.remove(key);
        }
        if self.held.len() == self.most
            && let Some((out, name)) = self.order.pop_first()
        {
            self.held.remove(&name.0);
            let least = self.order.first().map(|(least, _)| *least);
            // Whoever leaves is tied with those who stay, or nobody is any more.
            self.tied_out = match least {
                Some(least) if least == out => self.tied_out + 1,
                _ if score == out => self.tied_out + 1,
                _ => 0,
            };
        }
        self.order.insert((score, std::cmp::Reverse(key.to_vec())));
        self.held.insert(key.to_vec(), (score, more()));
    }

    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Keys left out that have the same score as the last one of the list.
    pub fn tied_out(&self) -> u64 {
        self.tied_out
    }

    /// The highest first.
    pub fn into_sorted(mut self) -> Vec<(Vec<u8>, i64, T)> {
        let mut sorted = Vec::with_capacity(self.held.len());
        while let Some((score, name)) = self.order.pop_last() {
            if let Some((_, more)) = self.held.remove(&name.0) {
                sorted.push((name.0, score, more));
            }
        }
        sorted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn as_a_full_sort_would_have_it(keys in proptest::collection::vec((0_u8..40, 0_i64..12), 0..200), most in 0_usize..12) {
            let mut top = Top::new(most);
            let mut all: HashMap<Vec<u8>, i64> = HashMap::new();
            for (key, score) in &keys {
                top.push(&[*key], *score, || ());
                let best = all.entry(vec![*key]).or_insert(*score);
                *best = (*best).max(*score);
            }
            let mut sorted: Vec<(Vec<u8>, i64)> = all.into_iter().collect();
            sorted.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
            sorted.truncate(most);
            let found: Vec<(Vec<u8>, i64)> = top.into_sorted().into_iter().map(|(k, s, ())| (k, s)).collect();
            proptest::prop_assert_eq!(found, sorted);
        }
    }

    #[test]
    fn equals_that_are_left_out_are_counted() {
        let mut top = Top::new(2);
        for key in ["d", "c", "b", "a"] {
            top.push(key.as_bytes(), 5, || ());
        }
        assert_eq!(top.tied_out(), 2);
        top.push(b"x", 9, || ());
        assert_eq!(top.tied_out(), 3);
        top.push(b"y", 9, || ());
        assert_eq!(top.tied_out(), 0);
    }
}
