//! What the text columns of the built-in queries hold, and what is taken out of each: by the column's name, since rows are kept
//! as they came. Numbers, times and truths hold nothing that could be.

use std::borrow::Cow;

use super::redact::{Reduced, statement};
use crate::model::{RedactionLevel, WATCHED_SETTINGS};
use crate::sql;

/// What stands in a text column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// SQL: its values are taken out.
    Statement,
    /// `name=value` by ALTER ROLE or ALTER DATABASE: only of settings that are watched.
    Override,
    Application,
    Login,
    Database,
    /// Another name, or a setting that is watched.
    Name,
    Address,
    /// What COMMIT PREPARED needs: kept as it is.
    Gid,
    /// The server's own words, numbers and times.
    Fixed,
    /// No column of ours: it may hold anything.
    Unknown,
}

/// The class of a column of a built-in query.
pub fn class(query: &str, column: &str) -> Class {
    match (query, column) {
        (_, "query") => Class::Statement,
        (_, "config") => Class::Override,
        (_, "application_name") => Class::Application,
        (_, "client_addr") => Class::Address,
        (_, "gid") => Class::Gid,
        ("roles", "name") | (_, "user") => Class::Login,
        ("databases", "name") | (_, "database") => Class::Database,
        ("relations" | "slots" | "settings", "name")
        | ("relations", "schema")
        | ("settings", "value" | "boot_value") => Class::Name,
        (_, column) if FIXED.contains(&column) => Class::Fixed,
        _ => Class::Unknown,
    }
}

/// Columns whose texts are the server's own.
const FIXED: [&str; 55] = [
    "active",
    "active_pid",
    "backend_start",
    "backend_type",
    "backend_xid",
    "backend_xmin",
    "blocks_done",
    "blocks_total",
    "catalog_xmin",
    "command",
    "encoding",
    "in_recovery",
    "locktype",
    "mode",
    "pending_restart",
    "phase",
    "pid",
    "prepared",
    "query_start",
    "relation",
    "replay_lag_ms",
    "replay_lsn",
    "sent_lsn",
    "slot_type",
    "source",
    "started_at",
    "state",
    "state_change",
    "stats_reset",
    "superuser",
    "sync_state",
    "taken_at",
    "transactionid",
    "unit",
    "version",
    "virtualtransaction",
    "virtualxid",
    "wait_event",
    "wait_event_type",
    "waitstart",
    "xact_start",
    "xid",
    "xmin",
    "datid",
    "oid",
    "xid_age",
    "xmin_age",
    "catalog_xmin_age",
    "ownerid",
    "dbid",
    "usesysid",
    "leader_pid",
    "client_port",
    "blockers",
    "roleid",
];

/// A text of such a column as it may be seen.
pub fn shown(class: Class, text: String, level: RedactionLevel) -> String {
    let owned = |shown: Cow<'_, str>| match shown {
        Cow::Owned(shown) => Some(shown),
        Cow::Borrowed(_) => None,
    };
    let replaced = match class {
        Class::Statement => match statement(&text, level) {
            Reduced::Kept => None,
            Reduced::Tag(text) | Reduced::Masked(text, _) => Some(text),
        },
        Class::Override => {
            let name = text.split('=').next().unwrap_or_default();
            if !WATCHED_SETTINGS.contains(&name) {
                Some(format!("{name}=(not shown)"))
            } else if level == RedactionLevel::Redacted {
                owned(sql::name_redacted(&text))
            } else {
                None
            }
        }
        Class::Application if level == RedactionLevel::None => {
            sql::has_password(&text).then(|| HOLDS_A_PASSWORD.into())
        }
        Class::Address | Class::Gid => None,
        _ if level == RedactionLevel::None => None,
        Class::Login | Class::Database | Class::Name => owned(sql::name_redacted(&text)),
        Class::Application | Class::Fixed => owned(sql::redacted(&text)),
        Class::Unknown => {
            let text = owned(sql::redacted(&text)).unwrap_or_else(|| text.clone());
            Some(shown(Class::Statement, text, level))
        }
    };
    replaced.unwrap_or(text)
}

/// Some drivers take the application's name from where the connection string was meant to be.
pub(super) const HOLDS_A_PASSWORD: &str = "(not shown: it holds a password)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_loses_what_it_must() {
        let url = "postgres://u:hunter2@h/d";
        let cases = [
            ("activity", "query", "select 'hunter2'", "select ?"),
            (
                "activity",
                "application_name",
                "worker 192.168.0.1",
                "worker 192.168.0.1",
            ),
            ("prepared", "gid", "order-42", "order-42"),
            ("activity", "client_addr", "10.0.0.1", "10.0.0.1"),
            ("roles", "name", "app_rw", "app_rw"),
            ("locks", "mode", "AccessShareLock", "AccessShareLock"),
            (
                "overrides",
                "config",
                "app.token=hunter2",
                "app.token=(not shown)",
            ),
            (
                "overrides",
                "config",
                "statement_timeout=5s",
                "statement_timeout=5s",
            ),
        ];
        for (query, column, text, expected) in cases {
            let shown = shown(class(query, column), text.into(), RedactionLevel::Redacted);
            assert_eq!(shown, expected, "{query}.{column}");
        }
        for (query, column) in [("roles", "name"), ("replication", "state"), ("x", "y")] {
            let shown = shown(class(query, column), url.into(), RedactionLevel::Redacted);
            assert!(!shown.contains("hunter2"), "{query}.{column}: {shown}");
        }
        let unredacted = |class, text: &str| shown(class, text.into(), RedactionLevel::None);
        assert_eq!(unredacted(Class::Statement, "select 7"), "select 7");
        assert_eq!(unredacted(Class::Application, url), HOLDS_A_PASSWORD);
        assert!(!unredacted(Class::Override, "app.token=hunter2").contains("hunter2"));
    }
}
