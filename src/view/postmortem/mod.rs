//! The postmortem: Markdown of GitHub's flavour, and the same as one HTML file that asks nothing of anybody.

mod charts;
mod escape;
mod html;
mod lint;
mod markdown;
mod parts;
mod prose;
mod svg;

pub use html::html;
pub use lint::{lint_github, lint_json, lint_lines};
pub use markdown::blocks;
