//! `stanch report`: the postmortem, as files that people go on writing in.

mod captures;
mod files;
mod lint;
mod material;
mod render;

use super::Context;
use crate::cli::args::report::ReportArgs;
use crate::cli::fault::Fault;
use crate::model::ExitCode;
use crate::postmortem::merge;
use crate::view::{self, Format};

pub fn run(ctx: &mut Context<'_>, args: &ReportArgs) -> Result<ExitCode, Fault> {
    if let Some(file) = &args.lint {
        return lint::lint(ctx, file);
    }
    if !matches!(ctx.console.format, Format::Table | Format::Markdown) {
        return Err(Fault::Usage(
            "a postmortem is Markdown and HTML: into files, or with -o md the Markdown to standard output".into(),
        ));
    }
    if args.bundles.is_empty() && args.journal.is_empty() {
        return Err(Fault::Usage(
            "of what? BUNDLE is what was captured, --journal RUN what was done; one of them is enough".into(),
        ));
    }
    let (postmortem, whole) = material::made(ctx, args)?;
    let of_logs = if whole {
        ExitCode::Ok
    } else {
        ExitCode::Unknown
    };
    let blocks = view::postmortem::blocks(&postmortem);
    if ctx.console.format == Format::Markdown {
        // A new rendering has no markers that could be damaged.
        let fresh = merge(&blocks, None).map_err(|damage| Fault::Save(damage.to_string()))?;
        ctx.console.result(&fresh.text)?;
        return Ok(of_logs);
    }
    Ok(match render::into_files(ctx, args, &postmortem, &blocks)? {
        ExitCode::Ok => of_logs,
        code => code,
    })
}
