//! The forest on scenes that a server can't be made to hold still in, and against a brute-force count.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use proptest::prelude::*;
use stanch::analysis::blocking::{self, Action, Blockers, RootKind};
use stanch::model::{
    BackendType, BlockedBy, Lock, LockMode, LockTag, Oid, Pid, PreparedXact, Section, Session,
    SessionState, Snapshot, Xid,
};

use crate::build::{at, awaited, held, hidden, session, snapshot};

const MODES: [LockMode; 8] = LockMode::ALL;

fn orders() -> LockTag {
    LockTag::Relation {
        database: Oid(5),
        relation: Oid(16_400),
    }
}

fn forest(snapshot: &Snapshot) -> Blockers {
    blocking::report(snapshot).data
}

/// DDLs first, then readers, all waiting for `orders` in the order of their pids.
fn queue_behind_ddls(pids: Range<i32>, ddls: i32) -> (Vec<Session>, Vec<Lock>) {
    let first_reader = pids.start + ddls;
    pids.map(|pid| {
        let mode = if pid < first_reader {
            LockMode::AccessExclusive
        } else {
            LockMode::AccessShare
        };
        (
            session(pid, SessionState::Active),
            awaited(pid, &orders(), mode, Some(pid.into())),
        )
    })
    .unzip()
}

fn pairs(forest: &Blockers) -> BTreeSet<(i32, i32)> {
    forest
        .edges
        .iter()
        .map(|e| (e.waiter.0, e.blocker.map_or(0, |pid| pid.0)))
        .collect()
}

#[test]
fn workers_stand_for_their_leader() {
    let mut s = snapshot();
    let mut worker = session(11, SessionState::Active);
    worker.leader_pid = Some(Pid(10));
    worker.backend_type = Some(BackendType::ParallelWorker);
    s.activity = Section::Collected(vec![
        session(10, SessionState::Active),
        worker,
        session(20, SessionState::Active),
    ]);
    s.locks = Section::Collected(vec![
        held(Some(10), "10/1", &orders(), LockMode::AccessShare),
        held(Some(11), "11/1", &orders(), LockMode::AccessShare),
        awaited(20, &orders(), LockMode::AccessExclusive, Some(0)),
    ]);
    // The server names the leader once for each process of the query.
    s.blocking = Section::Collected(vec![BlockedBy {
        pid: Pid(20),
        blockers: vec![Pid(10), Pid(10)],
    }]);
    let forest = forest(&s);
    assert_eq!(pairs(&forest), BTreeSet::from([(20, 10)]));
    assert_eq!(forest.edges_total, 1);
    assert_eq!(forest.roots.len(), 1);
    assert_eq!(forest.roots[0].pid, Some(Pid(10)));
    assert_eq!(forest.roots[0].blocked_direct, 1);
}

#[test]
fn a_session_that_names_itself_is_no_cycle() {
    let mut s = snapshot();
    s.activity = Section::Collected(vec![
        session(10, SessionState::Active),
        session(20, SessionState::Active),
    ]);
    let extend = LockTag::Extend {
        database: Oid(5),
        relation: Oid(16_400),
    };
    s.locks = Section::Collected(vec![
        held(Some(20), "20/1", &extend, LockMode::Exclusive),
        awaited(10, &extend, LockMode::Exclusive, Some(0)),
    ]);
    s.blocking = Section::Collected(vec![BlockedBy {
        pid: Pid(10),
        blockers: vec![Pid(10), Pid(20)],
    }]);
    let forest = forest(&s);
    assert!(forest.cycles.is_empty());
    assert_eq!(pairs(&forest), BTreeSet::from([(10, 20)]));
}

fn prepared(xid: u32, gid: &str) -> PreparedXact {
    PreparedXact {
        xid: Xid(xid),
        xid_age: 1,
        gid: gid.into(),
        prepared: at(0),
        owner: Some("app_rw".into()),
        datid: Oid(5),
        database: Some("app".into()),
    }
}

