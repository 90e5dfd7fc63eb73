//! `stanch pg deadlocks`: out of logs, or by two looks at a server's counters.

use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, NaiveDate, NaiveDateTime, TimeDelta};

use super::Context;
use crate::analysis::deadlocks::{self, Collector, Growing};
use crate::analysis::glance;
use crate::bundle::{self, BUNDLE_FORMAT, Head};
use crate::cli::args::logs::DeadlockArgs;
use crate::cli::fault::Fault;
use crate::cli::log_lines;
use crate::cli::rounds;
use crate::cli::secrets;
use crate::cli::settings::ConnectSettings;
use crate::cli::stop::{Stop, Stops};
use crate::logs::{self, ScanOptions, Wanted};
use crate::model::{ExitCode, Snapshot, Timestamp};
use crate::source::postgres::{Parts, round};
use crate::source::saved;
use crate::view::{self, Progress};

pub async fn run(ctx: &mut Context<'_>, args: &DeadlockArgs) -> Result<ExitCode, Fault> {
    if let Some(path) = &args.from {
        let last = saved::load(path, args.at.at.unwrap_or_default(), glance::weight)?;
        rounds::tell_of(ctx, path, &last);
        let mut before = Growing::default();
        saved::before(path, last.number, &mut |look| before.add(look))?;
        return counted(ctx, args, before, &last.snapshot);
    }
    if args.logs.is_empty() {
        live(ctx, args).await
    } else {
        let connect = &args.connect;
        if [
            &connect.host,
            &connect.port,
            &connect.username,
            &connect.dbname,
        ]
        .iter()
        .any(|given| given.is_some())
        {
            return Err(Fault::Usage(
                "a LOG or a connection: a log is read without any server".into(),
            ));
        }
        read(ctx, args)
    }
}

/// Out of logs.
fn read(ctx: &mut Context<'_>, args: &DeadlockArgs) -> Result<ExitCode, Fault> {
    let now = rounds::local_now();
    let options = ScanOptions {
        since: args
            .since
            .as_deref()
            .map(|text| time("--since", text, now))
            .transpose()?,
        until: args
            .until
            .as_deref()
            .map(|text| time("--until", text, now))
            .transpose()?,
        ..log_lines::options(&args.lines, Wanted::Locks)?
    };
    let stops = Stops::default();
    stops.watch()?;
    let bar = Progress::new(
        "reading",
        "bytes",
        ctx.stderr_is_terminal && !ctx.console.quiet,
    );
    let mut collector = Collector::new(args.unredacted);
    let mut read = Vec::new();
    let (total, mut done) = (on_disk(&args.logs), 0);
    for path in &args.logs {
        let opened = logs::open(path)?;
        let size = opened.size.unwrap_or(0);
        let mut begun = logs::begin(opened, &options)?;
        collector.begin(begun.start());
        let log = begun.read(&mut |event| collector.take(event), &mut |position, _| {
            bar.at(done + position, total);
            stops.count() == 0
        })?;
        collector.end_of_log(log.ends);
        done += size;
        let stopped = log.stopped.is_some();
        read.push(log);
        if stopped && stops.count() > 0 {
            break;
        }
    }
    drop(bar);
    stops.leave();
    let report = deadlocks::report(now, read, collector.finish());
    if ctx.console.list.is_some() {
        view::lists(ctx.console, &view::Table::sheets(&report.data))?;
    }
    view::show(ctx.console, &report)?;
    Ok(
        match (
            args.check && report.data.deadlocks_total + report.data.deadlocks_without_circle > 0,
            report.head.coverage.complete,
        ) {
            (true, _) => ExitCode::Warning,
            (false, true) => ExitCode::Ok,
            (false, false) => ExitCode::Unknown,
        },
    )
}

/// By two looks over one connection.
async fn live(ctx: &mut Context<'_>, args: &DeadlockArgs) -> Result<ExitCode, Fault> {
    let settings = ConnectSettings::resolve(&args.connect, ctx.env)?;
    let connected = rounds::connect(ctx, &settings).await?;
    let look = async || match &args.save {
        Some(_) => rounds::round_to_keep(&connected, &settings).await,
        None => round(&connected, Parts::of(deadlocks::PARTS), settings.round).await,
    };
    let looks = async {
        let before = look().await?;
        ctx.console.note(&format!(
            "the counters are read twice, {} apart (--for)",
            crate::model::Millis::from(args.window)
        ));
        // Statistics of a session that ended just now arrive within a second.
        let mut stop = Stop::new()?;
        tokio::select! {
            () = stop.asked() => {}
            () = tokio::time::sleep(args.window.max(Duration::from_secs(1))) => {}
        }
        let after = look().await?;
        Ok::<_, Fault>((before, after))
    }
    .await;
    connected.close().await;
    let (before, after) = looks?;
    // What can't be saved is shown all the same, and the fault is told after it.
    let saved = match &args.save {
        Some(file) => save(ctx, file, &settings, [before.clone(), after.clone()]),
        None => Ok(()),
    };
    let mut looks = Growing::default();
    looks.add(&before);
    let code = counted(ctx, args, looks, &after)?;
    saved.map(|()| code)
}

