//! Slot accounting: what is usable, who takes a slot, what isn't seen, and the limits of roles and databases.

use stanch::analysis::connections::{self, Capacity, Connections, Limit, LimitKind, UsedIs};
use stanch::model::{
    BackendType, Database, Oid, Percent, Role, Section, Server, Session, SessionState, SlotLimit,
    SlotRefusal, Snapshot,
};

use crate::build::{hidden, session, snapshot};

fn report(snapshot: &Snapshot) -> Connections {
    connections::report(snapshot).data
}

fn capacity(snapshot: &Snapshot) -> Capacity {
    report(snapshot).capacity.expect("limits and sessions")
}

fn with(sessions: Vec<Session>, limits: impl FnOnce(&mut Server)) -> Snapshot {
    let mut s = snapshot();
    s.activity = Section::Collected(sessions);
    limits(s.server.get_mut().expect("a server"));
    s
}

fn idle(pids: std::ops::Range<i32>) -> Vec<Session> {
    pids.map(|pid| session(pid, SessionState::Idle)).collect()
}

#[test]
fn every_reserve_is_deducted() {
    for (max, superuser, reserved, provider, taken, usable, free, pct) in [
        (100, 3, 0, None, 10, 97, 87, Some(10.3)),
        (100, 3, 5, None, 10, 92, 82, Some(10.9)),
        (100, 3, 5, Some(2), 10, 90, 80, Some(11.1)),
        (100, 0, 0, Some(15), 85, 85, 0, Some(100.0)),
        // Superusers sit in the reserve: more than usable, and still nothing free.
        (10, 3, 2, None, 7, 5, 0, Some(140.0)),
        // Reserves that leave nothing: no share of nothing.
        (5, 3, 2, None, 1, 0, 0, None),
        (5, 3, 4, None, 0, 0, 0, None),
    ] {
        let s = with(idle(10..10 + taken), |server| {
            server.max_connections = max;
            server.superuser_reserved = superuser;
            server.reserved = reserved;
            server.provider_reserved = provider;
        });
        let got = capacity(&s);
        assert_eq!(
            (got.usable, got.free, got.used_pct),
            (usable, free, pct.map(Percent)),
            "{got:?}"
        );
        assert_eq!((got.used, got.used_is), (taken as u32, UsedIs::Exact));
        assert_eq!(got.unaccounted, None, "nobody was refused");
    }
}

/// Only client backends take a slot of `max_connections` (walsenders have none of it since PostgreSQL 12).
#[test]
fn only_clients_take_a_slot() {
    let mut sessions = idle(10..12);
    for (pid, kind) in [
        (20, BackendType::WalSender),
        (21, BackendType::AutovacuumWorker),
        (22, BackendType::ParallelWorker),
        (23, BackendType::Other("checkpointer".into())),
        (24, BackendType::Other("an extension's worker".into())),
    ] {
        sessions.push(Session {
            backend_type: Some(kind),
            ..session(pid, SessionState::Active)
        });
    }
    let got = report(&with(sessions.clone(), |_| ()));
    let capacity = got.capacity.expect("a capacity");
    assert_eq!((capacity.used, capacity.used_is), (2, UsedIs::Exact));
    assert_eq!(got.groups.iter().map(|g| g.total).sum::<usize>(), 2);

    // A hidden row may be a client; one without a user or a database is none.
    let mut own = hidden(31);
    own.usesysid = None;
    sessions.extend([hidden(30), own]);
    let got = capacity_of(sessions);
    assert_eq!((got.used, got.used_is), (3, UsedIs::AtMost));
}

fn capacity_of(sessions: Vec<Session>) -> Capacity {
    capacity(&with(sessions, |_| ()))
}

/// What a refusal tells of slots that nobody shows: 100 slots, 3 for superusers, 90 seen.
#[test]
fn unaccounted_is_known_only_after_a_refusal_of_another_login() {
    for (limit, user, ms_before, unaccounted) in [
        (SlotLimit::Reserved, "app", 100, Some(7)),
        (SlotLimit::Nothing, "app", 100, Some(9)),
        (SlotLimit::Role, "app", 100, None),
        (SlotLimit::Database, "app", 100, None),
        (SlotLimit::Pooler, "app", 100, None),
        (SlotLimit::Unknown, "app", 100, None),
        // Too long ago, and the same login which got in after all: slots have freed since.
        (SlotLimit::Reserved, "app", 10_000, None),
        (SlotLimit::Reserved, "oncall", 100, None),
    ] {
        let mut s = with(idle(10..100), |_| ());
        s.refusals = vec![SlotRefusal {
            limit,
            user: user.into(),
            database: "app".into(),
            ms_before,
        }];
        assert_eq!(capacity(&s).unaccounted, unaccounted, "{:?}", s.refusals);
    }
}

/// The tightest first; a superuser isn't held to its role's limit.
#[test]
fn limits_of_roles_and_databases() {
    let mut sessions = idle(10..14);
    sessions[0].usesysid = Some(Oid(101));
    sessions[1].datid = Some(Oid(6));
    let mut s = with(sessions, |_| ());
    let role = |oid, name: &str, superuser, connection_limit| Role {
        oid: Oid(oid),
        name: name.into(),
        superuser,
        connection_limit,
    };
    s.roles = Section::Collected(vec![
        role(100, "app_rw", false, Some(4)),
        role(101, "root", true, Some(1)),
        role(102, "free", false, None),
        role(103, "locked", false, Some(0)),
    ]);
    s.databases = Section::Collected(vec![Database {
        oid: Oid(5),
        name: "app".into(),
        encoding: "UTF8".into(),
        connection_limit: Some(2),
        backends: 3,
        deadlocks: None,
        stats_reset: None,
    }]);
    let of = |kind, name: &str, limit, used, free| Limit {
        kind,
        name: name.into(),
        limit,
        used,
        free,
    };
    assert_eq!(
        report(&s).limits,
        [
            of(LimitKind::Database, "app", 2, Some(3), Some(0)),
            of(LimitKind::Role, "locked", 0, Some(0), Some(0)),
            of(LimitKind::Role, "app_rw", 4, Some(3), Some(1)),
        ]
    );
}
