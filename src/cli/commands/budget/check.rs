//! `budget check` and `budget explain`.

use super::{files, live};
use crate::budget::{self, Budget, Report, Verdict};
use crate::cli::args::budget::{BudgetCheck, BudgetInput};
use crate::cli::commands::Context;
use crate::cli::fault::Fault;
use crate::model::ExitCode;
use crate::view::{self, Format, budget as shown};

pub async fn run(ctx: &mut Context<'_>, args: &BudgetCheck) -> Result<ExitCode, Fault> {
    let budget = files::budget(&args.input)?;
    let mut report = judged(&budget, &args.input);
    let drift = live::drift(ctx, args, &budget, &report).await?;
    if let Some(drift) = &drift {
        report.breaches.extend(drift.breaches.iter().cloned());
        if report.verdict == Verdict::Fits && !drift.breaches.is_empty() {
            report.verdict = Verdict::Tight;
        }
    }
    let base = match &args.base {
        Some(path) => {
            let base = files::of_paths(std::slice::from_ref(path), &args.input)?;
            Some(judged(&base, &args.input))
        }
        None => None,
    };
    let text = match ctx.console.format {
        Format::Json => {
            let mut json = shown::json(&report);
            if let Some(drift) = &drift {
                json["live"] = drift.json.clone();
            }
            view::show_json(ctx.console, &json)?;
            return Ok(report.exit_code(args.strict));
        }
        Format::Sarif => {
            view::show_json(
                ctx.console,
                &shown::sarif(&report, env!("CARGO_PKG_VERSION")),
            )?;
            return Ok(report.exit_code(args.strict));
        }
        Format::Junit => shown::junit(&report).map_err(Fault::Save)?,
        Format::Github => shown::github(&report),
        Format::Markdown => shown::markdown(&report, base.as_ref()),
        Format::Csv => rows(&report),
        _ => {
            let live = drift.as_ref().map(|drift| drift.text.as_str());
            shown::table(&report, args.strict, live, ctx.console.style)
        }
    };
    ctx.console.result(&text)?;
    Ok(report.exit_code(args.strict))
}

fn judged(budget: &Budget, input: &BudgetInput) -> Report {
    let fail_on: Vec<&str> = input.fail_on.iter().map(String::as_str).collect();
    budget::judge(budget, &fail_on)
}

/// One line a scenario.
fn rows(report: &Report) -> String {
    let mut out = String::from("server,scenario,peak,at_least,usable,verdict\r\n");
    for server in &report.servers {
        for scenario in &server.scenarios {
            let name = server.name.replace('"', "\"\"");
            out.push_str(&format!(
                "\"{name}\",{},{},{},{},{}\r\n",
                scenario.name,
                scenario.peak.at_least,
                !scenario.peak.exact,
                server.usable.at_least,
                scenario.verdict.word()
            ));
        }
    }
    out
}

pub fn explain(ctx: &mut Context<'_>, input: &BudgetInput) -> Result<ExitCode, Fault> {
    if !matches!(ctx.console.format, Format::Table | Format::Json) {
        return Err(Fault::Usage(
            "budget explain is a text, or with --json an object; budget check has the other formats".into(),
        ));
    }
    let budget = files::budget(input)?;
    let report = judged(&budget, input);
    let fail_on: Vec<&str> = input.fail_on.iter().map(String::as_str).collect();
    let largest = budget::largest(&budget, &fail_on);
    if ctx.console.format == Format::Json {
        view::show_json(ctx.console, &shown::explained(&report, &largest, &fail_on))?;
        return Ok(ExitCode::Ok);
    }
    let text = shown::explain(&report, &largest, &fail_on, ctx.console.style.width);
    ctx.console.result(&text)?;
    Ok(ExitCode::Ok)
}
