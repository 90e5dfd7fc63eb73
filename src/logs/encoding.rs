//! Lines that aren't UTF-8: a server writes each message in the encoding of its session's database.

use std::borrow::Cow;

use encoding_rs::{
    BIG5, EUC_JP, EUC_KR, Encoding, GB18030, ISO_8859_2, ISO_8859_5, KOI8_R, WINDOWS_1250,
    WINDOWS_1251, WINDOWS_1252, WINDOWS_1254,
};

/// Encodings of the languages that labels are known in. Most decode any byte: the label behind the prefix tells which it is.
const CANDIDATES: [&Encoding; 11] = [
    EUC_JP,
    EUC_KR,
    GB18030,
    BIG5,
    KOI8_R,
    WINDOWS_1251,
    ISO_8859_5,
    WINDOWS_1252,
    ISO_8859_2,
    WINDOWS_1250,
    WINDOWS_1254,
];

/// Lines after which no other encoding is looked for: texts of statements may be in any.
const TRIES: u32 = 5_000;

/// The encoding of a log's lines, as far as it is known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Decoder {
    known: Option<&'static Encoding>,
    tried: u32,
}

impl Decoder {
    /// The line as text; what no encoding fits, with marks in place of what can't be read. `label`: the word of the label
    /// that a text has behind its prefix, if it is one of those that are known.
    pub fn decode<'l>(
        &mut self,
        line: &'l [u8],
        mut label: impl FnMut(&str) -> Option<String>,
    ) -> Cow<'l, str> {
        if let Ok(text) = std::str::from_utf8(line) {
            // Two bytes such as those of 文 in EUC-JP are a letter in UTF-8 too.
            let other = self
                .known
                .filter(|_| !text.is_ascii() && label(text).is_none());
            let other = other.and_then(|known| decoded(known, line));
            let other = other.filter(|text| label(text).is_some_and(|word| !word.is_ascii()));
            return other.unwrap_or(Cow::Borrowed(text));
        }
        let plain = String::from_utf8_lossy(line);
        // A label in English is read as it is; what stands behind it may be in any encoding.
        if label(&plain).is_some() || self.tried >= TRIES && self.known.is_none() {
            return plain;
        }
        if let Some(text) = self.known.and_then(|known| decoded(known, line)) {
            return text;
        }
        self.tried = self.tried.saturating_add(1);
        for encoding in CANDIDATES {
            let Some(text) = decoded(encoding, line) else {
                continue;
            };
            if label(&text).is_some_and(|word| !word.is_ascii()) {
                self.known = Some(encoding);
                return text;
            }
        }
        plain
    }
}

fn decoded<'l>(encoding: &'static Encoding, line: &'l [u8]) -> Option<Cow<'l, str>> {
    encoding.decode_without_bom_handling_and_without_replacement(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::labels;

    fn label(text: &str) -> Option<String> {
        let (found, _) = labels::leading(text)?;
        (found != labels::Label::Unknown)
            .then(|| text.split(':').next().unwrap_or_default().trim().to_owned())
    }

    #[test]
    fn by_the_label_behind_the_prefix() {
        let cases = [
            ("詳細:  プロセス 1", EUC_JP),
            ("상세정보:  프로세스 1", EUC_KR),
            ("详细信息:  进程 1", GB18030),
            ("ПОДРОБНОСТИ:  Процесс 1", KOI8_R),
            ("ПОДРОБНОСТИ:  Процесс 1", WINDOWS_1251),
            ("DÉTAIL:  Le processus 1", WINDOWS_1252),
            ("BŁĄD:  Proces 1", ISO_8859_2),
        ];
        for (text, encoding) in cases {
            let (bytes, _, bad) = encoding.encode(text);
            assert!(!bad, "{text}");
            let mut decoder = Decoder::default();
            assert_eq!(decoder.decode(&bytes, label), text, "{}", encoding.name());
            // What goes on with it has no label.
            let (more, ..) = encoding.encode("é詳細ПÓ");
            let _ = decoder.decode(&more, label);
            assert_eq!(decoder.decode("文:  x".as_bytes(), label), "文:  x");
            let (two, ..) = EUC_JP.encode("文:  x");
            assert_eq!(decoder.decode(&two, label) == "文:  x", encoding == EUC_JP);
        }
        let mut decoder = Decoder::default();
        let english = decoder.decode(b"ERROR:  caf\xe9", label).into_owned();
        assert_eq!(english, "ERROR:  caf\u{fffd}");
        assert!(decoder.known.is_none());
    }
}