/// Two prepared transactions, one with subtransactions, in both forms of their virtual transaction.
#[test]
fn prepared_transactions_are_told_apart() {
    let mut s = snapshot();
    s.activity = Section::Collected(vec![
        session(10, SessionState::Active),
        session(20, SessionState::Active),
    ]);
    s.prepared = Section::Collected(vec![prepared(700, "it's"), prepared(800, "two")]);
    let customers = LockTag::Relation {
        database: Oid(5),
        relation: Oid(16_500),
    };
    s.locks = Section::Collected(vec![
        held(
            None,
            "4/17",
            &LockTag::Transaction { xid: 701 },
            LockMode::Exclusive,
        ),
        held(
            None,
            "4/17",
            &LockTag::Transaction { xid: 700 },
            LockMode::Exclusive,
        ),
        held(
            None,
            "4/17",
            &LockTag::Transaction { xid: 702 },
            LockMode::Exclusive,
        ),
        held(None, "4/17", &orders(), LockMode::RowExclusive),
        held(None, "-1/800", &customers, LockMode::AccessExclusive),
        awaited(10, &orders(), LockMode::AccessExclusive, Some(0)),
        awaited(20, &customers, LockMode::AccessShare, Some(0)),
    ]);
    s.blocking = Section::Collected(vec![
        BlockedBy {
            pid: Pid(10),
            blockers: vec![Pid(0)],
        },
        BlockedBy {
            pid: Pid(20),
            blockers: vec![Pid(0)],
        },
    ]);
    let forest = forest(&s);
    let gids: BTreeMap<i32, Option<&str>> = forest
        .edges
        .iter()
        .map(|e| (e.waiter.0, e.gid.as_deref()))
        .collect();
    assert_eq!(
        gids,
        BTreeMap::from([(10, Some("it's")), (20, Some("two"))])
    );
    assert!(
        forest
            .roots
            .iter()
            .all(|r| r.kind == RootKind::Prepared && r.pid.is_none())
    );
    let command = forest
        .roots
        .iter()
        .find(|r| r.gid.as_deref() == Some("it's"))
        .and_then(|r| r.remedy.command.as_deref());
    assert_eq!(
        command,
        Some("psql -h db1 -p 5432 -U oncall -d app -c \"ROLLBACK PREPARED 'it''s'\"")
    );
}

#[test]
fn what_is_at_the_root_decides_the_remedy() {
    let remedy = |change: &dyn Fn(&mut stanch::model::Session)| {
        let mut s = snapshot();
        let mut root = session(10, SessionState::Active);
        root.xact_start = Some(at(0));
        change(&mut root);
        s.activity = Section::Collected(vec![root, session(20, SessionState::Active)]);
        s.locks = Section::Collected(vec![
            held(Some(10), "10/1", &orders(), LockMode::RowExclusive),
            awaited(20, &orders(), LockMode::Share, Some(0)),
        ]);
        s.blocking = Section::Collected(vec![BlockedBy {
            pid: Pid(20),
            blockers: vec![Pid(10)],
        }]);
        forest(&s).roots.remove(0).remedy
    };
    let active = remedy(&|_| {});
    assert_eq!((active.action, active.pid), (Action::Cancel, Some(Pid(10))));
    let command = active.command.expect("a command");
    assert!(
        command.contains("pg_cancel_backend(pid)") && command.contains("state = 'active'"),
        "{command}"
    );
    assert!(
        command.contains("backend_start = '2027-01-15T08:00:00.000000Z'"),
        "{command}"
    );

    let idle = remedy(&|s| s.state = Some(SessionState::IdleInTransaction));
    assert_eq!(idle.action, Action::Terminate);
    let command = idle.command.expect("a command");
    assert!(
        command.contains("pg_terminate_backend(pid)") && command.contains("xact_start ="),
        "{command}"
    );

    let aborted = remedy(&|s| s.state = Some(SessionState::IdleInTransactionAborted));
    assert_eq!(aborted.action, Action::Terminate);
    let replicating = remedy(&|s| {
        s.wait = Some(stanch::model::WaitEvent {
            class: "IPC".into(),
            event: "SyncRep".into(),
        });
    });
    assert_eq!(
        replicating.action,
        Action::Wait,
        "ending the wait commits unreplicated"
    );
    let vacuum = remedy(&|s| s.backend_type = Some(BackendType::AutovacuumWorker));
    assert_eq!(vacuum.action, Action::Cancel);
    let wraparound = remedy(&|s| {
        s.backend_type = Some(BackendType::AutovacuumWorker);
        s.query = Some("autovacuum: VACUUM public.orders (to prevent wraparound)".into());
    });
    assert_eq!(wraparound.action, Action::Wait);
    assert_eq!(
        remedy(&|s| s.backend_type = Some(BackendType::WalSender)).action,
        Action::Wait
    );
    let unseen = remedy(&|s| *s = hidden(10));
    assert_eq!(unseen.action, Action::Grant);
    let dump = remedy(&|s| s.application_name = Some("pg_dump".into()));
    assert!(dump.lost.expect("lost").contains("dump"));
    let index = remedy(&|s| s.query = Some("CREATE INDEX CONCURRENTLY i ON orders (id)".into()));
    assert!(index.lost.expect("lost").contains("invalid index"));
}

