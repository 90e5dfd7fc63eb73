//! The words by which messages are known where no SQLSTATE tells them, in English and in Japanese.

use super::labels::Severity;
use super::record::Record;
use crate::model::{LogCancellation, LogServer};

/// How messages begin in English and in Japanese, where no SQLSTATE tells them.
pub const REFUSED: [&str; 3] = [
    "sorry, too many clients already",
    "現在クライアント数が多すぎます",
    "remaining connection slots are reserved",
];
pub const IDLE_IN_TRANSACTION: [&str; 1] = ["terminating connection due to idle-in-transaction"];
pub const ADMINISTRATOR: [&str; 2] = [
    "terminating connection due to administrator command",
    "管理者コマンドにより接続を終了",
];
pub const CANCELED: [(LogCancellation, &[&str]); 4] = [
    (
        LogCancellation::LockTimeout,
        &[
            "canceling statement due to lock timeout",
            "ロックのタイムアウトのためステートメントをキャンセル",
        ],
    ),
    (
        LogCancellation::StatementTimeout,
        &[
            "canceling statement due to statement timeout",
            "ステートメントのタイムアウトのためステートメントをキャンセル",
        ],
    ),
    (
        LogCancellation::Request,
        &[
            "canceling statement due to user request",
            "ユーザーからの要求により文をキャンセル",
            "ユーザーからの要求のためステートメントをキャンセル",
        ],
    ),
    (
        LogCancellation::Recovery,
        &[
            "canceling statement due to conflict with recovery",
            "リカバリとの競合のためステートメントをキャンセル",
            "リカバリで競合が発生したためステートメントをキャンセル",
        ],
    ),
];

/// By whose limit a login was refused, and what that is called.
pub fn limited(message: &str) -> Option<(LogServer, &str)> {
    const LIMITS: [(LogServer, &str, &str); 2] = [
        (
            LogServer::RoleLimit,
            "too many connections for role \"",
            "\"",
        ),
        (
            LogServer::DatabaseLimit,
            "too many connections for database \"",
            "\"",
        ),
    ];
    LIMITS.iter().find_map(|(limit, before, behind)| {
        let name = message.strip_prefix(before)?.strip_suffix(behind)?;
        Some((*limit, name))
    })
}

/// What the server says of itself, in English and Japanese: it carries no SQLSTATE. A statement that is logged begins
/// otherwise.
pub fn by_words(record: &Record) -> Option<LogServer> {
    const WORDS: [(LogServer, &[&str]); 6] = [
        (
            LogServer::Ready,
            &[
                "database system is ready to accept ",
                "データベースシステムの接続受け付け準備",
            ],
        ),
        (LogServer::Starting, &["starting PostgreSQL "]),
        (
            LogServer::ShutdownRequested,
            &[
                "received fast shutdown request",
                "received smart shutdown request",
                "received immediate shutdown request",
                "高速シャットダウン要求を受け取りました",
                "スマートシャットダウン要求を受け取りました",
                "即時シャットダウン要求を受け取りました",
            ],
        ),
        (
            LogServer::ShutDown,
            &[
                "database system is shut down",
                "データベースシステムはシャットダウンしました",
            ],
        ),
        (
            LogServer::Interrupted,
            &[
                "database system was interrupted",
                "データベースシステムは中断",
            ],
        ),
        (
            LogServer::Recovering,
            &[
                "database system was not properly shut down",
                "データベースシステムは正しくシャットダウンされていません",
            ],
        ),
    ];
    if !matches!(record.severity, Severity::Log | Severity::Unknown) {
        return None;
    }
    let message = record.message.as_str();
    let begins = WORDS
        .iter()
        .find(|(_, words)| words.iter().any(|word| message.starts_with(word)))
        .map(|(what, _)| *what);
    let starts = || message.starts_with("PostgreSQL ") && message.ends_with("を起動しています");
    begins
        .or_else(|| starts().then_some(LogServer::Starting))
        .or_else(|| crashed(message).then_some(LogServer::Crashed))
}

/// `server process (PID 123) was terminated by signal 9: Killed`
fn crashed(message: &str) -> bool {
    let Some((process, rest)) = message.split_once("(PID ") else {
        return false;
    };
    let behind = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let ended = [") was terminated by signal ", ")はシグナル", ") はシグナル"]
        .iter()
        .any(|words| behind.starts_with(words));
    // What a session wrote begins with a word and a colon.
    ended && !process.contains([':', '\''])
}
