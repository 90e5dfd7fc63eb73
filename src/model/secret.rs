//! A password that can't be printed: no `Debug`, `Display` or `Serialize` of the value exists.

use std::fmt;

/// Holds a password. The one way to the value is `expose`, used where it is handed to the server.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// So that a struct that holds one can be debugged; never the value.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}
