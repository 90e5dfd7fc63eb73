//! `stanch capture`: round after round into a folder, then one sealed file. What can't be had is a gap with its reason, and no
//! reason to stop.

use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};

use super::Context;
use super::bundle::{missing, told};
use crate::analysis::glance::{Glance, glance};
use crate::analysis::shell_word;
use crate::bundle::{self, BUNDLE_FORMAT, End, Folder, Gap, Head, Kept, KnownSecrets, Tokens};
use crate::cli::args::bundle::CaptureArgs;
use crate::cli::fault::Fault;
use crate::cli::redis::capture::{self as redis_capture, Reading, Told};
use crate::cli::redis::place as redis_place;
use crate::cli::rounds::{self, local_now};
use crate::cli::secrets;
use crate::cli::settings::{self as cli_settings, ActSettings, ConnectSettings};
use crate::cli::stop::Stop;
use crate::model::{ExitCode, Millis, RedactionLevel, Snapshot, Target};
use crate::source::postgres::{Connected, Parts, round};
use crate::sql;
use crate::view::bundle::{Captured, Gauge, captured};

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
    };
    let tokens = if args.tokens {
        let key = new_key(ctx, &head)?;
        Some(Rc::new(Tokens::new(key)))
    } else {
        None
    };
    if let Some(tokens) = &tokens {
        tokens.hide_target(&mut head.target);
    }
    let mut tape = Tape {
        folder: make(args, &head)?,
        tokens: tokens.clone(),
        names: names(&settings),
        target: head.target.clone(),
        worst: None,
        gauge: (every.is_some() && ctx.stderr_is_terminal).then(Gauge::default),
        connected: None,
        redis: None,
        failed: None,
    };
    ctx.console
        .note(&format!("capturing into {}", tape.folder.path().display()));
    redis_place::warn_of_password(ctx, &args.redis);
    let address = match args.redis.redis {
        Some(_) => redis_place::address(&args.redis, None, ctx.env)?,
        None => None,
    };
    let config = cli_settings::redis_config(ctx.env)?;
    tape.redis = address.clone().map(|address| {
        redis_capture::start(address, config, level == RedactionLevel::Redacted, tokens)
    });
    let end = take(ctx, &mut tape, &settings, every, args.time).await?;
    let end = tape.rest_of_redis(ctx, end).await;
    if let Some(connected) = tape.connected.take() {
        connected.close().await;
    }
    let known = secrets::known(ctx.env, Some(&settings), address.as_ref());
    finish(ctx, args, tape, &known, &head, end)
}

/// The names that an error of a connection may hold; the longest first, since one may be part of another.
fn names(settings: &ConnectSettings) -> Vec<(&'static str, String)> {
    let plans = settings.rescue.iter().chain([&settings.plan]);
    let mut names: Vec<(&'static str, String)> = plans
        .flat_map(|plan| &plan.places)
        .flat_map(|place| {
            let addr = place.hostaddr.clone().map(|addr| ("host", addr));
            let names = [
                ("host", place.host.clone()),
                ("user", place.user.clone()),
                ("db", place.database.clone()),
            ];
            names.into_iter().chain(addr)
        })
        .filter(|(_, name)| !name.is_empty())
        .collect();
    names.sort_by_key(|(_, name)| std::cmp::Reverse(name.len()));
    names
}

/// A new key, kept with the journals: whoever has it can tell which name a token was.
fn new_key(ctx: &mut Context<'_>, head: &Head) -> Result<Vec<u8>, Fault> {
    let folder = ActSettings::of(ctx.env)?.state.join("keys");
    let at = head.started_at.utc().format("%Y%m%dT%H%M%S%.6fZ");
    let path = folder.join(format!("{at}.key"));
    let key: [u8; 32] = rand::random();
    let text: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    let written = std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)
        .and_then(|()| bundle::write_bytes(&path, text.as_bytes()));
    written.map_err(|error| Fault::Save(format!("{}: no key: {error}", path.display())))?;
    ctx.console
        .note(&format!("the key of the tokens is in {}", path.display()));
    Ok(text.into_bytes())
}

