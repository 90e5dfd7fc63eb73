//! Heavyweight locks as `pg_locks` shows them, and the server's own word on who blocks whom.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::model::session::word_enum;
use crate::model::{Oid, Pid, Timestamp, Xid};

word_enum! {
    /// Lock modes, weakest first, and what doesn't conflict by mode (`SIReadLock`).
    LockMode {
        AccessShare = "AccessShareLock",
        RowShare = "RowShareLock",
        RowExclusive = "RowExclusiveLock",
        ShareUpdateExclusive = "ShareUpdateExclusiveLock",
        Share = "ShareLock",
        ShareRowExclusive = "ShareRowExclusiveLock",
        Exclusive = "ExclusiveLock",
        AccessExclusive = "AccessExclusiveLock",
        SiRead = "SIReadLock",
    }
}

impl LockMode {
    /// The modes that conflict by the table, weakest first.
    pub const ALL: [Self; 8] = [
        Self::AccessShare,
        Self::RowShare,
        Self::RowExclusive,
        Self::ShareUpdateExclusive,
        Self::Share,
        Self::ShareRowExclusive,
        Self::Exclusive,
        Self::AccessExclusive,
    ];

    /// Position in the conflict table; `None` for modes that conflict with nothing here.
    pub fn strength(&self) -> Option<usize> {
        match self {
            Self::AccessShare => Some(0),
            Self::RowShare => Some(1),
            Self::RowExclusive => Some(2),
            Self::ShareUpdateExclusive => Some(3),
            Self::Share => Some(4),
            Self::ShareRowExclusive => Some(5),
            Self::Exclusive => Some(6),
            Self::AccessExclusive => Some(7),
            Self::SiRead | Self::Other(_) => None,
        }
    }

    /// Whether two holders exclude each other (PostgreSQL manual, table 13.2; the same in 12 to 18).
    pub fn conflicts_with(&self, other: &Self) -> bool {
        // Row = mode, bit n = conflicts with the mode of strength n.
        const TABLE: [u8; 8] = [
            0b1000_0000,
            0b1100_0000,
            0b1111_0000,
            0b1111_1000,
            0b1110_1100,
            0b1111_1100,
            0b1111_1110,
            0b1111_1111,
        ];
        match (self.strength(), other.strength()) {
            (Some(a), Some(b)) => TABLE[a] & (1 << b) != 0,
            _ => false,
        }
    }

    /// The mode without the word `Lock`, as people say it.
    pub fn short(&self) -> &str {
        let word = self.as_str();
        word.strip_suffix("Lock").unwrap_or(word)
    }
}

/// What is locked: the identity of a lock, equal for all who want the same thing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "locktype", rename_all = "snake_case")]
pub enum LockTag {
    Relation {
        database: Oid,
        relation: Oid,
    },
    Extend {
        database: Oid,
        relation: Oid,
    },
    Page {
        database: Oid,
        relation: Oid,
        page: i32,
    },
    Tuple {
        database: Oid,
        relation: Oid,
        page: i32,
        tuple: i16,
    },
    Transaction {
        xid: u32,
    },
    VirtualXid {
        vxid: String,
    },
    Object {
        database: Oid,
        classid: Oid,
        objid: Oid,
        objsubid: i16,
    },
    /// One bigint key (`objsubid` 1: its halves in `classid` and `objid`), or two int4 keys (`objsubid` 2).
    Advisory {
        database: Oid,
        classid: Oid,
        objid: Oid,
        objsubid: i16,
    },
    /// `frozenid`, `spectoken`, `applytransaction`, and what later versions add.
    Other {
        locktype_name: String,
        fields: String,
    },
}

impl LockTag {
    /// PostgreSQL's name of the lock type.
    pub fn locktype(&self) -> &str {
        match self {
            Self::Relation { .. } => "relation",
            Self::Extend { .. } => "extend",
            Self::Page { .. } => "page",
            Self::Tuple { .. } => "tuple",
            Self::Transaction { .. } => "transactionid",
            Self::VirtualXid { .. } => "virtualxid",
            Self::Object { .. } => "object",
            Self::Advisory { .. } => "advisory",
            Self::Other { locktype_name, .. } => locktype_name,
        }
    }

    /// The relation it is on or in, with its database (0: shared).
    pub fn relation(&self) -> Option<(Oid, Oid)> {
        match self {
            Self::Relation { database, relation }
            | Self::Extend { database, relation }
            | Self::Page {
                database, relation, ..
            }
            | Self::Tuple {
                database, relation, ..
            } => Some((*database, *relation)),
            _ => None,
        }
    }

    pub fn database(&self) -> Option<Oid> {
        match self {
            Self::Object { database, .. } | Self::Advisory { database, .. } => Some(*database),
            _ => self.relation().map(|(database, _)| database),
        }
    }

    pub fn xid(&self) -> Option<Xid> {
        match self {
            Self::Transaction { xid } => Some(Xid(*xid)),
            _ => None,
        }
    }
}

/// One row of `pg_locks`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lock {
    pub tag: LockTag,
    /// `None`: a prepared transaction holds it.
    pub pid: Option<Pid>,
    /// The holder's virtual transaction: it ties a prepared transaction's rows together.
    pub vxid: String,
    pub mode: LockMode,
    pub granted: bool,
    /// PostgreSQL 14+, only while waiting, and for a moment not even then.
    pub waitstart: Option<Timestamp>,
}

/// `pg_blocking_pids(pid)`; 0 stands for a prepared transaction, a leader is repeated for each parallel worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlockedBy {
    pub pid: Pid,
    pub blockers: Vec<Pid>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicts_are_symmetric_and_as_the_manual_says() {
        let count: Vec<usize> = LockMode::ALL
            .iter()
            .map(|a| LockMode::ALL.iter().filter(|b| a.conflicts_with(b)).count())
            .collect();
        assert_eq!(count, [1, 2, 4, 5, 5, 6, 7, 8]);
        for a in &LockMode::ALL {
            for b in &LockMode::ALL {
                assert_eq!(a.conflicts_with(b), b.conflicts_with(a), "{a:?} {b:?}");
            }
        }
        assert!(!LockMode::Share.conflicts_with(&LockMode::Share));
        assert!(LockMode::RowExclusive.conflicts_with(&LockMode::Share));
        assert!(!LockMode::RowExclusive.conflicts_with(&LockMode::RowExclusive));
        assert!(!LockMode::SiRead.conflicts_with(&LockMode::AccessExclusive));
    }

    #[test]
    fn unknown_words_survive() {
        let mode: LockMode = serde_json::from_str("\"NewLock\"").expect("a mode");
        assert_eq!(mode, LockMode::Other("NewLock".into()));
        assert_eq!(serde_json::to_string(&mode).expect("json"), "\"NewLock\"");
    }
}
