//! What the book said is to be done, as items that people complete.

use chrono::{Days, NaiveDate};

use super::marked::{Piece, parse};
use crate::journal::{Event, Record};

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionItem {
    pub what: String,
    pub owner: String,
    pub due: Option<NaiveDate>,
}

/// Of the notes of all runs, each once.
pub fn of_records(runs: &[Vec<Record>]) -> Vec<ActionItem> {
    let mut all: Vec<ActionItem> = Vec::new();
    for record in runs.iter().flatten() {
        if let Event::Note { question, text, .. } = &record.event
            && question == "to do"
        {
            let item = read(text, record.at.utc().date_naive());
            if !all.iter().any(|known| known.what == item.what) {
                all.push(item);
            }
        }
    }
    all
}

/// Those that a document's own table of action items doesn't have; none where there is no such table yet.
pub fn not_in<'a>(markdown: &str, items: &'a [ActionItem]) -> Vec<&'a ActionItem> {
    let pieces = parse(markdown).unwrap_or_default();
    let table = pieces.iter().find_map(|piece| match piece {
        Piece::People { name, body, .. } if *name == "actions" => Some(bare(body)),
        _ => None,
    });
    let Some(table) = table else {
        return Vec::new();
    };
    let is_missing = |item: &&ActionItem| !table.contains(&bare(&item.what));
    items.iter().filter(is_missing).collect()
}

/// However it is marked up: letters and digits alone.
fn bare(text: &str) -> String {
    let text = text
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    let kept = text.chars().filter(|c| c.is_alphanumeric());
    kept.flat_map(char::to_lowercase).collect()
}

/// `Raise the pool (owner: web, due: +14d)`, of that day.
fn read(text: &str, day: NaiveDate) -> ActionItem {
    let parts = text
        .strip_suffix(')')
        .and_then(|text| text.rsplit_once(" (owner: "))
        .and_then(|(what, rest)| Some((what, rest.rsplit_once(", due: ")?)));
    match parts {
        Some((what, (owner, due))) => ActionItem {
            what: what.to_owned(),
            owner: owner.to_owned(),
            due: self::due(due, day),
        },
        None => ActionItem {
            what: text.to_owned(),
            owner: String::new(),
            due: None,
        },
    }
}

/// `+14d` of a day, or a day itself.
fn due(text: &str, day: NaiveDate) -> Option<NaiveDate> {
    let days = text.strip_prefix('+').and_then(|text| {
        let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let number: u64 = number.parse().ok()?;
        match unit {
            "d" => Some(number),
            "w" => number.checked_mul(7),
            _ => None,
        }
    });
    match days {
        Some(days) => day.checked_add_days(Days::new(days)),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> NaiveDate {
        text.parse().expect("a day")
    }

    #[test]
    fn an_item_as_the_journal_has_it() {
        let of = |text| read(text, day("2026-12-20"));
        let item = of("Sum up (all) pools (owner: data, platform, due: +14d)");
        assert_eq!(item.what, "Sum up (all) pools");
        assert_eq!(item.owner, "data, platform");
        assert_eq!(item.due, Some(day("2027-01-03")));
        assert_eq!(
            of("x (owner: y, due: 2027-02-01)").due,
            Some(day("2027-02-01"))
        );
        assert_eq!(of("x (owner: y, due: soon)").due, None);
        assert_eq!(of("just do it").owner, "");
        assert_eq!(of("x (owner: y, due: +é)").due, None);
    }
}
