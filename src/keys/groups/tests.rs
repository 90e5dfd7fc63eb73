//! Groups of made-up but life-like databases.

mod limits;
mod names;
mod properties;
mod queues;
mod scale;
mod web;

use std::collections::BTreeMap;

use super::{Grouping, Pattern, Sample};

/// Numbers that look random, the same ones each time.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() >> 16) as usize % end
    }

    pub fn text(&mut self, alphabet: &str, length: usize) -> String {
        let alphabet = alphabet.as_bytes();
        (0..length)
            .map(|_| char::from(alphabet[self.below(alphabet.len())]))
            .collect()
    }

    pub fn hex(&mut self, length: usize) -> String {
        self.text("0123456789abcdef", length)
    }

    pub fn base62(&mut self, length: usize) -> String {
        self.text(
            "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
            length,
        )
    }

    pub fn base64url(&mut self, length: usize) -> String {
        self.text(
            "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_",
            length,
        )
    }

    pub fn uuid(&mut self) -> String {
        [8, 4, 4, 4, 12].map(|length| self.hex(length)).join("-")
    }

    pub fn shuffle<T>(&mut self, all: &mut [T]) {
        for at in (1..all.len()).rev() {
            all.swap(at, self.below(at + 1));
        }
    }
}

/// A word that could be a name, another one for each number.
pub fn word(number: usize) -> String {
    const PARTS: [&str; 20] = [
        "ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "qui", "ro", "su",
        "ta", "ve", "wi", "xo", "zu",
    ];
    let mut left = number;
    let mut all = String::from(PARTS[left * 7 % 20]);
    while left > 0 || all.len() < 5 {
        all.push_str(PARTS[left % 20]);
        left /= 20;
    }
    all
}

pub fn learn<K: AsRef<[u8]>>(keys: &[K]) -> Grouping {
    let mut sample = Sample::new(Vec::new());
    for key in keys {
        sample.push(key.as_ref());
    }
    sample.learn()
}

/// All keys with the groups learned from them, by name, with how many there are.
pub fn groups<K: AsRef<[u8]>>(keys: &[K]) -> BTreeMap<String, usize> {
    let mut grouping = learn(keys);
    count(&mut grouping, keys)
}

pub fn count<K: AsRef<[u8]>>(grouping: &mut Grouping, keys: &[K]) -> BTreeMap<String, usize> {
    let mut all = BTreeMap::new();
    for key in keys {
        let id = grouping.assign(key.as_ref());
        *all.entry(grouping.name(id).to_owned()).or_insert(0) += 1;
    }
    all
}

/// Exactly these groups.
#[track_caller]
pub fn assert_groups<K: AsRef<[u8]>>(keys: &[K], expected: &[(&str, usize)]) {
    let found = groups(keys);
    let expected: BTreeMap<String, usize> = expected
        .iter()
        .map(|(name, count)| ((*name).to_owned(), *count))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn a_pattern_goes_first() {
    let mut sample = Sample::new(vec![
        Pattern::new("catalog:product:*"),
        Pattern::new("catalog:*:v?"),
    ]);
    let keys: Vec<String> = (0..100)
        .map(|n| format!("catalog:product:{n}:v1"))
        .collect();
    for key in &keys {
        sample.push(key.as_bytes());
    }
    let mut grouping = sample.learn();
    let found = count(&mut grouping, &keys);
    assert_eq!(
        found,
        BTreeMap::from([("catalog:product:*".to_owned(), 100)])
    );
    let other = grouping.assign(b"catalog:price:7:v2");
    assert_eq!(grouping.name(other), "catalog:*:v?");
    let other = grouping.assign(b"catalog:price:7:v22");
    assert_eq!(grouping.name(other), "catalog:price:*:v22");
    assert!(grouping.is_classified(other));
}
