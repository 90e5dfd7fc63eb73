//! The guard as a table: who may be signalled, who never, and how each is named.

use stanch::action::guard::guard;
use stanch::action::{Candidate, Choice, Consent, Facts, Guarded, Policy};
use stanch::model::{BackendType, Session, SessionState, Snapshot, Verb, WaitEvent};
use stanch::operate::{Selection, choose};

use crate::build;

fn facts() -> Facts {
    Facts {
        own_pid: 1,
        database: "app".into(),
    }
}

/// An application's session that runs a statement in a transaction.
fn victim() -> Session {
    let mut session = build::session(7, SessionState::Active);
    session.xact_start = Some(build::at(10));
    session.query_start = Some(build::at(20));
    session.state_change = Some(build::at(20));
    session
}

fn judged(session: Session, verb: Verb, choice: Choice, policy: &Policy) -> Guarded {
    guard(vec![Candidate { session, choice }], verb, &facts(), policy)
}

fn policy() -> Policy {
    Policy {
        max: 10,
        ..Policy::default()
    }
}

/// Why it is refused, or nothing.
fn why(change: impl Fn(&mut Session), verb: Verb, policy: &Policy) -> Option<String> {
    let mut session = victim();
    change(&mut session);
    let guarded = judged(session, verb, Choice::Pid, policy);
    let refused = guarded.refused.first();
    refused.map(|(_, outcome)| outcome.reason().unwrap_or_default().to_owned())
}

#[test]
fn who_is_never_signalled() {
    type Change = fn(&mut Session);
    let cases: [(Change, &str); 14] = [
        (|s| s.id.pid.0 = 1, "own session"),
        (|s| s.id.backend_start = None, "pg_read_all_stats"),
        (|s| s.hidden = true, "pg_read_all_stats"),
        (|s| s.backend_type = None, "can't be told"),
        (
            |s| s.backend_type = Some(BackendType::WalSender),
            "walsender",
        ),
        (
            |s| s.backend_type = Some(BackendType::AutovacuumWorker),
            "autovacuum worker",
        ),
        (
            |s| s.backend_type = Some(BackendType::AutovacuumLauncher),
            "autovacuum launcher",
        ),
        (
            |s| s.backend_type = Some(BackendType::ParallelWorker),
            "parallel worker",
        ),
        (|s| s.backend_type = Some(BackendType::Startup), "startup"),
        (
            |s| s.backend_type = Some(BackendType::Other("io worker".into())),
            "io worker",
        ),
        (|s| s.superuser = Some(true), "--allow-superuser"),
        (|s| s.superuser = None, "--allow-superuser"),
        (|s| s.database = Some("other".into()), "--all-databases"),
        (|s| s.database = None, "--all-databases"),
    ];
    for (change, want) in cases {
        for verb in [Verb::Cancel, Verb::Terminate] {
            let why = why(change, verb, &policy()).unwrap_or_else(|| panic!("{want}: allowed"));
            assert!(why.contains(want), "{want}: {why}");
        }
    }
    // What may be allowed by name; the others never, whatever is allowed.
    let all = Policy {
        allow_superuser: true,
        allow_syncrep: true,
        all_databases: true,
        ..policy()
    };
    for (n, (change, want)) in cases.into_iter().enumerate() {
        let still = why(change, Verb::Terminate, &all);
        assert_eq!(still.is_some(), n < 10, "{want}: {still:?}");
    }
}

#[test]
fn a_wait_for_a_standby_is_left_alone() {
    let waits = |s: &mut Session| {
        s.wait = Some(WaitEvent {
            class: "IPC".into(),
            event: "SyncRep".into(),
        });
    };
    for verb in [Verb::Cancel, Verb::Terminate] {
        assert!(
            why(waits, verb, &policy())
                .expect("refused")
                .contains("--allow-syncrep")
        );
    }
    let allowed = Policy {
        allow_syncrep: true,
        ..policy()
    };
    assert_eq!(why(waits, Verb::Terminate, &allowed), None);
}

#[test]
fn the_protected_are_left_alone() {
    let mut policy = policy();
    policy.protected_users = vec!["replicator".into()];
    policy.protected_applications = vec!["billing".into()];
    policy.allow_superuser = true;
    policy.all_databases = true;
    assert_eq!(why(|_| {}, Verb::Terminate, &policy), None);
    let user = why(
        |s| s.user = Some("replicator".into()),
        Verb::Terminate,
        &policy,
    );
    assert!(user.expect("refused").contains("user is protected"));
    let application = |s: &mut Session| s.application_name = Some("billing".into());
    let refused = why(application, Verb::Cancel, &policy).expect("refused");
    assert!(refused.contains("application is protected"));
}

