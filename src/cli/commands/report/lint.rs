//! `report --lint`: what people still owe a postmortem.

use std::path::Path;

use crate::cli::commands::Context;
use crate::cli::fault::Fault;
use crate::cli::rounds;
use crate::model::ExitCode;
use crate::postmortem;
use crate::view;

pub fn lint(ctx: &mut Context<'_>, file: &Path) -> Result<ExitCode, Fault> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Fault::Book(format!("{}: {error}", file.display())))?;
    let today = rounds::local_now().utc().date_naive();
    let all = postmortem::lint(&text, today);
    let mut out = String::new();
    for one in &all {
        out.push_str(&view::clean(&format!(
            "{}:{}: {}",
            file.display(),
            one.line,
            one.what
        )));
        out.push('\n');
    }
    if all.is_empty() {
        ctx.console.note("nothing is missing");
        return Ok(ExitCode::Ok);
    }
    ctx.console.result(&out)?;
    Ok(ExitCode::Input)
}
