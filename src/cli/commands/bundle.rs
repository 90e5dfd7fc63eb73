//! `stanch bundle …`: `verify` gives 65 for a fault, 2 for a secret, 3 for a bundle that isn't whole.

use std::path::Path;

use serde::Serialize;

use super::Context;
use crate::analysis::compare::compare;
use crate::analysis::glance::{self, glance};
use crate::analysis::shell_word;
use crate::bundle::{self, Bundle, Gap, Tokens};
use crate::cli::args::bundle::BundleCommand;
use crate::cli::fault::Fault;
use crate::cli::{secrets, settings};
use crate::model::{ExitCode, Thresholds};
use crate::source::saved::{self, When};
use crate::view::bundle::{
    Missing, NamedToken, NamedTokens, Shown, ShownAllowance, ShownFrame, ShownReport, Verified,
    compared, named, shown, verified,
};
use crate::view::{self, Format};

pub fn run(ctx: &mut Context<'_>, command: &BundleCommand) -> Result<ExitCode, Fault> {
    match command {
        BundleCommand::Verify { bundle } => verify(ctx, bundle),
        BundleCommand::Show { bundle } => show(ctx, bundle),
        BundleCommand::Diff {
            before,
            after,
            at,
            to,
        } => diff(ctx, before, after.as_deref(), *at, *to),
        BundleCommand::Names { bundle, names, key } => names_of(ctx, bundle, names, key.as_deref()),
        BundleCommand::Seal { folder, out, allow } => {
            let bundle = Bundle::open(folder)?;
            let name = bundle::sealed_name(&bundle.name(), bundle.head().redaction);
            let to = match out {
                Some(out) => out.clone(),
                None => folder.canonicalize()?.with_file_name(name),
            };
            if to.exists() {
                return Err(Fault::Usage(format!(
                    "{} is there already: --out FILE names another",
                    to.display()
                )));
            }
            let known = secrets::of_bundle(ctx, bundle.head());
            let sealed = bundle::seal(folder, &to, &known, allow)?;
            ctx.console.note(&format!(
                "sealed: {}; the folder is still there: {}",
                to.display(),
                folder.display()
            ));
            ctx.console
                .result(&format!("{}  {}\n", sealed.sha256, to.display()))?;
            for damage in &sealed.left_out {
                ctx.console.warn(&format!(
                    "{damage}: left out of it; the folder has it still"
                ));
            }
            let partial = &sealed.manifest.why_partial;
            if let Some(why) = partial {
                ctx.console.warn(&format!("a partial bundle: {why}"));
            }
            Ok(if partial.is_some() || !sealed.left_out.is_empty() {
                ExitCode::Unknown
            } else {
                ExitCode::Ok
            })
        }
    }
}

/// As text or as JSON: a bundle's facts are no list.
pub fn told<T: Serialize>(
    ctx: &mut Context<'_>,
    value: &T,
    text: impl Fn(&T, view::Style) -> String,
) -> Result<(), Fault> {
    if ctx.console.format == Format::Json {
        view::show_json(ctx.console, value)?;
    } else {
        let text = text(value, ctx.console.style);
        ctx.console.result(&text)?;
    }
    Ok(())
}

/// What the gaps of a bundle say.
pub fn missing(gaps: &[Gap]) -> Vec<Missing> {
    gaps.iter()
        .map(|gap| Missing {
            at: gap.at,
            until: gap.until,
            times: gap.times,
            what: gap.what.clone(),
            why: gap.why.clone(),
        })
        .collect()
}

fn verify(ctx: &mut Context<'_>, path: &Path) -> Result<ExitCode, Fault> {
    let bundle = Bundle::open_to_verify(path)?;
    let known = secrets::of_bundle(ctx, bundle.head());
    let checked = bundle::verify(&bundle, &known)?;
    let why_partial = bundle.why_partial();
    let result = Verified {
        schema: "stanch.bundle_verify/1",
        path: path.display().to_string(),
        sha256: checked.sha256,
        files: checked.files,
        bytes: checked.bytes,
        sealed: !checked.unsealed,
        redaction: bundle.head().redaction,
        whole: why_partial.is_none(),
        faults: checked.faults,
        secrets: checked.hits.iter().map(ToString::to_string).collect(),
    };
    told(ctx, &result, verified)?;
    if let Some(why) = &why_partial {
        ctx.console.warn(&format!("a partial bundle: {why}"));
    }
    Ok(if !result.secrets.is_empty() {
        ExitCode::Critical
    } else if !result.faults.is_empty() {
        ExitCode::Input
    } else if why_partial.is_some() {
        ExitCode::Unknown
    } else {
        ExitCode::Ok
    })
}

