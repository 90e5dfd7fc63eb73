//! PURE: SQL text as strangers wrote it, whole or cut in the middle: tokens, one fingerprint, secrets, quoting.

mod detect;
mod lexer;
mod mask;
mod normalise;
mod plain;
mod quote;
mod readonly;
mod secrets;
mod tags;
mod utility;
mod verbs;
mod whole;

pub use detect::{Hit, Rule, detect, detect_named, hits, named_hits};
pub use lexer::{Token, tokens};
pub use mask::{Masked, doubtful, masked, shown};
pub use normalise::fingerprint;
pub use plain::{name_redacted, redacted, without_credentials};
pub use quote::{identifier, literal};
pub use readonly::{doubts, one_read, params};
pub use secrets::{REDACTION_RULE, has_password, reduce_secret};
pub use whole::is_whole;
