//! Findings at their thresholds: on one side there, on the other not.

use stanch::analysis::triage::{self, Finding};
use stanch::model::{
    BackendType, ExitCode, FindingId, Lock, LockMode, LockTag, Millis, Oid, Pattern, Percent,
    PreparedXact, Role, Section, Session, SessionState, Setting, Severity, SlotLimit, SlotRefusal,
    Snapshot, Thresholds, Timestamp, WaitEvent, Xid,
};

use crate::build::{at, awaited, held, hidden, now, session, snapshot};

const HOUR: i64 = 3_600_000_000;
const SECOND: i64 = 1_000_000;

fn ago(micros: i64) -> Timestamp {
    at(HOUR - micros)
}

fn findings(snapshot: &Snapshot) -> Vec<Finding> {
    triage::report(snapshot, &Thresholds::default())
        .data
        .findings
}

fn find(snapshot: &Snapshot, id: FindingId) -> Option<Finding> {
    findings(snapshot).into_iter().find(|f| f.id == id)
}

fn severity(snapshot: &Snapshot, id: FindingId) -> Option<Severity> {
    find(snapshot, id).map(|f| f.severity)
}

fn with(sessions: Vec<Session>) -> Snapshot {
    let mut s = snapshot();
    s.activity = Section::Collected(sessions);
    s
}

fn many(number: usize, change: impl Fn(&mut Session, i64)) -> Vec<Session> {
    (0..number)
        .map(|n| {
            let n = i32::try_from(n).expect("small");
            let mut one = session(100 + n, SessionState::Idle);
            change(&mut one, n.into());
            one
        })
        .collect()
}

#[test]
fn a_quiet_server_has_none() {
    assert!(findings(&snapshot()).is_empty());
    let report = triage::report(&with(many(60, |_, _| {})), &Thresholds::default());
    assert!(
        report.data.findings.is_empty(),
        "{:?}",
        report.data.findings
    );
    assert_eq!(report.exit_code(), ExitCode::Ok);
}

#[test]
fn slots_at_their_limits() {
    // 97 are usable: 82 are 84.5 %, 83 are 85.6 %, 90 are 92.8 %.
    let idle = |number| with(many(number, |s, _| s.superuser = Some(true)));
    assert_eq!(severity(&idle(82), FindingId::ConnNearLimit), None);
    assert_eq!(
        severity(&idle(83), FindingId::ConnNearLimit),
        Some(Severity::Warning)
    );
    assert_eq!(
        severity(&idle(90), FindingId::ConnNearLimit),
        Some(Severity::Critical)
    );
    assert_eq!(severity(&idle(96), FindingId::ConnExhausted), None);
    assert_eq!(
        severity(&idle(97), FindingId::ConnExhausted),
        Some(Severity::Critical)
    );
    assert_eq!(
        severity(&idle(97), FindingId::ConnNearLimit),
        None,
        "one finding for one thing"
    );
    let own = Thresholds {
        connections_warning: Percent(10.0),
        ..Thresholds::default()
    };
    let found = triage::report(&idle(12), &own).data.findings;
    assert_eq!(found.first().map(|f| f.id), Some(FindingId::ConnNearLimit));
}

/// A role's own limit is another thing than the server's: neither hides the other, unless the refusal is by that limit.
#[test]
fn a_limit_of_its_own_beside_the_servers() {
    let full = |sessions, limit| {
        let mut s = with(many(sessions, |s, _| s.superuser = Some(true)));
        s.roles = Section::Collected(vec![Role {
            oid: Oid(100),
            name: "app_rw".into(),
            superuser: false,
            connection_limit: Some(limit),
        }]);
        s
    };
    assert_eq!(severity(&full(10, 11), FindingId::ConnOwnLimit), None);
    let alone = find(&full(10, 10), FindingId::ConnOwnLimit).expect("it is used up");
    assert_eq!(
        (alone.severity, alone.title.as_str()),
        (
            Severity::Warning,
            "role app_rw has used its connection limit: 10 of 10"
        )
    );
    let both = full(90, 90);
    assert_eq!(
        severity(&both, FindingId::ConnNearLimit),
        Some(Severity::Critical)
    );
    assert!(find(&both, FindingId::ConnOwnLimit).is_some());
}

