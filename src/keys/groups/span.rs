//! Values that go over delimiters: UUIDs, dates and times, e-mail and IP addresses, percent-encoding, versions.

use std::net::Ipv6Addr;

use super::shape::{is_delimiter, is_number};

/// What begins at a word and goes further than it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// A value of this length.
    Value(usize),
    /// `v1.2.3`, of this length: stays as it is.
    Name(usize),
}

/// At the start of a word, of which `word` is the length. `email`: whether one may begin here.
pub fn span(rest: &[u8], word: usize, email: bool) -> Option<Span> {
    if email && let Some(length) = address(rest) {
        return Some(Span::Value(length));
    }
    let first = *rest.first()?;
    let next = rest.get(word).copied().unwrap_or(0);
    let length = match (word, next) {
        (4, b'-' | b'/' | b'.') if first.is_ascii_digit() => date(rest),
        (8, b'-') if first.is_ascii_hexdigit() => uuid(rest),
        (4, b':') if first.is_ascii_hexdigit() => ipv6(rest),
        (2..=4, b'.') if matches!(first, b'v' | b'V') => return version(rest).map(Span::Name),
        _ => None,
    };
    let length = match length {
        None if rest[..word].contains(&b'%') => percent(rest),
        length => length,
    };
    length.map(Span::Value)
}

/// Behind a value nothing but a delimiter or the end.
fn ended(rest: &[u8], length: usize) -> Option<usize> {
    let whole = rest.get(length).is_none_or(|byte| is_delimiter(*byte));
    whole.then_some(length)
}

fn run(rest: &[u8], is: impl Fn(u8) -> bool) -> usize {
    rest.iter().take_while(|byte| is(**byte)).count()
}

fn uuid(rest: &[u8]) -> Option<usize> {
    let is = |(at, byte): (usize, &u8)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    let whole = rest.get(..36)?.iter().enumerate().all(is);
    whole.then(|| ended(rest, 36)).flatten()
}

/// Whether the bytes are as the picture: `0` a digit, all else itself.
fn looks(rest: &[u8], picture: &[u8]) -> bool {
    let is = |(byte, of): (&u8, &u8)| match of {
        b'0' => byte.is_ascii_digit(),
        _ => byte == of,
    };
    rest.len() >= picture.len() && rest.iter().zip(picture).all(is)
}

/// `2024-01-05`, also with `/` or `.`, with a time behind it or not; `2024-W05`, `2024-Q1`.
fn date(rest: &[u8]) -> Option<usize> {
    for (picture, length) in [(&b"0000-W00"[..], 8), (&b"0000-Q0"[..], 7)] {
        if looks(rest, picture) {
            return ended(rest, length);
        }
    }
    let delimiter = *rest.get(4)?;
    let day =
        looks(rest, b"0000-00-00") || looks(rest, b"0000/00/00") || looks(rest, b"0000.00.00");
    if !day || rest[7] != delimiter {
        return None;
    }
    time(rest)
        .and_then(|length| ended(rest, length))
        .or_else(|| ended(rest, 10))
}

/// The length of date and time, if a time follows the date.
fn time(rest: &[u8]) -> Option<usize> {
    let clock = &rest[10..];
    if !(looks(clock, b"T00:00") || looks(clock, b" 00:00")) {
        return None;
    }
    let mut at = if looks(&clock[6..], b":00") { 19 } else { 16 };
    if looks(&rest[at..], b".0") {
        at += 1 + run(&rest[at + 1..], |byte| byte.is_ascii_digit());
    }
    let zone = &rest[at..];
    Some(match zone.first() {
        Some(b'Z') => at + 1,
        Some(b'+' | b'-') if looks(&zone[1..], b"00:00") => at + 6,
        Some(b'+' | b'-') if looks(&zone[1..], b"0000") => at + 5,
        _ => at,
    })
}

