//! Answers of either protocol as plain data: RESP2 gives a map as a flat array, RESP3 as a map.

use redis::Value;

pub fn int(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        _ => text(value)?.parse().ok(),
    }
}

pub fn uint(value: &Value) -> Option<u64> {
    u64::try_from(int(value)?).ok()
}

pub fn bytes(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Some(text.into_bytes()),
        Value::Okay => Some(b"OK".to_vec()),
        _ => None,
    }
}

/// Text; bytes that aren't UTF-8 are replaced. For names of the protocol, not for keys.
pub fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Some(text.clone()),
        Value::Okay => Some("OK".into()),
        Value::Int(number) => Some(number.to_string()),
        Value::Double(number) => Some(number.to_string()),
        _ => None,
    }
}

pub fn list(value: Value) -> Vec<Value> {
    match value {
        Value::Array(values) | Value::Set(values) => values,
        _ => Vec::new(),
    }
}
/// Fields by name, of a map or of a flat array.
pub fn fields(value: Value) -> Vec<(String, Value)> {
    match value {
        Value::Map(pairs) => pairs
            .into_iter()
            .filter_map(|(name, value)| Some((text(&name)?, value)))
            .collect(),
        Value::Array(values) => {
            let mut values = values.into_iter();
            let mut pairs = Vec::new();
            while let (Some(name), Some(value)) = (values.next(), values.next()) {
                if let Some(name) = text(&name) {
                    pairs.push((name, value));
                }
            }
            pairs
        }
        _ => Vec::new(),
    }
}

/// One field of `fields`.
pub fn field<'v>(fields: &'v [(String, Value)], name: &str) -> Option<&'v Value> {
    fields
        .iter()
        .find(|(n, _)| n == name)
        .map(|(_, value)| value)
}
