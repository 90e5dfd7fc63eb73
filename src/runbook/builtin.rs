//! The books that come with the program.

/// A book by its id, with the cases that it is tested by.
pub struct Builtin {
    pub id: &'static str,
    pub text: &'static str,
    pub cases: &'static str,
}

macro_rules! books {
    ($($id:literal),+ $(,)?) => {
        &[$(Builtin {
            id: $id,
            text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/runbooks/", $id, ".yaml")),
            cases: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/runbooks/", $id, ".test.yaml")),
        }),+]
    };
}

/// The order of a bad night: what is seen most comes first.
pub static BOOKS: &[Builtin] = books![
    "connection-exhaustion",
    "idle-in-transaction",
    "long-transaction",
    "lock-pileup",
    "deadlock",
    "pool-timeout-mismatch",
    "cache-stampede",
    "queue-backlog",
];

pub fn named(id: &str) -> Option<&'static Builtin> {
    BOOKS.iter().find(|book| book.id == id)
}

/// The built-in books as a shelf.
pub fn text(id: &str) -> Option<String> {
    named(id).map(|book| book.text.to_owned())
}