/// A session that is blocked under two roots isn't freed by one.
#[test]
fn what_two_roots_block_is_freed_by_neither() {
    let mut s = snapshot();
    s.activity = Section::Collected(
        [10, 11, 20, 21]
            .map(|pid| session(pid, SessionState::Active))
            .into(),
    );
    let other = LockTag::Relation {
        database: Oid(5),
        relation: Oid(16_500),
    };
    s.locks = Section::Collected(vec![
        held(Some(10), "10/1", &orders(), LockMode::AccessShare),
        held(Some(11), "11/1", &orders(), LockMode::AccessShare),
        awaited(20, &orders(), LockMode::AccessExclusive, Some(0)),
        held(Some(11), "11/1", &other, LockMode::Exclusive),
        awaited(21, &other, LockMode::Exclusive, Some(0)),
    ]);
    let forest = forest(&s);
    let counts: Vec<(i32, usize, usize)> = forest
        .roots
        .iter()
        .map(|r| {
            (
                r.pid.map_or(0, |pid| pid.0),
                r.blocked_total,
                r.freed.unwrap_or(usize::MAX),
            )
        })
        .collect();
    assert_eq!(counts, [(11, 2, 1), (10, 1, 0)]);
}

/// Without the time of waiting (before PostgreSQL 14) the order in a queue isn't known, and isn't guessed.
#[test]
fn an_unknown_order_is_not_guessed() {
    let mut s = snapshot();
    if let Some(server) = s.server.get_mut() {
        server.version_num = 130_023;
    }
    s.activity = Section::Collected(
        [10, 20, 21]
            .map(|pid| session(pid, SessionState::Active))
            .into(),
    );
    s.locks = Section::Collected(vec![
        held(Some(10), "10/1", &orders(), LockMode::Exclusive),
        awaited(20, &orders(), LockMode::Exclusive, None),
        awaited(21, &orders(), LockMode::Exclusive, None),
    ]);
    assert_eq!(pairs(&forest(&s)), BTreeSet::from([(20, 10), (21, 10)]));
}

#[test]
fn long_queues_stay_on_a_screen_and_in_memory() {
    let mut s = snapshot();
    let mut sessions = vec![session(1_000_000, SessionState::IdleInTransaction)];
    let mut locks = vec![held(Some(1_000_000), "1/1", &orders(), LockMode::Exclusive)];
    for pid in 1..=5000 {
        sessions.push(session(pid, SessionState::Active));
        locks.push(awaited(
            pid,
            &orders(),
            LockMode::Exclusive,
            Some(pid.into()),
        ));
    }
    s.activity = Section::Collected(sessions);
    s.locks = Section::Collected(locks);
    let forest = forest(&s);
    assert_eq!(forest.edges_total, 5000 * 5001 / 2);
    assert!(forest.edges_truncated);
    assert_eq!(
        forest.edges.len(),
        9999,
        "the holder and the one ahead, but for the first"
    );
    assert_eq!(
        (forest.roots.len(), forest.roots[0].blocked_total),
        (1, 5000)
    );
    assert!(forest.trees[0].lines.len() < 20);
}

