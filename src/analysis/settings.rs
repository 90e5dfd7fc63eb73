//! `pg settings`: the settings that connection and lock incidents turn on, with a verdict and the reason.
//!
//! A value by ALTER ROLE or ALTER DATABASE wins over the server's: for the timeouts it is looked at per session.

use serde::Serialize;

use super::Report;
use crate::model::{Millis, Oid, Override, Part, Session, Setting, Snapshot};

pub const PARTS: &[Part] = &[
    Part::Server,
    Part::Activity,
    Part::Databases,
    Part::Roles,
    Part::Settings,
    Part::Overrides,
    Part::Slots,
];

#[derive(Clone, Debug, Serialize)]
pub struct Settings {
    pub settings: Vec<Judged>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Change it before the next incident.
    Change,
    /// Depends on the application.
    Consider,
    /// This login can't see the server's value.
    Unknown,
    Ok,
}

#[derive(Clone, Debug, Serialize)]
pub struct Judged {
    pub name: String,
    pub value: String,
    pub unit: Option<String>,
    /// `null` where it isn't known.
    pub source: Option<String>,
    pub recommended: Option<String>,
    pub verdict: Verdict,
    pub why: String,
    pub pending_restart: bool,
    pub overrides: Vec<OverrideRow>,
}

/// `ALTER ROLE … IN DATABASE … SET`; `None` stands for every role or database.
#[derive(Clone, Debug, Serialize)]
pub struct OverrideRow {
    pub role: Option<String>,
    pub database: Option<String>,
    pub value: String,
}

impl Judged {
    /// The value as a person says it: `off`, `15m 00s`, `1024 B`.
    pub fn words(&self) -> String {
        match (duration_ms(&self.value, self.unit.as_deref()), &self.unit) {
            (Some(Millis(0)), Some(_)) if is_timeout(&self.name) => "off".into(),
            (Some(ms), Some(_)) => ms.to_string(),
            (None, Some(unit)) => format!("{} {unit}", self.value),
            (_, None) => self.value.clone(),
        }
    }
}

/// What to change first.
pub fn report(snapshot: &Snapshot) -> Report<Settings> {
    Report::new(
        "settings",
        snapshot,
        PARTS,
        Settings {
            settings: judge_all(snapshot),
        },
    )
}

pub fn judge_all(snapshot: &Snapshot) -> Vec<Judged> {
    let mut all: Vec<Judged> = snapshot
        .settings
        .rows()
        .iter()
        .map(|s| judge(s, snapshot))
        .collect();
    all.sort_by(|a, b| a.verdict.cmp(&b.verdict).then_with(|| a.name.cmp(&b.name)));
    all
}

/// A rule's word on one setting.
struct Word {
    verdict: Verdict,
    /// The verdict where it isn't as it should be.
    otherwise: Verdict,
    recommended: Option<&'static str>,
    why: String,
}

fn word(bad: bool, otherwise: Verdict, recommended: &'static str, why: &str) -> Word {
    Word {
        verdict: if bad { otherwise } else { Verdict::Ok },
        otherwise,
        recommended: Some(recommended),
        why: why.into(),
    }
}

fn judge(setting: &Setting, snapshot: &Snapshot) -> Judged {
    let overrides: Vec<&Override> = snapshot
        .overrides
        .rows()
        .iter()
        .filter(|o| o.name == setting.name)
        .collect();
    // What this login reads is the server's value, unless it has one of its own.
    let own = own_override(&overrides, snapshot);
    let mut word = rule(setting, snapshot);
    if own {
        word.verdict = Verdict::Unknown;
        word.why = "this login has a value of its own by ALTER ROLE or ALTER DATABASE, which hides the server's".into();
    }
    if !overrides.is_empty() && is_timeout(&setting.name) {
        let server = if own { None } else { setting_ms(setting) };
        count_in(&mut word, setting, server, &overrides, snapshot);
    }
    Judged {
        name: setting.name.clone(),
        value: setting.value.clone(),
        unit: setting.unit.clone(),
        source: setting.source.clone(),
        recommended: word.recommended.map(str::to_owned),
        verdict: word.verdict,
        why: word.why,
        pending_restart: setting.pending_restart,
        overrides: overrides
            .into_iter()
            .map(|o| override_row(o, snapshot))
            .collect(),
    }
}

