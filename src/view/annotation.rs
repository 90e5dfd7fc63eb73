//! A line that GitHub shows beside the changed file: `::error file=…,line=…::…`.

/// One of them; what would end a field of it is written otherwise.
pub fn annotation(level: &str, fields: &[(&str, String)], message: &str) -> String {
    let fields: Vec<String> = fields
        .iter()
        .map(|(name, value)| format!("{name}={}", property(value)))
        .collect();
    format!("::{level} {}::{}\n", fields.join(","), data(message))
}

fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
