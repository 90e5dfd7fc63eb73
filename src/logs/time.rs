//! Times as a log has them, with the word of their zone.

use std::collections::BTreeSet;

use chrono::{DateTime, FixedOffset, NaiveDate, NaiveDateTime, TimeDelta};

use crate::model::Timestamp;

/// What the word of a time zone is taken for.
#[derive(Clone, Debug, Default)]
pub struct Zone {
    /// What the person says: it counts for words that don't say it themselves.
    given: Option<FixedOffset>,
    /// Words that could be more than one zone, or are none that is known, with what they were taken for.
    pub assumed: BTreeSet<String>,
}

/// What is said of a word that is no zone's.
pub const AS_UTC: &str = "taken as UTC";

/// Abbreviations of one meaning, with their minutes east of UTC.
const SURE: [(&str, i32); 41] = [
    ("UTC", 0),
    ("GMT", 0),
    ("Z", 0),
    ("WET", 0),
    ("WEST", 60),
    ("CET", 60),
    ("CEST", 120),
    ("EET", 120),
    ("EEST", 180),
    ("MSK", 180),
    ("SAST", 120),
    ("EAT", 180),
    ("WAT", 60),
    ("CAT", 120),
    ("PKT", 300),
    ("WIB", 420),
    ("WITA", 480),
    ("WIT", 540),
    ("HKT", 480),
    ("AWST", 480),
    ("JST", 540),
    ("KST", 540),
    ("ACST", 570),
    ("ACDT", 630),
    ("AEST", 600),
    ("AEDT", 660),
    ("NZST", 720),
    ("NZDT", 780),
    ("EST", -300),
    ("EDT", -240),
    ("CDT", -300),
    ("MST", -420),
    ("MDT", -360),
    ("PDT", -420),
    ("AKST", -540),
    ("AKDT", -480),
    ("HST", -600),
    ("ADT", -180),
    ("NST", -210),
    ("NDT", -150),
    ("UCT", 0),
];

/// Abbreviations of several meanings, with the one that is taken.
const UNSURE: [(&str, i32, &str); 5] = [
    ("CST", -360, "US Central (China's is +08:00)"),
    ("IST", 330, "India (Israel's is +02:00, Ireland's +01:00)"),
    ("BST", 60, "British summer (Bangladesh's is +06:00)"),
    ("PST", -480, "US Pacific (the Philippines' is +08:00)"),
    ("AST", -240, "Atlantic (Arabia's is +03:00)"),
];

impl Zone {
    pub fn given(offset: Option<FixedOffset>) -> Self {
        Self {
            given: offset,
            assumed: BTreeSet::new(),
        }
    }

    fn minutes(&mut self, word: &str) -> i32 {
        if let Some(minutes) = numeric(word) {
            return minutes;
        }
        if let Some((_, minutes)) = SURE.iter().find(|(name, _)| *name == word) {
            return *minutes;
        }
        if let Some(given) = self.given {
            return given.local_minus_utc() / 60;
        }
        if let Some((_, minutes, meaning)) = UNSURE.iter().find(|(name, ..)| *name == word) {
            self.assumed.insert(format!("{word} taken as {meaning}"));
            return *minutes;
        }
        let word = if word.is_empty() { "no zone" } else { word };
        self.assumed.insert(format!("{word} {AS_UTC}"));
        0
    }
}

/// `+09`, `-03:30`, `+0530`.
fn numeric(word: &str) -> Option<i32> {
    let (sign, digits) = match word.as_bytes().first()? {
        b'+' => (1, &word[1..]),
        b'-' => (-1, &word[1..]),
        _ => return None,
    };
    let digits: String = digits.chars().filter(|c| *c != ':').collect();
    let number: i32 = digits.parse().ok()?;
    match digits.len() {
        1 | 2 => Some(sign * number * 60),
        4 => Some(sign * (number / 100 * 60 + number % 100)),
        _ => None,
    }
}

/// `2026-12-01 02:35:34.717 JST` at the beginning of a text: the time, and how long it is.
pub fn leading(text: &str, zone: &mut Zone) -> Option<(Timestamp, usize)> {
    let (local, mut end) = local(text)?;
    let word = text[end..].strip_prefix(' ').map_or("", zone_word);
    if !word.is_empty() {
        end += 1 + word.len();
    }
    Some((at(local, zone.minutes(word))?, end))
}

