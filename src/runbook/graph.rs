//! The ways through a book: what may follow a step, and what must have run before it.

use std::collections::BTreeSet;

use super::book::{Book, Kind, Step};

/// What follows each step, by number; a step that ends the book is followed by nothing.
pub fn followers(book: &Book) -> Vec<Vec<usize>> {
    let of = |n: usize, step: &Step| -> Vec<usize> {
        let to = |name: &str| book.step(name);
        if let Kind::Decide(branches) = &step.kind {
            return branches.iter().filter_map(|b| to(&b.to.text)).collect();
        }
        let mut next: Vec<usize> = Vec::new();
        match (step.end, &step.goto) {
            (Some(_), _) => {}
            (None, Some(goto)) => next.extend(to(&goto.text)),
            (None, None) if n + 1 < book.steps.len() => next.push(n + 1),
            (None, None) => {}
        }
        next.extend(step.on_timeout.as_ref().and_then(|name| to(&name.text)));
        next
    };
    book.steps
        .iter()
        .enumerate()
        .map(|(n, step)| of(n, step))
        .collect()
}

/// For each step those that every way to it has passed, itself included; `None`: no way leads to it.
pub fn before(followers: &[Vec<usize>]) -> Vec<Option<BTreeSet<usize>>> {
    let mut before: Vec<Option<BTreeSet<usize>>> = vec![None; followers.len()];
    if let Some(first) = before.first_mut() {
        *first = Some(BTreeSet::from([0]));
    }
    loop {
        let mut changed = false;
        for n in 0..followers.len() {
            let Some(passed) = before[n].clone() else {
                continue;
            };
            for next in &followers[n] {
                let mut with: BTreeSet<usize> = match &before[*next] {
                    Some(known) => known.intersection(&passed).copied().collect(),
                    None => passed.clone(),
                };
                with.insert(*next);
                if before[*next].as_ref() != Some(&with) {
                    before[*next] = Some(with);
                    changed = true;
                }
            }
        }
        if !changed {
            return before;
        }
    }
}
