//! Runs of letters and digits that no person chose: tokens without a shape of their own.

use std::ops::Range;

use super::{Hit, Rule};

/// Shorter ones aren't told from names.
const SHORTEST: usize = 20;

/// All random-looking runs and UUIDs of a text.
pub(super) fn hits(text: &str, all: &mut Vec<Hit>) {
    for range in runs(text) {
        let run = &text[range.clone()];
        let bytea = range.start > 0 && text[..range.start].ends_with('\\') && run.starts_with('x');
        let commit = ["/commit/", "/blob/", "/tree/"]
            .iter()
            .any(|path| run.contains(path));
        let rule = if is_traceparent(run) || commit {
            continue;
        } else if uuid(run).is_some() {
            Rule::Uuid
        } else if is_random(run) || bytea && is_hex(&run[1..]) && run.len() > 16 {
            Rule::HighEntropy
        } else {
            continue;
        };
        all.push(Hit { range, rule });
    }
}

/// The runs of the alphabets of base64 that are long enough to be a token.
pub(super) fn runs(text: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() {
            let len = bytes[at..]
                .iter()
                .position(|b| !is_of_token(*b))
                .unwrap_or(bytes.len() - at);
            let range = at..at + len;
            at += len + 1;
            if len >= 16 {
                return Some(range);
            }
        }
        None
    })
}

fn is_of_token(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'_' | b'-' | b'=')
}

/// No words in it, and its digits and capitals change too often.
pub(in crate::sql) fn is_random(run: &str) -> bool {
    if run.len() < SHORTEST {
        return false;
    }
    let parts = || run.split(['+', '/', '_', '-', '=']);
    let longest = parts().max_by_key(|part| part.len()).unwrap_or(run);
    if longest.len() >= SHORTEST && part_is_random(longest) {
        return true;
    }
    // Base64 has separators of its own within the token.
    let measure = Measure::of(run);
    longest.len() >= 8
        && measure.upper > 1
        && measure.lower > 1
        && measure.digits > 0
        && measure.changes * 100 >= measure.len * 26
        && measure.in_words * 100 < measure.len * 40
}

fn part_is_random(part: &str) -> bool {
    if is_known(part) {
        return false;
    }
    let measure = Measure::of(part);
    let changes = |percent: usize| measure.changes * 100 >= measure.len * percent;
    let wordy = |percent: usize| measure.in_words * 100 >= measure.len * percent;
    if measure.distinct < 7 {
        return false;
    }
    match (measure.upper > 0, measure.lower > 0) {
        (true, true) if measure.digits > 0 => changes(22) && !wordy(48),
        (true, true) => changes(16) && !wordy(42) && measure.upper * 4 >= measure.len,
        (false, true) => measure.digits >= 3 && changes(22) && (changes(30) || !wordy(68)),
        (true, false) => measure.digits >= 2 && changes(12),
        (false, false) => false,
    }
}

/// A SHA-256 of a manifest; the name of a WAL file.
fn is_known(part: &str) -> bool {
    let wal = part.len() == 24 && part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'A'..=b'F'));
    let sha256 = part.len() == 64 && part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    wal && part.starts_with("0000") || sha256
}

struct Measure {
    len: usize,
    upper: usize,
    lower: usize,
    digits: usize,
    /// How often the class changes from one character to the next; a capital that begins a word doesn't count.
    changes: usize,
    /// How many small letters stand in runs of three or more.
    in_words: usize,
    distinct: u32,
}

#[derive(Clone, Copy, PartialEq)]
enum Class {
    Upper,
    Lower,
    Digit,
}

