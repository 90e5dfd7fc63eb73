//! What the book said is to be done, as items that people complete.

use chrono::{Days, NaiveDate};

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
