//! The tags that frameworks write into comments of their statements (sqlcommenter, query log tags): which route or job it
//! was. Few keys and plain values are kept; an id or a person's name isn't.

use std::fmt::Write as _;

use super::detect::{detect, is_random, is_traceparent};

const KEYS: &[&str] = &[
    "action",
    "application",
    "controller",
    "db_driver",
    "framework",
    "job",
    "route",
    "traceparent",
];

/// What is kept of a comment (its text without the marks), as a comment of its own.
pub(super) fn kept(comment: &str) -> Option<String> {
    let mut out = String::new();
    for pair in comment.split(',') {
        let Some((key, value)) = pair.split_once(['=', ':']) else {
            continue;
        };
        let key = key.trim();
        let quoted = value.trim();
        let bare = quoted
            .strip_prefix('\'')
            .and_then(|rest| rest.strip_suffix('\''))
            .unwrap_or(quoted);
        let Ok(value) = percent_encoding::percent_decode_str(bare).decode_utf8() else {
            continue;
        };
        if KEYS.contains(&key) && is_safe(key, &value) {
            let between = if out.is_empty() { "" } else { "," };
            let _ = write!(out, "{between}{key}='{value}'");
        }
    }
    (!out.is_empty()).then(|| format!("/*{out}*/"))
}

fn is_safe(key: &str, value: &str) -> bool {
    if key == "traceparent" {
        return is_traceparent(value);
    }
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_./:-".contains(&b);
    // Versions are of a few digits, ids of the rest.
    let digits = if matches!(key, "framework" | "db_driver") {
        3
    } else {
        0
    };
    (1..=80).contains(&value.len())
        && value.bytes().all(plain)
        && value
            .split(['/', '.', ':', '-', '_'])
            .all(|part| is_word(part, digits))
        && !is_random(value)
        && detect(value).is_none()
}

/// No number, nothing that mixes letters with many digits, nothing too long to be a word.
fn is_word(part: &str, most_digits: usize) -> bool {
    let digits = part.bytes().filter(u8::is_ascii_digit).count();
    if part.len() == digits {
        return digits <= most_digits;
    }
    let turns = part
        .as_bytes()
        .windows(2)
        .filter(|w| w[0].is_ascii_lowercase() && w[1].is_ascii_uppercase())
        .count();
    part.len() <= 40 && digits <= 2 && turns * 3 <= part.len()
}

#[cfg(test)]
mod tests {
    use super::kept;

    #[test]
    fn routes_and_jobs_are_kept() {
        for (comment, tag) in [
            (
                "controller='users',action='show'",
                "/*controller='users',action='show'*/",
            ),
            (
                "application:Shop,controller:admin/orders,line:/app/x.rb:3",
                "/*application='Shop',controller='admin/orders'*/",
            ),
            (
                "route='%2Forders%2F%3Aid',framework='django%3A4.2'",
                "/*route='/orders/:id',framework='django:4.2'*/",
            ),
            (
                "job='Billing::SendInvoiceJob'",
                "/*job='Billing::SendInvoiceJob'*/",
            ),
            (
                "traceparent='00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'",
                "/*traceparent='00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'*/",
            ),
        ] {
            let first = kept(comment);
            assert_eq!(first.as_deref(), Some(tag), "{comment}");
            assert_eq!(
                kept(&tag[2..tag.len() - 2]),
                first,
                "kept as it is the second time"
            );
        }
    }

    #[test]
    fn values_and_other_keys_are_not() {
        for comment in [
            "why this is slow",
            "user='alice%40example.com'",
            "route='/users/alice@example.com'",
            "route='/orders/4711'",
            "route='/reset/k3Jx9QmZ2vLr8TnB5wYc'",
            "route='/reset/aBcDeFgHiJ'",
            "controller='550e8400-e29b-41d4-a716-446655440000'",
            "application='AKIAIOSFODNN7EXAMPLE'",
            "traceparent='00-hunter2'",
            "action='a b'",
            "job='%27%2A%2F drop'",
        ] {
            assert_eq!(kept(comment), None, "{comment}");
        }
    }
}
