//! `pg settings`: the settings that connection and lock incidents turn on, with a verdict and the reason.
//!
//! A value by ALTER ROLE or ALTER DATABASE wins over the server's: for the timeouts it is looked at per session.

use serde::Serialize;

use super::duration::{duration_ms, setting_ms};
use super::rules::{Word, rule};
use crate::analysis::Report;
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
            (Some(Millis(0)), Some(unit)) => format!("0 {unit}"),
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
    let clients: Vec<Option<Millis>> = crate::analysis::connections::clients(snapshot)
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
