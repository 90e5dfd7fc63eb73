//! The books that come with the program.

/// A book by its id.
pub struct Builtin {
    pub id: &'static str,
    pub text: &'static str,
}

macro_rules! books {
    ($($id:literal),+ $(,)?) => {
        &[$(Builtin {
            id: $id,
            text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/runbooks/", $id, ".yaml")),
        }),+]
    };
}

pub static BOOKS: &[Builtin] = books!["idle-in-transaction", "lock-pileup"];

pub fn named(id: &str) -> Option<&'static Builtin> {
    BOOKS.iter().find(|book| book.id == id)
}
