//! Rows off the wire → model. Nothing is assumed to be there: any column may be NULL, any text in any encoding.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};

use super::encoding::{Encoding, Encodings};
use crate::model::{
    BackendId, BackendType, BlockedBy, Client, Database, Lock, LockMode, LockTag, Login, Oid,
    Override, Pid, PreparedXact, Relation, Role, Session, SessionState, Setting, Slot, Timestamp,
    WaitEvent, Xid,
};

/// A row that isn't what the query promises: which query and which column.
#[derive(Debug, thiserror::Error)]
#[error("query {query}: {what}")]
pub struct RowError {
    pub(super) query: &'static str,
    pub(super) what: String,
}

/// Bytes of a text column, as they came.
struct Raw<'a>(&'a [u8]);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(raw))
    }

    fn accepts(ty: &Type) -> bool {
        matches!(
            *ty,
            Type::TEXT | Type::VARCHAR | Type::NAME | Type::BPCHAR | Type::UNKNOWN | Type::CHAR
        )
    }
}

/// One row with the names that its query promises.
pub struct Cells<'a> {
    query: &'static str,
    row: &'a Row,
    /// Of the database that was connected to.
    encoding: Encoding,
}

impl<'a> Cells<'a> {
    pub(super) fn new(query: &'static str, row: &'a Row, encoding: Encoding) -> Self {
        Self {
            query,
            row,
            encoding,
        }
    }

    fn error(&self, column: &str, what: impl std::fmt::Display) -> RowError {
        RowError {
            query: self.query,
            what: format!("column {column}: {what}"),
        }
    }

    /// The value, `None` for NULL.
    ///
    /// # Errors
    /// When there is no such column or its type is another.
    pub fn opt<'b, T: FromSql<'b>>(&'b self, column: &str) -> Result<Option<T>, RowError> {
        self.row
            .try_get(column)
            .map_err(|e| self.error(column, super::classify::chain(&e)))
    }

    /// The value of a column that identifies the row.
    ///
    /// # Errors
    /// As `opt`, and when it is NULL.
    pub fn must<'b, T: FromSql<'b>>(&'b self, column: &'static str) -> Result<T, RowError> {
        self.opt(column)?
            .ok_or_else(|| self.error(column, "NULL where a value identifies the row"))
    }