#[test]
fn pools_too_large_in_sum() {
    // Of 100: 80 are sound, 81 are not; what is busy is no oversized pool.
    assert_eq!(
        severity(&with(many(80, |_, _| {})), FindingId::ConnOversizedPools),
        None
    );
    assert_eq!(
        severity(&with(many(81, |_, _| {})), FindingId::ConnOversizedPools),
        Some(Severity::Warning)
    );
    let busy = many(81, |s, n| {
        if n < 41 {
            s.state = Some(SessionState::Active);
        }
    });
    assert_eq!(severity(&with(busy), FindingId::ConnOversizedPools), None);
    let found = find(&with(many(97, |_, _| {})), FindingId::ConnExhausted).expect("it is full");
    assert_eq!(found.pattern, Some(Pattern::A));
    assert_eq!(found.caused_by, [FindingId::ConnOversizedPools]);
}

fn idle_in_transaction(number: usize, micros: i64) -> Vec<Session> {
    many(number, |s, _| {
        s.state = Some(SessionState::IdleInTransaction);
        s.state_change = Some(ago(micros));
        s.xact_start = Some(ago(micros));
    })
}

#[test]
fn idle_in_transaction_by_number_and_age() {
    let of = |number, micros| {
        severity(
            &with(idle_in_transaction(number, micros)),
            FindingId::TxIdleInTransaction,
        )
    };
    assert_eq!(of(10, 20 * SECOND), None, "more than ten");
    assert_eq!(of(11, 20 * SECOND), Some(Severity::Warning));
    assert_eq!(of(11, 10 * SECOND), Some(Severity::Warning));
    assert_eq!(of(11, 10 * SECOND - 1000), None, "from ten seconds on");
    // Aborted ones have no start of their transaction any more, and count.
    let aborted = many(11, |s, _| {
        s.state = Some(SessionState::IdleInTransactionAborted);
        s.state_change = Some(ago(20 * SECOND));
    });
    let found = find(&with(aborted), FindingId::TxIdleInTransaction).expect("they count");
    assert!(
        found.evidence[0].ends_with("transaction of unknown age"),
        "{found:?}"
    );
    assert!(
        found.next[1].contains("idle-in-transaction-aborted"),
        "{found:?}"
    );
}

#[test]
fn a_leak_fills_the_slots() {
    let mut sessions = idle_in_transaction(45, 20 * SECOND);
    sessions.extend(many(45, |s, n| {
        s.id.pid.0 = 1000 + i32::try_from(n).expect("small")
    }));
    let found = find(&with(sessions.clone()), FindingId::ConnLeak).expect("half of them leak");
    assert_eq!(
        (found.severity, found.pattern),
        (Severity::Critical, Some(Pattern::B))
    );
    assert_eq!(
        find(&with(sessions.clone()), FindingId::ConnNearLimit)
            .expect("full")
            .pattern,
        Some(Pattern::B)
    );
    sessions.remove(0);
    assert_eq!(
        severity(&with(sessions), FindingId::ConnLeak),
        None,
        "less than half"
    );
    assert_eq!(
        severity(
            &with(idle_in_transaction(45, 20 * SECOND)),
            FindingId::ConnLeak
        ),
        None,
        "slots are left"
    );
}

