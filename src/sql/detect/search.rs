//! Runs every rule for secrets over one text, and merges the hits that overlap.

use std::ops::Range;

use super::{Rule, decoded, keyed, random, shapes};

/// A likely secret and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Bytes of the text.
    pub range: Range<usize>,
    pub rule: Rule,
}

/// How many times what was encoded is decoded and looked at again.
const MAX_DEPTH: usize = 2;

/// The first likely secret of a text. Meant for one line at a time, right for any text.
pub fn detect(text: &str) -> Option<Rule> {
    hits(text).first().map(|hit| hit.rule)
}

/// The same for a name (a role, a database, a key, the gid of a prepared transaction): only what has the unmistakable
/// shape of a secret, and `password=…`. A name may look random, hold a UUID or an `@`.
pub fn detect_named(name: &str) -> Option<Rule> {
    named_hits(name).first().map(|hit| hit.rule)
}

/// All likely secrets of a text, in order, none over another.
pub fn hits(text: &str) -> Vec<Hit> {
    let mut all = direct(text);
    decoded::hits(text, MAX_DEPTH, &mut all);
    in_order(all)
}

/// Those of a text that are passwords, keys and tokens by their shape or by what stands before them: addresses, rows and
/// what only looks random stay.
pub fn credential_hits(text: &str) -> Vec<Hit> {
    let mut all = direct(text);
    decoded::hits(text, MAX_DEPTH, &mut all);
    all.retain(|hit| hit.rule.is_credential());
    in_order(all)
}

/// All of a name, by the rules of [`detect_named`].
pub fn named_hits(name: &str) -> Vec<Hit> {
    let mut all = shapes::hits(name);
    all.retain(|hit| hit.rule.is_unmistakable());
    keyed::named_hits(name, &mut all);
    in_order(all)
}

/// The part of a UUID's or a random run's text that no person chose. `None` if there is more to it than its looks: a
/// secret of another kind, or words in base64 or hex.
pub(in crate::sql) fn random_part(rule: Rule, text: &str) -> Option<&str> {
    match rule {
        Rule::Uuid => random::uuid(text),
        Rule::HighEntropy => {
            let mut others = shapes::hits(text);
            keyed::hits(text, &mut others);
            decoded::hits(text, MAX_DEPTH, &mut others);
            (others.is_empty() && !decoded::holds_words(text)).then_some(text)
        }
        _ => None,
    }
}

/// What shows without decoding.
pub(super) fn direct(text: &str) -> Vec<Hit> {
    let mut all = shapes::hits(text);
    keyed::hits(text, &mut all);
    random::hits(text, &mut all);
    all
}

/// Sorted; what overlaps is one, under the rule of what begins first.
fn in_order(mut all: Vec<Hit>) -> Vec<Hit> {
    all.sort_by_key(|hit| (hit.range.start, usize::MAX - hit.range.end));
    let mut out: Vec<Hit> = Vec::with_capacity(all.len());
    for hit in all {
        match out.last_mut() {
            Some(last) if hit.range.start < last.range.end => {
                last.range.end = last.range.end.max(hit.range.end);
            }
            _ => out.push(hit),
        }
    }
    out
}
