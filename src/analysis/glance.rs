//! One snapshot in a line: how full, who does what, who waits.

use serde::Serialize;

use super::connections;
use crate::model::{Millis, Snapshot, Timestamp};

/// What a frame of a bundle shows at a glance. `null` is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Glance {
    pub at: Timestamp,
    /// Slots taken, our own not counted; at most, where sessions are hidden.
    pub used: Option<usize>,
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

/// How a snapshot looks.
pub fn glance(snapshot: &Snapshot) -> Glance {
    let data = connections::report(snapshot).data;
    let capacity = data.capacity.as_ref();
    let read = snapshot.activity.get().is_some();
    let sum = |of: fn(&connections::Group) -> usize| read.then(|| data.groups.iter().map(of).sum());
    let sessions = snapshot.activity.rows();
    let count = |test: &dyn Fn(&crate::model::Session) -> bool| {
        read.then(|| sessions.iter().filter(|session| test(session)).count())
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
        usable: capacity.map(|capacity| capacity.usable as usize),
        active: sum(|group| group.active),
        idle_in_transaction: sum(|group| {
            group.idle_in_transaction + group.idle_in_transaction_aborted
        }),
        idle: sum(|group| group.idle),
        other: sum(|group| group.other + group.hidden),
        waiting: count(&crate::model::Session::waits_on_lock),
        oldest_transaction_ms: oldest,
        failed: failed.collect(),
    }
}
