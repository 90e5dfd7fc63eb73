//! Bytes of a database's encoding → text. `pg_stat_activity` hands out each statement in the encoding of its own
//! database, whatever database asks; what can't be read is replaced, and nothing fails.

use std::collections::BTreeMap;

use encoding_rs as table;

use crate::model::{Database, Oid};

/// A server encoding (manual, table 24.1), as far as it matters for reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// `UTF8`, and what isn't known.
    Utf8,
    /// `SQL_ASCII`: bytes that nobody has looked at. UTF-8 where it is that.
    SqlAscii,
    /// `LATIN1`: each byte is the code point.
    Latin1,
    /// `KOI8U`: the table has two Belarusian letters where PostgreSQL has box drawing.
    Koi8u,
    /// Each byte below 0xA0 is its own code point, the others are in the table.
    UpperHalf(&'static table::Encoding),
    Table(&'static table::Encoding),
    /// `EUC_JIS_2004`: what it has in common with `EUC_JP` is read, its further characters are replaced.
    EucJis2004,
    /// `EUC_TW`, `MULE_INTERNAL`: ASCII is read, each other character is replaced.
    AsciiOnly,
}

impl Encoding {
    /// By the name that `pg_encoding_to_char` gives.
    pub fn named(name: &str) -> Self {
        match name {
            "SQL_ASCII" => Self::SqlAscii,
            "LATIN1" => Self::Latin1,
            "LATIN5" => Self::UpperHalf(table::WINDOWS_1254),
            "KOI8U" => Self::Koi8u,
            "EUC_JIS_2004" => Self::EucJis2004,
            "EUC_TW" | "MULE_INTERNAL" => Self::AsciiOnly,
            _ => table_of(name).map_or(Self::Utf8, Self::Table),
        }
    }

    /// Never fails: what isn't of this encoding becomes U+FFFD.
    pub fn decode(self, bytes: &[u8]) -> String {
        match self {
            Self::Utf8 | Self::SqlAscii => String::from_utf8_lossy(bytes).into_owned(),
            Self::Latin1 => table::mem::decode_latin1(bytes).into_owned(),
            Self::Table(table) => table.decode_without_bom_handling(bytes).0.into_owned(),
            Self::Koi8u => bytes
                .iter()
                .map(|byte| match byte {
                    0xAE => "╝".to_owned(),
                    0xBE => "╬".to_owned(),
                    _ => table::KOI8_U
                        .decode_without_bom_handling(&[*byte])
                        .0
                        .into_owned(),
                })
                .collect(),
            Self::UpperHalf(table) => bytes
                .iter()
                .map(|byte| match byte {
                    0xA0.. => table.decode_without_bom_handling(&[*byte]).0.into_owned(),
                    _ => char::from(*byte).to_string(),
                })
                .collect(),
            Self::EucJis2004 => jis_2004(bytes),
            Self::AsciiOnly => ascii_only(bytes),
        }
    }

    /// A name in a catalog that all databases share: in the encoding of whichever database it was made in, which nothing
    /// tells. UTF-8 is rarely something else by chance; else it is read as this database would.
    pub fn decode_shared(self, bytes: &[u8]) -> String {
        match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => self.decode(bytes),
        }
    }
}

