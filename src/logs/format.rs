//! Which of the three formats a log has, by its content.

use super::csvlog;
use super::stderr::Lines;
use crate::model::LogFormat;

/// Told by the first lines; `None` where none of them is a log's.
pub fn detect(sample: &[u8], lines: &mut Lines) -> Option<LogFormat> {
    let starts = std::iter::once(0).chain(memchr::memchr_iter(b'\n', sample).map(|at| at + 1));
    for start in starts.take(2000).filter(|start| *start < sample.len()) {
        let line = &sample[start..];
        if line.starts_with(b"{") && memchr::memmem::find(line, b"\"error_severity\"").is_some() {
            return Some(LogFormat::Json);
        }
        if csvlog::begins(sample, start) {
            return Some(LogFormat::Csv);
        }
    }
    (lines.learn(sample) > 0).then_some(LogFormat::Stderr)
}
