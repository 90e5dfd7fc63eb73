//! Runbooks: YAML read with every fault at its place, checked as a graph, walked one decision at a time. PURE: nothing here
//! asks, reads a server or changes one; `operate::book` does, at what the walk decides.

mod book;
pub mod builtin;
mod cond;
mod fault;
mod graph;
mod lint;
mod node;
mod read;
pub mod walk;

pub use book::{
    Act, Ask, Book, Branch, Confirm, Effects, End, Expect, Input, InputKind, Kind, Named, Note,
    Poll, Select, Step, Value,
};
pub use cond::{Condition, Scope};
pub use fault::{Fault, Place};
pub use read::time;

/// Reads and checks a book: the book where nothing is wrong, else all that is.
///
/// # Errors
/// Every fault, in the order of the file.
pub fn load(text: &str) -> Result<Book, Vec<Fault>> {
    let mut faults = Vec::new();
    let book = node::parse(text, &mut faults).and_then(|node| read::book(&node, &mut faults));
    if let Some(book) = &book {
        lint::check(book, &mut faults);
    }
    faults.sort_by_key(|fault| fault.place);
    faults.dedup();
    match book {
        Some(book) if faults.is_empty() => Ok(book),
        _ => Err(faults),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_books_are_sound() {
        for book in builtin::BOOKS {
            let loaded = load(book.text).unwrap_or_else(|faults| {
                let shown: Vec<String> =
                    faults.iter().map(|f| f.show(book.id, book.text)).collect();
                panic!("{}", shown.concat())
            });
            assert_eq!(loaded.id.text, book.id);
        }
    }
}
