//! Against real servers, started by the drills' own code and gone when the test is over.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test reads its own environment and says what is missing"
)]

mod drills;
mod failures;
mod forest;
mod getting_in;
mod harness;
mod pooler;
mod replay;
mod reports;
mod rights;
mod rules;
mod text;
