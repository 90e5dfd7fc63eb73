//! `stanch query list | show | run`

use serde_json::{Map, Value, json};

use super::Context;
use crate::cli::args::{ConnectArgs, QueryCommand};
use crate::cli::fault::Fault;
use crate::cli::rounds;
use crate::cli::settings::ConnectSettings;
use crate::model::ExitCode;
use crate::source::postgres::catalog::{self, Topic};
use crate::source::postgres::query::{self, Rows};
use crate::view::{self, Format, Names, Sheet};

pub async fn run(ctx: &mut Context<'_>, command: QueryCommand) -> Result<ExitCode, Fault> {
    match command {
        QueryCommand::List => list(ctx),
        QueryCommand::Show { name, server } => {
            let text = topic(&name)?.pastable(server);
            ctx.console.result(&format!("{};\n", text.trim_end()))?;
            Ok(ExitCode::Ok)
        }
        QueryCommand::Run { name, connect } => run_one(ctx, topic(&name)?, &connect).await,
    }
}

fn topic(name: &str) -> Result<&'static Topic, Fault> {
    Topic::named(name).ok_or_else(|| {
        let known: Vec<&str> = catalog::all().iter().map(|topic| topic.name).collect();
        Fault::Usage(format!(
            "no query {name:?}; there are: {}",
            known.join(", ")
        ))
    })
}

fn list(ctx: &mut Context<'_>) -> Result<ExitCode, Fault> {
    let all: Vec<(&str, &str)> = catalog::all()
        .iter()
        .map(|topic| (topic.name, topic.summary()))
        .collect();
    let names = Names {
        list: "queries",
        columns: ["name", "reads"],
        titles: ["query", "what it reads"],
    };
    view::show_names(ctx.console, &names, &all)?;
    Ok(ExitCode::Ok)
}

async fn run_one(
    ctx: &mut Context<'_>,
    topic: &'static Topic,
    args: &ConnectArgs,
) -> Result<ExitCode, Fault> {
    let settings = ConnectSettings::resolve(args, ctx.env)?;
    let connected = rounds::connect(ctx, &settings).await?;
    let read = query::run(&connected, topic, settings.round).await;
    connected.close().await;
    let Rows { columns, rows } = read?;
    match ctx.console.format {
        Format::Table => {
            let text = view::query::rows(&columns, &rows, ctx.console.style);
            ctx.console.result(&text)?;
        }
        Format::Csv
        | Format::Markdown
        | Format::Prometheus
        | Format::Sarif
        | Format::Junit
        | Format::Github => {
            view::show_sheet(ctx.console, &Sheet::raw(topic.name, &columns, rows))?;
        }
        Format::Json => {
            let objects: Vec<Map<String, Value>> = rows
                .into_iter()
                .map(|row| columns.iter().cloned().zip(row).collect())
                .collect();
            let result = json!({ "schema": "stanch.query/1", "query": topic.name, "columns": columns, "rows": objects });
            view::show_json(ctx.console, &result)?;
        }
    }
    Ok(ExitCode::Ok)
}