/// A folder under a name that nobody has.
fn make(args: &CaptureArgs, head: &Head) -> Result<Folder, Fault> {
    let place = head.target.name.as_ref().unwrap_or(&head.target.database);
    let plain: String = place
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(40)
        .collect();
    let unredacted = match head.redaction {
        RedactionLevel::None => "-UNREDACTED",
        RedactionLevel::Redacted => "",
    };
    let at = head.started_at.utc().format("%Y%m%dT%H%M%SZ");
    let name = format!("stanch-{plain}-{at}{unredacted}");
    for n in 0..100 {
        let name = match n {
            0 => name.clone(),
            n => format!("{name}-{n}"),
        };
        // Here, it is said by its name alone.
        let root = if args.out == Path::new(".") {
            PathBuf::from(&name)
        } else {
            args.out.join(&name)
        };
        if root.with_file_name(format!("{name}.tar.zst")).exists() {
            continue;
        }
        match Folder::create(root.clone(), head, args.max_size) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(Fault::Save(format!(
                    "{}: no bundle: {error}",
                    root.display()
                )));
            }
            Ok(folder) => return Ok(folder),
        }
    }
    Err(Fault::Save(format!("{name}: the name is taken")))
}

/// What is being written.
struct Tape {
    folder: Folder,
    tokens: Option<Rc<Tokens>>,
    /// What an error may name that is to be a token, with its kind.
    names: Vec<(&'static str, String)>,
    /// As the last frame has it.
    target: Target,
    worst: Option<Glance>,
    gauge: Option<Gauge>,
    connected: Option<Connected>,
    redis: Option<Reading>,
    /// Why something couldn't be written, the first time.
    failed: Option<io::Error>,
}

impl Tape {
    fn gap(&mut self, what: &str, why: &str) {
        let mut why = sql::redacted(why).into_owned();
        if let Some(tokens) = &self.tokens {
            for (kind, name) in &self.names {
                why = why.replace(name, &tokens.of(kind, name));
            }
        }
        let gap = Gap {
            at: local_now(),
            what: what.into(),
            why,
        };
        // Told with the next one, or at the end.
        let written = self.folder.gap(gap);
        self.note(written.err());
    }

    fn note(&mut self, error: Option<io::Error>) {
        if self.failed.is_none() {
            self.failed = error;
        }
    }

    /// `false`: the bundle is as large as it may be.
    fn frame(&mut self, ctx: &mut Context<'_>, mut snapshot: Snapshot) -> bool {
        if let Some(tokens) = &self.tokens {
            tokens.hide(&mut snapshot);
        }
        let snapshot = &snapshot;
        let kept = match self.folder.frame(snapshot) {
            Ok(kept) => kept,
            Err(error) => {
                ctx.console
                    .error(&format!("a frame wasn't written: {error}"), None);
                self.gap("frame", &format!("not written: {error}"));
                self.note(Some(error));
                return true;
            }
        };
        self.target = snapshot.target.clone();
        let seen = glance(snapshot);
        for part in &seen.failed {
            let why = crate::model::Part::ALL
                .iter()
                .find(|known| known.name() == *part)
                .and_then(|part| snapshot.status(*part).1);
            self.gap(part, &why.unwrap_or_default());
        }
        if let Some(gauge) = &mut self.gauge {
            let line = gauge.line(&seen, ctx.console.style);
            ctx.console.rendered(&line);
        }
        let weight = |glance: &Glance| (glance.waiting, glance.used);
        if self
            .worst
            .as_ref()
            .is_none_or(|worst| weight(&seen) > weight(worst))
        {
            self.worst = Some(seen);
        }
        kept == Kept::Written
    }
}

impl Tape {
    fn told(&mut self, ctx: &mut Context<'_>, told: Told) {
        let Told { report, at, value } = told;
        let written = match value {
            Ok(value) => self.folder.redis(report, at, &value),
            Err(why) => {
                self.gap(&format!("redis {report}"), &why);
                return;
            }
        };
        match written {
            Ok(Kept::Written) => {}
            Ok(Kept::TooLarge) => self.gap(&format!("redis {report}"), "no room (--max-size)"),
            Err(error) => {
                ctx.console
                    .error(&format!("redis {report} wasn't written: {error}"), None);
                self.gap(&format!("redis {report}"), &format!("not written: {error}"));
                self.note(Some(error));
            }
        }
    }

