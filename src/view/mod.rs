//! Report → bytes: tables and Markdown for people, JSON, CSV and Prometheus' format for programs. The one place where
//! output is made.

mod annotation;
pub mod budget;
pub mod bundle;
pub mod check;
mod console;
mod header;
mod json;
mod layout;
mod markdown;
pub mod postmortem;
mod progress;
mod prometheus;
mod reports;
mod sanitize;
mod sheet;
mod show;

pub use console::{Console, Format, Style};
pub use header::identity;
pub use progress::Progress;
pub use reports::{Table, actions, explain, query, wrap};
pub use sanitize::{clean, cut, width};
pub use sheet::{Col, Sheet, col};
pub use show::{Names, NoSuchList, down, lists, show, show_json, show_names, show_sheet, text};
