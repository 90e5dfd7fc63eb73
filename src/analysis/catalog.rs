//! Each finding once: what it means, its cause pattern, what brings relief, what mends it. `stanch explain` prints it.

use serde::Serialize;

use crate::model::{FindingId, Pattern};

/// The fixed text of a finding.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Entry {
    pub id: FindingId,
    /// When it is reported, and how severe it is.
    pub condition: &'static str,
    pub pattern: Option<Pattern>,
    pub meaning: &'static str,
    /// What stops the bleeding.
    pub relief: &'static str,
    /// What keeps it from coming back.
    pub cure: &'static str,
}

/// What it is called in a sentence, to somebody who doesn't know the ids.
pub fn in_words(id: FindingId) -> &'static str {
    match id {
        FindingId::ConnExhausted => "no free connection slot",
        FindingId::ConnNearLimit => "few connection slots left",
        FindingId::ConnOwnLimit => "a connection limit of a role or database used up",
        FindingId::ConnLeak => "leaked connections",
        FindingId::ConnOversizedPools => "pools that are too large in sum",
        FindingId::ConnUnaccounted => "slots that no session accounts for",
        FindingId::ConnChurn => "connections that are opened again and again",
        FindingId::PoolWaiting => "clients that wait in the pooler",
        FindingId::WaitDominant => "many sessions in one wait event",
        FindingId::TxLong => "a long transaction",
        FindingId::TxIdleInTransaction => "a session idle in transaction",
        FindingId::LockChain => "sessions that wait for a lock",
        FindingId::LockQueueBehindDdl => "a queue behind a waiting DDL",
        FindingId::LockPreparedRoot => "a prepared transaction that blocks",
        FindingId::LockCycle => "sessions that wait for each other",
        FindingId::LockDeadlocks => "deadlocks",
        FindingId::QueryStorm => "one statement in many sessions at once",
        FindingId::HorizonHeld => "a held back xmin horizon",
        FindingId::RedisClusterDown => "a cluster of Redis that is down",
        FindingId::RedisNearLimit => "a Redis near one of its limits",
        FindingId::RedisExpiryCliff => "many keys that expire at once",
        FindingId::RedisLockTtl => "rebuild locks with a TTL that doesn't fit",
        FindingId::RedisHotKey => "a hot key",
        FindingId::QueueBacklog => "a backlog of jobs",
        FindingId::QueueDeadLetters => "dead jobs",
        FindingId::SettingsNoIdleTxTimeout => "no idle_in_transaction_session_timeout",
        FindingId::SettingsNoStatementTimeout => "no statement_timeout",
        FindingId::SettingsLogLockWaitsOff => "log_lock_waits off",
    }
}

