//! The way of a capture, from its folder to its end.

use std::rc::Rc;
use std::time::Duration;

use super::begin::{make, names, new_key};
use super::finish::finish;
use super::take::take;
use super::tape::Tape;
use crate::analysis::deadlocks::Once;
use crate::bundle::{BUNDLE_FORMAT, Head, Tokens};
use crate::cli::args::bundle::CaptureArgs;
use crate::cli::commands::Context;
use crate::cli::fault::Fault;
use crate::cli::log_lines;
use crate::cli::redis::capture as redis_capture;
use crate::cli::redis::place as redis_place;
use crate::cli::rounds::{self, local_now};
use crate::cli::secrets;
use crate::cli::settings::{self as cli_settings, ConnectSettings};
use crate::cli::stop::Stop;
use crate::logs::Wanted;
use crate::model::{ExitCode, Millis, RedactionLevel};
use crate::view::bundle::Gauge;

/// Where `--for` is given and `--every` isn't.
const USUAL: Duration = Duration::from_secs(2);

pub async fn run(ctx: &mut Context<'_>, args: &CaptureArgs) -> Result<ExitCode, Fault> {
    let mut settings = ConnectSettings::resolve(&args.connect, ctx.env)?;
    let level = if args.unredacted {
        ctx.console.warn(
            "--unredacted: values in statements and names are kept as they are; the bundle's name says so",
        );
        RedactionLevel::None
    } else {
        RedactionLevel::Redacted
    };
    settings.round.redaction = level;
    let every = args.every.or_else(|| args.time.map(|_| USUAL));
    let mut head = Head {
        format: BUNDLE_FORMAT.into(),
        stanch: env!("CARGO_PKG_VERSION").into(),
        started_at: local_now(),
        target: rounds::target(&settings),
        every_ms: every.map(|every| Millis::from(every).0),
        for_ms: args.time.map(|time| Millis::from(time).0),
        redaction: level,
        tokens: args.tokens,
        logs: args
            .log
            .iter()
            .map(|log| log.display().to_string())
            .collect(),
    };
    let tokens = if args.tokens {
        let key = new_key(ctx, &head)?;
        Some(Rc::new(Tokens::new(key)))
    } else {
        None
    };
    if let Some(tokens) = &tokens {
        // The folder is named by it too.
        tokens.hide_target(&mut head.target);
    }
    // Whatever is wrong with the command line is told before anything is written.
    redis_place::warn_of_password(ctx, &args.redis);
    let address = redis_place::asked(&args.redis, args.connect.dbname.as_deref(), ctx.env)?;
    let config = cli_settings::redis_config(ctx.env)?;
    let log_options = log_lines::options(&args.lines, Wanted::All)?;
    for log in &args.log {
        if log.as_os_str() == "-" {
            return Err(Fault::Usage(
                "--log -: a file, which is read once the capture ends; standard input is for pg deadlocks".into(),
            ));
        }
        std::fs::File::open(log)
            .map_err(|error| Fault::Usage(format!("--log {}: {error}", log.display())))?;
    }
    let known = secrets::known(ctx.env, Some(&settings), address.as_ref());
    let mut tape = Tape {
        folder: make(args, &head)?,
        tokens: tokens.clone(),
        names: names(&settings, address.as_ref()),
        known,
        target: head.target.clone(),
        worst: None,
        gauge: (every.is_some() && ctx.stderr_is_terminal).then(Gauge::default),
        connected: None,
        away: None,
        redis: None,
        once: Once::default(),
        failed: None,
    };
    ctx.console
        .note(&format!("capturing into {}", tape.folder.path().display()));
    tape.redis = address.clone().map(|address| {
        redis_capture::start(
            address,
            config,
            level == RedactionLevel::Redacted,
            tokens,
            every.is_some(),
        )
    });
    let end = take(ctx, &mut tape, &settings, every, args.time).await?;
    tape.is_back(ctx);
    // Promptly: what follows needs no slot.
    if let Some(connected) = tape.connected.take() {
        connected.close().await;
    }
    let end = tape.rest_of_redis(ctx, end, every.is_some()).await;
    let mut stop = Stop::new()?;
    let mut goes_on = true;
    for log in &args.log {
        if goes_on {
            goes_on = tape
                .log(ctx, &mut stop, log, &log_options, head.started_at)
                .await;
        } else {
            tape.gap("log", &format!("{}: stopped by hand", log.display()));
        }
    }
    finish(ctx, args, tape, &head, end)
}