/// An abbreviation or an offset at the beginning of a text; empty where there is none.
fn zone_word(text: &str) -> &str {
    let run = |from: usize, keep: fn(u8) -> bool| {
        text.bytes().skip(from).take_while(|b| keep(*b)).count()
    };
    if !text.starts_with(['+', '-']) {
        let letters = run(0, |b| b.is_ascii_uppercase());
        return &text[..if letters <= 5 { letters } else { 0 }];
    }
    let hours = run(1, |b| b.is_ascii_digit());
    // `+09:30`, and `+09:` where the colon belongs to the prefix.
    let minutes = text.as_bytes().get(1 + hours) == Some(&b':')
        && run(2 + hours, |b| b.is_ascii_digit()) == 2;
    &text[..if minutes { hours + 4 } else { hours + 1 }]
}

fn at(local: NaiveDateTime, minutes: i32) -> Option<Timestamp> {
    let utc = local.checked_sub_signed(TimeDelta::minutes(minutes.into()))?;
    Some(Timestamp::new(utc.and_utc()))
}

/// The date and time without its zone, and how long it is.
fn local(text: &str) -> Option<(NaiveDateTime, usize)> {
    let bytes = text.as_bytes();
    let shaped = bytes.len() >= 19
        && bytes[..19].iter().enumerate().all(|(i, b)| match i {
            4 | 7 => *b == b'-',
            10 => matches!(b, b' ' | b'T'),
            13 | 16 => *b == b':',
            _ => b.is_ascii_digit(),
        });
    if !shaped {
        return None;
    }
    let number = |from: usize, to: usize| text[from..to].parse::<u32>().ok();
    let year = i32::try_from(number(0, 4)?).ok()?;
    let date = NaiveDate::from_ymd_opt(year, number(5, 7)?, number(8, 10)?)?;
    let mut end = 19;
    let mut micros = 0;
    if bytes.get(19) == Some(&b'.') {
        let digits = bytes[20..]
            .iter()
            .take_while(|b| b.is_ascii_digit())
            .count();
        let kept = digits.min(6);
        if kept == 0 {
            return None;
        }
        micros = number(20, 20 + kept)? * 10_u32.pow(6 - u32::try_from(kept).ok()?);
        end = 20 + digits;
    }
    let time = date.and_hms_micro_opt(
        number(11, 13)?,
        number(14, 16)?,
        number(17, 19)?.min(59),
        micros,
    )?;
    Some((time, end))
}

/// `1764523534.717`
pub fn epoch(text: &str) -> Option<Timestamp> {
    let (seconds, fraction) = text.split_once('.')?;
    let millis: u32 = fraction.parse().ok()?;
    if fraction.len() != 3 {
        return None;
    }
    DateTime::from_timestamp(seconds.parse().ok()?, millis * 1_000_000).map(Timestamp::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (String, usize, Vec<String>) {
        let mut zone = Zone::default();
        let (at, end) = leading(text, &mut zone).expect("a time");
        (at.to_string(), end, zone.assumed.into_iter().collect())
    }

    #[test]
    fn the_word_of_the_zone_is_honoured() {
        let cases = [
            (
                "2026-12-01 02:35:34.717 JST [1]",
                "2026-11-30T17:35:34.717000Z",
                27,
            ),
            (
                "2026-12-01 02:35:34 UTC:10.0.0.1",
                "2026-12-01T02:35:34.000000Z",
                23,
            ),
            (
                "2026-12-01 02:35:34.5 -03 [1]",
                "2026-12-01T05:35:34.500000Z",
                25,
            ),
            (
                "2026-12-01 02:35:34 +0530",
                "2026-11-30T21:05:34.000000Z",
                25,
            ),
        ];
        for (text, at, end) in cases {
            assert_eq!(read(text), (at.into(), end, Vec::new()), "{text}");
        }
    }

    #[test]
    fn what_is_taken_for_granted_is_said() {
        let (at, _, assumed) = read("2026-12-01 02:35:34 CST [1]");
        assert_eq!(at, "2026-12-01T08:35:34.000000Z");
        assert_eq!(assumed, ["CST taken as US Central (China's is +08:00)"]);
        let mut china = Zone::given(FixedOffset::east_opt(8 * 3600));
        let (at, _) = leading("2026-12-01 02:35:34 CST", &mut china).expect("a time");
        assert_eq!(at.to_string(), "2026-11-30T18:35:34.000000Z");
        assert!(china.assumed.is_empty());
        assert_eq!(read("2026-12-01 02:35:34 LOG").2, ["LOG taken as UTC"]);
    }

    #[test]
    fn no_time_is_no_time() {
        for text in [
            "",
            "2026-13-01 02:35:34 UTC",
            "2026-12-01",
            "日本語日本語日本語日本語",
        ] {
            assert!(leading(text, &mut Zone::default()).is_none(), "{text}");
        }
        assert_eq!(
            epoch("1764523534.717").map(|at| at.to_string()).as_deref(),
            Some("2025-11-30T17:25:34.717000Z")
        );
    }
}
