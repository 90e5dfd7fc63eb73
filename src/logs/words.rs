//! The words by which messages are known where no SQLSTATE tells them, in English and in Japanese.

use super::labels::Severity;
use super::record::Record;
use crate::model::{LogCancellation, LogServer};

/// How messages begin in English and in Japanese, where no SQLSTATE tells them.
pub const REFUSED: [&str; 4] = [
    "sorry, too many clients already",
    "現在クライアント数が多すぎます",
    "remaining connection slots are reserved",
    "残りの接続スロットは",
];
pub const IDLE_IN_TRANSACTION: [&str; 2] = [
    "terminating connection due to idle-in-transaction",
    "トランザクション中アイドルタイムアウトのため接続を終了",
];
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
    const LIMITS: [(LogServer, &str, &str); 4] = [
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
        (LogServer::RoleLimit, "ロール\"", "\"からの接続が多すぎます"),
        (
            LogServer::DatabaseLimit,
            "データベース\"",
            "\"への接続が多すぎます",
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
                "データベースシステムはリードオンリー接続の受け付け準備",
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
                // At a time that stands in between.
                "データベースシステムはリカバリ中",
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
        .map(|(what, _)| *what)
        // That it was shut down in recovery begins in the same way.
        .filter(|_| !message.ends_with("にシャットダウンしました"));
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

/// An end of a session in another language than English, which no table here has and no SQLSTATE tells.
pub fn is_untold(record: &Record) -> bool {
    // Logins that failed for themselves, and those that came too early or too late: in English nothing is told of them either.
    const NOTHING: [&str; 6] = [
        "は存在しません",
        "認証に失敗しました",
        "起動処理中です",
        "シャットダウンしています",
        "リカバリモードです",
        "接続を受け付けていません",
    ];
    let is_english = record.message.is_ascii();
    let is_nothing = NOTHING.iter().any(|words| record.message.ends_with(words));
    record.severity == Severity::Fatal && record.sqlstate.is_none() && !is_english && !is_nothing
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::events::event;
    use crate::model::{LogTermination, LogWhat};

    fn fatal(message: &str) -> Record {
        Record {
            severity: Severity::Fatal,
            message: message.into(),
            ..Record::default()
        }
    }

    /// As `ja.po` of PostgreSQL 15 has them.
    #[test]
    fn ends_in_japanese() {
        let of = |message: &str| event(&fatal(message)).map(|event| event.what);
        let why = LogTermination::IdleInTransaction;
        assert_eq!(
            of("トランザクション中アイドルタイムアウトのため接続を終了します"),
            Some(LogWhat::Terminated { why })
        );
        assert_eq!(
            of(
                "残りの接続スロットはレプリケーションユーザーではないスーパーユーザー用に予約されています"
            ),
            Some(LogWhat::TooManyConnections)
        );
        let role = event(&fatal("ロール\"lim\"からの接続が多すぎます")).expect("an event");
        assert_eq!(role.what, LogWhat::Server(LogServer::RoleLimit));
        assert_eq!(role.session.user.as_deref(), Some("lim"));
        let database = event(&fatal("データベース\"x\"への接続が多すぎます")).expect("an event");
        assert_eq!(database.what, LogWhat::Server(LogServer::DatabaseLimit));
        assert_eq!(database.session.database.as_deref(), Some("x"));
        let said = |message: &str| {
            by_words(&Record {
                severity: Severity::Log,
                ..fatal(message)
            })
        };
        for (message, what) in [
            (
                "データベースシステムは中断されました: 2026-12-01 05:00:00 UTC まで動作していたことは確認できます",
                Some(LogServer::Interrupted),
            ),
            (
                "データベースシステムはリカバリ中ログ時刻 2026-12-01 05:00:00 UTC に中断されました",
                Some(LogServer::Interrupted),
            ),
            (
                "データベースシステムは正しくシャットダウンされていません; 自動リカバリを実行中",
                Some(LogServer::Recovering),
            ),
            (
                "データベースシステムはリードオンリー接続の受け付け準備ができました",
                Some(LogServer::Ready),
            ),
            (
                "データベースシステムはリカバリ中 2026-12-01 05:00:00 UTC にシャットダウンしました",
                None,
            ),
        ] {
            assert_eq!(said(message), what, "{message}");
        }
    }

    #[test]
    fn ends_that_are_not_told() {
        assert!(is_untold(&fatal(
            "予期しないpostmasterの終了のため、コネクションを終了します"
        )));
        assert!(!is_untold(&fatal("ロール\"x\"は存在しません")));
        assert!(!is_untold(&fatal("role \"x\" does not exist")));
        let coded = Record {
            sqlstate: Some("57P04".into()),
            ..fatal("予期しない終了")
        };
        assert!(!is_untold(&coded));
    }
}
