//! `stanch query list | show | run`

use serde_json::{Map, Value, json};

use super::Context;
use crate::cli::args::{FrameArgs, QueryCommand};
use crate::cli::fault::Fault;
use crate::cli::rounds;
use crate::model::{ExitCode, QueryRows, Snapshot};
use crate::source::postgres::catalog::{self, Topic};
use crate::source::postgres::query;
use crate::view::{self, Format, Names, Sheet};

pub async fn run(ctx: &mut Context<'_>, command: QueryCommand) -> Result<ExitCode, Fault> {
    match command {
        QueryCommand::List => list(ctx),
        QueryCommand::Show { name, server } => {
            let text = topic(&name)?.pastable(server);
            ctx.console.result(&format!("{};\n", text.trim_end()))?;
            Ok(ExitCode::Ok)
        }
        QueryCommand::Run(args) => run_one(ctx, topic(&args.name)?, &args.frame).await,
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
    args: &FrameArgs,
) -> Result<ExitCode, Fault> {
    if let Some(snapshot) = rounds::replayed(ctx, args)? {
        return show(ctx, topic, query::of_round(&snapshot, topic)?);
    }
    let settings = rounds::resolve(ctx, args)?;
    let connected = match rounds::connect(ctx, &settings).await {
        Ok(connected) => connected,
        Err(fault) => {
            // That there was no slot is worth keeping too.
            if let Fault::Connect(error) = &fault
                && args.save.is_some()
                && let Some(snapshot) = rounds::without_slot(error, &settings)
            {
                let pooler = rounds::look_at_pooler(&settings).await;
                let snapshot = Snapshot { pooler, ..snapshot };
                rounds::save(args.save.as_deref(), &snapshot)?;
            }
            return Err(fault);
        }
    };
    if args.save.is_none() {
        let rows = query::run(&connected, topic, settings.round).await;
        connected.close().await;
        return show(ctx, topic, &rows?);
    }
    let read = rounds::round_to_keep(&connected, &settings).await;
    connected.close().await;
    let snapshot = read?;
    // What can't be saved is shown all the same, and the fault is told after it.
    let saved = rounds::save(args.save.as_deref(), &snapshot);
    let code = show(ctx, topic, query::of_round(&snapshot, topic)?)?;
    saved.map(|()| code)
}

fn show(
    ctx: &mut Context<'_>,
    topic: &'static Topic,
    found: &QueryRows,
) -> Result<ExitCode, Fault> {
    let QueryRows { columns, rows } = found;
    match ctx.console.format {
        Format::Table => {
            let text = view::query::rows(columns, rows, ctx.console.style);
            ctx.console.result(&text)?;
        }
        Format::Csv
        | Format::Markdown
        | Format::Prometheus
        | Format::Sarif
        | Format::Junit
        | Format::Github => {
            view::show_sheet(ctx.console, &Sheet::raw(topic.name, columns, rows.clone()))?;
        }
        Format::Json => {
            let objects: Vec<Map<String, Value>> = rows
                .iter()
                .map(|row| columns.iter().cloned().zip(row.iter().cloned()).collect())
                .collect();
            let result = json!({ "schema": "stanch.query/1", "query": topic.name, "columns": columns, "rows": objects });
            view::show_json(ctx.console, &result)?;
        }
    }
    Ok(ExitCode::Ok)
}