/// The entry of an id: every id has one.
pub fn entry(id: FindingId) -> Entry {
    let make = |condition, pattern, meaning, relief, cure| Entry {
        id,
        condition,
        pattern,
        meaning,
        relief,
        cure,
    };
    match id {
        FindingId::ConnExhausted => make(
            "critical: no usable slot is free, a role or database has used its own limit, or a login was refused for want of a \
             slot (SQLSTATE 53300)",
            None,
            "Every connection slot that applications may use is taken. New connections fail, and requests that need one \
             fail with them. The pattern says why: A pools too large in sum, B leaked connections, C long transactions, \
             D timeouts that don't fit.",
            "Free the right sessions: those that hold a slot and do nothing (B), or the one transaction that the others \
             wait for (C). Pools that are too large are not answered by terminating, they reconnect at once: lower the \
             number of instances or the pool size, or set ALTER ROLE … CONNECTION LIMIT (A).",
            "Size pools by the sum over all instances at their peak, at most 80 % of max_connections; put a pooler in \
             front; keep reserved slots for the person on call.",
        ),
        FindingId::ConnNearLimit => make(
            "warning from 85 %, critical from 92 % of the usable slots",
            None,
            "Few slots are left. The next deployment, retry storm or slow query takes them.",
            "See which group grows (stanch pg connections), and hold back new instances until it is clear why.",
            "As for conn.exhausted; alert at 85 % for five minutes.",
        ),
        FindingId::ConnOwnLimit => make(
            "warning: a role or a database has used its own connection limit, while the server has slots left",
            None,
            "The next client of that role or database is refused, whatever the server has left. A pool may be meant to be \
             just as large as the limit; then this is how it looks when the pool is full.",
            "See what the role's sessions do (stanch pg connections, stanch pg activity). Raise the limit only where the \
             server has room: ALTER ROLE … CONNECTION LIMIT, ALTER DATABASE … CONNECTION LIMIT.",
            "Keep the limit above the sum of the pools that log in as that role, at their peak; check it with stanch budget \
             check --live.",
        ),
        FindingId::ConnLeak => make(
            "slots are near their limit, and at least half of those taken are idle in transaction; as severe as the \
             limit's finding",
            Some(Pattern::B),
            "Connections aren't returned: a transaction was begun and the code path that should end it was left, mostly \
             by an exception. A leaked connection that has no open transaction can't be told from a healthy idle pool \
             by one look: compare the pool's own count with stanch pg connections.",
            "Terminate the sessions that have been idle in transaction longest; a cancel does nothing to them.",
            "Take and return connections in one scope on every path; set idle_in_transaction_session_timeout.",
        ),
        FindingId::ConnOversizedPools => make(
            "applications hold more than 80 % of max_connections in sum, and at least half of their connections are \
             idle outside a transaction; as severe as the limit's finding, else a warning",
            Some(Pattern::A),
            "The pools of all instances together are larger than what the server has: 20 instances with 20 each are \
             400. Most of the connections do nothing.",
            "Fewer instances, a smaller pool size, ALTER ROLE … CONNECTION LIMIT, or PAUSE in the pooler. Terminating \
             is in vain: a pool reconnects at once.",
            "Write the sum into the infrastructure code: instances at peak × pool + headroom ≤ 80 % of max_connections.",
        ),
        FindingId::ConnUnaccounted => make(
            "warning: a login was refused for want of a slot while fewer sessions are shown than slots taken",
            None,
            "Slots are held by what pg_stat_activity doesn't show: connections that haven't authenticated yet (before \
             PostgreSQL 18), or are just starting.",
            "Look for clients that connect and stay silent: health checks, scanners, a load balancer. The server drops \
             them after authentication_timeout.",
            "Lower authentication_timeout; have health checks log in or only open the port.",
        ),
        FindingId::ConnChurn => make(
            "warning: at least half of the sessions, and 20 or more, were opened in the last minute, on a server that \
             is up for longer than five",
            Some(Pattern::D),
            "Connections don't live: each request opens one, or the pool's are dropped and opened again because its \
             lifetime doesn't fit the load balancer's or the server's. Logging in costs the server a process each time.",
            "Find the group that reconnects (stanch pg connections) and stop its retries: exponential backoff with jitter.",
            "A pool's maximum lifetime below the load balancer's and the server's; a pooler for short-lived clients.",
        ),
        FindingId::PoolWaiting => make(
            "warning: clients have waited for a server connection of the pooler for a second, critical: for ten; \
             also a warning where they wait and it has no server connection open; only where the target \
             names the pooler's console (`pgbouncer` in stanch.yaml)",
            None,
            "The queue is at the pooler and not in the server, which may look idle. Either all server connections of a pool are \
             held, by transactions that don't end or because the pool is small; or none can be opened, because the server behind \
             it refuses them, or somebody has paused the database.",
            "End what holds the server connections (stanch pg transactions, stanch pg blockers). Where none is open, look at the \
             server itself, and at SHOW SERVERS and the pooler's log; where it is paused, RESUME.",
            "A pool as large as the server can carry, short transactions, and query_wait_timeout below the clients' patience.",
        ),
        FindingId::WaitDominant => make(
            "warning: one wait event (of type IO, LWLock, IPC, Client or BufferPin) holds more than half of the active \
             sessions, and five or more",
            None,
            "Most of what runs waits for the same thing: SyncRep for a synchronous standby, IO for the disk, LWLock for \
             contention inside the server, ClientRead for clients in mid-transaction.",
            "SyncRep: look at the standby. IO: find the statement that reads much. LWLock: lower the number of active \
             sessions. ClientRead: look at the application and the network.",
            "Depends on the event: the PostgreSQL manual lists them under \"wait events\".",
        ),
        FindingId::TxLong => make(
            "warning: a transaction is older than 30 s; dumps and replication are left out, and so are sessions that \
             are old only because they wait for a lock",
            Some(Pattern::C),
            "A long transaction keeps its locks and its slot, and keeps VACUUM from removing what died since.",
            "If it is a batch, stop it at its source or cancel its statement; if it is idle, end the session.",
            "Work in chunks (some 500 rows); set statement_timeout and idle_in_transaction_session_timeout; no external \
             call inside a transaction.",
        ),
        FindingId::TxIdleInTransaction => make(
            "warning: more than 10 sessions have been idle in transaction for 10 s or longer",
            Some(Pattern::B),
            "Transactions were begun and left: nothing runs in them, and each holds a slot, its locks and its snapshot.",
            "Terminate the oldest (a cancel does nothing to an idle session); see which code path they share by their \
             last statement.",
            "idle_in_transaction_session_timeout = 60s, and one scope for begin and commit in the code.",
        ),
        FindingId::LockChain => make(
            "warning: a session waits for another's lock longer than deadlock_timeout; critical from 10 blocked \
             sessions or 30 s",
            None,
            "Sessions wait behind a lock. What matters is the root: it blocks others and isn't blocked itself.",
            "stanch pg blockers names the root, the command that ends it, and what is lost by it.",
            "Shorter transactions, one order of locking on every path, lock_timeout for DDL.",
        ),
        FindingId::LockQueueBehindDdl => make(
            "as lock.chain: sessions wait only because a DDL that waits itself stands ahead of them in the queue",
            None,
            "A DDL waits for a reader, and everyone who comes after it waits for the DDL: a table that could be read is \
             blocked by a statement that does nothing yet.",
            "Cancel the DDL, not the reader: those behind it go on at once.",
            "Run DDL with lock_timeout = '5s' and retry; end long readers first.",
        ),
        FindingId::LockPreparedRoot => make(
            "critical: a prepared transaction blocks sessions",
            None,
            "A prepared transaction (two-phase commit) holds a lock. It has no process: no signal ends it, and it \
             survives a restart. pg_blocking_pids shows it as 0.",
            "Ask its coordinator whether it was to commit, then COMMIT PREPARED or ROLLBACK PREPARED in its own \
             database, as its owner or a superuser.",
            "Watch the age of pg_prepared_xacts; max_prepared_transactions = 0 where nothing uses them.",
        ),
        FindingId::LockCycle => make(
            "critical: sessions wait for each other in a circle",
            None,
            "A deadlock that the server hasn't broken yet: it aborts one of them after deadlock_timeout.",
            "Wait for deadlock_timeout, or cancel the youngest transaction of the circle.",
            "One lock order on every path: rows by key, in one direction; FOR UPDATE at the start.",
        ),
        FindingId::LockDeadlocks => make(
            "warning: pg_stat_database.deadlocks grew between two looks (pg deadlocks, triage --every); info: it isn't 0 \
             since the statistics were reset",
            None,
            "The server broke circles of waiting: it aborted one transaction of each, and its client got SQLSTATE 40P01.",
            "stanch pg deadlocks LOG names who waited for what, their statements, and the order to change.",
            "One lock order on every path; retry on 40P01, three times at most, with growing pauses.",
        ),
        FindingId::QueryStorm => make(
            "warning: the same statement (values aside) runs in 10 or more sessions at once; critical from 50; sessions \
             that wait for a lock are left out",
            None,
            "Many clients ask for the same thing at the same time: a cache that expired for all of them at once, a \
             missing index, or retries.",
            "Stop the callers or let one of them fill the cache; cancel the statement in the other sessions.",
            "One rebuild at a time (single flight), jitter on expiry, stale-while-revalidate; an index for the statement.",
        ),
        FindingId::HorizonHeld => make(
            "warning: something holds the xmin horizon back by 10 million transactions or more; critical from 150 million",
            None,
            "VACUUM can't remove rows that died since: tables grow, and transaction ids run towards wraparound.",
            "stanch pg horizon lists what holds it, oldest first, with the way to let it go.",
            "Timeouts for transactions, max_slot_wal_keep_size for slots, an alert on the age of the oldest xmin.",
        ),
        FindingId::RedisClusterDown => make(
            "critical: cluster_state is fail, or slots are served by no primary",
            None,
            "A primary is gone and no replica has taken its place. By default all of the cluster then refuses every key \
             (CLUSTERDOWN), not only those of the lost slots, and what it was to keep away from the database goes there.",
            "Start the lost primary, or have a replica of it take over (CLUSTER FAILOVER TAKEOVER, asked of the replica); \
             redis-cli --cluster check HOST:PORT names the slots that nobody serves.",
            "A replica for each primary, on another host; cluster-require-full-coverage no where a part of the keys is better \
             than none; an alert on cluster_state.",
        ),
        FindingId::RedisNearLimit => make(
            "warning from 85 %, critical from 95 % of maxclients, or of maxmemory where nothing may be evicted",
            None,
            "A Redis that has no client or no memory left refuses connections or writes, and what it was to keep away from \
             the database goes there.",
            "See who is connected (CLIENT LIST) and which group grows (stanch redis bigkeys); raise the limit for now.",
            "A maxmemory policy that evicts for what is a cache; pools of clients with a bound; alerts at 85 %.",
        ),
        FindingId::RedisExpiryCliff => make(
            "warning: 1,000 or more keys of one group, a tenth of those that expire, do so within the same ten seconds, or \
             so many of all groups together; critical where that is within five minutes",
            None,
            "They were written together with one lifetime, by a warm-up or a deployment. When it ends all of them are \
             rebuilt from the database at once, each by everybody who misses it.",
            "Before it comes: write them again with different lifetimes, or extend some (EXPIRE with a random part). While \
             it happens: hold the callers back, let one of them fill the cache.",
            "A lifetime with a random part of a fifth (stanch redis expiry gives base and spread); one rebuild at a time; \
             stale copies while it runs.",
        ),
        FindingId::RedisLockTtl => make(
            "critical: a lock key of a group of cached keys has no TTL; warning: it lives shorter than a rebuild takes",
            None,
            "A lock that never expires stays when its holder dies: nobody rebuilds what it guards any more. One that is too \
             short lets a second rebuild begin while the first runs.",
            "Without TTL: find its holder; if it is gone, delete the lock or give it a TTL (EXPIRE).",
            "SET key value NX PX with more than the slowest rebuild, and a release that checks the value.",
        ),
        FindingId::RedisHotKey => make(
            "info: an LFU counter of 140 or more, about a hundred thousand accesses in some minutes",
            None,
            "One key takes a large part of what the server does. One core serves it, whatever is added beside it.",
            "Keep it in the clients' memory for a second, or spread it over several keys.",
            "Client-side caching, replicas for reads, a smaller value.",
        ),
        FindingId::QueueBacklog => make(
            "warning: a queue over 80 % of its bound, older than its limit, without a live worker (unless it is paused), or with \
             overdue jobs; critical at its bound and from three times its age limit on. Where no limit is set, five minutes \
             stand for it, and only a queue without a worker is critical by them",
            None,
            "Jobs come faster than they are done, or nobody does them. Age tells more than depth: a short queue that \
             doesn't move is worse than a long one that does.",
            "Are there workers, and do they take jobs (stanch redis queues --sample 10s)? Stop what is not urgent; add \
             workers only if what they wait for can take more.",
            "A bound and an age for each queue in stanch.yaml; alerts on the age; a retry policy with backoff.",
        ),
        FindingId::QueueDeadLetters => make(
            "warning: over 3 times as many dead jobs as are normal for the queue (stanch.yaml)",
            None,
            "Jobs fail for good. What they were to do isn't done, and nobody is told.",
            "Look at the newest ones with the library's own tool: one cause, or many?",
            "An owner for dead jobs, and a number of them that is normal.",
        ),
        FindingId::SettingsNoIdleTxTimeout => make(
            "info: idle_in_transaction_session_timeout is off for some session",
            None,
            "A session that forgot its transaction keeps slot and locks until somebody ends it.",
            "Nothing now.",
            "ALTER SYSTEM SET idle_in_transaction_session_timeout = '60s'; SELECT pg_reload_conf();",
        ),
        FindingId::SettingsNoStatementTimeout => make(
            "info: statement_timeout is off for some session",
            None,
            "A statement runs on after its caller has given up.",
            "Nothing now.",
            "ALTER ROLE <application> SET statement_timeout = '30s'; not for the whole server: dumps need longer.",
        ),
        FindingId::SettingsLogLockWaitsOff => make(
            "info: log_lock_waits is off",
            None,
            "Lock waits leave no trace in the server's log.",
            "ALTER SYSTEM SET log_lock_waits = on; SELECT pg_reload_conf(); it takes effect at once.",
            "Keep it on.",
        ),
    }
}

