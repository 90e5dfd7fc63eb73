//! What was encoded: percent signs of a URL, escapes of JSON, base64. It is decoded and looked at again.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use super::{Hit, direct, random};

/// Shorter runs of base64 hold nothing that has a shape.
const SHORTEST: usize = 16;

/// All likely secrets that show once runs of the text are decoded; a hit is the whole run.
pub(super) fn hits(text: &str, depth: usize, all: &mut Vec<Hit>) {
    if depth == 0 {
        return;
    }
    let mut look = |range: Range<usize>, decoded: &str| {
        let mut inner = direct(decoded);
        hits(decoded, depth - 1, &mut inner);
        if let Some(first) = inner.first() {
            all.push(Hit {
                range,
                rule: first.rule,
            });
        }
    };
    if text.contains('%') {
        for range in percent_runs(text) {
            let run = &text[range.clone()];
            let bytes: Vec<u8> = percent_encoding::percent_decode_str(run).collect();
            look(range, &String::from_utf8_lossy(&bytes).replace('+', " "));
        }
    }
    if text.contains('\\') {
        for range in escaped_runs(text) {
            if let Some(decoded) = unescaped(&text[range.clone()]) {
                look(range, &decoded);
            }
        }
    }
    for range in random::runs(text) {
        let mut start = range.start;
        // `key=…==`: the alphabet's own end is no part of it.
        for part in text[range].split('=') {
            if part.len() >= SHORTEST
                && let Some(decoded) = from_base64(part)
            {
                look(start..start + part.len(), &decoded);
            }
            start += part.len() + 1;
        }
    }
}

/// Whether a part of a run is text once base64 or hex is decoded.
pub(super) fn holds_words(run: &str) -> bool {
    let hex = |part: &str| {
        let byte = |pair: &[u8]| {
            let digits = std::str::from_utf8(pair).ok()?;
            u8::from_str_radix(digits, 16).ok()
        };
        let part = part.trim_start_matches('x').as_bytes();
        let bytes: Option<Vec<u8>> = part.chunks(2).map(byte).collect();
        bytes.is_some_and(|bytes| {
            bytes.len() >= 6 && bytes.iter().all(|b| (b' '..=b'~').contains(b))
        })
    };
    run.split('=')
        .any(|part| from_base64(part).is_some() || hex(part))
}

/// Words (up to a blank or a quote) that hold at least one `%xx`.
fn percent_runs(text: &str) -> Vec<Range<usize>> {
    words(text, |c| {
        c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>')
    })
    .filter(|range| {
        let bytes = text[range.clone()].as_bytes();
        bytes
            .windows(3)
            .any(|w| w[0] == b'%' && w[1].is_ascii_hexdigit() && w[2].is_ascii_hexdigit())
    })
    .collect()
}

/// Lines with an escape that hides a letter: `\u0070assword`.
fn escaped_runs(text: &str) -> Vec<Range<usize>> {
    words(text, |c| c == '\n' || c == '"')
        .filter(|range| {
            let line = &text[range.clone()];
            line.contains("\\u") || line.contains("\\/") || line.contains("\\x")
        })
        .collect()
}

fn words(text: &str, ends: impl Fn(char) -> bool) -> impl Iterator<Item = Range<usize>> {
    text.split(ends).map(|word| {
        let start = word.as_ptr() as usize - text.as_ptr() as usize;
        start..start + word.len()
    })
}

/// As text, if it is text: that excludes nearly all words that happen to be of the alphabet.
fn from_base64(run: &str) -> Option<String> {
    // A run that was cut ends anywhere: whole groups of four are enough.
    let head = run.get(..12)?;
    let decode = |part: &str| {
        STANDARD_NO_PAD
            .decode(part)
            .or_else(|_| URL_SAFE_NO_PAD.decode(part))
            .ok()
    };
    let readable = |bytes: &[u8]| {
        !bytes
            .iter()
            .any(|b| b.is_ascii_control() && !b.is_ascii_whitespace())
    };
    let sample = decode(head)?;
    let text_so_far = match std::str::from_utf8(&sample) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    if !text_so_far || !readable(&sample) {
        return None;
    }
    let whole = decode(run).or_else(|| decode(&run[..run.len() / 4 * 4]))?;
    let text = match String::from_utf8(whole) {
        Ok(text) => text,
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            let bytes = error.into_bytes();
            String::from_utf8_lossy(&bytes[..valid]).into_owned()
        }
    };
    (text.len() >= 9 && readable(text.as_bytes())).then_some(text)
}

/// With JSON's and C's escapes of single characters read; `None` if there are none.
fn unescaped(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut changed = false;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let hex = |from: usize, len: usize| {
            after
                .get(from..from + len)
                .and_then(|digits| u32::from_str_radix(digits, 16).ok())
                .and_then(char::from_u32)
        };
        let (c, len) = match after.chars().next() {
            Some('u') => (hex(1, 4), 5),
            Some('x') => (hex(1, 2), 3),
            Some('/') => (Some('/'), 1),
            Some('n' | 'r' | 't') => (Some(' '), 1),
            Some(c @ ('"' | '\'' | '\\')) => (Some(c), 1),
            _ => (None, 0),
        };
        if let Some(c) = c {
            out.push(c);
            rest = &after[len..];
            changed = true;
        } else {
            out.push('\\');
            rest = after;
        }
    }
    out.push_str(rest);
    changed.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::super::{Rule, detect};

    #[test]
    fn encodings_hide_nothing() {
        for text in [
            "host%3Ddb%20password%3Dhunter2",
            "postgres%3A%2F%2Fu%3Ahunter2%40h%2Fdb",
            "postgres%253A%252F%252Fu%253Ahunter2%2540h%252Fdb",
            "aG9zdD1kYiBwYXNzd29yZD1odW50ZXIy",
            "app=cG9zdGdyZXM6Ly91Omh1bnRlcjJAaC9kYg==",
            "\\u0070assword=hunter2",
            "https:\\/\\/u:hunter2@h\\/",
            "user='alice%40example.com'",
        ] {
            assert!(detect(text).is_some(), "{text}");
        }
        assert_eq!(detect("alice%40example.com"), Some(Rule::Email));
        assert_eq!(detect("%m [%p] %q%u@%d "), None);
    }
}
