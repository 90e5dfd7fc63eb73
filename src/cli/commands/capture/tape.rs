//! What is being written, and what becomes of each thing that is to be.

use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::interval;

use crate::analysis::deadlocks::Once;
use crate::analysis::glance::{self, Glance, Weight, glance};
use crate::bundle::{self, End, Folder, Gap, Kept, KnownSecrets, Tokens};
use crate::cli::commands::Context;
use crate::cli::log_moments;
use crate::cli::redis::capture::{Reading, Told};
use crate::cli::rounds::local_now;
use crate::cli::stop::Stop;
use crate::logs::ScanOptions;
use crate::model::{Snapshot, Target, Timestamp};
use crate::source::postgres::{ConnectError, Connected};
use crate::sql;
use crate::view::Progress;
use crate::view::bundle::Gauge;

/// How often it is shown how far a log is read.
const SHOWN_EACH: Duration = Duration::from_millis(200);

/// What stands for a secret that this process was given.
const HIDDEN: &str = "(not shown: a secret that stanch was given)";

/// What is being written.
pub struct Tape {
    pub folder: Folder,
    pub tokens: Option<Rc<Tokens>>,
    /// What an error may name that is to be a token, with its kind.
    pub names: Vec<(&'static str, String)>,
    /// As the last frame has it.
    pub target: Target,
    pub worst: Option<(Weight, Glance)>,
    /// What must stand nowhere.
    pub known: KnownSecrets,
    pub gauge: Option<Gauge>,
    pub connected: Option<Connected>,
    /// Why the server can't be reached, and how often that was so since it was told.
    pub away: Option<(String, usize)>,
    pub redis: Option<Reading>,
    /// What the logs tell is told once.
    pub once: Once,
    /// Why something couldn't be written, the first time.
    pub failed: Option<io::Error>,
}

impl Tape {
    pub fn gap(&mut self, what: &str, why: &str) {
        let mut why = sql::redacted(why).into_owned();
        if self.known.find(&why).is_some() {
            why = HIDDEN.into();
        }
        if let Some(tokens) = &self.tokens {
            why = tokens.hide_words(&why, &self.names);
        }
        // Told with the next one, or at the end.
        let written = self.folder.gap(Gap::new(local_now(), what.into(), why));
        self.note(written.err());
    }

    /// The server can't be reached: told once, as long as it is for the same reason.
    pub fn is_away(&mut self, ctx: &mut Context<'_>, error: &ConnectError) {
        let why = error.to_string();
        if let Some((told, times)) = &mut self.away
            && *told == why
        {
            *times += 1;
            return;
        }
        self.is_back(ctx);
        ctx.console.error(&why, Some(&error.hint()));
        self.away = Some((why, 0));
    }

    /// It is there again, or nobody looks any more: how often it wasn't.
    pub fn is_back(&mut self, ctx: &mut Context<'_>) {
        if let Some((_, times)) = self.away.take()
            && times > 0
        {
            let times = crate::model::count(times, "time");
            ctx.console.note(&format!("the same {times} more"));
        }
    }

    /// Told on the screen once: a disk that is full is full the next time too.
    fn not_written(&mut self, ctx: &mut Context<'_>, what: &str, error: io::Error) {
        let why = format!("not written: {}", error.kind());
        let gap = Gap::new(local_now(), what.into(), why.clone());
        let (first, told) = self.folder.lost(gap);
        if first {
            ctx.console.error(&format!("{what}: {why}"), None);
        }
        self.note(Some(error));
        self.note(told.err());
    }

    pub fn note(&mut self, error: Option<io::Error>) {
        if self.failed.is_none() {
            self.failed = error;
        }
    }

    /// `false`: the bundle is as large as it may be.
    pub fn frame(&mut self, ctx: &mut Context<'_>, mut snapshot: Snapshot) -> bool {
        bundle::leave_out_known(&mut snapshot, &self.known);
        if let Some(tokens) = &self.tokens {
            tokens.hide(&mut snapshot);
        }
        let snapshot = &snapshot;
        let kept = match self.folder.frame(snapshot) {
            Ok(kept) => kept,
            Err(error) => {
                self.not_written(ctx, "frame", error);
                return true;
            }
        };
        if kept == Kept::TooLarge {
            return false;
        }
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
        let weight = glance::weight(snapshot);
        if self.worst.as_ref().is_none_or(|(worst, _)| weight > *worst) {
            self.worst = Some((weight, seen));
        }
        true
    }
}

impl Tape {
    /// Last of all: a log doesn't perish. `false`: a person has ended it.
    pub async fn log(
        &mut self,
        ctx: &mut Context<'_>,
        stop: &mut Stop,
        path: &Path,
        options: &ScanOptions,
        from: Timestamp,
    ) -> bool {
        let shown = path.display().to_string();
        let bar = Progress::new(
            &format!("reading {shown}"),
            "bytes",
            ctx.stderr_is_terminal && !ctx.console.quiet,
        );
        let (done, stopped) = (
            Arc::new(AtomicU64::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let (at, ended) = (Arc::clone(&done), Arc::clone(&stopped));
        let total = path.metadata().ok().map(|meta| meta.len());
        let (path, options) = (path.to_path_buf(), options.clone());
        let mut once = std::mem::take(&mut self.once);
        // On a thread of its own, so that a person can end it.
        let mut read = tokio::task::spawn_blocking(move || {
            let mut watch = |position, _| {
                at.store(position, Ordering::Relaxed);
                !ended.load(Ordering::Relaxed)
            };
            let told = log_moments::of(&path, &options, (Some(from), None), &mut once, &mut watch);
            (told.map_err(|fault| fault.to_string()), once)
        });
        let mut ticks = interval(SHOWN_EACH);
        let read = loop {
            tokio::select! {
                () = stop.asked() => {
                    stopped.store(true, Ordering::Relaxed);
                    self.gap("log", &format!("{shown}: stopped by hand"));
                    return false;
                }
                read = &mut read => break read,
                _ = ticks.tick() => bar.at(done.load(Ordering::Relaxed), total),
            }
        };
        drop(bar);
        let (read, once) = read.unwrap_or_else(|error| (Err(error.to_string()), Once::default()));
        self.once = once;
        match read {
            Ok(told) => {
                for zone in &told.zones {
                    ctx.console.warn(zone);
                }
                match self.folder.log(&told.moments) {
                    Ok(Kept::Written) => {
                        for why in &told.gaps {
                            self.gap("log", why);
                        }
                    }
                    Ok(Kept::TooLarge) => {
                        self.gap("log", &format!("{shown}: no room (--max-size)"));
                    }
                    Err(error) => {
                        self.gap("log", &format!("{shown}: not written: {}", error.kind()));
                        self.note(Some(error));
                    }
                }
            }
            Err(why) => self.gap("log", &why),
        }
        true
    }

    pub fn told(&mut self, ctx: &mut Context<'_>, told: Told) {
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
            Err(error) => self.not_written(ctx, &format!("redis {report}"), error),
        }
    }

    /// What is still being read of Redis: one frame waits for all of it, a row of frames only for the report that is read.
    pub async fn rest_of_redis(&mut self, ctx: &mut Context<'_>, end: End, row: bool) -> End {
        let Some(mut reading) = self.redis.take() else {
            return end;
        };
        if row || !end.whole {
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
