//! `stanch explain`: one finding, or all of them by name.

use super::Context;
use crate::analysis::catalog::{Entry, entry};
use crate::cli::fault::Fault;
use crate::model::{ExitCode, FindingId};
use crate::view::{self, Col, Format, Sheet, col, explain};

pub fn run(ctx: &mut Context<'_>, id: Option<&str>) -> Result<ExitCode, Fault> {
    let style = ctx.console.style;
    let Some(name) = id else {
        let all: Vec<Entry> = FindingId::ALL.iter().map(|id| entry(*id)).collect();
        return list(ctx, &all);
    };
    let wanted = name.to_lowercase();
    let Some(id) = FindingId::parse(&wanted) else {
        // A beginning (`conn`) lists what begins so.
        let some: Vec<Entry> = FindingId::ALL
            .iter()
            .filter(|id| id.name().starts_with(&wanted))
            .map(|id| entry(*id))
            .collect();
        if some.is_empty() {
            let known: Vec<&str> = FindingId::ALL.iter().map(|id| id.name()).collect();
            return Err(Fault::Usage(format!(
                "no finding {name:?}; there are: {}",
                known.join(", ")
            )));
        }
        return list(ctx, &some);
    };
    match ctx.console.format {
        Format::Table => ctx.console.result(&explain::page(&entry(id), style))?,
        Format::Csv
        | Format::Markdown
        | Format::Prometheus
        | Format::Sarif
        | Format::Junit
        | Format::Github => view::show_sheet(ctx.console, &sheet(&[entry(id)]))?,
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

fn list(ctx: &mut Context<'_>, entries: &[Entry]) -> Result<ExitCode, Fault> {
    match ctx.console.format {
        Format::Table => {
            let text = explain::list(entries, ctx.console.style);
            ctx.console.result(&text)?;
        }
        Format::Csv
        | Format::Markdown
        | Format::Prometheus
        | Format::Sarif
        | Format::Junit
        | Format::Github => view::show_sheet(ctx.console, &sheet(entries))?,
        Format::Json => {
            let findings =
                serde_json::json!({ "schema": "stanch.findings/1", "findings": entries });
            view::show_json(ctx.console, &findings)?;
        }
    }
    Ok(ExitCode::Ok)
}

fn sheet(entries: &[Entry]) -> Sheet {
    const COLUMNS: [Col; 6] = [
        col("id", "finding"),
        col("pattern", "pattern"),
        col("condition", "when"),
        col("meaning", "meaning"),
        col("relief", "relief"),
        col("cure", "cure"),
    ];
    Sheet::of("findings", &COLUMNS, entries)
}

#[derive(serde::Serialize)]
struct Explained {
    schema: &'static str,
    #[serde(flatten)]
    entry: Entry,
}
