//! `budget.yaml`: the connection budget as a design document.

use super::super::count::At;
use super::super::rules::RULES;
use super::{Fault, Surge, known, number, plain, surge, text};
use crate::yaml::{Kind, Node};

/// What the file says, as it stands there.
#[derive(Clone, Debug, Default)]
pub struct SpecFile {
    pub file: String,
    pub servers: Vec<ServerSpec>,
    pub workloads: Vec<WorkloadSpec>,
    pub poolers: Vec<PoolerSpec>,
    pub suppressions: Vec<Suppression>,
}

#[derive(Clone, Debug)]
pub struct ServerSpec {
    pub name: String,
    pub at: At,
    pub max_connections: Option<(u64, At)>,
    pub superuser_reserved: Option<(u64, At)>,
    pub reserved: Option<(u64, At)>,
    pub provider_reserve: Option<(u64, At)>,
    pub headroom: Vec<(String, u64, At)>,
    /// `ALTER ROLE … CONNECTION LIMIT`, and the same of databases.
    pub roles: Vec<(String, u64, At)>,
    pub databases: Vec<(String, u64, At)>,
    /// Percent.
    pub warn_at: Option<f64>,
    pub replica_of: Option<(String, At)>,
    /// A postgresql.conf.
    pub conf: Option<(String, At)>,
    /// What the design says of the server, for the rules.
    pub settings: Vec<(String, String, At)>,
}

#[derive(Clone, Debug)]
pub struct WorkloadSpec {
    pub name: String,
    pub at: At,
    pub target: Option<(String, At)>,
    /// The manifest that it is about, where that has another name.
    pub manifest: Option<(String, At)>,
    /// Whom it logs in as, and where: for the limits of roles and databases.
    pub role: Option<(String, At)>,
    pub database: Option<(String, At)>,
    /// The library of its pool, whose default is taken where nothing says a number.
    pub library: Option<(String, At)>,
    pub pods: Option<(u64, At)>,
    pub processes: Option<(u64, At)>,
    pub connections: Option<(u64, At)>,
    pub surge: Option<(Surge, At)>,
    pub drain: Option<(u64, At)>,
    pub sidekiq: Option<(String, At)>,
    pub database_yml: Option<(String, At)>,
    /// What the design says of its pool, for the rules: times and numbers as they stand there.
    pub pool: Vec<(String, String, At)>,
}

#[derive(Clone, Debug)]
pub struct PoolerSpec {
    pub name: String,
    pub at: At,
    pub target: Option<(String, At)>,
    pub pgbouncer: Option<(String, At)>,
    pub pods: Option<(u64, At)>,
    pub surge: Option<(Surge, At)>,
    /// The applications behind it use session features.
    pub session_features: Option<At>,
}

/// A breach that is accepted: for a reason, up to a day.
#[derive(Clone, Debug)]
pub struct Suppression {
    pub rule: String,
    /// A word that its message holds; empty: all of the rule.
    pub about: String,
    pub reason: String,
    /// `2027-01-31`
    pub until: chrono::NaiveDate,
    pub at: At,
}

const SERVER: [&str; 11] = [
    "max_connections",
    "superuser_reserved_connections",
    "reserved_connections",
    "provider_reserve",
    "headroom",
    "roles",
    "databases",
    "warn_at",
    "replica_of",
    "conf",
    "settings",
];
const WORKLOAD: [&str; 13] = [
    "target",
    "manifest",
    "role",
    "database",
    "library",
    "pods",
    "processes",
    "connections",
    "surge",
    "drain",
    "sidekiq",
    "database_yml",
    "pool",
];
/// What the rules know of a pool.
pub const POOL: [&str; 9] = [
    "threads",
    "concurrency",
    "max_lifetime",
    "idle_timeout",
    "balancer_idle_timeout",
    "acquire_timeout",
    "request_timeout",
    "retries",
    "retry_backoff",
];

