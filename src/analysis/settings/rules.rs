//! One rule a setting: the recommended value, the verdict, the reason.

use super::Verdict;
use super::duration::setting_ms;
use crate::model::{Millis, Setting, Snapshot};

/// A rule's word on one setting.
pub(super) struct Word {
    pub verdict: Verdict,
    /// The verdict where it isn't as it should be.
    pub otherwise: Verdict,
    pub recommended: Option<&'static str>,
    pub why: String,
}

pub(super) fn word(bad: bool, otherwise: Verdict, recommended: &'static str, why: &str) -> Word {
    Word {
        verdict: if bad { otherwise } else { Verdict::Ok },
        otherwise,
        recommended: Some(recommended),
        why: why.into(),
    }
}

pub(super) fn rule(setting: &Setting, snapshot: &Snapshot) -> Word {
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
                "error" | "warning" | "notice" | "info"
            ) && !setting.value.starts_with("debug"),
            Change,
            "error",
            "statements that fail (a deadlock's victim) aren't logged with their text",
        ),
        "log_min_messages" => word(
            // For the log LOG lies between ERROR and FATAL.
            matches!(setting.value.as_str(), "log" | "fatal" | "panic"),
            Change,
            "warning",
            "errors, deadlocks among them, aren't logged at all",
        ),
        "log_error_verbosity" => word(
            setting.value == "terse",
            Change,
            "default",
            "the log has no DETAIL: of a deadlock neither its circle nor its statements",
        ),
        "log_destination" | "logging_collector" => Word {
            verdict: Verdict::Ok,
            otherwise: Verdict::Consider,
            recommended: None,
            why: "where the log is; pg_current_logfile() says it, to whoever may call it".into(),
        },
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
            // From 18 on log_connections is a list, which shows a bool as it was typed.
            matches!(
                setting.value.as_str(),
                "" | "off" | "no" | "false" | "0" | "n" | "f"
            ),
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
