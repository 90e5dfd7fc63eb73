//! Strangers wrote the text: nothing of it may steer a terminal, and it is cut by the columns it takes.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Control, escape and direction characters made visible; every other character as it is.
pub fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' | '\n' | '\r' => out.push(' '),
            c if steers(c) => {
                let code = u32::from(c);
                if code < 0x100 {
                    out.push_str(&format!("\\x{code:02x}"));
                } else {
                    out.push_str(&format!("\\u{{{code:x}}}"));
                }
            }
            c => out.push(c),
        }
    }
    out
}

/// The statement on one line, with runs of white space as one blank: for a cell of a table.
pub fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

/// Control characters, bidirectional overrides, line separators, and what takes no room: they steer a terminal, or
/// reorder, break or hide what stands around them.
pub fn steers(c: char) -> bool {
    c.is_control() && c != '\n'
        || matches!(c, '\u{200b}' | '\u{feff}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

/// Columns that a terminal gives this text: two for CJK.
pub fn width(text: &str) -> usize {
    text.width()
}

/// Cut to at most so many columns, `…` in place of what is missing.
pub fn cut(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        let takes = c.width().unwrap_or(0);
        if used + takes + 1 > most {
            break;
        }
        used += takes;
        out.push(c);
    }
    if most > 0 {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(
            clean("a\x1b[31mb\x07\u{9b}c\u{202e}d\ne"),
            "a\\x1b[31mb\\x07\\x9bc\\u{202e}d e"
        );
        assert_eq!(clean("日本語 é 🐘"), "日本語 é 🐘");
    }

    #[test]
    fn white_space_is_folded() {
        assert_eq!(one_line("  a\n\t b  "), "a b");
    }

    #[test]
    fn cut_by_columns() {
        assert_eq!(cut("日本語", 6), "日本語");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("日本語", 1), "…");
        assert_eq!(cut("日本語", 0), "");
        assert_eq!(cut("abcdef", 4), "abc…");
    }

    proptest::proptest! {
        #[test]
        fn never_wider_than_asked(text in "\\PC*", most in 0_usize..40) {
            proptest::prop_assert!(width(&cut(&text, most)) <= most);
        }

        #[test]
        fn no_control_is_left(text in ".*") {
            proptest::prop_assert!(!clean(&text).chars().any(char::is_control));
        }
    }
}
