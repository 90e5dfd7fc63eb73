//! The end of a capture: sealed, and told.

use std::path::PathBuf;

use super::tape::Tape;
use crate::analysis::shell_word;
use crate::bundle::{self, End, Head};
use crate::cli::args::bundle::CaptureArgs;
use crate::cli::commands::Context;
use crate::cli::commands::bundle::{missing, told};
use crate::cli::fault::Fault;
use crate::model::ExitCode;
use crate::view::bundle::{Captured, captured};

/// Ends the folder, seals it, and tells what came of it.
pub fn finish(
    ctx: &mut Context<'_>,
    args: &CaptureArgs,
    mut tape: Tape,
    head: &Head,
    mut end: End,
) -> Result<ExitCode, Fault> {
    if let Some(error) = &tape.failed {
        end.whole = false;
        end.why = format!("something couldn't be written: {error}");
    } else if tape.folder.frames() == 0 {
        end.whole = false;
        end.why = "the server was never read".into();
    }
    let root: PathBuf = tape.folder.path().to_path_buf();
    let ended = tape.folder.end(&end);
    let gaps = missing(tape.folder.gaps());
    let mut result = Captured {
        schema: "stanch.capture/1",
        path: root.display().to_string(),
        sealed: false,
        sha256: None,
        bytes: tape.folder.bytes(),
        target: tape.target.clone(),
        started_at: head.started_at,
        ended_at: end.at,
        redaction: head.redaction,
        frames: tape.folder.frames(),
        worst: tape.worst.take().map(|(_, worst)| worst),
        why_partial: (!end.whole).then(|| end.why.clone()),
        gaps,
        next: Vec::new(),
    };
    let mut fault = ended.err().map(|error| {
        Fault::Save(format!(
            "{}: its end wasn't written: {error}",
            root.display()
        ))
    });
    if !args.no_seal && fault.is_none() {
        let name = bundle::sealed_name(
            &root.file_name().unwrap_or_default().to_string_lossy(),
            head.redaction,
        );
        match bundle::seal(&root, &root.with_file_name(name), &tape.known, &[]) {
            Ok(sealed) => {
                result.path = sealed.path.display().to_string();
                result.sealed = true;
                result.sha256 = Some(sealed.sha256);
                result.bytes = sealed.bytes;
                // All of it is in the file, as a rule.
                for damage in &sealed.left_out {
                    ctx.console.warn(&format!("{damage}: left out of the file"));
                }
                if sealed.left_out.is_empty()
                    && let Err(error) = std::fs::remove_dir_all(&root)
                {
                    ctx.console
                        .warn(&format!("{}: not removed: {error}", root.display()));
                }
            }
            Err(error) => fault = Some(error.into()),
        }
    }
    let word = shell_word(&result.path);
    if result.frames > 0 {
        result.next = vec![
            format!("stanch triage --from {word} --at worst"),
            format!("stanch report {word}"),
        ];
    }
    told(ctx, &result, captured)?;
    if let Some(fault) = fault {
        return Err(fault);
    }
    Ok(if result.why_partial.is_some() || !result.gaps.is_empty() {
        ExitCode::Unknown
    } else {
        ExitCode::Ok
    })
}
