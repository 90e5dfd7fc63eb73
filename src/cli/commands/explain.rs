//! `stanch explain`: one finding, or all of them by name.

use super::Context;
use crate::analysis::catalog::{Entry, entry};
use crate::cli::fault::Fault;
use crate::model::{ExitCode, FindingId};
use crate::view::{self, Format, explain};

pub fn run(ctx: &mut Context<'_>, id: Option<&str>) -> Result<ExitCode, Fault> {
    let style = ctx.console.style;
    let Some(name) = id else {
        let all: Vec<Entry> = FindingId::ALL.iter().map(|id| entry(*id)).collect();
        match ctx.console.format {
            Format::Table => ctx.console.result(&explain::list(&all, style))?,
            Format::Json => view::show_json(
                ctx.console,
                &serde_json::json!({ "schema": "stanch.findings/1", "findings": all }),
            )?,
        }
        return Ok(ExitCode::Ok);
    };
    let Some(id) = FindingId::parse(name) else {
        let known: Vec<&str> = FindingId::ALL.iter().map(|id| id.name()).collect();
        return Err(Fault::Usage(format!(
            "no finding {name:?}; there are: {}",
            known.join(", ")
        )));
    };
    match ctx.console.format {
        Format::Table => ctx.console.result(&explain::page(&entry(id), style))?,
        Format::Json => view::show_json(
            ctx.console,
            &Explained {
                schema: "stanch.finding/1",
                entry: entry(id),
            },
        )?,
    }
    Ok(ExitCode::Ok)
}

#[derive(serde::Serialize)]
struct Explained {
    schema: &'static str,
    #[serde(flatten)]
    entry: Entry,
}
