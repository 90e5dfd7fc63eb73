//! `query run`: one built-in query and its rows as they came.

use serde_json::Value;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::catalog::{Param, Topic};
use super::collect::{RoundError, RoundOptions};
use super::connect::Connected;
use super::encoding::Encodings;
use super::reader::one_read;
use super::rows::{Cells, RowError};
use crate::bundle::{self, Class};
use crate::model::{Oid, QueryRows, RedactionLevel, Section, Snapshot, WATCHED_SETTINGS};

/// Why there are no rows.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    #[error(transparent)]
    Read(#[from] RoundError),
    #[error(transparent)]
    Row(#[from] RowError),
}

/// Why a round that was saved has no rows of a query.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    #[error("{query} wasn't read: {why}")]
    Failed { query: &'static str, why: String },
    #[error("no rows of {query}: there was no connection")]
    NoConnection { query: &'static str },
    /// An older version saved it.
    #[error("no rows of {query}: what was saved has no rows of queries")]
    NotKept { query: &'static str },
}

/// Runs a built-in query in a bounded read-only transaction.
///
/// # Errors
/// When the read fails, or a column has a type that the queries don't use.
pub async fn run(
    connected: &Connected,
    topic: &'static Topic,
    options: RoundOptions,
) -> Result<QueryRows, QueryError> {
    let sql = topic.sql(connected.major);
    let (rows, encodings) = match topic.param {
        None => one_read(connected, sql, &[], options).await?,
        // Of the settings only those that are watched: others may hold a password.
        Some(Param::TextArray) => {
            let names: &[&str] = &WATCHED_SETTINGS;
            one_read(connected, sql, &[(&names, Type::TEXT_ARRAY)], options).await?
        }
        Some(Param::Int4Array) => {
            null(connected, sql, &None::<Vec<i32>>, Type::INT4_ARRAY, options).await?
        }
        Some(Param::OidArray) => {
            null(connected, sql, &None::<Vec<u32>>, Type::OID_ARRAY, options).await?
        }
    };
    Ok(values(topic, &rows, &encodings, options.redaction)?)
}

/// The rows of a round, to be kept.
pub(super) fn kept(
    topic: &'static Topic,
    raw: Section<Vec<Row>>,
    encodings: &Encodings,
    level: RedactionLevel,
) -> Section<QueryRows> {
    match raw {
        Section::Collected(rows) => match values(topic, &rows, encodings, level) {
            Ok(rows) => Section::Collected(rows),
            Err(error) => Section::Failed {
                code: "row".into(),
                message: error.to_string(),
            },
        },
        Section::Skipped(why) => Section::Skipped(why),
        Section::Failed { code, message } => Section::Failed { code, message },
    }
}

/// The rows of a query that a round has kept.
///
/// # Errors
/// When that query failed in it, or no rows were kept.
pub fn of_round<'s>(
    snapshot: &'s Snapshot,
    topic: &'static Topic,
) -> Result<&'s QueryRows, KeptError> {
    let query = topic.name;
    match snapshot.queries.get(query) {
        None if snapshot.server.get().is_none() => Err(KeptError::NoConnection { query }),
        None => Err(KeptError::NotKept { query }),
        Some(section) => section.get().ok_or_else(|| KeptError::Failed {
            query,
            why: section.why().unwrap_or_default(),
        }),
    }
}

fn values(
    topic: &'static Topic,
    rows: &[Row],
    encodings: &Encodings,
    level: RedactionLevel,
) -> Result<QueryRows, RowError> {
    let columns: Vec<(String, Type)> = rows
        .first()
        .map(|row| {
            row.columns()
                .iter()
                .map(|c| (c.name().to_owned(), c.type_().clone()))
                .collect()
        })
        .unwrap_or_default();
    let values = rows
        .iter()
        .map(|row| row_values(topic.name, row, &columns, encodings, level))
        .collect::<Result<_, _>>()?;
    Ok(QueryRows {
        columns: if rows.is_empty() {
            topic.columns().map(ToOwned::to_owned).collect()
        } else {
            columns.into_iter().map(|(name, _)| name).collect()
        },
        rows: values,
    })
}

/// More aren't a runbook's business.
const MOST_ROWS: usize = 1000;

/// Runs a statement of a runbook, which is one that reads, in a bounded read-only transaction. Its parameters are bound as
/// texts, its rows come as objects.
///
/// # Errors
/// When the read fails, or a row can't be read.
pub async fn run_statement(
    connected: &Connected,
    statement: &str,
    args: &[String],
    options: RoundOptions,
) -> Result<Vec<Value>, QueryError> {
    // Its end on a line of its own: the statement may end in a comment. `.*`: a column of that name isn't the row. Not jsonb, which sorts the columns.
    let sql = format!(
        "SELECT pg_catalog.row_to_json(stanch_row.*)::pg_catalog.text AS found FROM (\n{statement}\n) stanch_row LIMIT {}",
        MOST_ROWS + 1
    );
    let params: Vec<(&(dyn ToSql + Sync), Type)> = args
        .iter()
        .map(|arg| (arg as &(dyn ToSql + Sync), Type::TEXT))
        .collect();
    let (rows, encodings) = one_read(connected, &sql, &params, options).await?;
    let fault = |what: String| RowError {
        query: "statement",
        what,
    };
    if rows.len() > MOST_ROWS {
        let what = format!("more than {MOST_ROWS} rows: aggregate, or add a LIMIT");
        return Err(fault(what).into());
    }
    let mut all = Vec::with_capacity(rows.len());
    for row in &rows {
        let cells = Cells::new("statement", row, encodings.own);
        let text = cells.text("found")?.unwrap_or_default();
        let found: Value = serde_json::from_str(&text).map_err(|error| fault(error.to_string()))?;
        all.push(match found {
            Value::Object(fields) => {
                let fields = fields.into_iter();
                Value::Object(
                    fields
                        .map(|(name, value)| {
                            let value = redacted(&name, value);
                            (name, value)
                        })
                        .collect(),
                )
            }
            other => other,
        });
    }
    Ok(all)
}

async fn null(
    connected: &Connected,
    sql: &str,
    value: &(dyn ToSql + Sync),
    ty: Type,
    options: RoundOptions,
) -> Result<(Vec<Row>, Encodings), RoundError> {
    one_read(connected, sql, &[(value, ty)], options).await
}

fn row_values(
    query: &'static str,
    row: &Row,
    columns: &[(String, Type)],
    encodings: &Encodings,
    level: RedactionLevel,
) -> Result<Vec<Value>, RowError> {
    let cells = Cells::new(query, row, encodings.own);
    // Whose encoding a statement or a gid is in.
    let database = ["datid", "dbid"]
        .into_iter()
        .find(|name| columns.iter().any(|(column, _)| column == name))
        .map_or(Ok(None), |name| cells.opt::<u32>(name))?
        .map(Oid);
    columns
        .iter()
        .map(|(name, ty)| {
            let value = match name.as_str() {
                "query" | "gid" => cells
                    .bytes(name)?
                    .map(|bytes| encodings.decode(database, bytes))
                    .into(),
                _ => value(&cells, name, ty)?,
            };
            Ok(match value {
                // A time is a text too, but nobody's.
                Value::String(text) if *ty != Type::TIMESTAMPTZ => {
                    Value::String(bundle::shown(bundle::class(query, name), text, level))
                }
                value => value,
            })
        })
        .collect()
}

fn value(cells: &Cells<'_>, name: &str, ty: &Type) -> Result<Value, RowError> {
    Ok(match *ty {
        Type::BOOL => cells.opt::<bool>(name)?.into(),
        Type::INT2 => cells.opt::<i16>(name)?.into(),
        Type::INT4 => cells.opt::<i32>(name)?.into(),
        Type::INT8 => cells.opt::<i64>(name)?.into(),
        Type::OID => cells.opt::<u32>(name)?.into(),
        Type::INT4_ARRAY => cells.opt::<Vec<i32>>(name)?.into(),
        Type::TIMESTAMPTZ => cells.time(name)?.map(|at| at.to_string()).into(),
        _ => cells.text(name)?.into(),
    })
}

/// A column of a runbook's statement: reduced where its name says what it holds.
fn redacted(column: &str, value: Value) -> Value {
    let class = bundle::class("", column);
    match value {
        Value::String(text)
            if matches!(
                class,
                Class::Statement | Class::Override | Class::Application
            ) =>
        {
            Value::String(bundle::shown(class, text, RedactionLevel::Redacted))
        }
        value => value,
    }
}
