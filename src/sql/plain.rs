//! Free text (an application's name, an error, a comment) without what looks like a secret; the rest stays readable.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::detect::{Hit, Rule, credential_hits, hits, named_hits, random_part};

/// How often a text is looked at again: what was taken out may bring other pieces together.
const MAX_ROUNDS: usize = 4;

/// The text with each likely secret as `(not shown: what it is)`. Redacting twice is redacting once.
///
/// UUIDs and random tokens have four hex digits more, so that two of them stay two: `(not shown: a UUID, 3fa1)`.
pub fn redacted(text: &str) -> Cow<'_, str> {
    replaced(text, hits)
}

/// The same for a name, by the rules of [`super::detect_named`]: only what has the unmistakable shape of a secret.
pub fn name_redacted(name: &str) -> Cow<'_, str> {
    replaced(name, named_hits)
}

/// The same for what is kept of a run and shown of it: without passwords, keys and tokens; addresses and ids stay.
pub fn without_credentials(text: &str) -> Cow<'_, str> {
    replaced(text, credential_hits)
}

fn replaced(text: &str, find: fn(&str) -> Vec<Hit>) -> Cow<'_, str> {
    let mut found = find(text);
    let Some(first) = found.first().map(|hit| hit.rule) else {
        return Cow::Borrowed(text);
    };
    let mut out = text.to_owned();
    for _ in 0..MAX_ROUNDS {
        out = without(&out, &found);
        found = find(&out);
        if found.is_empty() {
            return Cow::Owned(out);
        }
    }
    Cow::Owned(stands_for(first))
}

fn without(text: &str, hits: &[Hit]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for hit in hits {
        out.push_str(&text[at..hit.range.start]);
        match random_part(hit.rule, &text[hit.range.clone()]) {
            Some(part) => {
                let mark = mark(part);
                let _ = write!(out, "(not shown: {}, {mark:04x})", hit.rule.words());
            }
            None => out.push_str(&stands_for(hit.rule)),
        }
        at = hit.range.end;
    }
    out.push_str(&text[at..]);
    out
}

fn stands_for(rule: Rule) -> String {
    format!("(not shown: {})", rule.words())
}

