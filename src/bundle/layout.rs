//! What a bundle holds, by name: one folder, or the same folder in one `.tar.zst`.
//!
//! ```text
//! capture.json                              what was asked for, and of which server: written first
//! frames/000001-20261130T172643.123456Z.json    a snapshot each
//! redis/000001-hotkeys-20261130T172644.000000Z.json  a report of Redis each
//! logs/000001-postgresql.json               what a log told, by structure
//! gaps.jsonl                                what couldn't be had, and why
//! end.json                                  how it ended: where it is missing, it was cut off
//! manifest.json                             of a sealed one: every file with its SHA-256
//! ```

use serde::{Deserialize, Serialize};

use crate::model::{RedactionLevel, Target, Timestamp};

/// Format name and version on disk. Another number is refused.
pub const BUNDLE_FORMAT: &str = "stanch.bundle/1";
/// What it begins with, whatever the version.
pub(super) const BUNDLE_FAMILY: &str = "stanch.bundle/";

pub const HEAD: &str = "capture.json";
pub const GAPS: &str = "gaps.jsonl";
pub const END: &str = "end.json";
pub const MANIFEST: &str = "manifest.json";
pub const FRAMES: &str = "frames";
pub const REDIS: &str = "redis";
pub const LOGS: &str = "logs";

/// What was asked for: there before the first frame is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    pub format: String,
    /// The version of stanch that captured.
    pub stanch: String,
    pub started_at: Timestamp,
    /// As it was given; each frame says what was really reached.
    pub target: Target,
    pub every_ms: Option<u64>,
    pub for_ms: Option<u64>,
    pub redaction: RedactionLevel,
    /// Addresses, logins, databases and applications are tokens.
    #[serde(default, skip_serializing_if = "is_not")]
    pub tokens: bool,
    /// Logs that are read once the capture ends, as they were given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logs: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_not(flag: &bool) -> bool {
    !flag
}

/// Something that couldn't be had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    pub at: Timestamp,
    /// The last time, where it is several times in a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub times: usize,
    /// `frame`, `redis hotkeys`, `log`.
    pub what: String,
    pub why: String,
}

fn once() -> usize {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_once(times: &usize) -> bool {
    *times == 1
}

impl Gap {
    pub fn new(at: Timestamp, what: String, why: String) -> Self {
        Self {
            at,
            until: None,
            times: 1,
            what,
            why,
        }
    }
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    pub at: Timestamp,
    /// All that was asked for is there.
    pub whole: bool,
    pub why: String,
}

/// One file of a sealed bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    pub path: String,
    pub bytes: u64,
    pub sha256: String,
}

/// A rule of the gate that was passed over, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allowance {
    pub rule: String,
    pub reason: String,
    /// Places that it found.
    pub places: usize,
}

/// What a sealed bundle says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub format: String,
    pub stanch: String,
    pub started_at: Timestamp,
    /// The last thing that was written; with `why_partial`, not the end.
    pub ended_at: Timestamp,
    /// `null`: it is whole.
    pub why_partial: Option<String>,
    pub redaction: RedactionLevel,
    pub frames: usize,
    pub gaps: usize,
    /// What the gate found and a person let through.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<Allowance>,
    pub files: Vec<Sealed>,
}

/// A frame by its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameRef {
    pub number: usize,
    pub at: Timestamp,
    pub path: String,
}

/// A report of Redis by its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisRef {
    pub report: String,
    pub at: Timestamp,
    pub path: String,
}

const STAMP: &str = "%Y%m%dT%H%M%S%.6fZ";

/// `20261130T172643.123456Z`
pub fn stamp(at: Timestamp) -> String {
    at.utc().format(STAMP).to_string()
}

fn of_stamp(text: &str) -> Option<Timestamp> {
    let naive = chrono::NaiveDateTime::parse_from_str(text, STAMP).ok()?;
    Some(Timestamp::new(naive.and_utc()))
}

pub fn frame_path(number: usize, at: Timestamp) -> String {
    format!("{FRAMES}/{number:06}-{}.json", stamp(at))
}

pub fn redis_path(number: usize, report: &str, at: Timestamp) -> String {
    format!("{REDIS}/{number:06}-{report}-{}.json", stamp(at))
}

pub fn log_path(number: usize) -> String {
    format!("{LOGS}/{number:06}-postgresql.json")
}

/// What a path says, where it is that of a frame.
pub(super) fn frame_of(path: &str) -> Option<FrameRef> {
    let name = path.strip_prefix(FRAMES)?.strip_prefix('/')?;
    let (number, at) = name.strip_suffix(".json")?.split_once('-')?;
    Some(FrameRef {
        number: number.parse().ok()?,
        at: of_stamp(at)?,
        path: path.to_owned(),
    })
}

/// What a path says, where it is that of a report of Redis.
pub(super) fn redis_of(path: &str) -> Option<RedisRef> {
    let name = path.strip_prefix(REDIS)?.strip_prefix('/')?;
    let (_, rest) = name.strip_suffix(".json")?.split_once('-')?;
    let (report, at) = rest.rsplit_once('-')?;
    Some(RedisRef {
        report: report.to_owned(),
        at: of_stamp(at)?,
        path: path.to_owned(),
    })
}

/// The time that a file's name has: its time in an archive.
pub(super) fn time_of(path: &str) -> Option<Timestamp> {
    frame_of(path)
        .map(|frame| frame.at)
        .or_else(|| redis_of(path).map(|report| report.at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_they_are() {
        let at = of_stamp("20261130T172643.123456Z").expect("a time");
        assert_eq!(stamp(at), "20261130T172643.123456Z");
        let frame = frame_of(&frame_path(7, at)).expect("a frame");
        assert_eq!((frame.number, frame.at), (7, at));
        let report = redis_of(&redis_path(2, "hotkeys", at)).expect("a report");
        assert_eq!((report.report.as_str(), report.at), ("hotkeys", at));
        assert_eq!(frame_of("frames/x.json"), None);
        assert_eq!(time_of("capture.json"), None);
    }
}
