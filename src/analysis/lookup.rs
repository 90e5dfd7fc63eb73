//! Names and sessions of a snapshot by their ids, made once a report.

use std::collections::HashMap;

use crate::model::{Lock, LockMode, LockTag, Oid, Pid, PreparedXact, Session, Snapshot, Xid};

/// Borrowed indexes over one snapshot.
pub struct Lookup<'a> {
    pub snapshot: &'a Snapshot,
    sessions: HashMap<Pid, &'a Session>,
    relations: HashMap<Oid, (&'a str, &'a str)>,
    databases: HashMap<Oid, &'a str>,
    prepared: HashMap<&'a str, Xid>,
}

impl<'a> Lookup<'a> {
    pub fn new(snapshot: &'a Snapshot) -> Self {
        Self {
            snapshot,
            sessions: snapshot
                .activity
                .rows()
                .iter()
                .map(|s| (s.pid(), s))
                .collect(),
            relations: snapshot
                .relations
                .rows()
                .iter()
                .map(|r| (r.oid, (r.schema.as_str(), r.name.as_str())))
                .collect(),
            prepared: prepared_xids(snapshot),
            databases: snapshot
                .databases
                .rows()
                .iter()
                .map(|d| (d.oid, d.name.as_str()))
                .collect(),
        }
    }

    pub fn session(&self, pid: Pid) -> Option<&'a Session> {
        self.sessions.get(&pid).copied()
    }

    /// The transaction behind a lock without a pid.
    pub fn prepared_xid(&self, lock: &Lock) -> Option<Xid> {
        self.prepared.get(lock.vxid.as_str()).copied()
    }

    /// A prepared transaction by its id.
    pub fn prepared(&self, xid: Xid) -> Option<&'a PreparedXact> {
        self.snapshot.prepared.rows().iter().find(|p| p.xid == xid)
    }

    /// A worker of a parallel query stands for its leader.
    pub fn leader(&self, pid: Pid) -> Pid {
        self.session(pid).and_then(|s| s.leader_pid).unwrap_or(pid)
    }

    /// The database's name, or its oid where no name is known; 0 is shared by all.
    pub fn database(&self, oid: Oid) -> Option<String> {
        match oid {
            Oid(0) => None,
            oid => Some(
                self.databases
                    .get(&oid)
                    .map_or_else(|| oid.to_string(), |name| (*name).to_owned()),
            ),
        }
    }

    /// `schema.name` for a relation of this database or a shared one, `database:oid` for one of another, where the
    /// same oid may be something else here.
    pub fn relation(&self, database: Oid, relation: Oid) -> String {
        let here = self.snapshot.server.get().and_then(|s| s.datid);
        let local = database == Oid(0) || Some(database) == here;
        match self.relations.get(&relation).filter(|_| local) {
            Some(("pg_catalog", name)) => format!("pg_catalog.{name}"),
            Some((schema, name)) => format!("{schema}.{name}"),
            None => format!(
                "{}:{relation}",
                self.database(database).unwrap_or_else(|| "shared".into())
            ),
        }
    }

    /// What is locked, in words.
    pub fn locked(&self, tag: &LockTag) -> String {
        match tag {
            LockTag::Relation { database, relation } => self.relation(*database, *relation),
            LockTag::Extend { database, relation } => {
                format!("extension of {}", self.relation(*database, *relation))
            }
            LockTag::Page {
                database,
                relation,
                page,
            } => {
                format!("page {page} of {}", self.relation(*database, *relation))
            }
            LockTag::Tuple {
                database,
                relation,
                page,
                tuple,
            } => {
                format!(
                    "row ({page},{tuple}) of {}",
                    self.relation(*database, *relation)
                )
            }
            LockTag::Transaction { xid } => format!("transaction {xid}"),
            LockTag::VirtualXid { vxid } => format!("virtual transaction {vxid}"),
            LockTag::Object { classid, objid, .. } => format!("object {classid}/{objid}"),
            LockTag::Advisory {
                classid,
                objid,
                objsubid: 2,
                ..
            } => format!("advisory lock ({classid}, {objid})"),
            LockTag::Advisory { classid, objid, .. } => {
                format!(
                    "advisory lock {}",
                    (u64::from(classid.0) << 32 | u64::from(objid.0)).cast_signed()
                )
            }
            LockTag::Other { locktype_name, .. } => format!("{locktype_name} lock"),
        }
    }

    /// `ShareLock on transaction 742`
    pub fn wanted(&self, mode: &LockMode, tag: &LockTag) -> String {
        format!("{} on {}", mode.as_str(), self.locked(tag))
    }
}

/// The xid behind each virtual transaction of a prepared one. It has two forms: `-1/<xid>` once the server was
/// restarted, and until then that of the session that prepared it, which only its own transactionid row resolves
/// (12.22 to 18.4).
fn prepared_xids(snapshot: &Snapshot) -> HashMap<&str, Xid> {
    let known: Vec<Xid> = snapshot.prepared.rows().iter().map(|p| p.xid).collect();
    let mut xids = HashMap::new();
    for lock in snapshot
        .locks
        .rows()
        .iter()
        .filter(|lock| lock.pid.is_none() && lock.granted)
    {
        let vxid = lock.vxid.as_str();
        if let Some(xid) = vxid.strip_prefix("-1/").and_then(|xid| xid.parse().ok()) {
            xids.insert(vxid, Xid(xid));
        } else if let Some(xid) = lock.tag.xid()
            // Subtransactions have rows of their own; the name belongs to the top one.
            && (known.contains(&xid) || !xids.contains_key(vxid))
        {
            xids.insert(vxid, xid);
        }
    }
    xids
}
