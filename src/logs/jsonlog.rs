//! jsonlog (PostgreSQL 15+): a message a line.

use serde::Deserialize;

use super::labels::Severity;
use super::record::{Record, named, sqlstate};
use super::time::{self, Zone};
use crate::model::{LogSession, Pid};

#[derive(Deserialize)]
struct Line {
    timestamp: Option<String>,
    user: Option<String>,
    dbname: Option<String>,
    pid: Option<i32>,
    state_code: Option<String>,
    error_severity: Option<String>,
    message: Option<String>,
    detail: Option<String>,
    context: Option<String>,
    statement: Option<String>,
    application_name: Option<String>,
}

/// One line; `None` where it isn't one of the server's.
pub fn record(line: &[u8], zone: &mut Zone) -> Option<Record> {
    let line: Line = serde_json::from_str(&String::from_utf8_lossy(line)).ok()?;
    Some(Record {
        at: line
            .timestamp
            .and_then(|text| time::leading(&text, zone))
            .map(|(at, _)| at),
        pid: line.pid.map(Pid),
        session: LogSession {
            user: line.user.as_deref().and_then(named),
            database: line.dbname.as_deref().and_then(named),
            application_name: line.application_name.as_deref().and_then(named),
        },
        sqlstate: line.state_code.as_deref().and_then(sqlstate),
        severity: line
            .error_severity
            .as_deref()
            .map_or(Severity::Unknown, Severity::of),
        message: line.message?,
        detail: line.detail,
        context: line.context,
        aside: false,
        statement: line.statement,
    })
}
