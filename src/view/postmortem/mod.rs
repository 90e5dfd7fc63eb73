//! The postmortem: Markdown of GitHub's flavour, and the same as one HTML file that asks nothing of anybody.

mod charts;
mod escape;
mod html;
mod markdown;
mod parts;
mod prose;
mod svg;

pub use html::html;
pub use markdown::blocks;
