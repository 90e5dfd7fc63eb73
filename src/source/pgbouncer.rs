//! PgBouncer's admin console: SHOW and nothing else, by simple queries, since it takes no others. It lets its people in when the
//! pools and the server behind them are full.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::{Client, SimpleQueryMessage, SimpleQueryRow};

use super::postgres::{Plan, chain, console};
use crate::model::{Millis, Pool, Pooler, Section};

/// It is one look beside others: whoever is silent isn't waited for.
const CONNECT: Duration = Duration::from_secs(2);
const ANSWER: Duration = Duration::from_secs(2);
/// Of the console itself.
const OWN: &str = "pgbouncer";

/// One look.
pub async fn look(plan: &Plan) -> Section<Pooler> {
    let connected = match console(plan, CONNECT).await {
        Ok(connected) => connected,
        Err(error) => return failed("connect", error.to_string()),
    };
    let asked = timeout(ANSWER, ask(&connected.client)).await;
    let (host, port) = (connected.spec.host.clone(), connected.spec.port);
    connected.close().await;
    match asked {
        Ok(Ok((version, pools))) => Section::Collected(Pooler {
            host,
            port,
            version,
            pools,
        }),
        Ok(Err(error)) => failed("show", chain(&error)),
        Err(_) => failed(
            "deadline",
            format!("no answer within {} s", ANSWER.as_secs()),
        ),
    }
}

fn failed(code: &str, message: String) -> Section<Pooler> {
    Section::Failed {
        code: code.into(),
        message: format!("PgBouncer's console: {message}"),
    }
}

async fn ask(client: &Client) -> Result<(Option<String>, Vec<Pool>), tokio_postgres::Error> {
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
    Ok((version, pools))
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
    Some(Pool {
        user: text(row, "user")?,
        mode: text(row, "pool_mode"),
        clients_active: number(row, "cl_active"),
        clients_waiting: number(row, "cl_waiting"),
        servers_active: number(row, "sv_active"),
        servers_idle: number(row, "sv_idle"),
        servers_login: number(row, "sv_login"),
        max_wait_ms: wait,
        size: of_database.and_then(|row| number(row, "pool_size")),
        paused: flag("paused"),
        disabled: flag("disabled"),
        database,
    })
}

fn text(row: &SimpleQueryRow, name: &str) -> Option<String> {
    row.try_get(name).ok().flatten().map(ToOwned::to_owned)
}

fn number(row: &SimpleQueryRow, name: &str) -> Option<u32> {
    row.try_get(name).ok().flatten()?.parse().ok()
}