/// Both looks, as a bundle.
fn save(
    ctx: &Context<'_>,
    file: &Path,
    settings: &ConnectSettings,
    mut looks: [Snapshot; 2],
) -> Result<(), Fault> {
    let known = secrets::known(ctx.env, Some(settings), None);
    for look in &mut looks {
        bundle::leave_out_known(look, &known);
    }
    let head = Head {
        format: BUNDLE_FORMAT.into(),
        stanch: env!("CARGO_PKG_VERSION").into(),
        started_at: looks[0].taken_at,
        target: looks[0].target.clone(),
        every_ms: None,
        for_ms: None,
        redaction: settings.round.redaction,
        tokens: false,
        logs: Vec::new(),
    };
    let looks: Vec<&Snapshot> = looks.iter().collect();
    Ok(bundle::seal_frames(file, &head, &looks, &known)?)
}

/// What the counters and settings say.
fn counted(
    ctx: &mut Context<'_>,
    args: &DeadlockArgs,
    before: Growing,
    after: &Snapshot,
) -> Result<ExitCode, Fault> {
    let report = deadlocks::live(before, after);
    if ctx.console.list.is_some() {
        view::lists(ctx.console, &view::Table::sheets(&report.data))?;
    }
    view::show(ctx.console, &report)?;
    let grew = report
        .data
        .databases
        .iter()
        .any(|c| c.grown.unwrap_or(0) > 0);
    Ok(match (args.check && grew, rounds::listing_code(&report)) {
        (true, _) => ExitCode::Warning,
        (false, code) => code,
    })
}

/// Of all logs, where all are files.
fn on_disk(logs: &[PathBuf]) -> Option<u64> {
    logs.iter()
        .map(|path| {
            path.metadata()
                .ok()
                .filter(std::fs::Metadata::is_file)
                .map(|meta| meta.len())
        })
        .sum()
}

/// A moment, or so long ago.
fn time(option: &str, text: &str, now: Timestamp) -> Result<Timestamp, Fault> {
    if let Ok(ago) = humantime::parse_duration(text) {
        let ago = TimeDelta::from_std(ago).unwrap_or(TimeDelta::MAX);
        if let Some(at) = now.utc().checked_sub_signed(ago) {
            return Ok(Timestamp::new(at));
        }
    }
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Ok(Timestamp::new(at.to_utc()));
    }
    let plain = text.trim_end_matches(" UTC").replace('T', " ");
    for format in ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M"] {
        if let Ok(at) = NaiveDateTime::parse_from_str(&plain, format) {
            return Ok(Timestamp::new(at.and_utc()));
        }
    }
    if let Some(at) = NaiveDate::parse_from_str(&plain, "%Y-%m-%d")
        .ok()
        .and_then(|day| day.and_hms_opt(0, 0, 0))
    {
        return Ok(Timestamp::new(at.and_utc()));
    }
    Err(Fault::Usage(format!(
        "{option} {text}: a time such as 2026-12-01T02:30:00Z, or 2h for so long ago"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_people_write_them() {
        let now = Timestamp::new("2026-12-01T03:00:00Z".parse().expect("a time"));
        let cases = [
            ("2h", "2026-12-01T01:00:00.000000Z"),
            ("2026-12-01T11:30:00+09:00", "2026-12-01T02:30:00.000000Z"),
            ("2026-12-01 02:30", "2026-12-01T02:30:00.000000Z"),
            ("2026-12-01 02:30:05.5 UTC", "2026-12-01T02:30:05.500000Z"),
            ("2026-12-01", "2026-12-01T00:00:00.000000Z"),
        ];
        for (text, at) in cases {
            assert_eq!(time("--since", text, now).expect(text).to_string(), at);
        }
        assert!(time("--since", "yesterday", now).is_err());
    }
}