impl Measure {
    fn of(run: &str) -> Measure {
        let mut m = Measure {
            len: 0,
            upper: 0,
            lower: 0,
            digits: 0,
            changes: 0,
            in_words: 0,
            distinct: 0,
        };
        let mut seen = 0u128;
        let mut last = None;
        let mut word = 0;
        for b in run.bytes() {
            let class = match b {
                b'A'..=b'Z' => Class::Upper,
                b'a'..=b'z' => Class::Lower,
                b'0'..=b'9' => Class::Digit,
                _ => {
                    last = None;
                    m.in_words += if word >= 3 { word } else { 0 };
                    word = 0;
                    continue;
                }
            };
            m.len += 1;
            seen |= 1 << b;
            match class {
                Class::Upper => m.upper += 1,
                Class::Lower => m.lower += 1,
                Class::Digit => m.digits += 1,
            }
            if class == Class::Lower {
                word += 1;
            } else {
                m.in_words += if word >= 3 { word } else { 0 };
                word = 0;
            }
            let begins_word = last == Some(Class::Upper) && class == Class::Lower;
            if last.is_some_and(|last| last != class) && !begins_word {
                m.changes += 1;
            }
            last = Some(class);
        }
        m.in_words += if word >= 3 { word } else { 0 };
        m.distinct = seen.count_ones();
        m
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// The lengths of the groups of a text of hex digits and hyphens.
fn groups_are(text: &str, lengths: &[usize]) -> bool {
    let mut groups = text.split('-');
    let fit = lengths
        .iter()
        .all(|len| groups.next().is_some_and(|g| g.len() == *len && is_hex(g)));
    fit && groups.next().is_none()
}

/// `00-(32)-(16)-(2)`: names a request, and that is what it is kept for.
pub(in crate::sql) fn is_traceparent(run: &str) -> bool {
    groups_are(run, &[2, 32, 16, 2]) && !run.bytes().any(|b| b.is_ascii_uppercase())
}

/// The first one anywhere in it.
pub(super) fn uuid(run: &str) -> Option<&str> {
    const LEN: usize = 36;
    let at = run.as_bytes().windows(LEN).position(|window| {
        window[8] == b'-'
            && window[13] == b'-'
            && std::str::from_utf8(window).is_ok_and(|w| groups_are(w, &[8, 4, 4, 4, 12]))
    })?;
    run.get(at..at + LEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_look_random() {
        for token in [
            "5f4dcc3b5aa765d61d8327deb882cf99",
            "f0e4c2f76c58916ec258f246851bea091d14d424",
            "k3Jx9QmZ2vLr8TnB5wYc",
            "q8Zt/3Lk+Vb1Xn0PfR7uJm2cYwAe5hDsG9iTo4KxN6E=",
            "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP",
            "k2j5h8x0q3w9z7v1m4n6b",
            "ZqPwXrTvBnMkLjHgFdSaQwErTy",
            "dGhpcyBpcyBhIHNlY3JldCB2YWx1ZQ",
        ] {
            assert!(is_random(token), "{token}");
        }
    }

    #[test]
    fn names_do_not() {
        for name in [
            "ActiveJob",
            "OAuth2AccessTokenV2CleanupJob",
            "SendInvoice2026ReminderEmailJobV3",
            "SidekiqAdapterJobWrapper",
            "auth_user_groups_user_id_group_id_94350c0c_uniq",
            "fk_rails_f5c6ca34b5",
            "checkout-api-7d9f8c6b5d-x2x4z",
            "events_p20241101_20241201_a1b2c3",
            "subnet-0a1b2c3d4e5f67890",
            "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
            "SHA256WITHRSAENCRYPTION",
            "00000001000000A20000003F",
            "20261130173014123456789",
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "/usr/lib/postgresql/15/bin/pg_ctl",
            "postgresql15replica2primary3",
            "idle_in_transaction_session_timeout",
            "pg_stat_get_backend_activity_start",
        ] {
            assert!(!is_random(name), "{name}");
        }
    }

    #[test]
    fn a_traceparent_is_none() {
        let mut all = Vec::new();
        hits(
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            &mut all,
        );
        assert_eq!(all, []);
        hits("4bf92f3577b34da6a3ce929d0e0e4736", &mut all);
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].rule, Rule::HighEntropy);
        all.clear();
        hits("id 550e8400-e29b-41d4-a716-446655440000", &mut all);
        assert_eq!(
            all,
            [Hit {
                range: 3..39,
                rule: Rule::Uuid
            }]
        );
    }
}
