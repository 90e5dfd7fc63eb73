//! The first lines of a report of logs: which, in which form, how large, and what of them couldn't be read.

use crate::analysis::deadlocks::LogHead;
use crate::model::{LogPacking, LogRead, Timestamp, counted};
use crate::view::header::Heading;
use crate::view::prometheus::Metric;
use crate::view::sanitize::clean;

impl Heading for LogHead {
    /// `postgresql.log · stderr · 1.2 GiB, 8,123,456 lines`
    fn who(&self) -> String {
        let logs: Vec<String> = match self.logs.as_slice() {
            [one] => vec![name(one)],
            several => vec![
                format!("{} logs", several.len()),
                several.iter().map(name).collect::<Vec<_>>().join(", "),
            ],
        };
        format!(
            "{} · {}, {}",
            logs.join(": "),
            size(self.coverage.bytes),
            counted(self.coverage.lines, "line")
        )
    }

    fn taken_at(&self) -> Timestamp {
        self.taken_at
    }

    fn unseen(&self) -> Vec<String> {
        self.coverage
            .missing
            .iter()
            .map(|line| clean(line))
            .collect()
    }

    /// Refused before a log is read: what happened once is no gauge.
    fn prometheus(&self, _: Vec<Metric>) -> String {
        String::new()
    }
}

/// `postgresql.log.gz (stderr, gzip)`
fn name(log: &LogRead) -> String {
    let packing = match log.packing {
        LogPacking::None => "",
        LogPacking::Gzip => ", gzip",
        LogPacking::Zstd => ", zstd",
    };
    let what = if log.name == "-" {
        "standard input"
    } else {
        &log.name
    };
    format!("{} ({}{packing})", clean(what), log.format.word())
}

fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = "B";
    for next in UNITS {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    if unit == "B" {
        format!("{bytes} B")
    } else {
        format!("{value:.1} {unit}")
    }
}