/// Of the forms that begin with four digits of hex, as those of the public net and `fe80::` do.
fn ipv6(rest: &[u8]) -> Option<usize> {
    let length = run(rest, |byte| byte == b':' || byte.is_ascii_hexdigit());
    let text = str::from_utf8(&rest[..length]).ok()?.trim_end_matches(':');
    let short = text.contains("::") && text.get(..4)?.bytes().any(|byte| byte.is_ascii_digit());
    if !short && text.bytes().filter(|byte| *byte == b':').count() != 7 {
        return None;
    }
    text.parse::<Ipv6Addr>().ok()?;
    ended(rest, text.len())
}

/// Without `-` and `_` before the `@`: rather these part a name from it.
fn address(rest: &[u8]) -> Option<usize> {
    let near = &rest[..rest.len().min(65)];
    let local = run(near, |byte| {
        byte.is_ascii_alphanumeric() || b".%+".contains(&byte)
    });
    if local == 0 || rest.get(local) != Some(&b'@') {
        return None;
    }
    let domain = &rest[local + 1..];
    let length = run(domain, |byte| {
        byte.is_ascii_alphanumeric() || b".-".contains(&byte)
    });
    let dotted = domain[..length].iter().skip(1).any(|byte| *byte == b'.');
    dotted.then(|| ended(rest, local + 1 + length)).flatten()
}

/// Two encoded bytes or more.
fn percent(rest: &[u8]) -> Option<usize> {
    let length = run(rest, |byte| {
        byte.is_ascii_alphanumeric() || b"%._~+-".contains(&byte)
    });
    let is = |three: &&[u8]| {
        three[0] == b'%' && three[1].is_ascii_hexdigit() && three[2].is_ascii_hexdigit()
    };
    let many = rest[..length].windows(3).filter(is).take(2).count() == 2;
    many.then(|| ended(rest, length)).flatten()
}

/// `v1.2`, `v1.2.3`.
fn version(rest: &[u8]) -> Option<usize> {
    let mut at = 1 + run(&rest[1..], |byte| byte.is_ascii_digit());
    let mut parts = 0;
    while at > 1 && rest.get(at) == Some(&b'.') && parts < 3 {
        let digits = run(&rest[at + 1..], |byte| byte.is_ascii_digit());
        if digits == 0 || digits > 4 {
            break;
        }
        at += 1 + digits;
        parts += 1;
    }
    (parts > 0).then(|| ended(rest, at)).flatten()
}

/// `-2.3522`, of which the sign is no delimiter. Gives its length.
pub fn negative(rest: &[u8]) -> Option<usize> {
    let digits = 1 + run(rest.get(1..)?, |byte| byte.is_ascii_digit());
    let whole = rest[0] == b'-' && is_number(&rest[1..digits]);
    whole.then(|| ended(rest, digits)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<Span> {
        let word = run(text.as_bytes(), |byte| !is_delimiter(byte));
        span(text.as_bytes(), word, text.contains('@'))
    }

    #[test]
    fn over_delimiters() {
        for (text, length) in [
            ("2024-01-05", 10),
            ("2024-01-05:x", 10),
            ("2024/01/05/x", 10),
            ("2024-W05", 8),
            ("2024-Q1:x", 7),
            ("2024-01-05T10:15:00Z:x", 20),
            ("2024-01-05T10:15:00.123+01:00", 29),
            ("2024-01-05 10:15", 16),
            ("550e8400-e29b-41d4-a716-446655440000:x", 36),
            ("2001:db8::1:x", 11),
            ("2001:db8::1/x", 11),
            ("fe80::1", 7),
            ("2001:db8:0:0:0:0:0:1", 20),
            ("a.b+c@example.com:x", 17),
            ("https%3A%2F%2Fexample.com/x", 25),
        ] {
            assert_eq!(of(text), Some(Span::Value(length)), "{text}");
        }
        for text in [
            "2024-01-05x",
            "abcd::x",
            "user@host",
            "50%",
            "2024-13",
            "550e8400-e29b-41d4-a716-44665544000",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
        assert_eq!(of("v1.2.3:x"), Some(Span::Name(6)));
        assert_eq!(of("v1.x"), None);
        assert_eq!(negative(b"-2.35"), Some(2));
        assert_eq!(negative(b"-x"), None);
    }
}