/// Sixteen bits that tell two tokens apart: FNV-1a of 32 bits over the bytes (letters small), its halves one over the
/// other. It is the same in all versions, since groups and filters are saved by it. It tells 16 of the 80 and more bits
/// of what no person chose; of a password, which can be guessed, it would tell too much.
fn mark(token: &str) -> u16 {
    const BASIS: u32 = 0x811c_9dc5;
    const PRIME: u32 = 0x0100_0193;
    let hash = token.bytes().fold(BASIS, |hash, b| {
        (hash ^ u32::from(b.to_ascii_lowercase())).wrapping_mul(PRIME)
    });
    let [a, b, c, d] = hash.to_be_bytes();
    u16::from_be_bytes([a ^ c, b ^ d])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_secret_goes() {
        for (text, expected) in [
            (
                "host=db password=hunter2 dbname=x",
                "host=db password=(not shown: a password of a connection string) dbname=x",
            ),
            (
                "postgres://app:hunter2@db:5432/x",
                "postgres://app:(not shown: a password in a URL)@db:5432/x",
            ),
            (
                "Key (email)=(alice@example.com) already exists.",
                "Key (email)=(not shown: values of a row) already exists.",
            ),
            (
                "redis-cli -h cache -a hunter2 ping",
                "redis-cli -h cache -a (not shown: a secret value) ping",
            ),
            (
                "{\"password\":\"hun ter\",\"a\":1}",
                "{\"password\":\"(not shown: a secret value)\",\"a\":1}",
            ),
            ("puma 5.6 [shop]", "puma 5.6 [shop]"),
            (
                "of the failing row contains (a, b) = (Alice Sm",
                "of the failing row contains (not shown: values of a row)",
            ),
            ("", ""),
        ] {
            assert_eq!(redacted(text), expected);
            assert_eq!(redacted(expected), expected);
        }
        assert_eq!(name_redacted("password_resets"), "password_resets");
        assert_eq!(
            name_redacted("x_AKIAIOSFODNN7EXAMPLE"),
            "x_(not shown: an AWS key)"
        );
    }

    #[test]
    fn two_tokens_stay_two() {
        let (a, b) = (
            "550e8400-e29b-41d4-a716-446655440000",
            "550e8400-e29b-41d4-a716-446655440001",
        );
        let of_a = redacted(a).into_owned();
        assert_eq!(of_a, format!("(not shown: a UUID, {:04x})", mark(a)));
        assert_ne!(of_a, redacted(b));
        assert_eq!(redacted(&format!("web {a}")), format!("web {of_a}"));
        assert_eq!(redacted(&format!("web-{}", a.to_uppercase())), of_a);
        assert_eq!(redacted(&of_a), of_a);

        let token = redacted("job k3Jx9QmZ2vLr8TnB5wYc").into_owned();
        assert_eq!(
            token.len(),
            "job (not shown: what looks like a token, 0000)".len()
        );
        assert_ne!(token, redacted("job k3Jx9QmZ2vLr8TnB5wYd"));
        assert_eq!(redacted(&token), token);
    }

    #[test]
    fn the_mark_is_that_of_the_published_hash() {
        // FNV-1a of 32 bits: "" 811c9dc5, "a" e40c292c, "foobar" bf9cf968.
        assert_eq!(mark(""), 0x811c ^ 0x9dc5);
        assert_eq!(mark("a"), 0xe40c ^ 0x292c);
        assert_eq!(mark("FooBar"), 0xbf9c ^ 0xf968);
    }

    #[test]
    fn nothing_that_a_person_chose_is_marked() {
        for text in [
            "password=k3Jx9QmZ2vLr8TnB5wYc",
            "password=hunter2",
            "postgres://app:k3Jx9QmZ2vLr8TnB5wYc@db/x",
            "aHVudGVyMnhodW50ZXIyeA==",
            "aG9zdD1kYiBwYXNzd29yZD1odW50ZXIy",
            "\\x68756e746572327868756e7465723278",
            "md53175bce1d3201d16594cebf9d7eb3f9d",
            "AKIAIOSFODNN7EXAMPLE",
            "alice@example.com",
            "4111 1111 1111 1111",
        ] {
            let once = redacted(text);
            assert!(once.contains("(not shown: "), "{once}");
            assert!(!once.contains(", "), "{text}: {once}");
        }
        // Of a UUID with something behind it only the UUID is read.
        let uuid = "550e8400-e29b-41d4-a716-446655440000";
        assert_eq!(redacted(&format!("{uuid}_hunter2")), redacted(uuid));
    }

    #[test]
    fn values_in_names() {
        assert_eq!(
            name_redacted("eve password=hunter2X"),
            "eve password=(not shown: a password of a connection string)"
        );
        assert_eq!(
            name_redacted("shop_password=hunter2db"),
            "shop_password=(not shown: a secret value)"
        );
        for name in ["password_resets", "token_id", "secret-rotation", "eve@home"] {
            assert_eq!(name_redacted(name), name);
        }
    }

    proptest::proptest! {
        #[test]
        fn redacting_twice_is_redacting_once(text in "(password=|pass=|sig=|pwd= |550e8400-e29b-41d4-a716-446655440000|token: |[a-zA-Z0-9+/]{24}|https://|[:@/=%'\"\\\\ ]|alice@example\\.com|\\$1 = '|\\(a\\)=\\(|[a-z]{1,5}|%3D|\n){0,12}") {
            let once = redacted(&text).into_owned();
            proptest::prop_assert_eq!(redacted(&once), once.as_str());
            let name = name_redacted(&text).into_owned();
            proptest::prop_assert_eq!(name_redacted(&name), name.as_str());
        }
    }
}
