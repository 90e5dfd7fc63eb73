//! Clients that wait at the pooler: the server itself may look idle meanwhile.

use super::judge::Judge;
use crate::model::{FindingId, Millis, Pool, Pooler, Section, Severity, Snapshot, count, counted};

pub fn judge(judge: &mut Judge<'_>) {
    let pooler = match &judge.snapshot.pooler {
        Some(Section::Collected(pooler)) => pooler,
        Some(section) => {
            let why = section.why().unwrap_or_default();
            judge.unknown.push(format!("pool.waiting: {why}"));
            return;
        }
        None => return,
    };
    let mut waiting: Vec<&Pool> = pooler
        .pools
        .iter()
        .filter(|pool| {
            let long = pool
                .max_wait_ms
                .is_some_and(|wait| wait >= judge.thresholds.pool_wait);
            pool.waits_for_nothing() || (pool.clients_waiting.unwrap_or(0) > 0 && long)
        })
        .collect();
    waiting.sort_by_key(|pool| std::cmp::Reverse(pool.max_wait_ms));
    let Some(first) = waiting.first() else {
        return;
    };
    let longest = first.max_wait_ms.filter(|wait| *wait > Millis(0));
    let severity = if longest.is_some_and(|wait| wait >= judge.thresholds.pool_wait_critical) {
        Severity::Critical
    } else {
        Severity::Warning
    };
    let evidence = waiting.iter().map(|pool| words(pooler, pool)).collect();
    let title = title(pooler, &waiting, longest);
    // What holds a server connection of a pool is a transaction (or a session) on the server.
    let causes: Vec<FindingId> = [
        FindingId::ConnExhausted,
        FindingId::TxLong,
        FindingId::TxIdleInTransaction,
        FindingId::LockChain,
        FindingId::QueryStorm,
    ]
    .into_iter()
    // Nothing on the server lets them on where somebody has paused the pool.
    .filter(|id| judge.has(*id) && waiting.iter().any(|pool| !is_paused(pooler, pool)))
    .collect();
    let held = waiting.iter().all(|pool| of_sessions(pool));
    let next = match held {
        true => ["pg connections", "pg activity"],
        false => ["pg connections", "pg transactions"],
    };
    judge.find(FindingId::PoolWaiting, severity, title, evidence, &next);
    if let Some(finding) = judge.findings.last_mut() {
        finding.caused_by = causes;
    }
}

/// All that wait now, however short; `None`: it isn't known.
pub fn waiting(snapshot: &Snapshot) -> Option<u32> {
    let pooler = snapshot.pooler.as_ref()?.get()?;
    pooler.pools.iter().map(|pool| pool.clients_waiting).sum()
}

fn title(pooler: &Pooler, waiting: &[&Pool], longest: Option<Millis>) -> String {
    let clients: u32 = waiting.iter().filter_map(|pool| pool.clients_waiting).sum();
    let wait = if clients == 1 { "waits" } else { "wait" };
    let time = longest.map_or_else(
        || " and no server connection is open; for how long isn't told".into(),
        |longest| format!(", the longest for {longest}"),
    );
    format!(
        "{} {wait} for the pooler at {}:{}{time}",
        counted(clients.into(), "client"),
        pooler.host,
        pooler.port
    )
}

/// `shop as web: 12 wait, the longest for 14.2 s; all 10 server connections are in use`
fn words(pooler: &Pooler, pool: &Pool) -> String {
    let wait = pool
        .max_wait_ms
        .filter(|_| !pool.waits_for_nothing())
        .map_or(String::new(), |wait| format!(", the longest for {wait}"));
    format!(
        "{} as {}: {} waiting{wait}; {}",
        pool.database,
        pool.user,
        counted(pool.clients_waiting.unwrap_or(0).into(), "client"),
        why(pooler, pool)
    )
}

fn is_paused(pooler: &Pooler, pool: &Pool) -> bool {
    pooler.paused == Some(true) || pool.paused == Some(true)
}

/// A client keeps its server connection until it leaves.
fn of_sessions(pool: &Pool) -> bool {
    pool.mode.as_deref() == Some("session")
}

/// What its server connections do.
fn why(pooler: &Pooler, pool: &Pool) -> String {
    if pooler.paused == Some(true) {
        return "the whole pooler is paused: RESUME there lets them on".into();
    }
    if pool.paused == Some(true) {
        return "the database is paused in the pooler: RESUME there lets them on".into();
    }
    let (Some(active), Some(login), Some(open)) =
        (pool.servers_active, pool.servers_login, pool.servers_open())
    else {
        return "what its server connections do isn't told".into();
    };
    let holds = match of_sessions(pool) {
        true => "sessions hold them",
        false => "transactions hold them",
    };
    match (open, pool.size) {
        (_, Some(1)) if active >= 1 => format!(
            "its one server connection is in use: a {} holds it, or the pool is too small",
            if of_sessions(pool) {
                "session"
            } else {
                "transaction"
            }
        ),
        (_, Some(size)) if size > 0 && active >= size => {
            format!("all {size} server connections are in use: {holds}, or the pool is too small")
        }
        _ if is_at_limit(pool) => format!(
            "the database has all the server connections it may have ({} of max_db_connections {}), in all its pools",
            pool.database_open.unwrap_or(0),
            pool.database_limit.unwrap_or(0)
        ),
        // That all of it is paused isn't told by every version.
        (0, _) if pooler.paused.is_none() => {
            "no server connection is open: the server behind it refuses them or can't be reached, or the whole pooler is paused"
                .into()
        }
        (0, _) => {
            "no server connection is open: the server behind it refuses them or can't be reached"
                .into()
        }
        (_, _) if login > 0 && active == 0 => format!(
            "{} on the way in: the server behind it is slow to let them in, or refuses them",
            count(login as usize, "server connection")
        ),
        (_, size) => format!(
            "{active} of {} in use",
            size.map_or_else(
                || count(open as usize, "server connection"),
                |size| count(size as usize, "server connection")
            )
        ),
    }
}