fn show(ctx: &mut Context<'_>, path: &Path) -> Result<ExitCode, Fault> {
    let bundle = Bundle::open(path)?;
    let mut frames = Vec::new();
    let mut target = bundle.head().target.clone();
    let mut gaps = missing(bundle.gaps());
    bundle.each_frame(&mut |frame, snapshot| match snapshot {
        Ok(snapshot) => {
            frames.push(ShownFrame {
                number: frame.number,
                seen: glance(&snapshot),
            });
            target = snapshot.target;
        }
        Err(error) => gaps.push(Missing {
            at: frame.at,
            until: None,
            times: 1,
            what: format!("frame {}", frame.number),
            why: error.to_string(),
        }),
    })?;
    let damaged = gaps.len() > bundle.gaps().len();
    let shown_path = path.display().to_string();
    let word = shell_word(&shown_path);
    let head = bundle.head();
    let allowed = bundle
        .manifest()
        .map_or(&[][..], |manifest| &manifest.allowed);
    let result = Shown {
        schema: "stanch.bundle_show/1",
        sealed: bundle.is_sealed(),
        stanch: head.stanch.clone(),
        target,
        started_at: head.started_at,
        ended_at: bundle
            .end()
            .map(|end| end.at)
            .or_else(|| frames.last().map(|frame| frame.seen.at)),
        redaction: head.redaction,
        why_partial: bundle.why_partial(),
        redis: bundle
            .redis()
            .iter()
            .map(|report| ShownReport {
                report: report.report.clone(),
                at: report.at,
            })
            .collect(),
        logs: bundle.logs()?.len(),
        gaps,
        allowed: allowed
            .iter()
            .map(|allowed| ShownAllowance {
                rule: allowed.rule.clone(),
                reason: allowed.reason.clone(),
                places: allowed.places,
            })
            .collect(),
        tokens: head.tokens,
        next: vec![
            format!("stanch triage --from {word} --at worst"),
            format!("stanch report {word}"),
        ],
        path: shown_path,
        frames,
    };
    told(ctx, &result, shown)?;
    Ok(if damaged {
        ExitCode::Input
    } else {
        ExitCode::Ok
    })
}

/// Each token of a name that stands in a bundle, and how often. What it is called is in neither the bundle nor the key alone.
fn names_of(
    ctx: &mut Context<'_>,
    path: &Path,
    names: &[String],
    key: Option<&Path>,
) -> Result<ExitCode, Fault> {
    let bundle = Bundle::open(path)?;
    if !bundle.head().tokens {
        return Err(Fault::Usage(format!(
            "{}: it has no tokens: names stand in it as they are",
            path.display()
        )));
    }
    let key = match key {
        Some(key) => key.to_path_buf(),
        None => secrets::key_of(ctx.env, bundle.head().started_at)?,
    };
    let text = std::fs::read_to_string(&key)
        .map_err(|error| Fault::Usage(format!("--key {}: {error}", key.display())))?;
    let tokens = Tokens::new(text.trim());
    let mut all: Vec<NamedToken> = names
        .iter()
        .flat_map(|name| {
            tokens
                .all_of(name)
                .into_iter()
                .map(|(kind, token)| NamedToken {
                    token,
                    kind,
                    name: name.clone(),
                    places: 0,
                })
        })
        .collect();
    bundle.each(&mut |_, bytes| {
        let text = String::from_utf8_lossy(bytes);
        for one in &mut all {
            one.places += text.matches(&one.token).count();
        }
        Ok(())
    })?;
    all.retain(|one| one.places > 0);
    let missing = names
        .iter()
        .filter(|name| all.iter().all(|one| one.name != **name));
    let result = NamedTokens {
        schema: "stanch.bundle_names/1",
        missing: missing.cloned().collect(),
        tokens: all,
    };
    told(ctx, &result, named)?;
    Ok(match result.missing.is_empty() {
        true => ExitCode::Ok,
        false => ExitCode::Unknown,
    })
}

fn diff(
    ctx: &mut Context<'_>,
    before: &Path,
    after: Option<&Path>,
    at: Option<When>,
    to: Option<When>,
) -> Result<ExitCode, Fault> {
    let thresholds: Thresholds = settings::thresholds(ctx.env, &[])?;
    // Of one bundle: from its first frame to its last.
    let first = if after.is_some() {
        When::Last
    } else {
        When::First
    };
    let earlier = saved::load(before, at.unwrap_or(first), glance::weight)?;
    let later = saved::load(
        after.unwrap_or(before),
        to.unwrap_or_default(),
        glance::weight,
    )?;
    for (path, loaded) in [(before, &earlier), (after.unwrap_or(before), &later)] {
        for damage in &loaded.damaged {
            ctx.console.warn(&format!("{}: {damage}", path.display()));
        }
    }
    let place = |loaded: &saved::Loaded| {
        let target = &loaded.snapshot.target;
        (target.host.clone(), target.port)
    };
    if place(&earlier) != place(&later) {
        ctx.console.warn(&format!(
            "two servers are compared: {} and {}",
            earlier.snapshot.target.label(),
            later.snapshot.target.label()
        ));
    }
    let result = compare(&earlier.snapshot, &later.snapshot, &thresholds);
    if ctx.console.format == Format::Json {
        #[derive(Serialize)]
        struct Document<'d, T> {
            schema: &'static str,
            #[serde(flatten)]
            data: &'d T,
        }
        let document = Document {
            schema: "stanch.bundle_diff/1",
            data: &result,
        };
        view::show_json(ctx.console, &document)?;
    } else {
        let text = compared(&result, ctx.console.style);
        ctx.console.result(&text)?;
    }
    Ok(ExitCode::Ok)
}
