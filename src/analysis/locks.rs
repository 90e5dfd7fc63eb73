//! `pg locks`: who holds and who awaits what, by object and mode, contended objects first.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;

use super::{Lookup, Report};
use crate::model::{LockMode, LockTag, Millis, Part, Pid, Snapshot};

pub const PARTS: &[Part] = &[
    Part::Server,
    Part::Activity,
    Part::Databases,
    Part::Roles,
    Part::Locks,
    Part::Relations,
    Part::Prepared,
];

/// Pids that a row lists; `sessions` counts them all.
const MOST_PIDS: usize = 20;

#[derive(Clone, Debug, Serialize)]
pub struct Locks {
    pub locks: Vec<LockRow>,
}

/// All locks of one mode on one object, held or awaited.
#[derive(Clone, Debug, Serialize)]
pub struct LockRow {
    pub locktype: String,
    /// `schema.name`, or `database:oid` for another database's.
    pub relation: Option<String>,
    /// `null` for what all databases share.
    pub database: Option<String>,
    /// What is locked, in words.
    pub object: String,
    pub mode: LockMode,
    pub granted: bool,
    /// Somebody waits for a lock on this object.
    pub contended: bool,
    pub sessions: usize,
    /// The first of them; workers are folded into their leader.
    pub pids: Vec<Pid>,
    /// Prepared transactions that hold it, and the names of those that have one.
    pub prepared: usize,
    pub gids: Vec<String>,
    pub longest_wait_ms: Option<Millis>,
}

/// Each transaction's lock on its own id says nothing and is left out, unless somebody waits for it.
pub fn report(snapshot: &Snapshot, only_contended: bool) -> Report<Locks> {
    let lookup = Lookup::new(snapshot);
    let mut awaited: BTreeMap<&LockTag, usize> = BTreeMap::new();
    for lock in snapshot.locks.rows().iter().filter(|lock| !lock.granted) {
        *awaited.entry(&lock.tag).or_default() += 1;
    }
    let mut seen = HashSet::new();
    let mut rows: BTreeMap<(&LockTag, &LockMode, bool), LockRow> = BTreeMap::new();
    for lock in snapshot.locks.rows() {
        let contended = awaited.contains_key(&lock.tag);
        let own_id = matches!(
            lock.tag,
            LockTag::Transaction { .. } | LockTag::VirtualXid { .. }
        );
        if !contended && (own_id || only_contended) {
            continue;
        }
        let row = rows
            .entry((&lock.tag, &lock.mode, lock.granted))
            .or_insert_with(|| LockRow {
                locktype: lock.tag.locktype().to_owned(),
                relation: lock
                    .tag
                    .relation()
                    .map(|(database, relation)| lookup.relation(database, relation)),
                database: lock.tag.database().and_then(|oid| lookup.database(oid)),
                object: lookup.locked(&lock.tag),
                mode: lock.mode.clone(),
                granted: lock.granted,
                contended,
                sessions: 0,
                pids: Vec::new(),
                prepared: 0,
                gids: Vec::new(),
                longest_wait_ms: None,
            });
        match lock.pid.map(|pid| lookup.leader(pid)) {
            Some(pid) if !seen.insert((&lock.tag, &lock.mode, lock.granted, pid)) => {}
            Some(pid) => {
                row.sessions += 1;
                if row.pids.len() < MOST_PIDS {
                    row.pids.push(pid);
                }
            }
            None => {
                row.prepared += 1;
                let prepared = lookup
                    .prepared_xid(lock)
                    .and_then(|xid| lookup.prepared(xid));
                row.gids.extend(prepared.map(|p| p.gid.clone()));
            }
        }
        let waited = lock.waitstart.map(|since| since.age_at(snapshot.taken_at));
        row.longest_wait_ms = row.longest_wait_ms.max(waited);
    }
    let mut rows: Vec<(usize, &LockTag, LockRow)> = rows
        .into_iter()
        .map(|((tag, _, _), row)| (awaited.get(tag).copied().unwrap_or(0), tag, row))
        .collect();
    rows.sort_by(|(a_waiters, a_tag, a), (b_waiters, b_tag, b)| {
        b_waiters
            .cmp(a_waiters)
            .then(a.object.cmp(&b.object))
            .then(a_tag.cmp(b_tag))
            .then(b.granted.cmp(&a.granted))
            .then(b.mode.strength().cmp(&a.mode.strength()))
    });
    let locks = rows
        .into_iter()
        .map(|(_, _, mut row)| {
            row.pids.sort_unstable();
            row
        })
        .collect();
    Report::new("locks", snapshot, PARTS, Locks { locks })
}
