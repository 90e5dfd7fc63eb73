//! Patterns of the user: globs such as `catalog:product:*` that go before anything learned.

/// A parsed glob. `*` is any run of bytes, delimiters too, `?` one byte, and `\` takes the next byte as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Byte(u8),
    One,
    Run,
}

impl Pattern {
    /// Any text is a pattern; a `\` at the very end stands for itself.
    pub fn new(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut bytes = text.bytes();
        while let Some(byte) = bytes.next() {
            match byte {
                b'*' if parts.last() == Some(&Part::Run) => {}
                b'*' => parts.push(Part::Run),
                b'?' => parts.push(Part::One),
                b'\\' => parts.push(Part::Byte(bytes.next().unwrap_or(b'\\'))),
                _ => parts.push(Part::Byte(byte)),
            }
        }
        Self {
            text: text.to_owned(),
            parts,
        }
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the whole key matches. Only the last `*` is ever gone back to, so the time is the product of both lengths at
    /// most.
    pub fn matches(&self, key: &[u8]) -> bool {
        let (mut part, mut at) = (0, 0);
        let mut back = None;
        loop {
            match self.parts.get(part) {
                Some(Part::Run) => {
                    part += 1;
                    if part == self.parts.len() {
                        return true;
                    }
                    back = Some((part, at));
                    continue;
                }
                Some(Part::One) if at < key.len() => {
                    (part, at) = (part + 1, at + 1);
                    continue;
                }
                Some(Part::Byte(byte)) if key.get(at) == Some(byte) => {
                    (part, at) = (part + 1, at + 1);
                    continue;
                }
                None if at == key.len() => return true,
                _ => {}
            }
            match back {
                Some((from, start)) if start < key.len() => {
                    back = Some((from, start + 1));
                    (part, at) = (from, start + 1);
                }
                _ => return false,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_key_matches() {
        let cases: [(&str, &[u8], bool); 18] = [
            ("catalog:product:*", b"catalog:product:12:v1", true),
            ("catalog:product:*", b"catalog:product:", true),
            ("catalog:product:*", b"catalog:product", false),
            ("*:v1", b"a:b:v1", true),
            ("*:v1", b"a:b:v1:v2", false),
            ("a*b*c", b"a-b-b-c", true),
            ("a*b*c", b"a-c-b", false),
            ("a?c", b"abc", true),
            ("a?c", b"ac", false),
            ("a\\*c", b"a*c", true),
            ("a\\*c", b"abc", false),
            ("a\\", b"a\\", true),
            ("", b"", true),
            ("", b"a", false),
            ("*", b"", true),
            ("**", b"\xff\x00", true),
            ("?", b"\xff", true),
            ("abc", b"ab", false),
        ];
        for (glob, key, is) in cases {
            let pattern = Pattern::new(glob);
            assert_eq!(pattern.matches(key), is, "{glob} {}", key.escape_ascii());
            assert_eq!(pattern.text(), glob);
        }
    }

    #[test]
    fn a_hard_one_ends_soon() {
        let key = [b'a'; 65_536];
        assert!(!Pattern::new("*a*a*a*a*a*a*a*b").matches(&key));
    }
}
