//! PgBouncer's admin console: SHOW and nothing else, by simple queries, since it takes no others. It lets its people in when the
//! pools and the server behind them are full.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::{Client, SimpleQueryMessage, SimpleQueryRow};

use super::postgres::{Plan, chain, console};
use crate::bundle;
use crate::model::{Millis, Pool, Pooler, RedactionLevel, Section};

/// It is one look beside others: whoever is silent isn't waited for.
const CONNECT: Duration = Duration::from_secs(2);
const ANSWER: Duration = Duration::from_secs(2);
/// Of the console itself.
const OWN: &str = "pgbouncer";

/// One look, as it may be seen and saved.
pub async fn look(plan: &Plan, redaction: RedactionLevel) -> Section<Pooler> {
    let mut seen = whole(plan).await;
    if redaction == RedactionLevel::Redacted {
        bundle::redact_pooler(&mut seen);
    }
    seen
}

/// The section for a console that gave no answer in time; `why` says how long it was awaited.
pub fn unanswered(why: String) -> Section<Pooler> {
    failed("deadline", why)
}

async fn whole(plan: &Plan) -> Section<Pooler> {
    let connected = match console(plan, CONNECT).await {
        Ok(connected) => connected,
        Err(error) => {
            let told = error.to_string();
            let lines: Vec<&str> = told.lines().map(str::trim).collect();
            return failed("connect", lines.join("; "));
        }
    };
    let asked = timeout(ANSWER, ask(&connected.client)).await;
    let (host, port) = (connected.spec.host.clone(), connected.spec.port);
    connected.close().await;
    match asked {
        Ok(Ok(told)) => Section::Collected(Pooler { host, port, ..told }),
        Ok(Err(error)) => failed("show", chain(&error)),
        Err(_) => unanswered(format!("no answer within {} s", ANSWER.as_secs())),
    }
}

fn failed(code: &str, message: String) -> Section<Pooler> {
    Section::Failed {
        code: code.into(),
        message: format!("PgBouncer's console: {message}"),
    }
}

async fn ask(client: &Client) -> Result<Pooler, tokio_postgres::Error> {
    let version = show(client, "SHOW VERSION").await?;
    // Older versions tell it as a notice.
    let version = version.first().and_then(|row| text(row, "version"));
    let databases = show(client, "SHOW DATABASES").await?;
    let databases: BTreeMap<String, SimpleQueryRow> = databases
        .into_iter()
        .filter_map(|row| Some((text(&row, "name")?, row)))
        .collect();
    let pools = show(client, "SHOW POOLS").await?;
    let pools = pools
        .iter()
        .filter_map(|row| pool(row, &databases))
        .filter(|pool| pool.database != OWN)
        .collect();
    let paused = match tells_state(version.as_deref().unwrap_or_default()) {
        true => paused(client).await?,
        false => None,
    };
    Ok(Pooler {
        host: String::new(),
        port: 0,
        version,
        paused,
        pools,
    })
}

/// `PgBouncer 1.18.0` doesn't know the command, and would write that into its log at each look.
fn tells_state(version: &str) -> bool {
    let numbers = version.rsplit(' ').next().unwrap_or_default();
    let mut numbers = numbers.split('.').map_while(|n| n.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(1), Some(19))
}

/// All of it, by a command that may be unknown all the same.
async fn paused(client: &Client) -> Result<Option<bool>, tokio_postgres::Error> {
    match show(client, "SHOW STATE").await {
        Ok(rows) => Ok(rows
            .iter()
            .find(|row| text(row, "key").as_deref() == Some("paused"))
            .and_then(|row| text(row, "value"))
            .map(|value| value == "yes")),
        Err(error) if error.as_db_error().is_some() => Ok(None),
        Err(error) => Err(error),
    }
}

async fn show(client: &Client, what: &str) -> Result<Vec<SimpleQueryRow>, tokio_postgres::Error> {
    let answer = client.simple_query(what).await?;
    let rows = answer.into_iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    Ok(rows.collect())
}

/// By name: each version has other columns (12 in 1.15, 17 in 1.24).
fn pool(row: &SimpleQueryRow, databases: &BTreeMap<String, SimpleQueryRow>) -> Option<Pool> {
    let database = text(row, "database")?;
    let of_database = databases.get(&database);
    let flag = |name| Some(number(of_database?, name)? != 0);
    // Whole seconds, and what is over them in µs.
    let wait = number(row, "maxwait").map(|seconds| {
        let over = number(row, "maxwait_us").unwrap_or(0) / 1000;
        Millis(u64::from(seconds) * 1000 + u64::from(over))
    });
    let mut pool = Pool {
        user: text(row, "user")?,
        mode: text(row, "pool_mode"),
        clients_active: number(row, "cl_active"),
        clients_waiting: number(row, "cl_waiting"),
        servers_active: number(row, "sv_active"),
        servers_idle: number(row, "sv_idle"),
        servers_used: number(row, "sv_used"),
        servers_tested: number(row, "sv_tested"),
        servers_login: number(row, "sv_login"),
        max_wait_ms: wait,
        size: of_database.and_then(|row| number(row, "pool_size")),
        database_limit: of_database
            .and_then(|row| number(row, "max_connections"))
            .filter(|limit| *limit > 0),
        database_open: of_database.and_then(|row| number(row, "current_connections")),
        paused: flag("paused"),
        disabled: flag("disabled"),
        database,
    };
    if pool.waits_for_nothing() {
        pool.max_wait_ms = None;
    }
    Some(pool)
}

fn text(row: &SimpleQueryRow, name: &str) -> Option<String> {
    row.try_get(name).ok().flatten().map(ToOwned::to_owned)
}

fn number(row: &SimpleQueryRow, name: &str) -> Option<u32> {
    row.try_get(name).ok().flatten()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_asked_for_its_state() {
        for (version, asked) in [
            ("PgBouncer 1.18.0", false),
            ("PgBouncer 1.19.1", true),
            ("PgBouncer 1.24.1", true),
            ("PgBouncer 2.0.0", true),
            ("", false),
            ("something else", false),
        ] {
            assert_eq!(tells_state(version), asked, "{version}");
        }
    }
}
