//! The pool budget, shown: a table, JSON, Markdown for a pull request, and what CI systems read.

mod ci;
mod explain;
mod json;
mod markdown;
mod table;

pub use ci::{github, junit, sarif};
pub use explain::explain;
pub use json::{explained, json};
pub use markdown::markdown;
pub use table::table;
