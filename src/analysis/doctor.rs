//! `doctor`: what this login may see and do here, what is missing, and the GRANT that gives it.

use serde::Serialize;

use super::Report;
use super::coverage::grant;
use crate::model::{Link, Part, ServerRole, Snapshot, Verified};

pub const PARTS: &[Part] = &Part::ALL;

#[derive(Clone, Debug, Serialize)]
pub struct Doctor {
    pub doctor: Vec<Check>,
    /// How the connection was had; unknown in snapshots of older versions.
    pub link: Option<Link>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    Ok,
    /// A grant would give it.
    Missing,
    /// Worth knowing; nothing is wrong.
    Note,
    /// It couldn't be told.
    Unknown,
}

#[derive(Clone, Debug, Serialize)]
pub struct Check {
    pub check: &'static str,
    pub status: CheckStatus,
    pub detail: String,
    pub fix: Option<String>,
}

/// In the order in which a person asks: am I in, what do I see, what may I do, does every read work.
pub fn report(snapshot: &Snapshot) -> Report<Doctor> {
    let mut checks = vec![connection(snapshot)];
    checks.extend(
        snapshot
            .link
            .as_ref()
            .map(|link| encryption(link, snapshot)),
    );
    rights(snapshot, &mut checks);
    for part in PARTS {
        let (status, why) = snapshot.status(*part);
        if status != "collected" {
            checks.push(Check {
                check: part.name(),
                status: CheckStatus::Unknown,
                detail: format!("this section can't be read: {}", why.unwrap_or_default()),
                fix: None,
            });
        }
    }
    let grants = checks
        .iter()
        .filter_map(|check| check.fix.clone())
        .collect();
    let mut report = Report::new(
        "doctor",
        snapshot,
        PARTS,
        Doctor {
            doctor: checks,
            link: snapshot.link.clone(),
        },
    );
    report.head.coverage.missing_grants = grants;
    report
}

fn connection(snapshot: &Snapshot) -> Check {
    let target = &snapshot.target;
    let role = match target.role {
        Some(ServerRole::Primary) => "primary",
        Some(ServerRole::Standby) => "standby",
        None => "role unknown",
    };
    let pooler = match target.via_pooler {
        Some(true) => ", through a pooler (client addresses are the pooler's)",
        Some(false) => ", directly",
        None => "",
    };
    Check {
        check: "connection",
        status: CheckStatus::Ok,
        detail: format!(
            "{} as {}, PostgreSQL {}, {role}{pooler}",
            target.label(),
            target.user,
            target
                .server_version
                .as_deref()
                .unwrap_or("of unknown version"),
        ),
        fix: None,
    }
}

fn encryption(link: &Link, snapshot: &Snapshot) -> Check {
    let socket = snapshot.target.host.starts_with(['/', '@']);
    let detail = match &link.tls {
        Some(tls) => {
            let checked = match tls.verified {
                Verified::No => "the server's certificate isn't checked (sslmode=verify-full does)",
                Verified::Authority => "the certificate's authority is checked, its name isn't",
                Verified::Host => "the certificate is checked, authority and name",
            };
            let sent = if tls.client_certificate {
                ", a client certificate is sent"
            } else {
                ""
            };
            format!("{}, {}; {checked}{sent}", tls.version, tls.cipher)
        }
        None if socket => "none, over a unix socket".into(),
        None => "none: everything goes in clear".into(),
    };
    Check {
        check: "encryption",
        status: CheckStatus::Ok,
        detail,
        fix: None,
    }
}

fn rights(snapshot: &Snapshot, checks: &mut Vec<Check>) {
    let Some(login) = snapshot.login.get() else {
        return;
    };
    let hidden = snapshot.activity.get().map_or_else(
        || "an unknown number".to_owned(),
        |all| {
            let hidden = all.iter().filter(|s| s.takes_slot() && s.hidden);
            hidden.count().to_string()
        },
    );
    let mut right = |check, has: bool, role: &str, with: &str, without: String| {
        let has = has || login.superuser;
        checks.push(Check {
            check,
            status: if has {
                CheckStatus::Ok
            } else {
                CheckStatus::Missing
            },
            detail: if has { with.to_owned() } else { without },
            fix: (!has).then(|| grant(role, &login.user)),
        });
    };
    right(
        "see all sessions",
        login.read_all_stats,
        "pg_read_all_stats",
        "states, times, clients and queries of every session",
        format!("{hidden} of the other sessions are hidden: no state, no ages, no query"),
    );
    right(
        "see all settings",
        login.read_all_settings,
        "pg_read_all_settings",
        "every setting",
        "restricted settings are left out by the server".into(),
    );
    right(
        "cancel and terminate",
        login.signal_backend,
        "pg_signal_backend",
        "sessions of other roles may be cancelled and terminated",
        "only sessions of this role may be signalled".into(),
    );
    let reserved = snapshot.server.get().map_or(0, |s| s.reserved);
    if let Some(use_reserved) = login.use_reserved_connections.filter(|_| reserved > 0) {
        right(
            "get in when it is full",
            use_reserved,
            "pg_use_reserved_connections",
            "the slots of reserved_connections are open to this login",
            "when ordinary slots are taken this login stays outside".into(),
        );
    }
    if let Some(signal) = login.signal_autovacuum {
        right(
            "cancel autovacuum",
            signal,
            "pg_signal_autovacuum_worker",
            "autovacuum workers may be signalled",
            "autovacuum workers may not be signalled".into(),
        );
    }
    if login.use_reserved_connections.is_some() && reserved == 0 && !login.superuser {
        checks.push(Check {
            check: "get in when it is full",
            status: CheckStatus::Note,
            detail: "reserved_connections is 0: set it, and grant pg_use_reserved_connections to the on-call role".into(),
            fix: None,
        });
    }
    checks.push(note(snapshot, login.superuser));
}

fn note(snapshot: &Snapshot, superuser: bool) -> Check {
    let server = snapshot.server.get();
    let reserved = server.map_or(0, |s| s.superuser_reserved);
    let detail = if superuser {
        format!(
            "a superuser: may signal every session, and has {reserved} reserved slots to get in by"
        )
    } else {
        format!(
            "not a superuser: superusers' sessions can't be signalled, {reserved} slots are reserved for superusers"
        )
    };
    Check {
        check: "superuser",
        status: CheckStatus::Note,
        detail,
        fix: None,
    }
}
