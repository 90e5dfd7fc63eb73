//! Numbers that are told by their digits: of cards, and what stands around a number.

use std::ops::Range;

use regex::Captures;

use super::shapes::group;

/// The issuers' ranges and Luhn's check digit.
pub(super) fn card_number(text: &str, captures: &Captures<'_>) -> bool {
    let (found, range) = group(captures);
    if !alone(text, captures) {
        return false;
    }
    let digits: Vec<u32> = found.chars().filter_map(|c| c.to_digit(10)).collect();
    let number = |len: usize| digits[..len].iter().fold(0, |n, d| n * 10 + d);
    let issued = match digits.len() {
        14 => matches!(number(2), 36 | 38 | 39) || matches!(number(3), 300..=305),
        15 => matches!(number(2), 34 | 37),
        16 => {
            digits[0] == 4
                || matches!(number(2), 51..=55 | 62 | 65)
                || matches!(number(3), 644..=649)
                || matches!(number(4), 2221..=2720 | 3528..=3589 | 6011)
        }
        _ => false,
    };
    issued && is_luhn(&digits) && !is_json_number(text, &range)
}

fn is_luhn(digits: &[u32]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(i, d)| match (i % 2, d * 2) {
            (0, _) => *d,
            (_, twice) => twice / 10 + twice % 10,
        })
        .sum();
    sum.is_multiple_of(10)
}

/// A bare number behind a key that doesn't speak of cards: a counter.
fn is_json_number(text: &str, range: &Range<usize>) -> bool {
    let before = text[..range.start].trim_end_matches(' ');
    let Some(key) = before.strip_suffix("\":") else {
        return false;
    };
    let key = &key[key.rfind('"').map_or(0, |at| at + 1)..];
    let key = key.to_ascii_lowercase();
    !key.ends_with('\\')
        && !["card", "pan", "account", "number", "cc"]
            .iter()
            .any(|word| key.contains(word))
}

/// Not a part of a longer number or name.
pub(super) fn alone(text: &str, captures: &Captures<'_>) -> bool {
    let (_, range) = group(captures);
    let joins = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let before = text[..range.start].chars().next_back();
    // The `n` of a JSON `\n`.
    let escaped = text[..range.start].ends_with("\\n") || text[..range.start].ends_with("\\t");
    let mut after = text[range.end..].chars();
    let next = after.next();
    let sentence_end = next == Some('.') && !after.next().is_some_and(char::is_alphanumeric);
    (escaped || !before.is_some_and(joins)) && (sentence_end || !next.is_some_and(joins))
}

#[cfg(test)]
mod tests {
    use super::super::{Rule, hits};

    #[test]
    fn a_card_has_a_check_digit_and_an_issuer() {
        let rules = |text: &str| -> Vec<Rule> { hits(text).iter().map(|h| h.rule).collect() };
        assert_eq!(rules("4111 1111 1111 1111"), [Rule::CardNumber]);
        assert_eq!(rules("pan 5500005555555559."), [Rule::CardNumber]);
        assert_eq!(rules("4111 1111 1111 1112"), []);
        assert_eq!(rules("1764523814123456"), []);
        assert_eq!(rules("\"reads\": 4111111111111111,"), []);
        assert_eq!(rules("\"card\": 4111111111111111,"), [Rule::CardNumber]);
        assert_eq!(rules("x4111111111111111"), []);
    }
}
