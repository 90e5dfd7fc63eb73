//! `pg horizon`: everything that keeps VACUUM from removing dead rows, in one list, oldest first.

use serde::Serialize;

use super::{Lookup, Report, psql_command};
use crate::model::{BackendType, Millis, Part, Pid, Session, Snapshot, Timestamp, Xid};
use crate::sql;

pub const PARTS: &[Part] = &[
    Part::Server,
    Part::Activity,
    Part::Databases,
    Part::Roles,
    Part::Prepared,
    Part::Slots,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HolderKind {
    Session,
    Prepared,
    /// A slot's `xmin`: all tables.
    Slot,
    /// A slot's `catalog_xmin`: catalogs only.
    SlotCatalog,
    /// A standby with `hot_standby_feedback`, by its walsender.
    StandbyFeedback,
}

impl HolderKind {
    pub fn words(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Prepared => "prepared transaction",
            Self::Slot => "replication slot",
            Self::SlotCatalog => "replication slot (catalogs)",
            Self::StandbyFeedback => "standby feedback",
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Horizon {
    pub horizon: Vec<Held>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Held {
    pub kind: HolderKind,
    pub pid: Option<Pid>,
    pub backend_start: Option<Timestamp>,
    /// The gid, the slot, or the application.
    pub name: Option<String>,
    pub database: Option<String>,
    pub user: Option<String>,
    pub xmin: Option<Xid>,
    /// In transactions: the older, the more is held back.
    pub xmin_age: i32,
    pub age_ms: Option<Millis>,
    /// How it is let go.
    pub release: String,
}

/// Oldest first.
pub fn report(snapshot: &Snapshot) -> Report<Horizon> {
    Report::new(
        "horizon",
        snapshot,
        PARTS,
        Horizon {
            horizon: holders(snapshot),
        },
    )
}

pub fn holders(snapshot: &Snapshot) -> Vec<Held> {
    let lookup = Lookup::new(snapshot);
    let mut all: Vec<Held> = snapshot
        .activity
        .rows()
        .iter()
        .filter_map(|s| session(s, snapshot))
        .collect();
    let target = &snapshot.target;
    for p in snapshot.prepared.rows() {
        let database = p.database.clone().unwrap_or_else(|| p.datid.to_string());
        let gid = sql::literal(&p.gid);
        all.push(Held {
            kind: HolderKind::Prepared,
            pid: None,
            backend_start: None,
            name: Some(p.gid.clone()),
            user: p.owner.clone(),
            xmin: Some(p.xid),
            xmin_age: p.xid_age,
            age_ms: Some(p.prepared.age_at(snapshot.taken_at)),
            release: format!(
                "ask its coordinator, then {} (or COMMIT PREPARED)",
                psql_command(&format!("ROLLBACK PREPARED {gid}"), target, &database)
            ),
            database: Some(database),
        });
    }
    for slot in snapshot.slots.rows() {
        let release = if slot.active {
            "its consumer must confirm: look at the subscriber or standby".to_owned()
        } else {
            format!(
                "nobody reads it: if nobody will, {}",
                psql_command(
                    &format!(
                        "SELECT pg_drop_replication_slot({})",
                        sql::literal(&slot.name)
                    ),
                    target,
                    &target.database
                )
            )
        };
        let held = |kind, xmin, age: Option<i32>| {
            Some(Held {
                kind,
                pid: slot.active_pid,
                backend_start: None,
                name: Some(slot.name.clone()),
                database: slot.datid.and_then(|oid| lookup.database(oid)),
                user: None,
                xmin,
                xmin_age: age?,
                age_ms: None,
                release: release.clone(),
            })
        };
        all.extend(held(HolderKind::Slot, slot.xmin, slot.xmin_age));
        all.extend(held(
            HolderKind::SlotCatalog,
            slot.catalog_xmin,
            slot.catalog_xmin_age,
        ));
    }
    all.sort_by(|a, b| {
        b.xmin_age
            .cmp(&a.xmin_age)
            .then(a.kind.cmp(&b.kind))
            .then(a.pid.cmp(&b.pid))
            .then(a.name.cmp(&b.name))
    });
    all
}

fn session(s: &Session, snapshot: &Snapshot) -> Option<Held> {
    // A worker holds what its leader holds, and a plain VACUUM holds nothing (PROC_IN_VACUUM).
    if s.backend_type == Some(BackendType::ParallelWorker) || is_lazy_vacuum(s) {
        return None;
    }
    let (xmin, xmin_age) = match (s.xmin_age, s.xid_age) {
        (Some(xmin), Some(xid)) if xid > xmin => (s.backend_xid, xid),
        (Some(xmin), _) => (s.backend_xmin, xmin),
        (None, Some(xid)) => (s.backend_xid, xid),
        (None, None) => return None,
    };
    let (kind, release) = match &s.backend_type {
        Some(BackendType::WalSender) => (
            HolderKind::StandbyFeedback,
            "end the long query on the standby, or turn hot_standby_feedback off there",
        ),
        Some(BackendType::AutovacuumWorker) => (HolderKind::Session, "it ends by itself"),
        _ if s.waits_on_lock() => (
            HolderKind::Session,
            "it waits for a lock: stanch pg blockers says for whose",
        ),
        _ if s.is_idle_in_transaction() => (
            HolderKind::Session,
            "end its transaction: it is idle, so end the session",
        ),
        _ if s.hidden => (
            HolderKind::Session,
            "its state is hidden: GRANT pg_read_all_stats shows what it does",
        ),
        _ => (
            HolderKind::Session,
            "let it finish, or cancel its statement",
        ),
    };
    Some(Held {
        kind,
        pid: Some(s.pid()),
        backend_start: s.id.backend_start,
        name: s.application_name.clone(),
        database: s.database.clone(),
        user: s.user.clone(),
        xmin,
        xmin_age,
        age_ms: s.xact_age(snapshot.taken_at),
        release: release.into(),
    })
}

fn is_lazy_vacuum(session: &Session) -> bool {
    let query = session
        .query
        .as_deref()
        .unwrap_or("")
        .trim_start()
        .to_lowercase();
    let query = query.strip_prefix("autovacuum: ").unwrap_or(&query);
    query.starts_with("vacuum") && !query.contains("full") && !query.contains("analyze")
}
