//! The generated parts as Markdown. Each begins with its heading and is empty where there is nothing to say.

mod course;
mod done;
mod judged;
mod opening;

use chrono::NaiveDate;

use crate::model::Timestamp;

pub use course::{charts, worst};
pub use done::{departures, done, sources};
pub use judged::{causes, drift};
pub use opening::{found, notices, summary, timeline};

/// How a column stands.
const LEFT: bool = false;
const RIGHT: bool = true;

/// A time; with its day where that is another than the one before.
struct Clock(Option<NaiveDate>);

impl Clock {
    fn tell(&mut self, at: Timestamp) -> String {
        let day = at.utc().date_naive();
        match self.0.replace(day) == Some(day) {
            true => Self::time(at),
            false => at.utc().format("%Y-%m-%d %H:%M:%S").to_string(),
        }
    }

    /// Without its day.
    fn time(at: Timestamp) -> String {
        at.utc().format("%H:%M:%S").to_string()
    }

    /// From then to then; the same second once.
    fn stretch(&mut self, first: Timestamp, last: Timestamp, to: &str) -> String {
        let first = self.tell(first);
        let last = self.tell(last);
        match first.ends_with(&last) {
            true => first,
            false => format!("{first} {to} {last}"),
        }
    }

    fn maybe(&mut self, at: Option<Timestamp>, none: &str) -> String {
        at.map_or_else(|| none.to_owned(), |at| self.tell(at))
    }
}

/// As a sentence begins.
fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        format!("{}{}", first.to_uppercase(), chars.as_str())
    })
}
