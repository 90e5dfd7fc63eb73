//! `pg connections`: every slot accounted for.
//!
//! What an application may use is `max_connections` less both reserves (PostgreSQL 12 to 18). Client backends of every
//! role take slots, superusers' too; walsenders, autovacuum and parallel workers have slots of their own.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Report;
use crate::model::{
    Millis, Oid, Part, Percent, Pool, Pooler, Section, Server, Session, SessionState, SlotLimit,
    Snapshot, Timestamp,
};

pub const PARTS: &[Part] = &[Part::Server, Part::Activity, Part::Databases, Part::Roles];

#[derive(Clone, Debug, Serialize)]
pub struct Connections {
    /// `null` where the server's limits or its sessions couldn't be read.
    pub capacity: Option<Capacity>,
    pub groups: Vec<Group>,
    pub limits: Vec<Limit>,
    /// The pooler in front, where the target names its console.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pooler: Option<PoolerPart>,
}

/// The pools beside the slots: `error` says why there are none to be seen.
#[derive(Clone, Debug, Serialize)]
pub struct PoolerPart {
    pub host: Option<String>,
    pub port: Option<u16>,
    pub version: Option<String>,
    pub paused: Option<bool>,
    pub pools: Option<Vec<Pool>>,
    pub error: Option<String>,
}

