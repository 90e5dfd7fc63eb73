//! PURE: SQL text as strangers wrote it, whole or cut in the middle: tokens, one fingerprint, secrets, quoting.

mod lexer;
mod normalise;
mod quote;
mod readonly;
mod secrets;

pub use lexer::{Token, tokens};
pub use normalise::fingerprint;
pub use quote::{identifier, literal};
pub use readonly::{doubts, one_read, params};
pub use secrets::{REDACTION_RULE, has_password, reduce_secret};