#[test]
fn long_transactions() {
    let of = |micros, application: &str| {
        let mut s = session(1, SessionState::Active);
        s.xact_start = Some(ago(micros));
        s.application_name = Some(application.into());
        severity(&with(vec![s]), FindingId::TxLong)
    };
    assert_eq!(of(30 * SECOND - 1000, "batch"), None);
    assert_eq!(of(30 * SECOND, "batch"), Some(Severity::Warning));
    assert_eq!(of(3000 * SECOND, "pg_dump"), None, "long by nature");
    // One that is old only because it waits for a lock isn't the cause.
    let tag = LockTag::Relation {
        database: Oid(5),
        relation: Oid(1),
    };
    let waiting = |since: i64| {
        let mut s = session(1, SessionState::Active);
        s.xact_start = Some(ago(100 * SECOND));
        s.wait = Some(WaitEvent {
            class: "Lock".into(),
            event: "relation".into(),
        });
        let mut snapshot = with(vec![s, session(2, SessionState::Idle)]);
        let since = HOUR - since;
        snapshot.locks = Section::Collected(vec![
            held(Some(2), "2/1", &tag, LockMode::AccessExclusive),
            awaited(1, &tag, LockMode::AccessShare, Some(since)),
        ]);
        severity(&snapshot, FindingId::TxLong)
    };
    assert_eq!(waiting(99 * SECOND), None);
    assert_eq!(
        waiting(SECOND),
        Some(Severity::Warning),
        "it was old before it waited"
    );
    let mut s = snapshot();
    s.prepared = Section::Collected(vec![PreparedXact {
        xid: Xid(1),
        xid_age: 1,
        gid: "forgotten".into(),
        prepared: ago(60 * SECOND),
        owner: None,
        datid: Oid(5),
        database: Some("app".into()),
    }]);
    let found = find(&s, FindingId::TxLong).expect("a forgotten one");
    assert!(
        found.evidence[0].starts_with("prepared transaction forgotten"),
        "{found:?}"
    );
}

#[test]
fn storms_by_number_and_age() {
    let of = |number, micros, query: &str| {
        let sessions = many(number, |s, n| {
            s.state = Some(SessionState::Active);
            s.query_start = Some(ago(micros));
            s.query = Some(format!("{query} {n}"));
        });
        severity(&with(sessions), FindingId::QueryStorm)
    };
    let query = "select * from product where id =";
    assert_eq!(of(9, SECOND, query), None);
    assert_eq!(of(10, SECOND, query), Some(Severity::Warning));
    assert_eq!(of(50, SECOND, query), Some(Severity::Critical));
    assert_eq!(
        of(55, 2000, query),
        None,
        "short statements are what a database is for"
    );
    assert_eq!(of(55, SECOND, "COMMIT; --"), None);
    let waiting = many(20, |s, _| {
        s.state = Some(SessionState::Active);
        s.query = Some("update hot set n = 1".into());
        s.wait = Some(WaitEvent {
            class: "Lock".into(),
            event: "tuple".into(),
        });
    });
    assert_eq!(
        severity(&with(waiting), FindingId::QueryStorm),
        None,
        "they wait for a lock"
    );
}

fn active_waiting(number: usize, class: &str, event: &str, micros: i64) -> Vec<Session> {
    many(number, |s, n| {
        s.state = Some(SessionState::Active);
        s.query = Some(format!(
            "select {} from t{n}",
            "x".repeat(usize::try_from(n).expect("small") + 1)
        ));
        s.state_change = Some(ago(micros));
        s.wait = Some(WaitEvent {
            class: class.into(),
            event: event.into(),
        });
    })
}

#[test]
fn a_wait_that_dominates() {
    let of = |number, class, event, micros| {
        severity(
            &with(active_waiting(number, class, event, micros)),
            FindingId::WaitDominant,
        )
    };
    assert_eq!(of(4, "IO", "DataFileRead", SECOND), None);
    assert_eq!(of(5, "IO", "DataFileRead", SECOND), Some(Severity::Warning));
    assert_eq!(
        of(20, "Timeout", "PgSleep", SECOND),
        None,
        "a sleep is no trouble"
    );
    assert_eq!(
        of(20, "Client", "ClientRead", SECOND / 10),
        None,
        "between two messages"
    );
    assert_eq!(
        of(20, "Client", "ClientRead", 2 * SECOND),
        Some(Severity::Warning)
    );
    assert_eq!(of(1, "IPC", "SyncRep", 9 * SECOND), None);
    assert_eq!(
        of(1, "IPC", "SyncRep", 10 * SECOND),
        Some(Severity::Critical)
    );
    let mut half = active_waiting(5, "IO", "DataFileRead", SECOND);
    half.extend(
        active_waiting(5, "LWLock", "WALWrite", SECOND)
            .into_iter()
            .map(|mut s| {
                s.id.pid.0 += 1000;
                s
            }),
    );
    assert_eq!(
        severity(&with(half), FindingId::WaitDominant),
        None,
        "not more than half"
    );
}