fn override_row(o: &Override, snapshot: &Snapshot) -> OverrideRow {
    let role = |oid| {
        snapshot
            .roles
            .rows()
            .iter()
            .find(|r| r.oid == oid)
            .map(|r| r.name.clone())
    };
    let database = |oid| {
        snapshot
            .databases
            .rows()
            .iter()
            .find(|d| d.oid == oid)
            .map(|d| d.name.clone())
    };
    OverrideRow {
        role: o
            .roleid
            .map(|oid| role(oid).unwrap_or_else(|| oid.to_string())),
        database: o
            .datid
            .map(|oid| database(oid).unwrap_or_else(|| oid.to_string())),
        value: o.value.clone(),
    }
}

/// One of these is in force for the login that read the snapshot.
fn own_override(overrides: &[&Override], snapshot: &Snapshot) -> bool {
    let target = &snapshot.target;
    let role = snapshot
        .roles
        .rows()
        .iter()
        .find(|r| r.name == target.user)
        .map(|r| r.oid);
    let database = snapshot
        .databases
        .rows()
        .iter()
        .find(|d| d.name == target.database)
        .map(|d| d.oid);
    in_force(role, database, overrides).is_some()
}

/// Timeouts that a session may have from its role or database.
fn is_timeout(name: &str) -> bool {
    matches!(
        name,
        "idle_in_transaction_session_timeout"
            | "statement_timeout"
            | "lock_timeout"
            | "transaction_timeout"
    )
}

/// Sessions that get the timeout by an override, against those that get the server's value (`None`: not known).
fn count_in(
    word: &mut Word,
    setting: &Setting,
    server: Option<Millis>,
    overrides: &[&Override],
    snapshot: &Snapshot,
) {
    let effective = |s: &Session| match in_force(s.usesysid, s.datid, overrides) {
        Some(o) => duration_ms(&o.value, setting.unit.as_deref()),
        None => server,
    };
    let clients: Vec<Option<Millis>> = super::connections::clients(snapshot)
        .filter(|s| s.superuser != Some(true))
        .map(effective)
        .collect();
    let total = clients.len();
    let without = clients.iter().filter(|ms| **ms == Some(Millis(0))).count();
    let unknown = clients.iter().filter(|ms| ms.is_none()).count();
    if total == 0 {
        word.why = format!(
            "{}; {} set it for a role or database",
            word.why,
            overrides.len()
        );
    } else if without == 0 && unknown == 0 && server.is_none_or(|ms| ms == Millis(0)) {
        word.verdict = Verdict::Ok;
        word.why = format!("set for the role or database of all {total} sessions");
    } else {
        let not_known = if unknown > 0 {
            format!(", of {unknown} it isn't known")
        } else {
            String::new()
        };
        word.why = format!(
            "{}; {without} of {total} sessions have none{not_known}",
            word.why
        );
        // Some have none although the server's value is set.
        if without > 0 && word.verdict == Verdict::Ok {
            word.verdict = word.otherwise;
        }
    }
}

/// The override that wins: role in database, role, database, all (PostgreSQL manual, ALTER ROLE).
fn in_force<'o>(
    role: Option<Oid>,
    database: Option<Oid>,
    overrides: &[&'o Override],
) -> Option<&'o Override> {
    [
        (role, database),
        (role, None),
        (None, database),
        (None, None),
    ]
    .into_iter()
    .find_map(|(roleid, datid)| {
        overrides
            .iter()
            .copied()
            .find(|o| o.roleid == roleid && o.datid == datid)
    })
}

/// A value of `pg_settings` in its own unit, as a time.
fn setting_ms(setting: &Setting) -> Option<Millis> {
    duration_ms(&setting.value, setting.unit.as_deref())
}