/// # Errors
/// The first thing that isn't as it should be.
pub fn read(file: &str, doc: &Node) -> Result<SpecFile, Fault> {
    known(file, doc, &["servers", "workloads", "poolers", "suppress"])?;
    let mut spec = SpecFile {
        file: file.to_owned(),
        ..SpecFile::default()
    };
    for (name, node) in entries(file, doc.get("servers"))? {
        spec.servers.push(server(file, name, node)?);
    }
    for (name, node) in entries(file, doc.get("workloads"))? {
        spec.workloads.push(workload(file, name, node)?);
    }
    for (name, node) in entries(file, doc.get("poolers"))? {
        spec.poolers.push(pooler(file, name, node)?);
    }
    for node in doc.get("suppress").map(Node::list).unwrap_or_default() {
        spec.suppressions.push(suppression(file, node)?);
    }
    Ok(spec)
}

fn entries<'n>(file: &str, node: Option<&'n Node>) -> Result<Vec<(String, &'n Node)>, Fault> {
    let Some(node) = node.filter(|node| !matches!(node.kind, Kind::Null)) else {
        return Ok(Vec::new());
    };
    let Kind::Map(fields) = &node.kind else {
        let what = format!("a map of names is expected here, not {}", node.kind.word());
        return Err(Fault::new(file, node.place, what));
    };
    let entry = |(key, value): &'n (Node, Node)| Ok((text(file, key, "a name")?, value));
    fields.iter().map(entry).collect()
}

/// The fields of one entry.
struct Fields<'n> {
    file: &'n str,
    node: &'n Node,
}

impl<'n> Fields<'n> {
    fn of(file: &'n str, node: &'n Node, keys: &[&str]) -> Result<Self, Fault> {
        known(file, node, keys)?;
        Ok(Self { file, node })
    }

    fn at(&self, node: &Node) -> At {
        At::new(self.file, node.place)
    }

    fn number(&self, name: &str) -> Result<Option<(u64, At)>, Fault> {
        let node = self.node.get(name);
        node.map(|node| Ok((number(self.file, node, name)?, self.at(node))))
            .transpose()
    }

    fn text(&self, name: &str) -> Result<Option<(String, At)>, Fault> {
        let node = self.node.get(name);
        node.map(|node| Ok((text(self.file, node, name)?, self.at(node))))
            .transpose()
    }

    fn surge(&self) -> Result<Option<(Surge, At)>, Fault> {
        let node = self.node.get("surge");
        node.map(|node| Ok((surge(self.file, node, "surge")?, self.at(node))))
            .transpose()
    }

    fn plain(&self, name: &str) -> Result<Vec<(String, String, At)>, Fault> {
        let one = |(name, node): (String, &Node)| {
            let value = plain(node).ok_or_else(|| {
                Fault::new(self.file, node.place, format!("{name} is a plain value"))
            })?;
            Ok((name, value, self.at(node)))
        };
        entries(self.file, self.node.get(name))?
            .into_iter()
            .map(one)
            .collect()
    }
}

fn server(file: &str, name: String, node: &Node) -> Result<ServerSpec, Fault> {
    let fields = Fields::of(file, node, &SERVER)?;
    let numbers = |key: &str| -> Result<Vec<(String, u64, At)>, Fault> {
        let one = |(name, node): (String, &Node)| {
            Ok((name, number(file, node, key)?, At::new(file, node.place)))
        };
        entries(file, node.get(key))?.into_iter().map(one).collect()
    };
    let warn_at = match node.get("warn_at") {
        None => None,
        Some(node) => {
            let text = plain(node).unwrap_or_default();
            let percent = text.trim().trim_end_matches('%').parse::<f64>().ok();
            let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
            Some(percent.ok_or_else(|| {
                Fault::new(
                    file,
                    node.place,
                    format!("warn_at is a percentage such as 80%, not {text:?}"),
                )
            })?)
        }
    };
    Ok(ServerSpec {
        at: At::new(file, node.place),
        max_connections: fields.number("max_connections")?,
        superuser_reserved: fields.number("superuser_reserved_connections")?,
        reserved: fields.number("reserved_connections")?,
        provider_reserve: fields.number("provider_reserve")?,
        replica_of: fields.text("replica_of")?,
        conf: fields.text("conf")?,
        settings: fields.plain("settings")?,
        headroom: numbers("headroom")?,
        roles: numbers("roles")?,
        databases: numbers("databases")?,
        warn_at,
        name,
    })
}