fn table_of(name: &str) -> Option<&'static table::Encoding> {
    Some(match name {
        "EUC_JP" => table::EUC_JP,
        "EUC_KR" => table::EUC_KR,
        "EUC_CN" => table::GBK,
        "ISO_8859_5" => table::ISO_8859_5,
        "ISO_8859_6" => table::ISO_8859_6,
        "ISO_8859_7" => table::ISO_8859_7,
        "ISO_8859_8" => table::ISO_8859_8,
        "KOI8R" => table::KOI8_R,
        "LATIN2" => table::ISO_8859_2,
        "LATIN3" => table::ISO_8859_3,
        "LATIN4" => table::ISO_8859_4,
        "LATIN6" => table::ISO_8859_10,
        "LATIN7" => table::ISO_8859_13,
        "LATIN8" => table::ISO_8859_14,
        "LATIN9" => table::ISO_8859_15,
        "LATIN10" => table::ISO_8859_16,
        "WIN866" => table::IBM866,
        "WIN874" => table::WINDOWS_874,
        "WIN1250" => table::WINDOWS_1250,
        "WIN1251" => table::WINDOWS_1251,
        "WIN1252" => table::WINDOWS_1252,
        "WIN1253" => table::WINDOWS_1253,
        "WIN1254" => table::WINDOWS_1254,
        "WIN1255" => table::WINDOWS_1255,
        "WIN1256" => table::WINDOWS_1256,
        "WIN1257" => table::WINDOWS_1257,
        "WIN1258" => table::WINDOWS_1258,
        _ => return None,
    })
}

/// JIS X 0208 lies where EUC_JP has it; rows beyond it hold other characters there than here.
fn jis_2004(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(first) = rest.first() {
        let (length, common) = match first {
            0..=0x7F => (1, true),
            0x8E | 0xA1..=0xA8 | 0xB0..=0xF4 => (2, true),
            0x8F => (3, false),
            _ => (2, false),
        };
        let (character, after) = rest.split_at(length.min(rest.len()));
        if common {
            text.push_str(&table::EUC_JP.decode_without_bom_handling(character).0);
        } else {
            text.push(char::REPLACEMENT_CHARACTER);
        }
        rest = after;
    }
    text
}

/// One replacement for each run of bytes above ASCII: where characters begin in them isn't read.
fn ascii_only(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for run in bytes.chunk_by(|a, b| a.is_ascii() == b.is_ascii()) {
        if run[0].is_ascii() {
            text.extend(run.iter().map(|byte| char::from(*byte)));
        } else {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    text
}

/// The encodings of a server's databases.
#[derive(Clone, Debug)]
pub struct Encodings {
    by_database: BTreeMap<Oid, Encoding>,
    /// Of the database that was connected to.
    pub own: Encoding,
}

impl Encodings {
    pub fn new(own: Encoding, databases: &[Database]) -> Self {
        let by_database = databases
            .iter()
            .map(|d| (d.oid, Encoding::named(&d.encoding)))
            .collect();
        Self { by_database, own }
    }

    /// A text out of a database; without one, as a shared name.
    pub fn decode(&self, database: Option<Oid>, bytes: &[u8]) -> String {
        match database.and_then(|oid| self.by_database.get(&oid)) {
            Some(encoding) => encoding.decode(bytes),
            None => self.own.decode_shared(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_in_its_own_way() {
        for (name, bytes, want) in [
            ("UTF8", &b"caf\xc3\xa9 \xff"[..], "café \u{fffd}"),
            ("SQL_ASCII", b"caf\xe9 \xe5\xba\xab", "caf\u{fffd} 庫"),
            ("LATIN1", b"caf\xe9 \xc3\xa9", "café Ã©"),
            ("LATIN5", b"\x85\xf0", "\u{85}ğ"),
            (
                "EUC_JP",
                b"\xba\xdf\xb8\xcb \x8e\xb1 \xff",
                "在庫 ｱ \u{fffd}",
            ),
            ("EUC_TW", b"a\xa4\xa4\xa4\xe5b", "a\u{fffd}b"),
            ("WIN1251", b"\xc7\xe0\xea\xe0\xe7", "Заказ"),
            ("EUC_KR", b"\xc1\xd6\xb9\xae", "주문"),
        ] {
            assert_eq!(Encoding::named(name).decode(bytes), want, "{name}");
        }
        assert_eq!(Encoding::Latin1.decode_shared(b"caf\xe9"), "café");
        assert_eq!(Encoding::Latin1.decode_shared(b"caf\xc3\xa9"), "café");
    }
}
