//! The secrets that this process was given (passwords of its targets, values of its environment), looked for in what is
//! about to leave it, in every encoding that a file or a URL may hold them in.

use std::borrow::Cow;

use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use regex::bytes::Regex;

/// Shorter values stand in any text by chance.
const SHORTEST: usize = 6;

/// Names and values of known secrets. A value is never shown: there is neither `Debug` nor `Display`.
pub struct KnownSecrets {
    secrets: Vec<Secret>,
    /// All forms of all values, for one pass over a text that holds none of them.
    any: Option<Regex>,
}

struct Secret {
    name: String,
    forms: Vec<Vec<u8>>,
}

impl KnownSecrets {
    /// Values of fewer than six characters are left out; so are `true` and the like for that reason.
    pub fn new<N: Into<String>, V: AsRef<str>>(named: impl IntoIterator<Item = (N, V)>) -> Self {
        let secrets: Vec<Secret> = named
            .into_iter()
            .filter(|(_, value)| value.as_ref().trim().chars().count() >= SHORTEST)
            .map(|(name, value)| Secret {
                name: name.into(),
                forms: forms(value.as_ref().trim()),
            })
            .collect();
        let pattern: Vec<String> = secrets
            .iter()
            .flat_map(|secret| &secret.forms)
            .map(|form| regex::escape(&String::from_utf8_lossy(form)))
            .collect();
        let any = (!pattern.is_empty())
            .then(|| Regex::new(&pattern.join("|")).ok())
            .flatten();
        KnownSecrets { secrets, any }
    }

    /// Whether there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// The name of the first secret whose value a text holds: as it is, percent-encoded, as JSON or SQL escape it, or
    /// within base64 or hex at any place.
    pub fn find(&self, text: &str) -> Option<&str> {
        if self.secrets.is_empty() {
            return None;
        }
        let plain = Cow::Borrowed(text.as_bytes());
        let unescaped = text.contains('\\').then(|| unescaped(text).into_bytes());
        let mut views: Vec<Cow<'_, [u8]>> = vec![plain];
        views.extend(unescaped.map(Cow::Owned));
        for view in views.clone() {
            let mut view = view.into_owned();
            // Twice: a URL in a parameter of a URL.
            for _ in 0..2 {
                if !view.contains(&b'%') && !view.contains(&b'+') {
                    break;
                }
                let decoded: Vec<u8> = percent_encoding::percent_decode(&view).collect();
                let blanks: Vec<u8> = view
                    .iter()
                    .map(|b| if *b == b'+' { b' ' } else { *b })
                    .collect();
                views.push(Cow::Owned(
                    percent_encoding::percent_decode(&blanks).collect(),
                ));
                views.push(Cow::Owned(decoded.clone()));
                if decoded == view {
                    break;
                }
                view = decoded;
            }
        }
        views.iter().find_map(|view| self.find_in(view))
    }

    fn find_in(&self, view: &[u8]) -> Option<&str> {
        // Were the pattern too large to compile, each form is looked for by itself.
        if self.any.as_ref().is_some_and(|any| !any.is_match(view)) {
            return None;
        }
        let holds = |form: &Vec<u8>| {
            view.windows(form.len())
                .any(|window| window == form.as_slice())
        };
        let found = self
            .secrets
            .iter()
            .find(|secret| secret.forms.iter().any(holds));
        found.map(|secret| secret.name.as_str())
    }
}

/// The value and what it becomes; percent signs are read from the text instead.
fn forms(value: &str) -> Vec<Vec<u8>> {
    let mut forms = vec![value.as_bytes().to_vec()];
    if let Ok(json) = serde_json::to_string(value) {
        forms.push(json.as_bytes()[1..json.len() - 1].to_vec());
    }
    forms.push(value.replace('\'', "''").into_bytes());
    let hex: String = value.bytes().map(|b| format!("{b:02x}")).collect();
    forms.push(hex.to_uppercase().into_bytes());
    forms.push(hex.into_bytes());
    for before in 0..3 {
        forms.push(base64_at(value, before, &STANDARD_NO_PAD));
        forms.push(base64_at(value, before, &URL_SAFE_NO_PAD));
    }
    forms.sort();
    forms.dedup();
    forms
}

