//! One snapshot in a line: how full, who does what, who waits.

use std::collections::BTreeSet;

use serde::Serialize;

use super::connections::{self, UsedIs};
use super::triage;
use crate::model::{Millis, Pid, Severity, Snapshot, Thresholds, Timestamp};

/// What a frame of a bundle shows at a glance. `null` is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Glance {
    pub at: Timestamp,
    /// Slots taken, our own not counted; at most, where sessions are hidden.
    pub used: Option<usize>,
    /// Sessions are hidden from this login: `used` is at most so many.
    pub used_is_at_most: bool,
    pub usable: Option<usize>,
    pub active: Option<usize>,
    pub idle_in_transaction: Option<usize>,
    pub idle: Option<usize>,
    /// Of another state, or hidden.
    pub other: Option<usize>,
    /// Sessions that wait for a lock.
    pub waiting: Option<usize>,
    pub oldest_transaction_ms: Option<Millis>,
    /// Parts that couldn't be read.
    pub failed: Vec<&'static str>,
}

/// How bad a snapshot is, to be compared: what triage finds, then who waits, how full it is, and for how long.
pub type Weight = (Option<Severity>, usize, usize, usize, Millis);

/// How bad it is, by the usual limits.
pub fn weight(snapshot: &Snapshot) -> Weight {
    let found = triage::report(snapshot, &Thresholds::default())
        .data
        .findings;
    let worst = found.iter().map(|finding| finding.severity).max();
    let alike = found
        .iter()
        .filter(|finding| Some(finding.severity) == worst);
    let alike = alike.count();
    let seen = glance(snapshot);
    (
        worst,
        alike,
        seen.waiting.unwrap_or(0),
        seen.used.unwrap_or(0),
        seen.oldest_transaction_ms.unwrap_or_default(),
    )
}

/// How a snapshot looks.
pub fn glance(snapshot: &Snapshot) -> Glance {
    let data = connections::report(snapshot).data;
    let capacity = data.capacity.as_ref();
    let read = snapshot.activity.get().is_some();
    let sum = |of: fn(&connections::Group) -> usize| read.then(|| data.groups.iter().map(of).sum());
    let sessions = snapshot.activity.rows();
    // Locks are seen by every login; what a hidden session waits for isn't.
    let waiting = match snapshot.locks.get() {
        Some(locks) => {
            let waits = locks.iter().filter(|lock| !lock.granted);
            let pids: BTreeSet<Pid> = waits.filter_map(|lock| lock.pid).collect();
            Some(pids.len())
        }
        None if sessions.iter().any(|session| session.hidden) => None,
        None => read.then(|| sessions.iter().filter(|s| s.waits_on_lock()).count()),
    };
    let oldest = sessions
        .iter()
        .filter(|session| session.takes_slot())
        .filter_map(|session| session.xact_age(snapshot.taken_at))
        .max();
    let failed = crate::model::Part::ALL
        .iter()
        .filter(|part| snapshot.status(**part).0 == "failed")
        .map(|part| part.name());
    Glance {
        at: snapshot.taken_at,
        used: capacity.map(|capacity| capacity.used as usize),
        used_is_at_most: capacity.is_some_and(|capacity| capacity.used_is == UsedIs::AtMost),
        usable: capacity.map(|capacity| capacity.usable as usize),
        active: sum(|group| group.active),
        idle_in_transaction: sum(|group| {
            group.idle_in_transaction + group.idle_in_transaction_aborted
        }),
        idle: sum(|group| group.idle),
        other: sum(|group| group.other + group.hidden),
        waiting,
        oldest_transaction_ms: oldest,
        failed: failed.collect(),
    }
}
