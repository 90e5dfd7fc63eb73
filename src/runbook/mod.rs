//! Runbooks: YAML read with every fault at its place, checked as a graph, walked one decision at a time. PURE: nothing here
//! asks, reads a server or changes one; `operate::book` does, at what the walk decides.

mod book;
pub mod builtin;
mod cond;
mod fault;
pub mod fixture;
pub mod graph;
mod include;
mod lint;
mod mask;
mod node;
mod read;
pub mod render;
pub mod schema;
mod text;
pub mod walk;

pub use book::{
    Act, Ask, Book, Command, Confirm, Effects, End, Input, InputKind, Kind, Named, Note, Operand,
    PARTS, Poll, Question, Select, Sql, Step, Value,
};
pub use cond::{Condition, Scope};
pub use fault::{Fault, Place};
pub use include::{Shelf, is_named};
pub use mask::masked;
pub use read::time;
pub use text::Text;

/// Reads and checks a book: the book where nothing is wrong, else all that is. What it includes comes from the shelf.
///
/// # Errors
/// Every fault, in the order of the file.
pub fn load(text: &str, shelf: Shelf<'_>) -> Result<Book, Vec<Fault>> {
    load_within(text, shelf, &[])
}

fn load_within(text: &str, shelf: Shelf<'_>, within: &[String]) -> Result<Book, Vec<Fault>> {
    let mut faults = Vec::new();
    let mut book = node::parse(text, &mut faults).and_then(|node| read::book(&node, &mut faults));
    if let Some(book) = &mut book {
        book.texts.push(text.to_owned());
        include::flatten(book, shelf, within, &mut faults);
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
            let loaded = load(book.text, &builtin::text).unwrap_or_else(|faults| {
                let shown: Vec<String> =
                    faults.iter().map(|f| f.show(book.id, book.text)).collect();
                panic!("{}", shown.concat())
            });
            assert_eq!(loaded.id.text, book.id);
        }
    }
}