    /// The bytes of a text, `None` for NULL.
    ///
    /// # Errors
    /// As `opt`.
    pub fn bytes(&self, column: &str) -> Result<Option<&[u8]>, RowError> {
        Ok(self.opt::<Raw<'_>>(column)?.map(|text| text.0))
    }

    /// A name that all databases share, a word of the server's, or a text of unknown encoding.
    pub fn text(&self, column: &str) -> Result<Option<String>, RowError> {
        let bytes = self.bytes(column)?;
        Ok(bytes.map(|bytes| self.encoding.decode_shared(bytes)))
    }

    pub fn must_text(&self, column: &'static str) -> Result<String, RowError> {
        Ok(self.encoding.decode_shared(self.must::<Raw<'_>>(column)?.0))
    }

    /// A name in a catalog of this database alone.
    fn must_own_text(&self, column: &'static str) -> Result<String, RowError> {
        Ok(self.encoding.decode(self.must::<Raw<'_>>(column)?.0))
    }

    pub fn time(&self, column: &str) -> Result<Option<Timestamp>, RowError> {
        Ok(self.opt::<DateTime<Utc>>(column)?.map(Timestamp::new))
    }

    fn xid(&self, column: &'static str) -> Result<Option<Xid>, RowError> {
        let Some(text) = self.text(column)? else {
            return Ok(None);
        };
        text.parse()
            .map(|xid| Some(Xid(xid)))
            .map_err(|e| self.error(column, e))
    }

    fn oid(&self, column: &'static str) -> Result<Option<Oid>, RowError> {
        Ok(self.opt::<u32>(column)?.filter(|oid| *oid != 0).map(Oid))
    }

    fn oid_or_zero(&self, column: &'static str) -> Result<Oid, RowError> {
        Ok(Oid(self.opt::<u32>(column)?.unwrap_or(0)))
    }

    fn pid(&self, column: &'static str) -> Result<Option<Pid>, RowError> {
        Ok(self.opt::<i32>(column)?.map(Pid))
    }

    fn flag(&self, column: &'static str) -> Result<bool, RowError> {
        Ok(self.opt(column)?.unwrap_or(false))
    }

    /// PostgreSQL writes "no limit" as -1.
    fn limit(&self, column: &'static str) -> Result<Option<u32>, RowError> {
        Ok(self
            .opt::<i32>(column)?
            .and_then(|limit| u32::try_from(limit).ok()))
    }
}

/// Every row through one decoder; the first that can't be read fails the section.
///
/// # Errors
/// As the decoder.
pub fn decode<T>(
    query: &'static str,
    rows: &[Row],
    encoding: Encoding,
    one: impl Fn(&Cells<'_>) -> Result<T, RowError>,
) -> Result<Vec<T>, RowError> {
    rows.iter()
        .map(|row| one(&Cells::new(query, row, encoding)))
        .collect()
}

/// Names by oid, and which roles are superusers.
#[derive(Default)]
pub struct Names {
    pub databases: BTreeMap<Oid, String>,
    pub roles: BTreeMap<Oid, (String, bool)>,
}

impl Names {
    pub fn new(databases: &[Database], roles: &[Role]) -> Self {
        Self {
            databases: databases.iter().map(|d| (d.oid, d.name.clone())).collect(),
            roles: roles
                .iter()
                .map(|r| (r.oid, (r.name.clone(), r.superuser)))
                .collect(),
        }
    }

    fn database(&self, oid: Option<Oid>) -> Option<String> {
        self.databases.get(&oid?).cloned()
    }

    fn role(&self, oid: Option<Oid>) -> Option<&(String, bool)> {
        self.roles.get(&oid?)
    }
}

/// `query_size` is `track_activity_query_size` in bytes: the server keeps one less.
pub fn session(
    c: &Cells<'_>,
    query_size: Option<i64>,
    encodings: &Encodings,
) -> Result<Session, RowError> {
    let datid = c.oid("datid")?;
    let query = c.bytes("query")?;
    // The cut never splits a character, so up to three bytes more may be missing.
    let cut_from = query_size.and_then(|size| usize::try_from(size - 4).ok());
    let backend_type = c
        .text("backend_type")?
        .map(|word| BackendType::parse(&word));
    let wait = match (c.text("wait_event_type")?, c.text("wait_event")?) {
        (Some(class), Some(event)) => Some(WaitEvent { class, event }),
        _ => None,
    };
    Ok(Session {
        id: BackendId {
            pid: Pid(c.must("pid")?),
            backend_start: c.time("backend_start")?,
        },
        leader_pid: c.pid("leader_pid")?,
        datid,
        database: None,
        usesysid: c.oid("usesysid")?,
        user: None,
        superuser: None,
        application_name: c.text("application_name")?.filter(|name| !name.is_empty()),
        client: Client {
            addr: c.text("client_addr")?,
            // -1 is PostgreSQL's word for a unix socket.
            port: c.opt::<i32>("client_port")?.filter(|port| *port >= 0),
        },
        // Every row that may be seen has a type (PostgreSQL 10+), so none means: not for this login.
        hidden: backend_type.is_none(),
        backend_type,
        state: c.text("state")?.map(|word| SessionState::parse(&word)),
        wait,
        xact_start: c.time("xact_start")?,
        query_start: c.time("query_start")?,
        state_change: c.time("state_change")?,
        backend_xid: c.xid("backend_xid")?,
        backend_xmin: c.xid("backend_xmin")?,
        xmin_age: c.opt("xmin_age")?,
        xid_age: c.opt("xid_age")?,
        query_truncated: matches!((&query, cut_from), (Some(q), Some(from)) if q.len() >= from),
        query: query
            .map(|bytes| encodings.decode(datid, bytes))
            .filter(|text| !text.is_empty()),
    })
}

/// Fills in what other sections know. A hidden row has `<insufficient privilege>` for a text, which is nobody's query.
pub fn name_sessions(sessions: &mut [Session], names: &Names) {
    for session in sessions {
        session.database = names.database(session.datid);
        let role = names.role(session.usesysid);
        session.user = role.map(|(name, _)| name.clone());
        session.superuser = role.map(|(_, superuser)| *superuser);
        if session.hidden {
            session.query = None;
            session.query_truncated = false;
        }
    }
}

pub fn lock(c: &Cells<'_>) -> Result<Lock, RowError> {
    Ok(Lock {
        tag: lock_tag(c)?,
        pid: c.pid("pid")?,
        vxid: c.text("virtualtransaction")?.unwrap_or_default(),
        mode: LockMode::parse(&c.text("mode")?.unwrap_or_default()),
        granted: c.flag("granted")?,
        waitstart: c.time("waitstart")?,
    })
}

fn lock_tag(c: &Cells<'_>) -> Result<LockTag, RowError> {
    let locktype = c.text("locktype")?.unwrap_or_default();
    let database = c.oid_or_zero("database")?;
    let number = |column| c.opt::<i32>(column).map(|n| n.unwrap_or(0));
    let small = |column| c.opt::<i16>(column).map(|n| n.unwrap_or(0));
    Ok(match locktype.as_str() {
        "relation" => LockTag::Relation {
            database,
            relation: c.oid_or_zero("relation")?,
        },
        "extend" => LockTag::Extend {
            database,
            relation: c.oid_or_zero("relation")?,
        },
        "page" => LockTag::Page {
            database,
            relation: c.oid_or_zero("relation")?,
            page: number("page")?,
        },
        "tuple" => LockTag::Tuple {
            database,
            relation: c.oid_or_zero("relation")?,
            page: number("page")?,
            tuple: small("tuple")?,
        },
        "transactionid" => LockTag::Transaction {
            xid: c.xid("transactionid")?.map_or(0, |xid| xid.0),
        },
        "virtualxid" => LockTag::VirtualXid {
            vxid: c.text("virtualxid")?.unwrap_or_default(),
        },
        "object" => LockTag::Object {
            database,
            classid: c.oid_or_zero("classid")?,
            objid: c.oid_or_zero("objid")?,
            objsubid: small("objsubid")?,
        },
        "advisory" => LockTag::Advisory {
            database,
            classid: c.oid_or_zero("classid")?,
            objid: c.oid_or_zero("objid")?,
            objsubid: small("objsubid")?,
        },
        _ => {
            let fields = format!(
                "{database}/{}/{}/{}/{}/{}",
                c.oid_or_zero("relation")?,
                number("page")?,
                small("tuple")?,
                c.text("transactionid")?.unwrap_or_default(),
                c.oid_or_zero("objid")?,
            );
            LockTag::Other {
                locktype_name: locktype,
                fields,
            }
        }
    })
}

pub fn blocked_by(c: &Cells<'_>) -> Result<BlockedBy, RowError> {
    let blockers = c.opt::<Vec<i32>>("blockers")?.unwrap_or_default();
    Ok(BlockedBy {
        pid: Pid(c.must("pid")?),
        blockers: blockers.into_iter().map(Pid).collect(),
    })
}

pub fn database(c: &Cells<'_>) -> Result<Database, RowError> {
    Ok(Database {
        oid: Oid(c.must("oid")?),
        name: c.must_text("name")?,
        encoding: c.text("encoding")?.unwrap_or_default(),
        connection_limit: c.limit("connection_limit")?,
        backends: c.opt("backends")?.unwrap_or(0),
        deadlocks: c.opt("deadlocks")?,
        stats_reset: c.time("stats_reset")?,
    })
}

pub fn role(c: &Cells<'_>) -> Result<Role, RowError> {
    Ok(Role {
        oid: Oid(c.must("oid")?),
        name: c.must_text("name")?,
        superuser: c.flag("superuser")?,
        connection_limit: c.limit("connection_limit")?,
    })
}

pub fn relation(c: &Cells<'_>) -> Result<Relation, RowError> {
    Ok(Relation {
        oid: Oid(c.must("oid")?),
        schema: c.must_own_text("schema")?,
        name: c.must_own_text("name")?,
    })
}

pub fn prepared(
    c: &Cells<'_>,
    names: &Names,
    encodings: &Encodings,
) -> Result<PreparedXact, RowError> {
    let datid = c.oid_or_zero("dbid")?;
    Ok(PreparedXact {
        xid: c.xid("xid")?.ok_or_else(|| c.error("xid", "NULL"))?,
        xid_age: c.opt("xid_age")?.unwrap_or(0),
        gid: encodings.decode(Some(datid), c.must::<Raw<'_>>("gid")?.0),
        prepared: c
            .time("prepared")?
            .ok_or_else(|| c.error("prepared", "NULL"))?,
        owner: names.role(c.oid("ownerid")?).map(|(name, _)| name.clone()),
        database: names.database(Some(datid)),
        datid,
    })
}

pub fn setting(c: &Cells<'_>) -> Result<Setting, RowError> {
    Ok(Setting {
        name: c.must_text("name")?,
        value: c.text("value")?.unwrap_or_default(),
        unit: c.text("unit")?,
        boot_value: c.text("boot_value")?,
        source: c.text("source")?.filter(|source| source != "session"),
        pending_restart: c.flag("pending_restart")?,
    })
}

/// `setconfig` holds `name=value`.
pub fn setting_override(c: &Cells<'_>) -> Result<Override, RowError> {
    let config = c.must_text("config")?;
    let (name, value) = config.split_once('=').unwrap_or((&config, ""));
    Ok(Override {
        datid: c.oid("datid")?,
        roleid: c.oid("roleid")?,
        name: name.to_owned(),
        value: value.to_owned(),
    })
}

pub fn slot(c: &Cells<'_>) -> Result<Slot, RowError> {
    Ok(Slot {
        name: c.must_text("name")?,
        slot_type: c.text("slot_type")?.unwrap_or_default(),
        datid: c.oid("datid")?,
        active: c.flag("active")?,
        active_pid: c.pid("active_pid")?,
        xmin: c.xid("xmin")?,
        xmin_age: c.opt("xmin_age")?,
        catalog_xmin: c.xid("catalog_xmin")?,
        catalog_xmin_age: c.opt("catalog_xmin_age")?,
    })
}

pub fn login(c: &Cells<'_>) -> Result<Login, RowError> {
    Ok(Login {
        user: c.must_text("user")?,
        superuser: c.flag("superuser")?,
        replication: c.flag("replication")?,
        read_all_stats: c.flag("read_all_stats")?,
        read_all_settings: c.flag("read_all_settings")?,
        signal_backend: c.flag("signal_backend")?,
        use_reserved_connections: c.opt("use_reserved_connections")?,
        signal_autovacuum: c.opt("signal_autovacuum")?,
    })
}
