//! JSON: one object a report, indented; one line each when rounds follow one another.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};

use super::sanitize::steers;

pub fn document(value: &impl Serialize, compact: bool) -> serde_json::Result<String> {
    let mut bytes = Vec::new();
    if compact {
        write(value, &mut bytes, CompactFormatter)?;
    } else {
        write(value, &mut bytes, PrettyFormatter::new())?;
    }
    bytes.push(b'\n');
    // It came from texts.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn write<F: Formatter>(
    value: &impl Serialize,
    out: &mut Vec<u8>,
    inner: F,
) -> serde_json::Result<()> {
    value.serialize(&mut Serializer::with_formatter(out, Visible(inner)))
}

/// Escapes also those characters that JSON may hold as they are and that steer a terminal.
struct Visible<F>(F);

macro_rules! pass_on {
    ($($name:ident($($arg:ident: $kind:ty),*)),+ $(,)?) => {
        $(fn $name<W: ?Sized + Write>(&mut self, out: &mut W $(, $arg: $kind)*) -> io::Result<()> {
            self.0.$name(out $(, $arg)*)
        })+
    };
}

impl<F: Formatter> Formatter for Visible<F> {
    pass_on! {
        begin_array(), end_array(), begin_array_value(first: bool), end_array_value(),
        begin_object(), end_object(), begin_object_key(first: bool), end_object_key(),
        begin_object_value(), end_object_value(),
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(steers) {
            out.write_all(&rest.as_bytes()[..at])?;
            let mut chars = rest[at..].chars();
            let code = chars.next().map_or(0, u32::from);
            write!(out, "\\u{code:04x}")?;
            rest = chars.as_str();
        }
        out.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_it_steers_a_terminal_and_the_data_is_the_same() {
        let text = "caf\u{e9} \u{9b}31m \u{202e}x\u{2028} \u{7f} \u{1b}[0m 在庫 \u{feff}";
        for compact in [true, false] {
            let shown = document(&vec![text], compact).expect("JSON");
            assert!(!shown.contains(steers), "{shown:?}");
            assert!(
                shown.contains("在庫") && shown.contains("\\u009b"),
                "{shown}"
            );
            let back: Vec<String> = serde_json::from_str(&shown).expect("JSON");
            assert_eq!(back, [text]);
        }
    }
}
