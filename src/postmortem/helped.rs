//! Did it help? What the captures before and after an act say.

use super::course::Course;
use super::frame::Frame;
use crate::model::{Millis, Timestamp};

/// `20 → 12 of 20 usable slots taken, 9 → 0 blocked (captures of 01:08:33 and 01:08:35)`, of what was done from `first` to `last`.
pub(super) fn helped(course: &Course, first: Timestamp, last: Timestamp) -> Option<String> {
    let judged = || course.frames.iter().filter(|frame| frame.is_judged());
    let before = judged().rfind(|frame| frame.at <= first)?;
    let at = |frame: &Frame| frame.at.utc().format("%H:%M:%S").to_string();
    let Some(after) = judged().find(|frame| frame.at > last) else {
        return Some("there is no capture after it".into());
    };
    let mut parts = Vec::new();
    if let (Some(was), Some(is)) = (before.slots, after.slots) {
        let usable = match was.usable == is.usable {
            true => format!("of {}", is.usable),
            false => format!("of {}, before of {},", is.usable, was.usable),
        };
        parts.push(format!(
            "{} {usable} usable slots taken",
            from(was.used, is.used)
        ));
    }
    if let (Some(was), Some(is)) = (before.blocked, after.blocked)
        && (was, is) != (0, 0)
    {
        parts.push(format!("{} blocked", from(was, is)));
    }
    let ages = (before.oldest_transaction, after.oldest_transaction);
    if ages != (None, None) {
        let told = |age: Option<Millis>| age.map_or("none".to_owned(), |age| age.to_string());
        let ages = from(told(ages.0), told(ages.1));
        parts.push(format!("oldest transaction {ages}"));
    }
    // What has changed is told before what stayed as it was.
    parts.sort_by_key(|part| !part.contains('→'));
    Some(format!(
        "{} (captures of {} and {})",
        parts.join(", "),
        at(before),
        at(after)
    ))
}

/// `20 → 12`; what stayed as it was once.
fn from<T: PartialEq + std::fmt::Display>(was: T, is: T) -> String {
    match was == is {
        true => format!("still {is}"),
        false => format!("{was} → {is}"),
    }
}
