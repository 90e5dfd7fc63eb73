//! Building the forest from a snapshot: one long queue, a lock queue behind many readers, many small chains.
#![allow(clippy::expect_used, reason = "a bench ends where something fails")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use stanch::analysis::blocking;
use stanch::model::{Lock, LockMode, LockTag, Oid, Section, SessionState, Snapshot};

#[allow(dead_code, reason = "shared with the tests, which use all of it")]
#[path = "../tests/it/build.rs"]
mod build;

fn lock(pid: i32, relation: u32, mode: LockMode, granted: bool) -> Lock {
    let tag = LockTag::Relation {
        database: Oid(5),
        relation: Oid(relation),
    };
    if granted {
        build::held(Some(pid), &format!("{pid}/1"), &tag, mode)
    } else {
        build::awaited(pid, &tag, mode, Some(pid.into()))
    }
}

fn snapshot(sessions: i32, locks: Vec<Lock>) -> Snapshot {
    let mut snapshot = build::snapshot();
    let active = |pid| build::session(pid, SessionState::Active);
    snapshot.activity = Section::Collected((1..=sessions).map(active).collect());
    snapshot.locks = Section::Collected(locks);
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