#[test]
fn a_cancel_needs_something_that_runs() {
    for (state, want) in [
        (SessionState::IdleInTransaction, "terminate ends it"),
        (SessionState::IdleInTransactionAborted, "terminate ends it"),
        (SessionState::Idle, "nothing to cancel"),
        (SessionState::Other("?".into()), "nothing to cancel"),
    ] {
        let set = |s: &mut Session| s.state = Some(state.clone());
        let refused = why(set, Verb::Cancel, &policy()).expect("refused");
        assert!(refused.contains(want), "{refused}");
        assert_eq!(why(set, Verb::Terminate, &policy()), None);
    }
    assert!(why(|s| s.query_start = None, Verb::Cancel, &policy()).is_some());
}

/// What is checked again in the statement that signals, by what made it a candidate.
#[test]
fn how_each_is_named() {
    for (verb, choice, xact, query, change) in [
        (Verb::Terminate, Choice::Pid, None, None, None),
        (Verb::Cancel, Choice::Pid, Some(10), Some(20), None),
        (Verb::Terminate, Choice::Transaction, Some(10), None, None),
        (Verb::Cancel, Choice::Transaction, Some(10), Some(20), None),
        (
            Verb::Terminate,
            Choice::IdleTransaction,
            Some(10),
            None,
            Some(20),
        ),
    ] {
        let guarded = judged(victim(), verb, choice, &policy());
        let (_, signal) = guarded.allowed.first().expect("allowed");
        assert_eq!(signal.id, victim().id);
        assert_eq!(
            signal.xact_start,
            xact.map(build::at),
            "{verb:?} {choice:?}"
        );
        assert_eq!(
            signal.query_start,
            query.map(build::at),
            "{verb:?} {choice:?}"
        );
        assert_eq!(
            signal.state_change,
            change.map(build::at),
            "{verb:?} {choice:?}"
        );
    }
    let mut gone = victim();
    gone.xact_start = None;
    let guarded = judged(
        gone.clone(),
        Verb::Terminate,
        Choice::Transaction,
        &policy(),
    );
    assert!(guarded.allowed.is_empty());
    // A transaction that has failed has no start: the state since then is what names it.
    for (state, allowed) in [
        (SessionState::IdleInTransaction, false),
        (SessionState::IdleInTransactionAborted, true),
    ] {
        gone.state = Some(state);
        let guarded = judged(
            gone.clone(),
            Verb::Terminate,
            Choice::IdleTransaction,
            &policy(),
        );
        assert_eq!(guarded.allowed.len(), usize::from(allowed), "{guarded:?}");
        let named = guarded
            .allowed
            .iter()
            .all(|(_, s)| s.state_change.is_some());
        assert!(named && guarded.allowed.len() + guarded.refused.len() == 1);
    }
}

#[test]
fn a_yes_is_the_name_or_a_place_in_full() {
    let guarded = judged(victim(), Verb::Terminate, Choice::Pid, &policy());
    let yes = |named_in_full| Consent::Yes { named_in_full };
    for (consent, want) in [
        (Consent::Typed("prod".into()), true),
        (Consent::Typed("PROD".into()), false),
        (Consent::Typed("yes".into()), false),
        (Consent::Typed(String::new()), false),
        (yes(true), true),
        (yes(false), false),
    ] {
        assert_eq!(
            guarded.approve(&consent, "prod").is_ok(),
            want,
            "{consent:?}"
        );
    }
}

#[test]
fn too_many_are_refused_as_a_whole() {
    let candidates = |count: i32| {
        (0..count)
            .map(|n| {
                let mut session = victim();
                session.id.pid.0 = 100 + n;
                Candidate {
                    session,
                    choice: Choice::Pid,
                }
            })
            .collect::<Vec<_>>()
    };
    let full = guard(candidates(10), Verb::Terminate, &facts(), &policy());
    assert_eq!(
        full.approve(&Consent::Typed("t".into()), "t")
            .expect("approved")
            .signals()
            .len(),
        10
    );
    let more = guard(candidates(11), Verb::Terminate, &facts(), &policy());
    assert_eq!(more.too_many(), Some(11));
    assert!(more.approve(&Consent::Typed("t".into()), "t").is_err());
}

/// Before a yes it is told of each how many wait behind it: also of one that waits itself, and of one of a circle.
#[test]
fn what_waits_behind_is_told_before_the_question() {
    let blocks = |capture: &str, pid: i32| {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures");
        let text = std::fs::read_to_string(folder.join(format!("{capture}.json"))).expect("a file");
        let snapshot: Snapshot = serde_json::from_str(&text).expect("a snapshot");
        let selection = Selection {
            pids: vec![pid],
            ..Selection::default()
        };
        let (chosen, _) = choose(&snapshot, &selection, Verb::Cancel);
        chosen.first().map(|one| (chosen.len(), one.blocks))
    };
    // The DDL, and the reader that it waits for.
    assert_eq!(blocks("lock-queue", 864), Some((1, 8)));
    assert_eq!(blocks("lock-queue", 862), Some((1, 9)));
    // Each of a circle has the other behind it, and the one who waits for them both; never itself.
    assert_eq!(blocks("deadlock", 863), Some((1, 2)));
    assert_eq!(blocks("deadlock", 865), Some((1, 2)));
    assert_eq!(blocks("lock-queue", 1), None);
}