impl PoolerPart {
    fn of(look: &Section<Pooler>) -> Self {
        let seen = look.get();
        Self {
            host: seen.map(|pooler| pooler.host.clone()),
            port: seen.map(|pooler| pooler.port),
            version: seen.and_then(|pooler| pooler.version.clone()),
            paused: seen.and_then(|pooler| pooler.paused),
            pools: seen.map(|pooler| pooler.pools.clone()),
            error: look.why(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UsedIs {
    Exact,
    /// Hidden rows are counted as clients; some may be workers.
    AtMost,
}

#[derive(Clone, Debug, Serialize)]
pub struct Capacity {
    pub max_connections: u32,
    pub superuser_reserved: u32,
    pub reserved: u32,
    pub usable: u32,
    /// Our own connection not counted.
    pub used: u32,
    pub used_is: UsedIs,
    pub free: u32,
    /// Of `usable`; superusers count, so it may pass 100.
    pub used_pct: Option<Percent>,
    pub provider_reserved: Option<u32>,
    /// Slots taken by what the server doesn't show (not yet authenticated, or starting): a lower bound, and `null`
    /// unless a login was refused for want of a slot in this round.
    pub unaccounted: Option<u32>,
}

impl Capacity {
    /// `at most 18 of 20 usable slots taken (90 %)`
    pub fn words(&self) -> String {
        let most = if self.used_is == UsedIs::AtMost {
            "at most "
        } else {
            ""
        };
        let share = self
            .used_pct
            .map_or(String::new(), |pct| format!(" ({pct})"));
        format!(
            "{most}{} of {} usable slots taken{share}",
            self.used, self.usable
        )
    }

    /// `2`, or `at least 2` where hidden rows may be no clients.
    pub fn free_words(&self) -> String {
        let least = if self.used_is == UsedIs::AtMost {
            "at least "
        } else {
            ""
        };
        format!("{least}{}", self.free)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Group {
    pub user: Option<String>,
    pub database: Option<String>,
    pub application_name: Option<String>,
    pub client_addr: Option<String>,
    pub total: usize,
    pub active: usize,
    pub idle: usize,
    pub idle_in_transaction: usize,
    pub idle_in_transaction_aborted: usize,
    pub other: usize,
    pub hidden: usize,
    pub oldest_idle_ms: Option<Millis>,
    pub newest_backend_start: Option<Timestamp>,
    /// `null` where the start of some is hidden.
    pub opened_last_minute: Option<usize>,
}

/// A role's or database's own limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Limit {
    pub kind: LimitKind,
    pub name: String,
    pub limit: u32,
    /// `null` where the sessions couldn't be read.
    pub used: Option<usize>,
    pub free: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    Role,
    Database,
}

impl LimitKind {
    pub fn word(self) -> &'static str {
        match self {
            Self::Role => "role",
            Self::Database => "database",
        }
    }
}

/// Largest group first.
pub fn report(snapshot: &Snapshot) -> Report<Connections> {
    let data = Connections {
        capacity: capacity(snapshot),
        groups: groups(snapshot),
        limits: limits(snapshot),
        pooler: snapshot.pooler.as_ref().map(PoolerPart::of),
    };
    Report::new("connections", snapshot, PARTS, data)
}

/// Sessions that take a slot, our own not among them.
pub fn clients(snapshot: &Snapshot) -> impl Iterator<Item = &Session> {
    snapshot.activity.rows().iter().filter(|s| s.takes_slot())
}

/// The slots there are and how many are taken.
pub fn capacity(snapshot: &Snapshot) -> Option<Capacity> {
    let server = snapshot.server.get()?;
    let sessions = snapshot.activity.get()?;
    let used = u32::try_from(clients(snapshot).count()).unwrap_or(u32::MAX);
    let usable = server
        .max_connections
        .saturating_sub(server.superuser_reserved)
        .saturating_sub(server.reserved)
        .saturating_sub(server.provider_reserved.unwrap_or(0));
    let hidden = sessions.iter().any(|s| s.hidden && s.takes_slot());
    Some(Capacity {
        max_connections: server.max_connections,
        superuser_reserved: server.superuser_reserved,
        reserved: server.reserved,
        usable,
        used,
        used_is: if hidden {
            UsedIs::AtMost
        } else {
            UsedIs::Exact
        },
        free: usable.saturating_sub(used),
        used_pct: Percent::of(used.into(), usable.into()),
        provider_reserved: server.provider_reserved,
        unaccounted: unaccounted(snapshot, server, usable, used),
    })
}

/// At the refusal all slots of a kind were taken; of those that aren't seen now at least this many still are. One of
/// them may be the one that we got.
fn unaccounted(snapshot: &Snapshot, server: &Server, usable: u32, used: u32) -> Option<u32> {
    let taken = snapshot
        .refusals
        .iter()
        // If the same login got in after all, slots have freed since: then nothing is known of how many.
        .filter(|refusal| refusal.is_fresh() && refusal.user != snapshot.target.user)
        .filter_map(|refusal| match refusal.limit {
            SlotLimit::Nothing => Some(server.max_connections.saturating_sub(1)),
            // Another login got in, on a slot of the reserve.
            SlotLimit::Reserved => Some(usable),
            SlotLimit::Role | SlotLimit::Database | SlotLimit::Pooler | SlotLimit::Unknown => None,
        })
        .max()?;
    Some(taken.saturating_sub(used))
}

fn groups(snapshot: &Snapshot) -> Vec<Group> {
    let now = snapshot.taken_at;
    let mut groups: BTreeMap<[Option<&str>; 4], Group> = BTreeMap::new();
    for session in clients(snapshot) {
        let user = session.user.as_deref();
        let database = session.database.as_deref();
        let application_name = session.application_name.as_deref();
        let client_addr = session.client.addr.as_deref();
        let group = groups
            .entry([user, database, application_name, client_addr])
            .or_insert_with(|| Group {
                user: user.map(str::to_owned),
                database: database.map(str::to_owned),
                application_name: application_name.map(str::to_owned),
                client_addr: client_addr.map(str::to_owned),
                total: 0,
                active: 0,
                idle: 0,
                idle_in_transaction: 0,
                idle_in_transaction_aborted: 0,
                other: 0,
                hidden: 0,
                oldest_idle_ms: None,
                newest_backend_start: None,
                opened_last_minute: Some(0),
            });
        group.add(session, now);
    }
    let mut groups: Vec<Group> = groups.into_values().collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.total));
    groups
}

impl Group {
    fn add(&mut self, session: &Session, now: Timestamp) {
        self.total += 1;
        let count = match &session.state {
            _ if session.hidden => &mut self.hidden,
            Some(SessionState::Active) => &mut self.active,
            Some(SessionState::Idle) => &mut self.idle,
            Some(SessionState::IdleInTransaction) => &mut self.idle_in_transaction,
            Some(SessionState::IdleInTransactionAborted) => &mut self.idle_in_transaction_aborted,
            _ => &mut self.other,
        };
        *count += 1;
        if session.state == Some(SessionState::Idle) {
            self.oldest_idle_ms = self.oldest_idle_ms.max(session.state_age(now));
        }
        self.newest_backend_start = self.newest_backend_start.max(session.id.backend_start);
        let started = session
            .id
            .backend_start
            .map(|at| at.age_at(now) < Millis::from_secs(60));
        self.opened_last_minute = self
            .opened_last_minute
            .and_then(|opened| Some(opened + usize::from(started?)));
    }
}

/// Roles and databases with a limit of their own, the tightest first.
pub fn limits(snapshot: &Snapshot) -> Vec<Limit> {
    let read = snapshot.activity.get().is_some();
    let count =
        |is: &dyn Fn(&Session) -> bool| read.then(|| clients(snapshot).filter(|s| is(s)).count());
    let limit = |kind, name: &str, limit: u32, used: Option<usize>| Limit {
        kind,
        name: name.to_owned(),
        limit,
        used,
        free: used.map(|used| (limit as usize).saturating_sub(used)),
    };
    let of_roles = snapshot
        .roles
        .rows()
        .iter()
        .filter(|role| !role.superuser)
        .filter_map(|role| {
            let used = |oid: Oid| count(&|s: &Session| s.usesysid == Some(oid));
            Some(limit(
                LimitKind::Role,
                &role.name,
                role.connection_limit?,
                used(role.oid),
            ))
        });
    let of_databases = snapshot.databases.rows().iter().filter_map(|database| {
        let used = |oid: Oid| count(&|s: &Session| s.datid == Some(oid));
        Some(limit(
            LimitKind::Database,
            &database.name,
            database.connection_limit?,
            used(database.oid),
        ))
    });
    let mut limits: Vec<Limit> = of_roles.chain(of_databases).collect();
    limits.sort_by(|a, b| a.free.cmp(&b.free).then_with(|| a.name.cmp(&b.name)));
    limits
}
