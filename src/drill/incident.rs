//! The incidents by name: what happens, how their server is set up, what triage says of them.

use std::time::Duration;

use super::server::ServerOptions;
use crate::model::FindingId;

/// What can be practised on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incident {
    Exhaustion,
    Leak,
    LongTransaction,
    LockChain,
    LockQueue,
    Prepared,
    Deadlock,
    Storm,
    PoolTimeouts,
}

impl Incident {
    pub const ALL: [Self; 9] = [
        Self::Exhaustion,
        Self::Leak,
        Self::LongTransaction,
        Self::LockChain,
        Self::LockQueue,
        Self::Prepared,
        Self::Deadlock,
        Self::Storm,
        Self::PoolTimeouts,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Exhaustion => "exhaustion",
            Self::Leak => "leak",
            Self::LongTransaction => "long-transaction",
            Self::LockChain => "lock-chain",
            Self::LockQueue => "lock-queue",
            Self::Prepared => "prepared",
            Self::Deadlock => "deadlock",
            Self::Storm => "storm",
            Self::PoolTimeouts => "pool-timeouts",
        }
    }

    pub const fn summary(self) -> &'static str {
        match self {
            Self::Exhaustion => "every slot that applications may use is taken by idle pools",
            Self::Leak => "sessions idle in transaction fill the slots (seen as such after 10 s)",
            Self::LongTransaction => {
                "a batch that updates everything in one transaction (long after 30 s)"
            }
            Self::LockChain => "updates wait behind updates behind a forgotten console",
            Self::LockQueue => "an ALTER TABLE waits for a reader, and all readers wait behind it",
            Self::Prepared => "a prepared transaction that nobody remembers holds a row",
            Self::Deadlock => "two sessions wait for each other, and deadlock_timeout is an hour",
            Self::Storm => "the same expensive statement in two dozen sessions at once",
            Self::PoolTimeouts => {
                "a balancer drops silent connections under a pool that keeps them (seen as such after 2 min)"
            }
        }
    }

    /// What triage says once the scene is ripe.
    pub const fn finding(self) -> FindingId {
        match self {
            Self::Exhaustion => FindingId::ConnExhausted,
            Self::Leak => FindingId::ConnLeak,
            Self::LongTransaction => FindingId::TxLong,
            Self::LockChain => FindingId::LockChain,
            Self::LockQueue => FindingId::LockQueueBehindDdl,
            Self::Prepared => FindingId::LockPreparedRoot,
            Self::Deadlock => FindingId::LockCycle,
            Self::Storm => FindingId::QueryStorm,
            Self::PoolTimeouts => FindingId::ConnChurn,
        }
    }

    /// After so long it must be seen as what it is: a transaction is long after 30 s, and whether sessions are new because
    /// the server is can be told after two minutes.
    pub const fn ripe_within(self) -> Duration {
        match self {
            Self::PoolTimeouts => Duration::from_secs(170),
            _ => Duration::from_secs(60),
        }
    }

    /// How its server is set up.
    pub fn server_options(self) -> ServerOptions {
        let settings = match self {
            // Three are for superusers: twenty for applications.
            Self::Exhaustion | Self::Leak => vec![("max_connections", "23".into())],
            Self::Prepared => vec![
                ("max_connections", "50".into()),
                ("max_prepared_transactions", "5".into()),
            ],
            Self::Deadlock => vec![
                ("max_connections", "50".into()),
                ("deadlock_timeout", "1h".into()),
            ],
            Self::LongTransaction
            | Self::LockChain
            | Self::LockQueue
            | Self::Storm
            | Self::PoolTimeouts => {
                vec![("max_connections", "50".into())]
            }
        };
        ServerOptions {
            settings,
            ..ServerOptions::default()
        }
    }
}