#[test]
fn thousands_of_readers_before_one_ddl() {
    let mut s = snapshot();
    let mut sessions = Vec::new();
    let mut locks = Vec::new();
    for pid in 1..=3000 {
        sessions.push(session(pid, SessionState::IdleInTransaction));
        locks.push(held(Some(pid), "1/1", &orders(), LockMode::AccessShare));
    }
    let (waiting, queue) = queue_behind_ddls(3001..3301, 1);
    s.activity = Section::Collected([sessions, waiting].concat());
    s.locks = Section::Collected([locks, queue].concat());
    let forest = forest(&s);
    assert_eq!(forest.roots.len(), 3000);
    assert_eq!(forest.trees.len(), 10);
    let root = &forest.roots[0];
    assert_eq!(
        (root.blocked_direct, root.blocked_total, root.freed),
        (1, 300, Some(0))
    );
    assert_eq!(
        (root.remedy.action, root.remedy.pid),
        (Action::Cancel, Some(Pid(3001)))
    );
}

/// A made-up state of locks: who holds and who awaits which of a few things.
#[derive(Clone, Debug)]
struct Scene {
    holds: Vec<(i32, usize, usize)>,
    waits: Vec<(i32, usize, usize)>,
    answered: Vec<bool>,
}

fn scenes() -> impl Strategy<Value = Scene> {
    let holds = prop::collection::vec((1..9_i32, 0..4_usize, 0..8_usize), 0..10);
    let waits = prop::collection::btree_map(1..9_i32, (0..4_usize, 0..8_usize), 0..8)
        .prop_map(|map| {
            map.into_iter()
                .map(|(pid, (tag, mode))| (pid, tag, mode))
                .collect::<Vec<_>>()
        })
        .prop_shuffle();
    let answered = prop::collection::vec(any::<bool>(), 8);
    (holds, waits, answered).prop_map(|(holds, waits, answered)| Scene {
        holds,
        waits,
        answered,
    })
}

impl Scene {
    /// By definition: conflicting holders, and conflicting waiters ahead.
    fn blockers(&self, wait: usize) -> BTreeSet<i32> {
        let (pid, tag, mode) = self.waits[wait];
        let holders = self.holds.iter();
        let ahead = self.waits[..wait].iter();
        holders
            .chain(ahead)
            .filter(|(other, t, m)| {
                *other != pid && *t == tag && MODES[mode].conflicts_with(&MODES[*m])
            })
            .map(|(other, ..)| *other)
            .collect()
    }

    fn edges(&self) -> BTreeSet<(i32, i32)> {
        (0..self.waits.len())
            .flat_map(|w| self.blockers(w).into_iter().map(move |b| (w, b)))
            .map(|(w, b)| (self.waits[w].0, b))
            .collect()
    }

    fn snapshot(&self) -> Snapshot {
        let mut s = snapshot();
        s.activity = Section::Collected(
            (1..9)
                .map(|pid| session(pid, SessionState::Active))
                .collect(),
        );
        let tags: Vec<LockTag> = (0..4)
            .map(|n| LockTag::Relation {
                database: Oid(5),
                relation: Oid(n),
            })
            .collect();
        let mut locks: Vec<_> = self
            .holds
            .iter()
            .map(|(pid, tag, mode)| held(Some(*pid), "x", &tags[*tag], MODES[*mode].clone()))
            .collect();
        for (n, (pid, tag, mode)) in self.waits.iter().enumerate() {
            locks.push(awaited(
                *pid,
                &tags[*tag],
                MODES[*mode].clone(),
                Some(n as i64),
            ));
        }
        locks.reverse();
        s.locks = Section::Collected(locks);
        let answers = (0..self.waits.len()).filter(|w| self.answered[*w]);
        s.blocking = Section::Collected(
            answers
                .map(|w| BlockedBy {
                    pid: Pid(self.waits[w].0),
                    blockers: self.blockers(w).into_iter().map(Pid).collect(),
                })
                .collect(),
        );
        s
    }
}

