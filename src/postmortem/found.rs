//! When each finding was seen: what lies between two captures is a bound, never a moment.

use super::frame::Frame;
use crate::analysis::triage::Finding;
use crate::model::{FindingId, Severity, Timestamp};

/// A finding over all captures.
#[derive(Clone, Debug)]
pub struct Seen {
    pub id: FindingId,
    /// Its worst.
    pub severity: Severity,
    pub bounds: Bounds,
    pub captures: usize,
    /// As it was at its worst.
    pub title: String,
    pub evidence: Vec<String>,
    pub caused_by: Vec<FindingId>,
    pub worst_at: Timestamp,
    measure: [u64; 3],
}

/// From when to when something was so, as far as captures can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The last capture before that didn't have it: it began after.
    pub not_before: Option<Timestamp>,
    /// When it began by its age at its first sight: what waits or is open says since when.
    pub since: Option<Timestamp>,
    pub first: Timestamp,
    pub last: Timestamp,
    /// The first capture after that doesn't have it: it was over by then.
    pub not_after: Option<Timestamp>,
    /// In between was a capture that didn't have it.
    pub with_breaks: bool,
}

impl Bounds {
    pub(super) fn at(
        first: Timestamp,
        not_before: Option<Timestamp>,
        since: Option<Timestamp>,
    ) -> Self {
        // A capture that doesn't have it is the better bound: what has an age isn't found as soon as it begins.
        let since = since.filter(|since| not_before.is_none_or(|before| before <= *since));
        Self {
            not_before,
            since,
            first,
            last: first,
            not_after: None,
            with_breaks: false,
        }
    }

    /// It is there in this capture.
    pub(super) fn seen(&mut self, at: Timestamp) {
        self.with_breaks |= self.not_after.is_some();
        self.not_after = None;
        self.last = at;
    }

    /// It isn't there in this capture, which would have shown it.
    pub(super) fn gone(&mut self, at: Timestamp) {
        self.not_after.get_or_insert(at);
    }
}

impl Seen {
    pub(super) fn new(found: &Finding, frame: &Frame, not_before: Option<Timestamp>) -> Self {
        let at = frame.at;
        Self {
            id: found.id,
            severity: found.severity,
            bounds: Bounds::at(
                at,
                not_before,
                frame.age(found.id).map(|age| at.before(age)),
            ),
            captures: 1,
            title: found.title.clone(),
            evidence: found.evidence.clone(),
            caused_by: found.caused_by.clone(),
            worst_at: at,
            measure: frame.measure(found.id),
        }
    }

    pub(super) fn again(&mut self, found: &Finding, frame: &Frame) {
        let at = frame.at;
        let measure = frame.measure(found.id);
        self.bounds.seen(at);
        self.captures += 1;
        if (found.severity, measure) > (self.severity, self.measure) {
            self.measure = measure;
            self.severity = found.severity;
            self.title.clone_from(&found.title);
            self.evidence.clone_from(&found.evidence);
            self.caused_by.clone_from(&found.caused_by);
            self.worst_at = at;
        }
    }
}
