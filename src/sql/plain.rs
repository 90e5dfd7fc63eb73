//! Free text (an application's name, an error, a comment) without what looks like a secret; the rest stays readable.

use std::borrow::Cow;

use super::detect::{Hit, Rule, hits, named_hits};

/// How often a text is looked at again: what was taken out may bring other pieces together.
const MAX_ROUNDS: usize = 4;

/// The text with each likely secret as `(not shown: what it is)`. Redacting twice is redacting once.
pub fn redacted(text: &str) -> Cow<'_, str> {
    replaced(text, hits)
}

/// The same for a name, by the rules of [`super::detect_named`]: only what has the unmistakable shape of a secret.
pub fn name_redacted(name: &str) -> Cow<'_, str> {
    replaced(name, named_hits)
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
        out.push_str(&stands_for(hit.rule));
        at = hit.range.end;
    }
    out.push_str(&text[at..]);
    out
}

fn stands_for(rule: Rule) -> String {
    format!("(not shown: {})", rule.words())
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

    proptest::proptest! {
        #[test]
        fn redacting_twice_is_redacting_once(text in "(password=|token: |[a-zA-Z0-9+/]{24}|https://|[:@/=%'\"\\\\ ]|alice@example\\.com|\\$1 = '|\\(a\\)=\\(|[a-z]{1,5}|%3D|\n){0,12}") {
            let once = redacted(&text).into_owned();
            proptest::prop_assert_eq!(redacted(&once), once.as_str());
            let name = name_redacted(&text).into_owned();
            proptest::prop_assert_eq!(name_redacted(&name), name.as_str());
        }
    }
}