/// Everyone from whom `from` can be reached against the direction of waiting.
fn behind(edges: &BTreeSet<(i32, i32)>, from: &BTreeSet<i32>) -> BTreeSet<i32> {
    let mut all = BTreeSet::new();
    loop {
        let more: BTreeSet<i32> = edges
            .iter()
            .filter(|(_, b)| from.contains(b) || all.contains(b))
            .map(|(w, _)| *w)
            .filter(|w| !all.contains(w))
            .collect();
        if more.is_empty() {
            return all;
        }
        all.extend(more);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn equals_the_brute_force(scene in scenes()) {
        let edges = scene.edges();
        let forest = forest(&scene.snapshot());
        prop_assert_eq!(pairs(&forest), edges.clone());
        prop_assert_eq!(forest.edges_total, edges.len());

        let blocked: BTreeSet<i32> = edges.iter().map(|(w, _)| *w).collect();
        prop_assert_eq!(forest.blocked, blocked.len());
        let free: BTreeSet<i32> = edges.iter().map(|(_, b)| *b).filter(|b| !blocked.contains(b)).collect();
        let mut cycles: Vec<BTreeSet<i32>> = Vec::new();
        for pid in &blocked {
            let mine = behind(&edges, &BTreeSet::from([*pid]));
            if mine.contains(pid) && !cycles.iter().any(|c| c.contains(pid)) {
                let back: BTreeSet<i32> =
                    mine.iter().copied().filter(|o| behind(&edges, &BTreeSet::from([*o])).contains(pid)).collect();
                cycles.push(back);
            }
        }
        let found: BTreeSet<BTreeSet<i32>> =
            forest.cycles.iter().map(|c| c.iter().map(|pid| pid.0).collect()).collect();
        prop_assert_eq!(found, cycles.iter().cloned().collect::<BTreeSet<_>>());

        // Counts by root: those behind it, and those that are behind no other root.
        let mut roots: Vec<(BTreeSet<i32>, BTreeSet<i32>)> =
            free.iter().map(|pid| (BTreeSet::from([*pid]), behind(&edges, &BTreeSet::from([*pid])))).collect();
        roots.extend(cycles.iter().map(|c| (c.clone(), behind(&edges, c))));
        let want: BTreeSet<(Option<i32>, usize, usize, usize)> = roots
            .iter()
            .map(|(members, behind)| {
                let freed = behind.iter().filter(|p| roots.iter().filter(|(_, b)| b.contains(p)).count() == 1).count();
                let direct: BTreeSet<i32> =
                    edges.iter().filter(|(_, b)| members.contains(b)).map(|(w, _)| *w).collect();
                let pid = (members.len() == 1).then(|| members.iter().copied().next()).flatten();
                (pid, direct.union(members).filter(|p| direct.contains(p) || members.len() > 1).count(), behind.len(), freed)
            })
            .collect();
        let got: BTreeSet<(Option<i32>, usize, usize, usize)> = forest
            .roots
            .iter()
            .map(|r| (r.pid.map(|pid| pid.0), r.blocked_direct, r.blocked_total, r.freed.unwrap_or(usize::MAX)))
            .collect();
        prop_assert_eq!(got, want);
        prop_assert_eq!(forest.roots.len(), roots.len());
    }
}

/// Cancelling the DDL frees only those who wait for nobody else: where most stay, the root is acted on.
#[test]
fn a_ddl_is_cancelled_only_where_that_frees_most() {
    let mut s = snapshot();
    let mut sessions = vec![
        session(10, SessionState::IdleInTransaction),
        session(11, SessionState::Active),
    ];
    let row = LockTag::Transaction { xid: 700 };
    let mut locks = vec![
        held(Some(10), "10/1", &orders(), LockMode::RowExclusive),
        held(Some(10), "10/1", &row, LockMode::Exclusive),
        awaited(11, &orders(), LockMode::AccessExclusive, Some(0)),
    ];
    for pid in 20..22 {
        sessions.push(session(pid, SessionState::Active));
        locks.push(awaited(
            pid,
            &orders(),
            LockMode::AccessShare,
            Some(pid.into()),
        ));
    }
    for pid in 30..36 {
        sessions.push(session(pid, SessionState::Active));
        locks.push(awaited(pid, &row, LockMode::Share, Some(pid.into())));
    }
    s.activity = Section::Collected(sessions);
    s.locks = Section::Collected(locks);
    let root = forest(&s).roots.remove(0);
    assert_eq!(root.blocked_total, 9);
    assert_eq!(
        (root.remedy.action, root.remedy.pid),
        (Action::Terminate, Some(Pid(10)))
    );
}

/// Before PostgreSQL 14 nobody knows since when a session waits. Of a queue too long to ask for everyone the order is
/// that of the statements, and nobody in it counts as free.
#[test]
fn a_long_queue_of_an_old_server() {
    let mut s = snapshot();
    if let Some(server) = s.server.get_mut() {
        server.version_num = 130_023;
    }
    let (mut sessions, mut locks) = queue_behind_ddls(2..243, 1);
    for waiter in &mut sessions {
        waiter.query_start = Some(at(i64::from(waiter.id.pid.0) * 1000));
    }
    for lock in &mut locks {
        lock.waitstart = None;
    }
    sessions.push(session(1, SessionState::IdleInTransaction));
    locks.push(held(Some(1), "1/1", &orders(), LockMode::AccessShare));
    s.activity = Section::Collected(sessions);
    s.locks = Section::Collected(locks);
    let forest = forest(&s);
    assert_eq!(forest.blocked, 241);
    assert_eq!(
        (forest.roots.len(), forest.roots[0].blocked_total),
        (1, 241)
    );
    assert_eq!(
        forest.roots[0].remedy.pid,
        Some(Pid(2)),
        "the DDL: {:?}",
        forest.roots[0].remedy
    );
    assert_eq!(
        forest.longest_wait_ms, None,
        "an unknown wait is not a number"
    );
}

/// Two deadlocks are two roots, each with its own circle; whoever is cut from the screen is counted.
#[test]
fn each_circle_by_itself() {
    let mut s = snapshot();
    let mut sessions = Vec::new();
    let mut locks = Vec::new();
    for (first, size) in [(10, 2), (20, 6)] {
        for n in 0..size {
            let tag = |k: i32| LockTag::Transaction {
                xid: u32::try_from(first + k % size).expect("small"),
            };
            sessions.push(session(first + n, SessionState::Active));
            locks.push(held(Some(first + n), "x", &tag(n), LockMode::Exclusive));
            locks.push(awaited(
                first + n,
                &tag(n + 1),
                LockMode::Share,
                Some(i64::from(n)),
            ));
        }
    }
    for n in 0..5 {
        sessions.push(session(40 + n, SessionState::Active));
        locks.push(awaited(
            40 + n,
            &LockTag::Transaction { xid: 25 },
            LockMode::Share,
            Some(100),
        ));
    }
    s.activity = Section::Collected(sessions);
    s.locks = Section::Collected(locks);
    let forest = forest(&s);
    let members: Vec<usize> = forest.roots.iter().map(|r| r.members.len()).collect();
    assert_eq!(members, [6, 2]);
    assert_eq!(
        forest
            .roots
            .iter()
            .map(|r| r.blocked_total)
            .collect::<Vec<_>>(),
        [11, 2]
    );
    let counted: usize = forest.trees[0]
        .lines
        .iter()
        .map(|line| match line {
            blocking::TreeLine::Waiter(_) => 1,
            blocking::TreeLine::More { count, .. } => *count,
        })
        .sum();
    assert_eq!(counted, 11);
}

/// A chain of sessions, each waiting for the one before: as deep as it is, the screen stays a screen.
#[test]
fn a_deep_chain_stays_on_a_screen() {
    let mut s = snapshot();
    let mut sessions = vec![session(1, SessionState::IdleInTransaction)];
    let mut locks = vec![held(
        Some(1),
        "x",
        &LockTag::Transaction { xid: 1 },
        LockMode::Exclusive,
    )];
    for pid in 2..=60 {
        let tag = |pid: i32| LockTag::Transaction {
            xid: u32::try_from(pid).expect("small"),
        };
        sessions.push(session(pid, SessionState::Active));
        locks.push(held(Some(pid), "x", &tag(pid), LockMode::Exclusive));
        locks.push(awaited(
            pid,
            &tag(pid - 1),
            LockMode::Share,
            Some(i64::from(pid)),
        ));
    }
    s.activity = Section::Collected(sessions);
    s.locks = Section::Collected(locks);
    let forest = forest(&s);
    assert_eq!(forest.roots[0].blocked_total, 59);
    assert!(
        forest.trees[0].lines.len() < 20,
        "{}",
        forest.trees[0].lines.len()
    );
}

/// Two DDLs, one behind the other, before the readers: both must go, and both are named.
#[test]
fn two_ddls_in_one_queue() {
    let mut s = snapshot();
    let sessions = vec![
        session(1, SessionState::IdleInTransaction),
        session(2, SessionState::IdleInTransaction),
    ];
    let locks = vec![
        held(Some(1), "1/1", &orders(), LockMode::AccessShare),
        held(Some(2), "2/1", &orders(), LockMode::AccessShare),
    ];
    let (waiting, queue) = queue_behind_ddls(10..16, 2);
    s.activity = Section::Collected([sessions, waiting].concat());
    s.locks = Section::Collected([locks, queue].concat());
    let forest = forest(&s);
    let remedy = &forest.roots[0].remedy;
    assert_eq!(
        (remedy.action, remedy.behind),
        (Action::Cancel, Some(4)),
        "{remedy:?}"
    );
    let command = remedy.command.as_deref().expect("a command");
    assert_eq!(command.matches(" -c ").count(), 2, "{command}");
    assert!(
        command.contains("pid = 10 ") && command.contains("pid = 11 "),
        "{command}"
    );
    // Whoever stands ahead in the queue is waited for as much as who holds it.
    let pids = [1, 10, 11, 12, 15, 99].map(Pid);
    let behind: Vec<(i32, usize)> = blocking::behind(&s, &pids)
        .into_iter()
        .map(|(pid, count)| (pid.0, count))
        .collect();
    assert_eq!(behind, [(1, 6), (10, 5), (11, 4), (12, 0), (15, 0)]);
}

/// A root whose end frees nobody says so.
#[test]
fn one_root_of_two_frees_nobody() {
    let mut s = snapshot();
    s.activity = Section::Collected(vec![
        session(1, SessionState::IdleInTransaction),
        session(2, SessionState::IdleInTransaction),
        session(10, SessionState::Active),
    ]);
    s.locks = Section::Collected(vec![
        held(Some(1), "1/1", &orders(), LockMode::RowExclusive),
        held(Some(2), "2/1", &orders(), LockMode::RowExclusive),
        awaited(10, &orders(), LockMode::Share, Some(0)),
    ]);
    let forest = forest(&s);
    assert_eq!(forest.roots.len(), 2);
    for root in &forest.roots {
        assert_eq!((root.blocked_total, root.freed), (1, Some(0)));
        assert!(
            root.remedy.why.contains("by itself that frees nobody"),
            "{:?}",
            root.remedy
        );
    }
}

/// Before PostgreSQL 14 a wait is no older than its statement: a short one is momentary there as well.
#[test]
fn momentary_on_an_old_server() {
    let of = |micros: i64| {
        let mut s = snapshot();
        if let Some(server) = s.server.get_mut() {
            server.version_num = 120_022;
        }
        let mut waiter = session(20, SessionState::Active);
        waiter.query_start = Some(at(3_600_000_000 - micros));
        s.activity = Section::Collected(vec![session(10, SessionState::IdleInTransaction), waiter]);
        s.locks = Section::Collected(vec![
            held(Some(10), "10/1", &orders(), LockMode::RowExclusive),
            awaited(20, &orders(), LockMode::Share, None),
        ]);
        let forest = forest(&s);
        (forest.roots[0].remedy.action, forest.longest_wait_ms)
    };
    assert_eq!(of(20_000), (Action::Wait, None));
    assert_eq!(of(5_000_000), (Action::Terminate, None));
}