    /// What is still being read of Redis: one frame waits for all of it, a row of frames only for the report that is read.
    async fn rest_of_redis(&mut self, ctx: &mut Context<'_>, end: End) -> End {
        let Some(mut reading) = self.redis.take() else {
            return end;
        };
        if self.folder.frames() != 1 || !end.whole {
            reading.stop();
        }
        let Ok(mut stop) = Stop::new() else {
            return end;
        };
        loop {
            tokio::select! {
                () = stop.asked() => reading.stop(),
                told = reading.next() => match told {
                    Some(told) => self.told(ctx, told),
                    None => return end,
                }
            }
        }
    }
}

/// The next report of Redis, where one is being read.
async fn next_of(reading: &mut Option<Reading>) -> Told {
    if let Some(open) = reading {
        if let Some(told) = open.next().await {
            return told;
        }
        *reading = None;
    }
    std::future::pending().await
}

/// Frame after frame, until the time is over, the bundle is full, or the person ends it.
async fn take(
    ctx: &mut Context<'_>,
    tape: &mut Tape,
    settings: &ConnectSettings,
    every: Option<Duration>,
    time: Option<Duration>,
) -> Result<End, Fault> {
    let over = |whole: bool, why: &str| End {
        at: local_now(),
        whole,
        why: why.into(),
    };
    let mut stop = Stop::new()?;
    let Some(every) = every else {
        tokio::select! {
            () = stop.asked() => return Ok(over(false, "stopped before it was read")),
            _ = one(ctx, tape, settings) => {}
        }
        return Ok(over(true, "one frame"));
    };
    let until = time.map(|time| Instant::now() + time);
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let passed = async {
            match until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        // A frame that has begun is taken to its end.
        tokio::select! {
            () = stop.asked() => {
                // Without a time given that is how it ends.
                return Ok(over(time.is_none(), "stopped by hand"));
            }
            () = passed => return Ok(over(true, "the time is over")),
            told = next_of(&mut tape.redis) => {
                tape.told(ctx, told);
                continue;
            }
            _ = ticks.tick() => {}
        }
        tokio::select! {
            () = stop.asked() => {
                return Ok(over(time.is_none(), "stopped by hand"));
            }
            room = one(ctx, tape, settings) => if !room {
                return Ok(over(false, "the bundle became as large as it may (--max-size)"));
            }
        }
    }
}

/// One round, whatever comes of it; `false`: there is no room for it.
async fn one(ctx: &mut Context<'_>, tape: &mut Tape, settings: &ConnectSettings) -> bool {
    if tape.connected.is_none() {
        match rounds::connect(ctx, settings).await {
            Ok(connected) => tape.connected = Some(connected),
            Err(Fault::Connect(error)) => {
                ctx.console.error(&error.to_string(), Some(&error.hint()));
                tape.gap("frame", &error.to_string());
                // That there was no slot is a frame as well.
                return match rounds::without_slot(&error, settings) {
                    Some(snapshot) => tape.frame(ctx, snapshot),
                    None => true,
                };
            }
            Err(fault) => {
                tape.gap("frame", &fault.to_string());
                return true;
            }
        }
    }
    let Some(connected) = &tape.connected else {
        return true;
    };
    match round(connected, Parts::ALL, settings.round).await {
        Ok(snapshot) => tape.frame(ctx, snapshot),
        Err(error) => {
            ctx.console.error(&error.to_string(), None);
            tape.gap("frame", &format!("{} ({})", error.message, error.code));
            if error.connection_lost {
                tape.connected = None;
            }
            true
        }
    }
}

/// Ends the folder, seals it, and tells what came of it.
fn finish(
    ctx: &mut Context<'_>,
    args: &CaptureArgs,
    mut tape: Tape,
    known: &KnownSecrets,
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
        worst: tape.worst.take(),
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
        match bundle::seal(&root, &root.with_file_name(name), known, &[]) {
            Ok(sealed) => {
                result.path = sealed.path.display().to_string();
                result.sealed = true;
                result.sha256 = Some(sealed.sha256);
                result.bytes = sealed.bytes;
                // All of it is in the file.
                if let Err(error) = std::fs::remove_dir_all(&root) {
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
