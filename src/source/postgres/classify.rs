//! What a refusal means: by SQLSTATE and the routine that raised it, never by its text, which is localised.

use tokio_postgres::error::{DbError, SqlState};

use super::refused::{ConnectFault, Failure};
use crate::model::SlotLimit;

pub(super) fn classify(error: tokio_postgres::Error) -> Failure {
    let Some(db) = error.as_db_error() else {
        let detail = chain(&error);
        // The driver's own words, which aren't localised.
        if detail.contains("password missing") {
            return (ConnectFault::PasswordMissing, "no password given".into());
        }
        let login = ["require_auth doesn't allow", "channel binding"];
        let fault = if login.iter().any(|words| detail.contains(words)) {
            ConnectFault::Login
        } else {
            ConnectFault::Other
        };
        return (fault, detail);
    };
    let detail = format!("{} ({})", db.message(), db.code().code());
    let fault = match db.code() {
        code if *code == SqlState::TOO_MANY_CONNECTIONS => ConnectFault::NoSlot(slot_limit(db)),
        code if *code == SqlState::CANNOT_CONNECT_NOW => ConnectFault::NotReady,
        code if *code == SqlState::INVALID_PASSWORD
            || *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION =>
        {
            ConnectFault::Login
        }
        // To UTF8, which the driver asks for, no server converts MULE_INTERNAL.
        code if *code == SqlState::FEATURE_NOT_SUPPORTED => ConnectFault::Encoding,
        code if *code == SqlState::INVALID_CATALOG_NAME => ConnectFault::NoDatabase,
        code if *code == SqlState::INSUFFICIENT_PRIVILEGE => ConnectFault::Privilege,
        code if *code == SqlState::PROTOCOL_VIOLATION => pooler_fault(db),
        _ => ConnectFault::Other,
    };
    (fault, detail)
}

/// Which limit, by the routine that raised 53300: the text is in the server's language.
fn slot_limit(db: &DbError) -> SlotLimit {
    match db.routine() {
        // InitProcess finds no free slot; the postmaster itself refuses in ProcessStartupPacket (BackendInitialize
        // from 18 on) when it has started twice as many processes as there are slots.
        Some("InitProcess" | "ProcessStartupPacket" | "BackendInitialize") => SlotLimit::Nothing,
        Some("InitPostgres") => SlotLimit::Reserved,
        Some("InitializeSessionUserId") => SlotLimit::Role,
        Some("CheckMyDatabase") => SlotLimit::Database,
        _ => SlotLimit::Unknown,
    }
}

/// PgBouncer gives every error SQLSTATE 08P01, one fixed English text and no routine: those of its own, and (in 1.18)
/// those of a server that doesn't let it in, in that server's language.
fn pooler_fault(db: &DbError) -> ConnectFault {
    const FULL: [&str; 5] = [
        "no more connections allowed",
        "client connections exceeded",
        "too many clients",
        "too many connections",
        "connection slots",
    ];
    const BUSY: [&str; 3] = [
        "query_wait_timeout",
        "server login has been failing",
        "client_login_timeout",
    ];
    let says = |texts: &[&str]| texts.iter().any(|text| db.message().contains(text));
    if db.routine().is_some() {
        ConnectFault::Other
    } else if says(&FULL) {
        ConnectFault::NoSlot(SlotLimit::Pooler)
    } else if says(&BUSY) {
        ConnectFault::PoolerBusy
    } else {
        ConnectFault::Pooler
    }
}

/// The whole chain of causes in one line: the driver's own text is only its first word.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}
