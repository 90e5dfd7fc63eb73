//! One round of reads: what every report is a function of, and what `--save` writes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::{
    BlockedBy, Database, Link, Lock, Oid, Override, Part, Pid, Pooler, PreparedXact, Relation,
    Role, Section, Session, Setting, Slot, Target, Timestamp,
};

/// Format name and version on disk. The number rises with any change that an older reader would misread.
pub const SNAPSHOT_FORMAT: &str = "stanch.snapshot/1";

/// Whose clock `taken_at` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    Server,
    /// No connection was had: the time of the attempt, by the machine that tried.
    Client,
}

/// Which limit refused a connection, told by SQLSTATE 53300 and the routine that raised it (never by its text, which
/// is localised).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlotLimit {
    /// Every slot is taken, the reserved ones too.
    Nothing,
    /// Only slots reserved for superusers (or `pg_use_reserved_connections`, 16+) are left.
    Reserved,
    /// `ALTER ROLE … CONNECTION LIMIT`.
    Role,
    /// `ALTER DATABASE … CONNECTION LIMIT`.
    Database,
    /// A pooler's own limit, by SQLSTATE 08P01.
    Pooler,
    /// 53300 from a routine that isn't known.
    Unknown,
}

/// A login that was refused for want of a slot, in this round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotRefusal {
    pub limit: SlotLimit,
    pub user: String,
    pub database: String,
    /// So long before the round of reads (or before it was given up), in ms.
    pub ms_before: u64,
}

impl SlotRefusal {
    /// Recent enough to tell of the slots that are taken now.
    pub fn is_fresh(&self) -> bool {
        const FRESH_MS: u64 = 1600;
        self.ms_before < FRESH_MS
    }
}

/// Whether what strangers wrote was reduced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RedactionLevel {
    #[default]
    Redacted,
    /// `--unredacted`: values in statements and names are as they were; passwords aren't kept even so.
    None,
}

impl RedactionLevel {
    fn is_redacted(&self) -> bool {
        *self == Self::Redacted
    }
}

/// What was reduced before anything was shown or saved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redaction {
    /// What the rule is, in words.
    pub rule: String,
    #[serde(default, skip_serializing_if = "RedactionLevel::is_redacted")]
    pub level: RedactionLevel,
    /// Statements of which only the command tag is left.
    pub statements_reduced: u32,
    /// Values that were taken out of statements; files of older versions had none taken out.
    #[serde(default, skip_serializing_if = "is_none")]
    pub values_masked: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_none(count: &u32) -> bool {
    *count == 0
}

/// Facts of the server and of the slots it has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// `server_version_num`, as 150018.
    pub version_num: u32,
    /// The process that answered.
    pub own_pid: Pid,
    /// The database this round was read in: only its relations have names.
    pub datid: Option<Oid>,
    pub started_at: Option<Timestamp>,
    pub max_connections: u32,
    pub superuser_reserved: u32,
    /// `reserved_connections`; 0 before PostgreSQL 16, which has none.
    pub reserved: u32,
    /// Slots that a provider keeps for itself, where it says so (`rds.rds_superuser_reserved_connections`).
    pub provider_reserved: Option<u32>,
    /// `deadlock_timeout`, in ms.
    pub deadlock_timeout_ms: Option<u64>,
}

/// What the login that read this may see and do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Login {
    pub user: String,
    pub superuser: bool,
    pub replication: bool,
    pub read_all_stats: bool,
    pub read_all_settings: bool,
    pub signal_backend: bool,
    /// `pg_use_reserved_connections`; `None` before PostgreSQL 16.
    pub use_reserved_connections: Option<bool>,
    /// `pg_signal_autovacuum_worker`; `None` before PostgreSQL 18.
    pub signal_autovacuum: Option<bool>,
}

/// One round of reads of one server, redacted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    pub format: String,
    pub taken_at: Timestamp,
    pub clock: Clock,
    pub redaction: Redaction,
    pub target: Target,
    /// How the connection was had; unknown in files of older versions, and where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Link>,
    pub refusals: Vec<SlotRefusal>,
    pub server: Section<Server>,
    pub login: Section<Login>,
    pub activity: Section<Vec<Session>>,
    pub databases: Section<Vec<Database>>,
    pub roles: Section<Vec<Role>>,
    pub locks: Section<Vec<Lock>>,
    pub blocking: Section<Vec<BlockedBy>>,
    pub relations: Section<Vec<Relation>>,
    pub prepared: Section<Vec<PreparedXact>>,
    pub settings: Section<Vec<Setting>>,
    pub overrides: Section<Vec<Override>>,
    pub slots: Section<Vec<Slot>>,
    /// The look at the Redis in front that was taken with it, as triage's report of it has it; none was asked for: absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redis: Option<Section<Value>>,
    /// The pooler in front, where the target names its console.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pooler: Option<Section<Pooler>>,
    /// What each built-in query gave, by its name: kept by what saves, for `query run --from`; elsewhere none are.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub queries: BTreeMap<String, Section<QueryRows>>,
}

/// The rows of a built-in query, and its columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueryRows {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Value>>,
}

impl Snapshot {
    /// What became of a part: its status and, where there is no value, why.
    pub fn status(&self, part: Part) -> (&'static str, Option<String>) {
        fn of<T>(section: &Section<T>) -> (&'static str, Option<String>) {
            (section.status(), section.why())
        }
        match part {
            Part::Server => of(&self.server),
            Part::Login => of(&self.login),
            Part::Activity => of(&self.activity),
            Part::Databases => of(&self.databases),
            Part::Roles => of(&self.roles),
            Part::Locks => of(&self.locks),
            Part::Blocking => of(&self.blocking),
            Part::Relations => of(&self.relations),
            Part::Prepared => of(&self.prepared),
            Part::Settings => of(&self.settings),
            Part::Overrides => of(&self.overrides),
            Part::Slots => of(&self.slots),
        }
    }

    /// What is known when no connection was had: where it was tried, and which logins were refused.
    pub fn without_connection(
        taken_at: Timestamp,
        target: Target,
        refusals: Vec<SlotRefusal>,
        redaction: Redaction,
    ) -> Self {
        const WHY: &str = "no connection";
        Self {
            format: SNAPSHOT_FORMAT.into(),
            taken_at,
            clock: Clock::Client,
            redaction,
            target,
            link: None,
            refusals,
            server: Section::skipped(WHY),
            login: Section::skipped(WHY),
            activity: Section::skipped(WHY),
            databases: Section::skipped(WHY),
            roles: Section::skipped(WHY),
            locks: Section::skipped(WHY),
            blocking: Section::skipped(WHY),
            relations: Section::skipped(WHY),
            prepared: Section::skipped(WHY),
            settings: Section::skipped(WHY),
            overrides: Section::skipped(WHY),
            slots: Section::skipped(WHY),
            redis: None,
            pooler: None,
            queries: BTreeMap::new(),
        }
    }
}
