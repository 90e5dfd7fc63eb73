//! Patterns with `*`, `?`, `[…]` and `\\`, as MATCH of Redis and the queues of Resque's workers have them.

/// Whether the whole of `text` is like `pattern`.
pub fn is_like(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut of) = (0, 0);
    // Where the last star is, and what it has taken so far.
    let mut star: Option<(usize, usize)> = None;
    while at < text.len() {
        if pattern.get(of) == Some(&b'*') {
            star = Some((of, at));
            of += 1;
            continue;
        }
        if let Some(width) = one(&pattern[of..], text[at]) {
            of += width;
            at += 1;
            continue;
        }
        let Some((back, taken)) = star else {
            return false;
        };
        star = Some((back, taken + 1));
        (of, at) = (back + 1, taken + 1);
    }
    pattern[of..].iter().all(|c| *c == b'*')
}

/// How long the first part of the pattern is, if it stands for this byte.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [b'?', ..] => Some(1),
        [b'\\', escaped, ..] => (*escaped == byte).then_some(2),
        [b'[', rest @ ..] => {
            let Some(end) = rest.iter().position(|c| *c == b']') else {
                return (byte == b'[').then_some(1);
            };
            let (set, no) = match &rest[..end] {
                [b'^' | b'!', set @ ..] => (set, true),
                set => (set, false),
            };
            let within = |part: &[u8]| matches!(part, [a, b'-', z] if (a..=z).contains(&&byte));
            let found = set.contains(&byte) || set.windows(3).any(within);
            (found != no).then_some(end + 2)
        }
        [same, ..] => (*same == byte).then_some(1),
        [] => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_pattern_is_like() {
        for (pattern, text, does) in [
            ("mail", "mail", true),
            ("mail", "mails", false),
            ("*", "", true),
            ("mail*", "mail_high", true),
            ("mail*", "amail", false),
            ("*_high", "mail_high_high", true),
            ("a*b*c", "a1b2b3c", true),
            ("a*b*c", "a1c", false),
            ("mail_?", "mail_1", true),
            ("mail_?", "mail_", false),
            ("mail_[0-3]", "mail_2", true),
            ("mail_[0-3]", "mail_7", false),
            ("mail_[^ab]", "mail_c", true),
            ("mail_[!ab]", "mail_a", false),
            ("mail[", "mail[", true),
            ("a\\*", "a*", true),
            ("a\\*", "ab", false),
            ("", "a", false),
        ] {
            let told = is_like(pattern.as_bytes(), text.as_bytes());
            assert_eq!(told, does, "{pattern} {text}");
        }
        // Many stars take no longer.
        let (stars, text) = ("*a".repeat(30), "a".repeat(300));
        assert!(!is_like(format!("{stars}b").as_bytes(), text.as_bytes()));
    }
}
