//! The audited quoting functions, for the statements that take no parameters (`ROLLBACK PREPARED`, `GRANT`) and for
//! commands that a person pastes.

/// A string literal that reads the same whatever `standard_conforming_strings` is.
pub fn literal(value: &str) -> String {
    let doubled = value.replace('\'', "''");
    if doubled.contains('\\') {
        format!("E'{}'", doubled.replace('\\', "\\\\"))
    } else {
        format!("'{doubled}'")
    }
}

/// An identifier, quoted unless it reads the same bare.
pub fn identifier(name: &str) -> String {
    let bare = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    // A keyword is refused bare in places; these are the ones that people use for roles.
    let keyword = matches!(
        name,
        "user" | "all" | "group" | "public" | "table" | "select" | "grant" | "default" | "order"
    );
    if bare && !keyword {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::lexer::{Token, tokens};

    #[test]
    fn quotes_and_backslashes() {
        assert_eq!(literal("a"), "'a'");
        assert_eq!(literal("o'neil"), "'o''neil'");
        assert_eq!(literal(r"a\'b"), r"E'a\\''b'");
    }

    #[test]
    fn identifiers_are_quoted_where_needed() {
        let shown = ["app_rw", "App", "o\"x", "user", "1a", "日本"].map(identifier);
        assert_eq!(
            shown,
            [
                "app_rw",
                "\"App\"",
                "\"o\"\"x\"",
                "\"user\"",
                "\"1a\"",
                "\"日本\""
            ]
        );
    }

    proptest::proptest! {
        #[test]
        fn any_value_stays_one_literal(value in "\\PC*") {
            let quoted = literal(&value);
            let all = tokens(&quoted);
            proptest::prop_assert!(matches!(all[..], [Token::Text(_)]), "{quoted}");
        }
    }
}
