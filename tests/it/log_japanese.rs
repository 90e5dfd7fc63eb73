//! What a server with `lc_messages = ja_JP` wrote, without any SQLSTATE: what a report tells of it, and what it says it can't.

use std::fs;
use std::path::Path;
use std::process::Command;

use stanch::bundle;

/// Lines of PostgreSQL 15 as it wrote them; the time is the capture's.
const LINES: [&str; 12] = [
    "[1] LOG:  データベースシステムの接続受け付け準備が整いました",
    "[2] FATAL:  ロール\"lim\"からの接続が多すぎます",
    "[3] FATAL:  データベース\"x\"への接続が多すぎます",
    "[4] FATAL:  トランザクション中アイドルタイムアウトのため接続を終了します",
    "[5] FATAL:  残りの接続スロットはレプリケーションユーザーではないスーパーユーザー用に予約されています",
    "[1] LOG:  サーバープロセス (PID 27417)はシグナル9で終了しました: 強制終了",
    "[1] 詳細:  失敗したプロセスが実行していました: select pg_sleep(3)",
    "[6] LOG:  データベースシステムは中断されました: 2026-12-01 05:47:27 UTC まで動作していたことは確認できます",
    "[6] LOG:  データベースシステムは正しくシャットダウンされていません; 自動リカバリを実行中",
    "[7] FATAL:  ロール\"nobody\"は存在しません",
    "[8] 致命的エラー:  予期しないpostmasterの終了のため、コネクションを終了します",
    "[9] パニック:  有効なチェックポイントが見つかりませんでした",
];

#[test]
fn a_japanese_log_is_told() {
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures/lock-queue.json");
    let at = bundle::read(&stored).expect("a capture").taken_at.utc();
    let place = tempfile::tempdir().expect("a folder");
    let at = at.format("%Y-%m-%d %H:%M:%S%.3f UTC");
    let log: String = LINES.map(|line| format!("{at} {line}\n")).concat();
    fs::write(place.path().join("ja.log"), log).expect("written");
    let output = Command::new(env!("CARGO_BIN_EXE_stanch"))
        .args(["report", "-o", "md", "--log", "ja.log"])
        .arg(stored)
        .env_clear()
        .current_dir(place.path())
        .output()
        .expect("run");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    for told in [
        "server ready",
        "refused: the connection limit of role lim is used up",
        "refused: the connection limit of database x is used up",
        "session ended (idle in transaction too long)",
        "connections refused: no slot",
        "a server process crashed",
        "server recovers: it was interrupted",
        "2 lines: FATAL or PANIC in words that aren't known here",
    ] {
        assert!(text.contains(told), "{told}: {text}{errors}");
    }
    assert!(!text.contains("interrupted (2 times)"), "{text}");
    assert_eq!(output.status.code(), Some(3), "{errors}");
}
