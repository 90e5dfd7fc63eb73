//! Snapshots made by hand.

use stanch::bundle;
use stanch::model::{
    BackendId, BackendType, Client, Clock, Lock, LockMode, LockTag, Oid, Pid, RedactionLevel,
    Section, Server, Session, SessionState, Snapshot, Target, Timestamp,
};

pub fn at(micros: i64) -> Timestamp {
    let base = chrono::DateTime::from_timestamp(1_800_000_000, 0).expect("a time");
    Timestamp::new(base + chrono::TimeDelta::microseconds(micros))
}

/// The time at which made snapshots are taken: an hour after `at(0)`.
pub fn now() -> Timestamp {
    at(3_600_000_000)
}

/// A server with nothing on it; every section that a report may need is there and empty.
pub fn snapshot() -> Snapshot {
    let target = Target {
        name: None,
        host: "db1".into(),
        conninfo: None,
        port: 5432,
        database: "app".into(),
        user: "oncall".into(),
        server_version: Some("15.18".into()),
        role: Some(stanch::model::ServerRole::Primary),
        via_pooler: Some(false),
    };
    let mut snapshot = Snapshot::without_connection(
        now(),
        target,
        vec![],
        bundle::no_redaction(RedactionLevel::Redacted),
    );
    snapshot.clock = Clock::Server;
    snapshot.server = Section::Collected(Server {
        version_num: 150_018,
        own_pid: Pid(1),
        datid: Some(Oid(5)),
        started_at: Some(at(0)),
        max_connections: 100,
        superuser_reserved: 3,
        reserved: 0,
        provider_reserved: None,
        deadlock_timeout_ms: Some(1000),
    });
    snapshot.login = Section::Collected(stanch::model::Login {
        user: "oncall".into(),
        superuser: false,
        replication: false,
        read_all_stats: true,
        read_all_settings: true,
        signal_backend: true,
        use_reserved_connections: None,
        signal_autovacuum: None,
    });
    snapshot.activity = Section::Collected(vec![]);
    snapshot.databases = Section::Collected(vec![]);
    snapshot.roles = Section::Collected(vec![]);
    snapshot.locks = Section::Collected(vec![]);
    snapshot.blocking = Section::Collected(vec![]);
    snapshot.relations = Section::Collected(vec![]);
    snapshot.prepared = Section::Collected(vec![]);
    snapshot.settings = Section::Collected(vec![]);
    snapshot.overrides = Section::Collected(vec![]);
    snapshot.slots = Section::Collected(vec![]);
    snapshot
}

/// A client in a state, an hour old.
pub fn session(pid: i32, state: SessionState) -> Session {
    let in_transaction = state == SessionState::Active || state.is_idle_in_transaction();
    Session {
        id: BackendId {
            pid: Pid(pid),
            backend_start: Some(at(0)),
        },
        leader_pid: None,
        datid: Some(Oid(5)),
        database: Some("app".into()),
        usesysid: Some(Oid(100)),
        user: Some("app_rw".into()),
        superuser: Some(false),
        application_name: Some("web".into()),
        client: Client {
            addr: Some("10.0.0.1".into()),
            port: Some(40_000),
        },
        backend_type: Some(BackendType::Client),
        xact_start: in_transaction.then(|| at(3_590_000_000)),
        query_start: Some(at(3_595_000_000)),
        state_change: Some(at(3_595_000_000)),
        state: Some(state),
        wait: None,
        backend_xid: None,
        backend_xmin: None,
        xmin_age: None,
        xid_age: None,
        query: Some(format!("select {pid}")),
        query_truncated: false,
        hidden: false,
    }
}

/// A session of which this login may see nothing but its existence.
pub fn hidden(pid: i32) -> Session {
    Session {
        id: BackendId {
            pid: Pid(pid),
            backend_start: None,
        },
        client: Client {
            addr: None,
            port: None,
        },
        backend_type: None,
        state: None,
        xact_start: None,
        query_start: None,
        state_change: None,
        query: None,
        hidden: true,
        ..session(pid, SessionState::Idle)
    }
}

pub fn held(pid: Option<i32>, vxid: &str, tag: &LockTag, mode: LockMode) -> Lock {
    Lock {
        tag: tag.clone(),
        pid: pid.map(Pid),
        vxid: vxid.into(),
        mode,
        granted: true,
        waitstart: None,
    }
}

/// Waits since so many microseconds after `at(0)`.
pub fn awaited(pid: i32, tag: &LockTag, mode: LockMode, since: Option<i64>) -> Lock {
    Lock {
        tag: tag.clone(),
        pid: Some(Pid(pid)),
        vxid: format!("{pid}/1"),
        mode,
        granted: false,
        waitstart: since.map(at),
    }
}
