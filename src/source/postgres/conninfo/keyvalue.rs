//! `host=db1 port=5432 dbname='with blanks'`: libpq's keyword/value connection string.

use super::ConnInputError;
use super::layer::Layer;
use crate::model::Origin;

/// # Errors
/// What is wrong with it, without the text itself: it may hold a password.
pub fn parse(text: &str, origin: &Origin) -> Result<Layer, ConnInputError> {
    let bad = |what: &str| ConnInputError::BadKeyValue(what.to_owned());
    let mut layer = Layer::default();
    let mut rest = text.trim_start_matches(blank);
    while !rest.is_empty() {
        let end = rest
            .find(|c| c == '=' || blank(c))
            .ok_or_else(|| bad("a word without '=' after it"))?;
        let name = &rest[..end];
        rest = rest[end..]
            .trim_start_matches(blank)
            .strip_prefix('=')
            .ok_or_else(|| bad("a word without '=' after it"))?
            .trim_start_matches(blank);
        let (value, after) = match rest.strip_prefix('\'') {
            Some(quoted) => quoted_value(quoted).ok_or_else(|| bad("a quote that doesn't end"))?,
            None => plain_value(rest),
        };
        layer
            .set_named(name, value, origin.clone())
            .map_err(|_| bad("an unknown parameter (a value with blanks needs single quotes)"))?;
        rest = after.trim_start_matches(blank);
    }
    Ok(layer)
}

/// A value that stands as it is, or in quotes: as the string above takes it.
pub fn quoted(value: &str) -> String {
    let plain = !value.is_empty() && !value.contains(|c| blank(c) || c == '\'' || c == '\\');
    if plain {
        value.to_owned()
    } else {
        format!("'{}'", value.replace('\\', r"\\").replace('\'', r"\'"))
    }
}

fn blank(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\x0b'
}

/// Up to the closing quote; a backslash takes the next character as it is.
fn quoted_value(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' => return Some((value, &text[at + 1..])),
            '\\' => value.extend(chars.next().map(|(_, c)| c)),
            c => value.push(c),
        }
    }
    None
}

fn plain_value(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            c if blank(c) => return (value, &text[at..]),
            '\\' => value.extend(chars.next().map(|(_, c)| c)),
            c => value.push(c),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(&'static str, String)>, String> {
        parse(text, &Origin::Conninfo)
            .map(|layer| {
                layer
                    .shown()
                    .map(|(name, value, _)| (name, value))
                    .collect()
            })
            .map_err(|error| error.to_string())
    }

    #[test]
    fn values_in_all_their_spellings() {
        let pairs = read(r"  host = db1 port=5432	dbname='a 'user=it\'s password=\ x ")
            .expect("the closing quote needs no blank after it");
        assert_eq!(
            pairs,
            [
                ("host", "db1".to_owned()),
                ("port", "5432".to_owned()),
                ("dbname", "a ".to_owned()),
                ("user", "it's".to_owned()),
                ("password", "(not shown)".to_owned()),
            ]
            .to_vec()
        );
    }

    #[test]
    fn faults_never_repeat_the_text() {
        for text in [
            "host hunter2",
            "password='hunter2",
            "password=hunter2 hunter2=x",
            "host",
            "=hunter2",
            "host=a hunter2",
        ] {
            let error = read(text).expect_err(text);
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn what_is_quoted_is_read_back() {
        for value in ["a", "", "a b", r"it's \ so", "é"] {
            let text = format!("dbname={} port=1", quoted(value));
            let layer = parse(&text, &Origin::Conninfo).expect(&text);
            assert_eq!(layer.get("dbname").map(|given| given.text()), Some(value));
        }
    }
}
