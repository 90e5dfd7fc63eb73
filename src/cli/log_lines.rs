//! How a log's lines are read: `--prefix`, `--log-format`, `--log-timezone`.

use chrono::FixedOffset;

use super::args::logs::LineArgs;
use super::fault::Fault;
use crate::logs::{Prefix, ScanOptions, Wanted, Zone};

/// Of all times.
///
/// # Errors
/// When an option can't be what it says.
pub fn options(args: &LineArgs, wanted: Wanted) -> Result<ScanOptions, Fault> {
    let prefix = args.prefix.as_deref().map(Prefix::new).transpose();
    Ok(ScanOptions {
        wanted,
        format: args.log_format.map(Into::into),
        prefix: prefix.map_err(|error| Fault::Usage(format!("--prefix: {error}")))?,
        zone: Zone::given(args.log_timezone.as_deref().map(offset).transpose()?),
        since: None,
        until: None,
    })
}

/// `+09:00`, `-3`, `+0530`, `UTC`.
fn offset(text: &str) -> Result<FixedOffset, Fault> {
    let wrong = || {
        Fault::Usage(format!(
            "--log-timezone {text}: an offset from UTC, such as +09:00"
        ))
    };
    if matches!(text, "UTC" | "Z") {
        return FixedOffset::east_opt(0).ok_or_else(wrong);
    }
    let (sign, rest) = match text.as_bytes().first() {
        Some(b'+') => (1, &text[1..]),
        Some(b'-') => (-1, &text[1..]),
        _ => return Err(wrong()),
    };
    let digits: String = rest.chars().filter(|c| *c != ':').collect();
    let number: i32 = digits.parse().map_err(|_| wrong())?;
    let minutes = match digits.len() {
        1 | 2 => number * 60,
        4 if number % 100 < 60 => number / 100 * 60 + number % 100,
        _ => return Err(wrong()),
    };
    FixedOffset::east_opt(sign * minutes * 60).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_as_people_write_them() {
        for (text, minutes) in [("+09:00", 540), ("-3", -180), ("+0530", 330), ("UTC", 0)] {
            assert_eq!(offset(text).expect(text).local_minus_utc(), minutes * 60);
        }
        assert!(offset("JST").is_err());
    }
}