#[test]
fn churn_is_spread_over_the_minute() {
    let opened = |spread: i64, uptime: i64| {
        let sessions = many(30, |s, n| {
            s.id.backend_start = Some(ago((n % 3) * spread * SECOND + SECOND))
        });
        let mut snapshot = with(sessions);
        if let Some(server) = snapshot.server.get_mut() {
            server.started_at = Some(ago(uptime * SECOND));
        }
        let report = triage::report(&snapshot, &Thresholds::default()).data;
        (
            report.findings.iter().any(|f| f.id == FindingId::ConnChurn),
            report.unknown.len(),
        )
    };
    assert_eq!(opened(20, 3000), (true, 0));
    assert_eq!(opened(0, 3000), (false, 1), "a pool that has just started");
    assert_eq!(
        opened(20, 100),
        (false, 1),
        "a server that has just started"
    );
}

#[test]
fn a_horizon_that_is_held() {
    let of = |age: i32, change: &dyn Fn(&mut Session)| {
        let mut s = session(1, SessionState::IdleInTransaction);
        s.xact_start = Some(ago(SECOND));
        s.xmin_age = Some(age);
        change(&mut s);
        severity(&with(vec![s]), FindingId::HorizonHeld)
    };
    assert_eq!(of(9_999_999, &|_| {}), None);
    assert_eq!(of(10_000_000, &|_| {}), Some(Severity::Warning));
    assert_eq!(of(150_000_000, &|_| {}), Some(Severity::Critical));
    let vacuum = |s: &mut Session| {
        s.backend_type = Some(BackendType::AutovacuumWorker);
        s.query = Some("autovacuum: VACUUM public.orders".into());
    };
    assert_eq!(
        of(150_000_000, &vacuum),
        None,
        "a plain VACUUM holds nothing"
    );
}

/// Three readers and a DDL: eight wait behind the DDL, once, not three times.
fn queue_behind_ddl(readers: i32) -> Snapshot {
    let tag = LockTag::Relation {
        database: Oid(5),
        relation: Oid(1),
    };
    let mut sessions = Vec::new();
    let mut locks: Vec<Lock> = Vec::new();
    for pid in 1..=readers {
        sessions.push(session(pid, SessionState::IdleInTransaction));
        locks.push(held(Some(pid), "1/1", &tag, LockMode::AccessShare));
    }
    for pid in 100..109 {
        sessions.push(session(pid, SessionState::Active));
        let mode = if pid == 100 {
            LockMode::AccessExclusive
        } else {
            LockMode::AccessShare
        };
        locks.push(awaited(
            pid,
            &tag,
            mode,
            Some(HOUR - 5 * SECOND + i64::from(pid)),
        ));
    }
    let mut s = with(sessions);
    s.locks = Section::Collected(locks);
    s
}

#[test]
fn a_queue_is_counted_once() {
    for readers in [1, 3, 30] {
        let found =
            find(&queue_behind_ddl(readers), FindingId::LockQueueBehindDdl).expect("a queue");
        assert_eq!(found.title, "8 sessions behind a DDL that waits itself");
        assert_eq!(found.evidence.len(), 1, "{found:?}");
        let chain = find(&queue_behind_ddl(readers), FindingId::LockChain).expect("a chain");
        assert_eq!(chain.caused_by, [FindingId::LockQueueBehindDdl]);
        assert!(chain.evidence.len() <= 4, "{chain:?}");
    }
}

