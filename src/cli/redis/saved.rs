//! Reports of Redis as they were: `--save` writes the report's JSON, `--from` shows it again, also out of a bundle. What is
//! shown is always what was (or would be) saved, so both give the same bytes.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::analysis::glance;
use crate::analysis::redis::RedisReport;
use crate::bundle::{self, Bundle, BundleError};
use crate::cli::args::redis::KeepArgs;
use crate::cli::commands::Context;
use crate::cli::fault::Fault;
use crate::source::saved::{self, When};

/// A saved report, or what is read now, as it may be seen and as it is kept.
///
/// # Errors
/// When a file can't be read or written, or the read fails.
pub async fn report<D: Serialize + DeserializeOwned>(
    ctx: &mut Context<'_>,
    name: &str,
    args: &KeepArgs,
    read: impl AsyncFnOnce(&mut Context<'_>) -> Result<RedisReport<D>, Fault>,
) -> Result<RedisReport<D>, Fault> {
    if let Some(report) = replayed(ctx, name, args)? {
        return Ok(report);
    }
    let report = read(ctx).await?;
    kept(ctx, name, args, &report)
}

/// The report as it was saved; `None`: it is to be read now.
fn replayed<D: DeserializeOwned>(
    ctx: &mut Context<'_>,
    report: &str,
    args: &KeepArgs,
) -> Result<Option<RedisReport<D>>, Fault> {
    let Some(path) = &args.from else {
        return Ok(None);
    };
    let when = args.at.at.unwrap_or_default();
    let (bytes, place) = saved::redis(path, report, when, glance::weight)?;
    let found: RedisReport<D> = parsed(&place, report, &bytes)?;
    if ctx.stdout_is_terminal {
        let at = found.head.taken_at.utc();
        ctx.console.note(&format!(
            "replayed from {}: as it was at {}",
            place.display(),
            at.format("%Y-%m-%d %H:%M:%S UTC")
        ));
    }
    Ok(Some(found))
}

/// The report as it may be seen, written where that is wanted.
fn kept<D: Serialize + DeserializeOwned>(
    ctx: &mut Context<'_>,
    name: &str,
    args: &KeepArgs,
    report: &RedisReport<D>,
) -> Result<RedisReport<D>, Fault> {
    if args.unredacted {
        ctx.console
            .warn("--unredacted: what is shown and saved has names of keys and jobs as they are");
    }
    let bytes = text(report, !args.unredacted)?;
    if let Some(file) = &args.save {
        bundle::write_bytes(file, &bytes)
            .map_err(|e| Fault::Save(format!("{}: not saved: {e}", file.display())))?;
    }
    parsed(Path::new("report"), name, &bytes)
}

/// The bytes of a report, as a bundle has them.
///
/// # Errors
/// When it can't be written as JSON.
pub fn text(report: &impl Serialize, redacted: bool) -> Result<Vec<u8>, Fault> {
    let json = |error: serde_json::Error| Fault::Io(error.into());
    let mut value = serde_json::to_value(report).map_err(json)?;
    if redacted {
        bundle::redact_value(&mut value);
    }
    let mut bytes = serde_json::to_vec_pretty(&value).map_err(json)?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn parsed<D: DeserializeOwned>(
    path: &Path,
    report: &str,
    bytes: &[u8],
) -> Result<RedisReport<D>, Fault> {
    let damaged = |what: String| {
        Fault::Saved(BundleError::Damaged {
            path: path.to_path_buf(),
            what,
        })
    };
    #[derive(serde::Deserialize)]
    struct Kind {
        schema: Option<String>,
    }
    let kind: Kind = serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
    let schema = kind.schema.unwrap_or_default();
    if schema != format!("stanch.{report}/1") {
        return Err(damaged(format!("no saved report {report:?} of Redis")));
    }
    serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))
}

/// The reports of Redis that a bundle has at a time, by name.
///
/// # Errors
/// When one can't be read.
pub fn reports(path: &Path, when: When) -> Result<BTreeMap<String, serde_json::Value>, Fault> {
    if !Bundle::is_bundle(path)? {
        return Ok(BTreeMap::new());
    }
    let bundle = Bundle::open(path)?;
    let at = saved::choose(&bundle, when, glance::weight)?.at;
    let mut found = BTreeMap::new();
    for name in ["info", "hotkeys", "bigkeys", "expiry", "stampede", "queues"] {
        let Some(report) = saved::nearest(&bundle, name, at) else {
            continue;
        };
        let bytes = bundle.read(&report.path)?;
        let value = serde_json::from_slice(&bytes).map_err(|error| BundleError::Damaged {
            path: bundle.place(&report.path),
            what: error.to_string(),
        })?;
        found.insert(name.to_owned(), value);
    }
    Ok(found)
}