fn is_at_limit(pool: &Pool) -> bool {
    let (limit, open) = (pool.database_limit, pool.database_open);
    limit.is_some_and(|limit| open.is_some_and(|open| open >= limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool() -> Pool {
        Pool {
            database: "shop".into(),
            user: "web".into(),
            mode: Some("transaction".into()),
            clients_active: Some(2),
            clients_waiting: Some(12),
            servers_active: Some(10),
            servers_idle: Some(0),
            servers_used: Some(0),
            servers_tested: Some(0),
            servers_login: Some(0),
            max_wait_ms: Some(Millis(14_200)),
            size: Some(10),
            database_limit: None,
            database_open: Some(10),
            paused: Some(false),
            disabled: Some(false),
        }
    }

    fn pooler(pools: Vec<Pool>) -> Pooler {
        Pooler {
            host: "pgb".into(),
            port: 6432,
            version: None,
            paused: Some(false),
            pools,
        }
    }

    #[test]
    fn why_they_wait() {
        let start = "shop as web: 12 clients waiting, the longest for 14.2 s; ";
        let told = |pool: &Pool| {
            let words = words(&pooler(Vec::new()), pool);
            words.strip_prefix(start).expect(&words).to_owned()
        };
        assert!(told(&pool()).starts_with("all 10 server connections are in use"));
        let none = Pool {
            servers_active: Some(0),
            ..pool()
        };
        assert!(told(&none).ends_with("refuses them or can't be reached"));
        let older = Pooler {
            paused: None,
            ..pooler(Vec::new())
        };
        assert!(words(&older, &none).ends_with("or the whole pooler is paused"));
        let login = Pool {
            servers_login: Some(1),
            ..none
        };
        assert!(told(&login).starts_with("1 server connection on the way in"));
        let paused = Pool {
            paused: Some(true),
            ..login
        };
        assert!(told(&paused).contains("RESUME"));
        let some = Pool {
            servers_active: Some(3),
            ..pool()
        };
        assert_eq!(told(&some), "3 of 10 server connections in use");
        let untold = Pool {
            servers_idle: None,
            ..pool()
        };
        assert!(told(&untold).contains("isn't told"));
        let of_sessions = Pool {
            mode: Some("session".into()),
            ..pool()
        };
        assert!(told(&of_sessions).contains(": sessions hold them"));
        let one = Pool {
            servers_active: Some(1),
            size: Some(1),
            ..pool()
        };
        assert!(told(&one).starts_with("its one server connection is in use"));
        let limited = Pool {
            database_limit: Some(4),
            database_open: Some(4),
            ..some.clone()
        };
        assert!(told(&limited).contains("4 of max_db_connections 4"));
        let below = Pool {
            database_open: Some(3),
            ..limited
        };
        assert_eq!(told(&below), told(&some));
        // Being tested is open too.
        let tested = Pool {
            servers_active: Some(0),
            servers_tested: Some(1),
            ..pool()
        };
        assert_eq!(told(&tested), "0 of 10 server connections in use");
        let all = Pooler {
            paused: Some(true),
            ..pooler(Vec::new())
        };
        assert!(words(&all, &some).contains("the whole pooler is paused"));
    }

    #[test]
    fn nobody_is_let_in() {
        let pool = Pool {
            servers_active: Some(0),
            max_wait_ms: Some(Millis(0)),
            ..pool()
        };
        assert!(pool.waits_for_nothing());
        let pooler = pooler(vec![pool.clone()]);
        assert_eq!(
            title(&pooler, &[&pool], None),
            "12 clients wait for the pooler at pgb:6432 and no server connection is open; for how long isn't told"
        );
        let told = words(&pooler, &pool);
        assert!(
            told.starts_with("shop as web: 12 clients waiting; no server connection is open"),
            "{told}"
        );
        for other in [
            Pool {
                servers_used: Some(1),
                ..pool.clone()
            },
            Pool {
                clients_waiting: Some(0),
                ..pool.clone()
            },
            Pool {
                max_wait_ms: Some(Millis(3)),
                ..pool
            },
        ] {
            assert!(!other.waits_for_nothing(), "{other:?}");
        }
    }
}