fn chain(waiters: i32, wait: i64) -> Option<Severity> {
    let tag = LockTag::Transaction { xid: 7 };
    let mut sessions = vec![session(1, SessionState::IdleInTransaction)];
    let mut locks = vec![held(Some(1), "1/1", &tag, LockMode::Exclusive)];
    for pid in 100..100 + waiters {
        sessions.push(session(pid, SessionState::Active));
        locks.push(awaited(pid, &tag, LockMode::Share, Some(HOUR - wait)));
    }
    let mut s = with(sessions);
    s.locks = Section::Collected(locks);
    severity(&s, FindingId::LockChain)
}

#[test]
fn chains_by_length_and_wait() {
    assert_eq!(chain(1, SECOND / 2), None, "shorter than deadlock_timeout");
    assert_eq!(chain(1, SECOND), Some(Severity::Warning));
    assert_eq!(chain(9, 2 * SECOND), Some(Severity::Warning));
    assert_eq!(chain(10, 2 * SECOND), Some(Severity::Critical));
    assert_eq!(chain(10, SECOND / 10), None, "a busy row");
    assert_eq!(chain(1, 30 * SECOND), Some(Severity::Critical));
}

#[test]
fn refusals_are_exhaustion() {
    let mut s = snapshot();
    s.refusals = vec![SlotRefusal {
        limit: SlotLimit::Reserved,
        user: "app".into(),
        database: "app".into(),
        ms_before: 300,
    }];
    let found = find(&s, FindingId::ConnExhausted).expect("a login was refused");
    assert_eq!(found.severity, Severity::Critical);
    // 97 slots were taken a moment ago, and nobody is seen now.
    let unaccounted = find(&s, FindingId::ConnUnaccounted).expect("slots that aren't shown");
    assert!(
        unaccounted.title.starts_with("at least 97 slots"),
        "{unaccounted:?}"
    );
    // An old refusal, or one of the login that got in after all, says nothing of the slots that are taken now.
    for (user, ms_before) in [("app", 5000), ("oncall", 300)] {
        s.refusals[0].user = user.into();
        s.refusals[0].ms_before = ms_before;
        assert_eq!(severity(&s, FindingId::ConnUnaccounted), None);
        assert_eq!(severity(&s, FindingId::ConnExhausted), None);
        let was = find(&s, FindingId::ConnNearLimit).expect("it was full a moment ago");
        assert!(was.title.contains("ago; now 0 of 97"), "{was:?}");
    }
}

#[test]
fn what_is_hidden_is_unknown() {
    let mut s = with((1..=20).map(hidden).collect());
    let report = triage::report(&s, &Thresholds::default());
    assert_eq!(report.data.summary.active, None);
    assert_eq!(report.data.unknown.len(), 1);
    assert_eq!(
        report.exit_code(),
        ExitCode::Ok,
        "hidden rows alone are 0, with the coverage said"
    );
    s.activity = Section::Failed {
        code: "55P03".into(),
        message: "locked".into(),
    };
    let report = triage::report(&s, &Thresholds::default());
    assert_eq!(report.exit_code(), ExitCode::Unknown);
    assert!(report.data.summary.capacity.is_none());
}

/// Severity first, then the order of the catalog; and the codes follow: 2 before 1 before 3 before 0.
#[test]
fn the_worst_comes_first() {
    let mut s = queue_behind_ddl(1);
    let ids: Vec<FindingId> = findings(&s).iter().map(|f| f.id).collect();
    assert_eq!(ids, [FindingId::LockChain, FindingId::LockQueueBehindDdl]);
    let code = |s: &Snapshot| triage::report(s, &Thresholds::default()).exit_code();
    assert_eq!(code(&s), ExitCode::Warning);
    s.settings = Section::Failed {
        code: "x".into(),
        message: "x".into(),
    };
    assert_eq!(
        code(&s),
        ExitCode::Warning,
        "a warning is told before what is missing"
    );
    assert_eq!(now().age_at(now()), Millis(0));
}