/// What base64 makes of a value that so many bytes (of three) stand before, without the characters that its neighbours
/// have a part in.
fn base64_at(value: &str, before: usize, engine: &impl base64::Engine) -> Vec<u8> {
    let mut bytes = vec![0; before];
    bytes.extend_from_slice(value.as_bytes());
    let mut text = engine.encode(&bytes).into_bytes();
    if !bytes.len().is_multiple_of(3) {
        text.pop();
    }
    text.drain(..[0, 2, 3][before]);
    text
}

/// JSON's escapes read; whatever isn't one stays.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let unit = |digits: Option<&str>| digits.and_then(|d| u16::from_str_radix(d, 16).ok());
        let (c, len) = match after.bytes().next() {
            Some(b'n') => (Some('\n'), 1),
            Some(b't') => (Some('\t'), 1),
            Some(b'r') => (Some('\r'), 1),
            Some(b'"' | b'\\' | b'/' | b'\'') => (after.chars().next(), 1),
            Some(b'u') => match (
                unit(after.get(1..5)),
                after.get(5..7),
                unit(after.get(7..11)),
            ) {
                (Some(high @ 0xd800..=0xdbff), Some("\\u"), Some(low)) => (
                    char::decode_utf16([high, low]).next().and_then(Result::ok),
                    11,
                ),
                (Some(one), ..) => (char::from_u32(one.into()), 5),
                _ => (None, 0),
            },
            _ => (None, 0),
        };
        if let Some(c) = c {
            out.push(c);
            rest = &after[len..];
        } else {
            out.push('\\');
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};

    fn one(value: &str) -> KnownSecrets {
        KnownSecrets::new([("target db: password", value)])
    }

    #[test]
    fn every_form_is_found_by_name() {
        let value = "pä\"ss w/ö+rd>?";
        let known = one(value);
        let name = Some("target db: password");
        for text in [
            value.to_owned(),
            format!("x{value}y"),
            serde_json::to_string(value).unwrap(),
            "p\\u00E4\\u0022ss w\\/\\u00f6+rd>?".into(),
            "p%C3%A4%22ss%20w%2F%C3%B6%2Brd%3E%3F".into(),
            "p%c3%a4%22ss+w%2f%c3%b6%2brd%3e%3f".into(),
            "p%25C3%25A4%2522ss%2520w%252F%25C3%25B6%252Brd%253E%253F".into(),
            "\\x70c3a4227373c2".to_owned()
                + ""
                + &value
                    .bytes()
                    .map(|b| format!("{b:02x}"))
                    .collect::<String>(),
        ] {
            assert_eq!(known.find(&text), name, "{text}");
        }
        assert_eq!(known.find("pä\"ss w/ö-rd>?"), None);
        assert_eq!(known.find(""), None);
    }

    #[test]
    fn base64_at_every_place() {
        for value in ["hunter2", "hunter", "s3cr3t?>~~pw", "größer"] {
            let known = one(value);
            for before in ["", "a", "ab", "abc", "abcd"] {
                for after in ["", "x", "xy", "xyz"] {
                    let whole = format!("{before}{value}{after}");
                    assert!(known.find(&STANDARD.encode(&whole)).is_some(), "{whole}");
                    assert!(known.find(&URL_SAFE.encode(&whole)).is_some(), "{whole}");
                    assert!(
                        known
                            .find(&STANDARD.encode(format!("u:{whole}")).replace('=', "%3D"))
                            .is_some()
                    );
                }
            }
        }
    }

    #[test]
    fn short_values_and_none_at_all() {
        let known = KnownSecrets::new([("a", "short"), ("b", ""), ("c", "  x    ")]);
        assert!(known.is_empty());
        assert_eq!(known.find("short"), None);
        let two = KnownSecrets::new([("a", "first-one"), ("b", "second-one")]);
        assert_eq!(two.find("… second-one …"), Some("b"));
    }

    proptest::proptest! {
        #[test]
        fn any_text_and_any_value(value in "\\PC{6,20}", before in "\\PC{0,5}", text in "\\PC*") {
            let known = one(&value);
            let _ = known.find(&text);
            proptest::prop_assume!(value.trim().chars().count() >= 6);
            let json = serde_json::to_string(&format!("{before}{value}")).unwrap();
            proptest::prop_assert!(known.find(&json).is_some());
        }
    }
}
