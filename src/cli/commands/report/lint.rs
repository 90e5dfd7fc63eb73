//! `report --lint`: what people still owe a postmortem.

use std::path::Path;

use crate::cli::commands::Context;
use crate::cli::fault::Fault;
use crate::cli::rounds;
use crate::model::ExitCode;
use crate::postmortem;
use crate::view::{self, Format, postmortem as shown};

pub fn lint(ctx: &mut Context<'_>, file: &Path) -> Result<ExitCode, Fault> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Fault::Book(format!("{}: {error}", file.display())))?;
    if !postmortem::is_one(&text) {
        return Err(foreign(file));
    }
    let name = file.display().to_string();
    let today = rounds::local_now().utc().date_naive();
    let all = postmortem::lint(&text, today);
    match ctx.console.format {
        Format::Json => view::show_json(ctx.console, &shown::lint_json(&name, &all))?,
        Format::Github => ctx.console.result(&shown::lint_github(&name, &all))?,
        Format::Table => ctx.console.result(&shown::lint_lines(&name, &all))?,
        _ => {
            return Err(Fault::Usage(
                "report --lint is lines, or with --json an object, or -o github annotations".into(),
            ));
        }
    }
    if all.is_empty() {
        ctx.console.note("nothing is missing");
        return Ok(ExitCode::Ok);
    }
    Ok(ExitCode::Input)
}

/// Of a page the Markdown beside it is.
fn foreign(file: &Path) -> Fault {
    let is_page = file
        .extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("html"));
    let told = match is_page {
        true => format!(
            "is the page of a postmortem; people write in {}",
            file.with_extension("md").display()
        ),
        false => "is no postmortem that stanch report wrote".to_owned(),
    };
    Fault::Book(format!("{}: it {told}", file.display()))
}
