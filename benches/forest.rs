//! Building the forest from a snapshot: one long queue, a lock queue behind many readers, many small chains.
#![allow(clippy::expect_used, reason = "a bench ends where something fails")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use stanch::analysis::blocking;
use stanch::model::{
    BackendId, BackendType, Client, Lock, LockMode, LockTag, Oid, Pid, Section, Session,
    SessionState, Snapshot, Timestamp,
};

fn at(micros: i64) -> Timestamp {
    Timestamp::new(
        chrono::DateTime::from_timestamp_micros(1_800_000_000_000_000 + micros).expect("a time"),
    )
}

fn session(pid: i32) -> Session {
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
            addr: None,
            port: None,
        },
        backend_type: Some(BackendType::Client),
        state: Some(SessionState::Active),
        wait: None,
        xact_start: Some(at(0)),
        query_start: Some(at(0)),
        state_change: Some(at(0)),
        backend_xid: None,
        backend_xmin: None,
        xmin_age: None,
        xid_age: None,
        query: Some("UPDATE hot SET n = n + 1".into()),
        query_truncated: false,
        hidden: false,
    }
}

fn lock(pid: i32, relation: u32, mode: LockMode, granted: bool) -> Lock {
    Lock {
        tag: LockTag::Relation {
            database: Oid(5),
            relation: Oid(relation),
        },
        pid: Some(Pid(pid)),
        vxid: format!("{pid}/1"),
        mode,
        granted,
        waitstart: (!granted).then(|| at(i64::from(pid))),
    }
}

fn snapshot(sessions: i32, locks: Vec<Lock>) -> Snapshot {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/captures/storm.json");
    let mut snapshot = stanch::bundle::read(std::path::Path::new(file)).expect("a saved snapshot");
    snapshot.activity = Section::Collected((1..=sessions).map(session).collect());
    snapshot.locks = Section::Collected(locks);
    snapshot.blocking = Section::Collected(Vec::new());
    snapshot
}

fn forests(criterion: &mut Criterion) {
    let queue: Vec<Lock> = (1..=5000)
        .map(|pid| lock(pid, 1, LockMode::Exclusive, pid == 1))
        .collect();
    let queue = snapshot(5000, queue);
    let behind: Vec<Lock> = (1..=3000)
        .map(|pid| match pid {
            ..=2000 => lock(pid, 1, LockMode::AccessShare, true),
            2001 => lock(pid, 1, LockMode::AccessExclusive, false),
            _ => lock(pid, 1, LockMode::AccessShare, false),
        })
        .collect();
    let behind = snapshot(3000, behind);
    let chains: Vec<Lock> = (1..=1000_u32)
        .flat_map(|n| {
            let pid = i32::try_from(n).expect("small") * 3;
            [
                lock(pid - 2, n, LockMode::Exclusive, true),
                lock(pid - 1, n, LockMode::Exclusive, false),
                lock(pid, n, LockMode::Exclusive, false),
            ]
        })
        .collect();
    let chains = snapshot(3000, chains);
    for (name, snapshot) in [
        ("5000 in one queue", &queue),
        ("a DDL behind 2000 readers, 999 behind it", &behind),
        ("1000 chains of three", &chains),
    ] {
        criterion.bench_function(name, |bench| {
            bench.iter(|| blocking::report(black_box(snapshot)))
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = forests
}
criterion_main!(benches);