/// The built-in book that walks through what was found.
pub fn runbook(id: FindingId) -> Option<&'static str> {
    match id {
        FindingId::ConnNearLimit
        | FindingId::ConnExhausted
        | FindingId::ConnOwnLimit
        | FindingId::ConnOversizedPools => Some("connection-exhaustion"),
        FindingId::ConnLeak | FindingId::TxIdleInTransaction => Some("idle-in-transaction"),
        FindingId::ConnChurn => Some("pool-timeout-mismatch"),
        FindingId::TxLong => Some("long-transaction"),
        FindingId::LockCycle | FindingId::LockDeadlocks => Some("deadlock"),
        FindingId::LockChain | FindingId::LockQueueBehindDdl | FindingId::LockPreparedRoot => {
            Some("lock-pileup")
        }
        FindingId::QueryStorm | FindingId::RedisExpiryCliff | FindingId::RedisLockTtl => {
            Some("cache-stampede")
        }
        FindingId::QueueBacklog | FindingId::QueueDeadLetters => Some("queue-backlog"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finding_is_told_whole() {
        for id in FindingId::ALL {
            let entry = entry(*id);
            for text in [entry.condition, entry.meaning, entry.relief, entry.cure] {
                assert!(text.len() > 10, "{id}");
            }
            assert_eq!(FindingId::parse(id.name()), Some(*id));
        }
    }
}
