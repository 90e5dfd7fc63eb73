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
            pool.clients_waiting.unwrap_or(0) > 0
                && pool
                    .max_wait_ms
                    .is_some_and(|wait| wait >= judge.thresholds.pool_wait)
        })
        .collect();
    waiting.sort_by_key(|pool| std::cmp::Reverse(pool.max_wait_ms));
    let Some(longest) = waiting.first().and_then(|pool| pool.max_wait_ms) else {
        return;
    };
    let severity = if longest >= judge.thresholds.pool_wait_critical {
        Severity::Critical
    } else {
        Severity::Warning
    };
    let evidence = waiting.iter().map(|pool| words(pool)).collect();
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
    .filter(|id| judge.has(*id))
    .collect();
    judge.find(
        FindingId::PoolWaiting,
        severity,
        title,
        evidence,
        &["pg connections", "pg transactions"],
    );
    if let Some(finding) = judge.findings.last_mut() {
        finding.caused_by = causes;
    }
}

/// All that wait now, however short; `None`: it isn't known.
pub fn waiting(snapshot: &Snapshot) -> Option<u32> {
    let pooler = snapshot.pooler.as_ref()?.get()?;
    pooler.pools.iter().map(|pool| pool.clients_waiting).sum()
}

fn title(pooler: &Pooler, waiting: &[&Pool], longest: Millis) -> String {
    let clients: u32 = waiting.iter().filter_map(|pool| pool.clients_waiting).sum();
    let wait = if clients == 1 { "waits" } else { "wait" };
    format!(
        "{} {wait} for the pooler at {}:{}, the longest for {longest}",
        counted(clients.into(), "client"),
        pooler.host,
        pooler.port
    )
}

/// `shop as web: 12 wait, the longest for 14.2 s; all 10 server connections are in use`
fn words(pool: &Pool) -> String {
    let wait = pool
        .max_wait_ms
        .map_or(String::new(), |wait| format!(", the longest for {wait}"));
    format!(
        "{} as {}: {} waiting{wait}; {}",
        pool.database,
        pool.user,
        counted(pool.clients_waiting.unwrap_or(0).into(), "client"),
        why(pool)
    )
}

/// What its server connections do.
fn why(pool: &Pool) -> String {
    if pool.paused == Some(true) {
        return "the database is paused in the pooler: RESUME there lets them on".into();
    }
    let (Some(active), Some(idle), Some(login)) =
        (pool.servers_active, pool.servers_idle, pool.servers_login)
    else {
        return "what its server connections do isn't told".into();
    };
    let open = active + idle + login;
    match (open, pool.size) {
        (0, _) => {
            "no server connection is open: the server behind it refuses them or can't be reached"
                .into()
        }
        (_, Some(size)) if active >= size => format!(
            "all {size} server connections are in use: transactions hold them, or the pool is too small"
        ),
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
            servers_login: Some(0),
            max_wait_ms: Some(Millis(14_200)),
            size: Some(10),
            paused: Some(false),
            disabled: Some(false),
        }
    }

    #[test]
    fn why_they_wait() {
        let start = "shop as web: 12 clients waiting, the longest for 14.2 s; ";
        let told = |pool: &Pool| {
            let words = words(pool);
            words.strip_prefix(start).expect(&words).to_owned()
        };
        assert!(told(&pool()).starts_with("all 10 server connections are in use"));
        let none = Pool {
            servers_active: Some(0),
            ..pool()
        };
        assert!(told(&none).starts_with("no server connection is open"));
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
    }
}