/// NULL in everything that may be NULL: no report fails on it.
#[test]
fn sessions_of_which_nothing_is_known() {
    let mut bare = hidden(7);
    bare.datid = None;
    bare.database = None;
    bare.usesysid = None;
    bare.user = None;
    bare.superuser = None;
    bare.application_name = None;
    let mut visible = bare.clone();
    visible.id.pid.0 = 8;
    visible.hidden = false;
    visible.backend_type = Some(BackendType::Client);
    let tag = LockTag::Transaction { xid: 7 };
    let mut s = with(vec![bare, visible]);
    s.locks = Section::Collected(vec![
        held(Some(8), "", &tag, LockMode::Exclusive),
        awaited(7, &tag, LockMode::Share, None),
        held(None, "", &tag, LockMode::Exclusive),
    ]);
    s.server = Section::Skipped("not there".into());
    s.login = Section::Skipped("not there".into());
    assert!(!findings(&s).is_empty());
    use stanch::analysis::{
        activity, blocking, connections, doctor, horizon, locks, settings, transactions,
    };
    assert_eq!(
        activity::report(&s, &activity::Filter::default())
            .data
            .sessions
            .len(),
        1
    );
    assert_eq!(blocking::report(&s).data.blocked, 1);
    assert!(connections::report(&s).data.capacity.is_none());
    assert!(!locks::report(&s, false).data.locks.is_empty());
    assert!(transactions::report(&s, None).data.transactions.is_empty());
    assert!(settings::report(&s).data.settings.is_empty());
    assert!(horizon::report(&s).data.horizon.is_empty());
    assert!(!doctor::report(&s).data.doctor.is_empty());
}

/// What isn't a setting is no setting, however mild.
#[test]
fn a_mild_lock_finding_is_shown() {
    let tag = LockTag::VirtualXid { vxid: "3/7".into() };
    let mut s = with(vec![
        session(1, SessionState::IdleInTransaction),
        session(2, SessionState::Active),
    ]);
    s.locks = Section::Collected(vec![
        held(Some(1), "3/7", &tag, LockMode::Exclusive),
        awaited(2, &tag, LockMode::Share, Some(HOUR - 60 * SECOND)),
    ]);
    assert_eq!(severity(&s, FindingId::LockChain), Some(Severity::Info));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("one.json");
    stanch::bundle::write(&file, &s).expect("written");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_stanch"))
        .args(["triage", "--from", &file.display().to_string()])
        .env_clear()
        .output()
        .expect("the program runs");
    let shown = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(
        shown.contains("info  lock.chain: 1 session waits"),
        "{shown}"
    );
    assert_eq!(output.status.code(), Some(0));
}

/// For the server's log LOG lies between ERROR and FATAL; a list that was a switch once shows the word that was typed.
#[test]
fn settings_in_the_logs_own_order() {
    let verdict = |name: &str, value: &str| {
        let mut s = snapshot();
        s.settings = Section::Collected(vec![Setting {
            name: name.into(),
            value: value.into(),
            unit: None,
            boot_value: None,
            source: Some("configuration file".into()),
            pending_restart: false,
        }]);
        let all = stanch::analysis::settings::judge_all(&s);
        let found = all.iter().find(|setting| setting.name == name);
        format!("{:?}", found.expect("it is judged").verdict)
    };
    for (name, value, expected) in [
        ("log_min_messages", "error", "Ok"),
        ("log_min_messages", "log", "Change"),
        ("log_min_messages", "fatal", "Change"),
        ("log_min_error_statement", "error", "Ok"),
        ("log_min_error_statement", "debug1", "Ok"),
        ("log_min_error_statement", "log", "Change"),
        ("log_connections", "receipt, authorization", "Ok"),
        ("log_connections", "on", "Ok"),
        ("log_connections", "no", "Consider"),
        ("log_connections", "", "Consider"),
    ] {
        assert_eq!(verdict(name, value), expected, "{name} = {value}");
    }
}
