//! A key's name: bytes, in any encoding or none.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The name of a key as the server has it.
///
/// Serialises as `key`, and beside it as `key_base64` where it isn't UTF-8: nothing is lost. Use it flattened.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyName(pub Vec<u8>);

impl KeyName {
    /// As text: what isn't UTF-8 is written as `\xff`, byte by byte.
    pub fn text(&self) -> String {
        self.0
            .utf8_chunks()
            .fold(String::with_capacity(self.0.len()), |mut text, chunk| {
                text.push_str(chunk.valid());
                for byte in chunk.invalid() {
                    text.push_str(&format!("\\x{byte:02x}"));
                }
                text
            })
    }
}

impl Serialize for KeyName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("key", &self.text())?;
        if std::str::from_utf8(&self.0).is_err() {
            map.serialize_entry("key_base64", &STANDARD.encode(&self.0))?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for KeyName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Written {
            key: String,
            key_base64: Option<String>,
        }
        let written = Written::deserialize(deserializer)?;
        let bytes = written.key_base64.map(|text| STANDARD.decode(text));
        Ok(Self(match bytes {
            Some(bytes) => bytes.map_err(serde::de::Error::custom)?,
            None => written.key.into_bytes(),
        }))
    }
}

/// What a key holds, as `TYPE` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyType {
    String,
    List,
    Set,
    Zset,
    Hash,
    Stream,
    /// Of a module.
    Other,
}

impl KeyType {
    pub const ALL: [Self; 7] = [
        Self::String,
        Self::List,
        Self::Set,
        Self::Zset,
        Self::Hash,
        Self::Stream,
        Self::Other,
    ];

    pub fn parse(name: &str) -> Self {
        Self::ALL
            .into_iter()
            .find(|of| of.name() == name)
            .unwrap_or(Self::Other)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::List => "list",
            Self::Set => "set",
            Self::Zset => "zset",
            Self::Hash => "hash",
            Self::Stream => "stream",
            Self::Other => "other",
        }
    }

    /// What counts its elements, at no cost; a string has none, and of a module's types it isn't known.
    pub fn length_command(self) -> Option<&'static str> {
        match self {
            Self::List => Some("LLEN"),
            Self::Set => Some("SCARD"),
            Self::Zset => Some("ZCARD"),
            Self::Hash => Some("HLEN"),
            Self::Stream => Some("XLEN"),
            Self::String | Self::Other => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_name_is_lost() {
        let plain = KeyName("在庫:1 \\x".into());
        assert_eq!(
            serde_json::to_value(&plain).expect("JSON"),
            serde_json::json!({ "key": "在庫:1 \\x" })
        );
        let bytes = KeyName(b"a\xff\x00b".to_vec());
        assert_eq!(
            serde_json::to_value(&bytes).expect("JSON"),
            serde_json::json!({ "key": "a\\xff\u{0}b", "key_base64": "Yf8AYg==" })
        );
        for name in [plain, bytes] {
            let json = serde_json::to_string(&name).expect("JSON");
            assert_eq!(
                serde_json::from_str::<KeyName>(&json).expect("a name"),
                name
            );
        }
    }
}
