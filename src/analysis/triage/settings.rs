//! Settings that make the next incident worse: information only, since a stock server is a healthy one.

use super::judge::Judge;
use crate::analysis::settings::{Verdict, judge_all};
use crate::model::{FindingId, Severity};

pub(super) fn judge(judge: &mut Judge<'_>) {
    let settings = judge_all(judge.snapshot);
    for (name, id) in [
        (
            "idle_in_transaction_session_timeout",
            FindingId::SettingsNoIdleTxTimeout,
        ),
        ("statement_timeout", FindingId::SettingsNoStatementTimeout),
        ("log_lock_waits", FindingId::SettingsLogLockWaitsOff),
    ] {
        let Some(setting) = settings
            .iter()
            .find(|s| s.name == name && s.verdict == Verdict::Change)
        else {
            continue;
        };
        let title = format!("{name} is {}", setting.words());
        judge.find(
            id,
            Severity::Info,
            title,
            vec![setting.why.clone()],
            &["pg settings"],
        );
    }
}
