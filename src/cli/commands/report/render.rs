//! The two files: merged with what stands there, and written.

use super::files;
use crate::analysis::shell_word;
use crate::cli::args::report::ReportArgs;
use crate::cli::commands::Context;
use crate::cli::fault::Fault;
use crate::cli::rounds;
use crate::model::{ExitCode, count};
use crate::postmortem::{Block, Lost, Origin, Postmortem, lint, merge};
use crate::view;

/// Renders into what people have written since the last time.
///
/// # Errors
/// Where nothing may be written, or nothing can be.
pub fn into_files(
    ctx: &mut Context<'_>,
    args: &ReportArgs,
    postmortem: &Postmortem,
    blocks: &[Block],
) -> Result<ExitCode, Fault> {
    let name = args
        .name
        .clone()
        .unwrap_or_else(|| files::name_of(postmortem));
    let markdown = args.out.join(format!("postmortem-{name}.md"));
    let earlier = files::earlier(&markdown)?;
    let origin = earlier.as_deref().and_then(Origin::read);
    let merged = merge(blocks, earlier.as_deref()).map_err(|damage| {
        Fault::Book(format!(
            "{}: {damage}; nothing is written: mend the markers, or give another --name",
            markdown.display()
        ))
    })?;
    if let Some(lost) = origin.and_then(|origin| origin.lost(postmortem)) {
        let told = told(&lost);
        if lost.is_all {
            return Err(Fault::Book(format!(
                "{}: nothing that it was made of is given: {told}; nothing is written: give that too where it is one incident, \
                 else another --name",
                markdown.display()
            )));
        }
        ctx.console.warn(&format!(
            "{}: it was made of more, which is no longer in it: {told}; to have that again, give it too",
            markdown.display()
        ));
    }
    for warning in &merged.warnings {
        ctx.console
            .warn(&format!("{}: {warning}", markdown.display()));
    }
    let html = view::postmortem::html(postmortem, &merged.text)
        .map_err(|damage| Fault::Save(format!("{}: {damage}", markdown.display())))?;
    let page = markdown.with_extension("html");
    // Somebody may have saved it while the captures were read.
    if files::earlier(&markdown)? != earlier {
        return Err(Fault::Busy(format!(
            "{}: it was written in the meantime; nothing is written: the same command again",
            markdown.display()
        )));
    }
    files::write(&markdown, &merged.text)?;
    files::write(&page, &html)?;
    ctx.console
        .result(&format!("{}\n{}\n", markdown.display(), page.display()))?;
    let today = rounds::local_now().utc().date_naive();
    let open = lint(&merged.text, today).len();
    if open > 0 {
        ctx.console.note(&format!(
            "{} for people to write: stanch report --lint {}",
            count(open, "thing"),
            shell_word(&markdown.display().to_string())
        ));
    }
    Ok(ExitCode::Ok)
}

/// What is missing, and in which files it may be found.
fn told(lost: &Lost) -> String {
    let missing = lost.missing.join("; ");
    match lost.files.as_slice() {
        [] => missing,
        [one] => format!("{missing}; from {one}"),
        [first, .., last] => format!(
            "{missing}; from {}, {first} to {last}",
            count(lost.files.len(), "file")
        ),
    }
}