/// A time as PostgreSQL writes settings: `30s`, `5 min`, or a bare number in the setting's unit.
fn duration_ms(text: &str, default_unit: Option<&str>) -> Option<Millis> {
    let text = text.trim().trim_matches('\'');
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let number: f64 = text[..digits].parse().ok()?;
    let unit = match text[digits..].trim() {
        "" => default_unit.unwrap_or("ms"),
        unit => unit,
    };
    let factor: u32 = match unit {
        "ms" => 1,
        "s" => 1000,
        "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    Some(Millis((number * f64::from(factor)).round() as u64))
}

fn rule(setting: &Setting, snapshot: &Snapshot) -> Word {
    use Verdict::{Change, Consider};
    let ms = setting_ms(setting).unwrap_or(Millis(0));
    let off = setting.value == "off";
    let number: i64 = setting.value.parse().unwrap_or(0);
    match setting.name.as_str() {
        "idle_in_transaction_session_timeout" => word(
            ms == Millis(0) || ms > Millis::from_secs(600),
            Change,
            "60s",
            "ends sessions that forgot their transaction; without it a leak holds slots and locks for ever",
        ),
        "statement_timeout" => word(
            ms == Millis(0),
            Change,
            "30s, by ALTER ROLE for each application role",
            "a statement that nobody waits for any more runs on; not for the whole server, or dumps and migrations end too",
        ),
        "lock_timeout" => word(
            ms == Millis(0),
            Consider,
            "5s, for roles that run migrations",
            "a DDL that waits for a lock holds up everyone behind it",
        ),
        "transaction_timeout" => word(
            ms == Millis(0),
            Consider,
            "10min, for application roles",
            "bounds a transaction as a whole (PostgreSQL 17+)",
        ),
        "idle_session_timeout" => word(
            ms != Millis(0),
            Consider,
            "0 with connection pools",
            "ends pooled connections under the pool; without a pool it ends leaked ones",
        ),
        "client_connection_check_interval" => word(
            ms == Millis(0),
            Change,
            "10s",
            "without it a backend whose client is gone stays in a lock queue: stopping the application frees no slots",
        ),
        "tcp_keepalives_idle" => word(
            number == 0 || number > 600,
            Consider,
            "60s",
            "0 is the system's value, mostly two hours, until a vanished client's slot is freed",
        ),
        "deadlock_timeout" => word(
            ms < Millis(100) || ms > Millis::from_secs(10),
            Change,
            "1s",
            "how long a deadlock lasts, and after which wait log_lock_waits writes a line",
        ),
        "log_lock_waits" => word(
            off,
            Change,
            "on",
            "the log has no lock waits: nobody can say tomorrow who blocked whom",
        ),
        "log_min_duration_statement" => word(
            number < 0,
            Change,
            "1s",
            "slow statements leave no trace in the log",
        ),
        "log_min_error_statement" => word(
            !matches!(
                setting.value.as_str(),
                "error" | "warning" | "notice" | "info" | "log"
            ) && !setting.value.starts_with("debug"),
            Change,
            "error",
            "statements that fail (a deadlock's victim) aren't logged with their text",
        ),
        "log_line_prefix" => word(
            !setting.value.contains("%p")
                || !["%m", "%t", "%n"]
                    .iter()
                    .any(|time| setting.value.contains(time)),
            Change,
            "%m [%p] %q%u@%d/%a ",
            "a log line needs its time and pid to be joined with what was seen live",
        ),
        "log_connections" | "log_disconnections" => word(
            off || setting.value.is_empty(),
            Consider,
            "on",
            "connection storms and short-lived sessions can't be told from the log",
        ),
        "max_connections" => word(
            number > 500,
            Consider,
            "at most 500, with a pooler in front",
            "each backend costs memory and snapshot time; more slots move the bottleneck",
        ),
        "superuser_reserved_connections" => word(
            number < 3,
            Change,
            "3",
            "the way in for a superuser when every other slot is taken",
        ),
        "reserved_connections" => word(
            number < 2,
            Consider,
            "3, with pg_use_reserved_connections for the on-call role",
            "the way in for the person on call without a superuser's login (PostgreSQL 16+)",
        ),
        "autovacuum" => word(
            off,
            Change,
            "on",
            "dead rows pile up, and transaction ids run out",
        ),
        "authentication_timeout" => word(
            ms > Millis::from_secs(60),
            Change,
            "60s",
            "so long a client that doesn't authenticate holds a slot that pg_stat_activity doesn't show (before 18)",
        ),
        "max_slot_wal_keep_size" => word(
            number < 0 && !snapshot.slots.rows().is_empty(),
            Change,
            "a share of the disk",
            "a slot that nobody reads keeps WAL until the disk is full",
        ),
        "max_prepared_transactions" => word(
            number > 0,
            Consider,
            "0, unless something prepares transactions",
            "a forgotten prepared transaction holds locks and the xmin horizon over restarts",
        ),
        "track_activity_query_size" => word(
            number < 4096,
            Consider,
            "4kB",
            "longer statements are cut in pg_stat_activity",
        ),
        _ => Word {
            verdict: Verdict::Ok,
            otherwise: Verdict::Consider,
            recommended: None,
            why: "for information".into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_postgresql_writes_them() {
        let ms = |text, unit| duration_ms(text, unit).map(|m| m.0);
        assert_eq!(ms("30s", None), Some(30_000));
        assert_eq!(ms("5 min", Some("ms")), Some(300_000));
        assert_eq!(ms("1500", Some("ms")), Some(1500));
        assert_eq!(ms("60", Some("s")), Some(60_000));
        assert_eq!(ms("-1", Some("ms")), None);
        assert_eq!(ms("1.5s", None), Some(1500));
        assert_eq!(ms("8kB", None), None);
    }
}