fn workload(file: &str, name: String, node: &Node) -> Result<WorkloadSpec, Fault> {
    let fields = Fields::of(file, node, &WORKLOAD)?;
    if let Some(pool) = node.get("pool") {
        known(file, pool, &POOL)?;
        for (name, value) in entries(file, Some(pool))? {
            pool_field(file, &name, value)?;
        }
    }
    Ok(WorkloadSpec {
        at: At::new(file, node.place),
        target: fields.text("target")?,
        manifest: fields.text("manifest")?,
        role: fields.text("role")?,
        database: fields.text("database")?,
        library: fields.text("library")?,
        pods: fields.number("pods")?,
        processes: fields.number("processes")?,
        connections: fields.number("connections")?,
        surge: fields.surge()?,
        drain: fields.number("drain")?,
        sidekiq: fields.text("sidekiq")?,
        database_yml: fields.text("database_yml")?,
        pool: fields.plain("pool")?,
        name,
    })
}

/// A rule that can't read its number would be silent: times have their unit, counts are whole.
fn pool_field(file: &str, name: &str, node: &Node) -> Result<(), Fault> {
    let text = plain(node).unwrap_or_default();
    let what = match name {
        "threads" | "concurrency" => return number(file, node, name).map(|_| ()),
        "retries" | "retry_backoff" => return Ok(()),
        _ if humantime::parse_duration(text.trim()).is_err() => {
            format!("{name} is a time with its unit, such as 30s or 500ms, not {text:?}")
        }
        _ => return Ok(()),
    };
    Err(Fault::new(file, node.place, what))
}

fn pooler(file: &str, name: String, node: &Node) -> Result<PoolerSpec, Fault> {
    let keys = ["target", "pgbouncer", "pods", "surge", "session_features"];
    let fields = Fields::of(file, node, &keys)?;
    let features = node.get("session_features");
    Ok(PoolerSpec {
        at: At::new(file, node.place),
        target: fields.text("target")?,
        pgbouncer: fields.text("pgbouncer")?,
        pods: fields.number("pods")?,
        surge: fields.surge()?,
        session_features: features
            .filter(|node| matches!(node.kind, Kind::Bool(true)) || !node.list().is_empty())
            .map(|node| At::new(file, node.place)),
        name,
    })
}

fn suppression(file: &str, node: &Node) -> Result<Suppression, Fault> {
    let fields = Fields::of(file, node, &["rule", "about", "reason", "until"])?;
    let must = |name: &str| {
        fields.text(name)?.ok_or_else(|| {
            Fault::new(
                file,
                node.place,
                format!("a suppression has a {name}: rule, reason and until are needed"),
            )
        })
    };
    let (rule, rule_at) = must("rule")?;
    if !RULES.iter().any(|(known, _)| *known == rule) {
        let known: Vec<&str> = RULES.iter().map(|(known, _)| *known).collect();
        let what = format!("there is no rule {rule:?}; there are: {}", known.join(", "));
        return Err(Fault::new(file, rule_at.place, what));
    }
    let (reason, _) = must("reason")?;
    let (until, until_at) = must("until")?;
    let until = chrono::NaiveDate::parse_from_str(&until, "%Y-%m-%d")
        .map_err(|_| Fault::new(file, until_at.place, "until is a day such as 2027-01-31"))?;
    Ok(Suppression {
        rule,
        about: fields
            .text("about")?
            .map(|(text, _)| text)
            .unwrap_or_default(),
        reason,
        until,
        at: At::new(file, node.place),
    })
}
